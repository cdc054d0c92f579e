/* tests/golden/test_schedule_rules.c - what holds across schedules: wide grids of the zero-bubble forms, messages counted by the
 * engine, peaks, and reductions to simpler cases. Orders, tables and single closed forms are in test_schedules.c.
 */
#include "tests/unit/sim_fixture.h"

#include <string.h>

/* Shapes that a schedule takes, with the chunks of its fixture. */
static bool takes(const SimSchedule *schedule, int p, int v, int m)
{
    const SimScheduleShape shape = {.ranks = p, .chunks = v, .microbatches = m};
    if (schedule->fixed_chunks != 0 && v != schedule->fixed_chunks)
        return false;
    return schedule->check == NULL || schedule->check(&shape, NULL);
}

/* Every p, m, F, B, W of the stated ranges: ZB-H1 m >= p, ZB-H2 m >= 2p - 1. */
static void test_zero_bubble_grid(void)
{
    for (int p = 1; p <= 6; p++) {
        for (int m = p; m <= 2 * p + 3; m++) {
            for (int code = 0; code < 125; code++) {
                const int64_t f = 1 + code % 5, b = 1 + code / 5 % 5, w = 1 + code / 25;
                OrrArena *arena = orr_arena_new();
                SimResult h1 = fixture_run_pipeline(&(Pipeline){"zb-h1", p, 1, m, 0, f, b, w, 0, 0}, arena);
                g_assert_cmpint(h1.step_ps, ==, m * (f + b + w) + (p - 1) * MAX(f + b - w, MAX(b, f)));
                if (m >= 2 * p - 1) {
                    SimResult h2 =
                        fixture_run_pipeline(&(Pipeline){"zb-h2", p, 1, m, 0, f, b, w, 0, 0}, arena);
                    g_assert_cmpint(fixture_span_bubble_ps(&h2), ==,
                                    (p - 1) * MAX(f + b - 2 * w, MAX(b - f, 0)));
                }
                orr_arena_free(arena);
            }
        }
    }
}

/* Without a pipeline every schedule does the work of m micro-batches and nothing else. */
static void test_one_rank(void)
{
    int count;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++) {
        for (int v = 1; v <= 4; v++) {
            for (int m = 1; m <= 9; m++) {
                if (!takes(&schedules[i], 1, v, m))
                    continue;
                OrrArena *arena = orr_arena_new();
                SimResult result =
                    fixture_run_pipeline(&(Pipeline){schedules[i].name, 1, v, m, 0, 3, 5, 2, 0, 7}, arena);
                g_assert_cmpint(result.step_ps, ==, (int64_t)m * v * 10);
                g_assert_cmpint(result.rank[0].idle_ps, ==, 0);
                orr_arena_free(arena);
            }
        }
    }
}

/* Chunks of 1/v of a stage: the bubble of 1F1B over v, for p | m. */
static void test_interleaved_bubble(void)
{
    for (int p = 2; p <= 6; p++) {
        for (int v = 2; v <= 4; v++) {
            for (int m = p; m <= 4 * p; m += p) {
                OrrArena *arena = orr_arena_new();
                SimResult one = fixture_run_pipeline(
                    &(Pipeline){"1f1b", p, 1, m, 0, 12 * v, 24 * v, 12 * v, 0, 0}, arena);
                SimResult more =
                    fixture_run_pipeline(&(Pipeline){"interleaved", p, v, m, 0, 12, 24, 12, 0, 0}, arena);
                const int64_t work_ps = (int64_t)m * v * 48;
                g_assert_cmpint((one.step_ps - work_ps), ==, v * (more.step_ps - work_ps));
                orr_arena_free(arena);
            }
        }
    }
}

