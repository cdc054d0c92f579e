/* cli/cmd_calibrate.c - orrery calibrate: measured tables to fitted profiles, and the error of the fitted ones.
 *
 * Measuring itself is the program orrery-calibrate, built where there is CUDA; `calibrate` without a table
 * runs it. fit and check need no GPU.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "calibrate/fit/check.h"
#include "calibrate/fit/collectives.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/lint.h"
#include "calibrate/fit/merge.h"
#include "calibrate/fit/recorded.h"
#include "calibrate/fit/table.h"
#include "cli/cmd_calibrate_steps.h"
#include "cli/listing.h"
#include "cli/output.h"
#include "cli/sweep_page.h"
#include "plots/plots.h"

typedef struct CalibrateArgs {
    CliArgs common;
    char *accelerator, *cluster, *presets, *folds, *plot, *page;
    gboolean rows, strict, quick, full, svg;
} CalibrateArgs;

static bool fail(GError **error, const char *message)
{
    g_set_error_literal(error, ORR_ERROR, ORR_ERROR_INPUT, message);
    return false;
}

/* The program beside this one, else on the path; it takes over. */
static bool measure(const CalibrateArgs *args, GError **error)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *folder = self != NULL ? g_path_get_dirname(self) : NULL;
    g_autofree char *beside = folder != NULL ? g_build_filename(folder, "orrery-calibrate", NULL) : NULL;
    g_autofree char *program = beside != NULL && g_file_test(beside, G_FILE_TEST_IS_EXECUTABLE)
                                   ? g_strdup(beside)
                                   : g_find_program_in_path("orrery-calibrate");
    if (program == NULL)
        return fail(
            error,
            "orrery-calibrate is not here: it is built where a CUDA compiler is found; a table measured "
            "elsewhere is fitted by `orrery calibrate fit TABLE`");
    char *argv[6] = {program};
    int count = 1;
    if (args->quick || args->full)
        argv[count++] = args->full ? "--full" : "--quick";
    if (args->common.output != NULL) {
        argv[count++] = "--output";
        argv[count++] = args->common.output;
    }
    execv(program, argv);
    g_set_error(error, ORR_ERROR, ORR_ERROR_IO, "%s: cannot be run: %s", program, g_strerror(errno));
    return false;
}

/* A number for each group, in the order in which they come. */
static bool draw(const CalibrateArgs *args, const char *table, const GArray *residuals, GError **error)
{
    g_autoptr(GArray) points = g_array_new(FALSE, TRUE, sizeof(PlotMeasured));
    g_autoptr(GPtrArray) names = g_ptr_array_new(), files = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *base = g_path_get_basename(table), *heading = g_strdup_printf("Fit to %s", base);
    for (guint i = 0; i < residuals->len; i++) {
        const CalResidual *row = &g_array_index(residuals, CalResidual, i);
        guint group = 0;
        while (group < names->len && strcmp(g_ptr_array_index(names, group), row->group) != 0)
            group++;
        if (group == names->len)
            g_ptr_array_add(names, (gpointer)row->group);
        const PlotMeasured point = {.source = (int)group,
                                    .name = row->group,
                                    .id = row->what,
                                    .measured_s = row->measured_s,
                                    .predicted_s = row->predicted_s};
        g_array_append_val(points, point);
    }
    const PlotTarget target = {.folder = args->plot, .svg = args->svg, .files = files};
    const bool ok = plot_fit(heading, (const PlotMeasured *)(const void *)points->data, (int)points->len,
                             (int)names->len, &target, error);
    for (guint i = 0; ok && i < files->len; i++)
        cli_note(args->common.quiet, "wrote %s", (const char *)files->pdata[i]);
    return ok;
}

