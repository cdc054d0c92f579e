/* tests/unit/program/test_program.c - plans lowered and run: data-parallel overlap, sharding, memory, folding. */
#include "tests/unit/sim_fixture.h"

#include <string.h>

/* Reductions beside the backward: finish_k = max(finish_{k-1}, ready_k) + r; else all of them after it. */
static void test_grad_reduce(void)
{
    for (int64_t r = 1; r <= 9; r++) {
        OrrArena *arena = orr_arena_new();
        const int64_t units = 5, f = 2, b = 4;
        SimPlan plan = fixture_layered_plan(arena, (int)units, f, b);
        fixture_set_data_comm(&plan, 0, r);
        plan.ranks[0].optimizer = fixture_work(SIM_PART_OPTIMIZER, 7);
        SimResult apart = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(apart.step_ps, ==, units * (f + b + r) + 7);
        g_assert_cmpint(apart.rank[0].part_ps[SIM_PART_DATA_COMM], ==, units * r);
        plan.overlap_grad_reduce = true;
        SimResult beside = fixture_run(&plan, false, arena, NULL);
        int64_t exposed_ps = (units - 1) * MAX(r - b, 0) + r;
        g_assert_cmpint(beside.step_ps, ==, units * (f + b) + exposed_ps + 7);
        g_assert_cmpint(beside.rank[0].part_ps[SIM_PART_DATA_COMM], ==, exposed_ps);
        g_assert_cmpint(beside.rank[0].part_ps[SIM_PART_OPTIMIZER], ==, 7);
        g_assert_cmpint(beside.rank[0].idle_ps, ==, 0);
        orr_arena_free(arena);
    }
}

/* ZeRO-1 gathers: after the optimizer all exposed; beside the first forward, g + (L-1) max(f, g) + f. */
static void test_param_gather(void)
{
    for (int64_t g = 1; g <= 6; g++) {
        OrrArena *arena = orr_arena_new();
        const int64_t units = 5, f = 3, b = 4;
        SimPlan plan = fixture_layered_plan(arena, (int)units, f, b);
        fixture_set_data_comm(&plan, g, 0);
        plan.shape.microbatches = 2;
        plan.zero = 1;
        plan.ranks[0].optimizer = fixture_work(SIM_PART_OPTIMIZER, 7);
        g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, units * (2 * (f + b) + g) + 7);
        plan.overlap_param_gather = true;
        g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==,
                        g + (units - 1) * MAX(f, g) + f + units * (f + 2 * b) + 7);
        orr_arena_free(arena);
    }
}

/* A pipeline fills past one gather where all ranks begin theirs with the step, past one a rank where each begins with its
 * first use; later chunks' are then on the way round as well. */
static void test_gathers_on_use(void)
{
    for (int ranks = 1; ranks <= 4; ranks++) {
        for (int64_t g = 1; g <= 31; g += 10) {
            OrrArena *arena = orr_arena_new();
            const int microbatches = 6;
            SimPlan plan =
                fixture_plan(arena, &(Pipeline){"1f1b", ranks, 1, microbatches, 0, 10, 10, 10, 0, 0});
            fixture_set_data_comm(&plan, g, 0);
            plan.zero = 1;
            plan.overlap_param_gather = true;
            const int64_t passes_ps = (microbatches + ranks - 1) * 30;
            g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, passes_ps + g);
            plan.gathers_on_use = true;
            g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, passes_ps + ranks * g);
            orr_arena_free(arena);
        }
    }
    for (int chunks = 2; chunks <= 3; chunks++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = fixture_plan(arena, &(Pipeline){"interleaved", 4, chunks, 8, 4, 10, 10, 10, 0, 0});
        fixture_set_data_comm(&plan, 100, 0);
        plan.zero = 1;
        plan.overlap_param_gather = true;
        const int64_t aligned_ps = fixture_run(&plan, false, arena, NULL).step_ps;
        plan.gathers_on_use = true;
        const int64_t on_use_ps = fixture_run(&plan, false, arena, NULL).step_ps;
        g_assert_cmpint(on_use_ps, >=, 4 * chunks * 110);
        g_assert_cmpint(on_use_ps - aligned_ps, >, 2 * chunks * 100);
        g_assert_cmpint(on_use_ps - aligned_ps, <=, 4 * chunks * 100);
        orr_arena_free(arena);
    }
}

