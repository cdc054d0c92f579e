/* tests/golden/test_schedules.c - published orders and closed forms of the pipeline schedules, replayed.
 *
 * Times are integers; where a formula halves something, all times are doubled.
 */
#include "tests/unit/sim_fixture.h"

#include <string.h>

/* Four ranks, eight micro-batches, forward = input gradient = weight gradient = 1 a stage of the
 * unchunked pipeline; doubled. */
static void test_table(void)
{
    static const struct {
        Pipeline pipeline;
        int64_t step_ps, span_ps, idle_ps; /* 0: not stated */
        int64_t end_ps[4], peak[4];
    } CASES[] = {
        {{"gpipe", 4, 1, 8, 0, 2, 2, 2, 0, 0}, 66, 0, 0, {66, 62, 58, 54}, {8, 8, 8, 8}},
        {{"1f1b", 4, 1, 8, 0, 2, 2, 2, 0, 0}, 66, 0, 0, {66, 62, 58, 54}, {4, 3, 2, 1}},
        {{"interleaved", 4, 2, 8, 0, 1, 1, 1, 0, 0}, 57, 0, 0, {57, 55, 53, 51}, {11, 9, 7, 5}},
        {{"breadth-first", 4, 2, 8, 0, 1, 1, 1, 0, 0}, 57, 0, 0, {0}, {16, 16, 16, 16}},
        {{"zb-h1", 4, 1, 8, 0, 2, 2, 2, 0, 0}, 54, 0, 0, {54, 54, 54, 54}, {4, 4, 4, 4}},
        {{"zb-h2", 4, 1, 8, 0, 2, 2, 2, 0, 0}, 54, 48, 0, {48, 50, 52, 54}, {7, 7, 7, 7}},
        {{"zb-v", 4, 2, 8, 0, 1, 1, 1, 0, 0}, 51, 48, 0, {48, 49, 50, 51}, {8, 8, 8, 8}},
        {{"dualpipe", 4, 2, 8, 0, 2, 2, 2, 6, 0}, 52, 0, 4, {0}, {5, 5, 5, 5}},
        {{"dualpipev", 2, 2, 8, 0, 2, 2, 2, 6, 0}, 100, 0, 4, {0}, {5, 5, 5, 5}},
        {{"dualpipe", 8, 2, 20, 0, 2, 2, 2, 6, 0}, 132, 0, 12, {0}, {9, 0, 0, 0}},
        {{"dualpipev", 4, 2, 10, 0, 2, 2, 2, 6, 0}, 132, 0, 12, {0}, {9, 0, 0, 0}},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        OrrArena *arena = orr_arena_new();
        SimResult result = fixture_run_pipeline(&CASES[i].pipeline, arena);
        int64_t idle_ps = 0, span_ps = 0;
        g_test_message("%s", CASES[i].pipeline.schedule);
        g_assert_cmpint(result.step_ps, ==, CASES[i].step_ps);
        for (int r = 0; r < result.ranks; r++) {
            const SimRankResult *rank = &result.rank[r];
            idle_ps = MAX(idle_ps, rank->idle_ps);
            span_ps = MAX(span_ps, rank->last_end_ps - rank->first_start_ps);
            if (r < 4 && CASES[i].end_ps[0] > 0)
                g_assert_cmpint(rank->end_ps, ==, CASES[i].end_ps[r]);
            if (r < 4 && CASES[i].peak[r] > 0)
                g_assert_cmpint(rank->peak_bytes, ==, CASES[i].peak[r]);
        }
        if (CASES[i].idle_ps > 0)
            g_assert_cmpint(idle_ps, ==, CASES[i].idle_ps);
        if (CASES[i].span_ps > 0)
            g_assert_cmpint(span_ps, ==, CASES[i].span_ps);
        orr_arena_free(arena);
    }
}

static void assert_step(const Pipeline *pipeline, int64_t step_ps)
{
    OrrArena *arena = orr_arena_new();
    SimResult result = fixture_run_pipeline(pipeline, arena);
    if (result.step_ps != step_ps)
        g_test_message("%s p=%d v=%d m=%d F=%d B=%d W=%d c=%d", pipeline->schedule, pipeline->ranks,
                       pipeline->chunks, pipeline->microbatches, (int)pipeline->forward_ps,
                       (int)pipeline->input_ps, (int)pipeline->weight_ps, (int)pipeline->hop_ps);
    g_assert_cmpint(result.step_ps, ==, step_ps);
    orr_arena_free(arena);
}

