/* jobs/jobs.h - many jobs on one cluster: who runs when, on which GPUs, at what pace.
 *
 * A job asks for GPUs of one kind all at once (a gang) and has work: seconds on that many GPUs of the first kind. On kind k
 * it is speed[k] times as fast; on n GPUs gain(n) times as fast as on those it asked for. Nothing here knows models: the
 * speeds come from the trace, or from simulated steps (cli/). Ignores: where in a pool the GPUs are (but for fgd, jobs/floor.h), what
 * starting costs.
 */
#ifndef ORR_JOBS_JOBS_H
#define ORR_JOBS_JOBS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/stats.h"

enum { JOBS_KINDS = 8, JOBS_DOUBLINGS = 16, JOBS_NODE_GPUS = 8 /* where a pool does not say */ };

typedef struct JobsPool {
    char *name;
    int gpus;
    int node_gpus; /* of them in a node, for who places jobs on nodes */
} JobsPool;

typedef struct Job {
    char *name;
    double start_s;          /* GPUs are reserved from then on; 0: it starts when it can */
    double arrive_s, work_s; /* work_s: on `gpus` GPUs of pool 0 */
    int gpus, least,
        most; /* asked for; between which an adaptive policy may go, in powers of 2 times `least` */
    double speed[JOBS_KINDS];
    double share; /* of a GPU that it uses: packed jobs share GPUs */
    int user;     /* 0 .. user_count - 1; jobs of unnamed users have one each */
    /* Pace on least x 2^i GPUs over the pace on `gpus`. */
    double gain[JOBS_DOUBLINGS];
} Job;

typedef struct JobsTrace {
    JobsPool pools[JOBS_KINDS];
    int pool_count, user_count;
    GArray *jobs; /* Job, by arrival */
} JobsTrace;

/* An empty list of jobs; and by arrival, those that come at once as they are. */
void jobs_trace_init_jobs(JobsTrace *trace);
void jobs_trace_sort(JobsTrace *trace);
void jobs_trace_clear(JobsTrace *trace);

typedef enum {
    JOBS_FIFO,      /* in order of arrival, nobody passes */
    JOBS_FIRST_FIT, /* in order of arrival, what fits starts, in the first pool that has room */
    JOBS_BACKFILL,  /* in order of arrival; behind the first that waits, who does not delay it may start */
    JOBS_PACKING,   /* first fit, several jobs on one GPU by their shares */
    JOBS_FASTEST,   /* first fit in the pool where the job is fastest, of those with room */
    JOBS_ADAPTIVE,  /* first fit at the least size; free GPUs go where they gain most */
    JOBS_GAVEL,     /* rounds: whose work is farthest behind an equal share goes first, where it is fastest */
    JOBS_LUCID,     /* packing, the shortest first: seconds times GPUs */
    JOBS_POLLUX,    /* as adaptive, but what makes the harmonic mean of speed-ups largest */
    JOBS_SIA, /* the same with a power of -1/2 and with the kinds of GPU, which jobs change while they run */
    JOBS_GANDIVA_FAIR, /* rounds: users have equal tickets, and trade kinds of GPU at a price */
    JOBS_FGD,          /* packing on GPUs of nodes, where fragments grow least */
    JOBS_POLICIES
} JobsPolicy;

const char *jobs_policy_name(JobsPolicy policy);

typedef struct JobsRun { /* one job's */
    double start_s, end_s;
    int pool, gpus;            /* at its end */
    double gpu_s;              /* GPUs that it held, of packed ones its share, over time */
    double done_s;             /* of its work: all of it */
    double queued_s, waited_s; /* when it last began to wait; without GPUs, all in all */
} JobsRun;

typedef struct JobsResult {
    JobsPolicy policy;
    double utilisation; /* GPU-seconds held over those there were until the end */
    double makespan_s;
    OrrSpread wait_s, completion_s;
    double fairness; /* Jain's index of completion over the time alone on the asked GPUs of the first pool */
    double work_gpu_s, done_gpu_s; /* asked for, and done: the same */
    double held_gpu_s;
} JobsResult;

/* `runs`: [jobs], or NULL. A job that is passed for longer than `patience_s` is passed no more. */
JobsResult jobs_run(const JobsTrace *trace, JobsPolicy policy, double patience_s, JobsRun *runs);

/* How things are from `at_s` on, until the next moment. */
typedef struct JobsMoment {
    double at_s, held_gpus; /* of packed jobs their shares */
    int waiting;            /* jobs that have come and do not run */
} JobsMoment;
/* The same; `moments` (JobsMoment) gets one an arrival or end. */
JobsResult jobs_watch(const JobsTrace *trace, JobsPolicy policy, double patience_s, GArray *moments);

#endif