/* Embedding gradients wait for the last of the two ranks, the norm for all, the optimizer for the norm. */
static void test_step_end(void)
{
    OrrArena *arena = orr_arena_new();
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 4, 1, 4, 0, 10, 10, 10, 0, 0});
    plan.ranks[0].embedding_reduce = plan.ranks[3].embedding_reduce = fixture_work(SIM_PART_DATA_COMM, 6);
    plan.grad_norm = fixture_work(SIM_PART_DATA_COMM, 2);
    plan.overhead = fixture_work(SIM_PART_OTHER, 5);
    for (int r = 0; r < 4; r++)
        plan.ranks[r].optimizer = fixture_work(SIM_PART_OPTIMIZER, 10 + r);
    SimResult result = fixture_run(&plan, false, arena, NULL);
    const int64_t passes_ps = (4 + 4 - 1) * 30;
    g_assert_cmpint(result.step_ps, ==, passes_ps + 6 + 2 + 13 + 5);
    g_assert_cmpint(result.critical_rank, ==, 3);
    g_assert_cmpint(result.rank[1].part_ps[SIM_PART_DATA_COMM], ==, 2);
    g_assert_cmpint(result.rank[3].part_ps[SIM_PART_DATA_COMM], ==, 8);
    g_assert_cmpint(result.rank[0].part_ps[SIM_PART_OPTIMIZER], ==, 10);
    orr_arena_free(arena);
}

/* One op a segment or one a stage: the same times and the same peak, whatever the workspaces. */
static void test_expanded_and_collapsed(void)
{
    GRand *random = g_rand_new_with_seed(5);
    static const char *const SCHEDULES[] = {"1f1b", "interleaved", "zb-h1", "gpipe"};
    for (int round = 0; round < 100; round++) {
        OrrArena *arena = orr_arena_new();
        const char *name = SCHEDULES[round % 4];
        int chunks = round % 4 == 1 ? 2 : 1;
        SimPlan plan = fixture_plan(arena, &(Pipeline){name, 3, chunks, 3, 0, 1, 1, 1, 0, 2});
        for (int s = 0; s < 3 * chunks; s++) {
            SimStage *stage = &plan.stages[s];
            stage->segment_count = (int)fixture_random(random, 1, 5);
            stage->segments = ORR_ARENA_NEW(arena, SimSegment, stage->segment_count);
            for (int i = 0; i < stage->segment_count; i++) {
                SimSegment *segment = &stage->segments[i];
                segment->forward = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 9));
                segment->recompute = fixture_work(SIM_PART_RECOMPUTE, fixture_random(random, 0, 4));
                segment->backward_input = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 9));
                segment->backward_weight = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 9));
                segment->activation_bytes = fixture_random(random, 10, 90);
                segment->activation_input_only_bytes = fixture_random(random, 0, 10);
                segment->forward_temp_bytes = fixture_random(random, 0, 200);
                segment->backward_temp_bytes = fixture_random(random, 0, 200);
            }
        }
        SimResult collapsed = fixture_run(&plan, false, arena, NULL);
        /* Reductions on every micro-batch cut every weight gradient into segments; they end after the passes
         * by the last segment's reduction alone. */
        fixture_set_data_comm(&plan, 0, 1);
        plan.reduce_each_microbatch = plan.overlap_grad_reduce = true;
        SimResult expanded = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(expanded.ops, >, collapsed.ops);
        g_assert_cmpint(expanded.step_ps, ==, collapsed.step_ps + 1);
        for (int r = 0; r < 3; r++) {
            g_assert_cmpint(expanded.rank[r].peak_bytes, ==, collapsed.rank[r].peak_bytes);
            g_assert_cmpint(expanded.rank[r].part_ps[SIM_PART_COMPUTE], ==,
                            collapsed.rank[r].part_ps[SIM_PART_COMPUTE]);
            g_assert_cmpint(expanded.rank[r].part_ps[SIM_PART_RECOMPUTE], ==,
                            collapsed.rank[r].part_ps[SIM_PART_RECOMPUTE]);
        }
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