static void test_naive(void)
{
    for (int p = 1; p <= 5; p++) {
        for (int m = 1; m <= 4; m++)
            assert_step(&(Pipeline){"naive", p, 1, m, 0, 3, 4, 2, 0, 0}, (int64_t)m * p * 9);
    }
}

/* T = (m + p - 1)(F + A) + 2 (p - 1) c */
static void test_gpipe(void)
{
    for (int p = 1; p <= 6; p++) {
        for (int m = 1; m <= 12; m++) {
            for (int c = 0; c <= 3; c++)
                assert_step(&(Pipeline){"gpipe", p, 1, m, 0, 3, 4, 2, 0, c},
                            (int64_t)(m + p - 1) * 9 + 2 * (p - 1) * c);
        }
    }
}

/* T = (m + p - 1)(F + A), live min(m, p - r); with c, p | m: + c (2 (p - 1) m / p + 2 (p - 2)) */
static void test_1f1b(void)
{
    for (int p = 1; p <= 6; p++) {
        for (int m = 1; m <= 18; m++) {
            OrrArena *arena = orr_arena_new();
            Pipeline pipeline = {"1f1b", p, 1, m, 0, 3, 4, 2, 0, 0};
            SimResult result = fixture_run_pipeline(&pipeline, arena);
            g_assert_cmpint(result.step_ps, ==, (int64_t)(m + p - 1) * 9);
            for (int r = 0; r < p; r++)
                g_assert_cmpint(result.rank[r].peak_bytes, ==, MIN(m, p - r));
            orr_arena_free(arena);
            for (int c = 1; c <= 3 && p >= 2 && m % p == 0; c++) {
                pipeline.hop_ps = c;
                assert_step(&pipeline, (int64_t)(m + p - 1) * 9 + c * (2 * (p - 1) * (m / p) + 2 * (p - 2)));
            }
        }
    }
}

static void make_unequal(SimPlan *plan, GRand *random, int64_t *forward_ps, int64_t *backward_ps)
{
    for (int s = 0; s < plan->shape.ranks; s++) {
        SimSegment *segment = &plan->stages[s].segments[0];
        int64_t input_ps = fixture_random(random, 1, 9), weight_ps = fixture_random(random, 0, 9);
        forward_ps[s] = fixture_random(random, 1, 9);
        backward_ps[s] = input_ps + weight_ps;
        segment->forward = fixture_work(SIM_PART_COMPUTE, forward_ps[s]);
        segment->backward_input = fixture_work(SIM_PART_COMPUTE, input_ps);
        segment->backward_weight = fixture_work(SIM_PART_COMPUTE, weight_ps);
    }
}

/* GPipe: T = sum F + (m - 1) max F + sum A + (m - 1) max A.
 * 1F1B: max_j [sum_{i<j} (F_i + A_i) + m (F_j + A_j)] <= T <= GPipe's T. The tighter sum F + sum A +
 * (m - 1) max (F + A) is no bound: the case after the loop takes 69, one more. */
static void test_unequal_stages(void)
{
    GRand *random = g_rand_new_with_seed(20240);
    for (int round = 0; round < 600; round++) {
        OrrArena *arena = orr_arena_new();
        int p = (int)fixture_random(random, 1, 7), m = (int)fixture_random(random, 1, 14);
        int64_t forward_ps[7], backward_ps[7];
        int64_t sum = 0, max_forward = 0, max_backward = 0, lower = 0;
        SimPlan plan = fixture_plan(arena, &(Pipeline){"gpipe", p, 1, m, 0, 1, 1, 1, 0, 0});
        make_unequal(&plan, random, forward_ps, backward_ps);
        for (int s = 0; s < p; s++) {
            int64_t both = forward_ps[s] + backward_ps[s];
            lower = MAX(lower, sum + m * both);
            sum += both;
            max_forward = MAX(max_forward, forward_ps[s]);
            max_backward = MAX(max_backward, backward_ps[s]);
        }
        SimResult gpipe = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(gpipe.step_ps, ==, sum + (m - 1) * (max_forward + max_backward));
        plan.schedule = sim_schedule_find("1f1b");
        SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(result.step_ps, >=, lower);
        g_assert_cmpint(result.step_ps, <=, gpipe.step_ps);
        orr_arena_free(arena);
    }
    g_rand_free(random);

    static const int64_t FORWARD_PS[] = {7, 2, 1}, BACKWARD_PS[] = {2, 9, 3};
    OrrArena *arena = orr_arena_new();
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 3, 1, 5, 0, 1, 1, 0, 0, 0});
    for (int s = 0; s < 3; s++) {
        plan.stages[s].segments[0].forward = fixture_work(SIM_PART_COMPUTE, FORWARD_PS[s]);
        plan.stages[s].segments[0].backward_input = fixture_work(SIM_PART_COMPUTE, BACKWARD_PS[s]);
    }
    g_assert_cmpint(fixture_run(&plan, false, arena, NULL).step_ps, ==, 69);
    orr_arena_free(arena);
}

