/* cli/cmd_trace.c - orrery trace: what a profiler's trace says of a step. */
#include <string.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "api/simulate.h"
#include "html/trace.h"
#include "study/trace_answer.h"
#include "study/trace_predict.h"

typedef struct TraceArgs {
    CliArgs common;
    char *scenario, *beside, *pass, *page;
} TraceArgs;

static void write_answer(const TraceAnswer *answer, CliFormat format, GString *out)
{
    if (format == CLI_FORMAT_JSON)
        trace_answer_json(answer, out);
    else if (format == CLI_FORMAT_CSV)
        trace_answer_csv(answer, out);
    else
        trace_answer_text(answer, out);
}

/* Words of --pass. */
static const struct {
    const char *word;
    SimTag tag;
} passes[] = {
    {"forward", SIM_TAG_FORWARD}, {"backward", SIM_TAG_BACKWARD}, {"pair", SIM_TAG_FORWARD_BACKWARD}};

static const SimTag *pass_of(const char *word)
{
    for (gsize i = 0; i < G_N_ELEMENTS(passes); i++)
        if (strcmp(passes[i].word, word) == 0)
            return &passes[i].tag;
    return NULL;
}

static bool check(const TraceArgs *args, GError **error)
{
    if (args->common.sets != NULL && args->scenario == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "trace: --set changes a scenario; give --scenario FILE too");
    if (args->pass != NULL && args->scenario == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "trace: --pass takes a pass of a scenario; give --scenario FILE too");
    if (args->beside != NULL && args->scenario != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "trace: give --scenario or --beside, not both: a trace is compared with one thing");
    if (args->pass != NULL && pass_of(args->pass) == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "trace: --pass \"%s\" is neither \"forward\" nor \"backward\" nor \"pair\"",
                        args->pass);
    return true;
}

/* The kernels that the scenario predicts for the first rank of the trace, or one pass of the middle pipeline rank, which has
 * neither embedding nor head where there are three; NULL with an error. */
static TraceRank *predict(const TraceArgs *args, const GPtrArray *ranks, GError **error)
{
    const TraceRank *first = ranks->pdata[0];
    const ReportOptions options = {.record = SIM_RECORD_SPANS, .ideal = true};
    ApiSimulation *simulation = api_simulate(args->scenario, args->common.sets, &options, error);
    if (simulation == NULL)
        return NULL;
    const Report *report = &simulation->report;
    TraceRank *predicted =
        args->pass == NULL ? trace_predict(report, trace_pipeline_rank(report, first->rank, first->world))
                           : trace_predict_pass(report, report->plan.shape.ranks / 2, *pass_of(args->pass));
    if (predicted == NULL)
        orr_fail(
            error, ORR_ERROR_INPUT,
            "trace: --pass %s: no such pass in the simulated step of %s; a pair is DualPipe's forward and "
            "backward at once",
            args->pass, args->scenario);
    api_simulation_free(simulation);
    return predicted;
}

static bool write_page(const TraceArgs *args, const TraceAnswer *answer, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL), command = g_string_new("orrery trace ");
    g_string_append(command, args->common.words[0]);
    if (args->scenario != NULL)
        g_string_append_printf(command, " --scenario %s", args->scenario);
    if (args->beside != NULL)
        g_string_append_printf(command, " --beside %s", args->beside);
    g_string_append_printf(command, " --page %s", args->page);
    html_trace_write(answer, command->str, out);
    return cli_output_write(args->page, out, error);
}

static bool answer(const TraceArgs *args, const GPtrArray *ranks, const GPtrArray *others, GError **error)
{
    TraceRank *predicted = args->scenario != NULL ? predict(args, ranks, error) : NULL;
    if (args->scenario != NULL && predicted == NULL)
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    TraceAnswer answer = others != NULL ? trace_answer_beside(ranks, others) : trace_answer(ranks, predicted);
    write_answer(&answer, args->common.format, out);
    const bool ok = (args->page == NULL || write_page(args, &answer, error)) &&
                    cli_output_write(args->common.output, out, error);
    trace_answer_clear(&answer);
    trace_rank_free(predicted);
    return ok;
}

