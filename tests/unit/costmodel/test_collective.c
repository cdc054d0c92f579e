/* Collectives: bytes, and the properties of the time model. */
#include <glib.h>
#include <math.h>

#include "costmodel/collective.h"
#include "costmodel/nccl.h"
#include "costmodel/nic.h"

static void within(double got, double want, double tolerance_frac)
{
    g_assert_cmpfloat(fabs(got - want), <=, tolerance_frac * fabs(want));
}

static SpecCluster cluster(void)
{
    SpecCluster c = {.gpus_per_node = 8, .nodes = 64, .scale_up_domain_gpus = 8, .oversubscription = 1};
    c.accelerator.generation = *spec_generation("hopper");
    c.accelerator.reference_scale_out_bytes_per_s_per_gpu = 50e9;
    c.accelerator.host_link_bytes_per_s = 60e9;
    c.scale_up_bytes_per_s = c.accelerator.scale_up_bytes_per_s = 450e9;
    c.scale_out_bytes_per_s_per_gpu = 50e9;
    c.scale_out_latency_s = 5e-6;
    SpecCollectiveModel *m = &c.accelerator.model.collectives;
    *m = spec_collective_model_default;
    m->ll128_frac = 0.7, m->ll128_hop_s = 2e-6;
    m->nvls_channels = 8, m->nvls_channel_bytes_per_s = 40e9, m->nvls_min_ranks = 5;
    m->nvls_latency_s = 12e-6, m->nvls_fill_s = 30e-6, m->nvls_frac = 1.1;
    return c;
}

#define GROUP(n, p, sharers) ((CostGroup){.ranks = (n), .per_domain = (p), .nic_sharers = (sharers)})

static const CostGroup groups[] = {GROUP(2, 2, 1),   GROUP(4, 4, 1),   GROUP(8, 8, 1),  GROUP(16, 8, 1),
                                   GROUP(64, 8, 1),  GROUP(2, 1, 1),   GROUP(64, 1, 1), GROUP(16, 2, 1),
                                   GROUP(64, 1, 4),  GROUP(512, 8, 1), GROUP(6, 6, 1),  GROUP(12, 6, 1),
                                   GROUP(500, 1, 1), GROUP(3, 3, 1)};

static double seconds(const SpecCluster *c, int op, double bytes, CostGroup group)
{
    CostCollective collective = {(CostCollectiveOp)op, bytes, group};
    return cost_collective_s(c, &collective);
}

static void test_longer_takes_longer(void)
{
    SpecCluster c = cluster();
    for (int op = 0; op < COST_COLLECTIVE_COUNT; op++)
        for (guint g = 0; g < G_N_ELEMENTS(groups); g++) {
            double before = 0;
            for (double log_bytes = 3; log_bytes < 36; log_bytes += 0.0625) {
                double now = seconds(&c, op, exp2(log_bytes), groups[g]);
                g_assert_cmpfloat(now, >=, before);
                before = now;
            }
        }
}

/* Without GPUDirect half of a PCIe link is what a NIC gets: 16 of 31.5 GB/s whatever the card; a card slower than that keeps
 * its rate; inside a node nothing changes. */
static void test_host_copies(void)
{
    SpecCluster direct = cluster();
    direct.accelerator.host_link_bytes_per_s = 31.5e9;
    SpecCluster copied = direct, slow = direct, slow_copied;
    copied.network.host_copies = true;
    const CostGroup across = GROUP(8, 1, 1), inside = GROUP(8, 8, 1);
    const double bytes = 4e9, least = 7.0 / 8 * bytes;
    within(cost_host_copy_bytes_per_s(&copied), 16e9, 1e-9);
    const double copied_s = seconds(&copied, COST_ALL_GATHER, bytes, across);
    g_assert_cmpfloat(copied_s, >=, least / 16e9);
    within(copied_s, least / 16e9, 0.06); /* eight nodes' congestion besides */
    g_assert_cmpfloat(seconds(&direct, COST_ALL_GATHER, bytes, across), <, least / 40e9);
    g_assert_cmpfloat(seconds(&copied, COST_ALL_GATHER, bytes, inside), ==,
                      seconds(&direct, COST_ALL_GATHER, bytes, inside));
    slow.scale_out_bytes_per_s_per_gpu = 12.5e9;
    slow_copied = slow;
    slow_copied.network.host_copies = true;
    within(seconds(&slow_copied, COST_ALL_GATHER, bytes, across),
           seconds(&slow, COST_ALL_GATHER, bytes, across), 1e-3);
}

