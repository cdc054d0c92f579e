/* report/parts.h - the words of every report: parts of a step, streams, ops and kinds of memory.
 *
 * Keys are the JSON keys and CSV columns (a contract); labels are for people. Nothing here computes.
 */
#ifndef ORR_REPORT_PARTS_H
#define ORR_REPORT_PARTS_H

#include "report/report.h"

#define REPORT_TIME_COUNT                                                                                    \
    (SIM_PART_COUNT + 1 + REPORT_LATE_COUNT) /* the parts, the bubble, what makes it late */

typedef struct ReportTime {
    const char *key;   /* "compute_s" */
    const char *label; /* "compute" */
    int64_t ps;
} ReportTime;

/* The parts of a step in the order in which reports print them. `late_ps` NULL: nothing makes it late. */
void report_times(const int64_t part_ps[SIM_PART_COUNT], int64_t bubble_ps,
                  const int64_t late_ps[REPORT_LATE_COUNT], ReportTime ret_times[REPORT_TIME_COUNT]);

/* What a run is counted in for people: tokens, or the samples of a list of layers; and how many there are of `tokens`. */
const char *report_items(const Report *report);
double report_items_of(const Report *report, double tokens);

/* "tensor_comm": part, without the unit of report_times' key. */
const char *report_part_name(SimPart part);
/* "activations", "weights" ... */
const char *report_mem_name(SimMem mem);

#endif
