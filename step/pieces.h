/* step/pieces.h - the table of stages before they are cut: what each layer and both ends of a model cost and keep on a rank,
 * whatever the pipeline and the data-parallel policy. A stage is a range of pieces; the search sums them.
 *
 * Nothing is modelled here: pieces are read from plans that step.h makes of a small pipeline, in the picoseconds and bytes of
 * its segments. What belongs to a stage or a rank and not to a piece is left out or said apart. Nothing here fails.
 * Tested: unit/step/test_pieces.c, unit/search/test_search_bound.c
 */
#ifndef ORR_STEP_PIECES_H
#define ORR_STEP_PIECES_H

#include "costmodel/params.h"
#include "spec/spec.h"

/* The two sides of a forward beside a backward, which last as long as the longer one. */
typedef struct StepSplit {
    int64_t exchange_ps, kernels_ps; /* tokens on their way between experts; everything else */
} StepSplit;

typedef struct StepPiece {
    int64_t forward_ps, input_ps,
        weight_ps;                        /* of one micro-batch: forward, gradients of inputs, of weights */
    int64_t again_ps;                     /* runs again in the backward */
    StepSplit ahead, back, again;         /* forward; both gradients; what runs again */
    int64_t kept_bytes, input_only_bytes; /* activations; of them, no longer wanted by weight gradients */
    int64_t forward_temp_bytes, backward_temp_bytes;
    CostWeights weights;
    int segments; /* of a stage's plan */
} StepPiece;

typedef struct StepPieces {
    StepPiece *layer; /* [layers] */
    StepPiece first,
        last;        /* embedding; multi-token prediction and head, without a pipeline's copy of a table */
    CostWeights mtp; /* one layer of multi-token prediction, which `last` leaves out */
    CostWeights tied_last; /* `last` without a pipeline: no second table when tied */
    int64_t overhead_ps;   /* of a pass over a stage, which no piece counts */
    bool leaves_sms;       /* some pass is on a network, and not slower beside collectives that take SMs */
    int64_t hop_inside_ps, hop_across_ps; /* of a message between stages, in a scale-up domain or across */
    int64_t head_left_out_ps; /* by a backward that leaves the LM head's weight gradient for the end */
    int64_t workspace_bytes, last_workspace_bytes; /* static, without layers; of the last rank */
    int64_t layer_workspace_bytes;                 /* that a rank with layers has at least besides */
} StepPieces;

/* The pieces of `spec`, whose recomputation is the one asked for. `alike`: ranks lie in domains alike at every pipeline and
 * data-parallel degree; otherwise pieces hold for the degrees of `spec` alone. `accumulates`: a step has several
 * micro-batches. Where passes differ between ZeRO stages, each time is the least. */
void step_pieces(const Spec *spec, bool alike, bool accumulates, OrrArena *arena, StepPieces *ret_pieces);

/* The orders of ranks in which pipeline and data parallelism are outside of all others: what `alike` needs. */
bool step_order_is_alike(const char *order);

/* Whether passes take longer where there is a pipeline: hosts that wait for messages or check collectives there alone, and
 * a last stage with a copy of a tied table of its own. Pieces then hold for pipelines, or for none. */
bool step_pieces_follow_pipeline(const Spec *spec);

/* Whether forwards and gradients take longer or shorter by what is recomputed, and not `again_ps` alone. */
bool step_pieces_follow_recompute(const Spec *spec);

/* Lowers each time of `least` to that of `other`. */
void step_piece_lower(StepPiece *least, const StepPiece *other);

static inline void step_split_add(StepSplit *sum, const StepSplit *term)
{
    sum->exchange_ps += term->exchange_ps;
    sum->kernels_ps += term->kernels_ps;
}

#endif
