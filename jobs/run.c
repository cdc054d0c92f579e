/* jobs/run.c - the cluster from event to event: arrivals and ends. Between two every job goes on at its pace. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "jobs/run_internal.h"

#define ROUND_S       360.0 /* Source: [Gavel2020]: rounds of six minutes */
#define ROUND_OF_NEXT 0.01  /* of the time to the next end, where that is longer: the events stay few */

static const Policy policies[JOBS_POLICIES] = {
    [JOBS_FIFO] = {"fifo", .order = ORDER_STRICT},
    [JOBS_FIRST_FIT] = {"first-fit", .order = ORDER_ARRIVAL},
    [JOBS_BACKFILL] = {"backfill", .order = ORDER_ARRIVAL, .backfills = true},
    [JOBS_PACKING] = {"packing", .order = ORDER_ARRIVAL, .packs = true},
    [JOBS_FASTEST] = {"fastest", .order = ORDER_ARRIVAL, .by_speed = true},
    [JOBS_ADAPTIVE] = {"adaptive", .order = ORDER_ARRIVAL, .by_speed = true, .power = 1},
    [JOBS_GAVEL] = {"gavel", .order = ORDER_FAIR, .by_speed = true},
    [JOBS_LUCID] = {"lucid", .order = ORDER_SHORTEST, .packs = true},
    [JOBS_POLLUX] = {"pollux", .order = ORDER_ARRIVAL, .power = -1},
    [JOBS_SIA] = {"sia", .order = ORDER_ARRIVAL, .by_speed = true, .power = -0.5, .moves = true},
    [JOBS_GANDIVA_FAIR] = {"gandiva-fair", .order = ORDER_TICKETS},
    [JOBS_FGD] = {"fgd", .order = ORDER_ARRIVAL, .packs = true, .places = true},
};

const char *jobs_policy_name(JobsPolicy policy)
{
    return policies[policy].name;
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
        if (!(job->speed[p] > 0) || jobs_taken(c, job, gpus) > c->room[p] + 1e-9 ||
            !jobs_claims_allow(c, job, p, jobs_taken(c, job, gpus), job->work_s / job->speed[p]))
            continue;
        if (best < 0 || (c->policy->by_speed && job->speed[p] > job->speed[best]) ||
            (c->policy->order == ORDER_TICKETS &&
             job->speed[p] / c->price[p] > job->speed[best] / c->price[best]))
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
    const int gpus = c->policy->power != 0 ? job->least : job->gpus;
    JobsRun *own = &c->runs[index];
    const int pool = c->floor != NULL ? jobs_floor_take(c->floor, index) : choose_pool(c, job, gpus);
    if (pool >= 0 && c->floor != NULL &&
        !jobs_claims_allow(c, job, pool, jobs_taken(c, job, gpus), job->work_s / job->speed[pool])) {
        jobs_floor_leave(c->floor, index);
        return false;
    }
    if (pool < 0)
        return false;
    Running running = {.job = index, .pool = pool, .gpus = gpus, .left_s = job->work_s - own->done_s};
    c->room[pool] -= jobs_taken(c, job, gpus);
    set_pace(c, &running);
    jobs_claims_start(c, pool, jobs_taken(c, job, gpus), running.left_s / running.pace);
    g_array_append_val(c->running, running);
    if (!(own->gpu_s > 0))
        own->start_s = c->now_s;
    own->waited_s += c->now_s - own->queued_s;
    own->pool = pool;
    return true;
}

/* Job `i` of those that wait, then of those that run. */
static const Job *active_at(const Cluster *c, guint i)
{
    return i < c->queue->len ? job_at(c, g_array_index(c->queue, int, i))
                             : job_at(c, g_array_index(c->running, Running, i - c->queue->len).job);
}

/* Over the slowest kind that runs the job. */
static double speed_up(const Cluster *c, const Job *job, int pool)
{
    double slowest = INFINITY;
    for (int p = 0; p < c->trace->pool_count; p++)
        slowest = job->speed[p] > 0 ? fmin(slowest, job->speed[p]) : slowest;
    return job->speed[pool] / slowest;
}

/* Kinds of GPU are traded for the slowest at the second highest of the users' speed-ups: who gains more buys, and others are
 * better off with what they are paid. Source: [Chaudhary2020] */
static void set_prices(Cluster *c)
{
    const guint active = c->queue->len + c->running->len;
    for (int p = 0; p < c->trace->pool_count; p++) {
        double first = 1, second = 1; /* who gains nothing pays no more than for the slowest */
        for (guint i = 0; i < active; i++) {
            double *own = &c->of_user[active_at(c, i)->user];
            *own = fmax(*own, speed_up(c, active_at(c, i), p));
        }
        for (guint i = 0; i < active; i++) {
            double *own = &c->of_user[active_at(c, i)->user];
            second = fmax(second, fmin(first, *own));
            first = fmax(first, *own);
            *own = 0;
        }
        c->price[p] = second;
    }
}

/* Stride scheduling: the user who was charged least comes first, with one job after the other as if each had run a round. Who
 * comes anew begins with the least of those who are there. Source: [Chaudhary2020] */
