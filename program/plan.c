/* program/plan.c - the order of each rank: given, generated from the shape, or chosen by the plan's times and bytes. */
#include "program/works.h"

static int64_t pass_ps(const SimStage *stage, SimPass pass)
{
    int64_t sum_ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimWork work = sim_segment_work(&stage->segments[i], pass);
        sum_ps = sim_sum(sum_ps, sim_work_duration_ps(&work));
    }
    return sum_ps;
}

static void add_reductions(const SimStage *stage, SimStageCosts *costs, bool *ret_unsharded)
{
    for (int i = 0; i < stage->segment_count; i++) {
        const int64_t ps = sim_work_duration_ps(&stage->segments[i].grad_reduce);
        costs->reduce_ps = sim_sum(costs->reduce_ps, ps);
        costs->pieces += ps > 0;
        *ret_unsharded = *ret_unsharded || stage->segments[i].unsharded_grad_bytes > 0;
    }
}

static SimStageCosts stage_costs(const SimStage *stage)
{
    const SimMemDelta forward = sim_stage_mem(stage, SIM_PASS_FORWARD);
    const SimMemDelta weight = sim_stage_mem(stage, SIM_PASS_BACKWARD_WEIGHT);
    return (SimStageCosts){.forward_ps = pass_ps(stage, SIM_PASS_FORWARD),
                           .input_ps = pass_ps(stage, SIM_PASS_BACKWARD_INPUT),
                           .weight_ps = pass_ps(stage, SIM_PASS_BACKWARD_WEIGHT),
                           .next_hop_ps = sim_work_duration_ps(&stage->send_next),
                           .previous_hop_ps = sim_work_duration_ps(&stage->send_prev),
                           .taken_bytes = forward.start_bytes[SIM_MEM_ACTIVATIONS],
                           .late_bytes = -weight.end_bytes[SIM_MEM_ACTIVATIONS]};
}

/* An order depends on how long passes are beside each other. Where all of them in a row are more than the clock holds,
 * all get shorter by one factor. */
static void fit_clock(const SimPlan *plan, SimStageCosts *stages)
{
    const int count = plan->shape.ranks * plan->shape.chunks;
    double sum_ps = 0;
    for (int s = 0; s < count; s++) {
        const SimStageCosts *stage = &stages[s];
        sum_ps += (double)stage->forward_ps + (double)stage->input_ps + (double)stage->weight_ps +
                  (double)stage->next_hop_ps + (double)stage->previous_hop_ps + (double)stage->reduce_ps;
    }
    const double times = sum_ps * plan->shape.microbatches / (double)(INT64_MAX / 2);
    const int64_t factor = times < 1 ? 1 : 1 + (int64_t)MIN(times, (double)(INT64_MAX / 2));
    for (int s = 0; s < count && factor > 1; s++) {
        stages[s].forward_ps /= factor;
        stages[s].input_ps /= factor;
        stages[s].weight_ps /= factor;
        stages[s].next_hop_ps /= factor;
        stages[s].previous_hop_ps /= factor;
        stages[s].reduce_ps /= factor;
    }
}

int sim_plan_candidates(const SimPlan *plan, int most, OrrArena *arena, SimOrder **ret_orders)
{
    const int ranks = plan->shape.ranks, stages = ranks * plan->shape.chunks;
    SimScheduleCosts costs = {.stages = ORR_ARENA_NEW(arena, SimStageCosts, stages),
                              .limit_bytes = ORR_ARENA_NEW(arena, int64_t, ranks),
                              .skewed = plan->post_validation && ranks > 1,
                              .blocking = plan->p2p_blocking,
                              .reduces_each = plan->reduce_each_microbatch && plan->zero < 3,
                              .reduces_alone = plan->reduction_holds_queue ||
                                               (plan->reduce_each_microbatch && !plan->overlap_grad_reduce)};
    bool unsharded = false;
    for (int s = 0; s < stages; s++) {
        costs.stages[s] = stage_costs(&plan->stages[s]);
        if (plan->zero < 3)
            add_reductions(&plan->stages[s], &costs.stages[s], &unsharded);
    }
    costs.reduces_in_turn = plan->reduce_each_microbatch && unsharded;
    fit_clock(plan, costs.stages);
    for (int r = 0; r < ranks; r++)
        costs.limit_bytes[r] = plan->ranks[r].limit_bytes > 0 ? plan->ranks[r].limit_bytes : INT64_MAX;
    return plan->schedule->generate_all(&plan->shape, &costs, most, arena, ret_orders);
}

SimOrder *sim_plan_orders(const SimPlan *plan, OrrArena *arena)
{
    SimOrder *orders = NULL;
    if (plan->orders == NULL && plan->schedule->generate_all != NULL) {
        sim_plan_candidates(plan, 1, arena, &orders);
        return orders;
    }
    orders = ORR_ARENA_NEW(arena, SimOrder, plan->shape.ranks);
    if (plan->orders == NULL)
        sim_schedule_orders(plan->schedule, &plan->shape, arena, orders);
    for (int r = 0; plan->orders != NULL && r < plan->shape.ranks; r++)
        orders[r] = plan->orders[r];
    return orders;
}
