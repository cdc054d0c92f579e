/* program/choose.c - of several orders the one that the engine runs fastest. */
#include "program/plan.h"

/* Passes that are run to choose: a hundredth of a second. */
enum { MOST_PASSES = 20000, FEWEST = 4 };

void sim_plan_choose_orders(SimPlan *plan, OrrArena *arena)
{
    if (plan->orders != NULL || plan->schedule->generate_all == NULL)
        return;
    const int64_t passes = 3 * (int64_t)plan->shape.ranks * plan->shape.microbatches;
    const int most = (int)MAX(FEWEST, MOST_PASSES / passes);
    SimOrder **orders = ORR_ARENA_NEW(arena, SimOrder *, most);
    const int count = sim_plan_candidates(plan, most, arena, orders);
    SimPlan tried = *plan;
    int64_t best_ps = INT64_MAX;
    for (int i = 0; i < count; i++) {
        OrrArena *scratch = orr_arena_new();
        SimProgram program;
        SimResult result;
        tried.orders = orders[i];
        if (sim_program_build(&tried, false, scratch, &program, NULL) &&
            sim_engine_run(&program, 0, scratch, &result, NULL) && result.step_ps < best_ps) {
            best_ps = result.step_ps;
            plan->orders = orders[i];
        }
        orr_arena_free(scratch);
    }
}
