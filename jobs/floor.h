/* jobs/floor.h - GPUs of nodes, and which of them a job gets: where the fragments of free GPUs grow least (FGD).
 *
 * A free part of a GPU is a fragment for a kind of job that cannot use it: all that a node has free where the job does not fit
 * there, else what lies on GPUs with less free than the job wants of each. A node's fragments are the mean over the trace's
 * kinds of jobs, by their number, the 16 most frequent. A job stays on one node; one that is larger than a node takes whole ones.
 * Source: [Weng2023] section 4   Ignores: CPUs, kinds of GPU that a job cannot use   Tested: unit/jobs/test_jobs.c
 */
#ifndef ORR_JOBS_FLOOR_H
#define ORR_JOBS_FLOOR_H

#include "jobs/jobs.h"

typedef struct JobsFloor JobsFloor;

JobsFloor *jobs_floor_new(const JobsTrace *trace);
void jobs_floor_free(JobsFloor *floor);

/* Gives the job its GPUs and returns their pool; -1: no pool has them. */
int jobs_floor_take(JobsFloor *floor, int job);
void jobs_floor_leave(JobsFloor *floor, int job);

/* Fragments of all nodes, in GPUs. */
double jobs_floor_fragments(const JobsFloor *floor);

#endif
