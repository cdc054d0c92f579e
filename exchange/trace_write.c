/* exchange/trace_write.c - a rank's kernels as Kineto writes them. See trace.h. */
#include "base/json.h"
#include "exchange/trace.h"

#define PS_PER_US 1000000

enum { PIECE = 1 << 16, HOST_PROCESS = 1000, HOST_THREAD = 1000, STREAM_OF_ANNOTATIONS = 0 };

typedef struct Writer {
    const TraceRank *rank;
    GString *out;
    bool (*put)(const char *text, gsize length, void *data);
    void *data;
    bool any, stopped;
} Writer;

static void flush(Writer *w)
{
    if (!w->stopped)
        w->stopped = !w->put(w->out->str, w->out->len, w->data);
    g_string_truncate(w->out, 0);
}

/* Microseconds with six decimals: whole picoseconds. */
static void append_us(Writer *w, const char *key, int64_t ps)
{
    const int64_t size = ps < 0 ? -ps : ps;
    g_string_append_printf(w->out, ",\"%s\":%s%" G_GINT64_FORMAT ".%06d", key, ps < 0 ? "-" : "",
                           size / PS_PER_US, (int)(size % PS_PER_US));
}

static void append_text(Writer *w, const char *key, const char *text)
{
    OrrJsonWriter json;
    orr_jw_init(&json, w->out, true);
    g_string_append_printf(w->out, ",\"%s\":", key);
    orr_jw_text(&json, NULL, text);
}

/* `{"ph":"X","cat":...,"name":...,"pid":..,"tid":..,"ts":..,"dur":..,"args":{` */
static void begin(Writer *w, const char *category, const char *name, int process, int thread,
                  int64_t begin_ps, int64_t dur_ps)
{
    if (w->out->len > PIECE)
        flush(w);
    g_string_append(w->out, w->any ? ",\n{\"ph\":\"X\"" : "\n{\"ph\":\"X\"");
    w->any = true;
    append_text(w, "cat", category);
    append_text(w, "name", name);
    g_string_append_printf(w->out, ",\"pid\":%d,\"tid\":%d", process, thread);
    append_us(w, "ts", begin_ps);
    append_us(w, "dur", dur_ps);
    g_string_append(w->out, ",\"args\":{");
}

static void end(Writer *w)
{
    g_string_append(w->out, "}}");
}

static void write_flow(Writer *w, char phase, guint id, int process, int thread, int64_t at_ps)
{
    g_string_append_printf(
        w->out, ",\n{\"ph\":\"%c\",\"id\":%u,\"pid\":%d,\"tid\":%d,\"cat\":\"ac2g\",\"name\":\"ac2g\"%s",
        phase, id, process, thread, phase == 'f' ? ",\"bp\":\"e\"" : "");
    append_us(w, "ts", at_ps);
    g_string_append_c(w->out, '}');
}

static const char *collective_name(TraceClass kind)
{
    static const char *const names[TRACE_CLASSES] = {[TRACE_ALL_REDUCE] = "allreduce",
                                                     [TRACE_ALL_GATHER] = "_allgather_base",
                                                     [TRACE_REDUCE_SCATTER] = "_reduce_scatter_base",
                                                     [TRACE_ALL_TO_ALL] = "all_to_allv",
                                                     [TRACE_SEND_RECEIVE] = "send",
                                                     [TRACE_OTHER_COLLECTIVE] = "broadcast"};
    return names[kind];
}

/* Messages in bytes, so that nothing is said of an element's type that is not known. */
static void write_collective(Writer *w, TraceClass kind, const TraceKernel *kernel)
{
    const double ranks = MAX(kernel->ranks, 1);
    append_text(w, "Collective name", collective_name(kind));
    if (kernel->bytes > 0)
        g_string_append_printf(w->out, ",\"In msg nelems\":%.0f,\"Out msg nelems\":%.0f,\"dtype\":\"Byte\"",
                               kind == TRACE_ALL_GATHER ? kernel->bytes / ranks : kernel->bytes,
                               kind == TRACE_REDUCE_SCATTER ? kernel->bytes / ranks : kernel->bytes);
    if (kernel->ranks > 0)
        g_string_append_printf(w->out, ",\"Group size\":%d", kernel->ranks);
}

