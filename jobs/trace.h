/* jobs/trace.h - traces of jobs: a user's JSON, or drawn from a seed. */
#ifndef ORR_JOBS_TRACE_H
#define ORR_JOBS_TRACE_H

#include "base/json.h"
#include "jobs/jobs.h"

/* Jobs by models whose paces are known: on kind k, 2^i GPUs do paces[k][i] tokens a second. */
typedef struct JobsPaces {
    const char *name;
    double paces[JOBS_KINDS][JOBS_DOUBLINGS];
} JobsPaces;

/* {"pools": [{"name", "gpus"}], "jobs": [{"arrive_s", "seconds", "gpus", "name", "speed": {pool: times}, "share",
 * "least_gpus", "most_gpus", "start_s"}]}. Without a gain of its own a job on fewer or more GPUs is as fast as they are many. */
bool jobs_trace_read(const OrrJson *root, const char *where, JobsTrace *ret_trace, GError **error);

/* `count` jobs that would keep `load` of the pools busy: exponential gaps, sizes of powers of 2 up to 64 (most of them
 * small), lengths lognormal around an hour. */
void jobs_trace_draw(const JobsPool *pools, int pool_count, const JobsPaces *models, int model_count,
                     int count, double load, uint64_t seed, JobsTrace *ret_trace);

/* A table in lines of at most `width`; 0: any. */
void jobs_write_text(const JobsTrace *trace, const JobsResult *results, int count, int width, GString *out);
void jobs_write_json(const JobsTrace *trace, const JobsResult *results, int count, GString *out);

#endif
