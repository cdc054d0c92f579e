/* study/trace_learn.h - what a trace teaches about its software: a recipe for other sizes of the same program.
 *
 * Learned are the times of kernels, class by class, over what the model says; the gap between two kernels; and what a step
 * spends with nothing running (host.step_overhead_s). Kernels of no known class count as element-wise. Collectives count
 * without what they wait for their last rank, as far as several ranks tell. Not learned: when communication begins and what it
 * hides behind, a host that is late at each launch (its time counts once a step), and how a factor changes with sizes.
 */
#ifndef ORR_STUDY_TRACE_LEARN_H
#define ORR_STUDY_TRACE_LEARN_H

#include "base/json.h"
#include "report/report.h"
#include "study/trace_answer.h"

typedef struct TraceLearned {
    SpecRecipeLearned learned;
    double kernel_gap_s, step_overhead_s;
    double measured_s, before_s, after_s; /* a step: of the trace, and predicted without and with it */
    double spread_frac
        [TRACE_CLASSES]; /* how ops of a class differ from its factor, weighted by time; NAN: one op or none */
    double kernels[TRACE_CLASSES]; /* measured, a step */
} TraceLearned;

/* `spec` is complete (no "auto") and describes the run that was traced. */
bool trace_learn(const GPtrArray *ranks, const Spec *spec, TraceLearned *ret_learned, GError **error);

/* A profile of the software: `base` (a name, or an object of its own) with what was learned. */
void trace_learned_json(const TraceLearned *learned, const OrrJson *base, const char *from, GString *out);
/* A page: the factors, how sure they are, and the step. */
void trace_learned_text(const TraceLearned *learned, GString *out);

#endif
