/* report/effective.h - days of a whole run with what fails in it, as reports and plans print them. Nothing here computes. */
#ifndef ORR_REPORT_EFFECTIVE_H
#define ORR_REPORT_EFFECTIVE_H

#include "base/json.h"
#include "report/report.h"

/* "checkpoints" */
const char *report_life_label(ReportLife part);

/* The rows of the table and the sentence of what is assumed, behind "Whole run" or an answer. */
/* The part has a line: every run has some, others where they are not 0. */
bool report_life_shown(const ReportEffective *effective, ReportLife part);
/* "faults llama3-2024 (assumed), checkpoints to ..."; g_free. */
char *report_effective_basis(const ReportEffective *effective);

void report_effective_text(const ReportEffective *effective, GString *out);
/* "effective_days": a number or null; "effective": an object or null. */
void report_effective_json(const ReportEffective *effective, OrrJsonWriter *w);

#endif