/* Chunk times f, a: p | m: T = m v (f + a) + (p - 1)(f + a) + 2 (p v - 1) c for c <= f;
 * live min(m v, 2 (p - 1 - r) + (v - 1) p + 1) */
static void test_interleaved(void)
{
    for (int p = 2; p <= 6; p++) {
        for (int v = 2; v <= 4; v++) {
            for (int rounds = 1; rounds <= 3; rounds++) {
                int m = p * rounds;
                for (int c = 0; c <= 3; c++) {
                    OrrArena *arena = orr_arena_new();
                    Pipeline pipeline = {"interleaved", p, v, m, 0, 3, 4, 2, 0, c};
                    SimResult result = fixture_run_pipeline(&pipeline, arena);
                    g_assert_cmpint(result.step_ps, ==, (int64_t)(m * v + p - 1) * 9 + 2 * (p * v - 1) * c);
                    for (int r = 0; r < p; r++)
                        g_assert_cmpint(result.rank[r].peak_bytes, ==,
                                        MIN(m * v, 2 * (p - 1 - r) + (v - 1) * p + 1));
                    orr_arena_free(arena);
                }
            }
        }
    }
    /* Stage times 1 and 2 in two chunks, doubled; micro-batches that the ranks do not divide. */
    assert_step(&(Pipeline){"interleaved", 4, 2, 6, 0, 1, 1, 1, 0, 0}, 55);
    assert_step(&(Pipeline){"interleaved", 4, 2, 10, 0, 1, 1, 1, 0, 0}, 79);
    assert_step(&(Pipeline){"interleaved", 4, 2, 5, 0, 1, 1, 1, 0, 0}, 48);
    assert_step(&(Pipeline){"interleaved", 2, 2, 5, 0, 1, 1, 1, 0, 0}, 35);
}

static void test_interleaved_groups(void)
{
    static const int PEAK_OF_RANK_0[] = {[4] = 11, [6] = 13, [8] = 15};
    for (int group = 4; group <= 8; group += 2) {
        OrrArena *arena = orr_arena_new();
        SimResult result =
            fixture_run_pipeline(&(Pipeline){"interleaved", 4, 2, 16, group, 1, 1, 1, 0, 0}, arena);
        g_assert_cmpint(result.step_ps, ==, 105);
        for (int r = 0; r < 4; r++)
            g_assert_cmpint(result.rank[r].peak_bytes, ==, PEAK_OF_RANK_0[group] - 2 * r);
        orr_arena_free(arena);
    }
}

/* T = (m v + p - 1)(f + a) for m >= p; + 2 (p - 1) c where (m - p) f >= p c */
static void test_breadth_first(void)
{
    for (int p = 1; p <= 6; p++) {
        for (int v = 1; v <= 4; v++) {
            for (int m = p; m <= 3 * p; m++) {
                for (int c = 0; c <= 3 && (m - p) * 3 >= p * c; c++)
                    assert_step(&(Pipeline){"breadth-first", p, v, m, 0, 3, 4, 2, 0, c},
                                (int64_t)(m * v + p - 1) * 9 + 2 * (p - 1) * c);
            }
        }
    }
}

/* ZB-H1, m >= p: T = m (F + B + W) + (p - 1) max(F + B - W, B, F); live p on every rank.
 * ZB-H2, m >= 2p - 1: span bubble (p - 1) max(F + B - 2W, B - F, 0); live 2p - 1. */
static void test_zb_h(void)
{
    for (int f = 1; f <= 5; f++) {
        for (int b = 1; b <= 5; b++) {
            for (int w = 1; w <= 5; w++) {
                OrrArena *arena = orr_arena_new();
                int p = 2 + (f + b + w) % 4, m = p + (f * b) % 7;
                SimResult h1 = fixture_run_pipeline(&(Pipeline){"zb-h1", p, 1, m, 0, f, b, w, 0, 0}, arena);
                g_assert_cmpint(h1.step_ps, ==, m * (f + b + w) + (p - 1) * MAX(f + b - w, MAX(b, f)));
                m = 2 * p - 1 + (f * b) % 5;
                SimResult h2 = fixture_run_pipeline(&(Pipeline){"zb-h2", p, 1, m, 0, f, b, w, 0, 0}, arena);
                g_assert_cmpint(fixture_span_bubble_ps(&h2), ==, (p - 1) * MAX(f + b - 2 * w, MAX(b - f, 0)));
                for (int r = 0; r < p; r++) {
                    g_assert_cmpint(h1.rank[r].peak_bytes, ==, p);
                    g_assert_cmpint(h2.rank[r].peak_bytes, ==, 2 * p - 1);
                }
                orr_arena_free(arena);
            }
        }
    }
}