static bool run(const CliArgs *common, GError **error)
{
    const TraceArgs *args = (const TraceArgs *)common;
    if (!check(args, error))
        return false;
    TraceTable *table = trace_table_load(error);
    GPtrArray *ranks = table != NULL ? trace_read(common->words[0], table, error) : NULL;
    GPtrArray *others = ranks != NULL && args->beside != NULL ? trace_read(args->beside, table, error) : NULL;
    const bool ok =
        ranks != NULL && (args->beside == NULL || others != NULL) && answer(args, ranks, others, error);
    trace_table_free(table);
    if (others != NULL)
        g_ptr_array_free(others, TRUE);
    if (ranks != NULL)
        g_ptr_array_free(ranks, TRUE);
    return ok;
}

static const CliFlag flags[] = {
    {"scenario", CLI_FLAG_FILE, offsetof(TraceArgs, scenario), "SCENARIO.json",
     "compare the trace with the prediction of this scenario"},
    {"beside", CLI_FLAG_FILE, offsetof(TraceArgs, beside), "TRACE",
     "compare the trace with this other recording"},
    {"pass", CLI_FLAG_TEXT, offsetof(TraceArgs, pass), "PASS",
     "of the scenario one pass alone: forward, backward or pair"},
    {"page", CLI_FLAG_FILE, offsetof(TraceArgs, page), "FILE",
     "also write a page (HTML, no network): classes, a waterfall, ops"},
};

const CliCommand cli_command_trace = {
    .name = "trace",
    .usage = "TRACE",
    .summary = "a profiler's trace of a real step: kernels by class, where its time goes",
    .help =
        "Reads a trace of PyTorch's profiler (Kineto, .json or .json.gz, of CUDA or ROCm), or a "
        "folder with a file of each rank. Tables of Nsight Systems (cuda_gpu_trace) and rocprof as CSV, JSON "
        "lines of NCCL Inspector and JSON dumps of the flight recorder are read too. Takes the steps that "
        "ProfilerStep marks and prints "
        "their mean: kernels by class, and what each instant of the step was spent on. Kernels "
        "that compute come first, then communication that nothing hides, copies, and idle time. "
        "A GPU is idle because the host was late, or waits with work in its queue. Several ranks "
        "show skew: a collective begins when its last rank does, and what the others wait before "
        "is not a transfer. Classes come from the table profilers/kernel-names.json in the folder "
        "of presets.\n\n"
        "With --scenario the kernels of its simulated step are compared with those of the trace. "
        "Shown are the error by class, the ops that differ most, and kernels that only one side "
        "has. Products are matched by the sizes of their operands, which record_shapes=True puts into "
        "a trace. It says where a sum is right by cancellation. 'orrery run FILE --trace-kernels "
        "t.json.gz' writes those kernels as such a trace. --pass takes one pass over a stage, for "
        "traces that hold no more; a pair is a forward and a backward at once.\n\n"
        "With --beside the trace is compared with another recording, of other software or settings, "
        "or after a change. Products and collectives are matched by their sizes, other kernels by name.\n\n"
        "The trace of a simulated step is what 'orrery run FILE --trace trace.json.gz' writes, "
        "and ui.perfetto.dev opens both.\n\n"
        "  orrery trace rank0.pt.trace.json.gz\n"
        "  orrery trace traces/ --format json\n"
        "  orrery trace rank0.pt.trace.json.gz --scenario scenario.json\n"
        "  orrery trace rank0.pt.trace.json.gz --scenario scenario.json --page why.html\n"
        "  orrery trace before.json.gz --beside after.json.gz\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(TraceArgs),
    .run = run,
};
