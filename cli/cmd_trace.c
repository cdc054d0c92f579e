/* cli/cmd_trace.c - orrery trace: what a profiler's trace says of a step. */
#include "cli/commands.h"
#include "cli/output.h"
#include "study/trace_answer.h"

typedef struct TraceArgs {
    CliArgs common;
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

static bool run(const CliArgs *common, GError **error)
{
    TraceTable *table = trace_table_load(error);
    GPtrArray *ranks = table != NULL ? trace_read(common->words[0], table, error) : NULL;
    trace_table_free(table);
    if (ranks == NULL)
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    TraceAnswer answer = trace_answer(ranks, NULL);
    write_answer(&answer, common->format, out);
    trace_answer_clear(&answer);
    g_ptr_array_free(ranks, TRUE);
    return cli_output_write(common->output, out, error);
}

const CliCommand cli_command_trace = {
    .name = "trace",
    .usage = "TRACE",
    .summary = "a profiler's trace of a real step: kernels by class, where its time goes",
    .help =
        "Reads a trace of PyTorch's profiler (Kineto, .json or .json.gz, of CUDA or ROCm), or a folder with "
        "a "
        "file of each rank. Takes the steps that ProfilerStep marks and prints their mean: kernels by class, "
        "and what each instant of the step was spent on. Kernels that compute come first, then communication "
        "that nothing hides, copies, and idle time: the host was late, or the GPU waited with work in its "
        "queue. Several ranks show skew: a collective begins when its last rank does, and what the others "
        "wait before is no transfer. Classes come from the table profilers/kernel-names.json in the folder "
        "of "
        "presets. The trace of a simulated step is what 'orrery run FILE --trace trace.json.gz' writes, and "
        "ui.perfetto.dev opens both.\n"
        "\n"
        "  orrery trace rank0.pt.trace.json.gz\n"
        "  orrery trace traces/ --format json\n",
    .takes = CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(TraceArgs),
    .run = run,
};
