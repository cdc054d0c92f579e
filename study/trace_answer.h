/* study/trace_answer.h - a trace by class of kernel and as a waterfall; beside a prediction, where its error lies.
 *
 * A prediction is a trace too: the kernels of one rank of a simulated step (study/trace_predict.h). Ops of
 * both sides meet by class and size: products by operand sizes, collectives by bytes and ranks, attention and norms by pass,
 * other classes as one. Where a trace has no sizes, and as many products or collectives of a kind in each step as the prediction,
 * the n-th of a step is the n-th predicted. Errors are predicted over measured, less 1. Of two recordings, products and
 * collectives meet by size as well, all else by the kernel's name.
 */
#ifndef ORR_STUDY_TRACE_ANSWER_H
#define ORR_STUDY_TRACE_ANSWER_H

#include "study/trace_sums.h"

typedef struct TraceOpRow {
    char *text; /* "products 8192x4096x1024"; a kernel's name where nothing is predicted */
    TraceClass kind;
    double measured_s, predicted_s; /* a step */
    double measured_kernels, predicted_kernels;
} TraceOpRow;

typedef struct TraceAnswer {
    const GPtrArray *ranks; /* borrowed */
    TraceSums measured, predicted;
    bool compared;
    bool recorded;              /* ... with another recording: "predicted" is what that one measured */
    GArray *ops;                /* TraceOpRow: by error, largest first; by time where nothing is predicted */
    double error_s, absolute_s; /* of the classes' differences: their sum, and of their sizes */
    double unmatched_measured_s, unmatched_predicted_s;
    bool cancelled; /* |error_s| < absolute_s / 3: right by cancellation, where the sum is right at all */
} TraceAnswer;

/* `predicted` NULL: nothing to compare with. */
TraceAnswer trace_answer(const GPtrArray *ranks, const TraceRank *predicted);
/* The same beside another recording, the mean of whose ranks is taken. */
TraceAnswer trace_answer_beside(const GPtrArray *ranks, const GPtrArray *others);
void trace_answer_clear(TraceAnswer *answer);

void trace_answer_text(const TraceAnswer *answer, GString *out);
void trace_answer_json(const TraceAnswer *answer, GString *out);
/* section, key, kernels, measured_s, predicted_s, error_frac: a row a class, part of the waterfall, and op. */
void trace_answer_csv(const TraceAnswer *answer, GString *out);

#endif
