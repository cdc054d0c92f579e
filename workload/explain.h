/* workload/explain.h - why a step of a loop takes as long as it does: without each phase, and with single changes. */
#ifndef ORR_WORKLOAD_EXPLAIN_H
#define ORR_WORKLOAD_EXPLAIN_H

#include "workload/workload.h"

enum { WORKLOAD_MOST_CHANGES = 32 };

typedef struct WorkloadChange {
    const char *set; /* "workload.in_flight=true"; several with a space between them */
    int64_t step_ps;
    bool fits;
} WorkloadChange;

typedef struct WorkloadExplanation {
    const Workload *workload;
    int64_t without_ps[SPEC_MOST_PHASES]; /* the step where that phase takes no time */
    int64_t even_ps; /* and where all answers are equally long; 0: they are, or nobody knows */
    WorkloadChange change[WORKLOAD_MOST_CHANGES]; /* quickest first; each asked anew */
    int count;
} WorkloadExplanation;

/* Results live in `arena`, and as long as `workload`. */
void workload_explain(const Workload *workload, const SpecSource *source, OrrArena *arena,
                      WorkloadExplanation *ret_explanation);
void workload_explain_json(const WorkloadExplanation *explanation, const SpecSource *source, GString *out);
/* Tables for people, which the caller frees: the step without each phase; changes that shorten it, NULL: none does. */
OrrTable *workload_without_table(const WorkloadExplanation *explanation);
OrrTable *workload_change_table(const WorkloadExplanation *explanation);
void workload_explain_text(const WorkloadExplanation *explanation, GString *out);

#endif
