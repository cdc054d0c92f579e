/* serve/jobs.c - see jobs.h. Tested: cli/test_serve.py */
#include "serve/jobs.h"

#include <string.h>

#include "serve/facts.h"

typedef enum { QUEUED, RUNNING, DONE, FAILED, CANCELLED } State;

static const char *const states[] = {"queued", "running", "done", "failed", "cancelled"};

typedef struct Job {
    ServeJobs *jobs;
    guint id;
    ServeQuestion question;
    State state;
    gint cancelled;
    gint64 begun_us, ended_us;
    GString *out, *said; /* NULL until it is done */
    char *error, *news;  /* NULL: none */
} Job;

struct ServeJobs {
    char *program;
    ServeStore *store;
    GMutex lock;
    GCond changed;
    GPtrArray *list; /* Job*, the oldest first */
    GThreadPool *pool;
    guint last;
};

static bool is_wanted(const Job *job)
{
    return g_atomic_int_get(&job->cancelled) == 0;
}

/* What the process has told of its progress is the job's news. */
static bool go_on(GString *said, void *data)
{
    Job *job = data;
    char *news = serve_child_news(said);
    if (news != NULL) {
        g_mutex_lock(&job->jobs->lock);
        g_free(job->news);
        job->news = news;
        g_cond_broadcast(&job->jobs->changed);
        g_mutex_unlock(&job->jobs->lock);
    }
    return is_wanted(job);
}

static void settle(Job *job, State state, char *error)
{
    g_mutex_lock(&job->jobs->lock);
    job->state = state;
    job->ended_us = g_get_monotonic_time();
    job->error = error;
    g_cond_broadcast(&job->jobs->changed);
    g_mutex_unlock(&job->jobs->lock);
}

static void work(void *data, void *pool_data)
{
    Job *job = data;
    ServeJobs *jobs = pool_data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GString) out = g_string_new(NULL), said = g_string_new(NULL);
    g_mutex_lock(&jobs->lock);
    job->state = RUNNING;
    job->begun_us = g_get_monotonic_time();
    g_cond_broadcast(&jobs->changed);
    g_mutex_unlock(&jobs->lock);
    const ServeWatch watch = {go_on, job, SERVE_JOB_NICE, jobs->store};
    const bool ok =
        is_wanted(job) && serve_ask_watched(&job->question, out, said, jobs->program, &watch, &error);
    if (ok) {
        job->out = g_steal_pointer(&out);
        job->said = g_steal_pointer(&said);
    }
    const bool cancelled = !is_wanted(job);
    settle(job, ok ? DONE : (cancelled ? CANCELLED : FAILED),
           error != NULL && !cancelled ? g_strdup(error->message) : NULL);
}

static void free_job(void *data)
{
    Job *job = data;
    serve_question_clear(&job->question);
    if (job->out != NULL)
        g_string_free(job->out, TRUE);
    if (job->said != NULL)
        g_string_free(job->said, TRUE);
    g_free(job->error);
    g_free(job->news);
    g_free(job);
}

ServeJobs *serve_jobs_new(const char *program, ServeStore *store)
{
    ServeJobs *jobs = g_new0(ServeJobs, 1);
    jobs->program = g_strdup(program);
    jobs->store = store;
    g_mutex_init(&jobs->lock);
    g_cond_init(&jobs->changed);
    jobs->list = g_ptr_array_new_with_free_func(free_job);
    jobs->pool = g_thread_pool_new(work, jobs, SERVE_JOBS_AT_ONCE, FALSE, NULL);
    return jobs;
}

void serve_jobs_free(ServeJobs *jobs)
{
    for (guint i = 0; i < jobs->list->len; i++)
        g_atomic_int_set(&((Job *)g_ptr_array_index(jobs->list, i))->cancelled, 1);
    g_thread_pool_free(jobs->pool, FALSE, TRUE);
    g_ptr_array_free(jobs->list, TRUE);
    g_cond_clear(&jobs->changed);
    g_mutex_clear(&jobs->lock);
    g_free(jobs->program);
    g_free(jobs);
}

