/* step/orders.c - which schedule a plan follows: one of the table, or op orders that came with the Spec. */
#include <math.h>

#include "step/fill.h"
#include "spec/orders.h"

static const uint8_t PASSES[] = {
    [SPEC_OP_FORWARD] = SIM_PASS_FORWARD,       [SPEC_OP_BACKWARD] = SIM_PASS_BACKWARD,
    [SPEC_OP_INPUT] = SIM_PASS_BACKWARD_INPUT,  [SPEC_OP_WEIGHT] = SIM_PASS_BACKWARD_WEIGHT,
    [SPEC_OP_PAIR] = SIM_PASS_FORWARD_BACKWARD,
};

static SimPassOp pass_of(const SpecOrderOp *op, int ranks)
{
    const bool pair = op->op == SPEC_OP_PAIR;
    return (SimPassOp){.pass = PASSES[op->op],
                       .chunk = (int16_t)(op->stage / ranks),
                       .microbatch = op->microbatch,
                       .chunk2 = (int16_t)(pair ? op->stage2 / ranks : -1),
                       .microbatch2 = pair ? op->microbatch2 : -1};
}

/* A schedule of its own, named after the file. */
static bool follow_orders(const Spec *spec, OrrArena *arena, SimPlan *plan, GError **error)
{
    const SpecOrders *given = &spec->parallel.orders;
    const char *name = spec->parallel.schedule_file;
    SpecOrderTable table;
    g_assert(given->text != NULL);
    if (!spec_orders_parse(given->text, name, arena, &table, error)) {
        return false;
    }
    SimSchedule *schedule = ORR_ARENA_NEW(arena, SimSchedule, 1);
    *schedule = (SimSchedule){.name = orr_arena_strdup(arena, name), .placement = given->placement};
    SimOrder *orders = ORR_ARENA_NEW(arena, SimOrder, given->ranks);
    for (int r = 0; r < given->ranks; r++) {
        orders[r].count = table.rows[r].count;
        orders[r].ops = ORR_ARENA_NEW(arena, SimPassOp, orders[r].count);
        for (int64_t i = 0; i < orders[r].count; i++) {
            orders[r].ops[i] = pass_of(&table.rows[r].ops[i], given->ranks);
        }
    }
    plan->schedule = schedule;
    plan->orders = orders;
    return true;
}

bool step_fill_schedule(const Spec *spec, OrrArena *arena, SimPlan *plan, GError **error)
{
    plan->schedule = sim_schedule_at((int)spec->parallel.schedule);
    plan->shape = (SimScheduleShape){.ranks = spec->parallel.pipeline,
                                     .chunks = spec->parallel.virtual_stages,
                                     .microbatches = spec_microbatches(spec),
                                     .group = spec->parallel.microbatch_group};
    if (spec->parallel.schedule == SPEC_SCHEDULE_FILE && !follow_orders(spec, arena, plan, error))
        return false;
    if (plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL) {
        if (spec->parallel.virtual_stages > 2) {
            g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                        "parallel.virtual_stages: %d with schedule \"%s\", which keeps two copies of one "
                        "stage a rank; leave it out",
                        spec->parallel.virtual_stages, plan->schedule->name);
            return false;
        }
        plan->shape.chunks = 2; /* one of each copy */
    }
    if (plan->schedule->check == NULL || plan->schedule->check(&plan->shape, error))
        return true;
    g_prefix_error(error, "parallel.schedule: "); /* a schedule knows no keys */
    return false;
}

/* What memory leaves to activations: without context, states, the largest workspace, with ZeRO-3 every gathered weight of
 * the stage and with ZeRO-2/3 its unsharded gradients: all, or the two largest where each micro-batch's are reduced, which
 * waits for the one before the last. */
static int64_t left_bytes(const Spec *spec, const SimPlan *plan, int rank)
{
    const SimStage *stage = &plan->stages[rank];
    int64_t left = llround(spec->cluster.accelerator.memory_bytes - spec_context_bytes(spec));
    int64_t workspace = 0, all = 0, largest[2] = {0};
    for (int kind = 0; kind < SIM_MEM_COUNT; kind++) {
        left -= plan->ranks[rank].static_bytes[kind];
    }
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        const int64_t unsharded = segment->unsharded_grad_bytes;
        workspace = MAX(workspace, MAX(segment->forward_temp_bytes, segment->backward_temp_bytes));
        left -= segment->gathered_param_bytes;
        all += unsharded;
        largest[1] = MAX(largest[1], MIN(unsharded, largest[0]));
        largest[0] = MAX(largest[0], unsharded);
    }
    return left - workspace - (plan->reduce_each_microbatch ? largest[0] + largest[1] : all);
}

void step_fill_limits(const Spec *spec, SimPlan *plan)
{
    if (plan->schedule->generate_all == NULL) {
        return;
    }
    for (int r = 0; r < plan->shape.ranks; r++) {
        const SimStage *stage = &plan->stages[r];
        int64_t one = 0;
        for (int i = 0; i < stage->segment_count; i++) {
            one += stage->segments[i].activation_bytes;
        }
        const int64_t asked = one * spec->parallel.live_microbatches;
        plan->ranks[r].limit_bytes = MAX(1, asked > 0 ? asked : left_bytes(spec, plan, r));
    }
}
