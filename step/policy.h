/* step/policy.h - what a recipe's data parallelism does in one Spec, as plain facts: which gradients share a bucket, and which
 * weights stay gathered. The step's plan and the search's bounds read these facts and fill buckets with one function.
 * Nothing here fails. */
#ifndef ORR_STEP_POLICY_H
#define ORR_STEP_POLICY_H

#include "spec/spec.h"

typedef enum StepFill {
    STEP_FILL_BYTES,         /* segments from a stage's last on, until a bucket has its bytes */
    STEP_FILL_SEGMENTS,      /* each segment is a bucket: units of ZeRO-3, layers of ZeRO-2 */
    STEP_FILL_TENSORS_FIRST, /* tensors from a stage's first on */
    STEP_FILL_TENSORS_LAST,  /* tensors from a stage's last on */
} StepFill;

typedef struct StepPolicy {
    StepFill fill;
    double bucket_bytes;        /* that fill a bucket; 0: one holds all */
    double first_bucket_bytes;  /* that fill the one whose gradients are ready first */
    double gradient_wire_bytes; /* of a parameter */
    bool root_unit;             /* what lies outside the layers is one unit */
    bool counts_tensors;        /* a bucket takes longer when it holds more tensors */
    bool keeps_gathered;        /* weights stay gathered for all micro-batches of a step */
    bool reshards_after_forward; /* else weights stay gathered up to their backward */
} StepPolicy;

/* `spec` is complete (no "auto"). */
StepPolicy step_policy(const Spec *spec);

/* Buckets of STEP_FILL_BYTES or STEP_FILL_SEGMENTS as they fill. */
typedef struct StepFilling {
    double limit, next_limit, wire_bytes;
    bool segments;
} StepFilling;

StepFilling step_filling(const StepPolicy *policy);
/* The bucket at hand holds `parameters` behind a further segment. True: that segment completes it, and the next one opens. */
bool step_completes_bucket(StepFilling *filling, double parameters);

#endif
