/* serve/child.c - see child.h. Tested: cli/test_mcp.py */
#define _DEFAULT_SOURCE
#include "serve/child.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TICK_MS = 50, MOST_SAID = 1 << 20 };

#if defined(__SANITIZE_ADDRESS__) /* whose shadow alone is 16 TiB */
enum { LIMITS_MEMORY = false };
#else
enum { LIMITS_MEMORY = true };
#endif

void serve_child_limit(int64_t memory_bytes)
{
    const struct rlimit memory = {(rlim_t)memory_bytes, (rlim_t)memory_bytes}, core = {0, 0};
    if (LIMITS_MEMORY && memory_bytes > 0)
        (void)setrlimit(RLIMIT_AS, &memory);
    (void)setrlimit(RLIMIT_CORE, &core);
}

/* In the child, before it becomes the program. */
static void limit(void *data)
{
    const ServeLimits *limits = data;
    serve_child_limit(limits->memory_bytes);
    const rlim_t seconds = (rlim_t)(limits->seconds * 64) + 1; /* of all processors together: the last net */
    const struct rlimit work = {seconds, seconds};
    (void)setrlimit(RLIMIT_CPU, &work);
    if (limits->nice > 0 && nice(limits->nice) == -1)
        return;
}

/* False at the end of the pipe. */
static bool take(int pipe_end, GString *into, gsize most)
{
    char piece[65536];
    const ssize_t count = read(pipe_end, piece, sizeof piece);
    if (count > 0 && into->len <= most)
        g_string_append_len(into, piece, (gssize)count);
    return count > 0 || (count < 0 && (errno == EINTR || errno == EAGAIN));
}

/* Reads both pipes to their ends; false with an error when there is to be no more. */
static bool listen_to(const int pipes[2], const ServeLimits *limits, ServeGoOn go_on, void *data,
                      ServeChild *child, GError **error)
{
    struct pollfd ends[2] = {{.fd = pipes[0], .events = POLLIN}, {.fd = pipes[1], .events = POLLIN}};
    GString *const texts[2] = {child->out, child->said};
    const gsize most[2] = {(gsize)limits->output_bytes, MOST_SAID};
    const gint64 last_us = g_get_monotonic_time() + (gint64)(limits->seconds * 1e6);
    while (ends[0].fd >= 0 || ends[1].fd >= 0) {
        (void)poll(ends, 2, TICK_MS);
        for (int i = 0; i < 2; i++)
            if (ends[i].fd >= 0 && ends[i].revents != 0 && !take(ends[i].fd, texts[i], most[i]))
                ends[i].fd = -1;
        if (child->out->len > (gsize)limits->output_bytes)
            return orr_fail(error, ORR_ERROR_IO,
                            "the answer is larger than %" G_GINT64_FORMAT " bytes; ask for less of it",
                            limits->output_bytes);
        if (g_get_monotonic_time() > last_us)
            return orr_fail(error, ORR_ERROR_IO,
                            "no answer within %g seconds; ask a smaller question or allow more time",
                            limits->seconds);
        if (go_on != NULL && !go_on(child->said, data))
            return orr_fail(error, ORR_ERROR_IO, "cancelled, as was asked");
    }
    return true;
}

char *serve_child_news(GString *said)
{
    static const char mark[] = "{\"done_frac\":";
    char *last = NULL;
    for (gsize at = 0; at < said->len;) {
        const char *line = said->str + at, *end = strchr(line, '\n');
        const bool news = g_str_has_prefix(line, mark);
        if (end == NULL)
            break;
        const gsize length = (gsize)(end - line);
        if (!news) {
            at += length + 1;
            continue;
        }
        g_free(last);
        last = g_strndup(line, length);
        g_string_erase(said, (gssize)at, (gssize)length + 1);
    }
    return last;
}

static int wait_for(GPid pid)
{
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool serve_child_run(char **words, const ServeLimits *limits, ServeGoOn go_on, void *data,
                     ServeChild *ret_child, GError **error)
{
    ServeLimits copy = *limits;
    GPid pid = 0;
    int pipes[2] = {-1, -1};
    g_autoptr(GError) cause = NULL;
    if (!g_spawn_async_with_pipes(NULL, words, NULL, G_SPAWN_DO_NOT_REAP_CHILD, limit, &copy, &pid, NULL,
                                  &pipes[0], &pipes[1], &cause))
        return orr_fail(error, ORR_ERROR_IO, "%s cannot be started: %s", words[0], cause->message);
    ServeChild child = {.status = -1, .out = g_string_new(NULL), .said = g_string_new(NULL)};
    const bool ok = listen_to(pipes, limits, go_on, data, &child, error);
    if (!ok)
        (void)kill(pid, SIGKILL);
    child.status = wait_for(pid);
    (void)close(pipes[0]);
    (void)close(pipes[1]);
    if (!ok) {
        serve_child_clear(&child);
        return false;
    }
    *ret_child = child;
    return true;
}

void serve_child_clear(ServeChild *child)
{
    if (child->out != NULL)
        g_string_free(child->out, TRUE);
    if (child->said != NULL)
        g_string_free(child->said, TRUE);
    *child = (ServeChild){.status = -1};
}