/* A message of no time is the same as none; one that blocks is never faster than one that does not. */
static void test_messages(void)
{
    GRand *random = g_rand_new_with_seed(3);
    for (int round = 0; round < 60; round++) {
        OrrArena *arena = orr_arena_new();
        int p = (int)fixture_random(random, 2, 5), m = (int)fixture_random(random, 1, 9);
        SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", p, 1, m, 0, 5, 6, 4, 0, 0});
        SimResult none = fixture_run(&plan, false, arena, NULL);
        for (int s = 0; s < p; s++)
            plan.stages[s].send_next.scale_out_bytes = plan.stages[s].send_prev.scale_out_bytes = 10 + s;
        SimResult empty = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(empty.step_ps, ==, none.step_ps);
        int64_t sent_bytes = 0, expected_bytes = 0;
        for (int r = 0; r < p; r++) {
            sent_bytes += empty.rank[r].scale_out_bytes;
            expected_bytes += m * (10 + r) * ((r > 0) + (r < p - 1));
        }
        g_assert_cmpint(sent_bytes, ==, expected_bytes);
        for (int s = 0; s < p; s++)
            plan.stages[s].send_next = plan.stages[s].send_prev =
                fixture_work(SIM_PART_PIPELINE_COMM, fixture_random(random, 1, 4));
        SimResult beside = fixture_run(&plan, false, arena, NULL);
        plan.p2p_blocking = true;
        SimResult blocking = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(beside.step_ps, >=, none.step_ps);
        g_assert_cmpint(blocking.step_ps, >=, beside.step_ps);
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

static SimWork random_comm(GRand *random, SimPart part, int64_t most_ps, bool rates)
{
    SimWork work = fixture_work(part, fixture_random(random, 0, most_ps));
    work.scale_out_bytes = fixture_random(random, 0, 1000);
    if (rates) {
        if (fixture_random(random, 0, 2) > 0)
            sim_work_hold(&work, (int)fixture_random(random, SIM_RESOURCE_SCALE_UP, SIM_RESOURCE_SCALE_OUT),
                          SIM_SHARE_FAIR, fixture_random(random, 1, 1024));
        sim_work_hold(&work, SIM_RESOURCE_SM, SIM_SHARE_RESERVED, fixture_random(random, 1, 200));
    }
    return work;
}

static void random_stage(SimStage *stage, GRand *random, OrrArena *arena, bool rates)
{
    stage->segment_count = (int)fixture_random(random, 1, 3);
    stage->segments = ORR_ARENA_NEW(arena, SimSegment, stage->segment_count);
    for (int i = 0; i < stage->segment_count; i++) {
        SimSegment *segment = &stage->segments[i];
        segment->forward = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 5000));
        segment->forward.part_ps[SIM_PART_TENSOR_COMM] = fixture_random(random, 0, 1000);
        segment->backward_input = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 5000));
        segment->backward_weight = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 0, 5000));
        segment->recompute = fixture_work(SIM_PART_RECOMPUTE, fixture_random(random, 0, 2000));
        segment->param_gather = random_comm(random, SIM_PART_DATA_COMM, 4000, rates);
        segment->grad_reduce = random_comm(random, SIM_PART_DATA_COMM, 4000, rates);
        segment->activation_bytes = fixture_random(random, 10, 900);
        segment->activation_input_only_bytes = fixture_random(random, 0, 10);
        segment->forward_temp_bytes = fixture_random(random, 0, 2000);
        segment->backward_temp_bytes = fixture_random(random, 0, 2000);
        segment->gathered_param_bytes = fixture_random(random, 0, 500);
        segment->unsharded_grad_bytes = fixture_random(random, 0, 500);
    }
    stage->send_next = random_comm(random, SIM_PART_PIPELINE_COMM, 1500, rates);
    stage->send_prev = random_comm(random, SIM_PART_PIPELINE_COMM, 1500, rates);
    stage->overlapped_pair = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 0, 9000));
}

