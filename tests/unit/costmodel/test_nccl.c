/* NCCL's choice: the published constants, and the switches that users see on real machines. */
#include <glib.h>
#include <math.h>

#include "costmodel/nccl.h"

/* Eight GPUs behind one NVSwitch: rings of 12 x 30 GB/s, NVLink-SHARP of 8 x 40 GB/s. */
static CostNcclQuery hopper_node(CostCollectiveOp op, double bytes)
{
    return (CostNcclQuery){.op = op,
                           .bytes = bytes,
                           .ranks = 8,
                           .nodes = 1,
                           .nccl_row = 2,
                           .nvlink = true,
                           .ll128 = true,
                           .ring = {12, 30e9, 30e9},
                           .tree = {12, 30e9, 30e9},
                           .nvls = {8, 40e9, 45e9}};
}

static void close_to(double got, double want)
{
    g_assert_cmpfloat_with_epsilon(got, want, 1e-9 * fabs(want));
}

/* By hand from the tables: L + S n / (steps W). */
static void test_ring_estimates(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_GATHER, 1e6);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_LL),
             1e-6 * (6.6 + 7 * 0.6) + 1e6 * 7 / 8 / 141e9);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_LL128),
             1e-6 * (14 + 7 * 1.9) + 1e6 * 7 / 8 / (0.92 * 360e9));
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_SIMPLE),
             1e-6 * (8.4 + 7 * 3.4) + 1e6 * 7 / 8 / 360e9);
    q.op = COST_ALL_REDUCE;
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_SIMPLE),
             1e-6 * (8.4 + 14 * 3.4) + 1e6 * 14 / 8 / 360e9);
    q.op = COST_BROADCAST;
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_SIMPLE), 1e-6 * (8.4 + 4.0) + 1e6 / 360e9);
}

static void test_nvls_and_tree_estimates(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_REDUCE, 1 << 30);
    double s = q.bytes, nvls = 8 * 40e9 * 0.85 * 7 / 8 * 2;
    g_assert_cmpfloat_with_epsilon(nvls, 476e9, 1e9);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_NVLS, COST_NCCL_SIMPLE), 25e-6 + s * 14 / 8 / nvls);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_TREE, COST_NCCL_SIMPLE),
             1e-6 * (8.4 + 14 * 4.0) + s * 2 / (0.92 * 360e9));
    q.bytes = 1 << 20; /* index 14 of the correction table: 0.5 */
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_TREE, COST_NCCL_SIMPLE),
             1e-6 * (8.4 + 14 * 4.0) + q.bytes * 2 / (0.92 * 360e9) / 0.5);
    g_assert_true(isinf(cost_nccl_estimate_s(&q, COST_NCCL_NVLS, COST_NCCL_LL)));
    g_assert_true(isinf(cost_nccl_estimate_s(&q, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE)));
    g_assert_true(isinf(cost_nccl_estimate_s(&q, COST_NCCL_COLLNET_DIRECT, COST_NCCL_SIMPLE)));
}

/* Four nodes: m of the ring's steps cross the network; SIMPLE steps cost at least 3 us of CPU overhead. */
static void test_across_nodes(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_REDUCE, 64e6);
    q.ranks = 32, q.nodes = 4;
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_LL),
             1e-6 * (6.6 + 56 * 1.0 + 6 * 2.7) + 64e6 * 62 / 32 / 20.4e9);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_SIMPLE),
             1e-6 * 1.4 * (8.4 + 56 * 3.4 + 6 * 14) + 64e6 * 62 / 32 / 360e9);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE),
             1e-6 * (25 + 4 * 20.9) + 64e6 * 62 / 32 / 360e9);
    q.op = COST_ALL_GATHER, q.ranks = 4;
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_PAT, COST_NCCL_SIMPLE),
             1e-6 * (8 + 2 * 14 / 3.5 + 2.8 * 4) + 64e6 / (0.75 * 360e9));
}

static void choice_is(const CostNcclQuery *q, CostNcclAlgorithm algorithm, CostNcclProtocol protocol)
{
    CostNcclChoice choice = cost_nccl_choose(q);
    g_assert_cmpstr(cost_nccl_algorithm_name(choice.algorithm), ==, cost_nccl_algorithm_name(algorithm));
    g_assert_cmpstr(cost_nccl_protocol_name(choice.protocol), ==, cost_nccl_protocol_name(protocol));
}

