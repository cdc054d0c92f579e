/* api/jobs.h - a drawn trace of jobs whose paces are those of simulated steps. */
#ifndef ORR_API_JOBS_H
#define ORR_API_JOBS_H

#include "jobs/trace.h"

/* `count` jobs from `seed` on 256 A100s and 256 H100s: three sizes of GPT-2, each with the paces of simulated steps.
 * False if a step cannot be simulated; else jobs_trace_clear() `ret_trace`. */
bool api_jobs_draw(uint64_t seed, int count, JobsTrace *ret_trace, GError **error);

#endif
