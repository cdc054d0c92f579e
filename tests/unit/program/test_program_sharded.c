/* tests/unit/program/test_program_sharded.c - sharded weights: when they are gathered, how often, and how many are
 * there at once. */
#include "tests/unit/sim_fixture.h"

/* FSDP, two gathered units: forward g + (L-1) max(f, g) + f, backward b + (L-1) max(b, g, r) + r. */
static void test_sharded(void)
{
    for (int64_t g = 1; g <= 9; g += 2) {
        for (int64_t r = 1; r <= 9; r += 2) {
            OrrArena *arena = orr_arena_new();
            const int64_t units = 8, f = 3, b = 6;
            SimPlan plan = fixture_layered_plan(arena, (int)units, f, b);
            fixture_set_data_comm(&plan, g, r);
            plan.zero = 3;
            plan.overlap_grad_reduce = plan.reduce_each_microbatch = plan.reshard_after_forward = true;
            plan.prefetch_units = 1;
            for (int i = 0; i < units; i++) {
                plan.stages[0].segments[i].gathered_param_bytes = 1000;
                plan.stages[0].segments[i].unsharded_grad_bytes = 10000;
            }
            SimResult result = fixture_run(&plan, false, arena, NULL);
            int64_t forward_ps = fixture_last_end_ps(&result, SIM_TAG_FORWARD);
            g_assert_cmpint(forward_ps, ==, g + (units - 1) * MAX(f, g) + f);
            g_assert_cmpint(result.step_ps - forward_ps, ==, b + (units - 1) * MAX(b, MAX(g, r)) + r);
            int64_t weights_bytes = 0, gradients_bytes = 0;
            for (int64_t i = 0; i < result.level_count; i++) {
                weights_bytes = MAX(weights_bytes, result.levels[i].bytes[SIM_MEM_WEIGHTS]);
                gradients_bytes = MAX(gradients_bytes, result.levels[i].bytes[SIM_MEM_GRADIENTS]);
            }
            g_assert_cmpint(weights_bytes, ==, 2000);
            g_assert_cmpint(gradients_bytes, <=, 20000);
            orr_arena_free(arena);
        }
    }
}

/* Gathers and reductions in one queue, 8 units, f = 1, b = 2; times in tenths. */
static void test_sharded_one_queue(void)
{
    static const int64_t CASES[][3] = {{5, 5, 165}, {15, 15, 235}, {30, 30, 450}, {12, 6, 166}};
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = fixture_layered_plan(arena, 8, 10, 20);
        fixture_set_data_comm(&plan, CASES[i][0], CASES[i][1]);
        plan.zero = 3;
        plan.overlap_grad_reduce = plan.reduce_each_microbatch = plan.reshard_after_forward = true;
        plan.one_data_stream = true;
        plan.prefetch_units = 1;
        SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(result.step_ps - fixture_last_end_ps(&result, SIM_TAG_FORWARD), ==, CASES[i][2]);
        orr_arena_free(arena);
    }
}

/* How often weights are gathered and gradients reduced: L units, m micro-batches. */
static void test_sharded_traffic(void)
{
    static const struct {
        bool after_forward, after_backward, each;
        int gathers, reduces;
    } CASES[] = {
        {true, true, true, 3 * (2 * 4 - 1), 3 * 4}, /* the last unit stays for its backward */
        {false, true, true, 3 * 4, 3 * 4},
        {false, false, false, 4, 4},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = fixture_layered_plan(arena, 4, 10, 20);
        fixture_set_data_comm(&plan, 4, 5);
        plan.shape.microbatches = 3;
        plan.zero = 3;
        plan.overlap_grad_reduce = true;
        plan.reshard_after_forward = CASES[i].after_forward;
        plan.reshard_after_backward = CASES[i].after_backward;
        plan.reduce_each_microbatch = CASES[i].each;
        SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(fixture_count_spans(&result, SIM_TAG_PARAM_GATHER), ==, CASES[i].gathers);
        g_assert_cmpint(fixture_count_spans(&result, SIM_TAG_GRAD_REDUCE), ==, CASES[i].reduces);
        orr_arena_free(arena);
    }
}

/* All micro-batches pass a chunk before the next: weights come once a chunk and pass, but those of the last unit, which
 * are there when its backward begins; gradients leave once a chunk. Two chunks are gathered at most, one with no gather ahead. */
static void test_sharded_chunks(void)
{
    enum { UNITS = 3, CHUNKS = 2, MICROBATCHES = 4, WEIGHTS = 1000, GRADIENTS = 10 };
    static const struct {
        int prefetch, gathers, reduces;
        int64_t weights_bytes, gradients_bytes;
    } CASES[] = {
        {1, CHUNKS * 2 * UNITS - 1, CHUNKS * UNITS, 2 * UNITS * WEIGHTS, (2 * UNITS - 1) * GRADIENTS},
        {0, CHUNKS * 2 * UNITS - 1, CHUNKS * UNITS, UNITS * WEIGHTS, UNITS * GRADIENTS},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan =
            fixture_plan(arena, &(Pipeline){"breadth-first", 1, CHUNKS, MICROBATCHES, 0, 1, 1, 1, 0, 0});
        for (int s = 0; s < CHUNKS; s++) {
            plan.stages[s].segment_count = UNITS;
            plan.stages[s].segments = ORR_ARENA_NEW(arena, SimSegment, UNITS);
            for (int u = 0; u < UNITS; u++) {
                SimSegment *segment = &plan.stages[s].segments[u];
                segment->forward = fixture_work(SIM_PART_COMPUTE, 3);
                segment->backward_input = fixture_work(SIM_PART_COMPUTE, 6);
                segment->gathered_param_bytes = WEIGHTS;
                segment->unsharded_grad_bytes = GRADIENTS;
            }
        }
        fixture_set_data_comm(&plan, 9, 13); /* longer than a unit's pass, shorter than all micro-batches' */
        plan.zero = 3;
        plan.overlap_grad_reduce = plan.reshard_after_forward = plan.whole_chunks = true;
        plan.prefetch_units = CASES[i].prefetch;
        const SimResult result = fixture_run(&plan, false, arena, NULL);
        int64_t weights_bytes = 0, gradients_bytes = 0;
        for (int64_t k = 0; k < result.level_count; k++) {
            weights_bytes = MAX(weights_bytes, result.levels[k].bytes[SIM_MEM_WEIGHTS]);
            gradients_bytes = MAX(gradients_bytes, result.levels[k].bytes[SIM_MEM_GRADIENTS]);
        }
        g_assert_cmpint(fixture_count_spans(&result, SIM_TAG_PARAM_GATHER), ==, CASES[i].gathers);
        g_assert_cmpint(fixture_count_spans(&result, SIM_TAG_GRAD_REDUCE), ==, CASES[i].reduces);
        g_assert_cmpint(weights_bytes, ==, CASES[i].weights_bytes);
        g_assert_cmpint(gradients_bytes, ==, CASES[i].gradients_bytes);
        if (plan.prefetch_units >
            0) /* all but the first chunk's gathers and the last one's reductions is hidden */
            g_assert_cmpint(result.step_ps, ==,
                            3 * 9 + 3 + (CHUNKS * MICROBATCHES - 1) * UNITS * 3 +
                                CHUNKS * MICROBATCHES * UNITS * 6 + 2 * (13 - 6) + 13);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/program/sharded", test_sharded);
    g_test_add_func("/program/sharded-one-queue", test_sharded_one_queue);
    g_test_add_func("/program/sharded-traffic", test_sharded_traffic);
    g_test_add_func("/program/sharded-chunks", test_sharded_chunks);
    return g_test_run();
}
