/* exchange/trace_event.h - one event of a Chrome trace: what of it the reader wants. */
#ifndef ORR_EXCHANGE_TRACE_EVENT_H
#define ORR_EXCHANGE_TRACE_EVENT_H

#include "exchange/trace.h"
#include "exchange/trace_scan.h"

typedef enum {
    TRACE_EVENT_OTHER,
    TRACE_EVENT_KERNEL,
    TRACE_EVENT_COPY,
    TRACE_EVENT_LAUNCH,
    TRACE_EVENT_OP,
    TRACE_EVENT_ANNOTATION
} TraceEventKind;

typedef struct TraceEvent {
    TraceSlice phase, category, name, ts, dur, pid;
    TraceSlice correlation, external, stream, device, bytes, dims, types;
    TraceSlice collective, in_elements, out_elements, group_size, dtype, group_name, group_ranks;
} TraceEvent;

/* An event's object; false as of trace_scan.h. */
bool trace_event_scan(TraceScan *scan, TraceEvent *ret_event);
TraceEventKind trace_event_kind(const TraceSlice *category);
/* Bytes of an element, by PyTorch's word for its type; 0: not known. */
double trace_dtype_bytes(const TraceSlice *dtype);
/* What a collective is by the name that PyTorch gives it; `kind` where that does not say. */
TraceClass trace_collective_class(const TraceSlice *name, TraceClass kind);

#endif
