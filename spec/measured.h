/* spec/measured.h - seconds of each pass, message and end of one step as a trace has them, instead of predicted ones.
 *
 *   { "schema": 1, "source": "...", "passes": [
 *     { "stage": 0, "replica": 0, "forward_s": [0.11, 0.12], "backward_s": [0.2, 0.2], "begin_s": 0.05 },
 *     { "stage": 1, "forward_s": 0.1 } ] }
 *
 * A number stands for all micro-batches, a row without "replica" for all replicas, and what no row says is predicted.
 */
#ifndef ORR_SPEC_MEASURED_H
#define ORR_SPEC_MEASURED_H

#include "base/arena.h"
#include "spec/spec.h"

typedef enum {
    SPEC_MEASURED_FORWARD,
    SPEC_MEASURED_BACKWARD, /* of inputs and weights together */
    SPEC_MEASURED_SEND_FORWARD,
    SPEC_MEASURED_SEND_BACKWARD,
    SPEC_MEASURED_PASSES, /* those above are of each micro-batch, those below of the step */
    SPEC_MEASURED_BEGIN = SPEC_MEASURED_PASSES,
    SPEC_MEASURED_END,
    SPEC_MEASURED_REDUCE,
    SPEC_MEASURED_EMBEDDING,
    SPEC_MEASURED_NORM,
    SPEC_MEASURED_OPTIMIZER,
    SPEC_MEASURED_COUNT
} SpecMeasuredKey;

/* Along which passes of a step differ. */
typedef enum {
    SPEC_ALONG_STAGES = 1,
    SPEC_ALONG_REPLICAS = 2,
    SPEC_ALONG_MICROBATCHES = 4,
    SPEC_ALONG_ALL = 7
} SpecMeasuredAlong;

typedef struct SpecMeasured {
    int stages, replicas, microbatches;
    double *seconds[SPEC_MEASURED_COUNT]; /* [stage][replica][micro-batch, or 1]; NAN: as predicted */
} SpecMeasured;

static inline double *spec_measured_at(const SpecMeasured *measured, SpecMeasuredKey key, int stage,
                                       int replica, int microbatch)
{
    const int each = key < SPEC_MEASURED_PASSES ? measured->microbatches : 1;
    return &measured->seconds[key][((int64_t)stage * measured->replicas + replica) * each + microbatch];
}

/* What execution.measured_passes of a complete scenario says, in `arena`. Fails, naming the row, where it has another shape
 * than the scenario. */
bool spec_measured_read(const Spec *spec, OrrArena *arena, SpecMeasured *ret_measured, GError **error);

/* The step that would be without differences but those `along` the given dimensions: elsewhere each pass takes the mean of
 * those that it is compared with, and each collective and message the median.
 * Source: Lin et al., Understanding Stragglers in Large Model Training Using What-if Analysis, OSDI 2025, section 3 */
void spec_measured_even(const SpecMeasured *measured, unsigned along, OrrArena *arena,
                        SpecMeasured *ret_even);

#endif
