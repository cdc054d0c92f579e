/* cli/cmd_run.c - orrery run: one training step of one scenario. */
#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "api/simulate.h"
#include "base/units.h"
#include "ledger/validate.h"
#include "plots/plots.h"
#include "report/page.h"
#include "search/choose.h"
#include "base/file.h"
#include "study/chakra.h"
#include "study/program_text.h"
#include "study/simai.h"
#include "study/trace_predict.h"

#define MAX_STEPS 1000

typedef struct RunArgs {
    CliArgs common;
    char *trace, *trace_kernels, *chakra, *simai, *program, *memory, *by, *steps, *kernels, *memory_reserve,
        *own_runs, *ranks, *from, *to, *snapshot, *links;
    gboolean unfold, check, verbose, timeline, ideal, textbook;
} RunArgs;

static unsigned recording(const RunArgs *args)
{
    const bool spans = args->timeline || args->trace != NULL || args->trace_kernels != NULL ||
                       args->snapshot != NULL || args->by != NULL || args->steps != NULL;
    return (args->memory != NULL ? (unsigned)SIM_RECORD_LEVELS : 0u) |
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
        orr_fail(error, ORR_ERROR_INPUT, "%s says what --memory writes; give --memory too",
                 args->by != NULL ? "--by" : "--steps");
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

/* --- the trace --- */

typedef struct Window {
    int64_t from_ps, to_ps;
} Window;

static bool read_time(const char *flag, const char *text, int64_t absent, int64_t *ret_ps, GError **error)
{
    double seconds = 0;
    *ret_ps = absent;
    if (text == NULL)
        return true;
    if (!orr_parse_quantity(text, ORR_UNIT_SECONDS, &seconds, error)) {
        g_prefix_error(error, "--%s: ", flag);
        return false;
    }
    if (!(seconds >= 0 && seconds < 9e6))
        return orr_fail(error, ORR_ERROR_INPUT, "--%s: %s is not a time in a step", flag, text);
    *ret_ps = (int64_t)(seconds * 1e12);
    return true;
}

static bool read_window(const RunArgs *args, Window *ret_window, GError **error)
{
    if ((args->from != NULL || args->to != NULL) && args->trace == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--from and --to say what --trace writes; give --trace FILE too");
    if (args->ranks != NULL && args->trace == NULL && args->snapshot == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--ranks says what --trace and --memory-snapshot write; give --trace FILE or "
                        "--memory-snapshot FILE too");
    if (!read_time("from", args->from, 0, &ret_window->from_ps, error) ||
        !read_time("to", args->to, G_MAXINT64, &ret_window->to_ps, error))
        return false;
    if (ret_window->to_ps < ret_window->from_ps)
        return orr_fail(error, ORR_ERROR_INPUT, "--to %s: is before --from %s", args->to, args->from);
    return true;
}

/* "0-3,8": which of `ranks`; g_free. NULL with an error. */
static bool *read_ranks(const char *text, int ranks, GError **error)
{
    g_auto(GStrv) words = g_strsplit(text, ",", -1);
    bool *wanted = g_new0(bool, (gsize)ranks + 1);
    for (char **word = words; *word != NULL; word++) {
        const char *dash = strchr(*word, '-');
        g_autofree char *first = dash != NULL ? g_strndup(*word, (gsize)(dash - *word)) : g_strdup(*word);
        guint64 low = 0, high = 0;
        if (!g_ascii_string_to_unsigned(g_strstrip(first), 10, 0, (guint64)ranks - 1, &low, NULL) ||
            !g_ascii_string_to_unsigned(dash != NULL ? dash + 1 : first, 10, low, (guint64)ranks - 1, &high,
                                        NULL)) {
            orr_fail(error, ORR_ERROR_INPUT, "--ranks: \"%s\" is not a rank or range of ranks from 0 to %d",
                     *word, ranks - 1);
            g_free(wanted);
            return NULL;
        }
        for (guint64 rank = low; rank <= high; rank++)
            wanted[rank] = true;
    }
    return wanted;
}

typedef void ReportWriter(const Report *report, const ReportTraceAsk *ask);

/* An error names the flag. */
static CliStream *open_for(const char *flag, const char *path, GError **error)
{
    CliStream *stream = cli_stream_open(path, error);
    if (stream == NULL)
        g_prefix_error(error, "%s: ", flag);
    return stream;
}

/* Streams what `write` says of the asked ranks into `path`; NULL: nothing. */
static bool stream_ranks(const char *flag, const char *path, const RunArgs *args, const Report *report,
                         const Window *window, ReportWriter *write, GError **error)
{
    const int ranks = report->result.ranks;
    if (path == NULL)
        return true;
    g_autofree bool *wanted = args->ranks != NULL ? read_ranks(args->ranks, ranks, error) : NULL;
    if (args->ranks != NULL && wanted == NULL)
        return false;
    CliStream *stream = open_for(flag, path, error);
    if (stream == NULL)
        return false;
    const ReportTraceAsk ask = {.ranks = wanted,
                                .rank_count = ranks,
                                .from_ps = window->from_ps,
                                .to_ps = window->to_ps,
                                .put = cli_stream_put,
                                .data = stream};
    write(report, &ask);
    return cli_stream_close(stream, error);
}

/* One rank's kernels, as a profiler would have recorded them. */
static bool stream_kernels(const RunArgs *args, const Report *report, GError **error)
{
    if (args->trace_kernels == NULL)
        return true;
    CliStream *stream = open_for("--trace-kernels", args->trace_kernels, error);
    if (stream == NULL)
        return false;
    TraceRank *rank = trace_predict(report, 0);
    trace_rank_write(rank, cli_stream_put, stream);
    trace_rank_free(rank);
    return cli_stream_close(stream, error);
}

static bool put_chakra(const char *name, const GString *content, void *data, GError **error)
{
    g_autofree char *path = g_build_filename(data, name, NULL);
    return orr_file_write(path, content->str, content->len, error);
}

/* A file a rank into a folder, which is made. */
static bool write_chakra(const RunArgs *args, const Report *report, GError **error)
{
    if (args->chakra == NULL)
        return true;
    if (g_mkdir_with_parents(args->chakra, 0777) != 0)
        return orr_fail(error, ORR_ERROR_INPUT, "--chakra: %s: cannot make this folder: %s", args->chakra,
                        g_strerror(errno));
    const ChakraAsk ask = {.all = args->unfold, .put = put_chakra, .data = args->chakra};
    if (chakra_write(report, &ask, error))
        return true;
    g_prefix_error(error, "--chakra: ");
    return false;
}

static bool write_simai(const RunArgs *args, const Report *report, GString *out, GError **error)
{
    if (args->simai == NULL || simai_write(report, out, error))
        return true;
    g_prefix_error(error, "--simai: ");
    return false;
}

static bool write_program(const RunArgs *args, const Report *report, GError **error)
{
    if (args->program == NULL)
        return true;
    CliStream *stream = open_for("--program", args->program, error);
    if (stream == NULL)
        return false;
    const ProgramText text = program_text_of(report);
    program_text_write(&text, report->spec->model.name, cli_stream_put, stream);
    return cli_stream_close(stream, error);
}

static void write_memory(const Report *report, const MemoryWanted *wanted, GString *out)
{
    if (wanted->parts)
        report_write_memory_parts(report, wanted->by, wanted->steps, out);
    else
        report_write_memory(report, wanted->steps, out);
}

/* On a terminal unless NO_COLOR is set; anywhere with CLICOLOR_FORCE, as `watch --color` needs. */
static bool paints(const char *output)
{
    const char *no = g_getenv("NO_COLOR"), *force = g_getenv("CLICOLOR_FORCE");
    if (no != NULL && no[0] != '\0')
        return false;
    if (force != NULL && force[0] != '\0' && !g_str_equal(force, "0"))
        return true;
    return output == NULL && isatty(STDOUT_FILENO) != 0;
}

/* $COLUMNS also on a pipe, which `watch` is. */
static int timeline_width(void)
{
    const char *columns = g_getenv("COLUMNS");
    guint64 width = 0;
    return columns != NULL && g_ascii_string_to_unsigned(columns, 10, 40, 400, &width, NULL)
               ? (int)width
               : report_page_width();
}

/* The memory goes where a text report goes, behind it. */
static bool is_behind(const RunArgs *args)
{
    const char *report = args->common.output;
    return args->memory != NULL && strcmp(args->memory, "-") == 0 &&
           (report == NULL || strcmp(report, "-") == 0) && args->common.format == CLI_FORMAT_TEXT;
}

/* What --kernels and --links ask for, where the scenario has such a thing. */
static bool write_lists(const RunArgs *args, const Report *report, GString *kernels, GString *links,
                        GError **error)
{
    if (args->kernels != NULL && report->spec->model.list.text != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "run: --kernels lists the kernels of a transformer; "
                        "model.layers is a list of layers: leave --kernels out");
    if (args->links != NULL && !report->network.on)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "run: --links lists the links of a fabric; add --set cluster.network.fidelity=flow");
    if (args->kernels != NULL)
        report_write_kernels(report, kernels);
    if (args->links != NULL)
        report_write_links(report, links);
    return true;
}

/* The loop where the scenario is one, else the step. */
static void write_answer(const ApiSimulation *simulation, int format, GString *text)
{
    if (simulation->workload == NULL)
        report_write(&simulation->report, format, text);
    else if (format == CLI_FORMAT_JSON)
        workload_write_json(simulation->workload, &simulation->source, text);
    else if (format == CLI_FORMAT_CSV)
        workload_write_csv(simulation->workload, text);
    else
        workload_write_text(simulation->workload, text);
}

static ReportOptions asked(const RunArgs *args)
{
    return (ReportOptions){.unfold = args->unfold,
                           .check = args->check,
                           .textbook = args->textbook,
                           .links = args->links != NULL,
                           .record = recording(args)};
}

/* What these write is of a program's step: its fabric, kernels and collectives. */
static bool textbook_fits(const RunArgs *args, GError **error)
{
    const char *const other = !args->textbook         ? NULL
                              : args->links != NULL   ? "--links"
                              : args->kernels != NULL ? "--kernels"
                              : args->trace_kernels   ? "--trace-kernels"
                              : args->chakra != NULL  ? "--chakra"
                              : args->simai != NULL   ? "--simai"
                              : args->program != NULL ? "--program"
                                                      : NULL;
    return other == NULL ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "run: %s writes a program's step, and --textbook has none; leave one of the two out",
                    other);
}