/* The oldest of those that are over makes room. */
static bool make_room(ServeJobs *jobs)
{
    for (guint i = 0; jobs->list->len >= SERVE_JOBS_MOST && i < jobs->list->len; i++) {
        const Job *job = g_ptr_array_index(jobs->list, i);
        if (job->state >= DONE)
            g_ptr_array_remove_index(jobs->list, i);
    }
    return jobs->list->len < SERVE_JOBS_MOST;
}

guint serve_jobs_add(ServeJobs *jobs, ServeQuestion *question, GError **error)
{
    guint id = 0;
    g_mutex_lock(&jobs->lock);
    if (make_room(jobs)) {
        Job *job = g_new0(Job, 1);
        *job = (Job){.jobs = jobs, .id = id = ++jobs->last, .question = *question};
        *question = (ServeQuestion){0};
        g_ptr_array_add(jobs->list, job);
        g_thread_pool_push(jobs->pool, job, NULL);
    }
    g_mutex_unlock(&jobs->lock);
    if (id == 0)
        orr_fail(error, ORR_ERROR_IO, "%d jobs wait or run already; cancel one, or ask again later",
                 SERVE_JOBS_MOST);
    return id;
}

static Job *find(const ServeJobs *jobs, guint id)
{
    for (guint i = 0; i < jobs->list->len; i++)
        if (((Job *)g_ptr_array_index(jobs->list, i))->id == id)
            return g_ptr_array_index(jobs->list, i);
    return NULL;
}

bool serve_jobs_cancel(ServeJobs *jobs, guint id)
{
    g_mutex_lock(&jobs->lock);
    Job *job = find(jobs, id);
    if (job != NULL)
        g_atomic_int_set(&job->cancelled, 1);
    g_cond_broadcast(&jobs->changed);
    g_mutex_unlock(&jobs->lock);
    return job != NULL;
}

static void write_result(const Job *job, OrrJsonWriter *w)
{
    OrrJsonDoc *doc = orr_json_parse(job->out->str, job->out->len, "the answer", NULL);
    serve_whole_write(job->question.tool, doc != NULL ? orr_json_root(doc) : NULL, NULL, job->out->str,
                      job->said->str, w, "result");
    orr_json_free(doc);
}

static void write_news(const Job *job, OrrJsonWriter *w)
{
    OrrJsonDoc *doc =
        job->news != NULL ? orr_json_parse(job->news, strlen(job->news), "progress", NULL) : NULL;
    if (doc != NULL)
        orr_jw_node(w, "progress", orr_json_root(doc));
    orr_json_free(doc);
}

bool serve_jobs_show(ServeJobs *jobs, guint id, bool answer, GString *out, bool *ret_over)
{
    OrrJsonWriter w;
    g_mutex_lock(&jobs->lock);
    const Job *job = find(jobs, id);
    if (job != NULL) {
        const bool dropped = job->state == QUEUED && !is_wanted(job); /* nobody waits for it any more */
        const State state = dropped ? CANCELLED : job->state;
        const gint64 until_us = job->state >= DONE ? job->ended_us : g_get_monotonic_time();
        orr_jw_init(&w, out, true);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_int(&w, "id", job->id);
        orr_jw_text(&w, "tool", job->question.tool->name);
        orr_jw_text(&w, "state", states[state]);
        orr_jw_number(&w, "elapsed_s", job->begun_us > 0 ? (double)(until_us - job->begun_us) / 1e6 : 0);
        orr_jw_number(&w, "limit_s", job->question.seconds);
        write_news(job, &w);
        if (job->error != NULL)
            orr_jw_text(&w, "error", job->error);
        if (answer && job->state == DONE)
            write_result(job, &w);
        orr_jw_end(&w, '}');
        *ret_over = state >= DONE;
    }
    g_mutex_unlock(&jobs->lock);
    return job != NULL;
}

void serve_jobs_wait(ServeJobs *jobs)
{
    enum { WAIT_US = 500000 };
    g_mutex_lock(&jobs->lock);
    (void)g_cond_wait_until(&jobs->changed, &jobs->lock, g_get_monotonic_time() + WAIT_US);
    g_mutex_unlock(&jobs->lock);
}