/* Seen on 8 x H200: LL up to 1 MiB, NVLink-SHARP from 2 MiB. [MlEngineering] */
static void test_switch_to_nvls(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_REDUCE, 1 << 20);
    choice_is(&q, COST_NCCL_RING, COST_NCCL_LL);
    q.bytes = 2 << 20;
    choice_is(&q, COST_NCCL_NVLS, COST_NCCL_SIMPLE);
}

/* The regions of EFA's plug-in: all-reduce of 256 MiB over 2 to 64 p5 nodes; other operations and shapes are NCCL's. */
static void test_plugin_regions(void)
{
    static const struct {
        int nodes;
        double bytes;
        CostNcclAlgorithm algorithm;
        CostNcclProtocol protocol;
    } told[] = {
        {2, 31457280, COST_NCCL_TREE, COST_NCCL_LL128},
        {2, 268435456, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE},
        {4, 268435456, COST_NCCL_RING, COST_NCCL_LL128},
        {8, 268435456, COST_NCCL_RING, COST_NCCL_LL128},
        {16, 268435456, COST_NCCL_TREE, COST_NCCL_LL128},
        {64, 268435456, COST_NCCL_TREE, COST_NCCL_LL128},
        {64, 1e9, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE},
        {4, 8e9, COST_NCCL_RING, COST_NCCL_SIMPLE},
        {2000, 6e8, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(told); i++) {
        CostNcclQuery q = hopper_node(COST_ALL_REDUCE, told[i].bytes);
        q.ranks = 8 * told[i].nodes, q.nodes = told[i].nodes, q.tuner = SPEC_TUNER_AWS_P5;
        choice_is(&q, told[i].algorithm, told[i].protocol);
        CostNcclAlgorithm algorithm;
        CostNcclProtocol protocol;
        g_assert_true(cost_nccl_region(&q, &algorithm, &protocol));
        q.tuner = SPEC_TUNER_NCCL;
        g_assert_false(cost_nccl_region(&q, &algorithm, &protocol));
        q.tuner = SPEC_TUNER_AWS_P5, q.op = COST_ALL_GATHER;
        g_assert_false(cost_nccl_region(&q, &algorithm, &protocol));
        q.op = COST_ALL_REDUCE, q.ranks = 4 * told[i].nodes;
        g_assert_false(cost_nccl_region(&q, &algorithm, &protocol));
    }
}

/* Those of p5en and p6 lie on logarithms: points inside, and beside an edge that is straight there and not on bytes. */
static void test_regions_of_logarithms(void)
{
    static const struct {
        SpecTuner tuner;
        CostCollectiveOp op;
        int nodes;
        double bytes;
        CostNcclAlgorithm algorithm;
        CostNcclProtocol protocol;
    } told[] = {
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 4, 131072, COST_NCCL_TREE, COST_NCCL_LL},
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 4, 8388608, COST_NCCL_TREE, COST_NCCL_LL128},
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 4, 67108864, COST_NCCL_RING, COST_NCCL_LL128},
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 4, 4294967296, COST_NCCL_RING, COST_NCCL_SIMPLE},
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 16, 1073741824, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE},
        /* the ring's edge from 509,607,936 bytes and 32 ranks to 7,516,192,768 and 256: at 88 ranks it is at
         * 1.89e9, where a plane of bytes would have 2.26e9 */
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 11, 1.8e9, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE},
        {SPEC_TUNER_AWS_P5EN, COST_ALL_REDUCE, 11, 2.1e9, COST_NCCL_RING, COST_NCCL_SIMPLE},
        {SPEC_TUNER_AWS_P5EN, COST_ALL_GATHER, 4, 786432, COST_NCCL_RING, COST_NCCL_LL},
        {SPEC_TUNER_AWS_P5EN, COST_REDUCE_SCATTER, 4, 67108864, COST_NCCL_RING, COST_NCCL_LL128},
        {SPEC_TUNER_AWS_P6, COST_ALL_REDUCE, 4, 8388608, COST_NCCL_TREE, COST_NCCL_LL128},
        {SPEC_TUNER_AWS_P6, COST_ALL_REDUCE, 4, 67108864, COST_NCCL_RING, COST_NCCL_LL128},
        {SPEC_TUNER_AWS_P6, COST_ALL_REDUCE, 4, 1073741824, COST_NCCL_RING, COST_NCCL_SIMPLE},
        {SPEC_TUNER_AWS_P6, COST_ALL_REDUCE, 64, 1073741824, COST_NCCL_NVLS_TREE, COST_NCCL_SIMPLE},
        {SPEC_TUNER_AWS_P6, COST_ALL_GATHER, 8, 1e6, COST_NCCL_RING, COST_NCCL_LL},
        {SPEC_TUNER_AWS_P6, COST_REDUCE_SCATTER, 8, 8e9, COST_NCCL_RING, COST_NCCL_SIMPLE},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(told); i++) {
        CostNcclQuery q = hopper_node(told[i].op, told[i].bytes);
        q.ranks = 8 * told[i].nodes, q.nodes = told[i].nodes, q.tuner = told[i].tuner;
        CostNcclAlgorithm algorithm;
        CostNcclProtocol protocol;
        g_assert_true(cost_nccl_region(&q, &algorithm, &protocol));
        if (algorithm != told[i].algorithm || protocol != told[i].protocol)
            g_error("%d nodes, %g bytes: %s %s", told[i].nodes, told[i].bytes,
                    cost_nccl_algorithm_name(algorithm), cost_nccl_protocol_name(protocol));
        q.ranks = 16, q.nodes = 2; /* the plug-in leaves two nodes to NCCL */
        g_assert_false(cost_nccl_region(&q, &algorithm, &protocol));
    }
}

