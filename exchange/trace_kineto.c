/* exchange/trace_kineto.c - PyTorch's Kineto JSON into a TraceRank. See trace.h.
 *
 * Dialects: events of the category "kernel" or "Kernel", "gpu_memcpy" or "Memcpy", operators "cpu_op" or "Operator",
 * launches of CUDA's and HIP's runtime and driver; ids as numbers or in quotes, "External id" or "external id"; the object of
 * Kineto or a bare list of events. Kernels meet their launch by correlation, and their operator by the launch's or their own
 * external id.
 */
#include <string.h>

#include "exchange/trace.h"
#include "exchange/trace_bytes.h"
#include "exchange/trace_event.h"
#include "exchange/trace_foreign.h"
#include "exchange/trace_link.h"
#include "exchange/trace_other.h"

#define PS_PER_US    1000000
#define MOST_SPAN_US ((int64_t)9e12) /* picoseconds of more do not fit */

typedef struct Reader {
    const TraceTable *table;
    TraceRank *rank;
    TraceBytes *bytes;
    GArray *launches, *ops;            /* TraceLinked */
    GHashTable *name_index, *op_index; /* text: index + 1 */
    GString *key;
    bool based, has_events, out_of_time;
    const char *foreign; /* what else the file is; NULL: nothing known */
} Reader;

/* False: it has no time. The first event of the file sets the base. */
static bool event_times(Reader *reader, const TraceEvent *event, int64_t *ret_begin_ps, int64_t *ret_dur_ps)
{
    int64_t us = 0, ps = 0, dur_us = 0, dur_ps = 0;
    if (!trace_slice_us(&event->ts, &us, &ps))
        return false;
    if (event->dur.text != NULL &&
        (!trace_slice_us(&event->dur, &dur_us, &dur_ps) || dur_us < 0 || dur_ps < 0))
        return false;
    if (!reader->based) {
        reader->rank->base_us = us;
        reader->based = true;
    }
    const int64_t since_us = us - reader->rank->base_us;
    if (since_us > MOST_SPAN_US / 4 || since_us < -MOST_SPAN_US / 4 || dur_us > MOST_SPAN_US / 4) {
        reader->out_of_time = true;
        return false;
    }
    *ret_begin_ps = since_us * PS_PER_US + ps;
    *ret_dur_ps = dur_us * PS_PER_US + dur_ps;
    return true;
}

/* Index of `text` among the names, of a kernel that is of `kind` where its own name does not say. */
static int32_t name_of(Reader *reader, const TraceSlice *slice, const TraceSlice *collective)
{
    g_string_truncate(reader->key, 0);
    g_string_append_len(reader->key, slice->text, (gssize)slice->length);
    if (collective->text != NULL) {
        g_string_append_c(reader->key, '\x01');
        g_string_append_len(reader->key, collective->text, (gssize)collective->length);
    }
    const gpointer known = g_hash_table_lookup(reader->name_index, reader->key->str);
    if (known != NULL)
        return GPOINTER_TO_INT(known) - 1;
    TraceName name = {.text = trace_slice_text(slice)};
    name.kind = trace_table_class(reader->table, name.text, &name.waits);
    if (trace_is_communication(name.kind) && collective->text != NULL)
        name.kind = trace_collective_class(collective, name.kind);
    g_array_append_val(reader->rank->names, name);
    const int32_t index = (int32_t)reader->rank->names->len;
    g_hash_table_insert(reader->name_index, g_strdup(reader->key->str), GINT_TO_POINTER(index));
    return index - 1;
}

static void append_slice(GString *out, const TraceSlice *slice)
{
    if (slice->text != NULL)
        g_string_append_len(out, slice->text, (gssize)slice->length);
    g_string_append_c(out, '\x01');
}

static int32_t op_of(Reader *reader, const TraceEvent *event)
{
    g_string_truncate(reader->key, 0);
    append_slice(reader->key, &event->name);
    append_slice(reader->key, &event->dims);
    append_slice(reader->key, &event->types);
    const gpointer known = g_hash_table_lookup(reader->op_index, reader->key->str);
    if (known != NULL)
        return GPOINTER_TO_INT(known) - 1;
    const TraceOp op = {trace_slice_text(&event->name), trace_slice_text(&event->dims),
                        trace_slice_text(&event->types)};
    reader->rank->shapes = reader->rank->shapes || strpbrk(op.dims, "123456789") != NULL;
    g_array_append_val(reader->rank->ops, op);
    const int32_t index = (int32_t)reader->rank->ops->len;
    g_hash_table_insert(reader->op_index, g_strdup(reader->key->str), GINT_TO_POINTER(index));
    return index - 1;
}

