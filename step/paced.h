/* step/paced.h - one step in which ranks, or the ways out of them, are slower than the plan says.
 *
 * The ranks of a tensor and context group take every pass together, so that the slowest of them is the pace of all, and
 * replicas of the model (data indices) with the same paces do the same at any instant: one of each kind is simulated, and
 * of its groups one rank. Where ranks share a resource (a PCIe root, host memory) every rank is simulated.
 */
#ifndef ORR_STEP_PACED_H
#define ORR_STEP_PACED_H

#include "step/kinds.h"

/* What a rank is left with of its speed in computing (1/SIM_FULL_RATE, at least 1, at most all) and of the capacity of its
 * scale-up port and NIC (1/SIM_WHOLE_RESOURCE, at least 1). */
typedef struct SimPace {
    int32_t speed, scale_up, scale_out;
} SimPace;

#define SIM_FULL_PACE ((SimPace){SIM_FULL_RATE, SIM_WHOLE_RESOURCE, SIM_WHOLE_RESOURCE})

typedef struct SimPacedStep {
    int64_t step_ps;
    int64_t ranks; /* simulated */
    int kinds;     /* of replicas */
} SimPacedStep;

/* What the program of such a step gets before it runs, as links that its ranks share. */
typedef struct SimFurnish {
    bool (*add)(void *user, SimProgram *program, OrrArena *arena, GError **error);
    void *user;
} SimFurnish;

/* Whether a plan's replicas fold by their paces. */
bool sim_paces_fold(const SimPlan *plan);

/* The pace of pipeline rank p of data index d, [p x data + d]: the slowest of its tensor and context ranks.
 * `paces` are of all ranks, as of an unfolded run. */
void sim_paces_of_columns(const SimPlan *plan, const SimPace *paces, SimPace *ret_columns);

/* A step of the data indices with kept[d] (NULL: all), their columns as above. `kinds`: what each replica of a mixed cluster
 * does instead of the plan; without kinds (NULL, or a count of 0) all do the
 * plan. `furnish` (NULL: nothing) is asked once. */
bool sim_run_columns(const SimPlan *plan, const SimKinds *kinds, const SimPace *columns, const bool *kept,
                     const SimFurnish *furnish, OrrArena *arena, SimPacedStep *ret_step, GError **error);
/* A step of every rank. */
bool sim_run_paces(const SimPlan *plan, const SimPace *paces, const SimFurnish *furnish, OrrArena *arena,
                   SimPacedStep *ret_step, GError **error);

#endif