static bool fit(const CalibrateArgs *args, const char *table, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL), log = g_string_new(NULL);
    g_autoptr(GArray) residuals = g_array_new(FALSE, TRUE, sizeof(CalResidual));
    bool ok;
    if (args->svg && args->plot == NULL)
        return fail(error, "--svg goes with --plot; leave it out");
    if (args->plot != NULL && (args->folds != NULL || args->presets != NULL))
        return fail(error, "--plot draws the rows of one fit; leave out --folds and --presets");
    if (args->page != NULL && (args->folds != NULL || args->presets != NULL || cli_is_measured_steps(table)))
        return fail(
            error,
            "--page shows the kernels of one fit; leave out --folds and --presets, and give a table of "
            "kernels or collectives");
    if (args->cluster != NULL && (args->folds != NULL || args->presets != NULL))
        return fail(error, "--cluster is of a network's rows; leave out --folds and --presets");
    if (args->folds != NULL) {
        char *end = NULL;
        const gint64 folds = g_ascii_strtoll(args->folds, &end, 10);
        if (*end != '\0' || folds < 2 || folds > 100 || args->accelerator == NULL)
            return fail(error, "--folds takes a whole number from 2 to 100, and needs --accelerator NAME");
        ok = cal_cross_validate(table, args->accelerator, (int)folds, out, error);
    } else if (cli_is_measured_steps(table)) {
        ok = cli_fit_measured_steps(table, args->accelerator, args->common.sets, residuals, out, log, error);
    } else if (args->presets != NULL) {
        ok = cal_fit_presets(table, args->presets, args->accelerator, out, error);
    } else {
        ok = cal_fit_table(table, args->accelerator, args->cluster, residuals, out, log, error);
    }
    if (!ok)
        return false;
    if (log->len > 0) {
        g_string_truncate(log, log->len - 1);
        cli_note(args->common.quiet, "%s", log->str);
    }
    if (args->page != NULL && !cli_sweep_page(table, args->accelerator, log->str, args->page, error))
        return false;
    if (args->page != NULL)
        cli_note(args->common.quiet, "wrote %s", args->page);
    return (args->plot == NULL || draw(args, table, residuals, error)) &&
           cli_output_write(args->common.output, out, error);
}

static const CliColumn columns[] = {
    {"accelerator", "accelerator", CLI_SHOW_TEXT},
    {"kind", "kind", CLI_SHOW_TEXT},
    {"block", "block", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
    {"rows", "rows", CLI_SHOW_WHOLE},
    {"median_frac", "median", CLI_SHOW_TEXT},
    {"p90_frac", "p90", CLI_SHOW_TEXT},
    {"bias_frac", "bias", CLI_SHOW_TEXT},
    {"neighbours_median_frac", "neighbours", CLI_SHOW_TEXT},
    {"neighbours_p90_frac", "their p90", CLI_SHOW_TEXT},
};

static void add_frac(CliListing *listing, CliFormat format, const char *percent, double frac)
{
    char text[32];
    if (format != CLI_FORMAT_TEXT) {
        cli_listing_number(listing, frac);
        return;
    }
    g_snprintf(text, sizeof text, percent[0] == '+' ? "%+.1f %%" : "%.1f %%", 100 * frac);
    cli_listing_text(listing, text);
}

static void add_near(CliListing *listing, CliFormat format, double frac)
{
    if (frac > 0)
        add_frac(listing, format, "", frac);
    else
        cli_listing_text(listing, "");
}

static bool has_rows(const OrrJson *root, const char *key)
{
    const OrrJson *list = orr_json_member(root, key);
    return list != NULL && orr_json_count(list) > 0;
}

static bool has_kernel_rows(const OrrJson *root)
{
    return has_rows(root, "gemm_measurements") || has_rows(root, "grouped_gemm_measurements") ||
           has_rows(root, "attention_measurements") || has_rows(root, "hbm_stream");
}

static void add_group(CliListing *listing, CliFormat format, const CalCheckGroup *group)
{
    cli_listing_text(listing, group->accelerator);
    cli_listing_text(listing, group->kind);
    cli_listing_text(listing, group->block);
    cli_listing_text(listing, group->source);
    cli_listing_number(listing, group->rows);
    add_frac(listing, format, "", group->median_frac);
    add_frac(listing, format, "", group->p90_frac);
    add_frac(listing, format, "+", group->bias_frac);
    add_near(listing, format, group->near_median_frac);
    add_near(listing, format, group->near_p90_frac);
}

/* Collectives are one line of the listing, and a table by op and source below it in text. */
static bool check_collectives(const CalibrateArgs *args, const OrrJson *root, CliListing *listing,
                              GString *tables, GError **error)
{
    CalCollectiveErrors errors;
    if (!cal_check_collectives(root, args->accelerator, tables, &errors, error))
        return false;
    CalCheckGroup group = {.kind = "collective", .block = "", .rows = errors.rows};
    group.median_frac = errors.median_frac;
    group.p90_frac = errors.p90_frac;
    group.bias_frac = errors.bias_frac;
    g_strlcpy(group.accelerator, args->accelerator != NULL ? args->accelerator : "all",
              sizeof group.accelerator);
    g_strlcpy(group.source, "all", sizeof group.source);
    add_group(listing, args->common.format, &group);
    return true;
}

static bool check_groups(const CalibrateArgs *args, const char *table, const OrrJson *root, GString *out,
                         GString *log, GError **error)
{
    g_autoptr(GArray) groups = NULL;
    g_autoptr(GString) tables = g_string_new(NULL);
    const bool collectives = has_rows(root, "collective_measurements"),
               moves = has_rows(root, "memory_bound_measurements");
    const bool others = collectives || moves || has_rows(root, "copy_measurements");
    if ((has_kernel_rows(root) || !others) && !cal_check_table(table, args->accelerator, &groups, log, error))
        return false;
    if (groups == NULL)
        groups = g_array_new(FALSE, TRUE, sizeof(CalCheckGroup));
    cal_check_moves(root, args->accelerator, groups);
    if (groups->len == 0 && !collectives && has_rows(root, "copy_measurements"))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: holds copies alone, which no preset is compared with; `calibrate fit` takes the "
                        "host's links from them",
                        table);
    if (groups->len == 0 && !collectives)
        return cal_table_no_row(table, args->accelerator, log, error);
    CliListing *listing = cli_listing_new(columns, (int)G_N_ELEMENTS(columns));
    for (guint i = 0; i < groups->len; i++)
        add_group(listing, args->common.format, &g_array_index(groups, CalCheckGroup, i));
    const bool ok = !collectives || check_collectives(args, root, listing, tables, error);
    if (!ok)
        g_prefix_error(error, "%s: ", table);
    if (ok)
        cli_listing_write(listing, args->common.format, out);
    if (ok && args->common.format == CLI_FORMAT_TEXT && tables->len > 0)
        g_string_append_printf(out, "\n%s", tables->str);
    cli_listing_free(listing);
    return ok;
}

