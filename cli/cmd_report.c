/* cli/cmd_report.c - orrery report: one HTML page that shows a scenario. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "api/page.h"
#include "cli/commands.h"
#include "cli/output.h"

typedef struct ReportArgs {
    CliArgs common;
    char *own_runs;
    char *compare, *memory_reserve, *max_seconds;
    gboolean no_search, ideal;
} ReportArgs;

static char *command_line(const ReportArgs *args)
{
    GString *line = g_string_new("orrery report ");
    g_string_append(line, args->common.words[0]);
    for (char **set = args->common.sets; set != NULL && *set != NULL; set++)
        g_string_append_printf(line, " --set %s", *set);
    if (args->ideal)
        g_string_append(line, " --ideal");
    if (args->compare != NULL)
        g_string_append_printf(line, " --compare %s", args->compare);
    return g_string_free(line, FALSE);
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
        return orr_fail(error, ORR_ERROR_INPUT, "--max-seconds: \"%s\" is not a number of seconds above 0",
                        text);
    *ret_seconds = seconds;
    return true;
}

static bool show_progress(double done_frac, void *data)
{
    (void)data;
    fprintf(stderr, done_frac < 1 ? "\r\033[Ksearching: %.0f%%" : "\r\033[K", 100 * done_frac);
    return true;
}

static bool run(const CliArgs *common, GError **error)
{
    const ReportArgs *args = (const ReportArgs *)common;
    const bool terminal = !common->quiet && isatty(STDERR_FILENO) != 0;
    g_autofree char *command = command_line(args);
    ApiPageAsk ask = {.input = {.path = common->words[0], .own_runs = args->own_runs, .loops = true},
                      .sets = common->sets,
                      .compare = args->compare,
                      .command = command,
                      .ideal = args->ideal != FALSE,
                      .search = !args->no_search,
                      .seconds = 10,
                      .progress = terminal ? show_progress : NULL};
    g_autoptr(GString) out = g_string_new(NULL);
    g_autofree char *output =
        common->output != NULL ? g_strdup(common->output) : default_output(common->words[0]);
    if (!ledger_reserve_parse(args->memory_reserve, &ask.reserve, error) ||
        !read_seconds(args->max_seconds, &ask.seconds, error) || !api_page(&ask, out, error) ||
        !cli_output_write(output, out, error))
        return false;
    if (!g_str_equal(output, "-"))
        cli_note(common->quiet, "orrery: wrote %s", output);
    return true;
}

static const CliFlag flags[] = {
    CLI_FLAG_OWN_RUNS(ReportArgs),
    {"compare", CLI_FLAG_FILE, offsetof(ReportArgs, compare), "OTHER.json",
     "also a second scenario side by side, and what each field that differs does alone"},
    {"no-search", CLI_FLAG_SWITCH, offsetof(ReportArgs, no_search), NULL,
     "leave out other configurations: degrees, the front of time and memory, ways to deal GPUs"},
    {"max-seconds", CLI_FLAG_TEXT, offsetof(ReportArgs, max_seconds), "S", "for that search (default: 10)"},
    {"ideal", CLI_FLAG_SWITCH, offsetof(ReportArgs, ideal), NULL,
     "days of computing alone, without failures and checkpoints"},
    CLI_FLAG_MEMORY_RESERVE(ReportArgs),
};

const CliCommand cli_command_report = {
    .name = "report",
    .usage = "SCENARIO.json",
    .summary = "one HTML page to show: the answer, pictures, what would help, what it rests on",
    .help =
        "Writes one self-contained page to --output (default: NAME.html): no network, no files "
        "beside it; light, dark and print. The page begins with the answer in a sentence and its "
        "interval. The configuration and where the time goes, down to kernels, follow, with pipeline "
        "and memory as pictures to zoom into. Then come what single changes would bring, the best of "
        "every pair of tensor and pipeline degrees, and time against memory. Every profile is listed "
        "with its source. Of a loop of reinforcement learning the page shows which GPUs work when and what "
        "would help. It ends with the best ways to deal the GPUs to training and generation.\n\n"
        "  orrery report scenarios/examples/gpt3-175b.json --output gpt3.html\n"
        "  orrery report scenarios/examples/rl-grpo-qwen3-30b-a3b-h100.json\n"
        "  orrery report gpt3.json --compare scenarios/examples/gpt3-175b-interleaved.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = 1,
    .args_size = sizeof(ReportArgs),
    .run = run,
};
