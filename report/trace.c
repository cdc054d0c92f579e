/* report/trace.c - the recorded spans as a Chrome trace, as Perfetto and chrome://tracing read it.
 *
 * pid = rank, tid = stream, ts and dur in microseconds with six decimals (whole picoseconds), counters
 * for memory, and an arrow from each send to the op that waited for it. Text goes out in pieces; neither the
 * document nor the levels of memory are held: those follow from the spans and what their instructions take and give.
 *
 * Arrows follow the program, not the names of ops: a wait for a send stream of another class is the
 * end of an arrow, and the op behind the wait receives. The n-th span of a stream is the n-th instruction
 * of its list that is not a wait.
 */
#include <string.h>

#include "report/parts.h"
#include "report/spans.h"

#define PS_PER_US 1000000

enum { PIECE = 1 << 16 };

typedef struct TraceWriter {
    const ReportTraceAsk *ask;
    const SimProgram *program;
    GString *out;     /* not yet put */
    char **work_args; /* [works]: what an op of this work takes alone, by part; NULL: not yet written */
    bool any, stopped;
} TraceWriter;

/* --- text --- */

static void append_whole(GString *out, int64_t value)
{
    char digits[24];
    char *end = digits + sizeof digits, *at = end;
    uint64_t left = value < 0 ? (uint64_t)-value : (uint64_t)value;
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (value < 0)
        *--at = '-';
    g_string_append_len(out, at, end - at);
}

static void flush(TraceWriter *w)
{
    if (!w->stopped)
        w->stopped = !w->ask->put(w->out->str, w->out->len, w->ask->data);
    g_string_truncate(w->out, 0);
}

static void begin_event(TraceWriter *w, const char *kind, int rank)
{
    if (w->out->len > PIECE)
        flush(w);
    g_string_append(w->out, w->any ? ",\n{\"ph\":\"" : "\n{\"ph\":\"");
    g_string_append(w->out, kind);
    g_string_append(w->out, "\",\"pid\":");
    append_whole(w->out, rank);
    w->any = true;
}

static void append_us(TraceWriter *w, const char *key, int64_t ps)
{
    char fraction[7];
    int64_t rest = ps % PS_PER_US;
    for (int i = 6; i-- > 0; rest /= 10)
        fraction[i] = (char)('0' + rest % 10);
    g_string_append(w->out, key);
    append_whole(w->out, ps / PS_PER_US);
    g_string_append_c(w->out, '.');
    g_string_append_len(w->out, fraction, 6);
}

static void append_quoted(GString *out, const char *key, const char *text)
{
    OrrJsonWriter writer;
    orr_jw_init(&writer, out, true);
    g_string_append_printf(out, ",\"%s\":", key);
    orr_jw_text(&writer, NULL, text);
}

static bool wants_rank(const TraceWriter *w, int rank)
{
    return w->ask->ranks == NULL || (rank < w->ask->rank_count && w->ask->ranks[rank]);
}

/* Inside the asked stretch of time, wholly or in part. */
static bool wants(const TraceWriter *w, int rank, int64_t start_ps, int64_t end_ps)
{
    return wants_rank(w, rank) && end_ps >= w->ask->from_ps && start_ps <= w->ask->to_ps;
}

/* --- names of ranks and streams --- */

static void write_names(TraceWriter *w, const Report *report)
{
    const SimResult *result = &report->result;
    const int replicas = MAX(report_ranks_a_stage(report), 1);
    const SimStreamRow *streams = sim_program_streams(&report->program, NULL);
    g_autofree bool *used = g_new0(bool, (gsize)result->ranks *SIM_MAX_STREAMS);
    for (int64_t i = 0; i < result->span_count; i++)
        used[result->spans[i].rank * SIM_MAX_STREAMS + result->spans[i].stream] = true;
    for (int rank = 0; rank < result->ranks; rank++) {
        if (!wants_rank(w, rank))
            continue;
        const int stands_for = report->gpus / MAX(result->ranks, 1);
        g_autoptr(GString) name = g_string_new(NULL);
        g_string_printf(name, "pipeline rank %d", rank / replicas);
        if (replicas > 1)
            g_string_append_printf(name, ", replica %d", rank % replicas);
        else if (stands_for > 1)
            g_string_append_printf(name, " (one of %d GPUs)", stands_for);
        begin_event(w, "M", rank);
        g_string_append_printf(w->out, ",\"name\":\"process_name\",\"args\":{\"name\":\"%s\"}}", name->str);
        begin_event(w, "M", rank);
        g_string_append_printf(w->out, ",\"name\":\"process_sort_index\",\"args\":{\"sort_index\":%d}}",
                               rank);
        for (int stream = 0; stream < SIM_MAX_STREAMS; stream++) {
            if (!used[rank * SIM_MAX_STREAMS + stream])
                continue;
            begin_event(w, "M", rank);
            g_string_append_printf(w->out, ",\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":\"%s\"}}",
                                   stream, streams[stream].name);
            begin_event(w, "M", rank);
            g_string_append_printf(w->out,
                                   ",\"tid\":%d,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%d}}",
                                   stream, stream);
        }
    }
}

