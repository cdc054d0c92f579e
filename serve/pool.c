/* serve/pool.c - the workers, from the side of who asks. Tested: cli/test_serve.py */
#define _DEFAULT_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "serve/worker.h"

typedef struct Worker {
    GPid pid;
    int to, from;
} Worker;

struct ServePool {
    char **words; /* of a worker's command line */
    char *program;
    ServeStore *store;
    GAsyncQueue *idle;  /* Worker* */
    GAsyncQueue *turns; /* as many as questions of processes of their own may be asked at once */
    int count;
};

static const int64_t most_memory = (int64_t)3 << 30;

static void limit(void *data)
{
    (void)data;
    serve_child_limit(most_memory);
    (void)signal(SIGINT, SIG_IGN); /* Ctrl-C is the server's business */
}

static bool start(const ServePool *pool, Worker *worker, GError **error)
{
    g_autoptr(GError) cause = NULL;
    if (!g_spawn_async_with_pipes(NULL, pool->words, NULL, G_SPAWN_DO_NOT_REAP_CHILD, limit, NULL,
                                  &worker->pid, &worker->to, &worker->from, NULL, &cause))
        return orr_fail(error, ORR_ERROR_IO, "a worker cannot be started: %s", cause->message);
    (void)fcntl(worker->to, F_SETFD, FD_CLOEXEC);
    (void)fcntl(worker->from, F_SETFD, FD_CLOEXEC);
    return true;
}

static void stop(Worker *worker)
{
    if (worker->pid <= 0) /* none could be started in its place */
        return;
    (void)kill(worker->pid, SIGKILL);
    (void)close(worker->to);
    (void)close(worker->from);
    while (waitpid(worker->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    *worker = (Worker){.to = -1, .from = -1};
}

ServePool *serve_pool_new(const char *program, const char *const *how, int count, ServeStore *store,
                          GError **error)
{
    ServePool *pool = g_new0(ServePool, 1);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_ptr_array_add(words, g_strdup(program));
    for (const char *const *word = how; *word != NULL; word++)
        g_ptr_array_add(words, g_strdup(*word));
    g_ptr_array_add(words, NULL);
    pool->words = (char **)g_ptr_array_free(g_steal_pointer(&words), FALSE);
    pool->program = g_strdup(program);
    pool->store = store;
    pool->idle = g_async_queue_new();
    pool->turns = g_async_queue_new();
    for (int i = 0; i < MAX(2, count); i++)
        g_async_queue_push(pool->turns, pool);
    for (; pool->count < count; pool->count++) {
        Worker *worker = g_new0(Worker, 1);
        if (!start(pool, worker, error)) {
            g_free(worker);
            serve_pool_free(pool);
            return NULL;
        }
        g_async_queue_push(pool->idle, worker);
    }
    return pool;
}

void serve_pool_free(ServePool *pool)
{
    for (int i = 0; i < pool->count; i++) {
        Worker *worker = g_async_queue_pop(pool->idle);
        stop(worker);
        g_free(worker);
    }
    g_async_queue_unref(pool->idle);
    g_async_queue_unref(pool->turns);
    g_strfreev(pool->words);
    g_free(pool->program);
    g_free(pool);
}

static bool put(int to, const GString *text)
{
    for (gsize done = 0; done < text->len;) {
        const ssize_t wrote = write(to, text->str + done, text->len - done);
        if (wrote < 0 && errno != EINTR)
            return false;
        done += wrote > 0 ? (gsize)wrote : 0;
    }
    return true;
}

/* Until the whole answer is there: how many bytes its first line has, and all of it in `text`. */
static bool hear(int from, gint64 until_us, GString *text, gsize *ret_head, bool *ret_ok)
{
    enum { MOST_DIGITS = 16 };
    gsize whole = 0;
    while (whole == 0 || text->len < whole) {
        char piece[65536];
        struct pollfd end = {.fd = from, .events = POLLIN};
        const gint64 left_ms = (until_us - g_get_monotonic_time()) / 1000;
        if (left_ms <= 0 || (poll(&end, 1, (int)MIN(left_ms, 1000)) < 0 && errno != EINTR))
            return false;
        if (end.revents == 0)
            continue;
        const ssize_t count = read(from, piece, sizeof piece);
        if (count <= 0 && errno != EINTR)
            return false;
        g_string_append_len(text, piece, MAX(count, 0));
        const char *line = memchr(text->str, '\n', MIN(text->len, MOST_DIGITS + 4));
        if (whole == 0 && line != NULL) {
            *ret_head = (gsize)(line - text->str) + 1;
            *ret_ok = g_str_has_prefix(text->str, "ok ");
            whole = *ret_head + (gsize)g_ascii_strtoull(text->str + strlen("ok "), NULL, 10);
        }
    }
    return true;
}

static char *line_of(const ServeQuestion *question)
{
    GString *line = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, line, true);
    orr_jw_begin(&w, NULL, '[');
    for (guint i = 0; i + 1 < question->words->len; i++)
        orr_jw_text(&w, NULL, g_ptr_array_index(question->words, i));
    orr_jw_end(&w, ']');
    g_string_append_c(line, '\n');
    return g_string_free(line, FALSE);
}

static const gint64 patience_us = (gint64)20 * G_USEC_PER_SEC;

static bool is_busy(GError **error)
{
    return orr_fail(error, ORR_ERROR_IO, "the server is busy; ask again in a few seconds, or make it a job");
}

static bool ask_worker(ServePool *pool, const ServeQuestion *question, GString *out, GError **error)
{
    Worker *worker = g_async_queue_timeout_pop(pool->idle, (guint64)patience_us);
    if (worker == NULL)
        return is_busy(error);
    g_autofree char *words = line_of(question);
    g_autoptr(GString) line = g_string_new(words), text = g_string_new(NULL);
    gsize head = 0;
    bool done = false;
    if (!put(worker->to, line) ||
        !hear(worker->from, g_get_monotonic_time() + patience_us, text, &head, &done)) {
        stop(worker);
        for (int tries = 0; !start(pool, worker, NULL) && tries < 50; tries++)
            g_usleep(100000);
        orr_fail(error, ORR_ERROR_IO,
                 "no answer within the limits of time and memory of one question; ask a smaller one, or make "
                 "it a job");
    } else if (done) {
        g_string_append_len(out, text->str + head, (gssize)(text->len - head));
    } else {
        serve_question_forget(question, text);
        orr_fail(error, ORR_ERROR_INPUT, "%s", text->str + head);
    }
    g_async_queue_push(pool->idle, worker);
    return done;
}

bool serve_ask_pool(const ServeQuestion *question, GString *out, GString *said, void *pool, GError **error)
{
    ServePool *p = pool;
    if (strcmp(question->tool->name, "run") == 0 || strcmp(question->tool->name, "explain") == 0)
        return ask_worker(p, question, out, error);
    const ServeWatch watch = {.store = p->store};
    void *const turn =
        question->tool->keeps ? g_async_queue_timeout_pop(p->turns, (guint64)patience_us) : NULL;
    if (question->tool->keeps && turn == NULL)
        return is_busy(error);
    const bool ok = serve_ask_watched(question, out, said, p->program, &watch, error);
    if (turn != NULL)
        g_async_queue_push(p->turns, turn);
    return ok;
}
