/* report/input.h - does a step wait for its input? Storage, a node's way to it, its cache, the processes that prepare.
 *
 * Each stage is a rate of tokens a second over all nodes that read, one for each replica of the model at most; the least
 * one feeds the run. With input fetched ahead a step takes the longer of itself and its input, without both in a row.
 * Ignores: the first steps, until the queue is full; that replicas of different nodes compete unevenly.
 */
#ifndef ORR_REPORT_INPUT_H
#define ORR_REPORT_INPUT_H

#include "base/json.h"
#include "report/report.h"

/* Fills report->input where the scenario has `data` or skips steps. */
bool report_input_fill(Report *report, GError **error);

void report_input_text(const Report *report, GString *out);
/* "input": an object or null. */
void report_input_json(const Report *report, OrrJsonWriter *w);

#endif
