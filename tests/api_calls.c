/* tests/api_calls.c - liborrery called over and over: api_calls COUNT FOLDER-OF-EXAMPLES. Every call of orrery.h, what is refused
 * among them, every tenth a run. Fails when the process has grown by more than 2 MiB over the last four fifths (Linux); the address
 * sanitizer or valgrind say what is left at the end. Prints calls, seconds, microseconds a run and growth.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "api/orrery.h"

/* A sanitizer and valgrind keep what is freed for a while, and count for themselves. */
static bool growth_counts(void)
{
#if defined(__SANITIZE_ADDRESS__)
    return false;
#else
    const char *preloaded = getenv("LD_PRELOAD");
    return preloaded == NULL || strstr(preloaded, "vgpreload") == NULL;
#endif
}

enum { MOST_GROWTH = 2 << 20, MANY = 10000, RUNS_ARE_EVERY = 10 };

static void expect(bool ok, const char *what, const OrrHandle *orrery)
{
    if (ok)
        return;
    fprintf(stderr, "%s: %s\n", what, orr_error(orrery));
    exit(1);
}

/* Resident bytes, 0 where /proc does not tell. */
static long resident(void)
{
    long pages = 0, total = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (file != NULL && fscanf(file, "%ld %ld", &total, &pages) != 2)
        pages = 0;
    if (file != NULL)
        fclose(file);
    return pages * 4096;
}

/* One call of the rare, long kinds. */
static void long_call(OrrHandle *orrery, int kind)
{
    switch (kind) {
    case 0:
        expect(orr_run(orrery, "{\"check\":true}") != NULL, "run", orrery);
        return;
    case 1:
        expect(orr_sweep(orrery, "{\"vary\":{\"training.micro_batch\":[1,2]}}") != NULL, "sweep", orrery);
        return;
    case 2:
        expect(orr_explain(orrery, NULL) != NULL, "explain", orrery);
        return;
    case 3:
        expect(orr_csv(orrery, "memory") != NULL, "csv", orrery);
        return;
    case 4:
        expect(orr_timeline(orrery, 80) != NULL, "timeline", orrery);
        return;
    case 5:
        expect(orr_set(orrery, "training.micro_batch=auto") == 0 &&
                   orr_search(orrery, "{\"jobs\":1}") != NULL,
               "search", orrery);
        return;
    case 6:
        expect(orr_compare(orrery, "{\"with\":\"gpt3-175b-interleaved\",\"quick\":true}") != NULL, "compare",
               orrery);
        return;
    case 7:
        expect(orr_set(orrery, "training.micro_batch=many") == 0 && orr_run(orrery, NULL) == NULL, "refuse",
               orrery);
        return;
    default:
        expect(orr_page(orrery, "{\"search\":false}") != NULL, "page", orrery);
    }
}

static void short_call(OrrHandle *orrery, int kind)
{
    switch (kind % 8) {
    case 0:
        expect(orr_help(orrery, "parallel.zero") != NULL, "help", orrery);
        return;
    case 1:
        expect(orr_help(orrery, "parallel.nothing") == NULL, "no help", orrery);
        return;
    case 2:
        expect(orr_set(orrery, "parallel.tensor") != 0, "no set", orrery);
        return;
    case 3:
        expect(orr_preset(orrery, "models", "gpt2-xl") != NULL, "preset", orrery);
        return;
    case 4:
        expect(orr_run(orrery, "{\"unfold\":") == NULL, "no options", orrery);
        return;
    case 5:
        expect(orr_command(orrery, "[\"collective\",\"--ranks=4\",\"--rate=1GB/s\",\"--bytes=1MiB\"]") !=
                       NULL &&
                   orr_notes(orrery) != NULL && orr_command(orrery, "[\"collective\",\"--op=none\"]") == NULL,
               "command", orrery);
        return;
    case 6:
        expect(orr_command(orrery, "[\"serve\"]") == NULL && orr_command(orrery, "[]") == NULL &&
                   orr_command(orrery, "[1") == NULL && orr_command(orrery, "[\"run\", 1]") == NULL,
               "no command", orrery);
        return;
    default:
        expect(orr_load(orrery, "{\"model\": ") != 0, "no text", orrery);
    }
}

static double now_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Every call on a handle of its own. Seconds that its run took, 0 when it was none. */
static double one_call(const char *path, long i, int kinds)
{
    OrrHandle *orrery = orr_new();
    double run_s = 0;
    expect(orr_load(orrery, path) == 0, "load", orrery);
    if (i % kinds < 9) {
        long_call(orrery, (int)(i % kinds));
    } else if (i % RUNS_ARE_EVERY == 0) {
        const double start_s = now_s();
        expect(orr_run(orrery, NULL) != NULL, "run", orrery);
        run_s = now_s() - start_s;
    } else {
        short_call(orrery, (int)(i % kinds));
    }
    orr_free(orrery);
    return run_s;
}

int main(int argc, char **argv)
{
    const long count = argc == 3 ? strtol(argv[1], NULL, 10) : 0;
    char path[4096];
    long early = 0, runs = 0;
    double runs_s = 0;
    const int kinds = count > MANY ? 2000 : 200; /* eight of them take milliseconds */
    if (count < 1) {
        fprintf(stderr, "usage: api_calls COUNT FOLDER\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/gpt2-xl-1gpu.json", argv[2]);
    const double start_s = now_s();
    for (long i = 0; i < count; i++) {
        const double run_s = one_call(path, i, kinds);
        runs += run_s > 0;
        runs_s += run_s;
        if (i == count / 5)
            early = resident();
    }
    const long growth = resident() - early;
    printf("%ld calls in %.1f s, %ld of them runs of %.0f us; the process grew by %ld KiB over the last four "
           "fifths\n",
           count, now_s() - start_s, runs, runs > 0 ? 1e6 * runs_s / (double)runs : 0.0, growth / 1024);
    return growth_counts() && growth > MOST_GROWTH;
}
