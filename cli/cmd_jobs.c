/* cli/cmd_jobs.c - orrery jobs: many jobs on one cluster, under one policy after the other. */
#include <string.h>

#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "jobs/trace.h"
#include "report/page.h"
#include "report/report.h"

enum { DRAWN_JOBS = 10000, POOLS = 2, MODELS = 3, POOL_GPUS = 256, DOUBLINGS = 9 };

#define PATIENCE_S (6 * 3600.0)
#define LOAD       1.3 /* in GPU-seconds of A100s: H100s do theirs sooner */

typedef struct JobsArgs {
    CliArgs common;
    char *seed, *count;
} JobsArgs;

/* Tokens a second of a model on 2^i GPUs of a cluster: a simulated step each, of data parallelism; what does not fit or
 * divide goes on as the one before it, GPU for GPU. */
static bool fill_paces(const char *model, const char *cluster, double *paces, GError **error)
{
    static const ReportOptions plain;
    for (int i = 0; i < JOBS_DOUBLINGS; i++) {
        const int gpus = 1 << MIN(i, DOUBLINGS - 1);
        g_autofree char *text = g_strdup_printf(
            "{\"model\":\"%s\",\"cluster\":{\"preset\":\"%s\",\"gpus_per_node\":%d,\"nodes\":%d},"
            "\"training\":{\"sequence_length\":"
            "1024,\"global_batch\":%d,\"micro_batch\":1},\"parallel\":{\"data\":%d,\"zero\":1}}",
            model, cluster, MIN(gpus, 8), MAX(1, gpus / 8), 1 << (DOUBLINGS - 1), gpus);
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "jobs", error);
        g_autofree Spec *spec = g_new0(Spec, 1);
        OrrArena *arena = orr_arena_new();
        Report report;
        const bool ok = doc != NULL &&
                        spec_load_json(orr_json_root(doc), "jobs", NULL, false, spec, NULL, error) &&
                        report_run(spec, NULL, &plain, arena, &report, error);
        paces[i] = ok ? report.tokens_per_s : 0;
        orr_arena_free(arena);
        orr_json_free(doc);
        if (!ok)
            return false;
    }
    return true;
}

static bool draw(guint64 seed, guint64 count, JobsTrace *ret_trace, GError **error)
{
    static const char *const models[MODELS] = {"gpt2-medium", "gpt2-large", "gpt2-xl"};
    static const char *const clusters[POOLS] = {"dgx-a100-80gb", "dgx-h100"};
    JobsPool pools[POOLS] = {{(char *)"A100", POOL_GPUS}, {(char *)"H100", POOL_GPUS}};
    JobsPaces paces[MODELS] = {{0}};
    for (int m = 0; m < MODELS; m++) {
        paces[m].name = models[m];
        for (int p = 0; p < POOLS; p++)
            if (!fill_paces(models[m], clusters[p], paces[m].paces[p], error))
                return false;
    }
    jobs_trace_draw(pools, POOLS, paces, MODELS, (int)count, LOAD, seed, ret_trace);
    return true;
}

static bool read_trace(const char *path, JobsTrace *ret_trace, GError **error)
{
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    const bool ok = doc != NULL && jobs_trace_read(orr_json_root(doc), orr_json_name(doc), ret_trace, error);
    orr_json_free(doc);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const JobsArgs *args = (const JobsArgs *)common;
    guint64 seed = 1, count = DRAWN_JOBS;
    JobsResult results[JOBS_POLICIES];
    JobsTrace trace;
    if (common->format == CLI_FORMAT_CSV)
        return orr_fail(error, ORR_ERROR_INPUT, "jobs: --format csv is not there; give text or json");
    if ((common->words == NULL || common->words[0] == NULL) == (args->seed == NULL))
        return orr_fail(error, ORR_ERROR_INPUT,
                        args->seed == NULL ? "jobs: give a trace's file, or --seed for one that is drawn"
                                           : "jobs: give a trace's file or --seed, not both");
    if (args->seed != NULL && !g_ascii_string_to_unsigned(args->seed, 10, 0, G_MAXINT64, &seed, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--seed: \"%s\" is no whole number", args->seed);
    if (args->count != NULL && !g_ascii_string_to_unsigned(args->count, 10, 1, 200000, &count, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--count: \"%s\" is no whole number from 1 to 200000",
                        args->count);
    if (args->seed != NULL ? !draw(seed, count, &trace, error) : !read_trace(common->words[0], &trace, error))
        return false;
    for (int policy = 0; policy < JOBS_POLICIES; policy++)
        results[policy] = jobs_run(&trace, (JobsPolicy)policy, PATIENCE_S, NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    if (common->format == CLI_FORMAT_JSON)
        jobs_write_json(&trace, results, JOBS_POLICIES, out);
    else
        jobs_write_text(&trace, results, JOBS_POLICIES, report_page_columns(), out);
    jobs_trace_clear(&trace);
    return cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    {"seed", CLI_FLAG_TEXT, offsetof(JobsArgs, seed), "S",
     "draw the trace from this seed, in place of a file"},
    {"count", CLI_FLAG_TEXT, offsetof(JobsArgs, count), "N", "jobs that are drawn (default: 10000)"},
};

const CliCommand cli_command_jobs = {
    .name = "jobs",
    .usage = "[TRACE.json]",
    .summary = "many jobs on one cluster: policies side by side",
    .help = "Runs a trace of jobs on one cluster under each policy: in order (fifo), what fits first "
            "(first-fit), several "
            "jobs on a GPU (packing), each where it is fastest (fastest), sizes that follow what is free "
            "(adaptive). Prints "
            "utilisation, waiting, completion and fairness. A job gets all its GPUs at once; one that is "
            "passed for six "
            "hours is passed no more. A drawn trace has jobs on 256 A100s and 256 H100s with the paces of "
            "simulated steps.\n"
            "\n"
            "  orrery jobs scenarios/traces/four-jobs.json\n"
            "  orrery jobs --seed 1 --format json\n",
    .takes = CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 0,
    .max_words = 1,
    .args_size = sizeof(JobsArgs),
    .run = run,
};
