/* search/costs.h - what the pieces of a model cost on one rank, worked out once for each way of splitting a layer
 * and shared by every pipeline, schedule and data-parallel policy.
 *
 * The numbers are those of step/pieces.h, so they are the simulator's own
 * picoseconds and bytes; nothing is modelled a second time here. Sums over layers are kept as prefix sums: layers
 * a to b-1 cost sum[b] - sum[a].
 */
#ifndef ORR_SEARCH_COSTS_H
#define ORR_SEARCH_COSTS_H

#include "search/space.h"
#include "step/pieces.h"

/* How much of a layer runs again in the backward. */
typedef enum {
    SEARCH_RECOMPUTED_NONE,
    SEARCH_RECOMPUTED_ALL,
    SEARCH_RECOMPUTED_SOME,
    SEARCH_RECOMPUTED_OP,
    SEARCH_RECOMPUTED_COUNT
} SearchRecomputed;

/* What runs again of layer `from` of a stage of `layers`; returns the first behind it of which something else does. */
int search_recomputed_run(const SpecRecompute *recompute, int from, int layers, SearchRecomputed *ret_again);

typedef struct SearchTimeSplits { /* prefix sums [layers + 1] */
    int64_t *exchange_ps, *kernels_ps;
} SearchTimeSplits;

typedef struct SearchMemory {
    int64_t *kept_bytes, *input_only_bytes;            /* prefix sums [layers + 1] */
    int64_t *forward_temp_bytes, *backward_temp_bytes; /* [layers] */
} SearchMemory;

typedef struct SearchCosts {
    int64_t *forward_ps, *input_ps, *weight_ps;     /* prefix sums [layers + 1] */
    SearchTimeSplits ahead, back;                   /* of forwards; of both gradients */
    unsigned known;                                 /* bits of SearchRecomputed that are worked out */
    int64_t *recompute_ps[SEARCH_RECOMPUTED_COUNT]; /* prefix sums */
    SearchTimeSplits again[SEARCH_RECOMPUTED_COUNT];
    SearchMemory memory[SEARCH_RECOMPUTED_COUNT];
    StepPiece first, last;         /* embedding; multi-token prediction and head (step/pieces.h) */
    CostWeights mtp_weights;       /* of one layer of multi-token prediction; in neither of the others */
    CostWeights tied_last_weights; /* of `last` without a pipeline: no second table when tied */
    int64_t overhead_ps;           /* of a pass over a stage */
    bool leaves_sms; /* some pass is on a network, and not slower beside collectives that take SMs */
    int64_t hop_inside_ps, hop_across_ps;
    int64_t head_left_out_ps; /* by a backward that leaves the LM head's weight gradient for the end */
    int64_t workspace_bytes,
        last_workspace_bytes;      /* static, on the last rank and elsewhere, without layers */
    int64_t layer_workspace_bytes; /* that a rank with layers has at least besides */
    CostWeights *weights;          /* prefix sums [layers + 1] */
} SearchCosts;

/* One micro-batch on the whole model without recomputation. */
typedef struct SearchTotals {
    int64_t chain_ps, weight_ps; /* forward and input gradient; weight gradient */
    StepSplit side;
    int64_t hop_ps;   /* of the quicker message */
    double shared_ps; /* sum over pieces of the least time over slowness of its kind (search/hardware.h) */
} SearchTotals;

typedef struct SearchTable SearchTable;

/* Totals of every table are known; the table itself is worked out when it is first unpacked. */
typedef struct SearchTables {
    SearchSpace *space;
    SearchTotals *totals;        /* of mixed clusters the least of all kinds, piece by piece */
    double *slowness;            /* [count x kinds]: time of the whole model over that on the best kind */
    SearchTable **table;         /* [count x kinds] */
    const SearchGroup **example; /* a group that uses each table */
    int count, kinds;            /* kinds: of GPUs (search/hardware.h) */
    GMutex mutex;
} SearchTables;

/* Gives every group its table. */
SearchTables *search_tables_new(SearchSpace *space);
/* Fills the totals of tables `from` and up to `count` of them on `jobs` threads: all, or of `shares` processes those whose
 * index leaves `share` when divided. */
void search_tables_fill(SearchTables *tables, int from, int count, int jobs, int share, int shares);
void search_tables_free(SearchTables *tables);

/* Room for a table's sums. */
void search_costs_init(SearchCosts *costs, OrrArena *arena, int layers);
/* Of one kind of GPUs. Thread-safe; the answer does not depend on who asks first. */
void search_tables_unpack(SearchTables *tables, int index, int kind, SearchCosts *costs);

#endif
