/* tests/unit/program/test_servers.c - training over parameter servers against closed forms and worked timelines. */
#include <math.h>

#include "program/servers.h"

#define SECOND ((int64_t)1000000000000)
#define GB     1000000000.0

enum { MOST = 64 };

typedef struct Case {
    SimServerLayer layers[MOST];
    SimServerMachine machines[MOST];
    SimServer servers[MOST];
    SimServerPlan plan;
} Case;

/* What n GPU machines and k CPU machines with equal NICs take at least to push and pull M bytes each, both directions busy
 * throughout: t = 2 n (n - 1) M / ((n^2 + k n - 2 k) B), 0 <= k <= n. Source: [JiangBytePS2020] theorem 1 */
static double optimum_s(int workers, int servers, double bytes, double bytes_per_s)
{
    const double n = workers, k = servers;
    return workers < 2 && servers == 0 ? 0
                                       : 2 * n * (n - 1) * bytes / ((n * n + k * n - 2 * k) * bytes_per_s);
}

static int64_t ps(double seconds)
{
    return (int64_t)llround(seconds * 1e12);
}

/* `workers` machines with NICs of 1 GB/s each way, one layer that takes no time, one server of its own. */
static void case_init(Case *c, int workers, int servers)
{
    *c = (Case){.plan = {.layer_count = 1,
                         .workers = workers,
                         .server_count = servers,
                         .machine_count = workers + servers,
                         .warm_iterations = 2,
                         .iterations = 4}};
    for (int i = 0; i < workers + servers; i++)
        c->machines[i] = (SimServerMachine){GB, GB};
    for (int i = 0; i < servers; i++)
        c->servers[i] = (SimServer){.machine = workers + i, .weight = 1};
    c->plan.layers = c->layers;
    c->plan.machines = c->machines;
    c->plan.servers = c->servers;
}