static SimPlan random_plan(GRand *random, OrrArena *arena, bool rates)
{
    int count;
    const SimSchedule *schedules = sim_schedules(&count);
    const SimSchedule *schedule = &schedules[fixture_random(random, 0, count - 1)];
    int chunks = schedule->fixed_chunks != 0 ? schedule->fixed_chunks : (int)fixture_random(random, 1, 3);
    int ranks = (int)fixture_random(random, 1, 3) * 2;
    Pipeline pipeline = {.schedule = schedule->name,
                         .ranks = ranks,
                         .chunks = chunks,
                         .microbatches = (2 + (int)fixture_random(random, 0, 2)) * ranks};
    SimPlan plan = fixture_plan(arena, &pipeline);
    for (int s = 0; s < ranks * chunks; s++)
        random_stage(&plan.stages[s], random, arena, rates);
    for (int r = 0; r < ranks; r++) {
        plan.ranks[r].optimizer = fixture_work(SIM_PART_OPTIMIZER, fixture_random(random, 0, 3000));
        plan.ranks[r].static_bytes[SIM_MEM_WEIGHTS] = fixture_random(random, 0, 5000);
    }
    if (fixture_random(random, 0, 1))
        plan.ranks[0].embedding_reduce = plan.ranks[ranks - 1].embedding_reduce =
            random_comm(random, SIM_PART_DATA_COMM, 2000, rates);
    plan.grad_norm = random_comm(random, SIM_PART_DATA_COMM, 100, false);
    plan.post_validation = fixture_random(random, 0, 1);
    plan.stage_norm = random_comm(random, SIM_PART_DATA_COMM, 80, false);
    plan.norm_hop = random_comm(random, SIM_PART_DATA_COMM, 20, false);
    plan.overhead = fixture_work(SIM_PART_OTHER, fixture_random(random, 0, 100));
    plan.zero = (int)fixture_random(random, 0, 3);
    plan.overlap_grad_reduce = fixture_random(random, 0, 1);
    plan.overlap_param_gather = fixture_random(random, 0, 1);
    plan.gathers_on_use = plan.overlap_param_gather && fixture_random(random, 0, 1);
    plan.reduce_each_microbatch = plan.zero >= 2 && fixture_random(random, 0, 1);
    plan.reshard_after_forward = fixture_random(random, 0, 1);
    plan.reshard_after_backward = fixture_random(random, 0, 1);
    plan.whole_chunks = sim_schedule_has(schedule, SIM_TRAIT_WHOLE_CHUNKS) && !plan.reduce_each_microbatch;
    plan.one_data_stream = fixture_random(random, 0, 1);
    plan.prefetch_units = (int)fixture_random(random, 0, 2);
    plan.p2p_blocking = fixture_random(random, 0, 3) == 0;
    plan.tensor = (int)fixture_random(random, 1, 3);
    plan.context = (int)fixture_random(random, 1, 2);
    plan.data = (int)fixture_random(random, 1, 3);
    return plan;
}

static void assert_same(const void *a, const void *b, size_t size)
{
    g_assert_cmpint(memcmp(a, b, size), ==, 0);
}

