/* plots/timeline.c - what every pipeline rank does when, as boxes.
 *
 * The band "compute" is the compute stream, the band "other" all other streams. An op that is made of several parts
 * (recomputation, compute, communication inside it) becomes its parts in a fixed order, as long as they last: the op is
 * summed work, so the order inside it is a convention.
 */
#include "plots/data.h"
#include "plots/driver.h"

typedef enum {
    KIND_FORWARD,
    KIND_BACKWARD,
    KIND_PAIR,
    KIND_WEIGHT,
    KIND_RECOMPUTE,
    KIND_TENSOR,
    KIND_CONTEXT,
    KIND_EXPERT,
    KIND_SEND,
    KIND_DATA,
    KIND_OFFLOAD,
    KIND_OPTIMIZER,
    KIND_OTHER
} Kind;

static const PlotKind kinds[PLOT_KINDS] = {
    [KIND_FORWARD] = {"forward", true, true},
    [KIND_BACKWARD] = {"backward", true, true},
    [KIND_PAIR] = {"forward and backward", true, true},
    [KIND_WEIGHT] = {"weight gradient", false, true},
    [KIND_RECOMPUTE] = {"recompute", false, false},
    [KIND_TENSOR] = {"tensor comm", false, false},
    [KIND_CONTEXT] = {"context comm", true, false},
    [KIND_EXPERT] = {"expert comm", false, false},
    [KIND_SEND] = {"pipeline send", false, false},
    [KIND_DATA] = {"data comm", false, false},
    [KIND_OFFLOAD] = {"offload", true, false},
    [KIND_OPTIMIZER] = {"optimizer", true, false},
    [KIND_OTHER] = {"other", false, false},
};

/* Ops of one pass that follow each other without a gap (its segments), drawn as one. */
typedef struct Pass {
    bool open;
    SimSpan span; /* start of the first, end of the last */
    double part_ps[SIM_PART_COUNT];
} Pass;

typedef struct Lanes {
    const Report *report;
    PlotTimeline *timeline;
    Pass *passes; /* [lanes x streams] */
    bool used[PLOT_KINDS];
} Lanes;

static Kind kind_of_compute(SimTag tag)
{
    switch (tag) {
    case SIM_TAG_FORWARD:
        return KIND_FORWARD;
    case SIM_TAG_BACKWARD:
    case SIM_TAG_BACKWARD_INPUT:
        return KIND_BACKWARD;
    case SIM_TAG_FORWARD_BACKWARD:
        return KIND_PAIR;
    case SIM_TAG_BACKWARD_WEIGHT:
        return KIND_WEIGHT;
    default:
        return KIND_OTHER;
    }
}

static Kind kind_of(SimPart part, SimTag tag)
{
    static const Kind by_part[SIM_PART_COUNT] = {
        [SIM_PART_RECOMPUTE] = KIND_RECOMPUTE,  [SIM_PART_TENSOR_COMM] = KIND_TENSOR,
        [SIM_PART_CONTEXT_COMM] = KIND_CONTEXT, [SIM_PART_EXPERT_COMM] = KIND_EXPERT,
        [SIM_PART_PIPELINE_COMM] = KIND_SEND,   [SIM_PART_DATA_COMM] = KIND_DATA,
        [SIM_PART_OFFLOAD] = KIND_OFFLOAD,      [SIM_PART_OPTIMIZER] = KIND_OPTIMIZER,
        [SIM_PART_OTHER] = KIND_OTHER,
    };
    return part == SIM_PART_COMPUTE ? kind_of_compute(tag) : by_part[part];
}

static void append_number(GString *csv, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_c(csv, ',');
    g_string_append(csv, g_ascii_formatd(text, sizeof text, "%.9g", value));
}

