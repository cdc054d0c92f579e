/* cli/cmd_report.c - orrery report: one HTML page that shows a scenario. */
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/report_search.h"
#include "cli/simulate.h"
#include "plots/plots.h"

typedef struct ReportArgs {
    CliArgs common;
    char *compare, *memory_reserve, *max_seconds;
    gboolean no_search;
} ReportArgs;

static ExplainLoss largest_loss(const Report *report)
{
    PlotLoss losses[PLOT_LOSS_COUNT];
    int largest = 0;
    plot_losses(report, losses);
    for (int i = 1; i < PLOT_LOSS_COUNT; i++)
        if (losses[i].frac > losses[largest].frac)
            largest = i;
    return (ExplainLoss){losses[largest].label, losses[largest].frac};
}

/* --- where the numbers come from --- */

static void profile_clear(void *data)
{
    HtmlProfile *profile = data;
    g_free(profile->name);
    g_free(profile->hash);
    g_free(profile->source);
}

/* What the profile's file says in "source"; empty where it cannot be read any more. */
static char *read_source(const char *name)
{
    g_autofree char *folder = orr_scenarios_dir(NULL), *file = g_strconcat(name, ".json", NULL);
    g_autofree char *path = folder != NULL ? g_build_filename(folder, file, NULL) : NULL;
    g_autofree char *text = NULL;
    if (path == NULL || !g_file_get_contents(path, &text, NULL, NULL))
        return g_strdup("");
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), name, NULL);
    char *source = g_strdup(doc != NULL ? orr_json_text_of(orr_json_root(doc), "source", "") : "");
    if (doc != NULL)
        orr_json_free(doc);
    return source;
}

/* From "accelerators/a100-sxm4-80gb 1f2e...". */
static GArray *list_profiles(const SpecSource *source)
{
    GArray *profiles = g_array_new(FALSE, TRUE, sizeof(HtmlProfile));
    g_array_set_clear_func(profiles, profile_clear);
    for (guint i = 0; source->profiles != NULL && i < source->profiles->len; i++) {
        g_auto(GStrv) words = g_strsplit(g_ptr_array_index(source->profiles, i), " ", 2);
        const HtmlProfile profile = {g_strdup(words[0]), g_strdup(words[1] != NULL ? words[1] : ""),
                                     read_source(words[0])};
        g_array_append_val(profiles, profile);
    }
    return profiles;
}

/* --- the page --- */

static char *command_line(const ReportArgs *args)
{
    GString *line = g_string_new("orrery report ");
    g_string_append(line, args->common.words[0]);
    for (char **set = args->common.sets; set != NULL && *set != NULL; set++)
        g_string_append_printf(line, " --set %s", *set);
    if (args->compare != NULL)
        g_string_append_printf(line, " --compare %s", args->compare);
    return g_string_free(line, FALSE);
}

static bool write_page(const ReportArgs *args, const CliSimulation *simulation, const CliSimulation *other,
                       double seconds, GString *out)
{
    const Report *report = &simulation->report;
    const ExplainLoss largest = largest_loss(report);
    const char *const names[2] = {args->common.words[0], args->compare};
    Explanation explanation = report_explain(report);
    Comparison comparison = {0};
    CliOthers others = {0};
    g_autofree char *command = command_line(args);
    GArray *profiles = list_profiles(&simulation->source);
    if (other != NULL)
        comparison = report_compare(report, &other->report, names, true);
    if (!args->no_search)
        others = cli_report_search(args->common.words[0], args->common.sets, report, report->reserve_bytes,
                                   seconds, args->common.quiet);
    const HtmlInput input = {.report = report,
                             .command = command,
                             .explanation = &explanation,
                             .largest = &largest,
                             .comparison = other != NULL ? &comparison : NULL,
                             .cells = others.cells,
                             .front = others.front,
                             .search_note = others.note,
                             .profiles = profiles};
    html_write(&input, out);
    g_array_free(profiles, TRUE);
    report_explain_clear(&explanation);
    if (other != NULL)
        report_compare_clear(&comparison);
    if (!args->no_search)
        cli_others_clear(&others);
    return true;
}

/* "gpt3-175b.html" for scenarios/examples/gpt3-175b.json. */
static char *default_output(const char *scenario)
{
    g_autofree char *name = g_path_get_basename(g_str_equal(scenario, "-") ? "report" : scenario);
    if (g_str_has_suffix(name, ".json"))
        name[strlen(name) - strlen(".json")] = '\0';
    return g_strconcat(name, ".html", NULL);
}

static bool read_seconds(const char *text, double *ret_seconds, GError **error)
{
    char *end = NULL;
    if (text == NULL)
        return true;
    const double seconds = g_ascii_strtod(text, &end);
    if (end == text || *end != '\0' || !(seconds > 0) || seconds > 1e6)
        return orr_fail(error, ORR_ERROR_INPUT, "--max-seconds: \"%s\" is no number of seconds above 0",
                        text);
    *ret_seconds = seconds;
    return true;
}

static bool run(const CliArgs *common, GError **error)
{
    const ReportArgs *args = (const ReportArgs *)common;
    const ReportOptions options = {.record = SIM_RECORD_SPANS | SIM_RECORD_LEVELS}, plain = {0};
    LedgerReserveAsk reserve;
    double seconds = 10;
    if (!ledger_reserve_parse(args->memory_reserve, &reserve, error) ||
        !read_seconds(args->max_seconds, &seconds, error))
        return false;
    CliSimulation *simulation =
        cli_simulate_reserved(common->words[0], common->sets, &reserve, &options, error);
    CliSimulation *other = simulation != NULL && args->compare != NULL
                               ? cli_simulate_reserved(args->compare, NULL, &reserve, &plain, error)
                               : NULL;
    bool ok = simulation != NULL && (args->compare == NULL || other != NULL);
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *output =
        common->output != NULL ? g_strdup(common->output) : default_output(common->words[0]);
    ok = ok && write_page(args, simulation, other, seconds, out) && cli_output_write(output, out, error);
    if (ok && !g_str_equal(output, "-"))
        cli_note(common->quiet, "orrery: wrote %s", output);
    cli_simulation_free(simulation);
    cli_simulation_free(other);
    return ok;
}

static const CliFlag flags[] = {
    {"compare", CLI_FLAG_FILE, offsetof(ReportArgs, compare), "OTHER.json",
     "also a second scenario side by side, and what each field that differs does alone"},
    {"no-search", CLI_FLAG_SWITCH, offsetof(ReportArgs, no_search), NULL,
     "leave out the map of tensor and pipeline degrees and the front of time and memory"},
    {"max-seconds", CLI_FLAG_TEXT, offsetof(ReportArgs, max_seconds), "S", "for that search (default: 10)"},
    CLI_FLAG_MEMORY_RESERVE(ReportArgs),
};

const CliCommand cli_command_report = {
    .name = "report",
    .usage = "SCENARIO.json",
    .summary = "one HTML page to show: the answer, pictures, what would help, what it rests on",
    .help =
        "Writes one self-contained page (no network, no files beside it; light, dark and print) to --output "
        "(default: NAME.html): the answer in a sentence and its interval, the configuration, where the time "
        "goes "
        "down to kernels, the pipeline and memory as pictures to zoom into, what single changes would bring, "
        "the "
        "best of every pair of tensor and pipeline degrees, time against memory, and every profile with its "
        "source.\n"
        "\n"
        "  orrery report scenarios/examples/gpt3-175b.json --output gpt3.html\n"
        "  orrery report gpt3.json --compare scenarios/examples/gpt3-175b-interleaved.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ReportArgs),
    .run = run,
};