/* --- ops --- */

/* What the work would take alone, by part: `,"compute_us":1.5` each. */
static const char *work_args(TraceWriter *w, int32_t index)
{
    const SimWork *work = &w->program->works[index];
    if (w->work_args[index] != NULL)
        return w->work_args[index];
    GString *args = g_string_new(NULL);
    for (int part = 0; part < SIM_PART_COUNT; part++)
        if (work->part_ps[part] != 0)
            g_string_append_printf(args, ",\"%s_us\":%" G_GINT64_FORMAT ".%06" G_GINT64_FORMAT,
                                   report_part_name((SimPart)part), work->part_ps[part] / PS_PER_US,
                                   work->part_ps[part] % PS_PER_US);
    w->work_args[index] = g_string_free(args, FALSE);
    return w->work_args[index];
}

static void write_span(TraceWriter *w, const SimStreamRow *streams, const SimSpan *span)
{
    GString *out = w->out;
    begin_event(w, "X", span->rank);
    g_string_append(out, ",\"tid\":");
    append_whole(out, span->stream);
    append_us(w, ",\"ts\":", span->start_ps);
    append_us(w, ",\"dur\":", span->end_ps - span->start_ps);
    g_string_append(out, ",\"name\":\"");
    g_string_append(out, sim_tag_label((SimTag)span->tag));
    if (span->microbatch >= 0) {
        g_string_append_c(out, ' ');
        append_whole(out, span->microbatch);
    }
    g_string_append(out, "\",\"cat\":\"");
    g_string_append(out, streams[span->stream].name);
    g_string_append(out, "\",\"args\":{");
    const gsize empty = out->len;
    if (span->stage >= 0) {
        g_string_append(out, ",\"stage\":");
        append_whole(out, span->stage);
    }
    if (span->microbatch >= 0) {
        g_string_append(out, ",\"microbatch\":");
        append_whole(out, span->microbatch);
    }
    if (span->work >= 0 && span->work < w->program->work_count)
        g_string_append(out, work_args(w, span->work));
    if (out->len > empty)
        g_string_erase(out, (gssize)empty, 1); /* the first comma */
    g_string_append(out, "}}");
}

/* --- arrows --- */

/* Instructions before `index` that leave a span. */
static int32_t *count_ops_before(const SimList *list)
{
    int32_t *before = g_new(int32_t, (gsize)list->count + 1);
    before[0] = 0;
    for (int64_t i = 0; i < list->count; i++)
        before[i + 1] = before[i] + (list->instrs[i].op != SIM_ONLY_WAITS);
    return before;
}

static void write_arrow(TraceWriter *w, int64_t *id, const SimSpan *from, const SimSpan *to)
{
    if (!wants(w, from->rank, from->start_ps, from->end_ps) || !wants(w, to->rank, to->start_ps, to->end_ps))
        return;
    begin_event(w, "s", from->rank);
    g_string_append_printf(w->out,
                           ",\"tid\":%d,\"id\":%" G_GINT64_FORMAT ",\"name\":\"send\",\"cat\":\"send\"",
                           from->stream, *id);
    append_us(w, ",\"ts\":", from->start_ps);
    g_string_append_c(w->out, '}');
    begin_event(w, "f", to->rank);
    g_string_append_printf(
        w->out, ",\"tid\":%d,\"id\":%" G_GINT64_FORMAT ",\"name\":\"send\",\"cat\":\"send\",\"bp\":\"e\"",
        to->stream, *id);
    append_us(w, ",\"ts\":", to->start_ps);
    g_string_append_c(w->out, '}');
    (*id)++;
}

