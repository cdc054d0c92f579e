/* tests/unit/step/test_offload_order.c - states on the host, on hand-made stages: published and derived times of
 * every order, the window of layers, direct reads against all mixes, shards that are fetched, and levels. Seconds
 * are 1,000 ps. */
#include <string.h>

#include "step/direct_mix.h"
#include "tests/unit/sim_fixture.h"

enum { S = 1000, WEIGHT = 64, GRADIENT = 16 };

typedef struct {
    int layers;
    double forward_s, backward_s;
    double out_s, update_s, in_s; /* of a layer */
} Shape;

static SimWork seconds(SimPart part, double s)
{
    return fixture_work(part, (int64_t)(s * S + 0.5));
}

static SimPlan plan_of(OrrArena *arena, const Shape *shape, SimUpdateOrder update, SimOffload **ret_offloads)
{
    SimPlan plan = fixture_plan(arena, &(Pipeline){"1f1b", 1, 1, 1, 0, 1, 1, 0, 0, 0});
    SimStage *stage = &plan.stages[0];
    SimOffload *offloads = ORR_ARENA_NEW(arena, SimOffload, shape->layers);
    stage->segment_count = stage->layers = shape->layers;
    stage->segments = ORR_ARENA_NEW(arena, SimSegment, shape->layers);
    for (int i = 0; i < shape->layers; i++) {
        SimSegment *segment = &stage->segments[i];
        segment->forward = seconds(SIM_PART_COMPUTE, shape->forward_s);
        segment->backward_input = seconds(SIM_PART_COMPUTE, shape->backward_s);
        segment->offload = &offloads[i];
        offloads[i].grad_out = seconds(SIM_PART_OFFLOAD, shape->out_s);
        offloads[i].update = seconds(SIM_PART_OPTIMIZER, shape->update_s);
        offloads[i].weight_in = seconds(SIM_PART_OFFLOAD, shape->in_s);
        offloads[i].grad_bytes = GRADIENT;
    }
    plan.offload = (SimOffloadOrder){.on = true, .update = update, .each_microbatch = true};
    *ret_offloads = offloads;
    return plan;
}

/* Ten layers of 1 s and 2 s: transfers of 1 s or a quarter, updates of half or a tenth. */
static void orders(void)
{
    static const Shape slow = {10, 1, 2, 1, 0.5, 1}, fast = {10, 1, 2, 0.25, 0.1, 0.25};
    static const struct {
        const Shape *shape;
        SimUpdateOrder update;
        int64_t step_ps;
    } cases[] = {{&slow, SIM_UPDATE_BARRIER, 41500},   {&fast, SIM_UPDATE_BARRIER, 32850},
                 {&slow, SIM_UPDATE_LAYERWISE, 32500}, {&fast, SIM_UPDATE_LAYERWISE, 30600},
                 {&slow, SIM_UPDATE_DELAYED, 30000},   {&fast, SIM_UPDATE_DELAYED, 30000}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrArena *arena = orr_arena_new();
        SimOffload *offloads = NULL;
        const SimPlan plan = plan_of(arena, cases[i].shape, cases[i].update, &offloads);
        const SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(result.step_ps, ==, cases[i].step_ps);
        g_assert_cmpint(result.rank[0].peak_bytes, <=, 3 * GRADIENT);
        orr_arena_free(arena);
    }
}