/* NCCL halves a tree's chunk from the step of its buffer, 576,000 bytes, when the tree grows too deep for the message. */
static void test_tree_chunks(void)
{
    close_to(cost_nccl_tree_ll128_chunk_bytes(268435456, 256, 32, 16), 288000);
    close_to(cost_nccl_tree_ll128_chunk_bytes(268435456, 512, 64, 16), 144000);
    close_to(cost_nccl_tree_ll128_chunk_bytes(1e12, 512, 64, 16), 576000);
    close_to(cost_nccl_tree_ll128_chunk_bytes(8, 16, 2, 16), 18000);
}

/* Jumps in measured all-gathers over 8 x H100: LL at 4 MiB, LL128 at 8 and 16 MiB, SIMPLE at 32 MiB. */
static void test_all_gather_switches(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_GATHER, 4 << 20);
    choice_is(&q, COST_NCCL_RING, COST_NCCL_LL);
    q.bytes = 8 << 20;
    choice_is(&q, COST_NCCL_RING, COST_NCCL_LL128);
    q.bytes = 16 << 20;
    choice_is(&q, COST_NCCL_RING, COST_NCCL_LL128);
    q.bytes = 32 << 20;
    choice_is(&q, COST_NCCL_RING, COST_NCCL_SIMPLE);
}

static void test_messages_and_channels(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_TO_ALL, 8 * 16384);
    choice_is(&q, COST_NCCL_RING, COST_NCCL_LL);
    q.bytes += 8;
    choice_is(&q, COST_NCCL_RING, COST_NCCL_SIMPLE);
    q = hopper_node(COST_ALL_GATHER, 4 * 512 * 8 * 8);
    CostNcclChoice ll = {.algorithm = COST_NCCL_RING, .protocol = COST_NCCL_LL};
    close_to(cost_nccl_channels(&q, ll), 4);
    q.bytes = 8;
    close_to(cost_nccl_channels(&q, ll), 1);
    q.bytes = 1e9;
    close_to(cost_nccl_channels(&q, ll), 12);
}

