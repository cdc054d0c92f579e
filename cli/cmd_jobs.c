/* cli/cmd_jobs.c - orrery jobs: many jobs on one cluster, under one policy after the other. */
#include <string.h>

#include "api/jobs.h"
#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/jobs_plot.h"
#include "cli/output.h"
#include "cli/team.h"
#include "jobs/log.h"
#include "jobs/trace.h"
#include "report/page.h"

enum { DRAWN_JOBS = 10000 };

#define MOST_TABLE_BYTES ((size_t)2 << 30)

#define PATIENCE_S (6 * 3600.0)

typedef struct JobsArgs {
    CliArgs common;
    char *seed, *count, *gpus, *plot;
    gboolean svg;
} JobsArgs;

static bool pool_of(const JobsArgs *args, int *ret_gpus, GError **error)
{
    guint64 gpus = 0;
    if (args->gpus == NULL || !g_ascii_string_to_unsigned(args->gpus, 10, 1, 10000000, &gpus, NULL))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--gpus: %s; say on how many GPUs the jobs of %s run, as in --gpus 2048",
                        args->gpus != NULL ? "is not a whole number from 1 to 10000000" : "is missing",
                        args->common.words[0]);
    *ret_gpus = (int)gpus;
    return true;
}

static void note_left_out(const JobsArgs *args, const JobsTrace *trace, const JobsLeftOut *left_out)
{
    if (left_out->without_gpus + left_out->without_time + left_out->too_large > 0)
        cli_note(args->common.quiet,
                 "orrery: %u jobs run; left out: %d without GPUs, %d without times, %d larger than --gpus",
                 trace->jobs->len, left_out->without_gpus, left_out->without_time, left_out->too_large);
}

/* A table of a published log. */
static bool read_table(const JobsArgs *args, const char *path, JobsTrace *ret_trace, GError **error)
{
    int gpus = 0;
    JobsLeftOut left_out;
    GString *text = pool_of(args, &gpus, error) ? orr_file_read(path, MOST_TABLE_BYTES, error) : NULL;
    const bool ok = text != NULL && jobs_log_read_table(text->str, path, gpus, ret_trace, &left_out, error);
    if (ok)
        note_left_out(args, ret_trace, &left_out);
    if (text != NULL)
        g_string_free(text, TRUE);
    return ok;
}

static bool read_trace(const JobsArgs *args, const char *path, JobsTrace *ret_trace, GError **error)
{
    int gpus = 0;
    JobsLeftOut left_out;
    if (g_str_has_suffix(path, ".csv"))
        return read_table(args, path, ret_trace, error);
    OrrJsonDoc *doc = orr_json_read_file(path, error);
    const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
    const bool log = root != NULL && orr_json_type(root) == ORR_JSON_LIST;
    bool ok = root != NULL && (!log || pool_of(args, &gpus, error));
    if (ok && !log && args->gpus != NULL)
        ok = orr_fail(error, ORR_ERROR_INPUT, "--gpus: %s says what GPUs there are (pools); leave it out",
                      path);
    ok = ok && (log ? jobs_log_read_attempts(root, path, gpus, ret_trace, &left_out, error)
                    : jobs_trace_read(root, orr_json_name(doc), ret_trace, error));
    if (ok && log)
        note_left_out(args, ret_trace, &left_out);
    orr_json_free(doc);
    return ok;
}

/* Of several processes each runs some policies, and all have all of them in the end. */
static void run_policies(const JobsTrace *trace, const OrrTeam *team, JobsResult *results)
{
    const int ranks = team != NULL ? team->ranks : 1, rank = team != NULL ? team->rank : 0;
    for (int policy = 0; policy < JOBS_POLICIES; policy++)
        if (policy % ranks == rank)
            results[policy] = jobs_run(trace, (JobsPolicy)policy, PATIENCE_S, NULL);
    if (team == NULL)
        return;
    GByteArray *mine = g_byte_array_new();
    g_autofree GByteArray **all = g_new0(GByteArray *, ranks);
    for (int policy = rank; policy < JOBS_POLICIES; policy += ranks)
        g_byte_array_append(mine, (const guint8 *)&results[policy], sizeof results[policy]);
    for (int r = 0; r < ranks; r++)
        all[r] = g_byte_array_new();
    team->exchange(team->data, mine, all);
    for (int policy = 0; policy < JOBS_POLICIES; policy++)
        memcpy(&results[policy], all[policy % ranks]->data + sizeof *results * (gsize)(policy / ranks),
               sizeof *results);
    for (int r = 0; r < ranks; r++)
        g_byte_array_unref(all[r]);
    g_byte_array_unref(mine);
}

