/* exchange/trace_link.h - which launch and which operator a kernel belongs to. */
#ifndef ORR_EXCHANGE_TRACE_LINK_H
#define ORR_EXCHANGE_TRACE_LINK_H

#include "exchange/trace.h"

/* Until kernels are linked their ids stand where what follows from them will: a long trace has no room for both. */
static inline void trace_raw_set(TraceKernel *kernel, int64_t correlation, int64_t external, int64_t device)
{
    kernel->launch_ps = correlation;
    kernel->wait_ps = external;
    kernel->op = (int32_t)device;
}

/* A launch or an operator by its id. */
typedef struct TraceLinked {
    int64_t id, external, begin_ps;
    int32_t op;
} TraceLinked;

/* Leaves the kernels of the busiest GPU in `rank`, each with its launch and its operator (TraceLinked by correlation, and by
 * external id; both are sorted here); others are counted. */
void trace_link(GArray *launches, GArray *ops, TraceRank *rank);

#endif