/* A channel a NIC at the fastest speed of NCCL's list that it carries; trees of chunks; names as logs write them. */
static void test_net_graphs(void)
{
    const CostNcclGraph eight = cost_nccl_net_graph(2, 8, 50e9, 0), four = cost_nccl_net_graph(2, 4, 50e9, 0),
                        slow = cost_nccl_net_graph(1, 8, 6.25e9, 0);
    close_to(eight.channels, 8), close_to(eight.across_bytes_per_s, 48e9);
    close_to(four.channels, 8), close_to(four.across_bytes_per_s, 24e9);
    close_to(slow.channels, 8), close_to(slow.across_bytes_per_s, 6e9);
    /* a rack: 72 NICs carry more than a GPU's links, through which each channel passes */
    const CostNcclGraph rack = cost_nccl_net_graph(3, 72, 50e9, 730e9),
                        wide = cost_nccl_net_graph(3, 72, 50e9, 0);
    close_to(rack.channels, 16), close_to(rack.across_bytes_per_s, 45.1e9);
    close_to(wide.channels, 32), close_to(wide.across_bytes_per_s, 48e9);
    const CostNcclGraph node = cost_nccl_net_graph(2, 8, 50e9, 411e9);
    close_to(node.channels, eight.channels), close_to(node.across_bytes_per_s, eight.across_bytes_per_s);
    close_to(cost_nccl_nvls_tree_chunk_bytes(256 << 20, 128, 524288), 131072);
    close_to(cost_nccl_nvls_tree_chunk_bytes(1 << 30, 128, 524288), 262144);
    close_to(cost_nccl_nvls_tree_chunk_bytes(4096.0 * (1 << 20), 128, 524288), 524288);
    close_to(cost_nccl_nvls_tree_chunk_bytes(1 << 20, 128, 524288), 32768);
    static const struct {
        const char *word;
        CostNcclAlgorithm algorithm;
    } words[] = {{"Ring", COST_NCCL_RING},
                 {"Ring (NVLS off)", COST_NCCL_RING},
                 {"NVLSTree", COST_NCCL_NVLS_TREE},
                 {"nvls/sharp", COST_NCCL_NVLS},
                 {"tree", COST_NCCL_TREE}};
    CostNcclAlgorithm found = COST_NCCL_PAT;
    for (guint i = 0; i < G_N_ELEMENTS(words); i++) {
        g_assert_true(cost_nccl_algorithm_find(words[i].word, &found));
        g_assert_cmpint(found, ==, words[i].algorithm);
    }
    g_assert_false(cost_nccl_algorithm_find("auto(NVLS>=2MiB)", &found));
    g_assert_false(cost_nccl_algorithm_find("ringing", &found));
}

/* What a plug-in tells of its network moves the choice: without 75 us NCCL leaves LL128 earlier. */
static void test_told_latency(void)
{
    CostNcclQuery q = hopper_node(COST_ALL_REDUCE, 1 << 27);
    q.ranks = 16, q.nodes = 2, q.nvls.channels = 0;
    q.ring = q.tree = cost_nccl_net_graph(2, 8, 50e9, 0);
    const double ll128 = cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_LL128),
                 simple = cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_SIMPLE);
    choice_is(&q, COST_NCCL_RING, COST_NCCL_SIMPLE);
    q.net_latency_s = 75e-6; /* 2 steps between nodes; SIMPLE pays twice and 1.4 times that */
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_LL128), ll128 + 2 * 75e-6);
    close_to(cost_nccl_estimate_s(&q, COST_NCCL_RING, COST_NCCL_SIMPLE), simple + 1.4 * 4 * 75e-6);
    choice_is(&q, COST_NCCL_RING, COST_NCCL_LL128);
    q.simple_only = true;
    g_assert_cmpint(cost_nccl_choose(&q).protocol, ==, COST_NCCL_SIMPLE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/nccl/ring-estimates", test_ring_estimates);
    g_test_add_func("/nccl/nvls-and-tree-estimates", test_nvls_and_tree_estimates);
    g_test_add_func("/nccl/across-nodes", test_across_nodes);
    g_test_add_func("/nccl/switch-to-nvls", test_switch_to_nvls);
    g_test_add_func("/nccl/all-gather-switches", test_all_gather_switches);
    g_test_add_func("/nccl/messages-and-channels", test_messages_and_channels);
    g_test_add_func("/nccl/plugin-regions", test_plugin_regions);
    g_test_add_func("/nccl/regions-of-logarithms", test_regions_of_logarithms);
    g_test_add_func("/nccl/tree-chunks", test_tree_chunks);
    g_test_add_func("/nccl/net-graphs", test_net_graphs);
    g_test_add_func("/nccl/told-latency", test_told_latency);
    return g_test_run();
}