/* Full recomputation makes A longer by F: (m + p - 1)(2F + A). */
static void test_recompute(void)
{
    static const char *const SCHEDULES[] = {"gpipe", "1f1b"};
    for (int i = 0; i < 2; i++) {
        for (int p = 1; p <= 5; p++) {
            for (int m = 1; m <= 11; m++) {
                OrrArena *arena = orr_arena_new();
                SimPlan plan = fixture_plan(arena, &(Pipeline){SCHEDULES[i], p, 1, m, 0, 3, 4, 2, 0, 0});
                for (int s = 0; s < p; s++)
                    plan.stages[s].segments[0].recompute = fixture_work(SIM_PART_RECOMPUTE, 3);
                SimResult result = fixture_run(&plan, false, arena, NULL);
                g_assert_cmpint(result.step_ps, ==, (int64_t)(m + p - 1) * 12);
                g_assert_cmpint(result.rank[0].part_ps[SIM_PART_RECOMPUTE], ==, 3 * m);
                orr_arena_free(arena);
            }
        }
    }
}

/* Messages that leave a rank, of all ranks. */
static int64_t count_messages(const SimResult *result)
{
    int64_t count = 0;
    for (int64_t i = 0; i < result->span_count; i++)
        count +=
            result->spans[i].tag == SIM_TAG_SEND_FORWARD || result->spans[i].tag == SIM_TAG_SEND_BACKWARD;
    return count;
}

/* Each micro-batch crosses every boundary between ranks once forward and once back: p - 1 boundaries of a plain
 * pipeline, pv - 1 of a looped one, 2 (p - 1) of a V (twice 1F1B: [Qi2024]); DualPipe's two copies share the micro-batches.
 */
static void test_messages(void)
{
    int count;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++) {
        for (int p = 2; p <= 6; p++) {
            for (int v = 1; v <= 3; v++) {
                for (int m = 2; m <= 14; m += 3) {
                    if (!takes(&schedules[i], p, v, m))
                        continue;
                    OrrArena *arena = orr_arena_new();
                    SimPlan plan =
                        fixture_plan(arena, &(Pipeline){schedules[i].name, p, v, m, 0, 3, 5, 2, 0, 1});
                    for (int s = 0; s < p * v; s++)
                        plan.stages[s].send_next.scale_out_bytes = plan.stages[s].send_prev.scale_out_bytes =
                            10;
                    SimResult result = fixture_run(&plan, false, arena, NULL);
                    int64_t bytes = 0;
                    const int64_t boundaries = schedules[i].placement == SIM_PLACE_LOOP ? (int64_t)p * v - 1
                                               : schedules[i].placement == SIM_PLACE_V  ? 2 * (p - 1)
                                                                                        : p - 1;
                    for (int r = 0; r < p; r++)
                        bytes += result.rank[r].scale_out_bytes;
                    g_assert_cmpint(count_messages(&result), ==, 2 * m * boundaries);
                    g_assert_cmpint(bytes, ==, 20 * m * boundaries);
                    orr_arena_free(arena);
                }
            }
        }
    }
}

/* Compute that waits for its own messages is never ahead of compute that does not, and without messages the same. */
static void test_blocking(void)
{
    GRand *random = g_rand_new_with_seed(81);
    int count, slower = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int round = 0; round < 1500; round++) {
        const SimSchedule *schedule = &schedules[round % count];
        const int p = (int)fixture_random(random, 1, 6), v = (int)fixture_random(random, 1, 3);
        const int m = (int)fixture_random(random, 1, 4) * p;
        /* its orders follow the costs: another question */
        if (!takes(schedule, p, v, m) || schedule->generate_all != NULL)
            continue;
        OrrArena *arena = orr_arena_new();
        const int64_t c = fixture_random(random, 0, 6);
        SimPlan plan = fixture_plan(
            arena, &(Pipeline){schedule->name, p, v, m, 0, fixture_random(random, 1, 30),
                               fixture_random(random, 1, 30), fixture_random(random, 0, 30), 0, c});
        const SimResult apart = fixture_run(&plan, false, arena, NULL);
        plan.p2p_blocking = true;
        const SimResult waits = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(waits.step_ps, >=, apart.step_ps);
        if (c == 0)
            g_assert_cmpint(waits.step_ps, ==, apart.step_ps);
        slower += waits.step_ps > apart.step_ps;
        orr_arena_free(arena);
    }
    g_assert_cmpint(slower, >, 100);
    g_rand_free(random);
}

/* Live chunks: breadth-first and GPipe all of them, DualPipe at most one more than pipeline stages, and as many on the
 * first rank. */
