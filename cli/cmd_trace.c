/* cli/cmd_trace.c - orrery trace: what a profiler's trace says of a step. */
#include "cli/commands.h"
#include "cli/output.h"
#include "api/simulate.h"
#include "study/trace_answer.h"
#include "study/trace_predict.h"

typedef struct TraceArgs {
    CliArgs common;
    char *scenario;
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

/* The kernels that the scenario predicts for the first rank of the trace; NULL with an error. */
static TraceRank *predict(const TraceArgs *args, const GPtrArray *ranks, GError **error)
{
    const TraceRank *first = ranks->pdata[0];
    const ReportOptions options = {.record = SIM_RECORD_SPANS, .ideal = true};
    ApiSimulation *simulation = api_simulate(args->scenario, args->common.sets, &options, error);
    if (simulation == NULL)
        return NULL;
    const Report *report = &simulation->report;
    TraceRank *predicted = trace_predict(report, trace_pipeline_rank(report, first->rank, first->world));
    api_simulation_free(simulation);
    return predicted;
}

static bool run(const CliArgs *common, GError **error)
{
    const TraceArgs *args = (const TraceArgs *)common;
    if (common->sets != NULL && args->scenario == NULL)
        return orr_fail(error, ORR_ERROR_INPUT, "trace: --set changes a scenario; give --scenario FILE too");
    TraceTable *table = trace_table_load(error);
    GPtrArray *ranks = table != NULL ? trace_read(common->words[0], table, error) : NULL;
    trace_table_free(table);
    if (ranks == NULL)
        return false;
    TraceRank *predicted = args->scenario != NULL ? predict(args, ranks, error) : NULL;
    bool ok = args->scenario == NULL || predicted != NULL;
    if (ok) {
        g_autoptr(GString) out = g_string_new(NULL);
        TraceAnswer answer = trace_answer(ranks, predicted);
        write_answer(&answer, common->format, out);
        trace_answer_clear(&answer);
        ok = cli_output_write(common->output, out, error);
    }
    trace_rank_free(predicted);
    g_ptr_array_free(ranks, TRUE);
    return ok;
}

static const CliFlag flags[] = {
    {"scenario", CLI_FLAG_FILE, offsetof(TraceArgs, scenario), "SCENARIO.json",
     "set the prediction of this scenario beside the trace"},
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
        "is no transfer. Classes come from the table profilers/kernel-names.json in the folder "
        "of presets.\n\n"
        "With --scenario the kernels of its simulated step stand beside those of the trace. "
        "Shown are the error by class, the ops that differ most, and what is met on one side "
        "alone. Products meet by the sizes of their operands, which record_shapes=True puts into "
        "a trace. It says where a sum is right by cancellation. 'orrery run FILE --trace-kernels "
        "t.json.gz' writes those kernels as such a trace.\n\n"
        "The trace of a simulated step is what 'orrery run FILE --trace trace.json.gz' writes, "
        "and ui.perfetto.dev opens both.\n\n"
        "  orrery trace rank0.pt.trace.json.gz\n"
        "  orrery trace traces/ --format json\n"
        "  orrery trace rank0.pt.trace.json.gz --scenario scenario.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(TraceArgs),
    .run = run,
};
