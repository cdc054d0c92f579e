/* exchange/trace_other.c - see trace_other.h. Tested: unit/exchange/test_trace_other.c
 *
 * Sources: NVIDIA Nsight Systems User Guide (report cuda_gpu_trace); ROCm/rocprofiler-sdk, using rocprofv3 (kernel trace);
 * NVIDIA/nccl ext-profiler/inspector/README.md (format v4.0); pytorch/pytorch torch/csrc/distributed/c10d/FlightRecorder
 */
#include "exchange/trace_other.h"

#include <math.h>
#include <string.h>

#include "exchange/trace_event.h"
#include "exchange/trace_lines.h"

#define PS_PER_NS  1000
#define LONGEST_NS 2300000000000000.0 /* 26 days */

enum { MOST_CELLS = 64 };

static bool begins(const char *text, gsize length, const char *with)
{
    return length >= strlen(with) && memcmp(text, with, strlen(with)) == 0;
}

/* What `nsys stats` says before a table. */
static bool is_preamble(const char *text, gsize length)
{
    return begins(text, length, "Generating SQLite") || begins(text, length, "Processing [") ||
           begins(text, length, "NOTICE: ");
}

TraceDialect trace_dialect(const char *text, gsize length)
{
    static const char *const tables[] = {"Start (", "Start_Timestamp", "BeginNs"};
    static const char *const recorded[] = {"\"entries\"", "\"nccl_comm_state\"", "\"pg_config\"",
                                           "\"pg_status\"", "\"version\""};
    const char *end = memchr(text, '\n', length);
    const gsize first = end != NULL ? (gsize)(end - text) : length;
    for (gsize i = 0; i < G_N_ELEMENTS(tables) && length > 0 && *text != '{' && *text != '['; i++)
        if (is_preamble(text, length) || g_strstr_len(text, (gssize)first, tables[i]) != NULL)
            return TRACE_DIALECT_TABLE;
    if (length == 0 || *text != '{')
        return TRACE_DIALECT_KINETO;
    do {
        text++;
        length--;
    } while (length > 0 && g_ascii_isspace(*text));
    if (begins(text, length, "\"header\"") || begins(text, length, "\"coll_perf\""))
        return TRACE_DIALECT_INSPECTOR;
    for (gsize i = 0; i < G_N_ELEMENTS(recorded); i++)
        if (begins(text, length, recorded[i]))
            return TRACE_DIALECT_FLIGHT;
    return TRACE_DIALECT_KINETO;
}

/* --- what all add --- */

typedef struct Reader {
    const TraceTable *table;
    const char *name;
    TraceRank *rank;
    GHashTable *names; /* text -> index + 1 */
    int64_t first_ns;
    bool any, out_of_time;
} Reader;

static int32_t index_of(Reader *r, const TraceSlice *text, TraceClass kind, bool known)
{
    g_autofree char *name = trace_slice_text(text);
    int index = GPOINTER_TO_INT(g_hash_table_lookup(r->names, name));
    if (index == 0) {
        bool waits = false;
        if (!known)
            kind = g_str_has_prefix(name, "[CUDA mem") ? TRACE_COPIES
                                                       : trace_table_class(r->table, name, &waits);
        const TraceName added = {g_strdup(name), kind, waits};
        g_array_append_val(r->rank->names, added);
        index = (int)r->rank->names->len;
        g_hash_table_insert(r->names, g_strdup(name), GINT_TO_POINTER(index));
    }
    return index - 1;
}

static void add(Reader *r, int64_t begin_ns, double dur_ns, TraceKernel *kernel)
{
    if (!r->any)
        r->first_ns = begin_ns;
    r->any = true;
    const double since_ns = (double)begin_ns - (double)r->first_ns;
    if (!(fabs(since_ns) < LONGEST_NS) || !(dur_ns >= 0 && dur_ns < LONGEST_NS)) {
        r->out_of_time = true;
        return;
    }
    kernel->begin_ps = (begin_ns - r->first_ns) * PS_PER_NS;
    kernel->dur_ps = llround(dur_ns * PS_PER_NS);
    kernel->launch_ps = TRACE_NO_LAUNCH;
    kernel->op = -1;
    g_array_append_val(r->rank->kernels, *kernel);
}

