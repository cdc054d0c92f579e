/* tests/unit/network/test_network_forms.c - closed forms of flat algorithms, by what steps send over plain ports. */
#include <math.h>
#include <string.h>

#include "network/replay.h"
#include "tests/unit/network_fixture.h"

static double one(int n)
{
    (void)n;
    return 1;
}

static double two(int n)
{
    (void)n;
    return 2;
}

static double lg(int n)
{
    return net_log2_up(n);
}

static double lg_twice(int n)
{
    return 2 * lg(n);
}

static double all(int n)
{
    return n;
}

static double others(int n)
{
    return n - 1;
}

static double others_twice(int n)
{
    return 2 * others(n);
}

static double part(int n)
{
    return others(n) / n;
}

static double part_twice(int n)
{
    return 2 * part(n);
}

static double tree_and_ring(int n)
{
    return lg(n) + others(n);
}

static double none(int n)
{
    (void)n;
    return 0;
}

/* T = latencies a + wire S/B, as `orrery list collectives` prints it. */
static const struct {
    NetOp op;
    const char *name;
    double (*latencies)(int n), (*wire)(int n);
    bool powers; /* other numbers of ranks fold: steps and bytes more */
} rows[] = {
    {NET_SEND_RECV, "direct", one, one, false},
    {NET_BROADCAST, "binomial", lg, lg, false},
    {NET_BROADCAST, "direct", one, others, false},
    {NET_BROADCAST, "linear", others, others, false},
    {NET_BROADCAST, "scatter-ring", tree_and_ring, part_twice, false},
    {NET_REDUCE, "binomial", lg, lg, false},
    {NET_REDUCE, "direct", one, others, false},
    {NET_REDUCE, "linear", others, others, false},
    {NET_REDUCE, "halving-gather", lg_twice, part_twice, true},
    {NET_REDUCE, "ring-gather", all, part_twice, false},
    {NET_SCATTER, "binomial", lg, part, false},
    {NET_SCATTER, "linear", others, part, false},
    {NET_SCATTER, "direct", one, part, false},
    {NET_GATHER, "binomial", lg, part, false},
    {NET_GATHER, "linear", others, part, false},
    {NET_GATHER, "direct", one, part, false},
    {NET_ALL_GATHER, "ring", others, part, false},
    {NET_ALL_GATHER, "recursive-doubling", lg, part, true},
    {NET_ALL_GATHER, "bruck", lg, part, false},
    {NET_ALL_GATHER, "pat", lg, part, false},
    {NET_ALL_GATHER, "pairwise", others, part, false},
    {NET_ALL_GATHER, "direct", one, part, false},
    {NET_REDUCE_SCATTER, "ring", others, part, false},
    {NET_REDUCE_SCATTER, "recursive-halving", lg, part, true},
    {NET_REDUCE_SCATTER, "pat", lg, part, false},
    {NET_REDUCE_SCATTER, "pairwise", others, part, false},
    {NET_REDUCE_SCATTER, "direct", one, part, false},
    {NET_ALL_REDUCE, "ring", others_twice, part_twice, false},
    {NET_ALL_REDUCE, "halving-doubling-naive", lg_twice, lg_twice, false},
    {NET_ALL_REDUCE, "recursive-halving-doubling", lg_twice, part_twice, true},
    {NET_ALL_REDUCE, "butterfly", lg, lg, true},
    {NET_ALL_REDUCE, "binomial", lg_twice, lg_twice, false},
    {NET_ALL_REDUCE, "direct", two, part_twice, false},
    {NET_ALL_REDUCE, "one-shot", one, others, false},
    {NET_ALL_REDUCE, "nvls", two, one, false},
    {NET_ALL_TO_ALL, "pairwise", others, part, false},
    {NET_ALL_TO_ALL, "direct", one, part, false},
    {NET_BARRIER, "dissemination", lg, none, false},
    {NET_COPY, "direct", one, one, false},
    {NET_SIGNAL, "direct", one, none, false},
    {NET_SIGNAL, "binomial", lg, none, false},
    {NET_WAIT, "direct", one, none, false},
    {NET_WAIT, "binomial", lg, none, false},
};