static void add_kernel(Reader *reader, const TraceEvent *event, int64_t begin_ps, int64_t dur_ps)
{
    TraceKernel kernel = {.begin_ps = begin_ps,
                          .dur_ps = dur_ps,
                          .stream = (int32_t)trace_slice_int(&event->stream, 0),
                          .name = name_of(reader, &event->name, &event->collective),
                          .bytes = MAX(trace_slice_number(&event->bytes, 0), 0)};
    trace_raw_set(&kernel, trace_slice_int(&event->correlation, 0), trace_slice_int(&event->external, 0),
                  trace_slice_int(&event->device, trace_slice_int(&event->pid, 0)));
    const TraceName *name = &g_array_index(reader->rank->names, TraceName, kernel.name);
    if (trace_is_communication(name->kind)) {
        const double elements =
            MAX(trace_slice_number(&event->in_elements, 0), trace_slice_number(&event->out_elements, 0));
        kernel.bytes = MAX(elements, 0) * trace_dtype_bytes(&event->dtype);
        kernel.ranks = (int32_t)CLAMP(trace_slice_int(&event->group_size, 0), 0, G_MAXINT32);
        if (event->group_name.text != NULL || event->group_ranks.text != NULL) {
            g_string_truncate(reader->key, 0);
            append_slice(reader->key, &event->group_name);
            append_slice(reader->key, &event->group_ranks);
            kernel.group = MAX(g_str_hash(reader->key->str), 1);
        }
    }
    g_array_append_val(reader->rank->kernels, kernel);
}

static void add_step(Reader *reader, const TraceEvent *event, int64_t begin_ps, int64_t dur_ps)
{
    const TraceSlice number = {event->name.text + 13, event->name.length - 13};
    const TraceStep step = {trace_slice_int(&number, -1), begin_ps, begin_ps + dur_ps};
    if (step.number >= 0)
        g_array_append_val(reader->rank->steps, step);
}

static void take_event(Reader *reader, const TraceEvent *event)
{
    int64_t begin_ps = 0, dur_ps = 0;
    const TraceEventKind kind = trace_event_kind(&event->category);
    reader->rank->events++;
    if (kind == TRACE_EVENT_OTHER && reader->foreign == NULL && event->category.text != NULL)
        reader->foreign = trace_foreign_category(&event->category);
    if (kind == TRACE_EVENT_OTHER || event->name.text == NULL || !trace_slice_is(&event->phase, "X"))
        return;
    const bool step = (kind == TRACE_EVENT_OP || kind == TRACE_EVENT_ANNOTATION) && event->name.length > 13 &&
                      memcmp(event->name.text, "ProfilerStep#", 13) == 0;
    if (kind == TRACE_EVENT_ANNOTATION && !step)
        return;
    if (kind == TRACE_EVENT_LAUNCH && !trace_slice_has(&event->name, "launch") &&
        !trace_slice_has(&event->name, "mem"))
        return;
    if (!event_times(reader, event, &begin_ps, &dur_ps)) {
        reader->rank->untimed += kind == TRACE_EVENT_KERNEL || kind == TRACE_EVENT_COPY;
        return;
    }
    TraceLinked linked = {.begin_ps = begin_ps, .external = trace_slice_int(&event->external, 0), .op = -1};
    if (step) {
        add_step(reader, event, begin_ps, dur_ps);
    } else if (kind == TRACE_EVENT_KERNEL || kind == TRACE_EVENT_COPY) {
        add_kernel(reader, event, begin_ps, dur_ps);
    } else if (kind == TRACE_EVENT_LAUNCH) {
        linked.id = trace_slice_int(&event->correlation, 0);
        if (linked.id != 0)
            g_array_append_val(reader->launches, linked);
    } else if (linked.external != 0) {
        linked.id = linked.external;
        linked.op = op_of(reader, event);
        g_array_append_val(reader->ops, linked);
    }
}

/* --- the file --- */

static bool wrong(const Reader *reader, GError **error, const char *what)
{
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s", reader->rank->path, what);
}

static const char cut_off[] = "is cut off in the middle of its events; let the profiler finish writing it";
static const char no_json[] =
    "is not a trace of PyTorch's profiler: it is not JSON, and no table that 'orrery help trace' names";
