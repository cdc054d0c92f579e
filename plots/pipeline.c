/* plots/pipeline.c - the timeline of the pipeline: one lane a pipeline rank.
 *
 * The tall band of a lane is the compute stream; the thin strip under it are the other streams. An op that
 * is made of several parts (recomputation, compute, communication inside it) is drawn as its parts in that
 * order, as long as they last: the op is summed work, so the order inside it is a convention.
 */
#include "plots/driver.h"

#include <math.h>

#define MAX_LANES  64
#define BAND_FROM  0.04 /* of a lane, from its top; pipeline.gp draws the idle band there too */
#define BAND_TO    0.70
#define STRIP_FROM 0.73
#define STRIP_TO   0.89
#define DIGIT_FRAC 0.0055 /* of the step: width of a digit; ops too narrow for their number get none */
#define GAP_FRAC   0.001  /* of the step: kept free behind passes that are much wider */

typedef enum {
    LOOK_FORWARD,
    LOOK_BACKWARD,
    LOOK_WEIGHT,
    LOOK_RECOMPUTE,
    LOOK_MODEL_COMM,
    LOOK_SEND,
    LOOK_DATA_COMM,
    LOOK_OFFLOAD,
    LOOK_OPTIMIZER,
    LOOK_OTHER,
    LOOK_COUNT
} Look;

typedef struct LookWord {
    const char *label, *colour;
    bool dark; /* numbers on it are white */
} LookWord;

/* Okabe and Ito's colours: told apart with any colour vision. */
static const LookWord looks[LOOK_COUNT] = {
    [LOOK_FORWARD] = {"forward", "#0072B2", true},
    [LOOK_BACKWARD] = {"backward", "#009E73", true},
    [LOOK_WEIGHT] = {"weight gradient", "#8FD3BC", false},
    [LOOK_RECOMPUTE] = {"recompute", "#F0E442", false},
    [LOOK_MODEL_COMM] = {NULL, "#E69F00", false}, /* named after the parts that occur */
    [LOOK_SEND] = {"pipeline send", "#56B4E9", false},
    [LOOK_DATA_COMM] = {"data comm", "#CC79A7", false},
    [LOOK_OFFLOAD] = {"offload", "#7F5F3F", true},
    [LOOK_OPTIMIZER] = {"optimizer", "#333333", true},
    [LOOK_OTHER] = {"other", "#D55E00", false},
};

/* Ops of one pass that follow each other without a gap (its segments), drawn as one. */
typedef struct Pass {
    bool open;
    SimSpan span; /* start of the first, end of the last */
    double part_ps[SIM_PART_COUNT];
} Pass;

typedef struct Timeline {
    const Report *report;
    Pass *passes; /* [lanes x streams] */
    GString *csv;
    int lanes, lane_step; /* every lane_step-th pipeline rank is shown */
    int replicas;
    double unit_s, step_units;
    bool used[LOOK_COUNT], part_used[SIM_PART_COUNT];
    bool numbers;
} Timeline;

static Look look_of_compute(SimTag tag)
{
    switch (tag) {
    case SIM_TAG_FORWARD:
        return LOOK_FORWARD;
    case SIM_TAG_BACKWARD:
    case SIM_TAG_BACKWARD_INPUT:
    case SIM_TAG_FORWARD_BACKWARD:
        return LOOK_BACKWARD;
    case SIM_TAG_BACKWARD_WEIGHT:
        return LOOK_WEIGHT;
    default:
        return LOOK_OTHER;
    }
}

static Look look_of(SimPart part, SimTag tag)
{
    switch (part) {
    case SIM_PART_COMPUTE:
        return look_of_compute(tag);
    case SIM_PART_RECOMPUTE:
        return LOOK_RECOMPUTE;
    case SIM_PART_TENSOR_COMM:
    case SIM_PART_CONTEXT_COMM:
    case SIM_PART_EXPERT_COMM:
        return LOOK_MODEL_COMM;
    case SIM_PART_PIPELINE_COMM:
        return LOOK_SEND;
    case SIM_PART_DATA_COMM:
        return LOOK_DATA_COMM;
    case SIM_PART_OFFLOAD:
        return LOOK_OFFLOAD;
    case SIM_PART_OPTIMIZER:
        return LOOK_OPTIMIZER;
    case SIM_PART_OTHER:
    case SIM_PART_COUNT:
        return LOOK_OTHER;
    }
    g_assert_not_reached();
}

