/* tests/cli/test_cli_anytime.c - a search that is short of time, of patience or of threads still answers. */
#define _DEFAULT_SOURCE /* syscall() */
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#if defined(__linux__)
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#endif
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "tests/cli/runner.h"

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static bool is_sanitized(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return true;
#else
    return false;
#endif
}

static CliRun search(const char *example, const char *seconds)
{
    g_autofree char *scenario = cli_source(example);
    const char *words[] = {"search", scenario, "--max-seconds", seconds, "--format", "json", NULL};
    return cli_run(NULL, words);
}

/* A limit that is over while tables fill still gives a configuration. Whether it is kept, tests/bench/bench_cli.sh says. */
static void test_limit(void)
{
    static const char *const examples[] = {"scenarios/examples/search-deepseek-v3.json",
                                           "scenarios/examples/search-mt-nlg-530b.json"};
    for (gsize i = 0; i < G_N_ELEMENTS(examples); i++) {
        CliRun run = search(examples[i], is_sanitized() ? "6" : "2");
        cli_assert_done(&run, examples[i]);
        g_assert_nonnull(strstr(run.out, "\"proved\": false"));
        g_assert_null(strstr(run.out, "\"best\": []"));
        g_assert_null(strstr(run.out, "\"gap_frac\": null"));
        cli_run_clear(&run);
    }
    g_autofree char *path = cli_source(examples[0]);
    CliRun starved = cli_run(NULL, CLI_WORDS("search", path, "--max-seconds", "0.1", "--quiet"));
    cli_assert_done(&starved, "starved");
    g_assert_nonnull(strstr(starved.out, "proof         none yet")); /* not "none takes less than 0 s" */
    cli_run_clear(&starved);
}

typedef struct Child {
    GPid pid;
    char *path; /* of its output */
} Child;

/* Lets a user who is not root enter folders that only root may enter, such as /root, across an exec. False: it cannot. */
static bool keep_reading(void)
{
#if defined(__linux__)
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {{0}};
    const unsigned long read = CAP_DAC_READ_SEARCH;
    sets[0].effective = sets[0].permitted = sets[0].inheritable = 1u << read;
    return syscall(SYS_capset, &header, sets) == 0 &&
           prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, read, 0, 0) == 0;
#else
    return false;
#endif
}

/* Runs in the child between fork and exec: a user without a right to more threads, who may still read what root may. */
static void few_threads(gpointer data)
{
    const struct rlimit limit = {1, 1};
    (void)data;
#if defined(__linux__)
    prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
#endif
    if (setuid(65534) != 0 || setrlimit(RLIMIT_NPROC, &limit) != 0)
        _exit(99);
    (void)keep_reading();
}

static Child start(const char *const *words, GSpawnChildSetupFunc setup)
{
    Child child = {0};
    GError *error = NULL;
    int fd = g_file_open_tmp("orrery-anytime-XXXXXX", &child.path, &error);
    g_assert_no_error(error);
    g_autoptr(GPtrArray) argv = g_ptr_array_new();
    g_ptr_array_add(argv, (gpointer)g_getenv("ORRERY_BINARY"));
    for (; *words != NULL; words++)
        g_ptr_array_add(argv, (gpointer)*words);
    g_ptr_array_add(argv, NULL);
    g_spawn_async_with_fds(NULL, (char **)argv->pdata, NULL, G_SPAWN_DO_NOT_REAP_CHILD, setup, NULL,
                           &child.pid, -1, fd, -1, &error);
    g_close(fd, NULL);
    if (setup != NULL && g_error_matches(error, G_SPAWN_ERROR, G_SPAWN_ERROR_ACCES)) {
        g_error_free(error); /* another user may not enter the folder */
        return child;
    }
    g_assert_no_error(error);
    return child;
}

