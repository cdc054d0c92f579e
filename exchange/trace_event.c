/* exchange/trace_event.c - see trace_event.h. */
#include "exchange/trace_event.h"

#include <stddef.h>

static bool take_arg(TraceScan *scan, const TraceSlice *key, void *data)
{
    static const struct {
        const char *key;
        size_t offset;
    } wanted[] = {
        {"correlation", offsetof(TraceEvent, correlation)},
        {"External id", offsetof(TraceEvent, external)},
        {"external id", offsetof(TraceEvent, external)},
        {"stream", offsetof(TraceEvent, stream)},
        {"device", offsetof(TraceEvent, device)},
        {"bytes", offsetof(TraceEvent, bytes)},
        {"Input Dims", offsetof(TraceEvent, dims)},
        {"Input dims", offsetof(TraceEvent, dims)},
        {"Input type", offsetof(TraceEvent, types)},
        {"Collective name", offsetof(TraceEvent, collective)},
        {"In msg nelems", offsetof(TraceEvent, in_elements)},
        {"Out msg nelems", offsetof(TraceEvent, out_elements)},
        {"Group size", offsetof(TraceEvent, group_size)},
        {"dtype", offsetof(TraceEvent, dtype)},
        {"Process Group Name", offsetof(TraceEvent, group_name)},
        {"Process Group Ranks", offsetof(TraceEvent, group_ranks)},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(wanted); i++)
        if (key->text[0] == wanted[i].key[0] && trace_slice_is(key, wanted[i].key))
            return trace_scan_value(scan, (TraceSlice *)(gpointer)((char *)data + wanted[i].offset));
    return trace_scan_skip(scan);
}

static bool take_member(TraceScan *scan, const TraceSlice *key, void *data)
{
    TraceEvent *event = data;
    TraceSlice *wanted = NULL;
    if (trace_slice_is(key, "args"))
        return trace_scan_peek(scan) == '{' ? trace_scan_members(scan, take_arg, event)
                                            : trace_scan_skip(scan);
    switch (key->length) {
    case 2:
        wanted = trace_slice_is(key, "ph") ? &event->phase : trace_slice_is(key, "ts") ? &event->ts : NULL;
        break;
    case 3:
        wanted = trace_slice_is(key, "cat")   ? &event->category
                 : trace_slice_is(key, "dur") ? &event->dur
                 : trace_slice_is(key, "pid") ? &event->pid
                                              : NULL;
        break;
    case 4:
        wanted = trace_slice_is(key, "name") ? &event->name : NULL;
        break;
    default:
        break;
    }
    return wanted != NULL ? trace_scan_value(scan, wanted) : trace_scan_skip(scan);
}

TraceEventKind trace_event_kind(const TraceSlice *category)
{
    static const struct {
        const char *word;
        TraceEventKind kind;
    } kinds[] = {{"kernel", TRACE_EVENT_KERNEL},
                 {"cpu_op", TRACE_EVENT_OP},
                 {"cuda_runtime", TRACE_EVENT_LAUNCH},
                 {"cuda_driver", TRACE_EVENT_LAUNCH},
                 {"gpu_memcpy", TRACE_EVENT_COPY},
                 {"gpu_memset", TRACE_EVENT_COPY},
                 {"user_annotation", TRACE_EVENT_ANNOTATION},
                 {"hip_runtime", TRACE_EVENT_LAUNCH},
                 {"Kernel", TRACE_EVENT_KERNEL},
                 {"Operator", TRACE_EVENT_OP},
                 {"Runtime", TRACE_EVENT_LAUNCH},
                 {"Memcpy", TRACE_EVENT_COPY},
                 {"Memset", TRACE_EVENT_COPY}};
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (trace_slice_is(category, kinds[i].word))
            return kinds[i].kind;
    return TRACE_EVENT_OTHER;
}

double trace_dtype_bytes(const TraceSlice *dtype)
{
    static const struct {
        const char *word;
        double bytes;
    } types[] = {{"BFloat16", 2}, {"Float", 4},  {"Half", 2},  {"Byte", 1}, {"Char", 1}, {"Int", 4},
                 {"Long", 8},     {"Double", 8}, {"Short", 2}, {"Bool", 1}, {"bf16", 2}, {"float32", 4}};
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++)
        if (trace_slice_is(dtype, types[i].word))
            return types[i].bytes;
    return trace_slice_has(dtype, "float8") ? 1 : 0;
}

/* NCCL runs an all-to-all as sends and receives, and names some kernels of others "Generic": the collective's name knows. */
TraceClass trace_collective_class(const TraceSlice *name, TraceClass kind)
{
    static const struct {
        const char *word;
        TraceClass kind;
    } words[] = {{"alltoall", TRACE_ALL_TO_ALL},           {"all_to_all", TRACE_ALL_TO_ALL},
                 {"allreduce", TRACE_ALL_REDUCE},          {"all_reduce", TRACE_ALL_REDUCE},
                 {"reduce_scatter", TRACE_REDUCE_SCATTER}, {"reducescatter", TRACE_REDUCE_SCATTER},
                 {"allgather", TRACE_ALL_GATHER},          {"all_gather", TRACE_ALL_GATHER}};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (trace_slice_has(name, words[i].word))
            return words[i].kind;
    return kind;
}

bool trace_event_scan(TraceScan *scan, TraceEvent *ret_event)
{
    *ret_event = (TraceEvent){.phase = {NULL, 0}};
    return trace_scan_members(scan, take_member, ret_event);
}
