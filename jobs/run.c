/* jobs/run.c - the cluster from event to event: arrivals and ends. Between two every job goes on at its pace. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/jobs.h"

static const char *const names[JOBS_POLICIES] = {"fifo", "first-fit", "packing", "fastest", "adaptive"};

const char *jobs_policy_name(JobsPolicy policy)
{
    return names[policy];
}

typedef struct Running {
    int job, pool, gpus;
    double left_s, pace; /* of work; work a second */
} Running;

typedef struct Cluster {
    const JobsTrace *trace;
    JobsPolicy policy;
    double patience_s, now_s;
    double room[JOBS_KINDS]; /* GPUs free; of packed ones parts */
    GArray *running;         /* Running */
    GArray *queue;           /* int: jobs that have come, by arrival */
    JobsRun *runs;
    GArray *moments; /* JobsMoment; NULL: nobody looks */
} Cluster;

static const Job *job_at(const Cluster *c, int index)
{
    return &g_array_index(c->trace->jobs, Job, (guint)index);
}

/* GPUs that `gpus` of the job take from a pool. */
static double taken(const Cluster *c, const Job *job, int gpus)
{
    return c->policy == JOBS_PACKING ? gpus * job->share : gpus;
}

static double gain(const Job *job, int gpus)
{
    int step = 0;
    while (step + 1 < JOBS_DOUBLINGS && (job->least << (step + 1)) <= gpus)
        step++;
    return gpus == job->gpus ? 1 : job->gain[step];
}

/* The pool for a job of `gpus`, -1: none has room. */
static int choose_pool(const Cluster *c, const Job *job, int gpus)
{
    int best = -1;
    for (int p = 0; p < c->trace->pool_count; p++) {
        if (!(job->speed[p] > 0) || taken(c, job, gpus) > c->room[p] + 1e-9)
            continue;
        if (best < 0 ||
            ((c->policy == JOBS_FASTEST || c->policy == JOBS_ADAPTIVE) && job->speed[p] > job->speed[best]))
            best = p;
    }
    return best;
}

static void set_pace(const Cluster *c, Running *running)
{
    const Job *job = job_at(c, running->job);
    running->pace = job->speed[running->pool] * gain(job, running->gpus);
}

static bool start(Cluster *c, int index)
{
    const Job *job = job_at(c, index);
    const int gpus = c->policy == JOBS_ADAPTIVE ? job->least : job->gpus;
    const int pool = choose_pool(c, job, gpus);
    if (pool < 0)
        return false;
    Running running = {.job = index, .pool = pool, .gpus = gpus, .left_s = job->work_s};
    c->room[pool] -= taken(c, job, gpus);
    set_pace(c, &running);
    g_array_append_val(c->running, running);
    c->runs[index].start_s = c->now_s;
    c->runs[index].pool = pool;
    return true;
}

/* Jobs of the queue that fit, in order; behind one that has waited too long nobody passes. */
static void start_all(Cluster *c)
{
    for (guint i = 0; i < c->queue->len;) {
        const int index = g_array_index(c->queue, int, i);
        if (start(c, index)) {
            g_array_remove_index(c->queue, i);
            continue;
        }
        if (c->policy == JOBS_FIFO || c->now_s - job_at(c, index)->arrive_s > c->patience_s)
            return;
        i++;
    }
}

/* What doubling a job gains of its own asked pace for a GPU. */
static double worth(const Cluster *c, const Running *running)
{
    const Job *job = job_at(c, running->job);
    if (2 * running->gpus > job->most || running->gpus > c->room[running->pool])
        return 0;
    return (gain(job, 2 * running->gpus) - gain(job, running->gpus)) / running->gpus;
}

/* Back to the least sizes, then free GPUs to who gains most, while nobody waits. */
static void adapt(Cluster *c)
{
    for (guint i = 0; i < c->running->len; i++) {
        Running *running = &g_array_index(c->running, Running, i);
        c->room[running->pool] += running->gpus - job_at(c, running->job)->least;
        running->gpus = job_at(c, running->job)->least;
    }
    start_all(c);
    for (;;) {
        Running *best = NULL;
        double most = 0;
        for (guint i = 0; i < c->running->len; i++) {
            Running *running = &g_array_index(c->running, Running, i);
            const double own = worth(c, running);
            if (own > most) {
                most = own;
                best = running;
            }
        }
        if (best == NULL)
            break;
        c->room[best->pool] -= best->gpus;
        best->gpus *= 2;
    }
    for (guint i = 0; i < c->running->len; i++)
        set_pace(c, &g_array_index(c->running, Running, i));
}

static void pass(Cluster *c, double seconds)
{
    for (guint i = 0; i < c->running->len; i++) {
        Running *running = &g_array_index(c->running, Running, i);
        JobsRun *run = &c->runs[running->job];
        running->left_s -= seconds * running->pace;
        run->done_s += seconds * running->pace;
        run->gpu_s += seconds * taken(c, job_at(c, running->job), running->gpus);
    }
    c->now_s += seconds;
}

