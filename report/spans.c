/* report/spans.c - see spans.h. The n-th span of a stream is the n-th instruction of its list that is not a wait. */
#include "report/spans.h"

ReportSpans report_spans_index(const SimResult *result)
{
    const gsize lanes = (gsize)result->ranks * SIM_MAX_STREAMS;
    ReportSpans spans = {g_new0(int64_t, lanes + 2), g_new(int32_t, (gsize)result->span_count + 1)};
    int64_t *next = spans.first + 1;           /* becomes `first` itself once every span was placed */
    g_assert(result->span_count < G_MAXINT32); /* 80 GB of spans before */
    for (int64_t i = 0; i < result->span_count; i++)
        next[result->spans[i].rank * SIM_MAX_STREAMS + result->spans[i].stream + 1]++;
    for (gsize lane = 1; lane <= lanes; lane++)
        next[lane] += next[lane - 1];
    for (int64_t i = 0; i < result->span_count; i++)
        spans.by[next[result->spans[i].rank * SIM_MAX_STREAMS + result->spans[i].stream]++] = (int32_t)i;
    return spans;
}

void report_spans_clear(ReportSpans *spans)
{
    g_clear_pointer(&spans->first, g_free);
    g_clear_pointer(&spans->by, g_free);
}

const SimSpan *report_span_at(const SimResult *result, const ReportSpans *spans, int rank, int stream,
                              int64_t n)
{
    const int64_t lane = (int64_t)rank * SIM_MAX_STREAMS + stream;
    const int64_t at = spans->first[lane] + n;
    return n >= 0 && at < spans->first[lane + 1] ? &result->spans[spans->by[at]] : NULL;
}

void report_walk_begin(const SimProgram *program, const SimResult *result, const ReportSpans *spans, int rank,
                       ReportWalk *ret_walk)
{
    const SimClass *class = &program->class_list[rank / MAX(program->replicas, 1)];
    *ret_walk = (ReportWalk){
        .program = program, .result = result, .spans = spans, .static_bytes = class->static_bytes};
    for (int stream = 0; stream < SIM_MAX_STREAMS; stream++) {
        const int64_t lane = (int64_t)rank * SIM_MAX_STREAMS + stream;
        ret_walk->streams[stream] =
            (ReportWalkStream){&class->streams[stream], 0, spans->first[lane], spans->first[lane + 1], false};
    }
}

static int64_t next_ps(const ReportWalk *walk, int stream)
{
    const ReportWalkStream *of = &walk->streams[stream];
    if (of->at == of->end)
        return G_MAXINT64;
    const SimSpan *span = &walk->result->spans[walk->spans->by[of->at]];
    return of->running ? span->end_ps : span->start_ps;
}

static int next_stream(const ReportWalk *walk)
{
    int first = 0;
    for (int stream = 1; stream < SIM_MAX_STREAMS; stream++)
        if (next_ps(walk, stream) < next_ps(walk, first))
            first = stream;
    return first;
}

int64_t report_walk_next_ps(const ReportWalk *walk)
{
    return next_ps(walk, next_stream(walk));
}

const int64_t *report_walk_take(ReportWalk *walk, const SimSpan **ret_span)
{
    ReportWalkStream *of = &walk->streams[next_stream(walk)];
    g_assert(of->at < of->end);
    while (of->list->instrs[of->instr].op == SIM_ONLY_WAITS)
        of->instr++;
    const int32_t mem = walk->program->ops[of->list->instrs[of->instr].op].mem;
    const bool ends = of->running;
    if (ret_span != NULL)
        *ret_span = &walk->result->spans[walk->spans->by[of->at]];
    of->running = !ends;
    if (ends) {
        of->at++;
        of->instr++;
    }
    if (mem < 0 || walk->program->mems == NULL)
        return NULL;
    return ends ? walk->program->mems[mem].end_bytes : walk->program->mems[mem].start_bytes;
}
