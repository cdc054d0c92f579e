/* study/explain_figures.h - the hardware figures that explain makes better, each alone or all of a resource. */
#ifndef ORR_STUDY_EXPLAIN_FIGURES_H
#define ORR_STUDY_EXPLAIN_FIGURES_H

#include "spec/spec.h"

int explain_figure_count(void);
const char *explain_figure_key(int figure); /* "cluster.scale_up_bytes_per_s" */

/* Rates times `factor`, times over it. false: the scenario has none of it. */
bool explain_figure_better(Spec *spec, int figure, double factor);
void explain_resource_better(Spec *spec, const char *resource, double factor);

#endif
