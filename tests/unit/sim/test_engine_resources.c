/* tests/unit/sim/test_engine_resources.c - shares of resources, capacities that change, ranks of different speeds,
 * tiers, on cases worked out by hand. */
#include "tests/unit/ops_fixture.h"

static void join(Ops *ops, int rank, int stream, int group)
{
    op_of(ops, rank, stream)->kind = SIM_COLLECTIVE;
    op_of(ops, rank, stream)->group = (uint8_t)group;
}

static int64_t end_of(const SimResult *result, int rank, int stream)
{
    for (int64_t i = 0; i < result->span_count; i++) {
        if (result->spans[i].rank == rank && result->spans[i].stream == stream)
            return result->spans[i].end_ps;
    }
    g_assert_not_reached();
}

/* Three copies want 2 each of a root that has 3: half speed; when the short one is done, 3/4. */
static void test_shared_root(void)
{
    static const int32_t ONE_ROOT[] = {0, 0, 0, 1};
    static const SimResource ROOT[] = {
        {.name = "PCIe root", .capacity = 3, .instance_of_rank = ONE_ROOT, .instances = 2}};
    OrrArena *arena = orr_arena_new();
    Ops ops;
    ops_init(&ops, 4, ROOT, 1);
    for (int rank = 0; rank < 4; rank++)
        sim_work_hold(add_op(&ops, rank, SIM_STREAM_H2D, rank == 2 ? 50 : 100), 0, SIM_SHARE_FAIR, 2);
    const SimResult result = run(&ops.program, arena);
    g_assert_cmpint(end_of(&result, 2, SIM_STREAM_H2D), ==, 100);
    g_assert_cmpint(end_of(&result, 0, SIM_STREAM_H2D), ==, 167); /* 100 + 50 / 0.75 */
    g_assert_cmpint(end_of(&result, 1, SIM_STREAM_H2D), ==, 167);
    g_assert_cmpint(end_of(&result, 3, SIM_STREAM_H2D), ==, 100); /* another root */
    orr_arena_free(arena);
}

/* A on a link of 10, B on it and on one of 4 behind it: B gets 4, A the 6 that are left. */
static void test_series(void)
{
    static const SimResource LINKS[] = {{.name = "NIC", .capacity = 10}, {.name = "uplink", .capacity = 4}};
    OrrArena *arena = orr_arena_new();
    Ops ops;
    ops_init(&ops, 1, LINKS, 2);
    sim_work_hold(add_op(&ops, 0, SIM_STREAM_DATA, 60), 0, SIM_SHARE_FAIR, 10);
    SimWork *both = add_op(&ops, 0, SIM_STREAM_REDUCE, 40);
    sim_work_hold(both, 0, SIM_SHARE_FAIR, 10);
    sim_work_hold(both, 1, SIM_SHARE_FAIR, 10);
    const SimResult result = run(&ops.program, arena);
    g_assert_cmpint(end_of(&result, 0, SIM_STREAM_DATA), ==, 101); /* 0.6 rounded down to 1/2^20 */
    g_assert_cmpint(end_of(&result, 0, SIM_STREAM_REDUCE), ==, 101);
    orr_arena_free(arena);
}

