/* plots/traffic.c - what the links of a fabric carry in a step, tier by tier and by whose it is, and how busy they are. */
#include <math.h>

#include "plots/driver.h"

enum { MOST_TIERS = 12 };

static void cell(GString *csv, double value, const char *after)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(csv, "%s%s", g_ascii_formatd(text, sizeof text, "%.6g", value), after);
}

static void add_tier(PlotJob *job, int row, const TrafficTier *tier, double unit_bytes)
{
    double from = 0;
    g_autofree char *name = g_strdup_printf("%s to %s", tier->from, tier->to);
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        const double bytes = tier->by_dimension[d];
        if (!(bytes > 0))
            continue;
        g_string_append_printf(job->csv, "%d,", row);
        plot_csv_text(job->csv, name);
        g_string_append_printf(job->csv, ",%s,%d,", traffic_dimension_name((TrafficDimension)d), d);
        cell(job->csv, from / unit_bytes, ",");
        cell(job->csv, (from + bytes) / unit_bytes, "\n");
        from += bytes;
    }
    g_string_append_printf(job->extra_csv, "%d,", row);
    plot_csv_text(job->extra_csv, name);
    g_string_append_printf(job->extra_csv, ",%d,%d,", tier->links, tier->used);
    cell(job->extra_csv, 100 * tier->busy_frac, ",");
    cell(job->extra_csv, 100 * tier->busiest_frac, "\n");
}

bool plot_traffic(const Report *report, const PlotTarget *target, GError **error)
{
    const TrafficSummary *network = &report->network;
    PlotJob job;
    double most = 0, busiest = 0, all[TRAFFIC_DIMENSIONS] = {0};
    if (!network->on)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--what traffic: shows the links of a fabric; add --set cluster.network.fidelity=flow");
    plot_job_init(&job, "traffic");
    g_string_append(job.csv, "row,tier,dimension,colour,from,to\n");
    job.extra_csv = g_string_new("row,tier,links,used,busy_percent,busiest_percent\n");
    job.extra_name = "traffic-tiers";
    for (int i = 0; i < network->tier_count; i++)
        most = fmax(most, network->tiers[i].bytes);
    const bool large = most > 2e12;
    const double unit_bytes = large ? 1e12 : 1e9;
    int rows = 0;
    for (int i = 0; i < network->tier_count && rows < MOST_TIERS; i++) {
        const TrafficTier *tier = &network->tiers[i];
        if (!(tier->bytes > 0))
            continue;
        add_tier(&job, rows++, tier, unit_bytes);
        busiest = fmax(busiest, tier->busiest_frac);
        for (int d = 0; d < TRAFFIC_DIMENSIONS; d++)
            all[d] += tier->by_dimension[d];
    }
    for (int d = 0; d < TRAFFIC_DIMENSIONS; d++) {
        g_autofree char *name = g_strdup_printf("name%d", d);
        plot_set_text(&job, name, all[d] > 0 ? traffic_dimension_name((TrafficDimension)d) : "");
    }
    plot_set_number(&job, "rows", rows);
    plot_set_number(&job, "kinds", TRAFFIC_DIMENSIONS);
    plot_set_number(&job, "most", fmax(most / unit_bytes, 1e-9));
    plot_set_text(&job, "unit", large ? "TB" : "GB");
    plot_set_number(&job, "busiest", fmax(100 * busiest, 1e-3));
    g_autofree char *caption = g_strdup_printf(
        "Left, what all links of a tier carry in a step; right, how much of the step its links are "
        "busy, in the mean (dark) and the busiest (light), on %s",
        network->topology);
    plot_set_heading(&job, report->spec->name, caption);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
