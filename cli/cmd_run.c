/* cli/cmd_run.c - orrery run: one training step of one scenario. */
#include <string.h>

#include "campaign/effective.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/simulate.h"

#define MAX_STEPS 1000

typedef struct RunArgs {
    CliArgs common;
    char *trace, *memory, *by, *steps, *kernels, *memory_reserve;
    gboolean unfold, check, verbose, ideal;
} RunArgs;

static void write_report(const Report *report, CliFormat format, GString *out)
{
    switch (format) {
    case CLI_FORMAT_TEXT:
        report_write_text(report, out);
        return;
    case CLI_FORMAT_JSON:
        report_write_json(report, out);
        return;
    case CLI_FORMAT_CSV:
        report_write_csv(report, true, out);
        return;
    }
    g_assert_not_reached();
}

static unsigned recording(const RunArgs *args)
{
    const bool spans = args->trace != NULL || args->by != NULL || args->steps != NULL;
    return (args->trace != NULL || args->memory != NULL ? (unsigned)SIM_RECORD_LEVELS : 0u) |
           (spans ? (unsigned)SIM_RECORD_SPANS : 0u);
}

/* What --memory FILE is to hold. */
typedef struct MemoryWanted {
    bool parts;
    ReportMemoryBy by;
    int steps;
} MemoryWanted;

static bool read_wanted(const RunArgs *args, MemoryWanted *ret_wanted, GError **error)
{
    MemoryWanted wanted = {.parts = args->by != NULL, .by = REPORT_MEMORY_BY_LAYER};
    guint64 steps = 0;
    if ((args->by != NULL || args->steps != NULL) && args->memory == NULL) {
        orr_fail(error, ORR_ERROR_INPUT, "%s says what --memory writes; give --memory FILE too",
                 args->by != NULL ? "--by" : "--steps");
        return false;
    }
    if (args->by != NULL && args->steps != NULL) {
        orr_fail(error, ORR_ERROR_INPUT, "--by %s: of the peak, not over time; leave out --steps", args->by);
        return false;
    }
    if (wanted.parts && strcmp(args->by, "tensor") == 0) {
        wanted.by = REPORT_MEMORY_BY_TENSOR;
    } else if (wanted.parts && strcmp(args->by, "layer") != 0) {
        orr_fail(error, ORR_ERROR_INPUT, "--by %s: neither \"layer\" nor \"tensor\"", args->by);
        return false;
    }
    if (args->steps != NULL && !g_ascii_string_to_unsigned(args->steps, 10, 1, MAX_STEPS, &steps, NULL)) {
        orr_fail(error, ORR_ERROR_INPUT, "--steps %s: give a whole number from 1 to %d", args->steps,
                 MAX_STEPS);
        return false;
    }
    wanted.steps = (int)steps;
    *ret_wanted = wanted;
    return true;
}

static void write_memory(const Report *report, const MemoryWanted *wanted, GString *out)
{
    if (wanted->parts)
        report_write_memory_parts(report, wanted->by, out);
    else
        report_write_memory(report, wanted->steps, out);
}

/* Days with what fails in them. */
static bool live(const char *where, CliSimulation *simulation, GError **error)
{
    CampaignAssumed assumed;
    return campaign_assumed_load(&assumed, error) &&
           campaign_effective_fill(&assumed, where, simulation->arena, &simulation->report, error);
}

