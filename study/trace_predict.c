/* study/trace_predict.c - see trace_predict.h. */
#include "study/trace_predict.h"

#include <math.h>

#include "costmodel/placement.h"
#include "report/spans.h"
#include "study/trace_items.h"

#define PS_PER_S 1e12

enum { STREAM_OF_COMPUTE = 7, STREAM_OF_OTHERS = 20 };

typedef struct Predictor {
    const Report *report;
    TraceRank *rank;
    TraceItems *items;
    GArray *list;        /* TraceItem of the pass at hand */
    int64_t computed_ps; /* when the compute stream was last busy */
} Predictor;

static TraceKernel *add_kernel(Predictor *p, const TraceItem *item, int stream, double begin_ps,
                               double dur_ps)
{
    const int64_t begin = llround(begin_ps);
    const TraceKernel kernel = {.begin_ps = begin,
                                .dur_ps = MAX(llround(begin_ps + dur_ps) - begin, 0),
                                .launch_ps = TRACE_NO_LAUNCH,
                                .name = item->name,
                                .op = item->op,
                                .stream = stream,
                                .bytes = item->bytes,
                                .ranks = item->ranks};
    g_array_append_val(p->rank->kernels, kernel);
    return &g_array_index(p->rank->kernels, TraceKernel, p->rank->kernels->len - 1);
}

/* --- passes --- */

/* What stretches the items of a pass so that they fill it. */
typedef struct Stretch {
    double kernels, exposed; /* times as long: kernels; what follows waits for collectives */
    double lost;             /* share of what kernels lose beside exchanges */
    double collectives;      /* ... and what these last themselves */
    double bare;             /* share of collectives that what follows waits for */
    double host_ps;          /* before each kernel */
    double wait_ps_per_s;    /* behind a kernel, for each second of a collective that runs beside it */
} Stretch;

static Stretch stretch_of(const Predictor *p, const SimSpan *span, const SimWork *work)
{
    double kernels_s = 0, lost_s = 0, exposed_s = 0, beside_s = 0, alone_ps = 0;
    int kernels = 0;
    for (guint i = 0; i < p->list->len; i++) {
        const TraceItem *item = &g_array_index(p->list, TraceItem, i);
        if (!trace_is_communication(item->kind)) {
            kernels_s += item->seconds + item->gap_s;
            lost_s += item->lost_s;
            kernels++;
        } else if (item->under < 0) {
            exposed_s += item->seconds;
        } else {
            beside_s += item->seconds;
        }
    }
    for (int part = 0; part < SIM_PART_COUNT; part++)
        alone_ps += (double)work->part_ps[part];
    const double slower = alone_ps > 0 ? (double)(span->end_ps - span->start_ps) / alone_ps : 1;
    const double compute_ps = (double)(work->part_ps[SIM_PART_COMPUTE] + work->part_ps[SIM_PART_RECOMPUTE]);
    const double comm_ps =
        (double)(work->part_ps[SIM_PART_TENSOR_COMM] + work->part_ps[SIM_PART_CONTEXT_COMM] +
                 work->part_ps[SIM_PART_EXPERT_COMM]);
    const double exposed = exposed_s > 0 ? fmin(1, comm_ps / (exposed_s * PS_PER_S)) : 0;
    const double rest_ps = fmax(0, comm_ps - exposed * exposed_s * PS_PER_S);
    const double more_s = compute_ps / PS_PER_S - kernels_s;
    const double lost = lost_s > 0 ? CLAMP(more_s / lost_s, 0, 1) : 0;
    kernels_s += lost * lost_s;
    return (Stretch){.kernels = kernels_s > 0 ? slower * compute_ps / (kernels_s * PS_PER_S) : 0,
                     .lost = lost,
                     .exposed = slower * exposed,
                     .collectives = slower,
                     .bare = exposed,
                     .host_ps = kernels > 0 ? slower * (double)work->part_ps[SIM_PART_OTHER] / kernels : 0,
                     .wait_ps_per_s = beside_s > 0 ? slower * rest_ps / beside_s : 0};
}