static void set_tickets(Cluster *c)
{
    const guint active = c->queue->len + c->running->len;
    double least = INFINITY;
    for (guint i = 0; i < active; i++)
        if (c->charged[active_at(c, i)->user] >= 0)
            least = fmin(least, c->charged[active_at(c, i)->user]);
    for (guint i = 0; i < c->running->len; i++) {
        const Running *running = &g_array_index(c->running, Running, i);
        c->of_user[job_at(c, running->job)->user] += ROUND_S * running->gpus * c->price[running->pool];
    }
    for (guint i = 0; i < c->queue->len; i++) {
        const int index = g_array_index(c->queue, int, i), user = job_at(c, index)->user;
        if (c->charged[user] < 0)
            c->charged[user] = isinf(least) ? 0 : least;
        c->turns[index] = c->charged[user] + c->of_user[user];
        c->of_user[user] += ROUND_S * job_at(c, index)->gpus;
    }
    for (guint i = 0; i < active; i++)
        c->of_user[active_at(c, i)->user] = 0;
}

/* What comes first has the least of it. */
static double turn(const Cluster *c, int index)
{
    const Job *job = job_at(c, index);
    const double age_s = c->now_s - job->arrive_s;
    double gpus = 0, pace = 0;
    if (c->policy->order == ORDER_SHORTEST)
        return job->work_s * job->gpus;
    for (int p = 0; p < c->trace->pool_count; p++) {
        gpus += c->trace->pools[p].gpus;
        pace += c->trace->pools[p].gpus * job->speed[p];
    }
    return c->runs[index].done_s / (fmax(age_s, ROUND_S) * pace / gpus);
}

static int by_turn(gconstpointer a, gconstpointer b, gpointer cluster)
{
    const int x = *(const int *)a, y = *(const int *)b;
    const double *turns = ((const Cluster *)cluster)->turns, first = turns[x], second = turns[y];
    return first != second ? (first > second) - (first < second) : (x > y) - (x < y);
}

static int by_index(gconstpointer a, gconstpointer b, gpointer unused)
{
    (void)unused;
    return *(const int *)a - *(const int *)b;
}

/* Reservations whose time has come, before all others. */
static void start_reserved(Cluster *c)
{
    g_array_set_size(c->claims, 0);
    for (guint i = 0; i < c->queue->len;) {
        const int index = g_array_index(c->queue, int, i);
        if (job_at(c, index)->start_s > 0 && !jobs_is_early(c, index) && start(c, index))
            g_array_remove_index(c->queue, i);
        else
            i++;
    }
    jobs_claim_reserved(c);
}

/* Jobs of the queue that fit, in order; behind one that has waited too long nobody passes. */
static void start_all(Cluster *c)
{
    const Order order = c->policy->order;
    bool first = c->policy->backfills;
    start_reserved(c);
    const bool by_arrival = order == ORDER_STRICT || order == ORDER_ARRIVAL;
    if (order == ORDER_TICKETS) {
        set_prices(c);
        g_array_sort_with_data(c->queue, by_index, c);
        set_tickets(c);
    }
    for (guint i = 0; order != ORDER_TICKETS && !by_arrival && i < c->queue->len; i++)
        c->turns[g_array_index(c->queue, int, i)] = turn(c, g_array_index(c->queue, int, i));
    if (!by_arrival)
        g_array_sort_with_data(c->queue, by_turn, c);
    for (guint i = 0; i < c->queue->len;) {
        const int index = g_array_index(c->queue, int, i);
        if (job_at(c, index)->start_s > 0) {
            i++;
            continue;
        }
        if (start(c, index)) {
            g_array_remove_index(c->queue, i);
            continue;
        }
        if (c->policy->backfills) {
            if (first)
                jobs_claim_first(c, job_at(c, index));
            first = false;
        } else if (order == ORDER_STRICT ||
                   (by_arrival && c->now_s - job_at(c, index)->arrive_s > c->patience_s))
            return;
        i++;
    }
}

/* Everybody that runs waits again. */
static void stop_all(Cluster *c)
{
    for (guint i = 0; i < c->running->len; i++) {
        const Running *running = &g_array_index(c->running, Running, i);
        c->room[running->pool] += jobs_taken(c, job_at(c, running->job), running->gpus);
        c->runs[running->job].queued_s = c->now_s;
        g_array_append_val(c->queue, running->job);
    }
    g_array_set_size(c->running, 0);
}

/* How much faster its fastest kind is than its slowest. */
static int by_spread(gconstpointer a, gconstpointer b, gpointer cluster)
{
    const Cluster *c = cluster;
    double spread[2];
    for (int i = 0; i < 2; i++) {
        const Job *job = job_at(c, ((const Running *)(i == 0 ? a : b))->job);
        double least = INFINITY, most = 0;
        for (int p = 0; p < c->trace->pool_count; p++) {
            least = fmin(least, job->speed[p]);
            most = fmax(most, job->speed[p]);
        }
        spread[i] = least > 0 ? most / least : INFINITY;
    }
    return (spread[0] < spread[1]) - (spread[0] > spread[1]);
}