/* --- tables --- */

typedef enum {
    CELL_BEGIN,
    CELL_DURATION,
    CELL_END,
    CELL_NAME,
    CELL_STREAM,
    CELL_DEVICE,
    CELL_BYTES,
    CELLS
} Cell;

static const struct {
    const char *title;
    Cell cell;
    double unit; /* nanoseconds, or bytes */
} titles[] = {{"Start (ns)", CELL_BEGIN, 1},
              {"Start (us)", CELL_BEGIN, 1e3},
              {"Start (ms)", CELL_BEGIN, 1e6},
              {"Start (s)", CELL_BEGIN, 1e9},
              {"Start_Timestamp", CELL_BEGIN, 1},
              {"BeginNs", CELL_BEGIN, 1},
              {"Duration (ns)", CELL_DURATION, 1},
              {"Duration (us)", CELL_DURATION, 1e3},
              {"Duration (ms)", CELL_DURATION, 1e6},
              {"Duration (s)", CELL_DURATION, 1e9},
              {"DurationNs", CELL_DURATION, 1},
              {"End_Timestamp", CELL_END, 1},
              {"EndNs", CELL_END, 1},
              {"Name", CELL_NAME, 1},
              {"Kernel_Name", CELL_NAME, 1},
              {"KernelName", CELL_NAME, 1},
              {"Strm", CELL_STREAM, 1},
              {"Stream_Id", CELL_STREAM, 1},
              {"Queue_Id", CELL_STREAM, 1},
              {"queue-id", CELL_STREAM, 1},
              {"Device", CELL_DEVICE, 1},
              {"Agent_Id", CELL_DEVICE, 1},
              {"gpu-id", CELL_DEVICE, 1},
              {"Bytes (MB)", CELL_BYTES, 1e6}};

typedef struct Columns {
    int at[CELLS]; /* -1: none */
    double unit[CELLS];
    int count;
} Columns;

static bool find_columns(const Reader *r, const TraceSlice *line, Columns *ret_columns, GError **error)
{
    TraceSlice cells[MOST_CELLS];
    for (int c = 0; c < CELLS; c++)
        ret_columns->at[c] = -1;
    ret_columns->count = trace_cells(line, cells, MOST_CELLS);
    for (int i = 0; i < MIN(ret_columns->count, MOST_CELLS); i++)
        for (gsize k = 0; k < G_N_ELEMENTS(titles); k++)
            if (trace_slice_is(&cells[i], titles[k].title) && ret_columns->at[titles[k].cell] < 0) {
                ret_columns->at[titles[k].cell] = i;
                ret_columns->unit[titles[k].cell] = titles[k].unit;
            }
    const bool timed = ret_columns->at[CELL_BEGIN] >= 0 &&
                       (ret_columns->at[CELL_DURATION] >= 0 || ret_columns->at[CELL_END] >= 0);
    return (timed && ret_columns->at[CELL_NAME] >= 0) ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "%s: is a table without begins, durations and names of kernels; give 'nsys stats --report "
               "cuda_gpu_trace --format csv' or the kernel trace of rocprof",
               r->name);
}

static int64_t whole_ns(const TraceSlice *cell, double unit)
{
    return unit > 1 ? llround(CLAMP(trace_slice_number(cell, 0) * unit, -9e18, 9e18))
                    : trace_slice_int(cell, 0);
}

/* Text that is no number, or an end before its begin. */
static bool check_times(const Reader *r, const Columns *columns, const TraceSlice *cells, int64_t row,
                        GError **error)
{
    const int last = columns->at[CELL_DURATION] >= 0 ? CELL_DURATION : CELL_END;
    const int of[] = {CELL_BEGIN, last};
    double number[2];
    for (int i = 0; i < 2; i++) {
        const TraceSlice *cell = &cells[columns->at[of[i]]];
        number[i] = trace_slice_number(cell, NAN);
        if (!isnan(number[i]))
            continue;
        g_autofree char *text = trace_slice_text(cell);
        return orr_fail(error, ORR_ERROR_INPUT, "%s: line %" G_GINT64_FORMAT ": \"%.40s\" is not a time; %s",
                        r->name, row, text, "a kernel's begin and duration are numbers");
    }
    if (number[1] >= (last == CELL_DURATION ? 0 : number[0]))
        return true;
    return orr_fail(error, ORR_ERROR_INPUT, "%s: line %" G_GINT64_FORMAT ": its kernel ends before it begins",
                    r->name, row);
}