/* Collectives that run beside item `index` begin with it; returns what compute waits for them behind it. */
static double add_beside(Predictor *p, guint index, double begin_ps, const Stretch *stretch)
{
    double wait_ps = 0;
    for (guint i = 0; i < p->list->len; i++) {
        const TraceItem *item = &g_array_index(p->list, TraceItem, i);
        if (!trace_is_communication(item->kind) || item->under != (int)index)
            continue;
        add_kernel(p, item, STREAM_OF_OTHERS, begin_ps,
                   stretch->collectives * item->pace * item->seconds * PS_PER_S);
        wait_ps += stretch->wait_ps_per_s * item->seconds;
    }
    return wait_ps;
}

static void add_pass(Predictor *p, const SimSpan *span, const SimWork *work)
{
    const Stretch stretch = stretch_of(p, span, work);
    const int64_t idle_since_ps = p->computed_ps;
    double at_ps = (double)span->start_ps;
    for (guint i = 0; i < p->list->len; i++) {
        const TraceItem *item = &g_array_index(p->list, TraceItem, i);
        const double dur_ps = (item->seconds + stretch.lost * item->lost_s) * PS_PER_S;
        if (trace_is_communication(item->kind)) {
            if (item->under >= 0)
                continue;
            const double pace = stretch.bare + (1 - stretch.bare) * item->pace;
            add_kernel(p, item, STREAM_OF_OTHERS, at_ps, stretch.collectives * pace * dur_ps);
            at_ps += stretch.exposed * dur_ps;
            continue;
        }
        at_ps += stretch.host_ps;
        const double wait_ps = add_beside(p, i, at_ps, &stretch);
        TraceKernel *kernel = add_kernel(p, item, STREAM_OF_COMPUTE, at_ps, stretch.kernels * dur_ps);
        kernel->launch_ps = stretch.host_ps > 0 ? kernel->begin_ps : MIN(span->start_ps, idle_since_ps);
        at_ps += stretch.kernels * (dur_ps + item->gap_s * PS_PER_S) + wait_ps;
    }
}

/* --- all else --- */

static TraceClass communication_of(const Predictor *p, SimTag tag)
{
    switch (tag) {
    case SIM_TAG_SEND_FORWARD:
    case SIM_TAG_SEND_BACKWARD:
        return TRACE_SEND_RECEIVE;
    case SIM_TAG_PARAM_GATHER:
        return TRACE_ALL_GATHER;
    case SIM_TAG_GRAD_REDUCE:
        return spec_scatters_gradients(p->report->spec) ? TRACE_REDUCE_SCATTER : TRACE_ALL_REDUCE;
    default:
        return TRACE_ALL_REDUCE;
    }
}

/* The message of a collective of data-parallel ranks, from what a rank sends of it in a ring. Over several domains that is not
 * known: 0. */
static double message_bytes(const Predictor *p, TraceClass kind, const SimWork *work, int *ret_ranks)
{
    const CostGroup group = cost_group(p->report->spec, COST_RANKS_REPLICAS);
    const double sent = (double)(work->scale_up_bytes + work->scale_out_bytes);
    *ret_ranks = kind == TRACE_SEND_RECEIVE ? 2 : group.ranks;
    if (kind == TRACE_SEND_RECEIVE)
        return sent;
    if (group.ranks < 2 || group.per_domain < group.ranks)
        return 0;
    return sent * group.ranks / (group.ranks - 1) / (kind == TRACE_ALL_REDUCE ? 2 : 1);
}

static TraceItem item_of_part(Predictor *p, const SimSpan *span, const SimWork *work, SimPart part)
{
    const char *label = sim_tag_label((SimTag)span->tag);
    TraceItem item = {.kind = TRACE_OTHER, .under = -1};
    if (part == SIM_PART_OFFLOAD)
        item.kind = TRACE_COPIES;
    else if (part == SIM_PART_OPTIMIZER || span->tag == SIM_TAG_GRAD_NORM || span->tag == SIM_TAG_OPTIMIZER)
        item.kind = TRACE_OPTIMIZER;
    else if (span->stream != SIM_STREAM_COMPUTE)
        item.kind = TRACE_ELEMENTWISE; /* copies into and out of buckets */
    const bool talks = part >= SIM_PART_TENSOR_COMM && part <= SIM_PART_DATA_COMM;
    if (talks) {
        item.kind = communication_of(p, (SimTag)span->tag);
        item.bytes = message_bytes(p, item.kind, work, &item.ranks);
    }
    g_autofree char *name = talks ? g_strdup(trace_collective_kernel(item.kind))
                            : item.kind == TRACE_COPIES
                                ? g_strdup("Memcpy HtoD (Pinned -> Device)")
                                : g_strdup_printf("orrery::%s %s", trace_class_word(item.kind), label);
    g_autofree char *called = g_strdup_printf("orrery::%s", label);
    item.name = trace_rank_name(p->rank, name, item.kind);
    item.op = trace_rank_op(p->rank, called, "", "");
    return item;
}