/* What is written first, piece by piece; returns how many. */
static int list_streams(const RunArgs *args, CliOutput *outputs)
{
    const CliOutput streams[] = {{"--trace", args->trace, NULL},
                                 {"--trace-kernels", args->trace_kernels, NULL},
                                 {"--memory-snapshot", args->snapshot, NULL},
                                 {"--program", args->program, NULL}};
    int count = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(streams); i++)
        if (streams[i].path != NULL)
            outputs[count++] = streams[i];
    return count;
}

static bool run(const CliArgs *common, GError **error)
{
    const RunArgs *args = (const RunArgs *)common;
    g_autoptr(GString) memory = g_string_new(NULL), kernels = g_string_new(NULL), links = g_string_new(NULL),
                       text = g_string_new(NULL), simai = g_string_new(NULL);
    CliOutput outputs[9];
    int count = list_streams(args, outputs);
    const int traces = count;
    const bool behind = is_behind(args);
    if (args->memory != NULL && !behind)
        outputs[count++] = (CliOutput){"--memory", args->memory, memory};
    if (args->kernels != NULL)
        outputs[count++] = (CliOutput){"--kernels", args->kernels, kernels};
    if (args->links != NULL)
        outputs[count++] = (CliOutput){"--links", args->links, links};
    if (args->simai != NULL)
        outputs[count++] = (CliOutput){"--simai", args->simai, simai};
    outputs[count++] = (CliOutput){"the report", common->output, text};
    LedgerReserveAsk reserve;
    MemoryWanted wanted;
    Window window = {0, G_MAXINT64};
    if (args->timeline && common->format != CLI_FORMAT_TEXT)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "run: --timeline is for people; leave --format out, or take --trace or 'orrery plot'");
    if (!ledger_reserve_parse(args->memory_reserve, &reserve, error) || !read_wanted(args, &wanted, error) ||
        !read_window(args, &window, error) || !textbook_fits(args, error) ||
        !cli_outputs_check(outputs, count, error))
        return false;

    const ReportOptions options = asked(args);
    const ApiInput input = {.path = common->words[0], .own_runs = args->own_runs, .loops = true};
    ApiSimulation *simulation = api_simulate_input(&input, common->sets, &reserve, &options, error);
    if (simulation == NULL)
        return false;
    if (!args->ideal && !args->textbook && !api_simulation_live(common->words[0], simulation, error)) {
        api_simulation_free(simulation);
        return false;
    }
    const Report *report = &simulation->report;
    simulation->report.verbose = args->verbose;
    if (args->memory != NULL)
        write_memory(report, &wanted, memory);
    if (!write_lists(args, report, kernels, links, error) || !write_simai(args, report, simai, error)) {
        api_simulation_free(simulation);
        return false;
    }
    write_answer(simulation, (int)common->format, text);
    if (args->timeline)
        plot_terminal(report, timeline_width(), paints(common->output), text);
    if (behind)
        g_string_append_printf(text, "\n%s", memory->str);
    const bool ok = stream_ranks("--trace", args->trace, args, report, &window, report_write_trace, error) &&
                    stream_kernels(args, report, error) && write_chakra(args, report, error) &&
                    stream_ranks("--memory-snapshot", args->snapshot, args, report, &window,
                                 report_write_snapshot, error) &&
                    write_program(args, report, error) &&
                    cli_outputs_write_after(outputs, count, traces, error);
    if (ok && args->check)
        cli_note(common->quiet, "orrery: every invariant holds for %d ranks and %" G_GINT64_FORMAT " ops",
                 report->result.ranks, report->result.ops);
    api_simulation_free(simulation);
    return ok;
}