static bool run(const CliArgs *common, GError **error)
{
    const RunArgs *args = (const RunArgs *)common;
    g_autoptr(GString) trace = g_string_new(NULL), memory = g_string_new(NULL), kernels = g_string_new(NULL),
                       text = g_string_new(NULL);
    CliOutput outputs[4];
    int count = 0;
    if (args->trace != NULL)
        outputs[count++] = (CliOutput){"--trace", args->trace, trace};
    if (args->memory != NULL)
        outputs[count++] = (CliOutput){"--memory", args->memory, memory};
    if (args->kernels != NULL)
        outputs[count++] = (CliOutput){"--kernels", args->kernels, kernels};
    outputs[count++] = (CliOutput){"the report", common->output, text};
    LedgerReserveAsk reserve;
    MemoryWanted wanted;
    if (!ledger_reserve_parse(args->memory_reserve, &reserve, error) || !read_wanted(args, &wanted, error) ||
        !cli_outputs_check(outputs, count, error))
        return false;

    const ReportOptions options = {.unfold = args->unfold, .check = args->check, .record = recording(args)};
    CliSimulation *simulation =
        cli_simulate_reserved(common->words[0], common->sets, &reserve, &options, error);
    if (simulation == NULL)
        return false;
    if (!args->ideal && !live(common->words[0], simulation, error)) {
        cli_simulation_free(simulation);
        return false;
    }
    const Report *report = &simulation->report;
    simulation->report.verbose = args->verbose;
    if (args->trace != NULL)
        report_write_trace(report, trace);
    if (args->memory != NULL)
        write_memory(report, &wanted, memory);
    if (args->kernels != NULL && report->spec->model.list.text != NULL) {
        cli_simulation_free(simulation);
        return orr_fail(error, ORR_ERROR_INPUT,
                        "run: --kernels lists the kernels of a transformer; "
                        "model.layers is a list of layers: leave --kernels out");
    }
    if (args->kernels != NULL)
        report_write_kernels(report, kernels);
    write_report(report, common->format, text);
    const bool ok = cli_outputs_write(outputs, count, error);
    if (ok && args->check)
        cli_note(common->quiet, "orrery: every invariant holds for %d ranks and %" G_GINT64_FORMAT " ops",
                 report->result.ranks, report->result.ops);
    cli_simulation_free(simulation);
    return ok;
}

static const CliFlag flags[] = {
    {"trace", CLI_FLAG_FILE, offsetof(RunArgs, trace), "FILE",
     "also write a Chrome trace (open it in ui.perfetto.dev); as gzip where FILE ends in .gz"},
    {"memory", CLI_FLAG_FILE, offsetof(RunArgs, memory), "FILE",
     "also write the memory of every rank over time as CSV"},
    {"by", CLI_FLAG_TEXT, offsetof(RunArgs, by), "WHAT",
     "--memory: what each pipeline rank's peak is made of instead, by layer or by tensor"},
    {"steps", CLI_FLAG_TEXT, offsetof(RunArgs, steps), "N",
     "--memory: over the first N steps of training; the first one lacks the optimizer's moments"},
    {"kernels", CLI_FLAG_FILE, offsetof(RunArgs, kernels), "FILE",
     "also write every kernel and collective of a layer, the embedding and the head as CSV: size, seconds, "
     "FLOP/s"},
    CLI_FLAG_MEMORY_RESERVE(RunArgs),
    {"unfold", CLI_FLAG_SWITCH, offsetof(RunArgs, unfold), NULL,
     "simulate every rank on its own instead of one of each kind (same answer, slower)"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(RunArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
    {"verbose", CLI_FLAG_SWITCH, offsetof(RunArgs, verbose), NULL, "in text, every field that was defaulted"},
    {"check", CLI_FLAG_SWITCH, offsetof(RunArgs, check), NULL, "verify the invariants of the simulated step"},
};

const CliCommand cli_command_run = {
    .name = "run",
    .usage = "SCENARIO.json",
    .summary = "simulate one training step: time, MFU, bubbles, memory",
    .help =
        "Simulates one training step of the scenario and reports the step time and where it goes, tokens per "
        "second, MFU and HFU, the pipeline bubble, and the memory of every pipeline stage. A configuration "
        "that does not fit in memory is a result: the report says so and by how much.\n"
        "\n"
        "  orrery run scenarios/examples/gpt3-175b.json\n"
        "  orrery run gpt3.json --set parallel.tensor=4 --set parallel.pipeline=16\n"
        "  orrery run gpt3.json --format json --output report.json --trace trace.json.gz\n"
        "  orrery run gpt3.json --memory memory.csv --by tensor\n"
        "  orrery search gpt3.json --set parallel.tensor=auto --save - --output search.txt | orrery run -\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(RunArgs),
    .run = run,
};
