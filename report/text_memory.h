/* report/text_memory.h - the memory section of the text report. */
#ifndef ORR_REPORT_TEXT_MEMORY_H
#define ORR_REPORT_TEXT_MEMORY_H

#include "report/report.h"

/* A table with a bar per pipeline stage against the capacity; neighbours that print the same share a row,
 * and a long pipeline is sampled. Then the verdict: to spare, or short by how much. */
void report_text_memory(const Report *report, GString *out);

#endif
