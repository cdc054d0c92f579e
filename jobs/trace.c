/* jobs/trace.c - see trace.h. */
#include "jobs/trace.h"

#include <math.h>
#include <string.h>

#include "base/draws.h"
#include "base/error.h"

#define LEAST_SPEED 1e-6

enum { MOST_JOBS = 1000000, MOST_GPUS = 10000000, LARGEST_DRAWN = 64 };

static void clear_job(void *data)
{
    g_free(((Job *)data)->name);
}

void jobs_trace_init_jobs(JobsTrace *trace)
{
    trace->jobs = g_array_new(FALSE, TRUE, sizeof(Job));
    g_array_set_clear_func(trace->jobs, clear_job);
}

static void trace_init(JobsTrace *trace)
{
    *trace = (JobsTrace){0};
    jobs_trace_init_jobs(trace);
}

void jobs_trace_clear(JobsTrace *trace)
{
    for (int p = 0; p < trace->pool_count; p++)
        g_free(trace->pools[p].name);
    if (trace->jobs != NULL)
        g_array_free(trace->jobs, TRUE);
    *trace = (JobsTrace){0};
}

/* --- a user's --- */

typedef struct Reader {
    const char *where;
    GError **error;
} Reader;

static bool refuse(const Reader *r, const char *format, ...) G_GNUC_PRINTF(2, 3);

static bool refuse(const Reader *r, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return orr_fail(r->error, ORR_ERROR_INPUT, "%s: %s", r->where, message);
}

/* A number of the object, `otherwise` where absent (NAN: it must be there). */
static bool number(const Reader *r, const OrrJson *object, const char *key, const char *path, double low,
                   double high, double otherwise, double *ret_value)
{
    const OrrJson *node = orr_json_member(object, key);
    *ret_value = otherwise;
    if (node == NULL && !isnan(otherwise))
        return true;
    if (node == NULL)
        return refuse(r, "%s.%s: missing; give a number from %g to %g", path, key, low, high);
    const double value = orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : NAN;
    if (!(value >= low && value <= high)) {
        g_autofree char *shown = orr_json_show(node);
        return refuse(r, "%s.%s: %s is not a number from %g to %g; give one", path, key, shown, low, high);
    }
    *ret_value = value;
    return true;
}

static bool whole(const Reader *r, const OrrJson *object, const char *key, const char *path, int otherwise,
                  int *ret_value)
{
    double value = 0;
    if (!number(r, object, key, path, 1, MOST_GPUS, otherwise > 0 ? (double)otherwise : (double)NAN, &value))
        return false;
    *ret_value = (int)value;
    return *ret_value >= value || refuse(r, "%s.%s: %g is not a whole number", path, key, value);
}

static bool known_keys(const Reader *r, const OrrJson *object, const char *path, const char *const *keys)
{
    if (orr_json_type(object) != ORR_JSON_OBJECT)
        return refuse(r, "%s: is not an object; write one in braces", path);
    for (const OrrJson *member = orr_json_first(object); member != NULL; member = orr_json_next(member)) {
        bool known = false;
        for (int i = 0; keys[i] != NULL; i++)
            known |= g_str_equal(orr_json_key(member), keys[i]);
        if (!known) {
            g_autofree char *all = g_strjoinv(", ", (char **)keys);
            return refuse(r, "%s: unknown key \"%.80s\"; it takes %s", path, orr_json_key(member), all);
        }
    }
    return true;
}

static char *text_of(const OrrJson *object, const char *key, const char *otherwise)
{
    const OrrJson *node = orr_json_member(object, key);
    return g_strdup(node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : otherwise);
}

static bool read_pool(const Reader *r, const OrrJson *node, JobsTrace *trace)
{
    static const char *const keys[] = {"name", "gpus", "node_gpus", NULL};
    g_autofree char *path = g_strdup_printf("pools[%d]", trace->pool_count);
    int gpus = 0, node_gpus = 0;
    if (trace->pool_count == JOBS_KINDS)
        return refuse(r, "pools: more than %d kinds of GPU; leave some out", JOBS_KINDS);
    if (!known_keys(r, node, path, keys) || !whole(r, node, "gpus", path, 0, &gpus) ||
        !whole(r, node, "node_gpus", path, JOBS_NODE_GPUS, &node_gpus))
        return false;
    g_autofree char *name = text_of(node, "name", path);
    for (int p = 0; p < trace->pool_count; p++)
        if (g_str_equal(trace->pools[p].name, name))
            return refuse(r, "%s.name: \"%.80s\" is pools[%d] as well; give each its own", path, name, p);
    trace->pools[trace->pool_count++] = (JobsPool){g_steal_pointer(&name), gpus, node_gpus};
    return true;
}

