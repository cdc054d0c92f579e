/* tests/unit/schedule/test_zb_auto.c - the searched zero-bubble schedule: within its memory, never behind the
 * schedules that it starts from, and near the best order there is where all orders can be tried. */
#include <string.h>

#include "report/report.h"
#include "spec/load.h"
#include "tests/unit/draws.h"
#include "tests/unit/sim_fixture.h"
#include "tests/unit/test_spec_support.h"

typedef struct {
    int64_t step_ps, peak_bytes; /* the fullest rank, over its limit */
} Outcome;

static Outcome run_limited(SimPlan *plan, const char *schedule, int limit, OrrArena *arena)
{
    Outcome outcome = {0};
    plan->schedule = sim_schedule_find(schedule);
    for (int r = 0; r < plan->shape.ranks; r++)
        plan->ranks[r].limit_bytes = limit * plan->stages[r].segments[0].activation_bytes;
    const SimResult result = fixture_run(plan, false, arena, NULL);
    outcome.step_ps = result.step_ps;
    for (int r = 0; r < plan->shape.ranks; r++)
        outcome.peak_bytes = MAX(outcome.peak_bytes, result.rank[r].peak_bytes - plan->ranks[r].limit_bytes);
    return outcome;
}

static SimPlan random_plan(GRand *random, OrrArena *arena, int most_ranks, int most_rounds)
{
    const int p = (int)fixture_random(random, 1, most_ranks);
    const int m = (int)fixture_random(random, 1, most_rounds * p);
    SimPlan plan =
        fixture_plan(arena, &(Pipeline){"zb-auto", p, 1, m, 0, fixture_random(random, 1, 40),
                                        fixture_random(random, 1, 40), fixture_random(random, 0, 40), 0,
                                        fixture_random(random, 0, 9)});
    const bool uneven = g_rand_boolean(random);
    for (int r = 0; r < p; r++) {
        SimSegment *segment = &plan.stages[r].segments[0];
        segment->activation_bytes = 100;
        segment->activation_input_only_bytes = g_rand_boolean(random) ? fixture_random(random, 0, 99) : 0;
        if (uneven) {
            segment->forward = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 40));
            segment->backward_input = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 1, 40));
            segment->backward_weight = fixture_work(SIM_PART_COMPUTE, fixture_random(random, 0, 40));
            segment->activation_bytes = fixture_random(random, 100, 300);
        }
    }
    plan.p2p_blocking = fixture_random(random, 0, 3) == 0;
    plan.post_validation = g_rand_boolean(random);
    return plan;
}

/* Any times, any limit: the engine accepts the order, no rank holds more than it may, twice gives the same; with the
 * memory of 1F1B never behind ZB-H1, with twice that never behind ZB-H2 either. */
static void test_random(void)
{
    GRand *random = g_rand_new_with_seed(71);
    int shorter = 0, of = 0;
    for (int round = 0; round < DRAWS(500); round++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = random_plan(random, arena, 8, 4);
        const int p = plan.shape.ranks, limit = (int)fixture_random(random, 1, 3 * p);
        const Outcome found = run_limited(&plan, "zb-auto", limit, arena);
        const Outcome again = run_limited(&plan, "zb-auto", limit, arena);
        g_assert_cmpint(found.peak_bytes, <=, 0);
        g_assert_cmpint(found.step_ps, ==, again.step_ps);
        const Outcome one = run_limited(&plan, "zb-h1", p, arena),
                      two = run_limited(&plan, "zb-h2", 2 * p, arena);
        const Outcome as_one = run_limited(&plan, "zb-auto", p, arena);
        const Outcome as_two = run_limited(&plan, "zb-auto", 2 * p, arena);
        g_assert_cmpint(as_one.peak_bytes, <=, 0);
        g_assert_cmpint(as_one.step_ps, <=, one.step_ps);
        g_assert_cmpint(as_two.step_ps, <=, MIN(one.step_ps, two.step_ps));
        shorter += as_one.step_ps < one.step_ps;
        of++;
        orr_arena_free(arena);
    }
    g_test_message("shorter than ZB-H1 in its memory: %d of %d", shorter, of);
    g_assert_cmpint(4 * shorter, >, of);
    g_rand_free(random);
}

