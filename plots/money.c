/* plots/money.c - days against dollars, a line a machine over GPU counts, each with its interval. */
#include "plots/driver.h"

static void append_row(PlotJob *job, const PlotScalingPoint *point)
{
    const double factor_low = point->days_low / point->days, factor_high = point->days_high / point->days;
    const double values[] = {point->days,
                             point->days_low,
                             point->days_high,
                             point->usd,
                             point->usd * (point->usd_fixed ? 1 : factor_low),
                             point->usd * (point->usd_fixed ? 1 : factor_high)};
    g_string_append_printf(job->csv, "%d,", point->series);
    plot_csv_text(job->csv, point->name);
    g_string_append_printf(job->csv, ",%d", point->gpus);
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++) {
        char text[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(job->csv, ",%s", g_ascii_formatd(text, sizeof text, "%.6g", values[i]));
    }
    g_string_append_printf(job->csv, ",%d,%d\n", point->fits ? 1 : 0, point->chosen ? 1 : 0);
}

/* The least and the most of an axis; `low` and `high` 0: no interval. */
static void widen(double range[2], double value, double low, double high)
{
    const double least = low > 0 ? low : value;
    range[0] = range[0] > 0 ? MIN(range[0], least) : least;
    range[1] = MAX(range[1], MAX(value, high));
}

bool plot_money(const char *title, double deadline_days, double budget_usd, const PlotScalingPoint *points,
                int count, const PlotTarget *target, GError **error)
{
    PlotJob job;
    double days[2] = {0}, usd[2] = {0};
    int series = 0, last = -1;
    plot_job_init(&job, "money");
    g_string_append(job.csv, "series,name,gpus,days,days_low,days_high,usd,usd_low,usd_high,fits,answer\n");
    for (int i = 0; i < count; i++) {
        PlotScalingPoint point = points[i];
        if (!(point.usd > 0))
            continue;
        if (point.series != last) { /* machines without a price have no line */
            g_autofree char *name = g_strdup_printf("name%d", series++);
            plot_set_text(&job, name, point.name);
            last = point.series;
        }
        point.series = series - 1;
        append_row(&job, &point);
        widen(days, point.days, point.days_low, point.days_high);
        widen(usd, point.usd, point.usd_fixed ? 0 : point.usd * point.days_low / point.days,
              point.usd_fixed ? 0 : point.usd * point.days_high / point.days);
    }
    plot_set_heading(
        &job, title,
        "Days of the whole run and what it costs, over GPUs; bars: the interval; hollow: does not fit "
        "in memory; ringed: the answer");
    plot_set_number(&job, "series", series);
    plot_set_number(&job, "deadline", deadline_days);
    plot_set_number(&job, "budget", budget_usd);
    plot_set_number(&job, "days_low", days[0]);
    plot_set_number(&job, "days_high", days[1]);
    plot_set_number(&job, "usd_low", usd[0]);
    plot_set_number(&job, "usd_high", usd[1]);
    const bool ok = series == 0 || plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
