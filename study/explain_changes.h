/* study/explain_changes.h - what explain simulates: changed scenarios. */
#ifndef ORR_STUDY_EXPLAIN_CHANGES_H
#define ORR_STUDY_EXPLAIN_CHANGES_H

#include "study/explain.h"

/* One step of `spec`; slow GPUs take the share of the step that they take of `like`. */
bool explain_simulate(const Spec *spec, const Report *like, Report *ret_report);

/* Fills explanation->changes, tried and refused. */
void explain_changes(Explanation *explanation);

#endif