/* A crowd is of the card's line: what waits for the host as long by itself waits no longer for a crowd of that size, and a
 * faster card, whose crowd grows with it, is never slower. */
static void test_host_copies_crowded(void)
{
    SpecCluster copied = cluster();
    copied.accelerator.host_link_bytes_per_s = 31.5e9;
    copied.network.host_copies = true;
    const double line = copied.scale_out_bytes_per_s_per_gpu, bytes = 4e9;
    CostGroup alone = GROUP(8, 1, 1), same = alone, twice = alone;
    same.out_crowding = line / 16e9;
    twice.out_crowding = 2 * line / 16e9;
    const double base = seconds(&copied, COST_ALL_GATHER, bytes, alone);
    within(seconds(&copied, COST_ALL_GATHER, bytes, same), base, 1e-9);
    within(seconds(&copied, COST_ALL_GATHER, bytes, twice), 2 * base, 0.02);
    for (double times = 1.5; times < 9; times *= 1.5) {
        SpecCluster faster = copied;
        CostGroup crowded = alone;
        faster.scale_out_bytes_per_s_per_gpu = line * times;
        crowded.out_crowding = twice.out_crowding * times;
        g_assert_cmpfloat(seconds(&faster, COST_ALL_GATHER, bytes, crowded), <=,
                          seconds(&copied, COST_ALL_GATHER, bytes, twice) * (1 + 1e-9));
    }
}

/* Nor does NCCL use LL128 between nodes then, as where the machine has none; inside a node it does. */
static void test_host_copies_without_ll128(void)
{
    SpecCluster direct = cluster();
    direct.accelerator.model.collectives.nvls_channels = 0;
    SpecCluster never = direct, copied = direct, copied_never;
    never.accelerator.model.collectives.ll128_frac = 0;
    copied.network.host_copies = true;
    copied_never = never;
    copied_never.network.host_copies = true;
    const CostGroup across = GROUP(64, 8, 1), inside = GROUP(8, 8, 1);
    int differ = 0;
    for (double bytes = 1024; bytes < 4e9; bytes *= 2) {
        g_assert_cmpfloat(seconds(&copied, COST_ALL_GATHER, bytes, across), ==,
                          seconds(&copied_never, COST_ALL_GATHER, bytes, across));
        g_assert_cmpfloat(seconds(&copied, COST_ALL_GATHER, bytes, inside), ==,
                          seconds(&direct, COST_ALL_GATHER, bytes, inside));
        differ += seconds(&direct, COST_ALL_GATHER, bytes, across) !=
                  seconds(&never, COST_ALL_GATHER, bytes, across);
    }
    g_assert_cmpint(differ, >, 0);
}

/* Better links never slow a collective down. */
static void test_better_links(void)
{
    SpecCluster c = cluster(), up = c, out = c, low = c;
    up.scale_up_bytes_per_s *= 2;
    out.scale_out_bytes_per_s_per_gpu *= 2;
    low.scale_out_latency_s = 1e-6;
    for (int op = 0; op < COST_COLLECTIVE_COUNT; op++)
        for (guint g = 0; g < G_N_ELEMENTS(groups); g++)
            for (double bytes = 1024; bytes < 1e11; bytes *= 3) {
                double base = seconds(&c, op, bytes, groups[g]);
                g_assert_cmpfloat(base, >, 0);
                g_assert_cmpfloat(seconds(&up, op, bytes, groups[g]), <=, base);
                g_assert_cmpfloat(seconds(&out, op, bytes, groups[g]), <=, base);
                g_assert_cmpfloat(seconds(&low, op, bytes, groups[g]), <=, base);
                CostGroup crowded = groups[g];
                crowded.out_crowding = 7;
                g_assert_cmpfloat(seconds(&c, op, bytes, crowded), >=, base);
            }
}

