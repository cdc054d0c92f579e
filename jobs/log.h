/* jobs/log.h - what clusters publish of their jobs: tables with a header (Helios, Alibaba), and Philly's JSON. */
#ifndef ORR_JOBS_LOG_H
#define ORR_JOBS_LOG_H

#include "base/json.h"
#include "jobs/jobs.h"

/* Jobs that are not in the trace, by why. */
typedef struct JobsLeftOut {
    int without_gpus, without_time, too_large;
} JobsLeftOut;

/* Columns are found by name: GPUs as gpu_num, num_gpu or gpus; when a job came as submit_time, creation_time or arrive_s; how
 * long it ran as duration or seconds, or from start_time or scheduled_time to end_time or deletion_time; gpu_milli is the share
 * of one GPU. Times are seconds or "2020-04-01 00:08:06". One pool of `gpus`. Source: [Helios], [AlibabaGpu2023] */
bool jobs_log_read_table(const char *text, const char *where, int gpus, JobsTrace *ret_trace,
                         JobsLeftOut *ret_left_out, GError **error);

/* A list of jobs with "submitted_time" and "attempts", which run one after the other on the GPUs of the first. Source:
 * [Philly2019] */
bool jobs_log_read_attempts(const OrrJson *root, const char *where, int gpus, JobsTrace *ret_trace,
                            JobsLeftOut *ret_left_out, GError **error);

#endif
