/* jobs/run_internal.h - the cluster as jobs/run.c and jobs/claims.c share it; nobody else includes it. */
#ifndef ORR_JOBS_RUN_INTERNAL_H
#define ORR_JOBS_RUN_INTERNAL_H

#include "jobs/floor.h"
#include "jobs/jobs.h"

/* Whose turn it is. */
typedef enum { ORDER_STRICT, ORDER_ARRIVAL, ORDER_SHORTEST, ORDER_FAIR, ORDER_TICKETS } Order;

/* What each does of what its paper describes: docs/JOBS.md. */
typedef struct Policy {
    const char *name;
    Order order;
    bool packs, by_speed;
    double power;   /* sizes make the sum of (pace over the asked one)^power / power largest; 0: as asked */
    bool moves;     /* jobs that run may change the kind of GPU */
    bool places;    /* on GPUs of nodes (jobs/floor.h) */
    bool backfills; /* behind the first that waits, who does not delay it may start */
} Policy;

typedef struct Running {
    int job, pool, gpus;
    double left_s, pace; /* of work; work a second */
} Running;

typedef struct Cluster {
    const JobsTrace *trace;
    const Policy *policy;
    double patience_s, now_s;
    double round_s;          /* when those that run may next be stopped for others */
    double room[JOBS_KINDS]; /* GPUs free; of packed ones parts */
    GArray *running;         /* Running */
    GArray *queue;           /* int: jobs that have come, by arrival */
    JobsRun *runs;
    double *turns;            /* [jobs]: by which the queue is sorted */
    double *charged;          /* [users]: GPU-seconds that they had, by price; below 0: not yet there */
    double *of_user;          /* [users]: zero but while it is used */
    double price[JOBS_KINDS]; /* of a GPU-second */
    JobsFloor *floor;         /* NULL: nobody looks where in a pool */
    GArray *moments;          /* JobsMoment; NULL: nobody looks */
    GArray *claims;           /* JobsClaim: of those that wait, while it is settled who starts */
} Cluster;

static inline const Job *job_at(const Cluster *c, int index)
{
    return &g_array_index(c->trace->jobs, Job, (guint)index);
}

/* GPUs that a job which waits is to find free in a pool from a time on. Others may start as long as it does. */
typedef struct JobsClaim {
    int pool;
    double gpus, from_s, until_s;
    double spare; /* GPUs free then beside it and other claims */
} JobsClaim;

/* A job with a reservation whose time has not come. */
static inline bool jobs_is_early(const Cluster *c, int index)
{
    return job_at(c, index)->start_s > c->now_s;
}

/* GPUs that `gpus` of the job take from a pool. */
static inline double jobs_taken(const Cluster *c, const Job *job, int gpus)
{
    return c->policy->packs ? gpus * job->share : gpus;
}

/* Claims of the queue's reservations. Where jobs end when they say, others may use the GPUs until then. */
void jobs_claim_reserved(Cluster *c);
/* Of the first that waits: the earliest time at which it has room (EASY backfilling). Source: [Mualem2001] */
void jobs_claim_first(Cluster *c, const Job *job);
/* Whether a job leaves them as they are if it starts now; and that it does. */
bool jobs_claims_allow(const Cluster *c, const Job *job, int pool, double gpus, double seconds);
void jobs_claims_start(Cluster *c, int pool, double gpus, double seconds);
/* Seconds until the next reservation; INFINITY: there is none. */
double jobs_next_reserved_s(const Cluster *c);

#endif