static void test_alone(void)
{
    SpecCluster c = cluster();
    CostGroup one = {.ranks = 1, .per_domain = 1, .nic_sharers = 1};
    for (int op = 0; op < COST_COLLECTIVE_COUNT; op++) {
        CostCollective collective = {(CostCollectiveOp)op, 1e9, one};
        CostTraffic traffic = cost_collective_traffic(&collective);
        g_assert_cmpfloat(seconds(&c, op, 1e9, one), ==, 0);
        g_assert_cmpfloat(traffic.scale_up_bytes + traffic.scale_out_bytes, ==, 0);
        g_assert_cmpfloat(cost_collective_sm_frac(&c, &collective), ==, 0);
        g_assert_cmpfloat(seconds(&c, op, 0, groups[2]), ==, 0);
    }
}

/* All-reduce sends what reduce-scatter and all-gather send; all of it is (n-1)/n twice; nothing crosses nodes in
 * a node. */
static void test_bytes(void)
{
    const double s = 3e8;
    for (guint i = 0; i < G_N_ELEMENTS(groups); i++) {
        CostGroup g = groups[i];
        double n = g.ranks;
        CostCollective reduce = {COST_ALL_REDUCE, s, g}, gather = {COST_ALL_GATHER, s, g};
        CostCollective scatter = {COST_REDUCE_SCATTER, s, g}, all = {COST_ALL_TO_ALL, s, g};
        CostTraffic ar = cost_collective_traffic(&reduce), ag = cost_collective_traffic(&gather);
        CostTraffic rs = cost_collective_traffic(&scatter), a2a = cost_collective_traffic(&all);
        within(ar.scale_up_bytes, ag.scale_up_bytes + rs.scale_up_bytes, 1e-12);
        within(ar.scale_out_bytes, ag.scale_out_bytes + rs.scale_out_bytes, 1e-12);
        within(ar.scale_up_bytes + ar.scale_out_bytes, 2 * (n - 1) / n * s, 1e-12);
        within(a2a.scale_up_bytes + a2a.scale_out_bytes, (n - 1) / n * s, 1e-12);
        if (g.per_domain == g.ranks)
            g_assert_cmpfloat(ar.scale_out_bytes + a2a.scale_out_bytes, ==, 0);
        if (g.per_domain == 1)
            g_assert_cmpfloat(ar.scale_up_bytes + a2a.scale_up_bytes, ==, 0);
    }
}

/* Long messages approach the wire: NVLink inside, every NIC of the node across, one's own NIC for all-to-all. */
static void test_plateaus(void)
{
    SpecCluster c = cluster();
    const SpecCollectiveModel *m = &c.accelerator.model.collectives;
    const double s = 64e9;
    double ring = s * 7 / 8 / (450e9 * m->ring_frac) + s / 8 / (450e9 * m->copy_frac);
    within(seconds(&c, COST_ALL_GATHER, s, GROUP(8, 8, 1)), ring, 0.02);
    within(seconds(&c, COST_ALL_REDUCE, s, GROUP(8, 8, 1)), s * 14 / 8 / (450e9 * m->nvls_frac), 0.02);
    double nic = 50e9 * m->nic_frac / (1 + 2 * m->net_congestion_frac);
    within(seconds(&c, COST_ALL_GATHER, s, GROUP(64, 8, 1)),
           s * 63 / 64 / (8 * nic) + s / 64 / (450e9 * m->copy_frac), 0.02);
    within(seconds(&c, COST_ALL_TO_ALL, s, GROUP(64, 8, 1)), s * 56 / 64 / nic, 0.02);
    within(seconds(&c, COST_ALL_GATHER, s, GROUP(8, 1, 4)), 4 * s * 7 / 8 / nic, 0.02);
    within(seconds(&c, COST_SEND_RECV, s, GROUP(2, 1, 1)), s / (50e9 * m->nic_frac), 0.02);
    within(seconds(&c, COST_SEND_RECV, s, GROUP(2, 2, 1)), s / (450e9 * m->alltoall_frac), 0.02);
}