/* The closed form of the barrier, where copies fit beside a layer's backward; never faster than the bounds. */
static void barrier_form(void)
{
    GRand *rand = g_rand_new_with_seed(5);
    for (int round = 0; round < 200; round++) {
        OrrArena *arena = orr_arena_new();
        SimOffload *offloads = NULL;
        const int64_t b = fixture_random(rand, 2, 9), d = fixture_random(rand, 1, b),
                      u = fixture_random(rand, 1, 9), h = fixture_random(rand, 1, 9);
        const int layers = (int)fixture_random(rand, 1, 12);
        const Shape shape = {layers, 1, (double)b, (double)d, (double)u, (double)h};
        const int64_t passes = layers * (1 + b);
        const SimPlan barrier = plan_of(arena, &shape, SIM_UPDATE_BARRIER, &offloads);
        const SimPlan each = plan_of(arena, &shape, SIM_UPDATE_LAYERWISE, &offloads);
        const SimPlan delayed = plan_of(arena, &shape, SIM_UPDATE_DELAYED, &offloads);
        const int64_t t = fixture_run(&barrier, false, arena, NULL).step_ps;
        g_assert_cmpint(t, ==, S * (passes + d + MAX(layers * u + h, u + layers * h)));
        const int64_t e = fixture_run(&each, false, arena, NULL).step_ps;
        if (u <= b && h <= b)
            g_assert_cmpint(e, ==, S * (passes + d + u + h));
        g_assert_cmpint(e, <=, t);
        const int64_t late = fixture_run(&delayed, false, arena, NULL).step_ps;
        g_assert_cmpint(late, <=, t);
        g_assert_cmpint(late, >=, S * MAX(MAX(passes, layers * d), layers * MAX(u, h)));
        if (d + MAX(layers * u + h, u + layers * h) <= passes)
            g_assert_cmpint(late, ==, S * passes);
        orr_arena_free(arena);
    }
    g_rand_free(rand);
}

/* States on the disks, read r, updated u, written w a tile: one after the other, or beside each other as the software says.
 *   none  n (r + u + w)      reads  r + (n - 1) max(r, u + w) + u + w      writes  r + u + (n - 1) max(r + u, w) + w
 *   both  r + u + w + (n - 1) max(r, u, w) */
static void from_the_disks(void)
{
    GRand *rand = g_rand_new_with_seed(15);
    for (int round = 0; round < 200; round++) {
        OrrArena *arena = orr_arena_new();
        const int64_t r = fixture_random(rand, 1, 9), u = fixture_random(rand, 1, 9),
                      w = fixture_random(rand, 1, 9), layers = fixture_random(rand, 1, 12);
        const Shape shape = {(int)layers, 1, 2, 1, (double)u, 0};
        const int64_t passes = 3 * layers + 1, one = r + u + w;
        const int64_t more_s[] = {one, MAX(r, u + w), MAX(r + u, w), MAX(MAX(r, u), w)};
        for (int beside = 0; beside < 4; beside++) {
            SimOffload *offloads = NULL;
            SimPlan plan = plan_of(arena, &shape, SIM_UPDATE_BARRIER, &offloads);
            plan.offload.reads_beside = (beside & 1) != 0;
            plan.offload.writes_beside = (beside & 2) != 0;
            for (int i = 0; i < shape.layers; i++) {
                offloads[i].state_in = seconds(SIM_PART_OFFLOAD, (double)r);
                offloads[i].state_out = seconds(SIM_PART_OFFLOAD, (double)w);
            }
            const SimResult result = fixture_run(&plan, false, arena, NULL);
            g_assert_cmpint(result.step_ps, ==, S * (passes + one + (layers - 1) * more_s[beside]));
            g_assert_cmpint(result.rank[0].part_ps[SIM_PART_OFFLOAD] +
                                result.rank[0].part_ps[SIM_PART_OPTIMIZER],
                            ==, result.step_ps - S * 3 * layers); /* no bubble */
        }
        orr_arena_free(arena);
    }
    g_rand_free(rand);
}

/* Gradients that leave behind the last backward, of d a piece: updates wait for all of them, or each for its own.
 *   all  n d + max(n u + h, u + n h)      own  d + u + h + (n - 1) max(d, u, h) */