/* m >= 2p - 1, F <= B, W <= F (times of a stage; a chunk has half): span bubble (p - 1) max(B - W, (B - F)/2, 0),
 * makespan bubble (p - 1) max(B - W, B/2); live 2p chunks. Chunk times are the given ones, so B/2 = b. */
static void test_zb_v(void)
{
    for (int p = 1; p <= 5; p++) {
        for (int f = 1; f <= 4; f++) {
            for (int b = f; b <= f + 3; b++) {
                for (int w = 1; w <= f; w++) {
                    OrrArena *arena = orr_arena_new();
                    int m = 2 * p - 1 + (f + b + w) % 4;
                    SimResult result =
                        fixture_run_pipeline(&(Pipeline){"zb-v", p, 2, m, 0, f, b, w, 0, 0}, arena);
                    g_assert_cmpint(fixture_span_bubble_ps(&result), ==,
                                    (p - 1) * MAX(2 * (b - w), MAX(b - f, 0)));
                    g_assert_cmpint(result.step_ps - 2 * m * (f + b + w), ==, (p - 1) * MAX(2 * (b - w), b));
                    for (int r = 0; r < p; r++)
                        g_assert_cmpint(result.rank[r].peak_bytes, ==, 2 * p);
                    orr_arena_free(arena);
                }
            }
        }
    }
}

/* F = B = W = 1 a chunk, bubble of 1F1B 6 (p - 1): V-Half has at most half of it and p + 2 live chunks of 1F1B's
 * 2p, V-Min at most two thirds and 2p/3 + 8/3. The steady part repeats every 6, so the bubble does not depend
 * on m. */
static void test_v_memory(void)
{
    for (int p = 2; p <= 16; p++) {
        int64_t half_ps = -1, min_ps = -1;
        for (int m = 2 * p; m <= 4 * p; m += p) {
            OrrArena *arena = orr_arena_new();
            SimResult half = fixture_run_pipeline(&(Pipeline){"v-half", p, 2, m, 0, 1, 1, 1, 0, 0}, arena);
            SimResult min = fixture_run_pipeline(&(Pipeline){"v-min", p, 2, m, 0, 1, 1, 1, 0, 0}, arena);
            for (int r = 0; r < p; r++) {
                g_assert_cmpint(half.rank[r].peak_bytes, <=, p + 2);
                g_assert_cmpint(3 * min.rank[r].peak_bytes, <=, 2 * p + 8);
            }
            g_assert_cmpint(half.step_ps - 6 * m, <=, 3 * (p - 1));
            g_assert_cmpint(min.step_ps - 6 * m, <=, 4 * (p - 1));
            g_assert_true(half_ps < 0 || half_ps == half.step_ps - 6 * m);
            g_assert_true(min_ps < 0 || min_ps == min.step_ps - 6 * m);
            half_ps = half.step_ps - 6 * m;
            min_ps = min.step_ps - 6 * m;
            orr_arena_free(arena);
        }
    }
}

/* Idle (PP/2 - 1)(O + A - 3W) where F = B = W and O is the pair; at most that otherwise. */
static void check_dualpipe(const Pipeline *pipeline, int stages, bool exact)
{
    OrrArena *arena = orr_arena_new();
    SimResult result = fixture_run_pipeline(pipeline, arena);
    int64_t idle_ps = 0;
    int64_t formula_ps =
        (stages / 2 - 1) * (pipeline->pair_ps + pipeline->input_ps - 2 * pipeline->weight_ps);
    for (int r = 0; r < result.ranks; r++)
        idle_ps = MAX(idle_ps, result.rank[r].idle_ps);
    if (exact)
        g_assert_cmpint(idle_ps, ==, formula_ps);
    else
        g_assert_cmpint(idle_ps, <=, formula_ps);
    orr_arena_free(arena);
}

