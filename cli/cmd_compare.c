/* cli/cmd_compare.c - orrery compare: two scenarios side by side. */
#include "cli/commands.h"
#include "cli/output.h"
#include "api/simulate.h"
#include "base/error.h"
#include "plots/plots.h"
#include "study/compare.h"
#include "workload/compare.h"

typedef struct CompareArgs {
    CliArgs common;
    gboolean quick, ideal, svg;
    char *own_runs, *plot;
} CompareArgs;

static bool compare_loops(const CompareArgs *args, const char *const names[2], const Workload *const loops[2],
                          GString *out, GError **error)
{
    if (loops[0] == NULL || loops[1] == NULL)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "compare: %s is a loop over several models and %s is a training step; give two of a kind",
            names[loops[0] != NULL ? 0 : 1], names[loops[0] != NULL ? 1 : 0]);
    if (args->plot != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--plot: a loop has phases and no parts of a step to draw; leave it out");
    if (args->common.format == CLI_FORMAT_JSON)
        workload_compare_json(loops[0], loops[1], names, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        workload_compare_csv(loops[0], loops[1], out);
    else
        workload_compare_text(loops[0], loops[1], names, out);
    return true;
}

static bool draw(const CompareArgs *args, const Comparison *comparison, GError **error)
{
    g_autoptr(GPtrArray) files = g_ptr_array_new_with_free_func(g_free);
    const PlotTarget target = {.folder = args->plot, .svg = args->svg, .files = files};
    return args->plot == NULL ||
           plot_difference(comparison->a, comparison->b, comparison->names, &target, error);
}

static bool compare_steps(const CompareArgs *args, const char *const names[2], const ApiSimulation *a,
                          const ApiSimulation *b, GString *out, GError **error)
{
    Comparison comparison = report_compare(&a->report, &b->report, names, !args->quick);
    if (args->common.format == CLI_FORMAT_JSON)
        report_compare_json(&comparison, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        report_compare_csv(&comparison, out);
    else
        report_compare_text(&comparison, out);
    const bool ok = draw(args, &comparison, error);
    report_compare_clear(&comparison);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const CompareArgs *args = (const CompareArgs *)common;
    if (args->svg && args->plot == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "--svg: goes with --plot FOLDER; leave it out");
    const ReportOptions options = {.steps = args->quick ? 0 : COMPARE_STEPS};
    const char *const names[2] = {common->words[0], common->words[1]};
    const ApiInput inputs[2] = {{.path = names[0], .own_runs = args->own_runs, .loops = true},
                                {.path = names[1], .own_runs = args->own_runs, .loops = true}};
    ApiSimulation *a = api_simulate_input(&inputs[0], common->sets, NULL, &options, error);
    ApiSimulation *b = a != NULL ? api_simulate_input(&inputs[1], common->sets, NULL, &options, error) : NULL;
    bool ok = b != NULL;
    const bool loop = ok && (a->workload != NULL || b->workload != NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    if (loop) {
        const Workload *const loops[2] = {a->workload, b->workload};
        ok = compare_loops(args, names, loops, out, error);
    } else if (ok) {
        ok = (args->ideal ||
              (api_simulation_live(names[0], a, error) && api_simulation_live(names[1], b, error))) &&
             compare_steps(args, names, a, b, out, error);
    }
    ok = ok && cli_output_write(common->output, out, error);
    api_simulation_free(b);
    api_simulation_free(a);
    return ok;
}

static const CliFlag flags[] = {
    {"quick", CLI_FLAG_SWITCH, offsetof(CompareArgs, quick), NULL,
     "do not simulate what each differing field does alone"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(CompareArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
    CLI_FLAG_OWN_RUNS(CompareArgs),
    {"plot", CLI_FLAG_FILE, offsetof(CompareArgs, plot), "FOLDER",
     "draw with gnuplot which parts of the step make the difference: difference.png and difference.csv"},
    {"svg", CLI_FLAG_SWITCH, offsetof(CompareArgs, svg), NULL, "SVG instead of PNG, with --plot"},
};

const CliCommand cli_command_compare = {
    .name = "compare",
    .usage = "A.json B.json",
    .summary = "two scenarios side by side, where the difference comes from",
    .help = "Simulates two scenarios and shows which fields differ. Step time is split into parts, per "
            "million tokens where the work of a step differs. The memory of the fullest stage is split "
            "into kinds. Every field that differs is also carried over from B to A on its own and "
            "simulated: that is what this field alone does. --set applies to both. Loops of reinforcement "
            "learning are set side by side by their phases.\n\n"
            "  orrery compare scenarios/examples/gpt3-175b.json "
            "scenarios/examples/gpt3-175b-interleaved.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 2,
    .max_words = 2,
    .args_size = sizeof(CompareArgs),
    .run = run,
};