/* A span part by part, in the order of the parts; what is of the host leaves the GPU idle. */
static void add_parts(Predictor *p, const SimSpan *span, const SimWork *work)
{
    double alone_ps = 0, at_ps = (double)span->start_ps;
    for (int part = 0; part < SIM_PART_COUNT; part++)
        alone_ps += (double)work->part_ps[part];
    const double slower = alone_ps > 0 ? (double)(span->end_ps - span->start_ps) / alone_ps : 0;
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        const double dur_ps = slower * (double)work->part_ps[part];
        if (dur_ps > 0 && part != SIM_PART_OTHER) {
            const TraceItem item = item_of_part(p, span, work, (SimPart)part);
            add_kernel(p, &item,
                       trace_is_communication(item.kind) || span->stream != SIM_STREAM_COMPUTE
                           ? STREAM_OF_OTHERS + span->stream
                           : STREAM_OF_COMPUTE,
                       at_ps, dur_ps);
        }
        at_ps += dur_ps;
    }
}

static bool is_on_gpu(const Predictor *p, const SimSpan *span)
{
    const SimStreamRow *streams = sim_program_streams(&p->report->program, NULL);
    const SimStreamKind kind = streams[span->stream].kind;
    return kind != SIM_RUNS_HOST && kind != SIM_RUNS_STORAGE;
}

/* Spans of one pass over a stage from `from` on: one, or one a segment. Returns how many. */
static int64_t spans_of_pass(const SimSpan *const *spans, int64_t left)
{
    int64_t count = 1;
    while (count < left && spans[count]->tag == spans[0]->tag && spans[count]->stage == spans[0]->stage &&
           spans[count]->microbatch == spans[0]->microbatch)
        count++;
    return count;
}

/* A forward of a stage beside a backward of another that has the same layers: exchanges of each run beside the other's kernels. */
static bool list_pair(Predictor *p, int stage, int segments)
{
    bool apart = true;
    for (int i = 0; apart && i < segments; i++)
        apart = trace_items_add(p->items, stage, i, SIM_TAG_FORWARD, p->list);
    for (int i = 0; apart && i < segments; i++)
        apart = trace_items_add(p->items, stage, segments - 1 - i, SIM_TAG_BACKWARD, p->list);
    for (guint i = p->list->len, next = 0; i-- > 0;) {
        TraceItem *item = &g_array_index(p->list, TraceItem, i);
        if (!trace_is_communication(item->kind))
            next = i;
        else if (item->under < 0)
            item->under = (int)next;
    }
    return apart;
}

static void add_segments(Predictor *p, const SimSpan *const *spans, int64_t count)
{
    const SimPlan *plan = &p->report->plan;
    const SimSpan *first = spans[0];
    const int segments =
        plan->stages != NULL ? plan->stages[first->stage % sim_plan_model_stages(plan)].segment_count : 0;
    for (int64_t n = 0; n < count; n++) {
        const SimWork *work = &p->report->program.works[spans[n]->work];
        bool apart = count == 1 || count == segments;
        g_array_set_size(p->list, 0);
        if (first->tag == SIM_TAG_FORWARD_BACKWARD)
            apart = count == 1 && list_pair(p, first->stage, segments);
        for (int i = 0; apart && first->tag != SIM_TAG_FORWARD_BACKWARD && i < segments; i++) {
            const int segment = first->tag == SIM_TAG_FORWARD ? i : segments - 1 - i;
            if (count == 1 || i == n)
                apart = trace_items_add(p->items, first->stage, segment, (SimTag)first->tag, p->list);
        }
        if (apart && p->list->len > 0)
            add_pass(p, spans[n], work);
        else
            add_parts(p, spans[n], work);
        p->computed_ps = spans[n]->end_ps;
    }
}

