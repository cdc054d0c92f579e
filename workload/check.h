/* workload/check.h - what an answered loop promises, worked out again from its phases. */
#ifndef ORR_WORKLOAD_CHECK_H
#define ORR_WORKLOAD_CHECK_H

#include "workload/workload.h"

/* A synchronous loop that begins with its generation takes its longest path; any other no more than that, and no less than its
 * busiest part. No phase is quicker than its FLOPs at the peak of its GPUs, no sync than its shard over the fastest link.
 * Phases begin when what they wait for is over, parts are busy or idle for a whole step, weights are no older than allowed.
 * What is learned is what was generated, and a sync carries all weights. Parts, rates, sequences and memory agree with each other. False with an error of kind internal. */
bool workload_check(const Workload *workload, GError **error);

#endif
