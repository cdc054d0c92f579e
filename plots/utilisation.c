/* plots/utilisation.c - how busy a rank's GPU, the ways to the host and the host's cores are over the step.
 *
 * The step is cut into equal bins; a stream's value in a bin is the share of it in which its ops run, drawn as a mean over
 * 5 % of the step. Of the GPU, only kernels and its optimizer count: not communication inside a pass, nor waiting. Shown is
 * the pipeline rank whose GPU works most. Tested: unit/plots/test_plots.c
 */
#include <math.h>

#include "plots/driver.h"

static const struct {
    const char *label;
    SimStream stream;
} rows[PLOT_BUSY_COUNT] = {
    [PLOT_BUSY_GPU] = {"GPU", SIM_STREAM_COMPUTE},
    [PLOT_BUSY_OUT] = {"copies to the host", SIM_STREAM_D2H},
    [PLOT_BUSY_IN] = {"copies to the GPU", SIM_STREAM_H2D},
    [PLOT_BUSY_HOST] = {"host's optimizer", SIM_STREAM_HOST},
    [PLOT_BUSY_READ] = {"disk reads", SIM_STREAM_NVME_READ},
    [PLOT_BUSY_WRITE] = {"disk writes", SIM_STREAM_NVME_WRITE},
};

/* Of an op's time, what the row counts. */
static double share_of(const Report *report, const SimSpan *span, PlotBusy row)
{
    const SimWork *work = &report->program.works[span->work];
    double all_ps = 0, counted_ps = 0;
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        const bool counts = row != PLOT_BUSY_GPU || part == SIM_PART_COMPUTE || part == SIM_PART_RECOMPUTE ||
                            part == SIM_PART_OPTIMIZER;
        all_ps += (double)work->part_ps[part];
        counted_ps += counts ? (double)work->part_ps[part] : 0;
    }
    return all_ps > 0 ? counted_ps / all_ps : 0;
}

static void add_span(const Report *report, const SimSpan *span, PlotBusy row, double bin_ps, int bins,
                     double *busy)
{
    const double share = share_of(report, span, row);
    const double from = (double)span->start_ps, to = (double)span->end_ps;
    for (int bin = (int)(from / bin_ps); bin < bins && bin * bin_ps < to; bin++) {
        const double overlap = fmin(to, (bin + 1) * bin_ps) - fmax(from, bin * bin_ps);
        busy[bin] = fmin(1, busy[bin] + share * fmax(0, overlap) / bin_ps);
    }
}

/* The rank whose compute parts are longest. */
static int busiest_rank(const Report *report)
{
    int busiest = 0;
    for (int rank = 1; rank < report->result.ranks; rank++)
        if (report->result.rank[rank].part_ps[SIM_PART_COMPUTE] >
            report->result.rank[busiest].part_ps[SIM_PART_COMPUTE])
            busiest = rank;
    return busiest;
}

void plot_busy(const Report *report, int bins, double *ret_busy[PLOT_BUSY_COUNT])
{
    g_assert(report->result.spans != NULL && bins > 0);
    const double bin_ps = (double)report->result.end_ps / bins;
    const int rank = busiest_rank(report);
    for (int row = 0; row < PLOT_BUSY_COUNT; row++)
        for (int bin = 0; bin < bins; bin++)
            ret_busy[row][bin] = 0;
    for (int64_t i = 0; i < report->result.span_count; i++) {
        const SimSpan *span = &report->result.spans[i];
        for (int row = 0; span->rank == rank && row < PLOT_BUSY_COUNT; row++)
            if (span->stream == rows[row].stream)
                add_span(report, span, (PlotBusy)row, bin_ps, bins, ret_busy[row]);
    }
}

enum { BINS = 240, SPREAD = BINS / 40 };

/* The mean over a fortieth of the step before and behind each bin: layers that come and go beat with the bins otherwise. */
static void smooth(const double *busy, double *ret_mean)
{
    for (int bin = 0; bin < BINS; bin++) {
        const int from = MAX(0, bin - SPREAD), to = MIN(BINS - 1, bin + SPREAD);
        ret_mean[bin] = 0;
        for (int i = from; i <= to; i++)
            ret_mean[bin] += busy[i] / (to - from + 1);
    }
}

static int rows_shown(const Report *report)
{
    for (int64_t i = 0; i < report->result.span_count; i++) {
        const int stream = report->result.spans[i].stream;
        if (stream == SIM_STREAM_NVME_READ || stream == SIM_STREAM_NVME_WRITE)
            return PLOT_BUSY_COUNT;
    }
    return PLOT_BUSY_READ;
}

bool plot_utilisation(const Report *report, const PlotTarget *target, GError **error)
{
    double values[PLOT_BUSY_COUNT][BINS], means[PLOT_BUSY_COUNT][BINS], *busy[PLOT_BUSY_COUNT];
    const int shown = rows_shown(report);
    double unit_s = 1, mean = 0;
    const double end_s = (double)report->result.end_ps * 1e-12;
    PlotJob job;
    for (int row = 0; row < PLOT_BUSY_COUNT; row++)
        busy[row] = values[row];
    plot_busy(report, BINS, busy);
    for (int row = 0; row < PLOT_BUSY_COUNT; row++)
        smooth(values[row], means[row]);
    plot_job_init(&job, "utilisation");
    plot_set_text(&job, "unit", plot_time_unit(end_s, &unit_s));
    plot_set_number(&job, "step", end_s / unit_s);
    plot_set_number(&job, "disks", shown > PLOT_BUSY_READ);
    g_string_append(job.csv, "time");
    for (int row = 0; row < shown; row++) {
        g_string_append_c(job.csv, ',');
        plot_csv_text(job.csv, rows[row].label);
    }
    for (int bin = 0; bin < BINS; bin++) {
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        mean += values[PLOT_BUSY_GPU][bin] / BINS;
        g_string_append_printf(
            job.csv, "\n%s",
            g_ascii_formatd(number, sizeof number, "%.9g", (bin + 0.5) / BINS * end_s / unit_s));
        for (int row = 0; row < shown; row++)
            g_string_append_printf(job.csv, ",%s",
                                   g_ascii_formatd(number, sizeof number, "%.5f", means[row][bin]));
    }
    g_string_append_c(job.csv, '\n');
    g_autofree char *caption =
        g_strdup_printf("GPU busy %.0f %% of the step; each point is the mean over 5 %% of it", 100 * mean);
    plot_set_heading(&job, report->spec->name, caption);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
