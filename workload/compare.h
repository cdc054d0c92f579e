/* workload/compare.h - two loops side by side: their steps, and each phase of the one beside that of its name in the other. */
#ifndef ORR_WORKLOAD_COMPARE_H
#define ORR_WORKLOAD_COMPARE_H

#include "workload/workload.h"

/* `names`: what the two are called in print. */
void workload_compare_text(const Workload *a, const Workload *b, const char *const names[2], GString *out);
void workload_compare_json(const Workload *a, const Workload *b, const char *const names[2], GString *out);
void workload_compare_csv(const Workload *a, const Workload *b, GString *out);

#endif