static const CliFlag flags[] = {
    {"trace", CLI_FLAG_FILE, offsetof(RunArgs, trace), "FILE",
     "also write a Chrome trace (open it in ui.perfetto.dev); as gzip where FILE ends in .gz"},
    {"trace-kernels", CLI_FLAG_FILE, offsetof(RunArgs, trace_kernels), "FILE",
     "also write the kernels of one GPU of the first pipeline rank as PyTorch's profiler records them "
     "(Kineto); "
     "'orrery trace' and tools for such traces read it"},
    {"chakra", CLI_FLAG_FILE, offsetof(RunArgs, chakra), "FOLDER",
     "also write Chakra execution traces, as ASTRA-sim reads them: one rank of each pipeline rank, with "
     "--unfold all "
     "ranks"},
    {"simai", CLI_FLAG_FILE, offsetof(RunArgs, simai), "FILE",
     "also write the workload text that SimAI runs, of the first pipeline rank"},
    {"program", CLI_FLAG_FILE, offsetof(RunArgs, program), "FILE",
     "also write the simulated program as text (ops, streams, waits, collectives); 'orrery replay' runs it"},
    {"ranks", CLI_FLAG_TEXT, offsetof(RunArgs, ranks), "LIST",
     "--trace, --memory-snapshot: only these ranks, as 0-3,8"},
    {"from", CLI_FLAG_TEXT, offsetof(RunArgs, from), "TIME", "--trace: only what runs after, as \"1.5 s\""},
    {"to", CLI_FLAG_TEXT, offsetof(RunArgs, to), "TIME", "--trace: only what runs before"},
    {"memory", CLI_FLAG_SHOWN, offsetof(RunArgs, memory), "FILE",
     "also write the memory of every rank over time as CSV; without FILE it follows the text"},
    {"by", CLI_FLAG_TEXT, offsetof(RunArgs, by), "WHAT",
     "--memory: what each pipeline rank's peak is made of instead, by layer or by tensor; with --steps, what "
     "it holds "
     "of each from change to change"},
    {"steps", CLI_FLAG_TEXT, offsetof(RunArgs, steps), "N",
     "--memory: over the first N steps of training; the first one lacks the optimizer's moments"},
    {"memory-snapshot", CLI_FLAG_FILE, offsetof(RunArgs, snapshot), "FILE",
     "also write every allocation and free of the step, in the shape of PyTorch's memory snapshots, as JSON; "
     "as gzip where "
     "FILE ends in .gz"},
    {"kernels", CLI_FLAG_FILE, offsetof(RunArgs, kernels), "FILE",
     "also write every kernel and collective of a layer, the embedding and the head as CSV: size, seconds, "
     "FLOP/s"},
    {"links", CLI_FLAG_FILE, offsetof(RunArgs, links), "FILE",
     "on a fabric (cluster.network.fidelity flow), also write what every link carries as CSV"},
    CLI_FLAG_OWN_RUNS(RunArgs),
    CLI_FLAG_MEMORY_RESERVE(RunArgs),
    {"unfold", CLI_FLAG_SWITCH, offsetof(RunArgs, unfold), NULL,
     "simulate every rank on its own instead of one of each kind (same answer, slower)"},
    {"timeline", CLI_FLAG_SWITCH, offsetof(RunArgs, timeline), NULL,
     "in text, also draw what every pipeline rank does when, as wide as the terminal"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(RunArgs, ideal), NULL,
     "days and costs of computing alone: no failures, checkpoints and restarts"},
    {"textbook", CLI_FLAG_SWITCH, offsetof(RunArgs, textbook), NULL,
     "the step of textbooks: stages all alike, and nothing but their passes"},
    {"verbose", CLI_FLAG_SWITCH, offsetof(RunArgs, verbose), NULL, "in text, every field that was defaulted"},
    {"check", CLI_FLAG_SWITCH, offsetof(RunArgs, check), NULL, "verify the invariants of the simulated step"},
};

const CliCommand cli_command_run = {
    .name = "run",
    .usage = "SCENARIO.json",
    .summary = "simulate one training step: time, MFU, bubbles, memory",
    .help = "Simulates one training step of the scenario. Reports the step time and where it goes, "
            "tokens per second, MFU and HFU, the pipeline bubble, and the memory of every pipeline "
            "stage. A configuration that does not fit in memory is a result: the report says so and by "
            "how much. A scenario is a file, \"-\" (standard input), or the name of an example: `orrery "
            "list examples`.\n\n"
            "  orrery run gpt3-175b\n"
            "  orrery run gpt3.json --set parallel.tensor=4 --set parallel.pipeline=16\n"
            "  orrery run gpt3.json --format json --output report.json --trace trace.json.gz\n"
            "  orrery run gpt3.json --memory --by layer\n"
            "  orrery run gpt3.json --memory memory.csv --steps 4\n"
            "  orrery run gpt3.json --memory layers.csv --steps 2 --by layer\n"
            "  orrery search gpt3.json --set parallel.tensor=auto --save - --output search.txt | orrery "
            "run -\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .formats = &report_words_format,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(RunArgs),
    .run = run,
};
