/* cli/jobs_plot.c - see jobs_plot.h. */
#include "cli/jobs_plot.h"

#include <math.h>

#include "plots/campaign.h"

enum { BINS = 240 };

typedef struct Curve {
    double busy_frac[BINS], waiting[BINS];
} Curve;

/* Means over each part: a moment's figures hold until the next one, the last moment is the end. */
static void fill(const GArray *moments, double first_s, double seconds, double gpus, Curve *curve)
{
    const double bin_s = seconds / BINS;
    for (guint i = 0; i + 1 < moments->len; i++) {
        const JobsMoment *moment = &g_array_index(moments, JobsMoment, i);
        const double begin_s = moment->at_s - first_s, end_s = moment[1].at_s - first_s;
        for (int b = (int)fmax(0, floor(begin_s / bin_s)); b < BINS && b * bin_s < end_s; b++) {
            const double part = (fmin(end_s, (b + 1) * bin_s) - fmax(begin_s, b * bin_s)) / bin_s;
            curve->busy_frac[b] += fmax(0, part) * moment->held_gpus / gpus;
            curve->waiting[b] += fmax(0, part) * moment->waiting;
        }
    }
    const double over_s =
        moments->len > 0 ? g_array_index(moments, JobsMoment, moments->len - 1).at_s - first_s : 0;
    for (int b = 0; b < BINS; b++)
        if (b * bin_s >= over_s)
            curve->busy_frac[b] = -1;
}

bool cli_jobs_plot(const JobsTrace *trace, double patience_s, const JobsResult *results, const char *title,
                   const PlotTarget *target, GError **error)
{
    g_autofree Curve *curves = g_new0(Curve, JOBS_POLICIES);
    PlotOccupation policies[JOBS_POLICIES];
    double gpus = 0, seconds = 0;
    const double first_s = g_array_index(trace->jobs, Job, 0).arrive_s;
    for (int p = 0; p < trace->pool_count; p++)
        gpus += trace->pools[p].gpus;
    for (int i = 0; i < JOBS_POLICIES; i++)
        seconds = fmax(seconds, results[i].makespan_s);
    for (int i = 0; i < JOBS_POLICIES; i++) {
        g_autoptr(GArray) moments =
            g_array_new(FALSE, FALSE, sizeof(JobsMoment)); /* one policy's at a time: they are many */
        jobs_watch(trace, (JobsPolicy)i, patience_s, moments);
        fill(moments, first_s, seconds, gpus, &curves[i]);
        policies[i] =
            (PlotOccupation){jobs_policy_name((JobsPolicy)i), curves[i].busy_frac, curves[i].waiting};
    }
    return plot_occupation(title, seconds, policies, JOBS_POLICIES, BINS, target, error);
}