/* Ends all jobs whose time has come. */
static void end_all(Cluster *c)
{
    for (guint i = 0; i < c->running->len;) {
        const Running running = g_array_index(c->running, Running, i);
        const Job *job = job_at(c, running.job);
        if (running.left_s > 1e-9 * job->work_s) {
            i++;
            continue;
        }
        c->room[running.pool] += taken(c, job, running.gpus);
        c->runs[running.job].end_s = c->now_s;
        c->runs[running.job].gpus = running.gpus;
        g_array_remove_index(c->running, i); /* keeps the order: results do not depend on it, but ties do */
    }
}

static double next_end_s(const Cluster *c)
{
    double least_s = INFINITY;
    for (guint i = 0; i < c->running->len; i++) {
        const Running *running = &g_array_index(c->running, Running, i);
        least_s = fmin(least_s, running->left_s / running->pace);
    }
    return least_s;
}

static void note_moment(const Cluster *c)
{
    JobsMoment moment = {.at_s = c->now_s, .waiting = (int)c->queue->len};
    for (int p = 0; p < c->trace->pool_count; p++)
        moment.held_gpus += c->trace->pools[p].gpus - c->room[p];
    if (c->moments != NULL)
        g_array_append_val(c->moments, moment);
}

static void live(Cluster *c)
{
    const guint count = c->trace->jobs->len;
    for (guint come = 0; come < count || c->running->len > 0;) {
        const double end_s = fmax(0, next_end_s(c));
        const double arrival_s = come < count ? job_at(c, (int)come)->arrive_s - c->now_s : INFINITY;
        pass(c, fmin(end_s, arrival_s));
        end_all(c);
        for (; come < count && job_at(c, (int)come)->arrive_s <= c->now_s; come++) {
            const int index = (int)come;
            g_array_append_val(c->queue, index);
        }
        if (c->policy == JOBS_ADAPTIVE)
            adapt(c);
        else
            start_all(c);
        note_moment(c);
        g_assert(come < count || c->running->len > 0 || c->queue->len == 0); /* the trace's jobs fit a pool */
    }
}

/* --- over jobs --- */

static JobsResult summarise(const JobsTrace *trace, JobsPolicy policy, const JobsRun *runs)
{
    const guint count = trace->jobs->len;
    JobsResult result = {.policy = policy};
    g_autofree double *wait_s = g_new(double, count), *completion_s = g_new(double, count);
    double sum = 0, squares = 0, gpus = 0, first_s = INFINITY;
    for (int p = 0; p < trace->pool_count; p++)
        gpus += trace->pools[p].gpus;
    for (guint i = 0; i < count; i++) {
        const Job *job = &g_array_index(trace->jobs, Job, i);
        wait_s[i] = runs[i].start_s - job->arrive_s;
        completion_s[i] = runs[i].end_s - job->arrive_s;
        const double slowdown = completion_s[i] / job->work_s;
        sum += slowdown;
        squares += slowdown * slowdown;
        first_s = fmin(first_s, job->arrive_s);
        result.makespan_s = fmax(result.makespan_s, runs[i].end_s);
        result.work_gpu_s += job->work_s * job->gpus;
        result.done_gpu_s += runs[i].done_s * job->gpus;
        result.held_gpu_s += runs[i].gpu_s;
    }
    result.makespan_s -= first_s;
    result.fairness = sum * sum / (count * squares);
    result.utilisation = result.held_gpu_s / (gpus * result.makespan_s);
    result.wait_s = orr_stats_spread(wait_s, count);
    result.completion_s = orr_stats_spread(completion_s, count);
    return result;
}

static JobsResult run(const JobsTrace *trace, JobsPolicy policy, double patience_s, JobsRun *runs,
                      GArray *moments)
{
    g_autofree JobsRun *own = g_new0(JobsRun, trace->jobs->len);
    Cluster c = {.trace = trace,
                 .policy = policy,
                 .patience_s = patience_s,
                 .running = g_array_new(FALSE, FALSE, sizeof(Running)),
                 .queue = g_array_new(FALSE, FALSE, sizeof(int)),
                 .runs = own,
                 .moments = moments};
    g_assert(trace->jobs->len > 0);
    for (int p = 0; p < trace->pool_count; p++)
        c.room[p] = trace->pools[p].gpus;
    live(&c);
    g_array_free(c.running, TRUE);
    g_array_free(c.queue, TRUE);
    if (runs != NULL)
        memcpy(runs, own, sizeof *runs * trace->jobs->len);
    return summarise(trace, policy, own);
}

JobsResult jobs_run(const JobsTrace *trace, JobsPolicy policy, double patience_s, JobsRun *runs)
{
    return run(trace, policy, patience_s, runs, NULL);
}

JobsResult jobs_watch(const JobsTrace *trace, JobsPolicy policy, double patience_s, GArray *moments)
{
    return run(trace, policy, patience_s, NULL, moments);
}
