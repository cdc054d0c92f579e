/* cli/cmd_validate.c - orrery validate: published measurements replayed, predicted beside measured. */
#include <stdio.h>
#include <unistd.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "plots/plots.h"
#include "ledger/ablation.h"
#include "ledger/family.h"
#include "ledger/few_shot.h"
#include "search/choose.h"

typedef struct ValidateArgs {
    CliArgs common;
    char *residuals, *plot;
    gboolean rows, leave_one_out, leave_family_out, reserve, defaults, few_shot, ablations;
} ValidateArgs;

static void show_progress(int done, int total, void *data)
{
    (void)data;
    fprintf(stderr, "\r%d of %d runs%s", done, total, done == total ? "\n" : "");
}

static void write_ledger(const Ledger *ledger, const ValidateArgs *args, GString *out)
{
    const bool json = args->common.format == CLI_FORMAT_JSON;
    if (args->few_shot && json)
        ledger_write_few_shot_json(ledger, out);
    else if (args->few_shot)
        ledger_write_few_shot_text(ledger, out);
    else if (args->ablations && json)
        ledger_write_ablations_json(ledger, out);
    else if (args->ablations)
        ledger_write_ablations_text(ledger, args->rows, out);
    else if (json)
        ledger_write_json(ledger, out);
    else if (args->common.format == CLI_FORMAT_CSV)
        ledger_write_csv(ledger, out);
    else if (args->reserve)
        ledger_write_reserve(ledger, out);
    else if (args->leave_one_out)
        ledger_write_left_out(ledger, out);
    else
        ledger_write_text(ledger, args->rows, out);
}

static bool draw(const Ledger *ledger, const ValidateArgs *args, GError **error)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(PlotMeasured));
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        const LedgerSource *source = ledger->sources->pdata[row->source];
        const PlotMeasured point = {.source = row->source,
                                    .name = source->file,
                                    .id = row->id,
                                    .measured_s = row->measured_step_s,
                                    .predicted_s = row->predicted_step_s};
        if (row->skipped == NULL && row->measured_step_s > 0)
            g_array_append_val(points, point);
    }
    GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
    const PlotTarget target = {.folder = args->plot, .files = files};
    const bool ok = plot_ledger((const PlotMeasured *)(const void *)points->data, (int)points->len,
                                (int)ledger->sources->len, &target, error);
    for (guint i = 0; ok && i < files->len; i++)
        cli_note(args->common.quiet, "wrote %s", (const char *)files->pdata[i]);
    g_ptr_array_unref(files);
    g_array_unref(points);
    return ok;
}

static bool write_all(Ledger *ledger, const ValidateArgs *args, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL), residuals = g_string_new(NULL);
    CliOutput outputs[2];
    int count = 0;
    if (args->residuals != NULL) {
        ledger_residuals_write(ledger->residuals, residuals);
        outputs[count++] = (CliOutput){"--residuals", args->residuals, residuals};
    }
    outputs[count++] = (CliOutput){"the table", args->common.output, out};
    if (args->leave_one_out && !ledger_leave_one_out(ledger, error))
        return false;
    write_ledger(ledger, args, out);
    return (args->plot == NULL || draw(ledger, args, error)) && cli_outputs_write(outputs, count, error);
}

/* The same files with `more` settings. */
static bool replay_with(const CliArgs *common, const char *const *more, Ledger *ret_ledger, GError **error)
{
    g_autoptr(GPtrArray) sets = g_ptr_array_new();
    for (char **set = common->sets; set != NULL && *set != NULL; set++)
        g_ptr_array_add(sets, *set);
    for (const char *const *set = more; *set != NULL; set++)
        g_ptr_array_add(sets, (gpointer)*set);
    g_ptr_array_add(sets, NULL);
    return ledger_replay((const char *const *)common->words, (int)g_strv_length(common->words),
                         (const char *const *)sets->pdata, search_choose, NULL, NULL, ret_ledger, error);
}

/* With their software's defaults; `stated` is the replay of what they say. */
static bool write_defaults(const Ledger *stated, const ValidateArgs *args, GError **error)
{
    Ledger defaults;
    if (!replay_with(&args->common, ledger_defaults_sets, &defaults, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    if (args->common.format == CLI_FORMAT_JSON)
        ledger_write_defaults_json(stated, &defaults, out);
    else
        ledger_write_defaults_text(stated, &defaults, out);
    ledger_clear(&defaults);
    return cli_output_write(args->common.output, out, error);
}

/* As if nobody had read their software. */
static bool write_families(const Ledger *stated, const ValidateArgs *args, GError **error)
{
    Ledger unknown;
    if (!replay_with(&args->common, ledger_family_sets, &unknown, error))
        return false;
    g_autoptr(GString) out = g_string_new(NULL);
    g_autoptr(GArray) families = ledger_leave_family_out(stated, &unknown, error);
    if (families != NULL && args->common.format == CLI_FORMAT_JSON)
        ledger_write_families_json(families, out);
    else if (families != NULL)
        ledger_write_families_text(families, out);
    ledger_clear(&unknown);
    return families != NULL && cli_output_write(args->common.output, out, error);
}

/* What --set says fits no row at all: most likely it is misspelt. */
static bool fits_some(const Ledger *ledger, char **sets, GError **error)
{
    const LedgerRow *first = NULL;
    for (guint i = 0; i < ledger->rows->len; i++) {
        const LedgerRow *row = ledger->rows->pdata[i];
        if (row->skipped == NULL)
            return true;
        first = first != NULL ? first : row;
    }
    return sets == NULL || first == NULL ||
           orr_fail(error, ORR_ERROR_INPUT, "--set %s: no row can be replayed with it; the first: %s",
                    sets[0], first->skipped);
}

/* Views of the replayed runs: one at a time. */
static bool shows_one(const ValidateArgs *args, GError **error)
{
    const struct {
        const char *flag;
        gboolean given;
    } views[] = {{"--leave-one-out", args->leave_one_out},
                 {"--leave-family-out", args->leave_family_out},
                 {"--reserve", args->reserve},
                 {"--software-defaults", args->defaults},
                 {"--few-shot", args->few_shot},
                 {"--ablations", args->ablations}};
    const char *first = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(views); i++) {
        if (views[i].given && first != NULL)
            return orr_fail(error, ORR_ERROR_INPUT, "validate: %s and %s are two views; give one of them",
                            first, views[i].flag);
        first = views[i].given ? views[i].flag : first;
    }
    return first == NULL || args->common.format != CLI_FORMAT_CSV ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "validate: --format csv is a table of runs, which %s does not print; give text or json",
                    first);
}

