/* report/measured.h - a step with measured passes, and the steps that it would be without stragglers. */
#ifndef ORR_REPORT_MEASURED_H
#define ORR_REPORT_MEASURED_H

#include "base/json.h"
#include "report/report.h"

/* Kinds and program of the step as it was measured, for report_run(). */
bool report_measured_program(const Spec *spec, bool unfold, OrrArena *arena, Report *report, GError **error);
/* Fills report->measured by more simulations, where the scenario has measured passes; needs report->result. */
bool report_measured_fill(Report *report, GError **error);

void report_measured_text(const Report *report, GString *out);
void report_measured_json(const Report *report, OrrJsonWriter *w);

#endif
