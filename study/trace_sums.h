/* study/trace_sums.h - what one GPU did in a step of a trace, added up: by class of kernel, and instant by instant.
 *
 * A kernel belongs to the step in which the host launched it. The steps of a trace are one window, from the first kernel of the
 * first marked step to the end of the last one's kernels (or as long as the host's marks say, where that is longer); all
 * figures are of the mean step. A trace without marks is one step.
 */
#ifndef ORR_STUDY_TRACE_SUMS_H
#define ORR_STUDY_TRACE_SUMS_H

#include "exchange/trace.h"

/* Every instant of the window is one of these. */
typedef enum {
    TRACE_FALL_COMPUTE,       /* a kernel that computes runs */
    TRACE_FALL_COMMUNICATION, /* else a collective or message transfers */
    TRACE_FALL_SKEW,          /* else a collective waits for its last rank */
    TRACE_FALL_COPIES,        /* else a copy runs */
    TRACE_FALL_HOST,          /* nothing runs, and what runs next was not launched yet */
    TRACE_FALL_GAPS,          /* nothing runs though the next was launched, or its launch is not known */
    TRACE_FALLS
} TraceFall;

const char *trace_fall_word(TraceFall fall);
const char *trace_fall_help(TraceFall fall);

typedef struct TraceSums {
    int steps;
    bool marked; /* the trace says where steps begin */
    double step_s;
    double class_s[TRACE_CLASSES], class_kernels[TRACE_CLASSES];
    double class_wait_s[TRACE_CLASSES]; /* of class_s: collectives wait for their last rank */
    double class_busy_s
        [TRACE_CLASSES];        /* any kernel of it runs: less than class_s where streams run it at once */
    double fall_s[TRACE_FALLS]; /* add up to step_s */
    double beside_s;            /* of the computing time: communication ran beside it */
    double communication_s;     /* any collective or message ran */
} TraceSums;

/* Of a class without what collectives wait for their last rank. */
static inline double trace_class_s(const TraceSums *sums, int kind)
{
    return sums->class_s[kind] - sums->class_wait_s[kind];
}

TraceSums trace_sums(const TraceRank *rank);
/* The mean over ranks. */
TraceSums trace_sums_mean(const GPtrArray *ranks);
/* Whether a kernel is in the window of trace_sums(): the first and the last one behind it, by begin. Returns the steps that
 * are marked; 0: none is, or no kernel is in them, and all of the trace is one. */
int trace_window(const TraceRank *rank, bool *ret_in_step);

#endif