static void at_the_step(void)
{
    GRand *rand = g_rand_new_with_seed(16);
    for (int round = 0; round < 200; round++) {
        OrrArena *arena = orr_arena_new();
        SimOffload *offloads = NULL;
        const int64_t d = fixture_random(rand, 1, 9), u = fixture_random(rand, 1, 9),
                      h = fixture_random(rand, 1, 9), n = fixture_random(rand, 1, 12);
        const Shape shape = {(int)n, 1, 2, (double)d, (double)u, (double)h};
        SimPlan plan = plan_of(arena, &shape, SIM_UPDATE_BARRIER, &offloads);
        plan.offload.each_microbatch = false;
        plan.offload.gradients_at_step = true;
        const int64_t all_ps = fixture_run(&plan, false, arena, NULL).step_ps;
        g_assert_cmpint(all_ps, ==, S * (3 * n + n * d + MAX(n * u + h, u + n * h)));
        plan.offload.update_beside_copies = true;
        const int64_t own_ps = fixture_run(&plan, false, arena, NULL).step_ps;
        g_assert_cmpint(own_ps, ==, S * (3 * n + d + u + h + (n - 1) * MAX(MAX(d, u), h)));
        g_assert_cmpint(own_ps, <=, all_ps);
        orr_arena_free(arena);
    }
    g_rand_free(rand);
}

/* Gradients that stop the passes: all of each copy or a share of it, behind a check; the host scales before it updates;
 * sums of micro-batches come back to the GPU. Ten layers of 1 s and 2 s, copies of 1 s, updates of half. */
static void staged(void)
{
    static const Shape shape = {10, 1, 2, 1, 0.5, 1};
    static const struct {
        bool all;
        double ahead_s, check_s, scale_s, sum_s;
        int microbatches;
        int64_t step_ps;
    } cases[] = {{false, 0, 0, 0, 0, 1, 41500},
                 {true, 0, 0, 0, 0, 1, 50500},        /* 30 + 10 copies + 10.5 */
                 {false, 0.75, 0, 0, 0, 1, 48250},    /* 30 + 10 x 0.75, the last quarter, 10.5 */
                 {false, 0, 0.25, 0, 0, 1, 44000},    /* a check of each */
                 {false, 0, 0, 0.125, 0, 1, 42750},   /* all are scaled first: 10 x 0.125 */
                 {true, 0, 0.25, 0.125, 0, 1, 54250}, /* 50.5 + 2.5 + 1.25 */
                 {true, 0, 0, 0, 0.5, 1, 50500},      /* one micro-batch has no sums */
                 {true, 0, 0, 0, 0.5, 3, 130500}}; /* 3 x 30, out 5, in and out 10, in 5 and out 10, 10.5 */
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrArena *arena = orr_arena_new();
        SimOffload *offloads = NULL;
        SimPlan plan = plan_of(arena, &shape, SIM_UPDATE_BARRIER, &offloads);
        plan.offload.passes_wait = cases[i].all;
        plan.shape.microbatches = cases[i].microbatches;
        for (int layer = 0; layer < shape.layers; layer++) {
            offloads[layer].grad_ahead = seconds(SIM_PART_OFFLOAD, cases[i].ahead_s);
            offloads[layer].grad_out = seconds(SIM_PART_OFFLOAD, shape.out_s - cases[i].ahead_s);
            offloads[layer].check = seconds(SIM_PART_OFFLOAD, cases[i].check_s);
            offloads[layer].scale = seconds(SIM_PART_OPTIMIZER, cases[i].scale_s);
            offloads[layer].sum_in = offloads[layer].sum_out = seconds(SIM_PART_OFFLOAD, cases[i].sum_s);
        }
        const SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpint(result.step_ps, ==, cases[i].step_ps);
        g_assert_cmpint(result.rank[0].peak_bytes, <=, 3 * GRADIENT);
        orr_arena_free(arena);
    }
}

static int64_t forward_end_ps(const SimResult *result)
{
    int64_t end_ps = 0;
    for (int64_t i = 0; i < result->span_count; i++) {
        if (result->spans[i].tag == SIM_TAG_FORWARD)
            end_ps = MAX(end_ps, result->spans[i].end_ps);
    }
    return end_ps;
}