static void take_row(Reader *r, const Columns *columns, const TraceSlice *cells, TraceSlice *device,
                     GString *first)
{
    const int *at = columns->at;
    const int64_t begin_ns = whole_ns(&cells[at[CELL_BEGIN]], columns->unit[CELL_BEGIN]);
    const double dur_ns = at[CELL_DURATION] >= 0 ? trace_slice_number(&cells[at[CELL_DURATION]], -1) *
                                                       columns->unit[CELL_DURATION]
                                                 : (double)(whole_ns(&cells[at[CELL_END]], 1) - begin_ns);
    TraceKernel kernel = {
        .stream = at[CELL_STREAM] >= 0 ? (int32_t)trace_slice_int(&cells[at[CELL_STREAM]], 0) : 0};
    if (at[CELL_DEVICE] >= 0) {
        *device = cells[at[CELL_DEVICE]];
        if (!r->any)
            g_string_append_len(first, device->text, (gssize)device->length);
        if (!trace_slice_is(device, first->str)) {
            r->rank->elsewhere++;
            return;
        }
    }
    if (at[CELL_BYTES] >= 0)
        kernel.bytes = fmax(0, trace_slice_number(&cells[at[CELL_BYTES]], 0) * columns->unit[CELL_BYTES]);
    kernel.name = index_of(r, &cells[at[CELL_NAME]], TRACE_OTHER, false);
    add(r, begin_ns, dur_ns, &kernel);
}

static bool read_table(Reader *r, TraceBytes *bytes, GError **error)
{
    TraceSlice line, device = {NULL, 0}, cells[MOST_CELLS];
    Columns columns;
    g_autoptr(GString) first = g_string_new(NULL); /* the GPU of the first kernel */
    int64_t row = 0;
    do {
        row++;
        if (!trace_line(bytes, &line, error))
            return false;
    } while (line.text != NULL && (line.length == 0 || is_preamble(line.text, line.length)));
    if (line.text == NULL)
        line.text = "";
    if (!find_columns(r, &line, &columns, error))
        return false;
    for (row++;; row++) {
        if (!trace_line(bytes, &line, error))
            return false;
        if (line.text == NULL)
            break;
        if (line.length == 0)
            continue;
        r->rank->events++;
        if (trace_cells(&line, cells, MOST_CELLS) != columns.count)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: line %" G_GINT64_FORMAT " has not the %d cells of the table's first line",
                            r->name, row, columns.count);
        if (!check_times(r, &columns, cells, row, error))
            return false;
        take_row(r, &columns, cells, &device, first);
    }
    g_free(r->rank->device);
    r->rank->device = g_utf8_make_valid(first->str, (gssize)first->len);
    return true;
}

/* --- collectives alone --- */

typedef struct Collective {
    TraceSlice name, kind, id, rank, ranks, bytes, micros;
    TraceSlice started, completed, created, millis, inputs, outputs, input_types, group;
} Collective;

/* A collective as its operation counts it, in the name that NCCL gives its kernel. */
static void add_collective(Reader *r, const TraceSlice *name, int64_t begin_ns, double dur_ns,
                           TraceKernel *kernel)
{
    const TraceClass kind = trace_slice_has(name, "send") || trace_slice_has(name, "recv")
                                ? TRACE_SEND_RECEIVE
                                : trace_collective_class(name, TRACE_OTHER_COLLECTIVE);
    kernel->name = index_of(r, name, kind, true);
    add(r, begin_ns, dur_ns, kernel);
}