static bool run(const CliArgs *common, GError **error)
{
    const ValidateArgs *args = (const ValidateArgs *)common;
    if (!shows_one(args, error))
        return false;
    const CliOutput outputs[] = {{"--residuals", args->residuals, NULL}, {"the table", common->output, NULL}};
    const int skip = args->residuals == NULL ? 1 : 0;
    const int count = (int)g_strv_length(common->words);
    const bool terminal = !common->quiet && isatty(STDERR_FILENO) != 0;
    Ledger ledger;
    if (!cli_outputs_check(outputs + skip, (int)G_N_ELEMENTS(outputs) - skip, error) ||
        !ledger_replay((const char *const *)common->words, count, (const char *const *)common->sets,
                       search_choose, terminal ? show_progress : NULL, NULL, &ledger, error))
        return false;
    for (guint i = 0; i < ledger.rows->len; i++) {
        const LedgerRow *row = ledger.rows->pdata[i];
        if (row->note != NULL)
            cli_note(common->quiet, "orrery: %s; the row is replayed without it", row->note);
    }
    const bool ok = fits_some(&ledger, common->sets, error) &&
                    (args->defaults           ? write_defaults(&ledger, args, error)
                     : args->leave_family_out ? write_families(&ledger, args, error)
                                              : write_all(&ledger, args, error));
    ledger_clear(&ledger);
    return ok;
}

static const CliFlag flags[] = {
    {"rows", CLI_FLAG_SWITCH, offsetof(ValidateArgs, rows), NULL,
     "in text, every run and not only each source"},
    {"leave-one-out", CLI_FLAG_SWITCH, offsetof(ValidateArgs, leave_one_out), NULL,
     "intervals of each source made from the other sources alone: coverage and width"},
    {"leave-family-out", CLI_FLAG_SWITCH, offsetof(ValidateArgs, leave_family_out), NULL,
     "each family of software as if it were unknown: by the profile generic, with intervals from the "
     "other families"},
    {"reserve", CLI_FLAG_SWITCH, offsetof(ValidateArgs, reserve), NULL,
     "the memory that run, search and plan keep free: of each framework, and how many runs it covers"},
    {"software-defaults", CLI_FLAG_SWITCH, offsetof(ValidateArgs, defaults), NULL,
     "the error of each source, and of the same rows with attention, overlap, compiler and graphs "
     "left to "
     "the framework's defaults"},
    {"few-shot", CLI_FLAG_SWITCH, offsetof(ValidateArgs, few_shot), NULL,
     "the error of each run corrected by 1, 2, 3, 5 or 10 others of its source (run --own-runs does it with "
     "yours)"},
    {"ablations", CLI_FLAG_SWITCH, offsetof(ValidateArgs, ablations), NULL,
     "pairs of runs that differ in one switch: predicted and measured gain; with --rows every pair"},
    {"residuals", CLI_FLAG_FILE, offsetof(ValidateArgs, residuals), "FILE",
     "write how far each run lay from its prediction: what intervals and memory reserves are made from"},
    {"plot", CLI_FLAG_FILE, offsetof(ValidateArgs, plot), "DIR",
     "draw predicted against measured with gnuplot: ledger.png and ledger.csv"},
};

const CliCommand cli_command_validate = {
    .name = "validate",
    .usage = "FILE...",
    .summary = "replay published measurements: predicted against measured",
    .help = "Simulates every run of the measurement files and compares the prediction with what was "
            "published: the "
            "error of each source and of all together. A run that cannot be simulated is counted as skipped, "
            "with "
            "its reason.\n"
            "\n"
            "  orrery validate scenarios/measurements/*.json\n"
            "  orrery validate runs.json --rows\n"
            "  orrery validate scenarios/measurements/*.json --leave-one-out\n"
            "\n"
            "The intervals that run prints, and the picture, are made anew with\n"
            "\n"
            "  orrery validate scenarios/measurements/*.json scenarios/blind/*.json --residuals "
            "scenarios/residuals.json\n"
            "  orrery validate scenarios/measurements/*.json --plot docs/images\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 1,
    .max_words = -1,
    .args_size = sizeof(ValidateArgs),
    .run = run,
};