static SimPlan window_plan(OrrArena *arena, int layers, int window, int microbatches, double copy_s)
{
    SimOffload *offloads = NULL;
    const Shape shape = {layers, 1, 2, 0, 0, 0};
    SimPlan plan = plan_of(arena, &shape, SIM_UPDATE_LAYERWISE, &offloads);
    plan.shape.microbatches = microbatches;
    plan.offload.window = window;
    plan.ranks[0].static_bytes[SIM_MEM_WEIGHTS] = window * WEIGHT;
    for (int i = 0; i < layers; i++) {
        offloads[i].fetch = offloads[i].backward_fetch = seconds(SIM_PART_OFFLOAD, copy_s);
        offloads[i].weight_bytes = WEIGHT;
    }
    return plan;
}

/* Twelve layers of 1 s: the end of the forward by window, for copies of 0.5, 1, 1.5 and 3 s. */
static void windows(void)
{
    static const struct {
        double copy_s;
        int64_t end_ps[4];
    } cases[] = {{0.5, {17500, 12000, 12000, 12000}},
                 {1, {23000, 12000, 12000, 12000}},
                 {1.5, {28500, 17000, 15500, 14000}},
                 {3, {45000, 32000, 29000, 26000}}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        for (int window = 1; window <= 4; window++) {
            OrrArena *arena = orr_arena_new();
            const SimPlan plan = window_plan(arena, 12, window, 1, cases[i].copy_s);
            const SimResult result = fixture_run(&plan, false, arena, NULL);
            g_assert_cmpint(forward_end_ps(&result), ==, cases[i].end_ps[window - 1]);
            g_assert_cmpint(result.rank[0].peak_bytes, ==, window * WEIGHT);
            orr_arena_free(arena);
        }
    }
}

/* With the whole model in the window nothing is fetched; a wider window is never slower; memory never exceeds it. */
static void window_levels(void)
{
    for (int microbatches = 1; microbatches <= 3; microbatches++) {
        int64_t before_ps = INT64_MAX;
        for (int window = 1; window <= 8; window++) {
            OrrArena *arena = orr_arena_new();
            const SimPlan plan = window_plan(arena, 8, window, microbatches, 1.5);
            const SimResult result = fixture_run(&plan, false, arena, NULL);
            g_assert_cmpint(result.step_ps, <=, before_ps);
            g_assert_cmpint(result.rank[0].peak_bytes, <=, window * WEIGHT + 8);
            before_ps = result.step_ps;
            if (window == 8)
                g_assert_cmpint(result.step_ps, ==, microbatches * 24 * S);
            orr_arena_free(arena);
        }
    }
}

static int64_t mix_end_ps(const SimDirectPiece *pieces, int count, unsigned direct)
{
    int64_t sm = 0, link = 0;
    for (int i = 0; i < count; i++) {
        const SimDirectPiece *piece = &pieces[i];
        if (direct & (1u << i)) {
            sm = link = MAX(MAX(sm, link), piece->there_ps) + MAX(piece->forward_ps, piece->read_ps);
        } else {
            link = MAX(link, piece->there_ps) + piece->copy_ps;
            sm = MAX(sm, link) + piece->forward_ps;
        }
    }
    return sm;
}

/* The engine's forward under a mix. */
static int64_t engine_end_ps(OrrArena *arena, const SimDirectPiece *pieces, int count, const bool *direct)
{
    SimOffload *offloads = NULL;
    const Shape shape = {count, 1, 2, 0, 0, 0};
    SimPlan plan = plan_of(arena, &shape, SIM_UPDATE_FIRST, &offloads);
    for (int i = 0; i < count; i++) {
        SimSegment *segment = &plan.stages[0].segments[i];
        segment->forward = fixture_work(SIM_PART_COMPUTE, pieces[i].forward_ps);
        offloads[i].weight_in = fixture_work(SIM_PART_OFFLOAD, pieces[i].copy_ps);
        offloads[i].update =
            fixture_work(SIM_PART_OPTIMIZER, pieces[i].there_ps - (i > 0 ? pieces[i - 1].there_ps : 0));
        if (direct[i])
            offloads[i].direct = fixture_work(SIM_PART_COMPUTE, MAX(pieces[i].forward_ps, pieces[i].read_ps));
    }
    const SimResult result = fixture_run(&plan, false, arena, NULL);
    return forward_end_ps(&result);
}

