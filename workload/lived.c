/* workload/lived.c - see lived.h. Tested: unit/workload/test_explain.c */
#include "workload/lived.h"

#include <string.h>

#include "base/error.h"
#include "campaign/campaign.h"
#include "costmodel/params.h"

/* Parameters that the roles train beside the scenario's own model. */
static double other_parameters(const Workload *workload)
{
    double sum = 0;
    for (int i = 0; i < workload->phase_count; i++) {
        const SpecPhase *phase = workload->phase[i].phase;
        const Spec *role = phase->role >= 0 ? workload->role[phase->role].spec : NULL;
        if (phase->kind == SPEC_PHASE_TRAIN && role != NULL && workload->role[phase->role].role->scalar_head)
            sum += cost_parameters(&role->model, 0, false);
    }
    return sum;
}

/* Checkpoints are written between steps. */
static void keep_to_steps(const Report *report, double ideal_days, Spec *spec)
{
    const CampaignOptions options = {.replicas = 1, .ideal_days = ideal_days};
    const double step_s = (double)report->step_ps * 1e-12;
    Campaign campaign;
    if (spec->faults.given && spec->faults.checkpoint.mode != SPEC_CHECKPOINT_NONE &&
        campaign_prepare(report, "loop", &options, &campaign, NULL) && campaign.interval_s < step_s &&
        campaign.work_s >= step_s)
        spec->faults.checkpoint.interval_s = step_s;
}

bool workload_lived(const Workload *workload, const Report *training, double ideal_days, Spec *ret_spec,
                    Report *ret_report, GError **error)
{
    const int per_node = MAX(1, workload->spec->cluster.gpus_per_node);
    if (workload->spec->faults.elastic)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "faults.elastic: a loop does not go on with fewer nodes; leave it out");
    *ret_spec = *workload->spec;
    ret_spec->cluster.nodes = (workload->gpus + per_node - 1) / per_node;
    *ret_report = *training;
    ret_report->spec = ret_spec;
    ret_report->step_ps = workload->step_ps;
    memset(ret_report->late_ps, 0, sizeof ret_report->late_ps); /* of a training step */
    memset(&ret_report->input, 0, sizeof ret_report->input);
    ret_report->gpus = workload->gpus;
    ret_report->days = workload->days;
    ret_report->gpu_hours = workload->gpu_hours;
    ret_report->usd = workload->usd;
    ret_report->kwh = ret_report->step_w = ret_report->waiting_w = 0;
    ret_report->trained_parameters += other_parameters(workload);
    keep_to_steps(ret_report, ideal_days, ret_spec);
    return true;
}