/* Calls `part` on the window until it has what it needs. `part` moves nothing when it fails. */
static bool with_more(Reader *reader, bool (*part)(Reader *reader, TraceScan *scan), GError **error)
{
    for (;;) {
        TraceScan scan = {reader->bytes->at, reader->bytes->at + reader->bytes->left};
        if (part(reader, &scan)) {
            const gsize used = (gsize)(scan.at - reader->bytes->at);
            reader->bytes->at += used;
            reader->bytes->left -= used;
            return true;
        }
        if (!trace_scan_is_short(&scan))
            return wrong(reader, error, reader->has_events ? "an event is not JSON" : no_json);
        if (reader->bytes->ended)
            return wrong(reader, error, reader->has_events ? cut_off : no_json);
        if (!trace_bytes_more(reader->bytes, error))
            return false;
    }
}

static bool part_event(Reader *reader, TraceScan *scan)
{
    TraceEvent event = {.phase = {NULL, 0}};
    if (trace_scan_peek(scan) != '{') {
        if (!trace_scan_skip(scan))
            return false;
        return trace_scan_peek(scan) != '\0';
    }
    if (!trace_event_scan(scan, &event) || trace_scan_peek(scan) == '\0')
        return false;
    take_event(reader, &event);
    return true;
}

/* White space, and then a byte that is there. */
static bool part_peek(Reader *reader, TraceScan *scan)
{
    (void)reader;
    return trace_scan_peek(scan) != '\0';
}

static bool peek(Reader *reader, char *ret_next, GError **error)
{
    if (!with_more(reader, part_peek, error))
        return false;
    *ret_next = *reader->bytes->at;
    return true;
}

static void drop(Reader *reader)
{
    reader->bytes->at++;
    reader->bytes->left--;
}

static bool read_events(Reader *reader, GError **error)
{
    char next = 0;
    drop(reader); /* [ */
    for (bool first = true;; first = false) {
        if (!peek(reader, &next, error))
            return false;
        if (next == ']')
            break;
        if (!first && next != ',')
            return wrong(reader, error, "its events are not JSON: a comma is missing");
        if (!first)
            drop(reader);
        reader->has_events = true;
        if (!with_more(reader, part_event, error))
            return false;
    }
    drop(reader);
    return true;
}

static bool take_rank(TraceScan *scan, const TraceSlice *key, void *data)
{
    TraceRank *rank = data;
    TraceSlice value = {NULL, 0};
    if (!trace_scan_value(scan, &value))
        return false;
    if (trace_slice_is(key, "rank"))
        rank->rank = (int)CLAMP(trace_slice_int(&value, -1), -1, G_MAXINT32);
    if (trace_slice_is(key, "world_size"))
        rank->world = (int)CLAMP(trace_slice_int(&value, 0), 0, G_MAXINT32);
    return true;
}

static bool take_device(TraceScan *scan, const TraceSlice *key, void *data)
{
    TraceSlice value = {NULL, 0};
    if (!trace_scan_value(scan, &value))
        return false;
    if (trace_slice_is(key, "name")) {
        char **device = data;
        g_free(*device);
        *device = trace_slice_text(&value);
    }
    return true;
}

/* A member of the file's object that is not the events. */
static bool part_member(Reader *reader, TraceScan *scan)
{
    TraceSlice key;
    if (!trace_scan_string(scan, &key) || !trace_scan_char(scan, ':'))
        return false;
    const char next = trace_scan_peek(scan);
    if (trace_slice_is(&key, "traceEvents") && next == '[')
        return true; /* the caller goes on */
    bool ok;
    if (trace_slice_is(&key, "distributedInfo") && next == '{') {
        ok = trace_scan_members(scan, take_rank, reader->rank);
    } else if (trace_slice_is(&key, "deviceProperties") && next == '[') {
        TraceScan inside = *scan;
        ok = trace_scan_skip(scan);
        if (ok && trace_scan_char(&inside, '[') && trace_scan_peek(&inside) == '{')
            trace_scan_members(&inside, take_device, &reader->rank->device);
    } else {
        if (reader->foreign == NULL)
            reader->foreign = trace_foreign_key(&key);
        ok = trace_scan_skip(scan);
    }
    return ok && trace_scan_peek(scan) != '\0';
}

static bool read_object(Reader *reader, GError **error)
{
    char next = 0;
    drop(reader); /* { */
    if (!peek(reader, &next, error))
        return false;
    while (next != '}') {
        if (!with_more(reader, part_member, error) || !peek(reader, &next, error))
            return false;
        if (next == '[' && (!read_events(reader, error) || !peek(reader, &next, error)))
            return false;
        if (next == ',') {
            drop(reader);
            if (!peek(reader, &next, error))
                return false;
        } else if (next != '}') {
            return wrong(reader, error, no_json);
        }
    }
    return true;
}