static SimServerResult run(const Case *c)
{
    GError *error = NULL;
    SimServerResult result;
    OrrArena *arena = orr_arena_new();
    SimServerPlan plan = c->plan;
    plan.layers = c->layers;
    plan.machines = c->machines;
    plan.servers = c->servers;
    const bool ok = sim_servers_run(&plan, arena, &result, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_assert_cmpfloat_with_epsilon(result.sent_bytes, result.received_bytes, 1);
    g_assert_cmpint(result.compute_ps + result.exposed_ps, ==, result.step_ps);
    orr_arena_free(arena);
    return result;
}

static void set_bytes(Case *c, int layer, double bytes)
{
    c->layers[layer].push_bytes = c->layers[layer].pull_bytes = (int64_t)bytes;
}

/* The timeline: passes of a worker follow each other and are its compute; a synchronous forward waits for all pushes. */
static void test_timeline(void)
{
    for (int mode = SIM_SERVERS_SYNC; mode <= SIM_SERVERS_ASYNC; mode++) {
        Case c;
        case_init(&c, 4, 2);
        c.plan.mode = (SimServerMode)mode;
        c.plan.spread = SIM_SPREAD_EXPONENTIAL;
        for (int i = 0; i < c.plan.layer_count; i++) {
            c.layers[i].push_bytes = c.layers[i].pull_bytes = (int64_t)GB;
            c.layers[i].forward_ps = SECOND;
            c.layers[i].backward_ps = 2 * SECOND;
        }
        GError *error = NULL;
        SimServerResult result;
        OrrArena *arena = orr_arena_new();
        g_assert_true(sim_servers_run(&c.plan, arena, &result, &error));
        int64_t free_ps[4] = {0}, pushed_ps[SIM_SERVERS_SHOWN_ITERATIONS + 1] = {0};
        int passes = 0, pushes = 0, early = 0;
        for (int i = 0; i < result.op_count; i++) {
            const SimServerOp *op = &result.ops[i];
            if (op->kind != SIM_SERVERS_PUSH)
                continue;
            pushed_ps[op->iteration] = MAX(pushed_ps[op->iteration], op->end_ps);
            pushes++;
        }
        for (int i = 0; i < result.op_count; i++) {
            const SimServerOp *op = &result.ops[i];
            g_assert_cmpint(op->end_ps, >=, op->start_ps);
            if (op->kind > SIM_SERVERS_BACKWARD)
                continue;
            g_assert_cmpint(op->start_ps, >=, free_ps[op->worker]);
            free_ps[op->worker] = op->end_ps;
            early += op->kind == SIM_SERVERS_FORWARD && op->iteration > 0 &&
                     op->start_ps < pushed_ps[op->iteration];
            passes++;
        }
        g_assert_cmpint(pushes, >, 4);
        g_assert_cmpint(passes, >=, 2 * 4 * SIM_SERVERS_SHOWN_ITERATIONS);
        g_assert_cmpint(early > 0, ==, mode == SIM_SERVERS_ASYNC);
        orr_arena_free(arena);
    }
}

/* --- closed forms --- */

static void test_single_server(void)
{
    Case c;
    case_init(&c, 4, 1);
    set_bytes(&c, 0, GB);
    SimServerResult result = run(&c); /* 2 n S / B: the server's NIC */
    g_assert_cmpint(result.step_ps, ==, 8 * SECOND);
    g_assert_cmpfloat_with_epsilon(result.nic_up_bytes, 4 * GB, 1);
    c.plan.sum_bytes_per_s = 2 * GB; /* and n S over the rate of the sum; gradients arrive at once */
    g_assert_cmpint(run(&c).step_ps, ==, 10 * SECOND);
    c.plan.sum_bytes_per_s = 0;
    for (int i = 0; i < 4; i++)
        c.machines[i] = (SimServerMachine){0.1 * GB, 0.1 * GB}; /* the workers' NICs: 2 S / B */
    g_assert_cmpint(run(&c).step_ps, ==, 20 * SECOND);
    c.plan.flow_bytes_per_s = 0.05 * GB; /* one connection carries less than a NIC */
    g_assert_cmpint(run(&c).step_ps, ==, 40 * SECOND);
}

static void test_half_the_servers(void)
{
    Case c;
    case_init(&c, 2, 2);
    set_bytes(&c, 0, GB);
    c.plan.partition_bytes = (int64_t)(GB / 2);
    const int64_t both = run(&c).step_ps;
    case_init(&c, 2, 1);
    set_bytes(&c, 0, GB);
    g_assert_cmpint(run(&c).step_ps, ==, 2 * both);
}

static void test_sharded(void)
{
    for (int k = 1; k <= 8; k *= 2) { /* max(n S / (k B), S / B) in each direction */
        Case c;
        case_init(&c, 4, k);
        set_bytes(&c, 0, GB);
        c.plan.partition_bytes = (int64_t)(GB / 8);
        g_assert_cmpfloat_with_epsilon((double)run(&c).step_ps * 1e-12, 2 * fmax(4.0 / k, 1), 1e-9);
    }
}

static void test_incast(void)
{
    Case c;
    case_init(&c, 4, 1);
    set_bytes(&c, 0, GB);
    c.plan.incast_frac = 0.1; /* four flows into the server: a capacity of 1 / 1.3; one flow into a worker */
    g_assert_cmpfloat_with_epsilon((double)run(&c).step_ps * 1e-12, 4 * 1.3 + 4, 1e-9);
}

/* A server on every worker moves as much through each NIC as a ring all-reduce. */
static void test_colocated_is_ring(void)
{
    for (int n = 2; n <= 8; n *= 2) {
        Case c;
        case_init(&c, n, n);
        for (int i = 0; i < n; i++)
            c.servers[i].machine = i;
        set_bytes(&c, 0, GB);
        c.plan.partition_bytes = (int64_t)(GB / n);
        const SimServerResult result = run(&c);
        g_assert_cmpfloat_with_epsilon(result.nic_up_bytes, 2.0 * (n - 1) / n * GB, 10);
        g_assert_cmpfloat_with_epsilon((double)result.step_ps * 1e-12, 2.0 * (n - 1) / n, 1e-8);
    }
}

static Case placed(int n, int k, int parts)
{
    Case c;
    double own = 0, cpu = 0;
    case_init(&c, n, n + k);
    sim_servers_placement(n, k, &own, &cpu);
    for (int i = 0; i < n + k; i++)
        c.servers[i] = (SimServer){.machine = i, .weight = i < n ? own : cpu};
    c.plan.machine_count = n + k;
    c.plan.scheme = SIM_SERVERS_PRIORITY;
    set_bytes(&c, 0, GB);
    c.plan.partition_bytes = (int64_t)(GB / parts);
    c.plan.credit_bytes = n * c.plan.partition_bytes;
    c.plan.warm_iterations = 1;
    c.plan.iterations = 1;
    return c;
}

/* Parts of M/B with 8 GPU machines and k CPU machines: a run with as many parts on their way as workers comes near (fair
 * shares do not keep every NIC full to the end), and never below. */
static void test_byteps(void)
{
    static const struct {
        int servers;
        double time;
    } rows[] = {{0, 1.75}, {2, 28.0 / 19}, {4, 14.0 / 11}, {8, 1.0}};
    for (guint i = 0; i < G_N_ELEMENTS(rows); i++) {
        double own = 0, cpu = 0;
        const Case c = placed(8, rows[i].servers, 3000);
        sim_servers_placement(8, rows[i].servers, &own, &cpu);
        g_assert_cmpfloat_with_epsilon(8 * own + rows[i].servers * cpu, 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(optimum_s(8, rows[i].servers, GB, GB), rows[i].time, 1e-12);
        const double seconds = (double)run(&c).step_ps * 1e-12;
        g_test_message("k = %d: %.4f against %.4f", rows[i].servers, seconds, rows[i].time);
        g_assert_cmpfloat(seconds, >=, rows[i].time * (1 - 2e-3));
        g_assert_cmpfloat(seconds, <=, rows[i].time * 1.05);
    }
}

/* --- overlap: three layers --- */

typedef struct Layers {
    double forward[3], backward[3], transfer[3];
} Layers;

static const Layers THREE[] = {
    {{1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {{1, 1, 1}, {1, 1, 1}, {2, 2, 2}},
    {{2, 1, 1}, {4, 2, 2}, {0.5, 1, 4}},
    {{1, 1, 1}, {2, 2, 2}, {3, 1, 1}},
};

static double three_layers(const Layers *layers, SimServerScheme scheme, double part, double startup)
{
    Case c;
    case_init(&c, 1, 1);
    c.plan.layer_count = 3;
    for (int i = 0; i < 3; i++) {
        c.layers[i].forward_ps = ps(layers->forward[i]);
        c.layers[i].backward_ps = ps(layers->backward[i]);
        set_bytes(&c, i, layers->transfer[i] * GB);
    }
    c.plan.scheme = scheme;
    c.plan.partition_bytes = (int64_t)llround(part * GB);
    c.plan.startup_ps = ps(startup);
    c.plan.warm_iterations = 10;
    c.plan.iterations = 20;
    return (double)run(&c).step_ps * 1e-12;
}

static void test_overlap(void)
{
    static const double expected[][5] = {{12, 8, 7.5, 7.1, 7.75},
                                         {18, 12, 8.5, 8.1, 11.15},
                                         {23, 15.5, 13.0, 12.6, 12.9},
                                         {19, 15, 12.5, 12.1, 13.65}};
    static const double ideal[] = {7, 8, 12.5, 12};
    for (guint i = 0; i < G_N_ELEMENTS(THREE); i++) {
        const Layers *l = &THREE[i];
        const double got[] = {
            three_layers(l, SIM_SERVERS_NAIVE, 0, 0), three_layers(l, SIM_SERVERS_WFBP, 0, 0),
            three_layers(l, SIM_SERVERS_PRIORITY, 0.5, 0), three_layers(l, SIM_SERVERS_PRIORITY, 0.1, 0),
            three_layers(l, SIM_SERVERS_PRIORITY, 0.1, 0.05)};
        for (int k = 0; k < 5; k++) {
            g_test_message("row %u case %d: %.6f against %.6f", i, k, got[k], expected[i][k]);
        }
        for (int k = 0; k < 5; k++) {
            g_assert_cmpfloat_with_epsilon(got[k], expected[i][k], 1e-9);
        }
        g_assert_cmpfloat_with_epsilon(three_layers(l, SIM_SERVERS_PRIORITY, 0.001, 0), ideal[i], 2e-3);
    }
}

/* --- workers that differ --- */

static Case drifting(SimServerMode mode, SimServerSpread spread, int iterations)
{
    Case c;
    case_init(&c, 8, 1);
    c.layers[0].forward_ps = ps(0.25);
    c.layers[0].backward_ps = ps(0.75);
    set_bytes(&c, 0, 1);
    c.plan.mode = mode;
    c.plan.scheme = SIM_SERVERS_WFBP;
    c.plan.spread = spread;
    c.plan.spread_frac = 0.1;
    c.plan.seed = 7;
    c.plan.warm_iterations = 10;
    c.plan.iterations = iterations;
    return c;
}

/* The slowest of 8 exponential times takes H_8 = 2.718 means; asynchronous workers take one. */
static void test_stragglers(void)
{
    const Case together = drifting(SIM_SERVERS_SYNC, SIM_SPREAD_EXPONENTIAL, 20000);
    const Case apart = drifting(SIM_SERVERS_ASYNC, SIM_SPREAD_EXPONENTIAL, 20000);
    const SimServerResult sync = run(&together), async = run(&apart);
    g_test_message("H_8: %.4f; alone: %.4f; staleness %.4f", (double)sync.step_ps * 1e-12,
                   (double)async.step_ps * 1e-12, async.staleness_mean);
    g_assert_cmpfloat_with_epsilon((double)sync.step_ps * 1e-12, 2.717857, 0.03);
    g_assert_cmpfloat_with_epsilon((double)async.step_ps * 1e-12, 1, 0.01);
    g_assert_cmpfloat_with_epsilon(async.staleness_mean, 7, 0.1);
    g_assert_cmpint(sync.staleness_max, ==, 0);
    g_assert_cmpint(sync.staleness[0], ==, sync.iterations);
    int64_t counted = 0;
    for (int i = 0; i < SIM_STALENESS_BINS; i++)
        counted += async.staleness[i];
    g_assert_cmpint(counted, ==, async.iterations);
}

static void test_bounded(void)
{
    const Case strict = drifting(SIM_SERVERS_SYNC, SIM_SPREAD_EXPONENTIAL, 5000);
    int64_t before = run(&strict).step_ps;
    for (int bound = 0; bound <= 8; bound = bound == 0 ? 1 : 2 * bound) {
        Case c = drifting(SIM_SERVERS_BOUNDED, SIM_SPREAD_EXPONENTIAL, 5000);
        c.plan.staleness = bound;
        const SimServerResult result = run(&c);
        if (bound == 0) /* nobody is ahead of anybody: as fast as synchronous */
            g_assert_cmpfloat_with_epsilon((double)result.step_ps / (double)before, 1, 1e-3);
        else
            g_assert_cmpint(result.step_ps, <, before);
        /* of each other: those it is behind, ahead, the one under way when the pull left, and its own turn */
        g_assert_cmpint(result.staleness_max, <=, 7 * (2 * bound + 2));
        before = result.step_ps;
    }
}

/* Normal times: between the mean and mean + sigma sqrt(2 ln n); one seed gives one result, another one another. */
static void test_normal(void)
{
    Case c = drifting(SIM_SERVERS_SYNC, SIM_SPREAD_NORMAL, 5000);
    const int64_t first = run(&c).step_ps;
    g_assert_cmpint(first, ==, run(&c).step_ps);
    g_assert_cmpfloat_with_epsilon((double)first * 1e-12, 1.1424,
                                   0.003); /* E[max of 8 normals] = 1.4236 sigma */
    c.plan.seed = 8;
    g_assert_cmpint(first, !=, run(&c).step_ps);
    c.plan.spread_lasts = true; /* always the same one waited for: some multiple of the mean, exactly */
    const SimServerResult lasting = run(&c);
    c.plan.mode = SIM_SERVERS_ASYNC;
    g_assert_cmpint(run(&c).step_ps, <, lasting.step_ps);
}

/* Asynchronous workers without spread keep out of each other's way: the server's NIC is busy in both directions. */
static void test_async_network(void)
{
    Case c;
    case_init(&c, 4, 1);
    set_bytes(&c, 0, GB);
    c.plan.mode = SIM_SERVERS_ASYNC;
    c.plan.warm_iterations = 4;
    c.plan.iterations = 40;
    const SimServerResult result = run(&c);
    g_assert_cmpint(result.step_ps, >=, 4 * SECOND);
    g_assert_cmpint(result.step_ps, <=, 8 * SECOND);
}

/* More parts on their way hide start-ups and hold up urgent ones; without start-ups more credit never helps. */
static void test_credit(void)
{
    Case c;
    case_init(&c, 1, 1);
    c.plan.layer_count = 3;
    for (int i = 0; i < 3; i++) {
        c.layers[i] = (SimServerLayer){.forward_ps = ps(1), .backward_ps = ps(1)};
        set_bytes(&c, i, 2 * GB);
    }
    c.plan.scheme = SIM_SERVERS_PRIORITY;
    c.plan.partition_bytes = (int64_t)(0.1 * GB);
    c.plan.warm_iterations = 10;
    const int64_t one = run(&c).step_ps;
    c.plan.credit_bytes = (int64_t)(100 * GB);
    const int64_t all = run(&c).step_ps;
    g_assert_cmpint(all, >, one);
    c.plan.startup_ps = ps(0.05);
    const int64_t hidden = run(&c).step_ps;
    c.plan.credit_bytes = 0;
    g_assert_cmpint(hidden, <, run(&c).step_ps);
    c.plan.startup_ps = 0;
    c.plan.barrier = true; /* nothing forward before all is back */
    g_assert_cmpint(run(&c).step_ps, >, one);
}

/* Four machines, two a pod, the server's alone in a third: what climbs takes as long as the uplinks of the pod need. */
static void test_pods(void)
{
    static const struct {
        int pod;
        double ratio, seconds;
    } cases[] = {{0, 0, 8}, {2, 1, 8}, {2, 2, 8}, {2, 4, 16}, {1, 4, 32}, {8, 4, 8}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Case c;
        case_init(&c, 4, 1);
        set_bytes(&c, 0, GB);
        c.plan.pod_machines = cases[i].pod;
        c.plan.pod_over_ratio = cases[i].ratio;
        g_assert_cmpfloat_with_epsilon((double)run(&c).step_ps * 1e-12, cases[i].seconds, 1e-6);
    }
}

/* Four servers on the machines of four workers: a quarter of the bytes stays, half of the rest climbs. */
static void test_pods_of_servers(void)
{
    Case c;
    case_init(&c, 4, 0);
    c.plan.server_count = 4;
    c.plan.layer_count = 4;
    for (int i = 0; i < 4; i++) {
        c.servers[i] = (SimServer){.machine = i, .weight = 1};
        set_bytes(&c, i, GB);
    }
    const double alone = (double)run(&c).step_ps;
    c.plan.pod_machines = 2;
    c.plan.pod_over_ratio =
        8; /* 4 GB climb from a pod over 0.25 GB/s, where NICs are through with 3 each in 3 s */
    g_assert_cmpfloat_with_epsilon((double)run(&c).step_ps, 2 * 16e12, 1e9);
    g_assert_cmpfloat(alone, <, 2 * 4e12);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/servers/timeline", test_timeline);
    g_test_add_func("/servers/single", test_single_server);
    g_test_add_func("/servers/half", test_half_the_servers);
    g_test_add_func("/servers/sharded", test_sharded);
    g_test_add_func("/servers/incast", test_incast);
    g_test_add_func("/servers/colocated", test_colocated_is_ring);
    g_test_add_func("/servers/byteps", test_byteps);
    g_test_add_func("/servers/overlap", test_overlap);
    g_test_add_func("/servers/stragglers", test_stragglers);
    g_test_add_func("/servers/bounded", test_bounded);
    g_test_add_func("/servers/normal", test_normal);
    g_test_add_func("/servers/async", test_async_network);
    g_test_add_func("/servers/credit", test_credit);
    g_test_add_func("/servers/pods", test_pods);
    g_test_add_func("/servers/pods-of-servers", test_pods_of_servers);
    return g_test_run();
}
