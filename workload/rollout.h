/* workload/rollout.h - seconds in which a role writes a step's answers. */
#ifndef ORR_WORKLOAD_ROLLOUT_H
#define ORR_WORKLOAD_ROLLOUT_H

#include "workload/sequences.h"

typedef struct RolloutAnswer {
    double seconds;
    double tail_s;        /* of it, with at most half as many answers as at most; NAN: not known */
    const char *why;      /* what binds, in words; NULL: not known */
    double weights_bytes; /* of a GPU; 0: not known */
    double cache_bytes;   /* of a GPU, keys and values when it holds most; 0: not known */
    double peak_bytes;    /* of a GPU, with work and the cache when it holds most; 0: not known */
} RolloutAnswer;

/* `role` is the scenario of who generates. `streams`: new prompts take the places of finished answers, so that no batch
 * ends; the seconds are then those in which as many answers are written. */
bool rollout_ask(const Spec *role, const SpecWorkload *workload, const Sequences *sequences, bool streams,
                 RolloutAnswer *ret_answer, GError **error);

#endif
