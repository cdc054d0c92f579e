/* cli/cmd_serve.c - orrery serve: the planner as a page of this machine's browser, and its API. */
#include <glib/gstdio.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/crew.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/self.h"
#include "serve/server.h"
#include "serve/worker.h"

enum { STANDARD_PORT = 8765, MOST_PORT = 65535, TOKEN_BYTES = 16 };

typedef struct ServeArgs {
    CliArgs common;
    char *port, *listen, *token, *store;
    gboolean open, worker;
} ServeArgs;

static bool read_port(const char *text, int *ret_port, GError **error)
{
    gint64 port = STANDARD_PORT;
    if (text != NULL && !g_ascii_string_to_signed(text, 10, 0, MOST_PORT, &port, NULL))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "serve: --port %s: give a number from 0 (any that is free) to 65535", text);
    *ret_port = (int)port;
    return true;
}

static bool is_loopback(const char *address)
{
    return g_str_has_prefix(address, "127.") || strcmp(address, "::1") == 0;
}

/* Of the system's random bytes; g_free. */
static char *new_token(GError **error)
{
    unsigned char bytes[TOKEN_BYTES];
    FILE *file = fopen("/dev/urandom", "rb");
    const bool ok = file != NULL && fread(bytes, 1, sizeof bytes, file) == sizeof bytes;
    if (file != NULL)
        fclose(file);
    if (!ok) {
        orr_fail(error, ORR_ERROR_IO, "serve: the system gives no random bytes; give --token");
        return NULL;
    }
    GString *text = g_string_new(NULL);
    for (gsize i = 0; i < sizeof bytes; i++)
        g_string_append_printf(text, "%02x", bytes[i]);
    return g_string_free(text, FALSE);
}

/* Its processes read presets and the questions' own folder, and nothing else. The folder; g_free. */
static char *seal(GError **error)
{
    g_autofree char *presets = orr_scenarios_dir(error);
    const char *temporary = g_getenv("TMPDIR") != NULL ? g_getenv("TMPDIR") : "/tmp";
    char *folder = presets != NULL ? g_build_filename(temporary, "orrery-serve-XXXXXX", NULL) : NULL;
    if (folder == NULL)
        return NULL;
    if (g_mkdtemp(folder) == NULL) {
        orr_fail(error, ORR_ERROR_IO, "serve: no folder for temporary files can be made in %s; set TMPDIR",
                 temporary);
        g_free(folder);
        return NULL;
    }
    g_autofree char *folders = g_strconcat(presets, ":", folder, NULL);
    g_setenv("ORRERY_READS", folders, TRUE);
    g_setenv("ORRERY_SCENARIOS", presets, TRUE);
    g_setenv("TMPDIR", folder, TRUE); /* where questions are written */
    return folder;
}

static void *wait_for_end(void *data)
{
    sigset_t set;
    int signal_number = 0;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)sigwait(&set, &signal_number);
    g_atomic_int_set((gint *)data, 1);
    return NULL;
}

/* Ctrl-C is met by one thread; all others, and the processes that they start, are not disturbed. */
static void hold_signals(gint *stop)
{
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    (void)pthread_sigmask(SIG_BLOCK, &set, NULL);
    g_thread_unref(g_thread_new("end", wait_for_end, stop));
}

static void open_browser(const char *url)
{
    const char *const openers[] = {"xdg-open", "open"};
    for (gsize i = 0; i < G_N_ELEMENTS(openers); i++) {
        const char *words[] = {openers[i], url, NULL};
        if (g_spawn_async(NULL, (char **)words, NULL,
                          G_SPAWN_SEARCH_PATH | G_SPAWN_STDOUT_TO_DEV_NULL | G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                          NULL, NULL, NULL))
            return;
    }
}

static bool say_where(const ServeArgs *args, const char *address, const ServeSite *site, GError **error)
{
    const bool v6 = strchr(address, ':') != NULL;
    g_autofree char *url =
        g_strdup_printf("http://%s%s%s:%d/%s%s", v6 ? "[" : "", address, v6 ? "]" : "", site->port,
                        site->token != NULL ? "#token=" : "", site->token != NULL ? site->token : "");
    g_autoptr(GString) out = g_string_new(NULL);
    g_string_append_printf(out, "%s\n", url);
    if (!cli_output_write(NULL, out, error))
        return false;
    cli_note(args->common.quiet, "orrery: the planner is at the address above; Ctrl-C ends it");
    if (args->open)
        open_browser(url);
    return true;
}