/* A message takes shares of another rank's port too, however many links its route has. */
static void test_route(void)
{
    static const SimResource LINKS[] = {{.name = "out", .capacity = 8},
                                        {.name = "in", .capacity = 8},
                                        {.name = "leaf", .capacity = 64},
                                        {.name = "spine", .capacity = 64},
                                        {.name = "rail", .capacity = 64}};
    const SimShare rest[] = {{.amount = 8, .resource = 4}, {.amount = 8, .resource = 1, .instance = 3}};
    OrrArena *arena = orr_arena_new();
    Ops ops;
    ops_init(&ops, 3, LINKS, 5);
    for (int rank = 0; rank < 2; rank++) {
        SimWork *work = add_op(&ops, rank, SIM_STREAM_DATA, 100);
        sim_work_hold(work, 0, SIM_SHARE_FAIR, 8);
        sim_work_hold(work, 2, SIM_SHARE_FAIR, 8);
        sim_work_hold(work, 3, SIM_SHARE_FAIR, 8);
        work->more_shares = rest;
        work->more_share_count = 2;
    }
    const SimResult result = run(&ops.program, arena);
    g_assert_cmpint(end_of(&result, 0, SIM_STREAM_DATA), ==, 200); /* both into rank 2 */
    g_assert_cmpint(end_of(&result, 1, SIM_STREAM_DATA), ==, 200);
    orr_arena_free(arena);
}

/* Half a link slows the collective that crosses it; what the collective then leaves of another member's link serves the
 * message there in full; a rank that has nothing to do with it is not slowed. */
static void test_half_link(void)
{
    static const SimResource NIC[] = {{.name = "NIC", .capacity = 1024}};
    static const SimCapacityEvent HALF[] = {{.resource = 0, .instance = 2, .capacity = 512}};
    static const int32_t GROUP[] = {-1, 0, 0};
    OrrArena *arena = orr_arena_new();
    Ops ops;
    ops_init(&ops, 3, NIC, 1);
    for (int rank = 0; rank < 3; rank++)
        sim_work_hold(add_op(&ops, rank, SIM_STREAM_DATA, 100), 0, SIM_SHARE_FAIR, 1024);
    sim_work_hold(add_op(&ops, 1, SIM_STREAM_SEND_NEXT, 100), 0, SIM_SHARE_FAIR, 512);
    join(&ops, 1, SIM_STREAM_DATA, 0);
    join(&ops, 2, SIM_STREAM_DATA, 0);
    ops.program.groups[0] = (SimGroups){.instance_of_rank = GROUP, .instances = 1};
    ops.program.group_count = 1;
    ops.program.capacity_events = HALF;
    ops.program.capacity_event_count = 1;
    const SimResult result = run(&ops.program, arena);
    g_assert_cmpint(end_of(&result, 0, SIM_STREAM_DATA), ==, 100);
    g_assert_cmpint(end_of(&result, 1, SIM_STREAM_DATA), ==, 200);
    g_assert_cmpint(end_of(&result, 2, SIM_STREAM_DATA), ==, 200);
    g_assert_cmpint(end_of(&result, 1, SIM_STREAM_SEND_NEXT), ==, 100);
    orr_arena_free(arena);
}

/* Full until 40, half until 80, nothing until 100, then full: 40 + 20 + 0 + 40. */
static void test_capacity_events(void)
{
    static const SimResource NIC[] = {{.name = "NIC", .capacity = 8}};
    static const SimCapacityEvent EVENTS[] = {{.time_ps = 40, .instance = -1, .capacity = 4},
                                              {.time_ps = 80, .instance = 0, .capacity = 0},
                                              {.time_ps = 100, .instance = 0, .capacity = 16}};
    OrrArena *arena = orr_arena_new();
    Ops ops;
    ops_init(&ops, 1, NIC, 1);
    SimWork *work = add_op(&ops, 0, SIM_STREAM_DATA, 100);
    sim_work_hold(work, 0, SIM_SHARE_FAIR, 8);
    work->scale_out_bytes = 800;
    ops.program.capacity_events = EVENTS;
    ops.program.capacity_event_count = 3;
    const SimResult result = run(&ops.program, arena);
    g_assert_cmpint(end_of(&result, 0, SIM_STREAM_DATA), ==, 140);
    g_assert_cmpint(result.rank[0].scale_out_bytes, ==, 800);

    GError *error = NULL;
    SimResult never = {.step_ps = -7};
    ops.program.capacity_event_count = 2;
    g_assert_false(sim_engine_run(&ops.program, 0, arena, &never, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_assert_nonnull(strstr(error->message, "rank 0 data comm"));
    g_assert_nonnull(strstr(error->message, "the capacity of \"NIC\" stays 0"));
    g_clear_error(&error);
    orr_arena_free(arena);
}

/* --- speeds --- */

static void scale(SimWork *work, int numerator, int denominator)
{
    work->part_ps[SIM_PART_COMPUTE] = work->part_ps[SIM_PART_COMPUTE] * numerator / denominator;
}

static SimPlan speed_plan(OrrArena *arena, const SimSchedule *schedule)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){.schedule = schedule->name,
                                                   .ranks = 4,
                                                   .chunks = MAX(schedule->fixed_chunks, 1),
                                                   .microbatches = 8,
                                                   .forward_ps = 3000,
                                                   .input_ps = 3300,
                                                   .weight_ps = 2700,
                                                   .hop_ps = 200});
    return plan;
}

