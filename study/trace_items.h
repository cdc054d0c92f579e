/* study/trace_items.h - passes over pieces of the model as lists of kernels and collectives. */
#ifndef ORR_STUDY_TRACE_ITEMS_H
#define ORR_STUDY_TRACE_ITEMS_H

#include "exchange/trace.h"
#include "report/report.h"

typedef struct TraceItem {
    TraceClass kind;
    int32_t name, op; /* of the TraceRank */
    double seconds, gap_s;
    double lost_s; /* what a kernel lasts longer beside exchanges that hide */
    double bytes;  /* of a collective */
    double pace;   /* ... times as long as alone where it hides; 0: no collective of a pass */
    int comm;      /* ... CostComm */
    int ranks;
    int under; /* item that a collective runs beside; -1: what follows waits for it */
} TraceItem;

typedef struct TraceItems TraceItems;
/* Both are borrowed; names and operators go into `rank`. */
TraceItems *trace_items_new(const Report *report, TraceRank *rank);
void trace_items_free(TraceItems *items);
/* TraceItem of the pass with `tag` over segment `segment` of `stage`, appended to `out`. False: that pass is not taken apart. */
bool trace_items_add(TraceItems *items, int stage, int segment, SimTag tag, GArray *out);

/* "ncclDevKernel_AllGather": as NCCL names it. */
const char *trace_collective_kernel(TraceClass kind);

#endif
