/* plots/scaling.c - days and MFU over GPU counts, a line a kind of GPU. */
#include "plots/driver.h"

bool plot_scaling(const char *title, double deadline_days, const PlotScalingPoint *points, int count,
                  const PlotTarget *target, GError **error)
{
    PlotJob job;
    plot_job_init(&job, "scaling");
    g_string_append(job.csv, "series,name,gpus,days,mfu_percent,fits,answer\n");
    double best = 0.0, days_low = 0.0, days_high = 0.0;
    int series = 0;
    for (int i = 0; i < count; i++) {
        const PlotScalingPoint *point = &points[i];
        char days[G_ASCII_DTOSTR_BUF_SIZE], mfu[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(job.csv, "%d,", point->series);
        plot_csv_text(job.csv, point->name);
        g_string_append_printf(job.csv, ",%d,%s,%s,%d,%d\n", point->gpus,
                               g_ascii_formatd(days, sizeof days, "%.6g", point->days),
                               g_ascii_formatd(mfu, sizeof mfu, "%.6g", point->mfu * 100.0),
                               point->fits ? 1 : 0, point->chosen ? 1 : 0);
        best = MAX(best, point->mfu * 100.0);
        days_low = i == 0 ? point->days : MIN(days_low, point->days);
        days_high = MAX(days_high, point->days);
        if (point->series < series)
            continue;
        g_autofree char *name = g_strdup_printf("name%d", point->series);
        plot_set_text(&job, name, point->name);
        series = point->series + 1;
    }
    plot_set_heading(
        &job, title,
        "Days of the whole run and MFU over GPUs; hollow: does not fit in memory; ringed: the answer");
    plot_set_number(&job, "series", series);
    plot_set_number(&job, "deadline", deadline_days);
    plot_set_number(&job, "best", MAX(best, 1.0));
    plot_set_number(&job, "days_low", MAX(days_low, 1e-6));
    plot_set_number(&job, "days_high", MAX(days_high, 1e-6));
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