static void test_dualpipe(void)
{
    for (int p = 2; p <= 8; p += 2) {
        for (int m = 2 * p; m <= 2 * p + 8; m += 2) {
            for (int pair = 4; pair <= 6; pair++) {
                check_dualpipe(&(Pipeline){"dualpipe", p, 2, m, 0, 2, 2, 2, pair, 0}, p, true);
                check_dualpipe(&(Pipeline){"dualpipev", p / 2, 2, m / 2, 0, 2, 2, 2, pair, 0}, p, true);
            }
        }
    }
    OrrArena *arena = orr_arena_new();
    int64_t idle_ps = 0;
    SimResult result = fixture_run_pipeline(&(Pipeline){"dualpipe", 8, 2, 20, 0, 2, 3, 1, 6, 0}, arena);
    for (int r = 0; r < result.ranks; r++)
        idle_ps = MAX(idle_ps, result.rank[r].idle_ps);
    g_assert_cmpint(idle_ps, ==, 19);
    orr_arena_free(arena);
    check_dualpipe(&(Pipeline){"dualpipe", 8, 2, 20, 0, 2, 3, 1, 6, 0}, 8, false);
}

/* Every schedule runs every shape that it accepts; more micro-batches, more time; ZB beats 1F1B. */
static void test_every_shape(void)
{
    int count;
    const SimSchedule *schedules = sim_schedules(&count);
    for (int i = 0; i < count; i++) {
        for (int p = 1; p <= 6; p++) {
            for (int v = 1; v <= 3; v++) {
                for (int m = 1; m <= 14; m++) {
                    const SimSchedule *schedule = &schedules[i];
                    SimScheduleShape shape = {.ranks = p, .chunks = v, .microbatches = m};
                    if (schedule->fixed_chunks != 0 && v != schedule->fixed_chunks)
                        continue;
                    if (schedule->check != NULL && !schedule->check(&shape, NULL))
                        continue;
                    OrrArena *arena = orr_arena_new();
                    Pipeline pipeline = {schedule->name, p, v, m, 0, 3, 5, 2, 7, 1};
                    SimResult result = fixture_run_pipeline(&pipeline, arena);
                    g_assert_cmpint(result.step_ps, >=, result.rank[0].busy_ps);
                    orr_arena_free(arena);
                }
            }
        }
    }
}

static void test_comparisons(void)
{
    GRand *random = g_rand_new_with_seed(7);
    for (int round = 0; round < 200; round++) {
        OrrArena *arena = orr_arena_new();
        int p = (int)fixture_random(random, 2, 6), m = (int)fixture_random(random, 2 * p - 1, 3 * p);
        int64_t f = fixture_random(random, 1, 6), b = fixture_random(random, 1, 6);
        int64_t w = fixture_random(random, 0, MIN(f, b));
        SimResult plain = fixture_run_pipeline(&(Pipeline){"1f1b", p, 1, m, 0, f, b, w, 0, 0}, arena);
        SimResult h1 = fixture_run_pipeline(&(Pipeline){"zb-h1", p, 1, m, 0, f, b, w, 0, 0}, arena);
        g_assert_cmpint(h1.step_ps, <=, plain.step_ps);
        SimResult h2 = fixture_run_pipeline(&(Pipeline){"zb-h2", p, 1, m, 0, f, b, w, 0, 0}, arena);
        g_assert_cmpint(fixture_span_bubble_ps(&h2), <=, fixture_span_bubble_ps(&h1));
        SimResult no_w = fixture_run_pipeline(&(Pipeline){"zb-h1", p, 1, m, 0, f, b, 0, 0, 0}, arena);
        SimResult a_is_b = fixture_run_pipeline(&(Pipeline){"1f1b", p, 1, m, 0, f, b, 0, 0, 0}, arena);
        g_assert_cmpint(no_w.step_ps, ==, a_is_b.step_ps);
        orr_arena_free(arena);
    }
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/schedules/table", test_table);
    g_test_add_func("/schedules/naive", test_naive);
    g_test_add_func("/schedules/gpipe", test_gpipe);
    g_test_add_func("/schedules/1f1b", test_1f1b);
    g_test_add_func("/schedules/unequal-stages", test_unequal_stages);
    g_test_add_func("/schedules/interleaved", test_interleaved);
    g_test_add_func("/schedules/interleaved-groups", test_interleaved_groups);
    g_test_add_func("/schedules/breadth-first", test_breadth_first);
    g_test_add_func("/schedules/zb-h", test_zb_h);
    g_test_add_func("/schedules/zb-v", test_zb_v);
    g_test_add_func("/schedules/v-memory", test_v_memory);
    g_test_add_func("/schedules/dualpipe", test_dualpipe);
    g_test_add_func("/schedules/every-shape", test_every_shape);
    g_test_add_func("/schedules/comparisons", test_comparisons);
    return g_test_run();
}
