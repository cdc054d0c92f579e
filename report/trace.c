/* report/trace.c - the recorded spans as a Chrome trace, as Perfetto and chrome://tracing read it.
 *
 * pid = rank, tid = stream, ts and dur in microseconds with six decimals (whole picoseconds), counters
 * for memory, and an arrow from each send to the op that waited for it. Events are appended one by one;
 * no document is held.
 *
 * Arrows follow the program, not the names of ops: a SIM_WAIT for a send stream of another class is the
 * end of an arrow, and the op behind the wait receives. The n-th span of a stream is the n-th instruction
 * of its list that is not a wait.
 */
#include "report/parts.h"

#define PS_PER_US 1000000

/* Spans of (rank, stream) in the order in which they ran: by[first[rank x streams + stream] + n]. */
typedef struct SpanIndex {
    int64_t *first; /* [ranks x streams + 1] */
    int64_t *by;    /* [span_count] */
} SpanIndex;

typedef struct TraceWriter {
    GString *out;
    bool any;
} TraceWriter;

static void begin_event(TraceWriter *w, const char *kind, int rank)
{
    g_string_append_printf(w->out, "%s\n{\"ph\":\"%s\",\"pid\":%d", w->any ? "," : "", kind, rank);
    w->any = true;
}

static void append_us(TraceWriter *w, const char *key, int64_t ps)
{
    g_string_append_printf(w->out, ",\"%s\":%" G_GINT64_FORMAT ".%06" G_GINT64_FORMAT, key, ps / PS_PER_US,
                           ps % PS_PER_US);
}

static void append_quoted(GString *out, const char *key, const char *text)
{
    OrrJsonWriter writer;
    orr_jw_init(&writer, out, true);
    g_string_append_printf(out, ",\"%s\":", key);
    orr_jw_text(&writer, NULL, text);
}

/* --- names of ranks and streams --- */