/* Gradients of each micro-batch are reduced beside the passes, as ZeRO-2 does, for up to as long as four passes take. */
static void reduce_each(SimPlan *plan, GRand *random)
{
    const int64_t lasts = fixture_random(random, 0, 160);
    plan->zero = 2;
    plan->data = 2;
    plan->overlap_grad_reduce = plan->reduce_each_microbatch = true;
    for (int r = 0; r < plan->shape.ranks; r++) {
        SimSegment *segment = &plan->stages[r].segments[0];
        segment->grad_reduce = fixture_work(SIM_PART_DATA_COMM, lasts);
        segment->unsharded_grad_bytes = 1;
    }
}

/* Whatever the times are, memory that is added makes a step no longer, but for what a heuristic misses; with reductions
 * beside the passes too, where ZB-H1 is never ahead. */
static void test_more_memory(void)
{
    GRand *random = g_rand_new_with_seed(73);
    int ahead = 0;
    for (int round = 0; round < DRAWS(120); round++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = random_plan(random, arena, 8, 3);
        int64_t before_ps = INT64_MAX;
        if (round % 2 == 0)
            reduce_each(&plan, random);
        for (int limit = 1; limit <= 2 * plan.shape.ranks; limit++) {
            const Outcome found = run_limited(&plan, "zb-auto", limit, arena);
            if (before_ps < INT64_MAX)
                g_assert_cmpfloat((double)found.step_ps, <=, 1.015 * (double)before_ps);
            before_ps = MIN(before_ps, found.step_ps);
        }
        const Outcome one = run_limited(&plan, "zb-h1", plan.shape.ranks, arena);
        g_assert_cmpfloat((double)before_ps, <=, (double)one.step_ps);
        ahead += before_ps < one.step_ps;
        orr_arena_free(arena);
    }
    g_assert_cmpint(ahead, >, DRAWS(40));
    g_rand_free(random);
}

/* One micro-batch does not fit: nothing does, and the order is one of ZB-H1's memory, not one micro-batch after the other. */
static void test_no_room(void)
{
    OrrArena *arena = orr_arena_new();
    SimPlan plan = fixture_plan(arena, &(Pipeline){"zb-auto", 4, 1, 8, 0, 10, 10, 10, 0, 0});
    int64_t step_ps[2];
    for (int i = 0; i < 2; i++) {
        plan.schedule = sim_schedule_find(i == 0 ? "zb-auto" : "zb-h1");
        for (int r = 0; r < plan.shape.ranks; r++) {
            plan.stages[r].segments[0].activation_bytes = 100;
            plan.ranks[r].limit_bytes = 99;
        }
        step_ps[i] = fixture_run(&plan, false, arena, NULL).step_ps;
    }
    g_assert_cmpint(step_ps[0], <=, step_ps[1]);
    orr_arena_free(arena);
}

/* F = B = W: ZB-H1's step with its memory, no bubble at all with ZB-H2's, never longer with more memory. */
static void test_equal_times(void)
{
    for (int p = 2; p <= 8; p++) {
        const int m = 4 * p;
        int64_t before_ps = INT64_MAX;
        for (int limit = 1; limit <= 2 * p; limit++) {
            OrrArena *arena = orr_arena_new();
            SimPlan plan = fixture_plan(arena, &(Pipeline){"zb-auto", p, 1, m, 0, 10, 10, 10, 0, 0});
            plan.post_validation = true;
            const Outcome found = run_limited(&plan, "zb-auto", limit, arena);
            g_test_message("p %d limit %d: %d", p, limit, (int)found.step_ps);
            g_assert_cmpint(found.step_ps, <=, before_ps);
            before_ps = found.step_ps;
            if (limit == p)
                g_assert_cmpint(found.step_ps, <=, 30 * m + 10 * (p - 1));
            if (limit >= 2 * p - 1)
                g_assert_cmpint(found.step_ps, ==, 30 * m);
            orr_arena_free(arena);
        }
    }
}

/* --- every order of two ranks and three micro-batches --- */

enum { MICROBATCHES = 3, PASSES = 3 * MICROBATCHES, MOST_ORDERS = 42 };

