/* cli/cmd_validate.c - orrery validate: published measurements replayed, predicted beside measured. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "report/validate.h"
#include "search/choose.h"

typedef struct ValidateArgs {
    CliArgs common;
    gboolean rows;
} ValidateArgs;

static void show_progress(int done, int total, void *data)
{
    (void)data;
    fprintf(stderr, "\r%d of %d runs%s", done, total, done == total ? "\n" : "");
}

static bool run(const CliArgs *common, GError **error)
{
    const ValidateArgs *args = (const ValidateArgs *)common;
    const int count = (int)g_strv_length(common->words);
    const bool terminal = !common->quiet && isatty(STDERR_FILENO) != 0;
    ValidateLedger ledger;
    if (!validate_files((const char *const *)common->words, count, (const char *const *)common->sets,
                        search_choose, terminal ? show_progress : NULL, NULL, &ledger, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    if (common->format == CLI_FORMAT_JSON)
        validate_write_json(&ledger, out);
    else if (common->format == CLI_FORMAT_CSV)
        validate_write_csv(&ledger, out);
    else
        validate_write_text(&ledger, args->rows, out);
    validate_clear(&ledger);
    return cli_output_write(common->output, out, error);
}

static const CliFlag flags[] = {
    {"rows", CLI_FLAG_SWITCH, offsetof(ValidateArgs, rows), NULL,
     "in text, every run and not only each source"},
};

const CliCommand cli_command_validate = {
    .name = "validate",
    .usage = "FILE...",
    .summary = "replay published measurements: predicted beside measured",
    .help =
        "Simulates every run of the measurement files and sets the prediction beside what was published: the "
        "error of each source and of all together. A run that cannot be simulated is counted as skipped, "
        "with "
        "its reason.\n"
        "\n"
        "  orrery validate scenarios/measurements/*.json\n"
        "  orrery validate runs.json --rows\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = -1,
    .args_size = sizeof(ValidateArgs),
    .run = run,
};
