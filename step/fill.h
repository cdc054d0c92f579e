/* step/fill.h - shared by the files that fill a SimPlan. */
#ifndef ORR_STEP_FILL_H
#define ORR_STEP_FILL_H

#include "costmodel/adapter.h"
#include "costmodel/activations.h"
#include "costmodel/layers.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"
#include "costmodel/pass.h"
#include "sim/picoseconds.h"
#include "step/policy.h"
#include "step/step.h"

/* Parameters of one segment on one rank. */
typedef struct StepParams {
    CostWeights weights;
    int tiles;            /* in which they are gathered and reduced, one after the other; 0: at once */
    CostFrozen frozen;    /* beside them: neither reduced nor updated */
    CostFrozen reference; /* of a second model, whose forward alone runs */
    int buckets; /* in which they are reduced, where that is dealt (step_deal_buckets); 0: by their bytes */
} StepParams;

/* Layers that are alike: all of them cost the same. */
typedef struct StepLayerKind {
    SimSegment segment;
    StepParams params;
    CostWeightShapes weights;
    double ahead_layers; /* of forwards by which the host gets ahead of the GPU in each */
} StepLayerKind;

typedef struct Step {
    const Spec *spec;
    CostShape shape;
    OrrArena *arena;
    SimPlan *plan;
    StepLayerKind *kinds[COST_LAYER_GROUPS]; /* by cost_layer_group(); NULL: no layer of it so far */
    CostLayerGroups *groups;                 /* [stages of one copy] */
    StepParams **params;                     /* [stages][segments] */
    int stages;                              /* of one copy of the model */
    int *layers;                             /* [stages] */
} Step;

static inline bool step_is_network(int resource)
{
    return resource == SIM_RESOURCE_SCALE_UP || resource == SIM_RESOURCE_SCALE_OUT;
}

/* At most 8e18 bytes. */
int64_t step_bytes(double bytes);
/* Adds a list's time to a work: compute into `compute_part`. */
void step_add_time(SimWork *work, const CostTime *time, SimPart compute_part);
/* A collective as an op of its own. */
SimWork step_collective(const Spec *spec, const CostCollective *collective, SimPart part);
void step_add_work(SimWork *sum, const SimWork *term);
/* Its share of the scale-up or scale-out network; NULL: it has none. */
const SimShare *step_network_share(const SimWork *work);

/* step/orders.c: schedule and shape, and the orders when the Spec brings its own. */
bool step_fill_schedule(const Spec *spec, OrrArena *arena, SimPlan *plan, GError **error);
/* Once stages and ranks are filled in: what a schedule that chooses by memory may hold. */
void step_fill_limits(const Spec *spec, SimPlan *plan);
/* step/segments.c: the segments of stage `stage`; `first_layer` is the model layer that it begins with. */
void step_fill_stage(Step *step, int stage, int first_layer);
/* The LM head's weight gradients that wait for the end of the pipeline. */
void step_fill_deferred_head(const Step *step);
/* step/data.c: gradient reduction and parameter gathers of a stage. */
void step_fill_data(Step *step, int stage);
/* step/bucket_deal.c: what the buckets hold that each segment's backward completes, dealt from the first tensor on.
 * ret_complete: [segments] of `stage`, zero. */
void step_deal_buckets(const Step *step, int stage, const StepPolicy *policy, StepParams *ret_complete);
void step_add_params(StepParams *sum, const StepParams *term);
/* Gradients are compressed on the wire. */
bool step_compresses(const Spec *spec);
/* step/rank.c: optimizer and states of a rank. */
void step_fill_rank(Step *step, int rank);
/* Buffers of a stage hold what crosses its boundaries for all micro-batches of the step. */
bool step_keeps_boundaries(const Spec *spec);
/* Whether multi-token modules bring a copy of the embedding's table to the last stage: untied, and on another rank than the first. */
bool step_copies_table(const Step *step);
/* step/list.c: stage `stage` of a list of layers, which begins with layer `first_layer`; what it sends to the next one,
 * of a micro-batch and a rank. */
void step_fill_list(Step *step, int stage, int first_layer);
double step_list_boundary_bytes(const Step *step, int stage);
/* step/servers.c: once everything else is filled in, what another data_scheme does. */
bool step_apply_scheme(Step *step, GError **error);
/* step/compression.c: bytes of an element of the gradient on the wire, compressed or not; the reduction of `count`
 * elements, and what the GPU does before and behind it. */
double step_payload_bytes(const Spec *spec);
SimWork step_compressed_reduce(const Spec *spec, bool scatter, double count);
double step_select_s(const Spec *spec, double count);
double step_restore_s(const Spec *spec, double count, int ranks);
void step_fill_compression(const Spec *spec, double count, SimCompression *out);
/* step/offload.c: what stage `stage` moves to and from the host and the disks; what that makes of a rank. */
void step_fill_offload(Step *step, int stage);
void step_offload_rank(const Step *step, int rank, const StepParams *params, SimRankPlan *out);
/* step/evict.c: which activations of a stage leave at this rate of the link (leaving_bytes); returns how many of its
 * first layers have one that does. */
int step_evict(const Step *step, int first_layer, double bytes_per_s, SimStage *stage);
/* step/direct.c: which pieces of a stage are read where they lie in the host's memory: the shortest forward. */
void step_choose_direct(Step *step, int stage, double copy_bytes_per_s, SimOffload *offloads);
/* step/zeropp.c: ZeRO++ on one unit whose plain communication is filled in; its second shard of weights. */
void step_apply_zeropp(const Spec *spec, const StepParams *params, SimSegment *segment);
double step_secondary_shard_bytes(const Spec *spec, const StepParams *params);

#endif
