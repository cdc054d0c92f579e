/* step/policy.h - what a recipe's data parallelism does in one Spec, as plain facts: which gradients share a bucket, when
 * gradients are reduced and weights gathered, and how often, and who waits for what. The step's plan and the search's bounds
 * read these facts and fill buckets with one function. Nothing here fails. */
#ifndef ORR_STEP_POLICY_H
#define ORR_STEP_POLICY_H

#include "spec/spec.h"

typedef enum StepFill {
    STEP_FILL_BYTES,         /* segments from a stage's last on, until a bucket has its bytes */
    STEP_FILL_SEGMENTS,      /* each segment is a bucket: units of ZeRO-3, layers of ZeRO-2 */
    STEP_FILL_TENSORS_FIRST, /* tensors from a stage's first on */
    STEP_FILL_TENSORS_LAST,  /* tensors from a stage's last on */
} StepFill;

/* When the updated weights of ZeRO 1 and 2 are gathered, and those that ZeRO-3 keeps for a step. */
typedef enum StepGathers {
    STEP_GATHERS_NONE, /* before no forward: behind the optimizer, where there are any */
    STEP_GATHERS_STEP, /* beside compute, from the step's start on */
    STEP_GATHERS_USE   /* beside compute, from the first forward of their chunk on */
} StepGathers;

/* When gradients are reduced. */
typedef enum StepReduces {
    STEP_REDUCES_LATE,      /* behind all passes */
    STEP_REDUCES_LAST,      /* beside the last backward of a chunk */
    STEP_REDUCES_EACH,      /* beside every backward */
    STEP_REDUCES_EACH_ALONE /* behind every backward, and the next pass waits */
} StepReduces;

typedef struct StepPolicy {
    StepFill fill;
    double bucket_bytes;         /* that fill a bucket; 0: one holds all */
    double first_bucket_bytes;   /* that fill the one whose gradients are ready first */
    double gradient_wire_bytes;  /* of a parameter */
    bool root_unit;              /* what lies outside the layers is one unit */
    bool counts_tensors;         /* a bucket takes longer when it holds more tensors */
    bool keeps_gathered;         /* weights stay gathered for all micro-batches of a step */
    bool reshards_after_forward; /* else weights stay gathered up to their backward */
    bool sharded_weights;        /* ZeRO-3: units are gathered before they are used */
    StepGathers gathers;
    StepReduces reduces;
    bool by_chunk;      /* weights are gathered and gradients reduced once for all micro-batches of a chunk */
    int prefetch_units; /* that are gathered ahead of their use */
    bool waits_for_sends; /* compute waits for its messages to other pipeline ranks */
    bool validates_later; /* a rank's step begins before the norm of all gradients is known */
    bool waits_for_norm;  /* no optimizer begins before the last rank's gradients are reduced */
    double context_bytes; /* that a GPU holds beside the tensors of the step: CUDA's and NCCL's own */
    double overhead_s;    /* of a step, outside of all passes and collectives */
} StepPolicy;

/* `spec` is complete (no "auto"). */
StepPolicy step_policy(const Spec *spec);

/* Gradients are reduced beside compute. */
static inline bool step_reduces_beside(const StepPolicy *policy)
{
    return policy->reduces == STEP_REDUCES_LAST || policy->reduces == STEP_REDUCES_EACH;
}

/* Gradients are reduced after every micro-batch. */
static inline bool step_reduces_each(const StepPolicy *policy)
{
    return policy->reduces == STEP_REDUCES_EACH || policy->reduces == STEP_REDUCES_EACH_ALONE;
}

/* Passes of a chunk with weights of their own, of `microbatches`: units of ZeRO-3 stay for all of them, or for one. */
static inline int64_t step_units_of(const StepPolicy *policy, int64_t microbatches)
{
    return policy->by_chunk ? 1 : microbatches;
}

/* How often a unit of ZeRO-3 is gathered for `microbatches` of a chunk. Before each forward, and where that gives the
 * weights back, before each backward again: the unit that the backward needs first (`last`) is still there. None where
 * a pipeline keeps them for the whole step: that is STEP_GATHERS_STEP or STEP_GATHERS_USE. */
static inline int64_t step_gathers_of(const StepPolicy *policy, bool last, int64_t microbatches)
{
    if (!policy->sharded_weights || policy->keeps_gathered)
        return 0;
    return step_units_of(policy, microbatches) * (policy->reshards_after_forward && !last ? 2 : 1);
}

/* How often a bucket is reduced for `microbatches` of a chunk. */
static inline int64_t step_reduces_of(const StepPolicy *policy, int64_t microbatches)
{
    return step_reduces_each(policy) ? microbatches : 1;
}

/* Buckets of STEP_FILL_BYTES or STEP_FILL_SEGMENTS as they fill. */
typedef struct StepFilling {
    double limit, next_limit, wire_bytes;
    bool segments;
} StepFilling;

StepFilling step_filling(const StepPolicy *policy);
/* The bucket at hand holds `parameters` behind a further segment. True: that segment completes it, and the next one opens. */
bool step_completes_bucket(StepFilling *filling, double parameters);

#endif