static void add_box(Timeline *t, double from, double to, double bottom, double top, Look look)
{
    char number[4][G_ASCII_DTOSTR_BUF_SIZE];
    const double values[4] = {from, to, bottom, top};
    for (int i = 0; i < 4; i++)
        g_ascii_formatd(number[i], sizeof number[i], "%.9g", values[i]);
    g_string_append_printf(t->csv, "%s,%s,%s,%s,%d,\n", number[0], number[1], number[2], number[3],
                           (int)look);
    t->used[look] = true;
}

/* A number in the middle of an op, in a row of its own. */
static void add_number(Timeline *t, double from, double to, double at, Look look, int microbatch)
{
    char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(x, sizeof x, "%.9g", (from + to) / 2.0);
    g_ascii_formatd(y, sizeof y, "%.9g", at);
    g_string_append_printf(t->csv, "%s,%s,,,%d,%d\n", x, y, looks[look].dark ? -2 : -1, microbatch);
    t->numbers = true;
}

static void draw_pass(Timeline *t, const Pass *pass, int lane)
{
    /* Recomputation first, then the work itself, then what it sends. */
    static const SimPart order[SIM_PART_COUNT] = {
        SIM_PART_RECOMPUTE,   SIM_PART_COMPUTE,      SIM_PART_OPTIMIZER,   SIM_PART_OTHER,
        SIM_PART_TENSOR_COMM, SIM_PART_CONTEXT_COMM, SIM_PART_EXPERT_COMM, SIM_PART_PIPELINE_COMM,
        SIM_PART_DATA_COMM,   SIM_PART_OFFLOAD};
    const SimSpan *span = &pass->span;
    const bool main_band = span->stream == SIM_STREAM_COMPUTE;
    const double bottom = lane + (main_band ? BAND_FROM : STRIP_FROM);
    const double top = lane + (main_band ? BAND_TO : STRIP_TO);
    const double start = (double)span->start_ps * 1e-12 / t->unit_s;
    double end = (double)span->end_ps * 1e-12 / t->unit_s;
    if (end - start > 6.0 * GAP_FRAC * t->step_units)
        end -= GAP_FRAC * t->step_units;
    double total_ps = 0.0, done_ps = 0.0;
    for (int i = 0; i < SIM_PART_COUNT; i++)
        total_ps += pass->part_ps[i];
    if (!(total_ps > 0.0) || !(end > start))
        return;
    for (int i = 0; i < SIM_PART_COUNT; i++) {
        const double ps = pass->part_ps[order[i]];
        if (!(ps > 0.0))
            continue;
        const double from = start + (end - start) * done_ps / total_ps;
        done_ps += ps;
        t->part_used[order[i]] = true;
        add_box(t, from, start + (end - start) * done_ps / total_ps, bottom, top,
                look_of(order[i], (SimTag)span->tag));
    }
    const Look look = look_of_compute((SimTag)span->tag);
    const int digits = span->microbatch < 10 ? 1 : span->microbatch < 100 ? 2 : 3;
    const double needed = (digits + 0.3) * DIGIT_FRAC * t->step_units;
    if (main_band && span->microbatch >= 0 && look != LOOK_OTHER && end - start > needed)
        add_number(t, start, end, (bottom + top) / 2.0, look, span->microbatch);
}

static void add_span(Timeline *t, const SimSpan *span, int lane)
{
    Pass *pass = &t->passes[lane * SIM_MAX_STREAMS + span->stream];
    const SimSpan *before = &pass->span;
    const bool goes_on = pass->open && before->end_ps == span->start_ps && before->tag == span->tag &&
                         before->stage == span->stage && before->microbatch == span->microbatch;
    if (!goes_on) {
        if (pass->open)
            draw_pass(t, pass, lane);
        *pass = (Pass){.open = true, .span = *span};
    }
    pass->span.end_ps = span->end_ps;
    for (int i = 0; i < SIM_PART_COUNT; i++)
        pass->part_ps[i] += (double)t->report->program.works[span->work].part_ps[i];
}