static bool read_speeds(const Reader *r, const OrrJson *node, const char *path, const JobsTrace *trace,
                        Job *job)
{
    for (int p = 0; p < trace->pool_count; p++)
        job->speed[p] = 1;
    if (node == NULL)
        return true;
    if (orr_json_type(node) != ORR_JSON_OBJECT)
        return refuse(r, "%s.speed: is not an object; write {\"%s\": 1}", path, trace->pools[0].name);
    for (const OrrJson *member = orr_json_first(node); member != NULL; member = orr_json_next(member)) {
        int pool = 0;
        while (pool < trace->pool_count && !g_str_equal(trace->pools[pool].name, orr_json_key(member)))
            pool++;
        if (pool == trace->pool_count)
            return refuse(r, "%s.speed: no pool is called \"%.80s\"", path, orr_json_key(member));
        if (!number(r, node, trace->pools[pool].name, path, 0, 1e6, NAN, &job->speed[pool]))
            return false;
        if (job->speed[pool] > 0 && job->speed[pool] < LEAST_SPEED)
            return refuse(r, "%s.speed.%.80s: %g would never end; give at least %g, or 0 where it cannot run",
                          path, trace->pools[pool].name, job->speed[pool], LEAST_SPEED);
    }
    return true;
}

static bool fits_somewhere(const JobsTrace *trace, const Job *job)
{
    for (int p = 0; p < trace->pool_count; p++)
        if (job->speed[p] > 0 && job->gpus <= trace->pools[p].gpus)
            return true;
    return false;
}

/* Jobs without a user have one each. */
static int user_of(const OrrJson *node, GHashTable *users, JobsTrace *trace)
{
    const OrrJson *named = orr_json_member(node, "user");
    const char *name = named != NULL && orr_json_type(named) == ORR_JSON_TEXT ? orr_json_text(named) : NULL;
    gpointer known = NULL;
    if (name != NULL && g_hash_table_lookup_extended(users, name, NULL, &known))
        return GPOINTER_TO_INT(known);
    if (name != NULL)
        g_hash_table_insert(users, g_strdup(name), GINT_TO_POINTER(trace->user_count));
    return trace->user_count++;
}

static bool read_job(const Reader *r, const OrrJson *node, GHashTable *users, JobsTrace *trace)
{
    static const char *const keys[] = {"name",       "arrive_s",  "seconds", "gpus",    "speed", "share",
                                       "least_gpus", "most_gpus", "user",    "start_s", NULL};
    g_autofree char *path = g_strdup_printf("jobs[%u]", trace->jobs->len);
    Job job = {0};
    if (!known_keys(r, node, path, keys) || !number(r, node, "arrive_s", path, 0, 1e12, 0, &job.arrive_s) ||
        !number(r, node, "seconds", path, 1e-3, 1e12, NAN, &job.work_s) ||
        !number(r, node, "start_s", path, 0, 1e12, 0, &job.start_s) ||
        !whole(r, node, "gpus", path, 0, &job.gpus) ||
        !number(r, node, "share", path, 1e-3, 1, 1, &job.share) ||
        !whole(r, node, "least_gpus", path, job.gpus, &job.least) ||
        !whole(r, node, "most_gpus", path, job.gpus, &job.most) ||
        !read_speeds(r, orr_json_member(node, "speed"), path, trace, &job))
        return false;
    if (job.start_s > 0 && job.start_s < job.arrive_s)
        return refuse(r, "%s.start_s: reserved from %g s on, before the job comes at %g; give a later time",
                      path, job.start_s, job.arrive_s);
    if (job.least > job.gpus || job.most < job.gpus)
        return refuse(r, "%s: least_gpus %d, gpus %d, most_gpus %d must not fall", path, job.least, job.gpus,
                      job.most);
    if (!fits_somewhere(trace, &job))
        return refuse(r, "%s.gpus: %d fit into no pool that runs the job; give fewer, or more GPUs", path,
                      job.gpus);
    for (int i = 0; i < JOBS_DOUBLINGS; i++)
        job.gain[i] = ldexp(job.least, i) / job.gpus;
    job.name = text_of(node, "name", path);
    job.user = user_of(node, users, trace);
    g_array_append_val(trace->jobs, job);
    return true;
}

static int by_arrival(const void *a, const void *b)
{
    const Job *x = a, *y = b;
    return (x->arrive_s > y->arrive_s) - (x->arrive_s < y->arrive_s);
}

void jobs_trace_sort(JobsTrace *trace)
{
    g_array_sort(trace->jobs, by_arrival); /* stable: as written where they come at once */
}