/* Every replica of the unfolded run does exactly what the folded rank does. */
static void test_fold(void)
{
    GRand *random = g_rand_new_with_seed(41);
    for (int round = 0; round < 300; round++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = random_plan(random, arena, round % 3 > 0);
        SimProgram program;
        SimResult folded = fixture_run(&plan, false, arena, NULL);
        SimResult unfolded = fixture_run(&plan, true, arena, &program);
        g_assert_cmpint(program.replicas, ==, plan.tensor * plan.context * plan.data);
        g_assert_cmpint(unfolded.step_ps, ==, folded.step_ps);
        g_assert_cmpint(unfolded.ops, ==, folded.ops * program.replicas);
        g_assert_cmpint(unfolded.critical_rank, ==, folded.critical_rank * program.replicas);
        for (int r = 0; r < unfolded.ranks; r++)
            assert_same(&unfolded.rank[r], &folded.rank[r / program.replicas], sizeof(SimRankResult));
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

/* The same plan gives the same spans and levels, byte for byte. */
static void test_deterministic(void)
{
    OrrArena *arena = orr_arena_new();
    for (guint32 seed = 1; seed <= 20; seed++) {
        SimResult results[2];
        for (int i = 0; i < 2; i++) {
            GRand *random = g_rand_new_with_seed(seed);
            SimPlan plan = random_plan(random, arena, true);
            results[i] = fixture_run(&plan, seed % 2 == 0, arena, NULL);
            g_rand_free(random);
        }
        g_assert_cmpint(results[0].span_count, ==, results[1].span_count);
        g_assert_cmpint(
            memcmp(results[0].spans, results[1].spans, sizeof(SimSpan) * (size_t)results[0].span_count), ==,
            0);
        g_assert_cmpint(results[0].level_count, ==, results[1].level_count);
        assert_same(results[0].levels, results[1].levels, sizeof(SimLevel) * (size_t)results[0].level_count);
    }
    orr_arena_free(arena);
}

static void slow_down(SimWork *work, GRand *random)
{
    for (int part = 0; part < SIM_PART_COUNT; part++)
        work->part_ps[part] += work->part_ps[part] * fixture_random(random, 0, 1) / 2;
}

/* Streams run in order, so where nothing is shared a longer op never makes a shorter step, and the step is
 * never shorter than the busiest stream. */
static void test_monotone(void)
{
    GRand *random = g_rand_new_with_seed(43);
    for (int round = 0; round < 200; round++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = random_plan(random, arena, false);
        plan.post_validation = false; /* a rank that begins later has a shorter step of its own */
        SimResult before = fixture_run(&plan, false, arena, NULL);
        for (int s = 0; s < plan.shape.ranks * plan.shape.chunks; s++) {
            for (int i = 0; i < plan.stages[s].segment_count; i++) {
                SimSegment *segment = &plan.stages[s].segments[i];
                SimWork *works[] = {&segment->forward, &segment->backward_input, &segment->param_gather,
                                    &segment->grad_reduce};
                for (size_t w = 0; w < G_N_ELEMENTS(works); w++)
                    slow_down(works[w], random);
            }
            slow_down(&plan.stages[s].send_next, random);
        }
        SimResult after = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(after.step_ps, >=, before.step_ps);
        for (int r = 0; r < before.ranks; r++)
            g_assert_cmpint(before.step_ps, >=, before.rank[r].busy_ps);
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

/* Orders that no step could follow, for one rank with two chunks and two micro-batches. */
static const struct {
    SimPassOp ops[4];
    int count;
    const char *says;
} BROKEN[] = {
    {{{SIM_PASS_FORWARD, 0, 0, 0, 0}, {SIM_PASS_FORWARD, 0, 0, 0, 0}},
     2,
     "rank 0 runs the forward of stage 0, micro-batch 0 twice"},
    {{{SIM_PASS_BACKWARD, 0, 1, 0, 0}},
     1,
     "rank 0 runs the backward of stage 0, micro-batch 1 before the pass that it needs"},
    {{{SIM_PASS_FORWARD, 0, 0, 0, 0},
      {SIM_PASS_FORWARD, 1, 0, 0, 0},
      {SIM_PASS_BACKWARD, 1, 0, 0, 0},
      {SIM_PASS_BACKWARD, 0, 0, 0, 0}},
     4,
     "rank 0 never runs the forward of stage 0, micro-batch 1"},
    {{{SIM_PASS_FORWARD, 0, 2, 0, 0}},
     1,
     "names chunk 0, micro-batch 2; there are 2 chunks and 2 micro-batches"},
    {{{SIM_PASS_FORWARD, 0, 0, 0, 0}, {SIM_PASS_BACKWARD_WEIGHT, 0, 0, 0, 0}},
     2,
     "weight backward of stage 0, micro-batch 0 before the pass that it needs"},
    {{{SIM_PASS_FORWARD, 1, 0, 0, 0}},
     1,
     "forward of stage 1, micro-batch 0 before that of the stage before it"},
    {{{SIM_PASS_FORWARD, 0, 0, 0, 0}, {SIM_PASS_FORWARD, 1, 0, 0, 0}, {SIM_PASS_BACKWARD, 0, 0, 0, 0}},
     3,
     "backward of stage 0, micro-batch 0 before that of the stage after it"},
};

/* The shape's group says which. */
static void generate_broken(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order)
{
    (void)rank;
    ret_order->count = BROKEN[shape->group].count;
    ret_order->ops = ORR_ARENA_NEW(arena, SimPassOp, ret_order->count);
    memcpy(ret_order->ops, BROKEN[shape->group].ops, sizeof(SimPassOp) * (size_t)ret_order->count);
}

static void test_broken_orders(void)
{
    static const SimSchedule SCHEDULE = {.name = "mine", .generate = generate_broken};
    for (size_t i = 0; i < G_N_ELEMENTS(BROKEN); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        SimProgram program = {.classes = -7};
        SimPlan plan = fixture_plan(arena, &(Pipeline){"interleaved", 1, 2, 2, (int)i, 1, 1, 1, 0, 0});
        plan.schedule = &SCHEDULE;
        g_assert_false(sim_program_build(&plan, false, arena, &program, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        if (strstr(error->message, BROKEN[i].says) == NULL)
            g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, BROKEN[i].says));
        g_assert_cmpint(program.classes, ==, -7);
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

static void test_wrong_chunks(void)
{
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    SimProgram program;
    SimPlan plan = fixture_plan(arena, &(Pipeline){"zb-v", 2, 1, 4, 0, 1, 1, 1, 0, 0});
    g_assert_false(sim_program_build(&plan, false, arena, &program, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_clear_error(&error);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/program/grad-reduce", test_grad_reduce);
    g_test_add_func("/program/param-gather", test_param_gather);
    g_test_add_func("/program/gathers-on-use", test_gathers_on_use);
    g_test_add_func("/program/step-end", test_step_end);
    g_test_add_func("/program/expanded-and-collapsed", test_expanded_and_collapsed);
    g_test_add_func("/program/messages", test_messages);
    g_test_add_func("/program/fold", test_fold);
    g_test_add_func("/program/deterministic", test_deterministic);
    g_test_add_func("/program/monotone", test_monotone);
    g_test_add_func("/program/broken-orders", test_broken_orders);
    g_test_add_func("/program/wrong-chunks", test_wrong_chunks);
    return g_test_run();
}
