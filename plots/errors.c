/* plots/errors.c - where the interval of a prediction comes from: each comparable published run as a dot where this step would
 * lie if it missed as that one did; a row a source. Tested: unit/plots/test_errors.c
 */
#include <math.h>
#include <string.h>

#include "plots/driver.h"

static int compare_errors(gconstpointer a, gconstpointer b)
{
    const PlotError *x = a, *y = b;
    if (x->source != y->source)
        return x->source - y->source;
    return (x->log_ratio > y->log_ratio) - (x->log_ratio < y->log_ratio);
}

typedef struct SourceRow {
    int first, count;
    double middle; /* median log ratio */
} SourceRow;

static int compare_rows(gconstpointer a, gconstpointer b)
{
    const double x = ((const SourceRow *)a)->middle, y = ((const SourceRow *)b)->middle;
    return (x > y) - (x < y);
}

GArray *plot_error_rows(GArray *errors)
{
    GArray *rows = g_array_new(FALSE, FALSE, sizeof(SourceRow));
    g_array_sort(errors, compare_errors);
    for (guint i = 0, end; i < errors->len; i = end) {
        for (end = i; end < errors->len && g_array_index(errors, PlotError, end).source ==
                                               g_array_index(errors, PlotError, i).source;)
            end++;
        const SourceRow row = {(int)i, (int)(end - i),
                               g_array_index(errors, PlotError, i + (end - i) / 2).log_ratio};
        g_array_append_val(rows, row);
    }
    g_array_sort(rows, compare_rows);
    GArray *order = g_array_new(FALSE, FALSE, sizeof(int)); /* the row of each error */
    g_array_set_size(order, errors->len);
    for (guint r = 0; r < rows->len; r++) {
        const SourceRow *row = &g_array_index(rows, SourceRow, r);
        for (int i = 0; i < row->count; i++)
            g_array_index(order, int, row->first + i) = (int)r;
    }
    g_array_free(rows, TRUE);
    return order;
}

bool plot_errors(const Report *report, GArray *errors, const PlotTarget *target, GError **error)
{
    g_autoptr(GArray) rows = plot_error_rows(errors);
    const double step_s = (double)report->step_ps * 1e-12;
    double unit_s = 1, low_s = report->interval_low_s, high_s = report->interval_high_s;
    int row_count = 0, inside = 0, alike = 0;
    PlotJob job;
    plot_job_init(&job, "errors");
    plot_set_text(&job, "unit", plot_time_unit(step_s, &unit_s));
    g_string_append(job.csv, "row,source,run,step,alike\n");
    for (guint i = 0; i < errors->len; i++) {
        const PlotError *one = &g_array_index(errors, PlotError, i);
        const double shown_s = step_s * exp(one->log_ratio);
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(job.csv, "%d,", g_array_index(rows, int, i));
        g_autofree char *name = g_strndup(
            one->name, strlen(one->name) - (g_str_has_suffix(one->name, ".json") ? strlen(".json") : 0));
        plot_csv_text(job.csv, name);
        g_string_append_c(job.csv, ',');
        plot_csv_text(job.csv, one->id);
        g_string_append_printf(job.csv, ",%s,%d\n",
                               g_ascii_formatd(number, sizeof number, "%.6g", shown_s / unit_s),
                               one->alike ? 1 : 0);
        row_count = MAX(row_count, g_array_index(rows, int, i) + 1);
        alike += one->alike;
        inside += one->alike && shown_s >= report->interval_low_s && shown_s <= report->interval_high_s;
        low_s = fmin(low_s, shown_s);
        high_s = fmax(high_s, shown_s);
    }
    g_autofree char *wider =
        report->interval_widening > 1
            ? g_strdup_printf("; %g times as wide as they ask for, because this run lies outside all of them",
                              report->interval_widening)
            : g_strdup("");
    g_autofree char *caption =
        g_strdup_printf("This step, had it missed as each of %u published runs did: %d lie in the interval "
                        "of %.4g to %.4g %s%s",
                        errors->len, inside, report->interval_low_s / unit_s,
                        report->interval_high_s / unit_s, plot_time_unit(step_s, &unit_s), wider);
    plot_set_heading(&job, report->spec->name, caption);
    plot_set_number(&job, "rows", row_count);
    plot_set_number(&job, "step", step_s / unit_s);
    plot_set_number(&job, "low", report->interval_low_s / unit_s);
    plot_set_number(&job, "high", report->interval_high_s / unit_s);
    plot_set_number(&job, "least", low_s / unit_s);
    plot_set_number(&job, "most", high_s / unit_s);
    plot_set_text(&job, "class_name", report->interval_class != NULL ? report->interval_class : "comparable");
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