/* The mix is the best of all mixes, and the engine takes as long as it says. */
static void mixes(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    for (int round = 0; round < 200; round++) {
        OrrArena *arena = orr_arena_new();
        SimDirectPiece pieces[10];
        bool direct[10];
        const int count = (int)fixture_random(rand, 1, 10);
        int64_t best = INT64_MAX, there = 0;
        for (int i = 0; i < count; i++) {
            there += fixture_random(rand, 0, 3);
            pieces[i] = (SimDirectPiece){fixture_random(rand, 1, 9), fixture_random(rand, 1, 15),
                                         fixture_random(rand, 1, 30), there};
        }
        for (unsigned mask = 0; mask < 1u << count; mask++)
            best = MIN(best, mix_end_ps(pieces, count, mask));
        g_assert_cmpint(sim_direct_mix(pieces, count, arena, direct), ==, best);
        g_assert_cmpint(engine_end_ps(arena, pieces, count, direct), ==, best);
        orr_arena_free(arena);
    }
    g_rand_free(rand);
}

/* Six layers of 1 s, copies of 1.5 and 0.5 s: all copied, all read; copied before anything runs is the sum. */
static void direct_vectors(void)
{
    static const int64_t cases[][3] = {{1500, 10000, 9000}, {500, 6500, 6000}};
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        OrrArena *arena = orr_arena_new();
        SimDirectPiece pieces[6];
        const bool none[6] = {false}, all[6] = {true, true, true, true, true, true};
        bool best[6];
        for (int i = 0; i < 6; i++)
            pieces[i] = (SimDirectPiece){1000, cases[c][0], cases[c][0], 0};
        g_assert_cmpint(engine_end_ps(arena, pieces, 6, none), ==, cases[c][1]);
        g_assert_cmpint(engine_end_ps(arena, pieces, 6, all), ==, cases[c][2]);
        g_assert_cmpint(sim_direct_mix(pieces, 6, arena, best), ==, cases[c][2]);
        SimOffload *offloads = NULL;
        const Shape shape = {6, 1,     2,
                             0, 0.001, (double)cases[c][0] / S}; /* 1 ps a tile, the first one exposed */
        const SimPlan serial = plan_of(arena, &shape, SIM_UPDATE_BARRIER, &offloads);
        const int64_t step_ps = fixture_run(&serial, false, arena, NULL).step_ps;
        g_assert_cmpint(step_ps - 12 * S - 1, ==,
                        6 * cases[c][0] + 6 * S); /* less the backwards: 15 and 9 s */
        orr_arena_free(arena);
    }
}

/* Shards that are fetched before every use. Efficiency without anything ahead: intensity x rate / (that + peak). */
static SimPlan sharded_plan(OrrArena *arena, int layers, double forward_s, double backward_s, double fetch_s,
                            int ahead)
{
    SimOffload *offloads = NULL;
    const Shape shape = {layers, forward_s, backward_s, 0, 0, 0};
    SimPlan plan = plan_of(arena, &shape, SIM_UPDATE_BARRIER, &offloads);
    plan.zero = 3;
    plan.reshard_after_forward = plan.reshard_after_backward = true;
    plan.prefetch_units = ahead > 0;
    plan.offload.copy_ahead = ahead > 1;
    plan.offload.read_ahead = ahead > 2 ? 2 : plan.offload.copy_ahead;
    for (int i = 0; i < layers; i++) {
        plan.stages[0].segments[i].gathered_param_bytes = WEIGHT;
        offloads[i].fetch = seconds(SIM_PART_OFFLOAD, fetch_s);
        offloads[i].backward_fetch = seconds(SIM_PART_OFFLOAD, 2 * fetch_s);
        offloads[i].weight_bytes = WEIGHT / 4;
    }
    return plan;
}

