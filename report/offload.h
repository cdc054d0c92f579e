/* report/offload.h - the part of a report about what left the GPUs. */
#ifndef ORR_REPORT_OFFLOAD_H
#define ORR_REPORT_OFFLOAD_H

#include "base/json.h"
#include "report/report.h"

/* Levels of a node against its capacities; a level that is over them does not fit. */
void report_offload_fill(const SimPlan *plan, Report *report);
void report_text_offload(const Report *report, GString *out);
void report_json_offload(const Report *report, OrrJsonWriter *w);

#endif