/* Rings of LL128 go round once for every 576,000 bytes of a rank's part of a channel; what a plug-in tells of its
 * network fixes the choice, so that nothing else is tried. */
static void test_rounds(void)
{
    SpecCluster c = cluster();
    c.accelerator.model.collectives.nvls_channels = 0;
    c.collectives = c.accelerator.model.collectives;
    SpecCollectiveModel *net = &c.collectives;
    net->fitted = 1, net->net_channels = 16, net->net_told_latency_s = 75e-6, net->net_stripe_s = 100e-6,
    net->net_stripe_bytes = 1;
    const double part = 16.0 * 16, full = 576000 * part, step = 4096 * part;
    const double one = seconds(&c, COST_ALL_REDUCE, full - step, GROUP(16, 8, 1)),
                 edge = seconds(&c, COST_ALL_REDUCE, full, GROUP(16, 8, 1)),
                 two = seconds(&c, COST_ALL_REDUCE, full + step, GROUP(16, 8, 1));
    const double across = 30 * 2 / 16.0, hop = c.scale_out_latency_s + net->net_latency_s + 1.3e-6 +
                                               net->net_rendezvous_s + net->net_stripe_s;
    within(two - edge - (edge - one), across * hop + (30 - across) * net->ll128_hop_s, 0.01);
}

/* NVLink-SHARP: the fill grows with the heads, up to NCCL's 32; nothing else of a plateau does. */
static void test_heads(void)
{
    SpecCluster c = cluster();
    c.gpus_per_node = c.scale_up_domain_gpus = 72;
    const SpecCollectiveModel *m = &c.accelerator.model.collectives;
    const double s = 4e9;
    for (int p = 8; p <= 64; p *= 2) {
        const double wire = s * 2 * (p - 1) / p, fill = sqrt(m->nvls_fill_s * MIN(p, 32) / 8 * wire / 450e9);
        within(seconds(&c, COST_ALL_REDUCE, s, GROUP(p, p, 1)),
               m->offset_s + m->nvls_latency_s + fill + wire / (450e9 * m->nvls_frac), 1e-9);
    }
}

/* Half a block in the cluster replaces that half only. */
static void test_halves(void)
{
    SpecCluster c = cluster(), slow = c;
    slow.collectives.fitted = 1;
    slow.collectives.nic_frac = 0.5;
    slow.collectives.tree_frac = slow.collectives.nvls_tree_frac = 1;
    CostGroup inside = {.ranks = 8, .per_domain = 8, .nic_sharers = 1},
              across = {.ranks = 8, .per_domain = 1, .nic_sharers = 1};
    g_assert_cmpfloat(seconds(&slow, COST_ALL_GATHER, 1e9, inside), ==,
                      seconds(&c, COST_ALL_GATHER, 1e9, inside));
    g_assert_cmpfloat(seconds(&slow, COST_ALL_GATHER, 1e9, across), >,
                      1.7 * seconds(&c, COST_ALL_GATHER, 1e9, across));
}

/* DGX-1: two GPUs share one link of six, eight use all; a mesh of direct links gives a pair one of seven. */
static void test_topologies(void)
{
    SpecCluster c = cluster();
    c.accelerator.model.collectives.copy_frac = 0;
    double all = seconds(&c, COST_ALL_GATHER, 1e10, GROUP(8, 8, 1));
    double pair = seconds(&c, COST_ALL_GATHER, 1e10, GROUP(2, 2, 1));
    c.topology = SPEC_TOPOLOGY_CUBE_MESH;
    within(seconds(&c, COST_ALL_GATHER, 1e10, GROUP(8, 8, 1)), all, 0.01);
    within(seconds(&c, COST_ALL_GATHER, 1e10, GROUP(2, 2, 1)), 6 * pair, 0.01);
    c.topology = SPEC_TOPOLOGY_MESH;
    within(seconds(&c, COST_ALL_GATHER, 1e10, GROUP(8, 8, 1)), all, 0.01);
    within(seconds(&c, COST_ALL_GATHER, 1e10, GROUP(2, 2, 1)), 7 * pair, 0.01);
}