/* A rank at 3/4 does what one does whose works take 4/3, to the picosecond, in every schedule. */
static void test_speed_is_longer_work(void)
{
    static const int32_t SPEED[] = {SIM_FULL_RATE, SIM_FULL_RATE, SIM_FULL_RATE / 4 * 3, SIM_FULL_RATE};
    int count = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int s = 0; s < count; s++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = speed_plan(arena, &schedules[s]);
        if (schedules[s].generate_all != NULL && schedules[s].generate == NULL) {
            orr_arena_free(arena);
            continue; /* orders by the times of the plan, which knows no speeds */
        }
        const SimResult even = fixture_run(&plan, false, arena, NULL);
        plan.rank_speed = SPEED;
        const SimResult slow = fixture_run(&plan, false, arena, NULL);
        plan.rank_speed = NULL;
        for (int chunk = 0; chunk < plan.shape.chunks; chunk++) {
            SimStage *stage =
                &plan.stages[sim_stage_of(plan.schedule->placement, 4, plan.shape.chunks, 2, chunk)];
            scale(&stage->segments[0].forward, 4, 3);
            scale(&stage->segments[0].backward_input, 4, 3);
            scale(&stage->segments[0].backward_weight, 4, 3);
        }
        const SimResult longer = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(slow.step_ps, ==, longer.step_ps);
        g_assert_cmpint(slow.step_ps, >, even.step_ps);
        for (int r = 0; r < 4; r++)
            g_assert_cmpint(slow.rank[r].busy_ps, ==, longer.rank[r].busy_ps);
        orr_arena_free(arena);
    }
}

/* One micro-batch: all passes are on the critical path, so 90 % costs 1/9 of the rank's own time. */
static void test_slow_on_critical_path(void)
{
    static const int32_t SPEED[] = {SIM_FULL_RATE, SIM_FULL_RATE / 10 * 9, SIM_FULL_RATE};
    OrrArena *arena = orr_arena_new();
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 3, 1, 1, 0, 9000000, 9900000, 8100000, 0, 100});
    const SimResult even = fixture_run(&plan, false, arena, NULL);
    plan.rank_speed = SPEED;
    const SimResult slow = fixture_run(&plan, false, arena, NULL);
    g_assert_cmpint(llabs(slow.step_ps - even.step_ps - 3000000), <, 300); /* 0.9 is not in 1/2^20 */
    orr_arena_free(arena);
}

