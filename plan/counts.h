/* plan/counts.h - the GPU counts that a plan looks at, and the scenario on each of them. */
#ifndef ORR_PLAN_COUNTS_H
#define ORR_PLAN_COUNTS_H

#include "plan/plan.h"

/* Whether tensor, context and pipeline are given, not searched. */
bool plan_degrees_known(const Spec *spec);

/* int, rising: those asked for; else every count whose replicas can share the global batch evenly (with a range of
 * batches: about an eighth apart); with degrees left to a search, nodes by doubling. */
GArray *plan_counts(const Spec *asked, const PlanOptions *options);

/* A count strictly between, near the geometric middle; 0: there is none. */
int plan_count_between(const Spec *asked, const PlanOptions *options, int low, int high);

/* Why the scenario cannot run on so many; NULL: it can. g_free. */
char *plan_refuse_count(const Spec *asked, int gpus, const PlanOptions *options);

/* The scenario on `gpus`, with the batch nearest to its own that they can share. */
void plan_spread(const Spec *asked, int gpus, const PlanOptions *options, Spec *ret_spec);

#endif
