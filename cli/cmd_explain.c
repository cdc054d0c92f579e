/* cli/cmd_explain.c - orrery explain: what binds, what single changes would bring, what the largest loss is made of. */
#include "cli/commands.h"
#include "cli/output.h"
#include "api/simulate.h"
#include "plots/plots.h"
#include "study/explain.h"
#include "workload/explain.h"

typedef struct ExplainArgs {
    CliArgs common;
    char *memory_reserve, *own_runs;
} ExplainArgs;

static void explain_loop(const ApiSimulation *simulation, int format, GString *out)
{
    WorkloadExplanation explanation;
    workload_explain(simulation->workload, &simulation->source, simulation->arena, &explanation);
    if (format == CLI_FORMAT_JSON)
        workload_explain_json(&explanation, &simulation->source, out);
    else
        workload_explain_text(&explanation, out);
}

static bool run(const CliArgs *common, GError **error)
{
    const ExplainArgs *args = (const ExplainArgs *)common;
    const ReportOptions options = {.steps = EXPLAIN_STEPS};
    LedgerReserveAsk reserve;
    if (common->format == CLI_FORMAT_CSV)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "explain: --format csv: sentences are not a table; give text or json");
    if (!ledger_reserve_parse(args->memory_reserve, &reserve, error))
        return false;
    const ApiInput input = {.path = common->words[0], .own_runs = args->own_runs, .loops = true};
    ApiSimulation *simulation = api_simulate_input(&input, common->sets, &reserve, &options, error);
    if (simulation == NULL)
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    if (simulation->workload != NULL) {
        explain_loop(simulation, common->format, out);
        api_simulation_free(simulation);
        return cli_output_write(common->output, out, error);
    }
    const ExplainLoss largest = plot_largest_loss(&simulation->report);
    Explanation explanation = report_explain(&simulation->report);
    if (common->format == CLI_FORMAT_JSON)
        report_explain_json(&explanation, &largest, out);
    else
        report_explain_text(&explanation, &largest, out);
    report_explain_clear(&explanation);
    api_simulation_free(simulation);
    return cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    CLI_FLAG_MEMORY_RESERVE(ExplainArgs),
    CLI_FLAG_OWN_RUNS(ExplainArgs),
};

const CliCommand cli_command_explain = {
    .name = "explain",
    .usage = "SCENARIO.json",
    .summary = "in ten sentences: what binds, what single changes would bring",
    .help = "Says which resource a step waits for (simulated with 10 % more of each), and which "
            "kernels the largest loss is made of. Then come the strongest changes, a sentence for each "
            "part of the step that they shorten. A change is one field of parallel, training or "
            "execution, or fields that belong together: a schedule and its stages a rank. Each is "
            "simulated; the data-parallel degree follows the others. Then what memory rules out. Last, a "
            "table of hardware figures: what 1 % better of each does to the step. Of a loop of reinforcement "
            "learning it says what a step would take without each phase, and with single changes of roles, "
            "parts and staleness.\n\n"
            "  orrery explain scenarios/examples/gpt3-175b.json\n"
            "  orrery explain gpt3.json --format json\n"
            "  orrery explain scenarios/examples/rl-grpo-qwen2.5-7b-h20.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ExplainArgs),
    .run = run,
};
