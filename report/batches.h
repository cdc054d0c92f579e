/* report/batches.h - training.batch_schedule in a report. */
#ifndef ORR_REPORT_BATCHES_H
#define ORR_REPORT_BATCHES_H

#include "base/json.h"
#include "report/report.h"

/* Lines behind the label "Batches", whose texts begin at `column`; nothing without a schedule. */
void report_batches_text(const Report *report, int column, GString *out);
void report_batches_json(const Report *report, OrrJsonWriter *w);

#endif
