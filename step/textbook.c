/* step/textbook.c - see textbook.h. */
#include "step/textbook.h"

#include "base/error.h"

bool step_textbook_fits(const Spec *spec, GError **error)
{
    const char *has = spec->workload.given                                   ? "a loop of several models"
                      : spec->cluster.network.fidelity == SPEC_FIDELITY_FLOW ? "cluster.network.fidelity flow"
                      : spec->cluster.group_count > 0                        ? "cluster.groups"
                      : spec->execution.measured_passes != NULL              ? "execution.measured_passes"
                      : spec->parallel.data_scheme != SPEC_DATA_ALLREDUCE    ? "parallel.data_scheme"
                      : spec_offloads(&spec->offload)                        ? "offload"
                      : spec->model.list.text != NULL                        ? "a list of layers"
                                                                             : NULL;
    return has == NULL ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "--textbook: %s is not a part of a textbook's step; leave one of them out", has);
}

static int64_t passes_ps(const SimStage *stage)
{
    int64_t sum = 0;
    for (int i = 0; i < stage->segment_count; i++)
        sum += sim_work_duration_ps(&stage->segments[i].forward) +
               sim_work_duration_ps(&stage->segments[i].backward_input) +
               sim_work_duration_ps(&stage->segments[i].backward_weight);
    return sum;
}

static SimWork compute(int64_t ps)
{
    SimWork work = {0};
    work.part_ps[SIM_PART_COMPUTE] = ps;
    return work;
}

static void level_stage(SimStage *stage, int64_t pass_ps)
{
    for (int i = 0; i < stage->segment_count; i++) {
        SimSegment *segment = &stage->segments[i];
        segment->forward = segment->backward_input = segment->backward_weight = compute(i == 0 ? pass_ps : 0);
        segment->recompute = segment->param_gather = segment->backward_gather = segment->grad_reduce =
            (SimWork){0};
    }
    if (sim_work_duration_ps(&stage->overlapped_pair) > 0)
        stage->overlapped_pair = compute(3 * pass_ps);
    stage->send_next = stage->send_prev = (SimWork){0};
    stage->forward_check_ps = stage->backward_check_ps = 0;
}

void step_textbook(SimPlan *plan)
{
    const int stages = sim_plan_model_stages(plan);
    int64_t sum_ps = 0;
    for (int s = 0; s < stages; s++)
        sum_ps += passes_ps(&plan->stages[s]);
    for (int s = 0; s < stages; s++)
        level_stage(&plan->stages[s], MAX(1, sum_ps / (3 * stages)));
    for (int r = 0; r < plan->shape.ranks; r++) {
        SimRankPlan *rank = &plan->ranks[r];
        rank->begin = rank->end = rank->optimizer = rank->embedding_reduce = (SimWork){0};
    }
    plan->deferred_heads = 0;
    if (sim_schedule_needs_times(plan->schedule)) /* that of the stages' own times is another one */
        plan->orders = NULL;
    /* each rank steps by itself, as the papers on split backwards draw it [Qi2024] */
    plan->post_validation = sim_schedule_has(plan->schedule, SIM_TRAIT_SPLITS_BACKWARD);
    plan->head_left_out = plan->head_later = plan->grad_norm = plan->stage_norm = plan->norm_hop =
        plan->overhead = (SimWork){0};
}