static bool draw(const JobsArgs *args, const JobsTrace *trace, const JobsResult *results, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *title = args->seed != NULL
                                 ? g_strdup_printf("%u jobs, drawn by seed %s", trace->jobs->len, args->seed)
                                 : g_path_get_basename(args->common.words[0]);
    const PlotTarget target = {.folder = args->plot, .svg = args->svg, .files = files};
    return cli_jobs_plot(trace, PATIENCE_S, results, title, &target, error);
}

static bool answer(const CliArgs *common, const OrrTeam *team, GError **error)
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
    if (args->svg && args->plot == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "--svg: goes with --plot FOLDER; leave it out");
    if (args->seed != NULL && args->gpus != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--gpus: goes with a published log; a drawn trace has its own GPUs, so leave it out");
    if (args->seed != NULL && !g_ascii_string_to_unsigned(args->seed, 10, 0, G_MAXINT64, &seed, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--seed: \"%s\" is not a whole number", args->seed);
    if (args->count != NULL && !g_ascii_string_to_unsigned(args->count, 10, 1, 200000, &count, NULL))
        return orr_fail(error, ORR_ERROR_INPUT, "--count: \"%s\" is not a whole number from 1 to 200000",
                        args->count);
    if (args->seed != NULL ? !api_jobs_draw(seed, (int)count, &trace, error)
                           : !read_trace(args, common->words[0], &trace, error))
        return false;
    run_policies(&trace, team, results);
    g_autoptr(GString) out = g_string_new(NULL);
    if (common->format == CLI_FORMAT_JSON)
        jobs_write_json(&trace, results, JOBS_POLICIES, out);
    else
        jobs_write_text(&trace, results, JOBS_POLICIES, report_page_columns(), out);
    const bool drawn =
        args->plot == NULL || (team != NULL && team->rank > 0) || draw(args, &trace, results, error);
    jobs_trace_clear(&trace);
    return drawn && ((team != NULL && team->rank > 0) || cli_output_write(common->output, out, error));
}

/* Of several processes the first one speaks, and all of them fail alike. */
static bool run(const CliArgs *common, GError **error)
{
    CliTeam team;
    if (!cli_team_open(&team, error))
        return false;
    team.doing = "the policies";
    const bool ok = answer(common, team.processes > 1 ? &team.team : NULL, error);
    cli_team_close(&team, ok ? NULL : *error);
    return ok;
}

static const CliFlag flags[] = {
    {"seed", CLI_FLAG_TEXT, offsetof(JobsArgs, seed), "S",
     "draw the trace from this seed, in place of a file"},
    {"count", CLI_FLAG_TEXT, offsetof(JobsArgs, count), "N", "jobs that are drawn (default: 10000)"},
    {"gpus", CLI_FLAG_TEXT, offsetof(JobsArgs, gpus), "N", "GPUs on which the jobs of a published log run"},
    {"plot", CLI_FLAG_FILE, offsetof(JobsArgs, plot), "FOLDER",
     "draw with gnuplot how full the cluster is and how many jobs wait: occupation.png and occupation.csv"},
    {"svg", CLI_FLAG_SWITCH, offsetof(JobsArgs, svg), NULL, "SVG instead of PNG, with --plot"},
};

const CliCommand cli_command_jobs = {
    .name = "jobs",
    .usage = "[TRACE.json|LOG.csv]",
    .summary = "many jobs on one cluster: policies side by side",
    .help = "Runs a trace of jobs on one cluster under each policy. fifo: in order; first-fit: what "
            "fits first; backfill: behind the first that waits, who does not delay it; packing: several jobs "
            "on a GPU; fastest: each where it is fastest; "
            "adaptive: sizes that follow what is free. gavel: rounds in which "
            "whose work is farthest behind runs first. lucid: packing, the shortest first. pollux: sizes "
            "that keep speed-ups even; sia: kinds of GPU as well. gandiva-fair: equal tickets for users, who "
            "trade kinds of GPU. "
            "fgd: packing where fragments of free GPUs grow least. docs/JOBS.md tells what each leaves out "
            "of its paper. Prints utilisation, waiting, completion and "
            "fairness. A job gets all its GPUs at once; one that is passed for six hours is passed "
            "no more. A drawn trace has jobs on 256 A100s and 256 H100s with the paces of simulated "
            "steps. Under mpirun each process runs some of the policies. Published logs are "
            "read as they are: Helios's and Alibaba's tables with a header (.csv), Philly's JSON.\n\n"
            "  orrery jobs scenarios/traces/four-jobs.json\n"
            "  orrery jobs --seed 1 --format json\n"
            "  orrery jobs cluster_log.csv --gpus 2096\n"
            "  orrery jobs --seed 1 --plot pictures\n",
    .takes = CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 0,
    .max_words = 1,
    .args_size = sizeof(JobsArgs),
    .run = run,
};
