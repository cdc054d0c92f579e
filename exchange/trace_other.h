/* exchange/trace_other.h - what other profilers than PyTorch's write of one GPU's kernels or collectives. */
#ifndef ORR_EXCHANGE_TRACE_OTHER_H
#define ORR_EXCHANGE_TRACE_OTHER_H

#include "exchange/trace.h"
#include "exchange/trace_bytes.h"

typedef enum {
    TRACE_DIALECT_KINETO,    /* or none that is known */
    TRACE_DIALECT_TABLE,     /* comma-separated: `nsys stats --report cuda_gpu_trace`, rocprof, rocprofv3 */
    TRACE_DIALECT_INSPECTOR, /* NCCL Inspector's JSON lines */
    TRACE_DIALECT_FLIGHT     /* PyTorch's flight recorder as JSON */
} TraceDialect;

/* By how the text begins. */
TraceDialect trace_dialect(const char *text, gsize length);

/* Fills `rank`; errors name `name`. A table has no operators and no steps. NCCL Inspector does not say when a collective
 * began: they stand one behind the other. */
bool trace_other_read(TraceBytes *bytes, TraceDialect dialect, const char *name, const TraceTable *table,
                      TraceRank *rank, GError **error);

#endif
