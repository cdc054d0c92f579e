/* jobs/claims.c - GPUs that are kept for jobs that wait: reservations, and the first of the queue of a policy that backfills. */
#include "jobs/run_internal.h"

#include <math.h>

/* Free at that time, by what runs now. */
static double free_at(const Cluster *c, int pool, double at_s)
{
    double gpus = c->room[pool];
    for (guint i = 0; i < c->running->len; i++) {
        const Running *running = &g_array_index(c->running, Running, i);
        if (running->pool == pool && c->now_s + running->left_s / running->pace <= at_s * (1 + 1e-12))
            gpus += jobs_taken(c, job_at(c, running->job), running->gpus);
    }
    return gpus;
}

/* A reservation is in the first pool that can hold it. */
static int pool_of(const Cluster *c, const Job *job)
{
    int pool = 0;
    while (!(job->speed[pool] > 0) || job->gpus > c->trace->pools[pool].gpus)
        pool++;
    return pool;
}

/* Jobs of a policy that changes sizes or takes turns end nobody knows when: its reservations hold their GPUs at once. */
static bool ends_are_known(const Policy *policy)
{
    return !(policy->power > 0 || policy->power < 0) && policy->order != ORDER_FAIR &&
           policy->order != ORDER_TICKETS;
}

void jobs_claim_reserved(Cluster *c)
{
    g_array_set_size(c->claims, 0);
    for (guint i = 0; i < c->queue->len; i++) {
        const Job *job = job_at(c, g_array_index(c->queue, int, i));
        if (!(job->start_s > 0))
            continue;
        const int pool = pool_of(c, job);
        const double from_s = ends_are_known(c->policy) ? fmax(job->start_s, c->now_s) : c->now_s;
        const JobsClaim claim = {.pool = pool,
                                 .gpus = jobs_taken(c, job, job->gpus),
                                 .from_s = from_s,
                                 .until_s = fmax(job->start_s, c->now_s) + job->work_s / job->speed[pool]};
        g_array_append_val(c->claims, claim);
    }
    for (guint i = 0; i < c->claims->len; i++) {
        JobsClaim *claim = &g_array_index(c->claims, JobsClaim, i);
        claim->spare = free_at(c, claim->pool, claim->from_s);
        for (guint k = 0; k < c->claims->len; k++) {
            const JobsClaim *other = &g_array_index(c->claims, JobsClaim, k);
            if (other->pool == claim->pool && other->from_s <= claim->from_s &&
                other->until_s > claim->from_s)
                claim->spare -= other->gpus; /* its own too */
        }
    }
}

void jobs_claim_first(Cluster *c, const Job *job)
{
    JobsClaim first = {.from_s = INFINITY, .until_s = INFINITY, .gpus = jobs_taken(c, job, job->gpus)};
    for (guint i = 0; i < c->running->len; i++) {
        const Running *running = &g_array_index(c->running, Running, i);
        const double end_s = c->now_s + running->left_s / running->pace;
        if (!(job->speed[running->pool] > 0) || end_s >= first.from_s)
            continue;
        const double spare = free_at(c, running->pool, end_s) - first.gpus;
        if (spare < -1e-9)
            continue;
        first.pool = running->pool;
        first.from_s = end_s;
        first.spare = spare;
    }
    if (isfinite(first.from_s))
        g_array_append_val(c->claims, first);
}

bool jobs_claims_allow(const Cluster *c, const Job *job, int pool, double gpus, double seconds)
{
    for (guint i = 0; i < c->claims->len; i++) {
        const JobsClaim *claim = &g_array_index(c->claims, JobsClaim, i);
        const bool meets = claim->pool == pool && claim->until_s > c->now_s &&
                           (!ends_are_known(c->policy) || c->now_s + seconds > claim->from_s * (1 + 1e-12));
        if (meets && claim->spare < gpus - 1e-9 && !(job->start_s > 0))
            return false;
    }
    return true;
}

void jobs_claims_start(Cluster *c, int pool, double gpus, double seconds)
{
    for (guint i = 0; i < c->claims->len; i++) {
        JobsClaim *claim = &g_array_index(c->claims, JobsClaim, i);
        if (claim->pool == pool && c->now_s + seconds > claim->from_s * (1 + 1e-12))
            claim->spare -= gpus;
    }
}

double jobs_next_reserved_s(const Cluster *c)
{
    double least_s = INFINITY;
    for (guint i = 0; i < c->queue->len; i++)
        if (jobs_is_early(c, g_array_index(c->queue, int, i)))
            least_s = fmin(least_s, job_at(c, g_array_index(c->queue, int, i))->start_s - c->now_s);
    return least_s;
}
