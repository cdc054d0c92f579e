/* plots/pipeline.c - the timeline of the pipeline: one lane a pipeline rank; below its compute a thin strip of what
 * the other streams do.
 */
#include "plots/data.h"
#include "plots/driver.h"

#define MAX_LANES 64

static void set_kinds(PlotJob *job, const PlotTimeline *timeline)
{
    g_autoptr(GString) labels = g_string_new(NULL), colours = g_string_new(NULL), dark = g_string_new(NULL),
                       pass = g_string_new(NULL);
    for (int i = 0; i < timeline->kind_count; i++) {
        const PlotKind *kind = timeline->kinds[i];
        const char *before = i > 0 ? " " : "";
        g_string_append_printf(labels, "%s\"%s\"", before, kind->label);
        g_string_append_printf(colours, "%s%s", before, kind->colour);
        g_string_append_printf(dark, "%s%d", before, kind->dark ? 1 : 0);
        g_string_append_printf(pass, "%s%d", before, kind->pass ? 1 : 0);
    }
    plot_set_text(job, "kind_labels", labels->str);
    plot_set_text(job, "kind_colours", colours->str);
    plot_set_text(job, "kind_dark", dark->str);
    plot_set_text(job, "kind_pass", pass->str);
    plot_set_number(job, "kinds", timeline->kind_count);
}

bool plot_pipeline(const Report *report, const PlotTarget *target, GError **error)
{
    PlotJob job;
    PlotTimeline timeline = plot_timeline(report, MAX_LANES);
    const SpecParallel *parallel = &report->spec->parallel;
    const int microbatches = spec_microbatches(report->spec);
    plot_job_init(&job, "pipeline");
    g_string_append_len(job.csv, timeline.csv->str, (gssize)timeline.csv->len);
    set_kinds(&job, &timeline);
    g_autofree char *caption = g_strdup_printf(
        "%s, %d micro-batch%s: step %.4g %s, bubble %.1f %% (mean over ranks)",
        parallel->schedule_file[0] != '\0' ? parallel->schedule_file
                                           : spec_word(&spec_words_schedule, (int)parallel->schedule),
        microbatches, microbatches == 1 ? "" : "es", (double)report->step_ps * 1e-12 / timeline.unit_s,
        timeline.unit, report->bubble_frac * 100.0);
    plot_set_text(&job, "heading", report->spec->name);
    plot_set_text(&job, "caption", caption);
    plot_set_text(&job, "unit", timeline.unit);
    plot_set_number(&job, "lanes", timeline.lanes);
    plot_set_number(&job, "lane_step", timeline.lane_step);
    plot_set_number(&job, "step", timeline.end);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    plot_timeline_clear(&timeline);
    return ok;
}
