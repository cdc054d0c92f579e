/* workload/lived.h - a loop as what a campaign lives through: its step, all its GPUs, what it saves. */
#ifndef ORR_WORKLOAD_LIVED_H
#define ORR_WORKLOAD_LIVED_H

#include "report/report.h"
#include "workload/workload.h"

/* `training`: the report of the scenario's own training step. A failure of any GPU stops the loop, and answers that are being
 * written are lost with the step; checkpoints hold the weights and states of every role that trains, and follow steps: no
 * interval is below one. *ret_spec and *ret_report are for campaign_run(); days are `ideal_days` or, where these are 0, those
 * of workload.steps. Energy is not known. Fails for what a loop has no answer to. */
bool workload_lived(const Workload *workload, const Report *training, double ideal_days, Spec *ret_spec,
                    Report *ret_report, GError **error);

#endif