static const CliColumn row_columns[] = {
    {"accelerator", "accelerator", CLI_SHOW_TEXT},
    {"source", "source", CLI_SHOW_TEXT},
    {"kind", "kind", CLI_SHOW_TEXT},
    {"block", "block", CLI_SHOW_TEXT},
    {"sizes", "sizes", CLI_SHOW_TEXT},
    {"measured_s", "measured", CLI_SHOW_SECONDS},
    {"error_frac", "error", CLI_SHOW_TEXT},
};

/* Of products, attention and kernels that memory binds: CSV unless JSON is asked for. */
static bool check_rows(const CalibrateArgs *args, const char *table, const OrrJson *root, GString *out,
                       GString *log, GError **error)
{
    g_autoptr(GArray) rows = g_array_new(FALSE, TRUE, sizeof(CalCheckRow));
    const bool moves = has_rows(root, "memory_bound_measurements");
    if ((has_kernel_rows(root) || !moves) && !cal_check_rows(table, args->accelerator, rows, log, error))
        return false;
    cal_check_move_rows(root, args->accelerator, rows);
    if (rows->len == 0)
        return cal_table_no_row(table, args->accelerator, log, error);
    CliListing *listing = cli_listing_new(row_columns, (int)G_N_ELEMENTS(row_columns));
    for (guint i = 0; i < rows->len; i++) {
        const CalCheckRow *row = &g_array_index(rows, CalCheckRow, i);
        const char *const texts[] = {row->accelerator, row->source, row->kind, row->block, row->sizes};
        for (gsize column = 0; column < G_N_ELEMENTS(texts); column++)
            cli_listing_text(listing, texts[column]);
        cli_listing_number(listing, row->measured_s);
        cli_listing_number(listing, row->error_frac);
    }
    const CliFormat format = args->common.format;
    cli_listing_write(listing, format == CLI_FORMAT_TEXT ? CLI_FORMAT_CSV : format, out);
    cli_listing_free(listing);
    return true;
}

static bool check(const CalibrateArgs *args, const char *table, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL), log = g_string_new(NULL);
    OrrJsonDoc *doc = NULL;
    if ((args->strict && !cal_lint_file(table, args->accelerator, error)) ||
        !cal_recorded_open(table, args->accelerator, &doc, NULL, error))
        return false;
    const bool ok = args->rows ? check_rows(args, table, orr_json_root(doc), out, log, error)
                               : check_groups(args, table, orr_json_root(doc), out, log, error);
    orr_json_free(doc);
    if (!ok)
        return false;
    if (log->len > 0) {
        g_string_truncate(log, log->len - 1);
        cli_note(args->common.quiet, "%s", log->str);
    }
    return cli_output_write(args->common.output, out, error);
}

static bool merge(const CalibrateArgs *args, char *const *tables, GError **error)
{
    g_autoptr(GString) out = g_string_new(NULL);
    return cal_merge_tables(tables, out, error) && cli_output_write(args->common.output, out, error);
}