static bool take_inspected(TraceScan *scan, const TraceSlice *key, void *data)
{
    Collective *c = data;
    TraceSlice other;
    if (trace_slice_is(key, "header") || trace_slice_is(key, "coll_perf"))
        return trace_scan_peek(scan) == '{' ? trace_scan_members(scan, take_inspected, data)
                                            : trace_scan_skip(scan);
    TraceSlice *to = trace_slice_is(key, "id")                    ? &c->id
                     : trace_slice_is(key, "rank")                ? &c->rank
                     : trace_slice_is(key, "n_ranks")             ? &c->ranks
                     : trace_slice_is(key, "coll")                ? &c->name
                     : trace_slice_is(key, "coll_msg_size_bytes") ? &c->bytes
                     : trace_slice_is(key, "coll_exec_time_us")   ? &c->micros
                                                                  : &other;
    return trace_scan_value(scan, to);
}

static bool read_inspector(Reader *r, TraceBytes *bytes, GError **error)
{
    TraceSlice line;
    double at_ns = 0;
    for (int64_t row = 1;; row++) {
        if (!trace_line(bytes, &line, error))
            return false;
        if (line.text == NULL)
            return true;
        Collective c = {.name = {NULL, 0}};
        TraceScan scan = {line.text, line.text + line.length};
        if (line.length == 0)
            continue;
        r->rank->events++;
        const bool read = trace_scan_members(&scan, take_inspected, &c);
        const double micros = trace_slice_number(&c.micros, -1);
        if (!read || c.name.text == NULL || !(micros >= 0 && micros < LONGEST_NS / 1e3))
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s: line %" G_GINT64_FORMAT
                            " is not a collective as NCCL Inspector's format v4.0 has it: "
                            "coll_perf with coll and coll_exec_time_us",
                            r->name, row);
        if (r->rank->rank < 0)
            r->rank->rank = (int)CLAMP(trace_slice_int(&c.rank, -1), -1, G_MAXINT32);
        TraceKernel kernel = {.bytes = fmax(0, trace_slice_number(&c.bytes, 0)),
                              .ranks = (int32_t)CLAMP(trace_slice_int(&c.ranks, 0), 0, G_MAXINT32)};
        g_autofree char *id = trace_slice_text(&c.id);
        kernel.group = g_str_hash(id);
        r->rank->world = MAX(r->rank->world, kernel.ranks);
        add_collective(r, &c.name, llround(at_ns), micros * 1e3, &kernel);
        at_ns = fmin(at_ns + micros * 1e3, LONGEST_NS * 2);
    }
}

/* "[[4,8],[2]]" elements of all tensors. */
static double count_elements(const TraceSlice *sizes)
{
    double all = 0, tensor = 1;
    int depth = 0;
    bool any = false;
    for (gsize i = 0; i < sizes->length; i++) {
        const char c = sizes->text[i];
        depth += c == '[' ? 1 : 0;
        if (g_ascii_isdigit(c) && depth == 2) {
            double number = 0;
            for (; i < sizes->length && g_ascii_isdigit(sizes->text[i]); i++)
                number = number * 10 + (sizes->text[i] - '0');
            i--;
            tensor *= number;
            any = true;
        } else if (c == ']') {
            all += depth == 2 && any ? tensor : 0;
            tensor = 1;
            any = any && depth != 2;
            depth--;
        }
    }
    return isfinite(all) ? all : 0;
}

static bool take_entry(TraceScan *scan, const TraceSlice *key, void *data)
{
    Collective *c = data;
    TraceSlice other;
    TraceSlice *to = trace_slice_is(key, "profiling_name")                 ? &c->name
                     : trace_slice_is(key, "input_sizes")                  ? &c->inputs
                     : trace_slice_is(key, "output_sizes")                 ? &c->outputs
                     : trace_slice_is(key, "input_dtypes")                 ? &c->input_types
                     : trace_slice_is(key, "duration_ms")                  ? &c->millis
                     : trace_slice_is(key, "time_created_ns")              ? &c->created
                     : trace_slice_is(key, "time_discovered_started_ns")   ? &c->started
                     : trace_slice_is(key, "time_discovered_completed_ns") ? &c->completed
                     : trace_slice_is(key, "process_group")                ? &c->group
                                                                           : &other;
    return trace_scan_value(scan, to);
}

