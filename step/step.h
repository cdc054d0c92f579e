/* step/step.h - from a Spec to the SimPlan of one training step: every duration and byte, rounded to
 * picoseconds once. The only file between the cost model and the engine.
 */
#ifndef ORR_STEP_STEP_H
#define ORR_STEP_STEP_H

#include "costmodel/params.h"
#include "program/plan.h"
#include "spec/spec.h"

/* False, with one sentence, for a field that a scenario may carry and that no plan obeys yet: refused, not ignored.
 * sim_step_plan() asks it; the search asks it once for all its points. */
bool sim_step_supports(const Spec *spec, GError **error);

/* `spec` is complete (no "auto"). Fails when the schedule refuses the shape or does not exist. */
bool sim_step_plan(const Spec *spec, OrrArena *arena, SimPlan *ret_plan, GError **error);

/* No work and no rank's compute is longer than the clock holds: to be asked before a plan is built. The message says what
 * takes the most and which values decide it. A plan that a search only looks at may be as long as it likes. */
bool sim_step_fits_clock(const Spec *spec, const SimPlan *plan, GError **error);

/* One collective of data parallelism: its duration, what it keeps its link busy when that is shared fairly, and what it
 * takes from kernels beside it. */
typedef struct SimBucketWork {
    int64_t ps, load_ps; /* load: duration x its share of the network */
    int network;         /* SIM_RESOURCE_SCALE_UP or _OUT; -1: none */
    int64_t sms_ps;      /* duration x the share of the SMs that it reserves */
} SimBucketWork;

/* The gradient reduction and the parameter gather (0 without ZeRO; of a ZeRO-3 unit the shorter one) of a bucket with
 * these weights of a rank, as the plan of `spec` would have them. */
void sim_step_bucket(const Spec *spec, const CostWeights *weights, SimBucketWork *ret_reduce,
                     SimBucketWork *ret_gather);

/* Duration of a message between pipeline ranks, inside a scale-up domain or across. */
int64_t sim_step_hop_ps(const Spec *spec, bool inside);

#endif