static bool run(const CliArgs *common, GError **error)
{
    const CalibrateArgs *args = (const CalibrateArgs *)common;
    const char *what = common->words != NULL ? common->words[0] : NULL;
    if (what == NULL)
        return measure(args, error);
    const char *table = common->words[1];
    if (table != NULL && strcmp(what, "merge") == 0)
        return merge(args, common->words + 1, error);
    if (table != NULL && common->words[2] != NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "calibrate %s takes one table; `calibrate merge` makes one of several", what);
    if (table != NULL && strcmp(what, "fit") == 0)
        return fit(args, table, error);
    if (table != NULL && strcmp(what, "check") == 0 && cli_is_measured_steps(table))
        return fail(error,
                    "measured training steps are compared by `orrery validate FILE`; check is for tables "
                    "of kernels and collectives");
    if (table != NULL && strcmp(what, "check") == 0)
        return check(args, table, error);
    return fail(
        error,
        "calibrate takes nothing (measure this machine), `fit TABLE`, `check TABLE` or `merge TABLE...`");
}

static const CliFlag flags[] = {
    {"accelerator", CLI_FLAG_TEXT, offsetof(CalibrateArgs, accelerator), "NAME",
     "only this accelerator's rows; what rows are of that do not say"},
    {"cluster", CLI_FLAG_TEXT, offsetof(CalibrateArgs, cluster), "NAME",
     "fit: the cluster whose NICs the rows over nodes used, where the sweep does not say"},
    {"presets", CLI_FLAG_FILE, offsetof(CalibrateArgs, presets), "FOLDER",
     "fit: rewrite the fitted blocks of the accelerators in this folder"},
    {"folds", CLI_FLAG_TEXT, offsetof(CalibrateArgs, folds), "N",
     "fit: cross-validate instead, each row predicted by a fit that has not seen it"},
    {"plot", CLI_FLAG_FILE, offsetof(CalibrateArgs, plot), "DIR",
     "fit: draw the error of every row with gnuplot: fit.png and fit.csv"},
    {"page", CLI_FLAG_FILE, offsetof(CalibrateArgs, page), "FILE",
     "fit: one page of what was measured: roofline, products, memory, buses, what the fit says"},
    {"svg", CLI_FLAG_SWITCH, offsetof(CalibrateArgs, svg), NULL, "with --plot: SVG instead of PNG"},
    {"rows", CLI_FLAG_SWITCH, offsetof(CalibrateArgs, rows), NULL,
     "check: one CSV line (--format json: one object) a row of products, attention and memory-bound kernels"},
    {"strict", CLI_FLAG_SWITCH, offsetof(CalibrateArgs, strict), NULL,
     "check: also that the table can be sent in: known columns, every row once and with its GPU, a sweep's "
     "stamp"},
    {"quick", CLI_FLAG_SWITCH, offsetof(CalibrateArgs, quick), NULL, "measure: few sizes, a minute or two"},
    {"full", CLI_FLAG_SWITCH, offsetof(CalibrateArgs, full), NULL, "measure: every size"},
};

const CliCommand cli_command_calibrate = {
    .name = "calibrate",
    .usage = "[fit|check TABLE | merge TABLE...]",
    .summary = "measure this machine; fit profiles to measurements; check them",
    .help = "Without a table: measures this machine's GPUs and links (runs orrery-calibrate, built with "
            "CUDA). `fit TABLE` turns measurements into a profile for scenarios/calibrations, `check "
            "TABLE` prints the model's error on them; both work without a GPU. `merge TABLE...` makes "
            "one table of several sweeps of one kind of GPU. A table is what orrery-calibrate wrote, the "
            "output of nccl-tests (text or JSON), or a CSV of GEMMs (m,n,k,dtype,time_us). Any JSON "
            "object of lists of rows is one too: gemm_measurements, grouped_gemm_measurements, "
            "attention_measurements, hbm_stream, memory_bound_measurements, collective_measurements. fit "
            "also takes a measurement file, as scenarios/measurements holds: your own training steps; it "
            "finds the factors on compute, memory, links and host that they tell, and prints the error "
            "on steps that a fit has not seen. docs/CALIBRATION.md goes through it.\n\n"
            "  orrery calibrate fit table.json --output my-h200.json --page what-i-got.html\n"
            "  orrery calibrate fit all_reduce_perf.log --output my-links.json\n"
            "  orrery calibrate fit net.json --cluster dgx-h100 --output my-network.json\n"
            "  orrery calibrate fit my-runs.json --output my-cluster.json\n"
            "  orrery run scenario.json --set cluster.calibration=my-h200.json\n"
            "  orrery calibrate check table.json --format csv\n"
            "  orrery calibrate merge monday.json tuesday.json --output both.json\n",
    .takes = CLI_TAKES_SET | CLI_TAKES_FORMAT | CLI_TAKES_OUTPUT | CLI_TAKES_QUIET,
    .flags = flags,
    .flag_count = (int)G_N_ELEMENTS(flags),
    .min_words = 0,
    .max_words = -1,
    .args_size = sizeof(CalibrateArgs),
    .run = run,
};
