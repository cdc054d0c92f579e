/* tests/bench/bench_search.c - how fast a whole space is decided, with proof.
 *
 * Searches examples with every field open and prints the points decided, how many of them needed the simulator,
 * points a second and core, memory, when something near the best was found, how a limit of 5 s is kept, and the goals.
 * Exit 1 when a goal is missed. `bench_search [PART-OF-A-NAME [THREADS]]`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "base/file.h"
#include "search/search.h"
#include "search/write_internal.h"
#include "spec/load.h"

#define NEAR_S 1.0

typedef struct Goal {
    const char *name, *example;
    int jobs;
    double seconds, least_points, points_per_core_s, bytes;
    const char *sets[5]; /* NULL at the end */
} Goal;

static const Goal goals[] = {
    {"MT-NLG 530B, 2,240 A100", "search-mt-nlg-530b.json", 2, 5, 1e6, 1e6, 2147483648.0, {NULL}},
    {"Llama 3 405B, 16,384 H100", "search-llama3-405b.json", 2, 60, 1e7, 1e6, 2147483648.0, {NULL}},
    {"DeepSeek-V3, 2,048 H800", "search-deepseek-v3.json", 2, 60, 1e10, 1e8, 2147483648.0, {NULL}},
    {"Mixtral 8x22B, 256 H100",
     "search-deepseek-v3.json",
     2,
     60,
     1e9,
     1e7,
     2147483648.0,
     {"model=mixtral-8x22b", "cluster.preset=dgx-h100", "cluster.nodes=32", "training.global_batch=1024"}},
    {"Qwen3 235B, 512 B200",
     "search-deepseek-v3.json",
     2,
     60,
     1e9,
     1e7,
     2147483648.0,
     {"model=qwen3-235b-a22b", "cluster.preset=dgx-b200", "cluster.nodes=64", "training.global_batch=2048"}},
    {"gpt-oss-120b, 1,024 H100",
     "search-deepseek-v3.json",
     2,
     60,
     1e9,
     1e7,
     2147483648.0,
     {"model=gpt-oss-120b", "cluster.preset=dgx-h100", "cluster.nodes=128", "training.global_batch=1280"}},
};

static double cpu_seconds(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           1e-6 * (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec);
}

static double most_bytes(void)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

/* The first that is within 3 % of the proved best. */
static SearchImprovement first_near(const SearchResult *result)
{
    const GArray *steps = result->improvements;
    for (guint i = 0; i < steps->len; i++) {
        const SearchImprovement *step = &g_array_index(steps, SearchImprovement, i);
        const SearchImprovement *best = &g_array_index(steps, SearchImprovement, steps->len - 1);
        if ((double)step->step_ps <= 1.03 * (double)best->step_ps)
            return *step;
    }
    return (SearchImprovement){.seconds = G_MAXDOUBLE};
}

/* The same space with a time limit: kept within 10 %, and with an answer. */
static bool run_limited(const Spec *spec, int jobs)
{
    const double limit_s = 5;
    const SearchOptions options = {.jobs = jobs, .max_seconds = limit_s};
    SearchResult result;
    GTimer *timer = g_timer_new();
    if (!search_run(spec, &options, &result, NULL))
        return false;
    const double took_s = g_timer_elapsed(timer, NULL);
    const bool ok = took_s <= 1.1 * limit_s && result.best->len > 0;
    printf("  limit of %.0f s     %14.2f s (goal %.1f s), %s, gap %.3g\n", limit_s, took_s, 1.1 * limit_s,
           result.best->len > 0 ? "with an answer" : "WITHOUT an answer", result.gap_frac);
    g_timer_destroy(timer);
    search_result_clear(&result);
    return ok;
}

static bool run(const Goal *goal, const char *folder, int jobs)
{
    g_autofree char *path = g_build_filename(folder, "examples", goal->example, NULL);
    g_autofree Spec *spec = g_new0(Spec, 1);
    const SearchOptions options = {.jobs = jobs};
    SearchResult result;
    GError *error = NULL;
    const double before_s = cpu_seconds();
    if (!spec_load_file(path, goal->sets, true, spec, NULL, &error) ||
        !search_run(spec, &options, &result, &error)) {
        fprintf(stderr, "%s\n", error->message);
        g_error_free(error);
        return false;
    }
    const double core_s = cpu_seconds() - before_s, bytes = most_bytes();
    const double rate = (double)result.points / core_s;
    const SearchImprovement near = first_near(&result);
    bool ok = result.seconds <= goal->seconds && near.seconds <= NEAR_S &&
              (double)result.points >= goal->least_points && rate >= goal->points_per_core_s &&
              bytes <= goal->bytes && result.proved;
    printf("%s\n", goal->name);
    printf("  points           %14.0f  (goal %.0f)\n", (double)result.points, goal->least_points);
    for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
        printf("  by %-13s %14.0f\n", search_bound_key((SearchBoundKind)kind), (double)result.pruned[kind]);
    printf("  after the bounds %14.0f, simulated %.0f\n", (double)result.survivors, (double)result.simulated);
    printf("  gap_frac         %14g\n", result.gap_frac);
    printf("  wall             %14.2f s on %d threads (goal %.0f s); %.2f s of CPU\n", result.seconds,
           result.jobs, goal->seconds, core_s);
    printf("  points/s/core    %14.0f  (goal %.0f)\n", rate, goal->points_per_core_s);
    printf("  memory           %14.0f MiB (goal %.0f MiB)\n", bytes / 1048576, goal->bytes / 1048576);
    printf("  within 3 %%       %14.2f s after the start (goal %.0f s), %.0f simulated\n", near.seconds,
           NEAR_S, (double)near.simulated);
    search_result_clear(&result);
    ok = run_limited(spec, jobs) && ok;
    printf("  %s\n", ok ? "met" : "MISSED");
    return ok;
}

int main(int argc, char **argv)
{
    const char *part = argc > 1 ? argv[1] : "";
    const int jobs = argc > 2 ? atoi(argv[2]) : 0;
    GError *error = NULL;
    g_autofree char *folder = orr_scenarios_dir(&error);
    bool ok = true;
    if (folder == NULL) {
        fprintf(stderr, "%s\n", error->message);
        return 1;
    }
    for (gsize i = 0; i < G_N_ELEMENTS(goals); i++)
        if (strstr(goals[i].name, part) != NULL)
            ok = run(&goals[i], folder, jobs > 0 ? jobs : goals[i].jobs) && ok;
    return ok ? 0 : 1;
}
