/* workload/rollout.c - see rollout.h. */
#include "workload/rollout.h"

#include <math.h>

#include "base/error.h"

bool rollout_ask(const Spec *role, const SpecWorkload *workload, const Sequences *sequences, bool streams,
                 RolloutAnswer *ret_answer, GError **error)
{
    (void)role;
    (void)sequences;
    (void)streams;
    if (workload->generation.seconds < 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "workload.generation.seconds: missing; give the time of a batch of answers");
    *ret_answer = (RolloutAnswer){.seconds = workload->generation.seconds, .tail_s = NAN};
    return true;
}