/* ["Float"]: bytes of an element of the first. */
static double type_bytes(const TraceSlice *types)
{
    if (types->text == NULL)
        return 0;
    TraceScan scan = {types->text, types->text + types->length};
    TraceSlice first;
    if (!trace_scan_char(&scan, '[') || !trace_scan_value(&scan, &first))
        return 0;
    return trace_dtype_bytes(&first);
}

/* One that has not ended, or whose times nobody took, says nothing. */
static void take_recorded(Reader *r, const Collective *c)
{
    const int64_t begun_ns = trace_slice_int(&c->started, 0), done_ns = trace_slice_int(&c->completed, 0);
    const double millis = trace_slice_number(&c->millis, -1);
    const int64_t begin_ns = begun_ns > 0 ? begun_ns : trace_slice_int(&c->created, 0);
    if (c->name.text == NULL || begin_ns <= 0 || (millis < 0 && (begun_ns <= 0 || done_ns < begun_ns)))
        return;
    TraceKernel kernel = {.bytes = fmax(count_elements(&c->inputs), count_elements(&c->outputs)) *
                                   type_bytes(&c->input_types)};
    g_autofree char *group = trace_slice_text(&c->group);
    kernel.group = g_str_hash(group);
    add_collective(r, &c->name, begin_ns, millis >= 0 ? millis * 1e6 : (double)(done_ns - begun_ns), &kernel);
}

static bool take_dump(TraceScan *scan, const TraceSlice *key, void *data)
{
    Reader *r = data;
    if (!trace_slice_is(key, "entries") || trace_scan_peek(scan) != '[')
        return trace_scan_skip(scan);
    trace_scan_char(scan, '[');
    while (trace_scan_peek(scan) == '{') {
        Collective c = {.name = {NULL, 0}};
        if (!trace_scan_members(scan, take_entry, &c))
            return false;
        r->rank->events++;
        take_recorded(r, &c);
        trace_scan_char(scan, ',');
    }
    return trace_scan_char(scan, ']');
}

static bool read_flight(Reader *r, TraceBytes *bytes, GError **error)
{
    if (!trace_whole(bytes, error))
        return false;
    TraceScan scan = {bytes->at, bytes->at + bytes->left};
    return trace_scan_members(&scan, take_dump, r) ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "%s: is not a whole dump of PyTorch's flight recorder: its JSON is cut off or damaged",
                    r->name);
}

/* --- all --- */

static const char *nothing(TraceDialect dialect)
{
    return dialect == TRACE_DIALECT_TABLE    ? "is a table without a row: the profiler saw no kernels"
           : dialect == TRACE_DIALECT_FLIGHT ? "has no collective that ended with times; set "
                                               "TORCH_NCCL_ENABLE_TIMING=1 for the flight recorder"
                                             : "has no collectives";
}

bool trace_other_read(TraceBytes *bytes, TraceDialect dialect, const char *name, const TraceTable *table,
                      TraceRank *rank, GError **error)
{
    Reader r = {.table = table,
                .name = name,
                .rank = rank,
                .names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL)};
    bool ok = dialect == TRACE_DIALECT_TABLE       ? read_table(&r, bytes, error)
              : dialect == TRACE_DIALECT_INSPECTOR ? read_inspector(&r, bytes, error)
                                                   : read_flight(&r, bytes, error);
    g_hash_table_destroy(r.names);
    if (ok && r.out_of_time)
        ok = orr_fail(error, ORR_ERROR_INPUT, "%s: %s", name,
                      "some of its times are missing or lie more than 26 days apart: that is not one run");
    if (ok && rank->kernels->len == 0)
        ok = orr_fail(error, ORR_ERROR_INPUT, "%s: %s", name, nothing(dialect));
    if (ok) {
        rank->base_us = r.first_ns / 1000;
        trace_rank_sort(rank);
    }
    return ok;
}