/* Every flat algorithm without segments, both ways. */
static void closed_forms(void)
{
    for (int n = 2; n <= 17; n++) {
        NetTopology t = star(n, 50 * GB, 5000000);
        const NetShape shape = {.ranks = n, .dims = {n}, .dim_count = 1, .segments = 1};
        for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
            if (rows[i].powers && net_power_below(n) != n)
                continue;
            const double bytes = 5000.0 * 12252240; /* that every n up to 17 divides */
            const NetRun run = {.algorithm = net_algorithm_find(rows[i].op, rows[i].name, NULL),
                                .shape = shape,
                                .bytes = net_op_moves_data(rows[i].op) ? (int64_t)bytes : 0,
                                .topology = &t};
            NetResult r = {0};
            g_assert_true(net_run(&run, true, &r, NULL));
            const double form = rows[i].latencies(n) * 5e-6 + rows[i].wire(n) * bytes / (50.0 * (double)GB);
            if (fabs((double)r.analytic_ps * 1e-12 / form - 1) > 1e-9)
                g_error("%s %s over %d: %g s, not %g", net_op_name(rows[i].op), rows[i].name, n,
                        (double)r.analytic_ps * 1e-12, form);
            g_assert_cmpint(r.flow_ps, ==,
                            r.analytic_ps); /* a port is one message's at a time, or evenly shared */
            net_result_clear(&r);
        }
        net_topology_clear(&t);
    }
}

static void assert_same(const NetRun *run, const NetResult *whole, const NetResult *repeated)
{
    g_assert_cmpint(repeated->flow_ps, ==, whole->flow_ps);
    g_assert_cmpint(repeated->analytic_ps, ==, whole->analytic_ps);
    g_assert_cmpint(repeated->messages, ==, whole->messages);
    g_assert_cmpint(repeated->sent_least, ==, whole->sent_least);
    g_assert_cmpint(repeated->sent_most, ==, whole->sent_most);
    g_assert_cmpint(repeated->flows, ==, whole->flows);
    g_assert_cmpint(repeated->fullest_link, ==, whole->fullest_link);
    g_assert_cmpint(repeated->fullest_link_bytes, ==, whole->fullest_link_bytes);
    for (int s = 0; s < whole->step_count; s++)
        if (repeated->steps[s].end_ps != whole->steps[s].end_ps ||
            repeated->steps[s].bytes != whole->steps[s].bytes)
            g_error("%s on %s, step %d: ends at %" G_GINT64_FORMAT " ps, not %" G_GINT64_FORMAT,
                    run->algorithm->name, run->topology->name, s, repeated->steps[s].end_ps,
                    whole->steps[s].end_ps);
}

/* Flows of one collective that were not worked out, for they went as those of the step before. */
static int64_t compare(NetRun run)
{
    NetResult whole = {0}, repeated = {0};
    run.every_step = true;
    g_assert_true(net_run(&run, true, &whole, NULL));
    g_assert_cmpint(whole.repeated_flows, ==, 0);
    run.every_step = false;
    g_assert_true(net_run(&run, true, &repeated, NULL));
    assert_same(&run, &whole, &repeated);
    const int64_t spared = repeated.repeated_flows;
    net_result_clear(&whole);
    net_result_clear(&repeated);
    return spared;
}