/* The operator and the launch of kernel `index`, both at its launch. */
static void write_host(Writer *w, guint index)
{
    const TraceKernel *kernel = trace_kernel(w->rank, index);
    const bool launched = kernel->launch_ps != TRACE_NO_LAUNCH;
    const int64_t at_ps = launched ? kernel->launch_ps : kernel->begin_ps;
    if (kernel->op >= 0) {
        const TraceOp *op = &g_array_index(w->rank->ops, TraceOp, kernel->op);
        begin(w, "cpu_op", op->name, HOST_PROCESS, HOST_THREAD, at_ps, 0);
        g_string_append_printf(w->out, "\"External id\":%u", index + 1);
        if (op->dims[0] != '\0')
            g_string_append_printf(w->out, ",\"Input Dims\":%s", op->dims);
        if (op->types[0] != '\0')
            g_string_append_printf(w->out, ",\"Input type\":%s", op->types);
        end(w);
    }
    if (!launched)
        return;
    begin(w, "cuda_runtime", "cudaLaunchKernel", HOST_PROCESS, HOST_THREAD, at_ps, 0);
    g_string_append_printf(w->out, "\"External id\":%u,\"correlation\":%u", index + 1, index + 1);
    end(w);
    write_flow(w, 's', index + 1, HOST_PROCESS, HOST_THREAD, at_ps);
}

static void write_kernel(Writer *w, guint index)
{
    const TraceKernel *kernel = trace_kernel(w->rank, index);
    const TraceName *name = &g_array_index(w->rank->names, TraceName, kernel->name);
    write_host(w, index);
    begin(w, name->kind == TRACE_COPIES ? "gpu_memcpy" : "kernel", name->text, 0, kernel->stream,
          kernel->begin_ps, kernel->dur_ps);
    g_string_append_printf(w->out,
                           "\"External id\":%u,\"device\":0,\"context\":1,\"stream\":%d,\"correlation\":%u",
                           index + 1, kernel->stream, index + 1);
    if (trace_is_communication(name->kind))
        write_collective(w, name->kind, kernel);
    else if (kernel->bytes > 0)
        g_string_append_printf(w->out, ",\"bytes\":%.0f", kernel->bytes);
    end(w);
    if (kernel->launch_ps != TRACE_NO_LAUNCH)
        write_flow(w, 'f', index + 1, 0, kernel->stream, kernel->begin_ps);
}

static void write_steps(Writer *w)
{
    for (guint i = 0; i < w->rank->steps->len; i++) {
        const TraceStep *step = &g_array_index(w->rank->steps, TraceStep, i);
        g_autofree char *name = g_strdup_printf("ProfilerStep#%" G_GINT64_FORMAT, step->number);
        begin(w, "user_annotation", name, HOST_PROCESS, HOST_THREAD, step->begin_ps,
              step->end_ps - step->begin_ps);
        end(w);
        begin(w, "gpu_user_annotation", name, 0, STREAM_OF_ANNOTATIONS, step->begin_ps,
              step->end_ps - step->begin_ps);
        end(w);
    }
}

void trace_rank_write(const TraceRank *rank, bool (*put)(const char *text, gsize length, void *data),
                      void *data)
{
    Writer w = {.rank = rank, .out = g_string_sized_new(2 * PIECE), .put = put, .data = data};
    g_string_append(w.out, "{\"schemaVersion\":1,\"deviceProperties\":[{\"id\":0");
    append_text(&w, "name", rank->device);
    g_string_append_printf(w.out,
                           "}],\"distributedInfo\":{\"backend\":\"nccl\",\"rank\":%d,\"world_size\":%d},"
                           "\"displayTimeUnit\":\"ms\",\"baseTimeNanoseconds\":0",
                           MAX(rank->rank, 0), MAX(rank->world, 1));
    append_text(&w, "traceName", rank->path);
    g_string_append(w.out, ",\"traceEvents\":[");
    write_steps(&w);
    for (guint i = 0; i < rank->kernels->len && !w.stopped; i++)
        write_kernel(&w, i);
    g_string_append(w.out, "\n]}\n");
    flush(&w);
    g_string_free(w.out, TRUE);
}