static void write_names(TraceWriter *w, const Report *report)
{
    const SimResult *result = &report->result;
    const int replicas = MAX(report->program.replicas, 1);
    const SimStreamRow *streams = sim_program_streams(&report->program, NULL);
    g_autofree bool *used = g_new0(bool, (gsize)result->ranks *SIM_MAX_STREAMS);
    for (int64_t i = 0; i < result->span_count; i++)
        used[result->spans[i].rank * SIM_MAX_STREAMS + result->spans[i].stream] = true;
    for (int rank = 0; rank < result->ranks; rank++) {
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

static void write_span(TraceWriter *w, const SimProgram *program, const SimSpan *span)
{
    GString *out = w->out;
    begin_event(w, "X", span->rank);
    g_string_append_printf(out, ",\"tid\":%d", span->stream);
    append_us(w, "ts", span->start_ps);
    append_us(w, "dur", span->end_ps - span->start_ps);
    g_string_append_printf(out, ",\"name\":\"%s", sim_tag_label((SimTag)span->tag));
    if (span->microbatch >= 0)
        g_string_append_printf(out, " %d", span->microbatch);
    g_string_append_printf(out, "\",\"cat\":\"%s\",\"args\":{",
                           sim_program_streams(program, NULL)[span->stream].name);
    const char *comma = "";
    if (span->stage >= 0) {
        g_string_append_printf(out, "\"stage\":%d", span->stage);
        comma = ",";
    }
    if (span->microbatch >= 0) {
        g_string_append_printf(out, "%s\"microbatch\":%d", comma, span->microbatch);
        comma = ",";
    }
    if (span->work >= 0 && span->work < program->work_count) { /* what it would take alone, by part */
        const SimWork *work = &program->works[span->work];
        for (int part = 0; part < SIM_PART_COUNT; part++) {
            if (work->part_ps[part] == 0)
                continue;
            g_string_append_printf(out, "%s\"%s_us\":%" G_GINT64_FORMAT ".%06" G_GINT64_FORMAT, comma,
                                   report_part_name((SimPart)part), work->part_ps[part] / PS_PER_US,
                                   work->part_ps[part] % PS_PER_US);
            comma = ",";
        }
    }
    g_string_append(out, "}}");
}

/* --- arrows --- */

static SpanIndex index_spans(const SimResult *result)
{
    const gsize lanes = (gsize)result->ranks * SIM_MAX_STREAMS;
    SpanIndex index = {g_new0(int64_t, lanes + 2), g_new(int64_t, (gsize)result->span_count + 1)};
    int64_t *next = index.first + 1; /* becomes `first` itself once every span was placed */
    for (int64_t i = 0; i < result->span_count; i++)
        next[result->spans[i].rank * SIM_MAX_STREAMS + result->spans[i].stream + 1]++;
    for (gsize lane = 1; lane <= lanes; lane++)
        next[lane] += next[lane - 1];
    for (int64_t i = 0; i < result->span_count; i++)
        index.by[next[result->spans[i].rank * SIM_MAX_STREAMS + result->spans[i].stream]++] = i;
    return index;
}

/* The n-th span of a rank's stream, or NULL. */
static const SimSpan *span_at(const SimResult *result, const SpanIndex *index, int rank, int stream,
                              int64_t n)
{
    const int64_t lane = (int64_t)rank * SIM_MAX_STREAMS + stream;
    const int64_t at = index->first[lane] + n;
    return n >= 0 && at < index->first[lane + 1] ? &result->spans[index->by[at]] : NULL;
}

/* Instructions before `index` that leave a span. */
static int64_t *count_ops_before(const SimList *list)
{
    int64_t *before = g_new(int64_t, (gsize)list->count + 1);
    before[0] = 0;
    for (int64_t i = 0; i < list->count; i++)
        before[i + 1] = before[i] + (list->instrs[i].kind != SIM_WAIT);
    return before;
}

static void write_arrow(TraceWriter *w, int64_t *id, const SimSpan *from, const SimSpan *to)
{
    begin_event(w, "s", from->rank);
    g_string_append_printf(w->out,
                           ",\"tid\":%d,\"id\":%" G_GINT64_FORMAT ",\"name\":\"send\",\"cat\":\"send\"",
                           from->stream, *id);
    append_us(w, "ts", from->start_ps);
    g_string_append_c(w->out, '}');
    begin_event(w, "f", to->rank);
    g_string_append_printf(
        w->out, ",\"tid\":%d,\"id\":%" G_GINT64_FORMAT ",\"name\":\"send\",\"cat\":\"send\",\"bp\":\"e\"",
        to->stream, *id);
    append_us(w, "ts", to->start_ps);
    g_string_append_c(w->out, '}');
    (*id)++;
}

static void write_arrows(TraceWriter *w, const Report *report)
{
    const SimProgram *program = &report->program;
    const SimResult *result = &report->result;
    const SpanIndex index = index_spans(result);
    const int lanes = program->classes * SIM_MAX_STREAMS;
    g_autofree int64_t **before = g_new0(int64_t *, (gsize)lanes + 1);
    for (int lane = 0; lane < lanes; lane++)
        before[lane] =
            count_ops_before(&program->class_list[lane / SIM_MAX_STREAMS].streams[lane % SIM_MAX_STREAMS]);
    int64_t id = 1;
    for (int lane = 0; lane < lanes; lane++) {
        const int class = lane / SIM_MAX_STREAMS, stream = lane % SIM_MAX_STREAMS;
        const SimList *list = &program->class_list[class].streams[stream];
        for (int64_t i = 0; i < list->count; i++) {
            const SimInstr *wait = &list->instrs[i];
            if (wait->kind != SIM_WAIT || wait->wait_class < 0 || wait->wait_class == class ||
                (wait->wait_stream != SIM_STREAM_SEND_NEXT && wait->wait_stream != SIM_STREAM_SEND_PREV))
                continue;
            const int64_t sent =
                before[wait->wait_class * SIM_MAX_STREAMS + wait->wait_stream][wait->wait_index];
            for (int replica = 0; replica < program->replicas; replica++) {
                const SimSpan *from = span_at(result, &index, wait->wait_class * program->replicas + replica,
                                              wait->wait_stream, sent);
                const SimSpan *to =
                    span_at(result, &index, class * program->replicas + replica, stream, before[lane][i]);
                if (from != NULL && to != NULL)
                    write_arrow(w, &id, from, to);
            }
        }
    }
    for (int lane = 0; lane < lanes; lane++)
        g_free(before[lane]);
    g_free(index.first);
    g_free(index.by);
}

/* --- memory --- */

static void write_level(TraceWriter *w, const SimLevel *level)
{
    static const SimMem order[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                    SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};
    begin_event(w, "C", level->rank);
    append_us(w, "ts", level->time_ps);
    g_string_append(w->out, ",\"name\":\"memory (bytes)\",\"args\":{");
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(w->out, "%s\"%s\":%" G_GINT64_FORMAT, i == 0 ? "" : ",",
                               report_mem_name(order[i]), level->bytes[order[i]]);
    g_string_append(w->out, "}}");
}

void report_write_trace(const Report *report, GString *out)
{
    const SimResult *result = &report->result;
    TraceWriter w = {out, false};
    g_string_append(out, "{\"displayTimeUnit\":\"ms\",\"otherData\":{\"version\":\"" ORRERY_VERSION "\"");
    append_quoted(out, "scenario", report->spec->name);
    if (report->source != NULL)
        append_quoted(out, "scenario_hash", report->source->scenario_hash);
    g_string_append(out, "},\"traceEvents\":[");
    write_names(&w, report);
    for (int64_t i = 0; i < result->span_count; i++)
        write_span(&w, &report->program, &result->spans[i]);
    write_arrows(&w, report);
    for (int64_t i = 0; i < result->level_count; i++)
        write_level(&w, &result->levels[i]);
    g_string_append(out, "\n]}\n");
}