/* Steps that stand for others change no picosecond, on any fabric, with bytes that come out even or do not. */
static void repeated_steps(void)
{
    int fabric_count = 0;
    const NetTopologyRow *fabrics = net_topologies(&fabric_count);
    const NetFabric fabric = {.gpus = 16,
                              .gpus_per_node = 4,
                              .up_bytes_per_s = 400 * GB,
                              .out_bytes_per_s = 25 * GB,
                              .up_latency_ps = 2000000,
                              .out_latency_ps = 5000000,
                              .leaf_gpus = 4,
                              .dims = {4, 4},
                              .dim_count = 2};
    int count = 0;
    const NetAlgorithm *all_rows = net_algorithms(&count);
    for (int f = 0; f < fabric_count; f++) {
        NetFabric own = fabric;
        if (strcmp(fabrics[f].name, "tpu-cubes") == 0)
            memcpy(own.dims, (const int[]){4, 4, 4}, sizeof(int) * 3), own.dim_count = 3, own.gpus = 64;
        NetTopology t = built(fabrics[f].name, &own);
        int64_t spared = 0;
        for (int i = 0; i < 2 * count; i++) {
            const NetShape shape = {.ranks = 16, .dims = {4, 4}, .dim_count = 2, .segments = 8};
            const NetRun run = {.algorithm = &all_rows[i / 2],
                                .shape = shape,
                                .bytes = i % 2 == 0 ? 1 << 25 : 10000019,
                                .topology = &t,
                                .routing = i / 2 % 3 == 0 ? NET_ROUTE_E_ECMP : NET_ROUTE_SHORTEST,
                                .seed = (uint64_t)i};
            if (net_algorithm_refuses(run.algorithm, &shape) == NULL &&
                (net_algorithm_switches(run.algorithm, &shape) == 0 || f == 0))
                spared += compare(run);
        }
        g_assert_cmpint(spared, >, 0);
        net_topology_clear(&t);
    }
}

/* A fabric of 16 GPUs, up to three of whose links are slow. */
static NetTopology uneven(GRand *rand)
{
    static const char *const fabrics[] = {"nvswitch", "rail", "fat-tree", "torus", "boards"};
    const NetFabric fabric = {.gpus = 16,
                              .gpus_per_node = 4,
                              .up_bytes_per_s = 400 * GB,
                              .out_bytes_per_s = g_rand_int_range(rand, 1, 50) * GB,
                              .up_latency_ps = g_rand_int_range(rand, 0, 3) * 1000000,
                              .out_latency_ps = g_rand_int_range(rand, 0, 3) * 2500000,
                              .leaf_gpus = 4,
                              .dims = {4, 4},
                              .dim_count = 2};
    NetTopology t = built(fabrics[g_rand_int_range(rand, 0, G_N_ELEMENTS(fabrics))], &fabric);
    for (int slow = g_rand_int_range(rand, 0, 4); slow > 0; slow--)
        t.links[g_rand_int_range(rand, 0, t.link_count)].bytes_per_s /= g_rand_int_range(rand, 2, 9);
    return t;
}

/* The same where links are slow, over part of a fabric's GPUs, on all routings. */
static void repeated_on_uneven_fabrics(void)
{
    GRand *rand = g_rand_new_with_seed(20261123);
    int64_t spared = 0;
    int count = 0;
    const NetAlgorithm *all_rows = net_algorithms(&count);
    for (int draw = 0; draw < 4000; draw++) {
        NetTopology t = uneven(rand);
        const int ranks = 2 * g_rand_int_range(rand, 1, 9);
        const NetShape shape = {.ranks = ranks, .dims = {ranks}, .dim_count = 1, .segments = 4};
        const NetRun run = {.algorithm = &all_rows[g_rand_int_range(rand, 0, count)],
                            .shape = shape,
                            .bytes = g_rand_boolean(rand) ? 12252240 : g_rand_int_range(rand, 1, 1 << 24),
                            .topology = &t,
                            .routing = (NetRouting)g_rand_int_range(rand, 0, NET_ROUTE_RAIL + 1),
                            .seed = g_rand_int(rand)};
        if (net_algorithm_refuses(run.algorithm, &shape) == NULL &&
            net_algorithm_switches(run.algorithm, &shape) == 0)
            spared += compare(run);
        net_topology_clear(&t);
    }
    g_assert_cmpint(spared, >, 0);
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network/closed-forms", closed_forms);
    g_test_add_func("/network/repeated-steps", repeated_steps);
    g_test_add_func("/network/repeated-on-uneven-fabrics", repeated_on_uneven_fabrics);
    return g_test_run();
}