/* All at full speed, and capacities that stay what they are: byte for byte the run without. */
static void test_no_spread(void)
{
    static const SimCapacityEvent SAME[] = {{.time_ps = 5000,
                                             .resource = SIM_RESOURCE_SCALE_OUT,
                                             .instance = -1,
                                             .capacity = SIM_WHOLE_RESOURCE}};
    int32_t full[64];
    for (int i = 0; i < 64; i++)
        full[i] = SIM_FULL_RATE;
    OrrArena *arena = orr_arena_new();
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 4, 1, 8, 0, 3000, 3300, 2700, 0, 200});
    plan.data = 4;
    for (int s = 0; s < 4; s++) {
        sim_work_hold(&plan.stages[s].send_next, SIM_RESOURCE_SCALE_OUT, SIM_SHARE_FAIR, 700);
        sim_work_hold(&plan.stages[s].send_prev, SIM_RESOURCE_SCALE_OUT, SIM_SHARE_FAIR, 700);
    }
    const SimResult plain = fixture_run(&plan, true, arena, NULL);
    plan.rank_speed = full;
    plan.capacity_events = SAME;
    plan.capacity_event_count = 1;
    const SimResult same = fixture_run(&plan, true, arena, NULL);
    g_assert_cmpint(plain.span_count, ==, same.span_count);
    g_assert_cmpint(memcmp(plain.spans, same.spans, sizeof(SimSpan) * (size_t)same.span_count), ==, 0);
    g_assert_cmpint(memcmp(plain.rank, same.rank, sizeof(SimRankResult) * (size_t)same.ranks), ==, 0);
    orr_arena_free(arena);
}

/* --- a kind of resource, added by a plan --- */

enum { RESOURCE_PCIE_ROOT = SIM_RESOURCE_COUNT };

static SimPlan offload_plan(OrrArena *arena, int sharers)
{
    static SimPlanResource rows[SIM_RESOURCE_COUNT + 1]; /* the row, behind the standard ones */
    memcpy(rows, sim_standard_resources(NULL), sizeof(SimPlanResource) * SIM_RESOURCE_COUNT);
    rows[RESOURCE_PCIE_ROOT] = (SimPlanResource){"PCIe root", 64, sharers};
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 2, 1, 4, 0, 3000, 3300, 2700, 0, 200});
    plan.resources = rows;
    plan.resource_count = G_N_ELEMENTS(rows);
    plan.data = 8;
    for (int s = 0; s < 2; s++) { /* the op that holds it */
        SimStage *stage = &plan.stages[s];
        stage->layers = stage->offloaded = 1;
        stage->segments[0].copy_out = fixture_work(SIM_PART_OFFLOAD, 4000);
        sim_work_hold(&stage->segments[0].copy_out, RESOURCE_PCIE_ROOT, SIM_SHARE_FAIR, 32);
        stage->segments[0].copy_back = stage->segments[0].copy_out;
    }
    return plan;
}

/* Four GPUs on a root for two: copies take twice as long; folded and unfolded agree; two GPUs share without loss. */
static void test_row_of_a_plan(void)
{
    OrrArena *arena = orr_arena_new();
    int64_t step_ps[5] = {0};
    for (int sharers = 1; sharers <= 4; sharers *= 2) {
        SimPlan plan = offload_plan(arena, sharers);
        SimProgram program;
        g_assert_true(sim_plan_folds(&plan));
        const SimResult folded = fixture_run(&plan, false, arena, &program);
        g_assert_cmpint(program.replicas, ==, 1);
        const SimResult unfolded = fixture_run(&plan, true, arena, &program);
        g_assert_cmpint(program.replicas, ==, 8);
        g_assert_cmpint(folded.step_ps, ==, unfolded.step_ps);
        step_ps[sharers] = folded.step_ps;
    }
    g_assert_cmpint(step_ps[1], ==, step_ps[2]);
    SimPlan twice = offload_plan(arena, 1);
    for (int s = 0; s < 2; s++)
        twice.stages[s].segments[0].copy_out.part_ps[SIM_PART_OFFLOAD] =
            twice.stages[s].segments[0].copy_back.part_ps[SIM_PART_OFFLOAD] = 8000;
    g_assert_cmpint(step_ps[4], ==, fixture_run(&twice, false, arena, NULL).step_ps);
    orr_arena_free(arena);
}

