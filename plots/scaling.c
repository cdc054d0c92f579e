/* plots/scaling.c - days, MFU and money over GPU counts, a line a kind of GPU. */
#include "plots/driver.h"

static void cell(GString *csv, double value)
{
    char number[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_c(csv, ',');
    if (value > 0)
        g_string_append(csv, g_ascii_formatd(number, sizeof number, "%.6g", value));
}

bool plot_cost(const char *title, double deadline_days, double budget_usd, const PlotScalingPoint *points,
               int count, const PlotTarget *target, GError **error)
{
    PlotJob job;
    double most_usd = 0;
    int series = 0;
    for (int i = 0; i < count; i++)
        most_usd = points[i].fits ? MAX(most_usd, points[i].usd) : most_usd;
    if (!(most_usd > 0))
        return true;
    const double unit = most_usd >= 1e6 ? 1e6 : most_usd >= 1e3 ? 1e3 : 1;
    plot_job_init(&job, "cost");
    g_string_append(job.csv, "series,name,gpus,money,days,days_low,days_high,answer\n");
    for (int i = 0; i < count; i++) {
        const PlotScalingPoint *point = &points[i];
        if (!(point->usd > 0) || !point->fits)
            continue;
        g_string_append_printf(job.csv, "%d,", point->series);
        plot_csv_text(job.csv, point->name);
        g_string_append_printf(job.csv, ",%d", point->gpus);
        const double values[] = {point->usd / unit, point->days, point->days_low, point->days_high};
        for (gsize k = 0; k < G_N_ELEMENTS(values); k++)
            cell(job.csv, values[k]);
        g_string_append_printf(job.csv, ",%d\n", point->chosen ? 1 : 0);
        if (point->series < series)
            continue;
        series = point->series + 1;
    }
    for (int i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("name%d", points[i].series);
        if (i == 0 || points[i].series != points[i - 1].series)
            plot_set_text(&job, name, points[i].name);
    }
    plot_set_heading(
        &job, title,
        "Days against money over numbers of GPUs, the band as far as published runs lay from their "
        "predictions; ringed: the answer");
    plot_set_text(&job, "money_unit", unit >= 1e6 ? "million USD" : unit >= 1e3 ? "thousand USD" : "USD");
    plot_set_number(&job, "series", series);
    plot_set_number(&job, "deadline", deadline_days);
    plot_set_number(&job, "budget", budget_usd / unit);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}

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