/* Its exit status; kills and fails after `seconds`. */
static int finish(Child *child, double seconds, char **ret_text)
{
    int status = 0;
    const double end_s = now_s() + seconds;
    while (waitpid(child->pid, &status, WNOHANG) == 0) {
        if (now_s() > end_s) {
            kill(child->pid, SIGKILL);
            waitpid(child->pid, &status, 0);
            g_error("it hangs");
        }
        g_usleep(20000);
    }
    g_assert_true(g_file_get_contents(child->path, ret_text, NULL, NULL));
    g_remove(child->path);
    g_free(child->path);
    g_assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Until the child has worked for so many seconds of processor time, however many threads and neighbours it has. */
static void let_work(const Child *child, double seconds)
{
    const double end_s = now_s() + 60;
    clockid_t clock;
    struct timespec used = {0};
    g_assert_cmpint(clock_getcpuclockid(child->pid, &clock), ==, 0);
    while ((double)used.tv_sec + 1e-9 * (double)used.tv_nsec < seconds && now_s() < end_s) {
        g_usleep(20000);
        if (clock_gettime(clock, &used) != 0)
            return; /* it has ended: finish() tells how */
    }
}

static void test_interrupt(void)
{
    g_autofree char *scenario = cli_source("scenarios/examples/search-deepseek-v3.json"), *text = NULL;
    const char *words[] = {"search", scenario, "--quiet", NULL};
    Child child = start(words, NULL);
    let_work(&child, is_sanitized() ? 12 : 3);
    kill(child.pid, SIGINT);
    g_assert_cmpint(finish(&child, 30, &text), ==, 130);
    g_assert_nonnull(strstr(text, "the gap"));
    g_assert_nonnull(strstr(text, "Best "));
}

/* What a stopped command says, and the key of its JSON. */
static void check_stopped(const char *const *words, const char *expect, bool json)
{
    Child child = start(words, NULL);
    g_autofree char *text = NULL;
    let_work(&child, is_sanitized() ? 2 : 0.5);
    kill(child.pid, SIGINT);
    g_assert_cmpint(finish(&child, is_sanitized() ? 90 : 20, &text), ==, 130);
    if (strstr(text, expect) == NULL)
        g_error("%s: no \"%s\" in:\n%s", words[0], expect, text);
    if (json)
        orr_json_free(cli_parse(text, words[0]));
}

/* plan, sweep and campaign tell what is done, say that it is part of what was asked, and exit as search does. */
static void test_partial(void)
{
    g_autofree char *plan = cli_source("scenarios/examples/plan-sc21-175b.json");
    g_autofree char *faults = cli_source("scenarios/examples/campaign-llama3-405b.json");
    const struct {
        const char *expect;
        bool json;
        const char *words[20];
    } rows[] = {
        {"  Partial ",
         false,
         {"plan", plan, "--set", "parallel.tensor=auto", "--set", "parallel.pipeline=auto", "--set",
          "parallel.data=auto", "--set", "training.recompute=auto", "--set", "parallel.schedule=auto"}},
        {"\"partial\": true",
         true,
         {"plan", plan, "--format", "json", "--cluster", "dgx-h100,dgx-a100-80gb,dgx-b200", "--set",
          "parallel.tensor=auto", "--set", "parallel.pipeline=auto", "--set", "parallel.data=auto", "--set",
          "parallel.schedule=auto"}},
        {"Partial: stopped after ",
         false,
         {"sweep", plan, "--quiet", "--vary", "training.global_batch=1500..1e6", "--vary",
          "parallel.virtual_stages=1,2,3,4,6,12", "--vary", "training.sequence_length=128..65536", "--set",
          "training.recompute=auto", "--set", "parallel.tensor=auto"}},
        {"\"partial\": true",
         true,
         {"sweep", plan, "--quiet", "--format", "json", "--vary", "training.global_batch=1500..1e6", "--vary",
          "parallel.virtual_stages=1,2,3,4,6,12", "--vary", "training.sequence_length=128..65536", "--set",
          "training.recompute=auto", "--set", "parallel.tensor=auto"}},
        {"  Partial ", false, {"campaign", faults, "--replicas", "1000000"}},
        {"\"partial\": true", true, {"campaign", faults, "--replicas", "1000000", "--format", "json"}},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++)
        check_stopped(rows[i].words, rows[i].expect, rows[i].json);
}

/* Without a stop they say so too. */
static void test_whole(void)
{
    g_autofree char *plan = cli_source("scenarios/examples/plan-sc21-175b.json");
    g_autofree char *faults = cli_source("scenarios/examples/campaign-llama3-405b.json");
    const char *const *rows[] = {
        CLI_WORDS("plan", plan, "--gpus", "1024", "--format", "json"),
        CLI_WORDS("sweep", plan, "--vary", "training.micro_batch=1,2", "--format", "json"),
        CLI_WORDS("campaign", faults, "--replicas", "20", "--format", "json"),
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        CliRun run = cli_run(NULL, rows[i]);
        cli_assert_done(&run, rows[i][0]);
        g_assert_nonnull(strstr(run.out, "\"partial\": false"));
        cli_run_clear(&run);
    }
}

/* Another user who may have one process: no thread can be made. */
static void test_no_threads(void)
{
    if (getuid() != 0 || is_sanitized()) {
        g_test_skip("needs to change the user");
        return;
    }
    g_autofree char *scenario = cli_source("scenarios/examples/gpt3-175b.json"), *text = NULL;
    const char *words[] = {"search", scenario,
                           "--jobs", "4",
                           "--set",  "parallel.tensor=auto",
                           "--set",  "parallel.pipeline=auto",
                           "--set",  "parallel.data=auto",
                           NULL};
    Child child = start(words, few_threads);
    if (child.pid == 0) {
        g_free(child.path);
        g_test_skip("another user may not run this build");
        return;
    }
    const int status = finish(&child, 60, &text);
    if (status == 99 || status == 127) {
        g_test_skip("another user may not run this build");
        return;
    }
    g_assert_cmpint(status, ==, 0);
    g_assert_nonnull(strstr(text, "Best "));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cli/anytime/limit", test_limit);
    g_test_add_func("/cli/anytime/interrupt", test_interrupt);
    g_test_add_func("/cli/anytime/partial", test_partial);
    g_test_add_func("/cli/anytime/whole", test_whole);
    g_test_add_func("/cli/anytime/no-threads", test_no_threads);
    return g_test_run();
}