/* What differs, or is shared across pipeline ranks, is not folded. */
static void test_unfolds_by_itself(void)
{
    int32_t speed[16];
    for (int i = 0; i < 16; i++)
        speed[i] = i == 5 ? SIM_FULL_RATE / 2 : SIM_FULL_RATE;
    OrrArena *arena = orr_arena_new();
    SimProgram program;
    SimPlan plan = offload_plan(arena, 0);
    g_assert_false(sim_plan_folds(&plan));
    fixture_run(&plan, false, arena, &program);
    g_assert_cmpint(program.replicas, ==, 8);
    plan = offload_plan(arena, 4);
    const int64_t even_ps = fixture_run(&plan, false, arena, NULL).step_ps;
    plan.rank_speed = speed;
    const SimResult slow = fixture_run(&plan, false, arena, &program);
    g_assert_cmpint(program.replicas, ==, 8);
    g_assert_cmpint(slow.step_ps, >, even_ps);
    orr_arena_free(arena);
}

/* --- tiers --- */

static void test_tiers(void)
{
    static const int32_t NODE[] = {0, 0};
    static const SimMemDelta MEMS[] = {
        {.start_bytes = {[SIM_MEM_HOST] = 60}, .end_bytes = {[SIM_MEM_HOST] = -60}}};
    SimTier tiers[SIM_TIER_COUNT];
    memcpy(tiers, sim_standard_tiers(NULL), sizeof tiers);
    tiers[SIM_TIER_HOST].instance_of_rank = NODE;
    tiers[SIM_TIER_HOST].instances = 1;
    for (int together = 0; together < 2; together++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Ops ops;
        ops_init(&ops, 2, NULL, 0);
        add_op(&ops, 0, SIM_STREAM_D2H, 100);
        add_op(&ops, 1, SIM_STREAM_D2H, 100);
        op_of(&ops, 0, SIM_STREAM_D2H)->mem = op_of(&ops, 1, SIM_STREAM_D2H)->mem = 0;
        SimInstr later[] = {
            {.op = SIM_ONLY_WAITS, .wait_on = sim_wait_on(0, SIM_STREAM_D2H), .wait_count = 1},
            ops.instrs[1][SIM_STREAM_D2H]};
        if (!together)
            ops.classes[1].streams[SIM_STREAM_D2H] = (SimList){.instrs = later, .count = 2};
        ops.program.mems = MEMS;
        ops.program.mem_count = 1;
        ops.program.tiers = tiers;
        ops.program.tier_count = SIM_TIER_COUNT;
        tiers[SIM_TIER_HOST].capacity_bytes = together ? 120 : 60;
        const SimResult result = run(&ops.program, arena);
        g_assert_cmpint(result.tier_peak_bytes[SIM_TIER_HOST][0], ==, together ? 120 : 60);
        g_assert_cmpint(result.rank[0].host_peak_bytes, ==, 60);
        tiers[SIM_TIER_HOST].capacity_bytes--;
        g_assert_false(sim_run_check(&ops.program, &result, &error));
        g_assert_nonnull(strstr(error->message, "host memory 0 holds"));
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/engine-resources/shared-root", test_shared_root);
    g_test_add_func("/engine-resources/series", test_series);
    g_test_add_func("/engine-resources/route", test_route);
    g_test_add_func("/engine-resources/half-link", test_half_link);
    g_test_add_func("/engine-resources/capacity-events", test_capacity_events);
    g_test_add_func("/engine-resources/speed-is-longer-work", test_speed_is_longer_work);
    g_test_add_func("/engine-resources/slow-on-critical-path", test_slow_on_critical_path);
    g_test_add_func("/engine-resources/no-spread", test_no_spread);
    g_test_add_func("/engine-resources/row-of-a-plan", test_row_of_a_plan);
    g_test_add_func("/engine-resources/unfolds-by-itself", test_unfolds_by_itself);
    g_test_add_func("/engine-resources/tiers", test_tiers);
    return g_test_run();
}