static void list_orders(const SimPassOp *begun, int count, const int *done, SimOrder *orders, int *ret_count,
                        OrrArena *arena)
{
    static const uint8_t KINDS[] = {SIM_PASS_FORWARD, SIM_PASS_BACKWARD_INPUT, SIM_PASS_BACKWARD_WEIGHT};
    if (count == PASSES) {
        SimOrder *order = &orders[(*ret_count)++];
        *order = (SimOrder){.ops = ORR_ARENA_NEW(arena, SimPassOp, PASSES), .count = PASSES};
        for (int i = 0; i < PASSES; i++)
            order->ops[i] = begun[i];
        return;
    }
    for (int kind = 0; kind < 3; kind++) {
        if (done[kind] == MICROBATCHES || (kind > 0 && done[kind] == done[kind - 1]))
            continue;
        SimPassOp ops[PASSES];
        int more[3] = {done[0], done[1], done[2]};
        for (int i = 0; i < count; i++)
            ops[i] = begun[i];
        ops[count] = (SimPassOp){.pass = KINDS[kind], .chunk = 0, .microbatch = more[kind]++};
        list_orders(ops, count + 1, more, orders, ret_count, arena);
    }
}

/* The shortest step of any order within the limit. */
static int64_t best_step_ps(SimPlan *plan, const SimOrder *all, int count)
{
    int64_t best_ps = INT64_MAX;
    for (int i = 0; i < count * count; i++) {
        OrrArena *arena = orr_arena_new();
        SimOrder orders[2] = {all[i / count], all[i % count]};
        SimProgram program;
        SimResult result;
        GError *error = NULL;
        plan->orders = orders;
        if (!sim_program_build(plan, false, arena, &program, NULL) ||
            !sim_engine_run(&program, 0, arena, &result, &error)) {
            g_clear_error(&error);
        } else if (result.rank[0].peak_bytes <= plan->ranks[0].limit_bytes &&
                   result.rank[1].peak_bytes <= plan->ranks[1].limit_bytes) {
            best_ps = MIN(best_ps, result.step_ps);
        }
        orr_arena_free(arena);
    }
    plan->orders = NULL;
    return best_ps;
}

static void test_against_all(void)
{
    GRand *random = g_rand_new_with_seed(72);
    OrrArena *shared = orr_arena_new();
    SimOrder all[MOST_ORDERS];
    const int none[3] = {0};
    int count = 0, best = 0, of = 0;
    double excess = 0;
    list_orders(NULL, 0, none, all, &count, shared);
    g_assert_cmpint(count, ==, MOST_ORDERS);
    for (int round = 0; round < DRAWS(40); round++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = random_plan(random, arena, 2, 2);
        if (plan.shape.ranks == 2) {
            plan.shape.microbatches = MICROBATCHES;
            const int limit = (int)fixture_random(random, 1, 3);
            const int64_t found_ps = run_limited(&plan, "zb-auto", limit, arena).step_ps;
            const int64_t best_ps = best_step_ps(&plan, all, count);
            g_assert_cmpint(found_ps, >=, best_ps);
            g_assert_cmpfloat((double)found_ps, <=, 1.05 * (double)best_ps);
            excess += (double)found_ps / (double)best_ps - 1;
            best += found_ps == best_ps;
            of++;
        }
        orr_arena_free(arena);
    }
    g_test_message("best of all orders in %d of %d, %.2f %% above on average", best, of, 100 * excess / of);
    g_assert_cmpint(of, >, DRAWS(10));
    g_assert_cmpfloat(excess / of, <, 0.005);
    orr_arena_free(shared);
    g_rand_free(random);
}