bool jobs_trace_read(const OrrJson *root, const char *where, JobsTrace *ret_trace, GError **error)
{
    static const char *const keys[] = {"pools", "jobs", "schema", "name", "comment", NULL};
    const Reader r = {where, error};
    double schema = 1;
    JobsTrace trace;
    trace_init(&trace);
    g_autoptr(GHashTable) users = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    bool ok = known_keys(&r, root, "trace", keys) && number(&r, root, "schema", "trace", 1, 1, 1, &schema);
    const OrrJson *pools = ok ? orr_json_member(root, "pools") : NULL,
                  *jobs = ok ? orr_json_member(root, "jobs") : NULL;
    if (ok && (pools == NULL || orr_json_type(pools) != ORR_JSON_LIST || orr_json_count(pools) == 0))
        ok = refuse(&r, "pools: missing; give a list like [{\"name\": \"a100\", \"gpus\": 64}]");
    if (ok && (jobs == NULL || orr_json_type(jobs) != ORR_JSON_LIST || orr_json_count(jobs) == 0 ||
               orr_json_count(jobs) > MOST_JOBS))
        ok = refuse(
            &r, "jobs: is not a list of 1 to %d jobs like {\"arrive_s\": 0, \"seconds\": 3600, \"gpus\": 8}",
            MOST_JOBS);
    for (const OrrJson *pool = ok ? orr_json_first(pools) : NULL; ok && pool != NULL;
         pool = orr_json_next(pool))
        ok = read_pool(&r, pool, &trace);
    for (const OrrJson *job = ok ? orr_json_first(jobs) : NULL; ok && job != NULL; job = orr_json_next(job))
        ok = read_job(&r, job, users, &trace);
    if (!ok) {
        jobs_trace_clear(&trace);
        return false;
    }
    jobs_trace_sort(&trace);
    *ret_trace = trace;
    return true;
}

/* --- drawn --- */

static int doublings(int gpus)
{
    int i = 0;
    while ((1 << i) < gpus)
        i++;
    return MIN(i, JOBS_DOUBLINGS - 1);
}

static Job draw_job(OrrDraws *draws, const JobsTrace *trace, const JobsPaces *model, int largest)
{
    Job job = {.work_s = 3600 * exp(1.2 * orr_draw_normal(draws))};
    const int most = doublings(largest + 1) - 1;
    const double size = orr_draw_exponential(draws, 2);
    job.gpus = 1 << MIN((int)fmin(size, most), most);
    job.share = job.gpus == 1 && orr_draw(draws) < .5 ? .5 : 1;
    job.least = MAX(1, job.gpus / 2);
    job.most = MIN(4 * job.gpus, largest);
    for (int p = 0; p < trace->pool_count; p++)
        job.speed[p] = model->paces[p][doublings(job.gpus)] / model->paces[0][doublings(job.gpus)];
    for (int i = 0; i < JOBS_DOUBLINGS; i++)
        job.gain[i] = model->paces[0][MIN(doublings(job.least) + i, JOBS_DOUBLINGS - 1)] /
                      model->paces[0][doublings(job.gpus)];
    job.name = g_strdup(model->name);
    return job;
}

void jobs_trace_draw(const JobsPool *pools, int pool_count, const JobsPaces *models, int model_count,
                     int count, double load, uint64_t seed, JobsTrace *ret_trace)
{
    JobsTrace trace;
    int gpus = 0, largest = LARGEST_DRAWN;
    double work_gpu_s = 0, now_s = 0;
    trace_init(&trace);
    for (int p = 0; p < pool_count; p++) {
        trace.pools[trace.pool_count++] = (JobsPool){g_strdup(pools[p].name), pools[p].gpus, JOBS_NODE_GPUS};
        gpus += pools[p].gpus;
        largest = MIN(largest, pools[p].gpus);
    }
    for (int i = 0; i < count; i++) {
        OrrDraws draws = orr_draws(seed, (uint64_t)i);
        const int model = (int)(orr_draw(&draws) * model_count); /* below model_count: a draw is below 1 */
        const Job job = draw_job(&draws, &trace, &models[model], largest);
        work_gpu_s += job.work_s * job.gpus;
        g_array_append_val(trace.jobs, job);
        g_array_index(trace.jobs, Job, (guint)i).user = trace.user_count++;
    }
    const double gap_s = work_gpu_s / count / (load * gpus);
    OrrDraws draws = orr_draws(seed, (uint64_t)count);
    for (int i = 0; i < count; i++) {
        now_s += orr_draw_exponential(&draws, gap_s);
        g_array_index(trace.jobs, Job, (guint)i).arrive_s = now_s;
    }
    *ret_trace = trace;
}