static void efficiencies(void)
{
    /* one layer of N parameters on one GPU of 70 TFLOP/s: forward, recomputation and backward of s b tokens are 8 N s b
     * FLOPs; its weights are read three times and its gradient leaves: 8 N bytes */
    static const struct {
        double intensity, bytes_per_s, expected;
    } cases[] = {{1024, 70e9, 0.506},      /* weights, one sequence of 1,024 */
                 {256, 1.5e12, 0.846},     /* states, one sequence */
                 {1024, 1.5e12, 0.956},    /* states, four */
                 {24 * 8192, 2e9, 0.849}}; /* activations of layers of 8,192, one checkpoint a layer */
    for (gsize c = 0; c < G_N_ELEMENTS(cases); c++) {
        OrrArena *arena = orr_arena_new();
        const double bytes = 1e9, compute_s = cases[c].intensity * bytes / 70e12 * 1e6;
        const double move_s = bytes / cases[c].bytes_per_s * 1e6;
        SimOffload *offloads = NULL;
        const Shape shape = {1, compute_s / 4, 3 * compute_s / 4, 0, 0, 0};
        SimPlan plan = sharded_plan(arena, 1, shape.forward_s, shape.backward_s, 0, 0);
        plan.stages[0].segments[0].offload = offloads = ORR_ARENA_NEW(arena, SimOffload, 1);
        offloads->fetch = seconds(SIM_PART_OFFLOAD, move_s / 4);
        offloads->grad_out = seconds(SIM_PART_OFFLOAD, 3 * move_s / 4);
        const SimResult result = fixture_run(&plan, false, arena, NULL);
        g_assert_cmpfloat_with_epsilon(compute_s * S / (double)result.step_ps, cases[c].expected, 0.0006);
        orr_arena_free(arena);
    }
}

/* What runs further ahead is never slower; deep enough, the longest chain of one kind remains and its first piece. */
static void prefetch(void)
{
    int64_t before_ps = INT64_MAX;
    for (int ahead = 0; ahead <= 3; ahead++) {
        OrrArena *arena = orr_arena_new();
        SimPlan plan = sharded_plan(arena, 8, 1, 2, 0.75, ahead);
        for (int i = 0; i < 8; i++) {
            SimOffload *offload = (SimOffload *)plan.stages[0].segments[i].offload;
            offload->read = seconds(SIM_PART_OFFLOAD, 0.8);
            offload->backward_read = seconds(SIM_PART_OFFLOAD, 1.6);
            plan.stages[0].segments[i].param_gather = seconds(SIM_PART_DATA_COMM, 0.5);
        }
        const int64_t step_ps = fixture_run(&plan, false, arena, NULL).step_ps;
        g_assert_cmpint(step_ps, <=, before_ps);
        if (ahead == 0)
            g_assert_cmpint(
                step_ps, ==,
                (int64_t)((8 * (0.8 + 0.75 + 0.5 + 1) + 7 * (1.6 + 1.5 + 0.5) + 8 * 2) * S + 0.5));
        if (ahead == 3)
            g_assert_cmpint(step_ps, ==, (int64_t)((0.8 + 0.75 + 0.5 + 24) * S + 0.5));
        before_ps = step_ps;
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/offload-order/staged", staged);
    g_test_add_func("/offload-order/from-the-disks", from_the_disks);
    g_test_add_func("/offload-order/at-the-step", at_the_step);
    g_test_add_func("/offload-order/orders", orders);
    g_test_add_func("/offload-order/barrier-form", barrier_form);
    g_test_add_func("/offload-order/windows", windows);
    g_test_add_func("/offload-order/window-levels", window_levels);
    g_test_add_func("/offload-order/mixes", mixes);
    g_test_add_func("/offload-order/direct-vectors", direct_vectors);
    g_test_add_func("/offload-order/efficiencies", efficiencies);
    g_test_add_func("/offload-order/prefetch", prefetch);
    return g_test_run();
}