static bool read_document(Reader *reader, GError **error)
{
    char next = 0;
    if (!peek(reader, &next, error))
        return false;
    if (next == '[')
        return read_events(reader, error);
    if (next != '{')
        return wrong(reader, error, no_json);
    if (read_object(reader, error))
        return true;
    if (reader->foreign == NULL || reader->has_events)
        return false;
    g_clear_error(error); /* whatever is wrong with it besides */
    return wrong(reader, error, reader->foreign);
}

static bool take_no_time(const GArray *kernels)
{
    for (guint i = 0; i < kernels->len; i++)
        if (g_array_index(kernels, TraceKernel, i).dur_ps > 0)
            return false;
    return true;
}

static bool finish(Reader *reader, GError **error)
{
    if (!reader->has_events || reader->rank->events == 0)
        return wrong(reader, error,
                     reader->foreign != NULL
                         ? reader->foreign
                         : "is not a trace of PyTorch's profiler: it has no events in \"traceEvents\"");
    if (reader->out_of_time)
        return wrong(reader, error, "some of its times lie more than 26 days apart: that is not one run");
    if (reader->rank->kernels->len == 0)
        return wrong(reader, error,
                     reader->rank->untimed > 0
                         ? "has kernels, but none has times that can be: \"ts\" and \"dur\" "
                           "are microseconds, and none is negative"
                     : reader->foreign != NULL
                         ? reader->foreign
                         : "has no kernels of a GPU; record it with torch.profiler.ProfilerActivity.CUDA");
    if (take_no_time(reader->rank->kernels))
        return wrong(reader, error,
                     "has no kernel that lasts longer than 0; let the profiler finish writing");
    trace_link(reader->launches, reader->ops, reader->rank);
    return true;
}

static TraceRank *read_kineto(TraceBytes *bytes, const char *name, const TraceTable *table, GError **error)
{
    Reader reader = {.table = table,
                     .rank = trace_rank_new(name),
                     .bytes = bytes,
                     .launches = g_array_new(FALSE, TRUE, sizeof(TraceLinked)),
                     .ops = g_array_new(FALSE, TRUE, sizeof(TraceLinked)),
                     .name_index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                     .op_index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                     .key = g_string_new(NULL)};
    const bool ok = read_document(&reader, error) && finish(&reader, error);
    g_array_free(reader.launches, TRUE);
    g_array_free(reader.ops, TRUE);
    g_hash_table_destroy(reader.name_index);
    g_hash_table_destroy(reader.op_index);
    g_string_free(reader.key, TRUE);
    trace_bytes_close(bytes);
    if (ok)
        return reader.rank;
    trace_rank_free(reader.rank);
    return NULL;
}

static TraceRank *mark_waits(TraceRank *rank)
{
    for (guint i = 0; rank != NULL && i < rank->kernels->len; i++) {
        TraceKernel *kernel = &g_array_index(rank->kernels, TraceKernel, i);
        kernel->wait_ps = trace_kernel_name(rank, kernel)->waits ? kernel->dur_ps : 0;
    }
    return rank;
}

/* Kineto's, or what another profiler wrote: the first bytes say. */
static TraceRank *read_bytes(TraceBytes *bytes, const char *name, const TraceTable *table, GError **error)
{
    if (bytes->left == 0 && !trace_bytes_more(bytes, error)) {
        trace_bytes_close(bytes);
        return NULL;
    }
    if (bytes->left >= 3 && memcmp(bytes->at, "\xef\xbb\xbf", 3) == 0) { /* UTF-8 says so */
        bytes->at += 3;
        bytes->left -= 3;
    }
    const char *what = bytes->left == 0 ? "is empty; let the profiler finish writing, or copy it again"
                                        : trace_foreign_text(bytes);
    if (what != NULL) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: %s", name, what);
        trace_bytes_close(bytes);
        return NULL;
    }
    const TraceDialect dialect = trace_dialect(bytes->at, bytes->left);
    if (dialect == TRACE_DIALECT_KINETO)
        return mark_waits(read_kineto(bytes, name, table, error));
    TraceRank *rank = trace_rank_new(name);
    const bool ok = trace_other_read(bytes, dialect, name, table, rank, error);
    trace_bytes_close(bytes);
    if (ok)
        return mark_waits(rank);
    trace_rank_free(rank);
    return NULL;
}

TraceRank *trace_rank_read(const char *path, const TraceTable *table, GError **error)
{
    TraceBytes *bytes = trace_bytes_open(path, error);
    return bytes != NULL ? read_bytes(bytes, path, table, error) : NULL;
}

TraceRank *trace_rank_parse(const char *text, gsize length, const char *name, const TraceTable *table,
                            GError **error)
{
    return read_bytes(trace_bytes_of(text, length, name), name, table, error);
}