/* Of a square of 16 x 16 chips the whole wraps around; 8 x 16 along one side; 8 x 8 and 2 x 4 not at all; two are a line. */
static void test_squares(void)
{
    static const struct {
        int chips;
        double links;
    } CASES[] = {{256, 4}, {128, 3}, {64, 2}, {32, 2}, {8, 2}, {4, 2}, {2, 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        SpecCluster c = cluster();
        const int n = CASES[i].chips;
        c.accelerator.model.collectives.copy_frac = 0;
        c.accelerator.reference_scale_up_domain_gpus = 256;
        c.scale_up_domain_gpus = n;
        const double all = seconds(&c, COST_ALL_GATHER, 1e13, GROUP(n, n, 1));
        c.topology = SPEC_TOPOLOGY_TORUS2D;
        within(seconds(&c, COST_ALL_GATHER, 1e13, GROUP(n, n, 1)), all * 4 / CASES[i].links, 0.01);
    }
}

/* One rank a domain has no neighbour on the mesh: its bytes leave by the NIC, as fast as behind a switch. */
static void test_alone_on_a_mesh(void)
{
    const CostCollectiveOp ops[] = {COST_ALL_REDUCE, COST_ALL_GATHER, COST_REDUCE_SCATTER, COST_ALL_TO_ALL,
                                    COST_SEND_RECV};
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++) {
        SpecCluster c = cluster();
        double behind_a_switch = seconds(&c, ops[i], 1e9, GROUP(4, 1, 1));
        c.topology = SPEC_TOPOLOGY_MESH;
        within(seconds(&c, ops[i], 1e9, GROUP(4, 1, 1)), behind_a_switch, 0.01);
    }
}

static void test_sm_share(void)
{
    SpecCluster c = cluster();
    const SpecCollectiveModel *m = &c.accelerator.model.collectives;
    CostCollective ring = {COST_ALL_GATHER, 1e8, GROUP(8, 8, 1)},
                   net = {COST_ALL_GATHER, 1e8, GROUP(8, 1, 1)};
    g_assert_cmpfloat(cost_collective_sm_frac(&c, &ring), ==, m->ring_sm_frac);
    g_assert_cmpfloat(cost_collective_sm_frac(&c, &net), ==, m->net_sm_frac);
}

/* Eight ranks as 4 + 4, 5 + 3, 7 + 1: the node with the fewest has the fewest NICs. */
static void test_uneven(void)
{
    SpecCluster c = cluster();
    const CostCollectiveOp ops[] = {COST_ALL_REDUCE, COST_ALL_GATHER, COST_REDUCE_SCATTER, COST_ALL_TO_ALL};
    for (size_t i = 0; i < G_N_ELEMENTS(ops); i++) {
        double before = seconds(&c, ops[i], 1e9, GROUP(8, 4, 1));
        for (int rails = 4; rails > 0; rails--) {
            const CostGroup group = {
                .ranks = 8, .per_domain = rails == 4 ? 4 : 1, .nic_sharers = 1, .domains = 2, .rails = rails};
            const double now = seconds(&c, ops[i], 1e9, group);
            if (rails == 4)
                within(now, before, 1e-12);
            else
                g_assert_cmpfloat(now, >, before);
            before = now;
        }
    }
}

/* Of a domain of 72 the 32 heads of NVLink-SHARP send between domains: slow NICs carry 2 S / 32 at least. */
static void test_heads_have_nics(void)
{
    SpecCluster c = cluster();
    const double bytes = 16e9;
    c.gpus_per_node = 4, c.scale_up_domain_gpus = 72, c.nodes = 360;
    for (double nic = 1e9; nic <= 8e9; nic *= 2) {
        c.scale_out_bytes_per_s_per_gpu = nic;
        const CostCollective all = {COST_ALL_REDUCE, bytes, GROUP(1440, 72, 1)},
                             half = {COST_ALL_REDUCE, bytes, GROUP(640, 32, 1)};
        const double seconds = cost_collective_by_s(&c, &all, COST_NCCL_NVLS_TREE);
        g_assert_cmpfloat(seconds, >=, 2 * bytes / (32 * nic));
        within(seconds, cost_collective_by_s(&c, &half, COST_NCCL_NVLS_TREE), 0.01);
    }
}

