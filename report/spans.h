/* report/spans.h - the recorded spans of a run by rank and stream, and a walk over what one rank's ops take and give. */
#ifndef ORR_REPORT_SPANS_H
#define ORR_REPORT_SPANS_H

#include "sim/engine.h"

/* Spans of (rank, stream) in the order in which they ran: by[first[rank x SIM_MAX_STREAMS + stream] + n]. */
typedef struct ReportSpans {
    int64_t *first; /* [ranks x streams + 1] */
    int32_t *by;    /* [span_count] */
} ReportSpans;

ReportSpans report_spans_index(const SimResult *result);
void report_spans_clear(ReportSpans *spans);
/* The n-th span of a rank's stream, or NULL. */
const SimSpan *report_span_at(const SimResult *result, const ReportSpans *spans, int rank, int stream,
                              int64_t n);

typedef struct ReportWalkStream {
    const SimList *list;
    int64_t instr;   /* the next one that leaves a span */
    int64_t at, end; /* next span, and behind the last, in the index */
    bool running;    /* its start was taken, its end not yet */
} ReportWalkStream;

/* Starts and ends of a rank's ops by time; at one instant by stream. */
typedef struct ReportWalk {
    const SimProgram *program;
    const SimResult *result;
    const ReportSpans *spans;
    const int64_t *static_bytes; /* [SIM_MAX_MEMS]: before the first */
    ReportWalkStream streams[SIM_MAX_STREAMS];
} ReportWalk;

void report_walk_begin(const SimProgram *program, const SimResult *result, const ReportSpans *spans, int rank,
                       ReportWalk *ret_walk);
/* When the next start or end is; G_MAXINT64: there is none. */
int64_t report_walk_next_ps(const ReportWalk *walk);
/* Takes it: what it adds to each kind of memory, [SIM_MAX_MEMS], or NULL for nothing. `ret_span` may be NULL. */
const int64_t *report_walk_take(ReportWalk *walk, const SimSpan **ret_span);

#endif