static void test_peaks(void)
{
    for (int p = 2; p <= 8; p += 2) {
        for (int m = 2 * p; m <= 4 * p; m += 2) {
            OrrArena *arena = orr_arena_new();
            SimResult breadth =
                fixture_run_pipeline(&(Pipeline){"breadth-first", p, 3, m, 0, 2, 2, 2, 0, 0}, arena);
            SimResult both = fixture_run_pipeline(&(Pipeline){"dualpipe", p, 2, m, 0, 2, 2, 2, 6, 0}, arena);
            SimResult v =
                fixture_run_pipeline(&(Pipeline){"dualpipev", p / 2, 2, m, 0, 2, 2, 2, 6, 0}, arena);
            for (int r = 0; r < p; r++) {
                g_assert_cmpint(breadth.rank[r].peak_bytes, ==, 3 * m);
                g_assert_cmpint(both.rank[r].peak_bytes, <=, p + 1);
            }
            g_assert_cmpint(both.rank[0].peak_bytes, ==, p + 1);
            for (int r = 0; r < p / 2; r++)
                g_assert_cmpint(v.rank[r].peak_bytes, <=, p + 1);
            g_assert_cmpint(v.rank[0].peak_bytes, ==, p + 1);
            orr_arena_free(arena);
        }
    }
}

/* Whatever the stages' times: no schedule is faster than its busiest rank or than one micro-batch through all stages;
 * every activation is given back; each pass ran once (the fixture checks both). */
static void test_unequal(void)
{
    GRand *random = g_rand_new_with_seed(82);
    int count, ran = 0;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int round = 0; round < 12000; round++) {
        const SimSchedule *schedule = &schedules[round % count];
        const int p = (int)fixture_random(random, 1, 7), v = (int)fixture_random(random, 1, 4);
        const int m = (int)fixture_random(random, 1, 24),
                  copies = schedule->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : 1;
        if (!takes(schedule, p, v, m))
            continue;
        OrrArena *arena = orr_arena_new();
        SimPlan plan = fixture_plan(arena, &(Pipeline){schedule->name, p, v, m, 0, 1, 1, 1, 0, 0});
        int64_t path_ps = 0;
        for (int s = 0; s < p * v; s++) {
            SimSegment *segment = &plan.stages[s].segments[0];
            const int64_t f = fixture_random(random, 0, 50), b = fixture_random(random, 0, 50);
            const int64_t c = fixture_random(random, 0, 9);
            segment->forward = fixture_work(SIM_PART_COMPUTE, f);
            segment->backward_input = fixture_work(SIM_PART_COMPUTE, b);
            segment->backward_weight = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 0, 50));
            segment->activation_bytes = fixture_random(random, 0, 100);
            segment->activation_input_only_bytes = fixture_random(random, 0, segment->activation_bytes);
            plan.stages[s].send_next = plan.stages[s].send_prev = fixture_work(SIM_PART_PIPELINE_COMM, c);
            path_ps += s < p * v / copies ? f + b : 0;
        }
        const SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(result.step_ps, >=, path_ps);
        for (int r = 0; r < p; r++) {
            g_assert_cmpint(result.step_ps, >=, result.rank[r].busy_ps);
            g_assert_cmpint(result.step_ps, ==,
                            result.rank[r].busy_ps + result.rank[r].idle_ps +
                                result.rank[r].part_ps[SIM_PART_PIPELINE_COMM]);
        }
        ran++;
        orr_arena_free(arena);
    }
    g_assert_cmpint(ran, >, 3500);
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedule-rules/zero-bubble-grid", test_zero_bubble_grid);
    g_test_add_func("/schedule-rules/one-rank", test_one_rank);
    g_test_add_func("/schedule-rules/interleaved-bubble", test_interleaved_bubble);
    g_test_add_func("/schedule-rules/recompute", test_recompute);
    g_test_add_func("/schedule-rules/messages", test_messages);
    g_test_add_func("/schedule-rules/blocking", test_blocking);
    g_test_add_func("/schedule-rules/peaks", test_peaks);
    g_test_add_func("/schedule-rules/unequal", test_unequal);
    return g_test_run();
}
