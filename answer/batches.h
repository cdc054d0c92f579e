/* answer/batches.h - days and costs of a run whose batch and sequences grow (training.batch_schedule). */
#ifndef ORR_ANSWER_BATCHES_H
#define ORR_ANSWER_BATCHES_H

#include "report/report.h"

/* Each size of a step is simulated, with what `options` say, and days, GPU-hours, money and energy of `report` become those
 * of all of them. Does nothing where the scenario has no schedule, or no tokens. The list lives in `arena`. */
bool answer_batches(const ReportOptions *options, OrrArena *arena, Report *report, GError **error);

#endif