static void add_box(Lanes *lanes, const SimSpan *span, int rank, double from, double to, Kind kind)
{
    GString *csv = lanes->timeline->csv;
    const double unit_ps = lanes->timeline->unit_s * 1e12;
    g_string_append_printf(csv, "%d,%s", rank, span->stream == SIM_STREAM_COMPUTE ? "compute" : "other");
    append_number(csv, from);
    append_number(csv, to);
    g_string_append_printf(csv, ",%s,%d,%d", kinds[kind].label, span->stage, span->microbatch);
    append_number(csv, (double)span->start_ps / unit_ps);
    append_number(csv, (double)span->end_ps / unit_ps);
    g_string_append_c(csv, '\n');
    const PlotBox box = {.kind = &kinds[kind],
                         .lane = rank / lanes->timeline->lane_step,
                         .compute = span->stream == SIM_STREAM_COMPUTE,
                         .start = from,
                         .end = to};
    g_array_append_val(lanes->timeline->boxes, box);
    lanes->used[kind] = true;
}

static void add_pass(Lanes *lanes, const Pass *pass, int rank)
{
    /* Recomputation first, then the work itself, then what it sends. */
    static const SimPart order[SIM_PART_COUNT] = {
        SIM_PART_RECOMPUTE,   SIM_PART_COMPUTE,      SIM_PART_OPTIMIZER,   SIM_PART_OTHER,
        SIM_PART_TENSOR_COMM, SIM_PART_CONTEXT_COMM, SIM_PART_EXPERT_COMM, SIM_PART_PIPELINE_COMM,
        SIM_PART_DATA_COMM,   SIM_PART_OFFLOAD};
    const SimSpan *span = &pass->span;
    const double unit_ps = lanes->timeline->unit_s * 1e12;
    const double start = (double)span->start_ps / unit_ps, end = (double)span->end_ps / unit_ps;
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
        add_box(lanes, span, rank, from, start + (end - start) * done_ps / total_ps,
                kind_of(order[i], (SimTag)span->tag));
    }
}

static void add_span(Lanes *lanes, const SimSpan *span, int lane)
{
    Pass *pass = &lanes->passes[lane * SIM_MAX_STREAMS + span->stream];
    const SimSpan *before = &pass->span;
    const bool goes_on = pass->open && before->end_ps == span->start_ps && before->tag == span->tag &&
                         before->stage == span->stage && before->microbatch == span->microbatch;
    if (!goes_on) {
        if (pass->open)
            add_pass(lanes, pass, lane * lanes->timeline->lane_step);
        *pass = (Pass){.open = true, .span = *span};
    }
    pass->span.end_ps = span->end_ps;
    for (int i = 0; i < SIM_PART_COUNT; i++)
        pass->part_ps[i] += (double)lanes->report->program.works[span->work].part_ps[i];
}

static void add_spans(Lanes *lanes)
{
    const SimResult *result = &lanes->report->result;
    const int replicas = report_ranks_a_stage(lanes->report), step = lanes->timeline->lane_step;
    const int passes = lanes->timeline->lanes * SIM_MAX_STREAMS;
    lanes->passes = g_new0(Pass, (gsize)passes);
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        const int rank = span->rank / replicas;
        if (span->rank % replicas == 0 && rank % step == 0)
            add_span(lanes, span, rank / step);
    }
    for (int i = 0; i < passes; i++)
        if (lanes->passes[i].open)
            add_pass(lanes, &lanes->passes[i], i / SIM_MAX_STREAMS * step);
    g_free(lanes->passes);
}

PlotTimeline plot_timeline(const Report *report, int most_lanes)
{
    g_assert(report->result.spans != NULL);
    const int ranks = report->program.classes;
    const int step = (ranks + most_lanes - 1) / most_lanes;
    PlotTimeline timeline = {
        .csv = g_string_new("rank,band,start,end,kind,stage,microbatch,pass_start,pass_end\n"),
        .boxes = g_array_new(FALSE, FALSE, sizeof(PlotBox)),
        .lanes = (ranks + step - 1) / step,
        .lane_step = step};
    Lanes lanes = {.report = report, .timeline = &timeline};
    timeline.unit = plot_time_unit((double)report->step_ps * 1e-12, &timeline.unit_s);
    timeline.end = (double)report->result.end_ps * 1e-12 / timeline.unit_s;
    add_spans(&lanes);
    for (int kind = 0; kind < PLOT_KINDS; kind++)
        if (lanes.used[kind])
            timeline.kinds[timeline.kind_count++] = &kinds[kind];
    return timeline;
}

void plot_timeline_clear(PlotTimeline *timeline)
{
    g_string_free(timeline->csv, TRUE);
    g_array_free(timeline->boxes, TRUE);
}