static void write_arrows(TraceWriter *w, const SimResult *result, const ReportSpans *spans,
                         int32_t *const *before)
{
    const SimProgram *program = w->program;
    const int lanes = program->classes * SIM_MAX_STREAMS;
    int64_t id = 1;
    for (int lane = 0; lane < lanes; lane++) {
        const int class = lane / SIM_MAX_STREAMS, stream = lane % SIM_MAX_STREAMS;
        const SimList *list = &program->class_list[class].streams[stream];
        for (int64_t i = 0; i < list->count; i++) {
            const SimInstr *wait = &list->instrs[i];
            const int sender = sim_wait_class(wait, class), by = sim_wait_stream(wait);
            if (wait->wait_count == 0 || sender == class ||
                (by != SIM_STREAM_SEND_NEXT && by != SIM_STREAM_SEND_PREV))
                continue;
            const int64_t sent = before[wait->wait_on][wait->wait_count - 1];
            for (int replica = 0; replica < program->replicas; replica++) {
                const SimSpan *from =
                    report_span_at(result, spans, sender * program->replicas + replica, by, sent);
                const SimSpan *to = report_span_at(result, spans, class * program->replicas + replica, stream,
                                                   before[lane][i]);
                if (from != NULL && to != NULL)
                    write_arrow(w, &id, from, to);
            }
        }
    }
}

/* --- memory --- */

static void write_level(TraceWriter *w, int rank, int64_t time_ps, const int64_t bytes[SIM_MAX_MEMS])
{
    static const SimMem order[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                    SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};
    begin_event(w, "C", rank);
    append_us(w, ",\"ts\":", time_ps);
    g_string_append(w->out, ",\"name\":\"memory (bytes)\",\"args\":{");
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++) {
        g_string_append(w->out, i == 0 ? "\"" : ",\"");
        g_string_append(w->out, report_mem_name(order[i]));
        g_string_append(w->out, "\":");
        append_whole(w->out, bytes[order[i]]);
    }
    g_string_append(w->out, "}}");
}

/* Levels of one rank: what is taken and given at one instant is one change. */
static void write_levels(TraceWriter *w, const SimResult *result, const ReportSpans *spans, int rank)
{
    int64_t bytes[SIM_MAX_MEMS];
    bool changed = true; /* the level at the beginning is told too */
    ReportWalk walk;
    report_walk_begin(w->program, result, spans, rank, &walk);
    memcpy(bytes, walk.static_bytes, sizeof bytes);
    for (int64_t now_ps = 0;;) {
        const int64_t then_ps = report_walk_next_ps(&walk);
        if (then_ps > now_ps && changed && wants(w, rank, now_ps, MIN(then_ps, result->end_ps)))
            write_level(w, rank, now_ps, bytes);
        if (then_ps == G_MAXINT64)
            return;
        changed = then_ps > now_ps ? false : changed;
        now_ps = then_ps;
        const int64_t *delta = report_walk_take(&walk, NULL);
        for (int kind = 0; delta != NULL && kind < SIM_MAX_MEMS; kind++) {
            bytes[kind] += delta[kind];
            changed |= delta[kind] != 0;
        }
    }
}

/* --- the document --- */

static void write_events(TraceWriter *w, const SimResult *result)
{
    const SimStreamRow *streams = sim_program_streams(w->program, NULL);
    ReportSpans spans = report_spans_index(result);
    const int lanes = w->program->classes * SIM_MAX_STREAMS;
    g_autofree int32_t **before = g_new0(int32_t *, (gsize)lanes + 1);
    for (int lane = 0; lane < lanes; lane++)
        before[lane] =
            count_ops_before(&w->program->class_list[lane / SIM_MAX_STREAMS].streams[lane % SIM_MAX_STREAMS]);
    for (int64_t i = 0; i < result->span_count && !w->stopped; i++)
        if (wants(w, result->spans[i].rank, result->spans[i].start_ps, result->spans[i].end_ps))
            write_span(w, streams, &result->spans[i]);
    write_arrows(w, result, &spans, before);
    for (int rank = 0; rank < result->ranks && !w->stopped; rank++)
        if (wants_rank(w, rank))
            write_levels(w, result, &spans, rank);
    for (int lane = 0; lane < lanes; lane++)
        g_free(before[lane]);
    report_spans_clear(&spans);
}

void report_write_trace(const Report *report, const ReportTraceAsk *ask)
{
    TraceWriter w = {.ask = ask, .program = &report->program, .out = g_string_sized_new(2 * PIECE)};
    w.work_args = g_new0(char *, (gsize)report->program.work_count + 1);
    g_string_append(w.out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"" ORRERY_VERSION "\"");
    append_quoted(w.out, "scenario", report->spec->name);
    if (report->source != NULL)
        append_quoted(w.out, "scenario_hash", report->source->scenario_hash);
    g_string_append(w.out, "},\"traceEvents\":[");
    write_names(&w, report);
    write_events(&w, &report->result);
    g_string_append(w.out, "\n]}\n");
    flush(&w);
    for (int64_t i = 0; i < report->program.work_count; i++)
        g_free(w.work_args[i]);
    g_free(w.work_args);
    g_string_free(w.out, TRUE);
}
