/* plots/roofline.c - products and attention of every piece of the model: FLOPs a byte against the rate that they reach, below
 * the accelerator's peak and what its memory brings.
 *
 *   bound = min(peak, FLOPs a byte x bytes/s)
 * Source: Williams, Waterman and Patterson, CACM 2009   Tested: unit/plots/test_roofline.c
 */
#include <math.h>
#include <string.h>

#include "plots/driver.h"
#include "report/kernels.h"

enum { MOST_LISTED = 9 };

static void visit(const CostOp *op, double seconds, int count, void *data)
{
    PlotRoofline *roofline = data;
    const CostMoved moved = cost_op_moved(op);
    const double flops =
        op->kind == COST_OP_ATTENTION ? op->model_flops : op->full_flops; /* what is not masked */
    const double bytes = moved.read + moved.written, all_s = seconds * count;
    if (op->kind == COST_OP_COLLECTIVE || !(seconds > 0))
        return;
    roofline->seconds += all_s;
    if (op->kind == COST_OP_MEMORY) {
        roofline->memory_s += all_s;
        roofline->memory_bytes += (bytes + moved.undivided) * count;
    }
    if (op->kind == COST_OP_MEMORY || !(flops > 0) || !(bytes > 0))
        return;
    PlotRoofPoint point = {.name = op->name,
                           .attention = op->kind == COST_OP_ATTENTION,
                           .flops_per_byte = flops / bytes,
                           .flops_per_s = flops / seconds,
                           .share = all_s};
    for (guint i = 0; i < roofline->points->len;
         i++) { /* layers alike, and passes of one size: one mean rate */
        PlotRoofPoint *known = &g_array_index(roofline->points, PlotRoofPoint, i);
        if (strcmp(known->name, point.name) != 0 ||
            fabs(known->flops_per_byte / point.flops_per_byte - 1) > 1e-3)
            continue;
        known->flops_per_s =
            (known->flops_per_s * known->share + point.flops_per_s * all_s) / (known->share + all_s);
        known->share += all_s;
        return;
    }
    g_array_append_val(roofline->points, point);
}

static int compare_points(gconstpointer a, gconstpointer b)
{
    const double x = ((const PlotRoofPoint *)a)->share, y = ((const PlotRoofPoint *)b)->share;
    return (x < y) - (x > y);
}

PlotRoofline plot_roofline_of(const Report *report)
{
    PlotRoofline roofline = {.points = g_array_new(FALSE, FALSE, sizeof(PlotRoofPoint)),
                             .peak_flops_per_s = cost_peak_flops_per_s(report->spec),
                             .bytes_per_s = report->spec->cluster.accelerator.memory_bytes_per_s};
    report_visit_kernels(report, visit, &roofline);
    for (guint i = 0; i < roofline.points->len; i++)
        g_array_index(roofline.points, PlotRoofPoint, i).share /= roofline.seconds;
    g_array_sort(roofline.points, compare_points);
    return roofline;
}

static void cell(GString *csv, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_c(csv, ',');
    g_string_append(csv, g_ascii_formatd(text, sizeof text, "%.6g", value));
}

static void add_points(PlotJob *job, const PlotRoofline *roofline)
{
    double least = roofline->peak_flops_per_s, low = INFINITY, high = 0;
    int listed = 0;
    g_string_append(job->csv, "kernel,kind,flops_per_byte,tflop_per_s,share_percent,bound_percent,number\n");
    for (guint i = 0; i < roofline->points->len; i++) {
        const PlotRoofPoint *point = &g_array_index(roofline->points, PlotRoofPoint, i);
        const bool lists = listed < MOST_LISTED && point->share >= 0.005;
        plot_csv_text(job->csv, point->name);
        g_string_append(job->csv, point->attention ? ",attention" : ",product");
        cell(job->csv, point->flops_per_byte);
        cell(job->csv, point->flops_per_s / 1e12);
        cell(job->csv, 100 * point->share);
        cell(job->csv, 100 * point->flops_per_s /
                           fmin(roofline->peak_flops_per_s, point->flops_per_byte * roofline->bytes_per_s));
        g_string_append_printf(job->csv, ",%d\n", lists ? ++listed : 0);
        least = fmin(least, point->flops_per_s);
        low = fmin(low, point->flops_per_byte);
        high = fmax(high, point->flops_per_byte);
    }
    plot_set_number(job, "least", least / 1e12);
    plot_set_number(job, "low", low);
    plot_set_number(job, "high", high);
    plot_set_number(job, "listed", listed);
}

bool plot_roofline(const Report *report, const PlotTarget *target, GError **error)
{
    PlotRoofline roofline = plot_roofline_of(report);
    if (roofline.points->len == 0) {
        g_array_free(roofline.points, TRUE);
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--what roofline: the model is a list of layers with given costs, whose kernels are not "
            "known");
    }
    PlotJob job;
    plot_job_init(&job, "roofline");
    add_points(&job, &roofline);
    g_autofree char *caption = g_strdup_printf(
        "products and attention of a micro-batch on one %s, circles as large as their share of compute; "
        "memory-bound "
        "kernels take %.0f %% more, at %.0f %% of the bandwidth",
        report->spec->cluster.accelerator.name, 100 * roofline.memory_s / roofline.seconds,
        roofline.memory_s > 0 ? 100 * roofline.memory_bytes / roofline.memory_s / roofline.bytes_per_s : 0);
    plot_set_heading(&job, report->spec->name, caption);
    plot_set_text(&job, "precision", spec_word(&spec_words_precision, (int)report->spec->training.precision));
    plot_set_number(&job, "peak", roofline.peak_flops_per_s / 1e12);
    plot_set_number(&job, "bandwidth", roofline.bytes_per_s / 1e12);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    g_array_free(roofline.points, TRUE);
    return ok;
}
