/* plots/fit.c - measured rows of a calibration: error of the prediction over the measured time, a colour a group. */
#include "plots/driver.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"

/* "gemm bf16: 307, 3.2 %" */
static void name_group(PlotJob *job, int group, const PlotMeasured *points, int count)
{
    g_autofree char *key = g_strdup_printf("name%d", group);
    g_autofree double *misses = g_new(double, (gsize)MAX(count, 1));
    const char *name = "";
    int rows = 0;
    for (int i = 0; i < count; i++)
        if (points[i].source == group) {
            name = points[i].name;
            misses[rows++] = fabs(points[i].predicted_s / points[i].measured_s - 1);
        }
    orr_stats_sort(misses, (size_t)rows);
    g_autofree char *text =
        g_strdup_printf("%s: %d, %.1f %%", name, rows, rows > 0 ? 100 * misses[rows / 2] : 0.0);
    plot_set_text(job, key, text);
}

bool plot_fit(const char *heading, const PlotMeasured *points, int count, int groups,
              const PlotTarget *target, GError **error)
{
    PlotJob job;
    double low = INFINITY, high = 0, worst = 0.1;
    int within = 0;
    plot_job_init(&job, "fit");
    g_string_append(job.csv, "group,name,row,measured_s,predicted_s\n");
    for (int group = 0; group < groups; group++)
        name_group(&job, group, points, count);
    for (int i = 0; i < count; i++) {
        const PlotMeasured *point = &points[i];
        const double miss = fabs(point->predicted_s / point->measured_s - 1);
        char measured[G_ASCII_DTOSTR_BUF_SIZE], predicted[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(job.csv, "%d,", point->source);
        plot_csv_text(job.csv, point->name);
        g_string_append_c(job.csv, ',');
        plot_csv_text(job.csv, point->id);
        g_string_append_printf(job.csv, ",%s,%s\n",
                               g_ascii_formatd(measured, sizeof measured, "%.6g", point->measured_s),
                               g_ascii_formatd(predicted, sizeof predicted, "%.6g", point->predicted_s));
        low = MIN(low, point->measured_s);
        high = MAX(high, point->measured_s);
        within += miss <= 0.1;
        worst = MAX(worst, miss);
    }
    g_autofree char *caption = g_strdup_printf("%d rows; %.0f %% of them within ±10 %%", count,
                                               count > 0 ? 100.0 * within / count : 0.0);
    plot_set_heading(&job, heading, caption);
    plot_set_number(&job, "groups", groups);
    plot_set_number(&job, "low", count > 0 ? low : 0.1);
    plot_set_number(&job, "high", count > 0 ? high : 1);
    plot_set_number(&job, "worst", 100 * worst);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