static bool serve(const ServeArgs *args, ServeServer *server, ServeStore *store, const char *address,
                  const char *token, GError **error)
{
    static const char *const how[] = {"serve", "--worker", NULL};
    gint stop = 0;
    hold_signals(&stop);
    g_autofree char *program = cli_self(error);
    ServePool *pool =
        program != NULL ? serve_pool_new(program, how, MAX(1, orr_crew_cores()), store, error) : NULL;
    if (pool == NULL)
        return false;
    ServeJobs *jobs = serve_jobs_new(program, store);
    const ServeSite site = {.answerer = {serve_ask_pool, pool},
                            .jobs = jobs,
                            .store = store,
                            .token = token,
                            .host = is_loopback(address) ? address : NULL,
                            .port = serve_server_port(server)};
    const bool ok = say_where(args, address, &site, error);
    if (ok)
        serve_server_run(server, &site, &stop);
    serve_jobs_free(jobs);
    serve_pool_free(pool);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const ServeArgs *args = (const ServeArgs *)common;
    if (args->worker)
        return serve_worker_loop(error);
    const char *address = args->listen != NULL ? args->listen : "127.0.0.1";
    int port = 0;
    if (!read_port(args->port, &port, error))
        return false;
    g_autofree char *made = args->token == NULL && !is_loopback(address) ? new_token(error) : NULL;
    if (args->token == NULL && !is_loopback(address) && made == NULL)
        return false;
    ServeServer *server = serve_server_open(address, port, error);
    if (server == NULL)
        return false;
    ServeStore *store = args->store != NULL ? serve_store_open(args->store, error) : NULL;
    g_autofree char *folder = args->store == NULL || store != NULL ? seal(error) : NULL;
    const bool ok = folder != NULL &&
                    serve(args, server, store, address, args->token != NULL ? args->token : made, error);
    serve_store_close(store);
    if (folder != NULL)
        (void)g_rmdir(folder);
    serve_server_free(server);
    return ok;
}

static const CliFlag flags[] = {
    {"port", CLI_FLAG_TEXT, offsetof(ServeArgs, port), "N", "the port, 8765 by default; 0: any that is free"},
    {"open", CLI_FLAG_SWITCH, offsetof(ServeArgs, open), NULL, "open the page in the browser"},
    {"listen", CLI_FLAG_TEXT, offsetof(ServeArgs, listen), "ADDRESS",
     "an address of this machine that others reach; they then need a token"},
    {"token", CLI_FLAG_TEXT, offsetof(ServeArgs, token), "TEXT",
     "what requests have to bring along; with --listen one is made where none is given"},
    {"store", CLI_FLAG_FILE, offsetof(ServeArgs, store), "PATH",
     "keep answers of searches, plans and the like in this folder, or in an SQLite database where it ends in "
     ".db; they "
     "are given again to the same question"},
    {"worker", CLI_FLAG_SWITCH, offsetof(ServeArgs, worker), NULL,
     "be one of the server's own processes, which answers lines on standard input"},
};

const CliCommand cli_command_serve = {
    .name = "serve",
    .usage = "",
    .summary = "a page that plans, in this machine's browser, and its API over HTTP",
    .help = "Serves a page on which a few fields give the step, the days, the cost and whether it fits, live "
            "as they "
            "change; a link holds the scenario. /api/openapi.json describes the API: the questions of "
            "'orrery mcp' with "
            "POST, and long ones as jobs. It listens on this machine alone, unless --listen says otherwise. "
            "Scenarios that come over HTTP name presets or are objects; no files are read for them.\n"
            "\n"
            "  orrery serve --open\n"
            "  orrery serve --port 9000\n"
            "  orrery serve --listen 0.0.0.0 --token SECRET\n",
    .takes = CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .max_words = 0,
    .args_size = sizeof(ServeArgs),
    .run = run,
};