/* What a stream of a rank ran on the GPU, in its order; g_ptr_array_unref. */
static GPtrArray *spans_of_stream(const Predictor *p, const ReportSpans *index, int rank, int stream)
{
    const SimResult *result = &p->report->result;
    GPtrArray *spans = g_ptr_array_new();
    for (int64_t n = 0;; n++) {
        const SimSpan *span = report_span_at(result, index, rank, stream, n);
        if (span == NULL)
            break;
        if (span->work >= 0 && is_on_gpu(p, span))
            g_ptr_array_add(spans, (gpointer)span);
    }
    return spans;
}

static void add_stream(Predictor *p, const ReportSpans *index, int rank, int stream)
{
    g_autoptr(GPtrArray) spans = spans_of_stream(p, index, rank, stream);
    for (int64_t at = 0; at < spans->len;) {
        const SimSpan *const *first = (const SimSpan *const *)(gpointer)&spans->pdata[at];
        const int64_t count = spans_of_pass(first, spans->len - at);
        if (stream == SIM_STREAM_COMPUTE && first[0]->tag <= SIM_TAG_FORWARD_BACKWARD &&
            first[0]->stage >= 0) {
            add_segments(p, first, count);
            at += count;
        } else {
            add_parts(p, first[0], &p->report->program.works[first[0]->work]);
            at++;
        }
    }
}

int trace_pipeline_rank(const Report *report, int rank, int world)
{
    const int stages = report->plan.shape.ranks;
    return rank < 0 || world != report->gpus || world < stages ? 0 : MIN(rank / (world / stages), stages - 1);
}

static Predictor predictor_new(const Report *report)
{
    Predictor p = {.report = report, .rank = trace_rank_new("the prediction")};
    p.items = trace_items_new(report, p.rank);
    p.list = g_array_new(FALSE, FALSE, sizeof(TraceItem));
    return p;
}

/* Names whose the kernels are, and the time that they are the step of. */
static TraceRank *predictor_finish(Predictor *p, int pipeline_rank, TraceStep step)
{
    TraceRank *rank = p->rank;
    g_free(rank->device);
    rank->device = g_strdup(p->report->spec->cluster.accelerator.name);
    rank->rank = pipeline_rank * (p->report->gpus / MAX(p->report->plan.shape.ranks, 1));
    rank->world = p->report->gpus;
    rank->shapes = true;
    g_array_append_val(rank->steps, step);
    trace_rank_sort(rank);
    g_array_free(p->list, TRUE);
    trace_items_free(p->items);
    return rank;
}

TraceRank *trace_predict(const Report *report, int pipeline_rank)
{
    Predictor p = predictor_new(report);
    ReportSpans index = report_spans_index(&report->result);
    for (int stream = 0; stream < SIM_MAX_STREAMS; stream++)
        add_stream(&p, &index, pipeline_rank * report_ranks_a_stage(report), stream);
    report_spans_clear(&index);
    return predictor_finish(&p, pipeline_rank, (TraceStep){0, 0, report_ideal_ps(report)});
}

TraceRank *trace_predict_pass(const Report *report, int pipeline_rank, SimTag tag)
{
    ReportSpans index = report_spans_index(&report->result);
    Predictor p = predictor_new(report);
    g_autoptr(GPtrArray) spans =
        spans_of_stream(&p, &index, pipeline_rank * report_ranks_a_stage(report), SIM_STREAM_COMPUTE);
    TraceStep step = {0};
    for (int64_t at = 0; at < spans->len; at++) {
        const SimSpan *const *first = (const SimSpan *const *)(gpointer)&spans->pdata[at];
        if (first[0]->tag != tag || first[0]->stage < 0)
            continue;
        const int64_t count = spans_of_pass(first, spans->len - at);
        p.computed_ps = first[0]->start_ps;
        add_segments(&p, first, count);
        step = (TraceStep){0, first[0]->start_ps, first[count - 1]->end_ps};
        break;
    }
    report_spans_clear(&index);
    TraceRank *rank = predictor_finish(&p, pipeline_rank, step);
    if (rank->kernels->len > 0)
        return rank;
    trace_rank_free(rank);
    return NULL;
}