static void add_spans(Timeline *t)
{
    const SimResult *result = &t->report->result;
    const int passes = t->lanes * SIM_MAX_STREAMS;
    t->passes = g_new0(Pass, (gsize)passes);
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        const int rank = span->rank / t->replicas;
        if (span->rank % t->replicas == 0 && rank % t->lane_step == 0)
            add_span(t, span, rank / t->lane_step);
    }
    for (int i = 0; i < passes; i++) {
        if (t->passes[i].open)
            draw_pass(t, &t->passes[i], i / SIM_MAX_STREAMS);
    }
    g_free(t->passes);
}

static char *look_label(const Timeline *t, Look look)
{
    if (looks[look].label != NULL)
        return g_strdup(looks[look].label);
    return g_strdup_printf("%s%s%scomm", t->part_used[SIM_PART_TENSOR_COMM] ? "tensor " : "",
                           t->part_used[SIM_PART_CONTEXT_COMM] ? "context " : "",
                           t->part_used[SIM_PART_EXPERT_COMM] ? "expert " : "");
}

static void set_looks(PlotJob *job, const Timeline *t)
{
    g_autoptr(GString) labels = g_string_new(NULL), colours = g_string_new(NULL), codes = g_string_new(NULL);
    int count = 0;
    for (int look = 0; look < LOOK_COUNT; look++) {
        if (!t->used[look])
            continue;
        g_autofree char *label = look_label(t, (Look)look);
        g_string_append_printf(labels, "%s\"%s\"", count > 0 ? " " : "", label);
        g_string_append_printf(colours, "%s%s", count > 0 ? " " : "", looks[look].colour);
        g_string_append_printf(codes, "%s%d", count > 0 ? " " : "", look);
        count++;
    }
    plot_set_text(job, "look_labels", labels->str);
    plot_set_text(job, "look_colours", colours->str);
    plot_set_text(job, "look_codes", codes->str);
    plot_set_number(job, "look_count", count);
}

bool plot_pipeline(const Report *report, const PlotTarget *target, GError **error)
{
    g_assert(report->result.spans != NULL);
    PlotJob job;
    plot_job_init(&job, "pipeline");
    const int ranks = report->program.classes;
    const int lane_step = (ranks + MAX_LANES - 1) / MAX_LANES;
    Timeline t = {.report = report,
                  .csv = job.csv,
                  .lanes = (ranks + lane_step - 1) / lane_step,
                  .lane_step = lane_step,
                  .replicas = report->program.replicas};
    const double step_s = (double)report->step_ps * 1e-12;
    plot_set_text(&job, "unit", plot_time_unit(step_s, &t.unit_s));
    t.step_units = (double)report->result.end_ps * 1e-12 / t.unit_s;
    g_string_append(job.csv, "start,end,bottom,top,look,microbatch\n");
    add_spans(&t);
    set_looks(&job, &t);
    plot_set_text(&job, "heading", report->spec->name);
    const SpecParallel *parallel = &report->spec->parallel;
    g_autofree char *caption = g_strdup_printf(
        "%s, %d micro-batch%s: step %.4g %s, bubble %.1f %% (mean over ranks)",
        parallel->schedule_file[0] != '\0' ? parallel->schedule_file
                                           : spec_word(&spec_words_schedule, (int)parallel->schedule),
        spec_microbatches(report->spec), spec_microbatches(report->spec) == 1 ? "" : "es", step_s / t.unit_s,
        plot_time_unit(step_s, &t.unit_s), report->bubble_frac * 100.0);
    plot_set_text(&job, "caption", caption);
    plot_set_number(&job, "lanes", t.lanes);
    plot_set_number(&job, "lane_step", lane_step);
    plot_set_number(&job, "step", t.step_units);
    plot_set_number(&job, "numbers", t.numbers ? 1 : 0);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
