/* plots/campaign.c - see campaign.h. */
#include "plots/campaign.h"

#include <math.h>

#include "plots/driver.h"

#define DAY_S    86400.0
#define MINUTE_S 60.0

static void add_value(GString *csv, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    if (csv->len > 0 && csv->str[csv->len - 1] != '\n')
        g_string_append_c(csv, ',');
    g_string_append(csv, g_ascii_formatd(text, sizeof text, "%.8g", value));
}

static void add_row(GString *csv, const double *values, int count)
{
    for (int i = 0; i < count; i++)
        add_value(csv, values[i]);
    g_string_append_c(csv, '\n');
}

static bool draw(PlotJob *job, const char *title, const char *caption, const PlotTarget *target,
                 GError **error)
{
    plot_set_heading(job, title, caption);
    const bool ok = plot_job_run(job, target, error);
    plot_job_clear(job);
    return ok;
}

bool plot_goodput(const char *title, const PlotGoodput *points, int count, const PlotTarget *target,
                  GError **error)
{
    PlotJob job;
    int series = 0;
    double least = 1;
    plot_job_init(&job, "goodput");
    g_string_append(job.csv, "series,gpus,mean_percent,low_percent,high_percent,own\n");
    for (int i = 0; i < count; i++) {
        const PlotGoodput *point = &points[i];
        add_row(job.csv,
                (const double[]){point->series, point->gpus, 100 * point->mean, 100 * point->low,
                                 100 * point->high, point->own},
                6);
        least = fmin(least, point->low);
        if (point->series < series)
            continue;
        g_autofree char *name = g_strdup_printf("name%d", point->series);
        plot_set_text(&job, name, point->name);
        series = point->series + 1;
    }
    plot_set_number(&job, "series", series);
    plot_set_number(&job, "least", 100 * least);
    return draw(
        &job, title,
        "Goodput over GPUs: checkpoints at their best interval, nine of ten campaigns within the band; "
        "ringed: the scenario",
        target, error);
}

bool plot_interval(const char *title, const PlotInterval *points, int count, const PlotMark *marks,
                   int mark_count, const PlotTarget *target, GError **error)
{
    PlotJob job;
    double least = 1, most = 0;
    plot_job_init(&job, "interval");
    g_string_append(job.csv, "interval_s,exact_percent,first_order_percent,low_percent,high_percent\n");
    for (int i = 0; i < count; i++) {
        const PlotInterval *point = &points[i];
        add_row(job.csv,
                (const double[]){point->interval_s, 100 * point->exact, 100 * point->first_order,
                                 100 * point->low, 100 * point->high},
                5);
        least = fmin(least, point->low);
        most = fmax(most, point->high);
    }
    for (int i = 0; i < mark_count; i++) {
        g_autofree char *name = g_strdup_printf("mark%d", i), *at = g_strdup_printf("mark_at%d", i);
        g_autofree char *label = g_strdup_printf("%s, %.0f s", marks[i].name, marks[i].interval_s);
        plot_set_text(&job, name, label);
        plot_set_number(&job, at, marks[i].interval_s);
    }
    plot_set_number(&job, "marks", mark_count);
    plot_set_number(&job, "least", 100 * fmax(0, least));
    plot_set_number(&job, "most", 100 * most);
    return draw(&job, title,
                "Goodput over the time between two checkpoints; the band holds nine of ten campaigns", target,
                error);
}

bool plot_interruptions(const char *title, const char *const *causes, int cause_count,
                        const PlotInterruption *points, int count, const PlotTarget *target, GError **error)
{
    PlotJob job;
    double most_min = 0;
    int away = 0;
    plot_job_init(&job, "interruptions");
    g_string_append(job.csv, "day,cause,lost_min,waited_min,nodes_away\n");
    for (int i = 0; i < count; i++) {
        const PlotInterruption *point = &points[i];
        add_row(job.csv,
                (const double[]){point->at_s / DAY_S, point->cause, point->lost_s / MINUTE_S,
                                 point->waited_s / MINUTE_S, point->nodes_away},
                5);
        most_min = fmax(most_min, (point->lost_s + point->waited_s) / MINUTE_S);
        away = MAX(away, point->nodes_away);
    }
    for (int i = 0; i < cause_count; i++) {
        g_autofree char *name = g_strdup_printf("name%d", i);
        plot_set_text(&job, name, causes[i]);
    }
    plot_set_number(&job, "causes", cause_count);
    plot_set_number(&job, "most_min", fmax(most_min, 1e-3));
    plot_set_number(&job, "most_away", MAX(away, 1));
    g_autofree char *caption =
        g_strdup_printf("The first %d interruptions of one campaign: work done again and waiting, by cause; "
                        "nodes under repair",
                        count);
    return draw(&job, title, caption, target, error);
}

