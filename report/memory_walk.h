/* report/memory_walk.h - what each simulated rank holds from change to change, over the first steps of training. */
#ifndef ORR_REPORT_MEMORY_WALK_H
#define ORR_REPORT_MEMORY_WALK_H

#include "report/report.h"

typedef struct ReportMoment {
    const SimLevel *level; /* bytes of each kind, once the optimizer's moments are there */
    bool lacks_moments;
    int64_t missing_bytes; /* moments that are not there yet, of the optimizer's states */
    int64_t in_step_ps;    /* since the step began */
    int step;              /* from 0 */
} ReportMoment;

/* Calls `visit` for every change in order: `steps` 0: of a step like all but the first; else of the first so many, which
 * needs spans recorded. Levels must be recorded. */
void report_walk_memory(const Report *report, int steps,
                        void (*visit)(const Report *report, const ReportMoment *moment, void *data),
                        void *data);

#endif