static Report run_spec(const char *memory, const char *schedule, OrrArena *arena)
{
    g_autofree char *bytes = g_strconcat("cluster.accelerator.memory_bytes=", memory, NULL);
    g_autofree Spec *spec = test_spec(bytes, schedule, "training.global_batch=64", NULL);
    GError *error = NULL;
    Report report;
    report_run(spec, NULL, &(ReportOptions){.check = true}, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

/* Without a number of micro-batches the GPU's memory is the limit: where one micro-batch fits, the step does; where
 * ZB-H1 fits it is no longer than that, and with room for all no longer than ZB-H2's. */
static void test_device_memory(void)
{
    static const char *const MEMORY[] = {"8 GiB",  "9 GiB",  "10 GiB", "10.5 GiB",
                                         "11 GiB", "12 GiB", "13 GiB", "80 GiB"};
    int limited = 0;
    for (size_t i = 0; i < G_N_ELEMENTS(MEMORY); i++) {
        OrrArena *arena = orr_arena_new();
        const Report found =
            run_spec(MEMORY[i], "parallel={\"tensor\":4,\"pipeline\":4,\"schedule\":\"zb-auto\"}", arena);
        const Report least = run_spec(
            MEMORY[i],
            "parallel={\"tensor\":4,\"pipeline\":4,\"schedule\":\"zb-auto\",\"live_microbatches\":1}", arena);
        const Report one =
            run_spec(MEMORY[i], "parallel={\"tensor\":4,\"pipeline\":4,\"schedule\":\"zb-h1\"}", arena);
        const Report two =
            run_spec(MEMORY[i], "parallel={\"tensor\":4,\"pipeline\":4,\"schedule\":\"zb-h2\"}", arena);
        g_test_message("%s: %.2f GiB of 1 %.2f h1 %.2f h2 %.2f", MEMORY[i], found.peak_bytes / 1073741824.0,
                       least.peak_bytes / 1073741824.0, one.peak_bytes / 1073741824.0,
                       two.peak_bytes / 1073741824.0);
        g_assert_true(!least.fits || found.fits);
        g_assert_true(!one.fits || found.step_ps <= one.step_ps);
        g_assert_true(!two.fits || found.step_ps <= two.step_ps);
        limited += least.fits && !one.fits;
        orr_arena_free(arena);
    }
    g_assert_cmpint(limited, >, 0);
}

/* A scenario with so much memory a GPU. */
static Report run_with(const char *text, double memory_bytes, OrrArena *arena)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    GError *error = NULL;
    Report report;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "scenario", &error);
    g_assert_true(spec_load_json(orr_json_root(doc), "scenario", NULL, false, spec, NULL, &error));
    orr_json_free(doc);
    spec->cluster.accelerator.memory_bytes = memory_bytes;
    report_run(spec, NULL, &(ReportOptions){0}, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

/* More memory is never worse: the greedy clock's order for all the room there is may be slower than that for less, and
 * unsharded gradients are reduced while room is reckoned for two of them, not for all of a stage. */
static void test_room(void)
{
    static const char *const texts[] = {
        "{\"model\": \"llama-8.86b\", \"cluster\": {\"accelerator\": \"rtx-4090-24gb\", \"gpus_per_node\": "
        "8, "
        "\"nodes\": 4, \"scale_out_bytes_per_s_per_gpu\": 25e9}, \"training\": {\"sequence_length\": 512, "
        "\"global_batch\": 64, \"micro_batch\": 4, \"precision\": \"fp8\"}, \"parallel\": {\"pipeline\": 8, "
        "\"zero\": 2, \"schedule\": \"zb-auto\"}, \"execution\": {\"framework\": \"nvidia-bert-2019\"}}",
        "{\"model\": \"llama2-7b\", \"cluster\": {\"accelerator\": \"a100-sxm4-80gb\", \"gpus_per_node\": 8, "
        "\"nodes\": 2, \"scale_out_bytes_per_s_per_gpu\": 50e9}, \"training\": {\"sequence_length\": 2048, "
        "\"global_batch\": 32, \"micro_batch\": 1}, \"parallel\": {\"pipeline\": 2, \"zero\": 2, "
        "\"schedule\": \"zb-auto\"}, \"execution\": {\"framework\": \"torchtitan\"}}"};
    static const double memory_gb[] = {24, 26, 28, 30, 32, 36, 40, 50, 60};
    for (size_t t = 0; t < G_N_ELEMENTS(texts); t++) {
        int64_t before_ps = INT64_MAX;
        int fitted = 0;
        for (size_t i = 0; i < G_N_ELEMENTS(memory_gb); i++) {
            OrrArena *arena = orr_arena_new();
            const Report report = run_with(texts[t], memory_gb[i] * 1e9, arena);
            if (report.fits) {
                g_assert_cmpint(report.step_ps, <=, before_ps);
                before_ps = report.step_ps;
                fitted++;
            }
            orr_arena_free(arena);
        }
        g_assert_cmpint(fitted, >=, 6);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/zb-auto/random", test_random);
    g_test_add_func("/zb-auto/more-memory", test_more_memory);
    g_test_add_func("/zb-auto/no-room", test_no_room);
    g_test_add_func("/zb-auto/equal-times", test_equal_times);
    g_test_add_func("/zb-auto/against-all", test_against_all);
    g_test_add_func("/zb-auto/device-memory", test_device_memory);
    g_test_add_func("/zb-auto/room", test_room);
    return g_test_run();
}
