/* study/compare.h - two scenarios side by side: which fields differ, and where the difference in time and
 * memory comes from.
 *
 * Time: the critical ranks' steps, part by part. Memory: the fullest stages, kind by kind. Cause: each field that
 * differs is carried over from B to A on its own and the step simulated again; what fields do together is the rest.
 */
#ifndef ORR_STUDY_COMPARE_H
#define ORR_STUDY_COMPARE_H

#include "report/report.h"

#define COMPARE_STEPS 20 /* that a comparison of every field alone simulates, about: ReportOptions.steps */

typedef struct CompareField {
    char *key;     /* "parallel.tensor"; fitted blocks are one field each: "cluster.accelerator.model" */
    char *a, *b;   /* values as text */
    char *reason;  /* why A cannot run with B's value alone; NULL: it ran, or was not tried */
    bool tried;    /* A was simulated with B's value */
    double step_s; /* of A with B's value; 0: not simulated */
    bool fits;
    size_t offset, size; /* of the field in Spec */
} CompareField;

typedef struct Comparison {
    const Report *a, *b;  /* borrowed */
    const char *names[2]; /* borrowed: of the files */
    GArray *fields;       /* CompareField, in the order of the field tables */
} Comparison;

/* Compares two runs. `alone`: also simulate every differing field on its own. */
Comparison report_compare(const Report *a, const Report *b, const char *const names[2], bool alone);
void report_compare_clear(Comparison *comparison);

/* Fields in which two complete Specs differ; CompareField, cleared with the array. */
GArray *report_compare_specs(const Spec *a, const Spec *b);

void report_compare_text(const Comparison *comparison, GString *out);
void report_compare_json(const Comparison *comparison, GString *out);
/* A row a part, kind or field: section, key, a, b, difference. */
void report_compare_csv(const Comparison *comparison, GString *out);

#endif
