/* report/jitter.h - the step where GPUs and links are not all alike: how long, who is waited for, what would help.
 *
 * Every GPU has a pace: what it lacks for good (drawn spread, slow nodes, single parts), times what it lacks in one step
 * (noise, the heat of the day). A step with these paces is simulated (step/paced.h). Where more replicas differ than some
 * thousand ranks hold, those are whose pipelines are slowest by their stages' passes, at least REPORT_JITTER_KEPT: the
 * rest wait for them. All of it comes from the scenario's `jitter` and its seed.
 */
#ifndef ORR_REPORT_JITTER_H
#define ORR_REPORT_JITTER_H

#include "base/json.h"
#include "report/report.h"

enum { REPORT_JITTER_KEPT = 8 };

/* Fills report->jitter where the scenario has `jitter`; where not, nothing happens. */
bool report_jitter_fill(Report *report, OrrArena *arena, GError **error);

void report_jitter_text(const Report *report, GString *out);
/* "jitter": an object or null. */
void report_jitter_json(const Report *report, OrrJsonWriter *w);

#endif