/* Who gains most from a kind chooses first; where not all find room that way, all stay. All have their least. */
static void move_all(Cluster *c)
{
    double room[JOBS_KINDS];
    g_autofree int *pools = g_new(int, c->running->len + 1);
    memcpy(room, c->room, sizeof room);
    for (guint i = 0; i < c->running->len; i++) {
        const Running *running = &g_array_index(c->running, Running, i);
        c->room[running->pool] += running->gpus;
    }
    g_array_sort_with_data(c->running, by_spread, c);
    bool all = true;
    for (guint i = 0; i < c->running->len; i++) {
        const Job *job = job_at(c, g_array_index(c->running, Running, i).job);
        pools[i] = all ? choose_pool(c, job, job->least) : -1;
        all = pools[i] >= 0;
        if (all)
            c->room[pools[i]] -= job->least;
    }
    if (!all)
        memcpy(c->room, room, sizeof room);
    for (guint i = 0; all && i < c->running->len; i++) {
        Running *running = &g_array_index(c->running, Running, i);
        running->pool = pools[i];
        c->runs[running->job].pool = pools[i];
    }
    jobs_claim_reserved(c);
}

/* What doubling a job gains of the policy's sum for a GPU. */
static double worth(const Cluster *c, const Running *running)
{
    const Job *job = job_at(c, running->job);
    const double power = c->policy->power, speed = c->policy->moves ? job->speed[running->pool] : 1;
    if (2 * running->gpus > job->most || running->gpus > c->room[running->pool] ||
        !jobs_claims_allow(c, job, running->pool, running->gpus, INFINITY))
        return 0;
    return (pow(speed * gain(job, 2 * running->gpus), power) - pow(speed * gain(job, running->gpus), power)) /
           power / running->gpus;
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
    if (c->policy->moves)
        move_all(c);
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
        jobs_claims_start(c, best->pool, best->gpus, INFINITY);
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
        run->gpu_s += seconds * jobs_taken(c, job_at(c, running->job), running->gpus);
        c->charged[job_at(c, running->job)->user] += seconds * running->gpus * c->price[running->pool];
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
        c->room[running.pool] += jobs_taken(c, job, running.gpus);
        if (c->floor != NULL)
            jobs_floor_leave(c->floor, running.job);
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
    for (guint come = 0; come < count || c->running->len + c->queue->len > 0;) {
        const double end_s = fmax(0, next_end_s(c));
        const double arrival_s = come < count ? job_at(c, (int)come)->arrive_s - c->now_s : INFINITY;
        const bool rounds = c->policy->order == ORDER_FAIR || c->policy->order == ORDER_TICKETS;
        const double stop_s =
            rounds && c->queue->len > 0 ? fmax(c->round_s - c->now_s, ROUND_OF_NEXT * end_s) : INFINITY;
        pass(c, fmin(fmin(end_s, arrival_s), fmin(stop_s, jobs_next_reserved_s(c))));
        end_all(c);
        for (; come < count && job_at(c, (int)come)->arrive_s <= c->now_s; come++) {
            const int index = (int)come;
            c->runs[index].queued_s = fmax(job_at(c, index)->arrive_s, job_at(c, index)->start_s);
            g_array_append_val(c->queue, index);
        }
        if (rounds && c->queue->len > 0 && c->now_s >= c->round_s) {
            stop_all(c);
            c->round_s = c->now_s + ROUND_S;
        }
        if (c->policy->power != 0)
            adapt(c);
        else
            start_all(c);
        note_moment(c);
        g_assert(come < count || c->running->len > 0 || c->queue->len == 0 ||
                 isfinite(jobs_next_reserved_s(c))); /* the trace's jobs fit a pool */
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
        wait_s[i] = runs[i].waited_s;
        completion_s[i] = runs[i].end_s - fmax(job->arrive_s, job->start_s);
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
    g_autofree double *turns = g_new0(double, trace->jobs->len);
    g_autofree double *charged = g_new(double, trace->user_count);
    g_autofree double *of_user = g_new0(double, trace->user_count);
    Cluster c = {.trace = trace,
                 .policy = &policies[policy],
                 .patience_s = patience_s,
                 .running = g_array_new(FALSE, FALSE, sizeof(Running)),
                 .queue = g_array_new(FALSE, FALSE, sizeof(int)),
                 .runs = own,
                 .turns = turns,
                 .charged = charged,
                 .of_user = of_user,
                 .floor = policies[policy].places ? jobs_floor_new(trace) : NULL,
                 .moments = moments,
                 .claims = g_array_new(FALSE, FALSE, sizeof(JobsClaim))};
    g_assert(trace->jobs->len > 0);
    for (int p = 0; p < trace->pool_count; p++)
        c.room[p] = trace->pools[p].gpus;
    for (int u = 0; u < trace->user_count; u++)
        charged[u] = -1;
    live(&c);
    jobs_floor_free(c.floor);
    g_array_free(c.running, TRUE);
    g_array_free(c.queue, TRUE);
    g_array_free(c.claims, TRUE);
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
