/* plots/pipeline.c - the timeline of the pipeline: one lane a pipeline rank; below its compute a thin strip of what
 * the other streams do.
 */
#include "plots/data.h"
#include "plots/driver.h"

enum { MAX_LANES = 64, COLUMNS = 400, CELLS = 16000 };

static void set_kinds(PlotJob *job, const PlotTimeline *timeline)
{
    g_autoptr(GString) labels = g_string_new(NULL), dark = g_string_new(NULL), pass = g_string_new(NULL);
    for (int i = 0; i < timeline->kind_count; i++) {
        const PlotKind *kind = timeline->kinds[i];
        const char *before = i > 0 ? " " : "";
        g_string_append_printf(labels, "%s\"%s\"", before, kind->label);
        g_string_append_printf(dark, "%s%d", before, kind->dark ? 1 : 0);
        g_string_append_printf(pass, "%s%d", before, kind->pass ? 1 : 0);
    }
    plot_set_text(job, "kind_labels", labels->str);
    plot_set_text(job, "kind_dark", dark->str);
    plot_set_text(job, "kind_pass", pass->str);
    plot_set_number(job, "kinds", timeline->kind_count);
}

/* rank, time, the share of each kind. */
static void write_shares(const PlotTimeline *timeline, const PlotShares *shares, GString *csv)
{
    g_string_append(csv, "rank,time");
    for (int kind = 0; kind < shares->kinds; kind++)
        g_string_append_printf(csv, ",%s", timeline->kinds[kind]->label);
    for (int row = 0; row < shares->lanes * shares->columns; row++) {
        const int lane = row / shares->columns, column = row % shares->columns;
        char number[G_ASCII_DTOSTR_BUF_SIZE];
        g_string_append_printf(
            csv, "\n%d,%s", lane * timeline->lane_step,
            g_ascii_formatd(number, sizeof number, "%.6g", (column + 0.5) / shares->columns * timeline->end));
        for (int kind = 0; kind < shares->kinds; kind++) {
            double low = 0, high = 0;
            plot_shares_band(shares, lane, kind, column, &low, &high);
            g_string_append_printf(csv, ",%s", g_ascii_formatd(number, sizeof number, "%.3f", high - low));
        }
    }
    g_string_append_c(csv, '\n');
}

/* A corner of a polygon: along the band's upper edge, then back along its lower one. */
static void add_corner(GString *out, const PlotTimeline *timeline, const PlotShares *shares, int lane,
                       int kind, int column, bool upper)
{
    char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];
    double low = 0, high = 0;
    plot_shares_band(shares, lane, kind, column, &low, &high);
    const double time = column == 0                     ? 0
                        : column + 1 == shares->columns ? timeline->end
                                                        : (column + 0.5) / shares->columns * timeline->end;
    g_string_append_printf(out, "%s,%s\n", g_ascii_formatd(x, sizeof x, "%.6g", time),
                           g_ascii_formatd(y, sizeof y, "%.3f", lane + 0.86 - 0.82 * (upper ? high : low)));
}

/* Kind after kind, two blank lines between them; a polygon a lane, a blank line between two. */
static GString *polygons(const PlotTimeline *timeline, const PlotShares *shares)
{
    g_autofree int *columns = g_new(int, shares->columns);
    GString *out = g_string_new(NULL);
    for (int kind = 0; kind < shares->kinds; kind++) {
        g_string_append(out, kind > 0 ? "\n0,-1\n0,-1\n\n" : "0,-1\n0,-1\n\n"); /* no block is empty */
        for (int lane = 0; lane < shares->lanes; lane++) {
            const int count = plot_shares_points(shares, lane, kind, columns);
            for (int i = 0; i < 2 * count; i++)
                add_corner(out, timeline, shares, lane, kind, columns[i < count ? i : 2 * count - 1 - i],
                           i < count);
            g_string_append(out, count > 0 ? "\n" : "");
        }
    }
    return out;
}

static void draw_crowd(PlotJob *job, const PlotTimeline *timeline)
{
    PlotShares shares = plot_shares(timeline, MIN(COLUMNS, CELLS / timeline->lanes));
    write_shares(timeline, &shares, job->csv);
    job->extra_csv = polygons(timeline, &shares);
    plot_shares_clear(&shares);
}

bool plot_pipeline(const Report *report, const PlotTarget *target, GError **error)
{
    PlotJob job;
    PlotTimeline timeline = plot_timeline(report, MAX_LANES);
    const SpecParallel *parallel = &report->spec->parallel;
    const int microbatches = spec_microbatches(report->spec);
    plot_job_init(&job, "pipeline");
    const bool crowded = plot_crowded(&timeline);
    if (crowded)
        draw_crowd(&job, &timeline);
    else
        g_string_append_len(job.csv, timeline.csv->str, (gssize)timeline.csv->len);
    set_kinds(&job, &timeline);
    plot_set_number(&job, "crowded", crowded ? 1 : 0);
    g_autofree char *caption = g_strdup_printf(
        "%s, %d micro-batch%s: step %.4g %s, bubble %.1f %% (mean over ranks)%s",
        parallel->schedule_file[0] != '\0' ? parallel->schedule_file
                                           : spec_word(&spec_words_schedule, (int)parallel->schedule),
        microbatches, microbatches == 1 ? "" : "es", (double)report->step_ps * 1e-12 / timeline.unit_s,
        timeline.unit, report->bubble_frac * 100.0,
        crowded ? "; so many passes that each moment shows their shares" : "");
    plot_set_heading(&job, report->spec->name, caption);
    plot_set_text(&job, "unit", timeline.unit);
    plot_set_number(&job, "lanes", timeline.lanes);
    plot_set_number(&job, "lane_step", timeline.lane_step);
    plot_set_number(&job, "step", timeline.end);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    plot_timeline_clear(&timeline);
    return ok;
}