bool plot_spares(const char *title, double ideal_days, const PlotSpares *points, int count,
                 const PlotTarget *target, GError **error)
{
    PlotJob job;
    plot_job_init(&job, "spares");
    g_string_append(job.csv, "spares,days,days_p90\n");
    for (int i = 0; i < count; i++)
        add_row(job.csv, (const double[]){points[i].spares, points[i].days, points[i].days_p90}, 3);
    plot_set_number(&job, "ideal", ideal_days);
    return draw(&job, title, "Days of the whole run over hot spare nodes", target, error);
}

bool plot_stragglers(const Report *report, const PlotTarget *target, GError **error)
{
    const ReportJitter *jitter = &report->jitter;
    if (!jitter->told)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--what stragglers: the scenario has no \"jitter\", so that all GPUs are alike; give "
                        "it, as in --set jitter=slow-machines");
    const int ranks = report->plan.shape.ranks, data = report->plan.data;
    PlotJob job;
    double most = 0;
    plot_job_init(&job, "stragglers");
    g_string_append(job.csv, "pipeline_rank,data_rank,lacks_percent\n");
    for (int i = 0; i < ranks * data; i++) {
        add_row(job.csv, (const double[]){i / data, i % data, 100 * jitter->lacks_frac[i]}, 3);
        most = fmax(most, 100 * jitter->lacks_frac[i]);
    }
    plot_set_number(&job, "pipeline_ranks", ranks);
    plot_set_number(&job, "data_ranks", data);
    plot_set_number(&job, "most", fmax(most, 1e-3));
    plot_set_number(&job, "slowest_pipeline", jitter->slowest_pipeline_rank);
    plot_set_number(&job, "slowest_data", jitter->slowest_data_rank);
    g_autofree char *caption = g_strdup_printf(
        "What the slowest GPU of each stage and replica lacks of its pace; ringed: all wait for it. The mean "
        "step is %.1f %% longer",
        100 * (jitter->mean_s / ((double)report_ideal_ps(report) * 1e-12) - 1));
    return draw(&job, report->spec->name, caption, target, error);
}

/* --- many jobs --- */

bool plot_occupation(const char *title, double seconds, const PlotOccupation *policies, int count, int bins,
                     const PlotTarget *target, GError **error)
{
    PlotJob job;
    double most = 1;
    const bool days = seconds > 2 * DAY_S;
    const double unit_s = days ? DAY_S : 3600;
    plot_job_init(&job, "occupation");
    g_string_append_printf(job.csv, "policy,%s,busy_percent,waiting\n", days ? "days" : "hours");
    for (int i = 0; i < count; i++) {
        g_autofree char *name = g_strdup_printf("name%d", i);
        plot_set_text(&job, name, policies[i].policy);
        for (int b = 0; b < bins && policies[i].busy_frac[b] >= 0; b++) {
            add_row(job.csv,
                    (const double[]){i, (b + 0.5) * seconds / bins / unit_s, 100 * policies[i].busy_frac[b],
                                     policies[i].waiting[b]},
                    4);
            most = fmax(most, policies[i].waiting[b]);
        }
    }
    plot_set_number(&job, "policies", count);
    plot_set_number(&job, "end", seconds / unit_s);
    plot_set_number(&job, "most", most);
    plot_set_text(&job, "unit", days ? "days" : "hours");
    return draw(&job, title, "GPUs that jobs hold, and jobs that wait for theirs, policy by policy", target,
                error);
}
