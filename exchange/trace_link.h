/* exchange/trace_link.h - which launch and which operator a kernel belongs to. */
#ifndef ORR_EXCHANGE_TRACE_LINK_H
#define ORR_EXCHANGE_TRACE_LINK_H

#include "exchange/trace.h"

typedef struct TraceRaw {
    TraceKernel kernel;
    int64_t correlation, external, device;
} TraceRaw;

/* A launch or an operator by its id. */
typedef struct TraceLinked {
    int64_t id, external, begin_ps;
    int32_t op;
} TraceLinked;

/* Kernels (TraceRaw) of the busiest GPU into `rank`, each with its launch and its operator (TraceLinked by correlation, and by
 * external id; both are sorted here); others are counted. */
void trace_link(const GArray *kernels, GArray *launches, GArray *ops, TraceRank *rank);

#endif
