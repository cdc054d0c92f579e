/* program/shares.h - what neighbours share as each one's own part of it, so that plans of different kinds of nodes go together.
 *
 * Replicas of one pipeline rank that share a resource do the same at any instant, so that each has an equal part.
 */
#ifndef ORR_PROGRAM_SHARES_H
#define ORR_PROGRAM_SHARES_H

#include "program/plan.h"

/* Most ranks that share an instance of anything in the plan. */
int sim_plan_sharers(const SimPlan *plan);

/* Rows and tiers that neighbours share become each rank's own. They have to be replicas of one pipeline rank
 * (sim_plan_folds()). */
void sim_plan_own_shares(SimPlan *plan, OrrArena *arena);

/* Works hold rows behind the standard ones in units of `base`'s capacities, whose tables `plan` then has; its tiers are the
 * larger ones of the two. Both plans have shares of their own, and the same rows. */
void sim_plan_rescale(SimPlan *plan, SimPlan *base);

#endif