/* Behind one leaf a hash has no choice; beyond it endless messages take 95/60 of the wire. */
static void test_hashed(void)
{
    static const int ops[] = {COST_ALL_REDUCE, COST_ALL_GATHER, COST_REDUCE_SCATTER};
    SpecCluster balanced = cluster(), hashed = balanced, wide = balanced;
    hashed.network.routing = wide.network.routing = SPEC_ROUTING_ECMP;
    wide.network.leaf_gpus = 64;
    for (guint o = 0; o < G_N_ELEMENTS(ops); o++)
        for (int nodes = 1; nodes <= 64; nodes *= 2) {
            const CostGroup group = GROUP(8 * nodes, 8, 1);
            const double even = seconds(&balanced, ops[o], exp2(40), group),
                         got = seconds(&hashed, ops[o], exp2(40), group);
            g_assert_cmpfloat(seconds(&wide, ops[o], exp2(40), group), ==, even);
            if (nodes <= 32)
                g_assert_cmpfloat(got, ==, even);
            else
                within(got, even * 0.95 / 0.60 / (1 + 0.02 * log2(nodes / 2.0)), 0.02);
        }
    g_assert_cmpfloat(balanced.accelerator.model.collectives.net_congestion_frac, ==, 0.02);
}

/* 32 GPUs of a leaf are a GPU of 32 nodes on rails, and four whole nodes of 8 elsewhere. */
static void test_leaves(void)
{
    SpecCluster balanced = cluster(), hashed = balanced;
    hashed.network.routing = SPEC_ROUTING_ECMP;
    hashed.network.leaf_gpus = 32;
    for (int nodes = 2; nodes <= 64; nodes *= 2) {
        const CostGroup group = GROUP(8 * nodes, 8, 1);
        const double even = seconds(&balanced, COST_ALL_REDUCE, exp2(40), group);
        hashed.network.topology = "leaf-spine";
        const double spines = seconds(&hashed, COST_ALL_REDUCE, exp2(40), group);
        hashed.network.topology = "rail";
        const double rails = seconds(&hashed, COST_ALL_REDUCE, exp2(40), group);
        hashed.network.topology = NULL;
        g_assert_cmpfloat(seconds(&hashed, COST_ALL_REDUCE, exp2(40), group), ==, rails);
        g_assert_true((spines > even) == (nodes > 4));
        g_assert_true((rails > even) == (nodes > 32));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/collective/longer-takes-longer", test_longer_takes_longer);
    g_test_add_func("/collective/host-copies", test_host_copies);
    g_test_add_func("/collective/host-copies-crowded", test_host_copies_crowded);
    g_test_add_func("/collective/host-copies-without-ll128", test_host_copies_without_ll128);
    g_test_add_func("/collective/better-links", test_better_links);
    g_test_add_func("/collective/alone", test_alone);
    g_test_add_func("/collective/bytes", test_bytes);
    g_test_add_func("/collective/plateaus", test_plateaus);
    g_test_add_func("/collective/rounds", test_rounds);
    g_test_add_func("/collective/heads", test_heads);
    g_test_add_func("/collective/halves", test_halves);
    g_test_add_func("/collective/topologies", test_topologies);
    g_test_add_func("/collective/squares", test_squares);
    g_test_add_func("/collective/alone-on-a-mesh", test_alone_on_a_mesh);
    g_test_add_func("/collective/sm-share", test_sm_share);
    g_test_add_func("/collective/uneven", test_uneven);
    g_test_add_func("/collective/heads-have-nics", test_heads_have_nics);
    g_test_add_func("/collective/hashed", test_hashed);
    g_test_add_func("/collective/leaves", test_leaves);
    return g_test_run();
}
