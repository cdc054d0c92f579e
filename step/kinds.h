/* step/kinds.h - one step of a mixed cluster: replicas of the model that are not all of one kind.
 *
 * The GPUs of a tensor and context group are of one type. A replica's kind says which type each of its pipeline ranks is
 * and how many micro-batches it takes; replicas of a kind do the same at any instant, so that one of each is simulated.
 */
#ifndef ORR_STEP_KINDS_H
#define ORR_STEP_KINDS_H

#include "program/plan.h"
#include "spec/spec.h"

typedef struct SimKind {
    SimPlan plan;
    int replicas;             /* of the model, of this kind */
    const int *group_of_rank; /* [pipeline ranks] of cluster.groups */
} SimKind;

typedef struct SimKinds {
    int count, ranks; /* ranks: of the pipeline */
    const SimKind *kinds;
    const int *kind_of_replica; /* [data] */
} SimKinds;

/* Which of cluster.groups the GPUs of pipeline rank p of replica d are of: [p x data + d]. Fails where a tensor and context
 * group would lie in two of them. */
bool sim_kinds_places(const Spec *spec, int *ret_groups, GError **error);

/* What each kind does, from plans of clusters that were all of one group. A message takes the longer of what its two ends
 * would. `apart`: every replica is a kind of its own. Fails where a tensor and context group would lie in two groups of the
 * cluster, or where replicas that take different numbers of micro-batches have to meet in each of them. */
bool sim_kinds_plan(const Spec *spec, bool apart, OrrArena *arena, SimKinds *ret_kinds, GError **error);

/* One program of all kinds; rank = pipeline rank x kinds + kind. With one kind: what sim_program_build() makes of its
 * plan. */
bool sim_kinds_program(const SimKinds *kinds, bool unfold, OrrArena *arena, SimProgram *ret_program,
                       GError **error);

#endif
