/* tests/unit/step/test_offload_software.c - what optimizers of other software do on the host, and tiles: of matrices, which
 * ZeRO-3 gathers one after the other, and of long sequences. */
#include "tests/unit/checked_run_fixture.h"

/* What PyTorch's and Megatron-Core's optimizers on the host do, by hand from the node's rates: 8.03 billion parameters on a
 * DGX H100, an eighth of them a rank's, on a quarter of a socket's memory. FSDP 2: norm and scaling 12 B, one fused loop 28 B.
 * Megatron: fp32 gradients leave behind the last backward, 28 B and a cast of 6 B, 16-bit weights from ordinary memory. */
static void other_hosts(void)
{
    static const char text[] =
        "{\"model\":\"llama3-8b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_length\":8192,\"global_"
        "batch\":8,"
        "\"recompute\":\"full\"},\"parallel\":{\"zero\":1},\"execution\":{\"framework\":\"megatron-core\"},"
        "\"offload\":{\"scheme\":\"zero-offload\"}}";
    OrrArena *arena = orr_arena_new();
    const double memory = 0.85 * 307.2e9 / 4, link = 0.88 * 63e9, ordinary = 0.15 * 63e9;
    const Report megatron = report_of(text, NULL, arena);
    const double own = megatron.parameters / 8;
    const double copies = own * (4 / link + 2 / ordinary);
    g_assert_cmpfloat_with_epsilon((double)megatron.part_ps[SIM_PART_OPTIMIZER] * 1e-12, own * 34 / memory,
                                   0.02 * own * 34 / memory);
    g_assert_cmpfloat_with_epsilon((double)megatron.part_ps[SIM_PART_OFFLOAD] * 1e-12, copies, 0.02 * copies);
    const Report beside =
        report_of(text, SETS("execution.framework.optimizer.host_gradients=as-made"), arena);
    g_assert_cmpint(beside.step_ps, <, megatron.step_ps);
    g_assert_cmpfloat(beside.stages[0].gradients_bytes, <=, megatron.stages[0].gradients_bytes);
    const char *const fsdp[] = {"execution.framework=torchtitan", "parallel.zero=3",
                                "offload.scheme=zero3-offload"};
    const Report torch = report_of(text, SETS(fsdp[0], fsdp[1], fsdp[2]), arena);
    g_assert_cmpfloat_with_epsilon((double)torch.part_ps[SIM_PART_OPTIMIZER] * 1e-12, own * 40 / memory,
                                   0.02 * own * 40 / memory);
    const char *const narrow = "execution.framework.optimizer.host_shard_bytes=0";
    const Report half = report_of(text, SETS(fsdp[0], fsdp[1], fsdp[2], narrow), arena);
    g_assert_cmpfloat(torch.offload.in_busy_frac, >, half.offload.in_busy_frac);
    orr_arena_free(arena);
}

/* A host that cannot hold the states is a result on a fabric too, with every check on; one that can is held to its capacity. */
static void host_on_a_fabric(void)
{
    static const char text[] =
        "{\"model\":\"llama3-8b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_length\":8192,\"global_"
        "batch\":8,"
        "\"recompute\":\"full\"},\"parallel\":{\"zero\":1},\"execution\":{\"framework\":\"megatron-core\"},"
        "\"offload\":{\"scheme\":\"zero-offload\"}}";
    OrrArena *arena = orr_arena_new();
    static const char flow[] = "cluster.network.fidelity=flow", little[] = "cluster.host.dram_bytes=1e9";
    const Report alone = report_of(text, SETS(little), arena),
                 fabric = report_of(text, SETS(little, flow), arena),
                 enough = report_of(text, SETS(flow), arena);
    g_assert_true(!alone.fits && !fabric.fits && !fabric.offload.host_fits && enough.offload.host_fits);
    g_assert_cmpfloat_with_epsilon(fabric.offload.host_bytes, alone.offload.host_bytes, 1);
    orr_arena_free(arena);
}

#define ONE_LAYER(hidden, heads, ffn)                                                                        \
    "{\"model\":{\"name\":\"wide\",\"layers\":1,\"hidden\":" hidden ",\"heads\":" heads                      \
    ",\"ffn_hidden\":" ffn ",\"vocab\":50257,\"tied_embeddings\":true,\"max_positions\":1024},"              \
    "\"cluster\":{\"preset\":\"dgx-2\"},\"training\":{\"sequence_length\":1024,\"global_batch\":16,"         \
    "\"precision\":\"fp16\",\"recompute\":\"full\"},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":" \
    "\"deepspeed-2021\"},\"offload\":{\"scheme\":\"zero-infinity\"}}"

/* Published: a layer of 8K fits a V100 as it is, one of 64K with its matrices in 16 tiles. A tile is gathered, used and dropped:
 * weights and gradients of the layer that are there at once fall with the tiles, passes and gathers take longer. */
static void tiles(void)
{
    static const char *const counts[] = {"parallel.weight_tiles=1", "parallel.weight_tiles=2",
                                         "parallel.weight_tiles=4", "parallel.weight_tiles=16"};
    static const char wide[] = ONE_LAYER("65536", "512", "262144");
    OrrArena *arena = orr_arena_new();
    g_assert_true(report_of(ONE_LAYER("8192", "64", "32768"), NULL, arena).fits);
    Report before = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(counts); i++) {
        const Report report = report_of(wide, SETS(counts[i]), arena);
        g_assert_cmpint(report.fits, ==, i + 1 == G_N_ELEMENTS(counts));
        if (i > 0) {
            const double fewer = i + 1 == G_N_ELEMENTS(counts) ? 4 : 2, layer = 12.0 * 65536 * 65536;
            g_assert_cmpfloat(report.stages[0].weights_bytes, <, before.stages[0].weights_bytes);
            g_assert_cmpfloat_with_epsilon(
                report.stages[0].gradients_bytes / before.stages[0].gradients_bytes, 1 / fewer, 0.01);
            g_assert_cmpfloat(report.stages[0].peak_bytes, <,
                              before.stages[0].peak_bytes - layer / (fewer * 16));
            for (int part = 0; part < SIM_PART_COUNT; part++)
                if (part == SIM_PART_COMPUTE || part == SIM_PART_DATA_COMM)
                    g_assert_cmpint(report.part_ps[part], >, before.part_ps[part]);
        }
        before = report;
    }
    orr_arena_free(arena);
}

/* Experts' products are grouped, not in tiles: their weights and gradients are there whole, whatever becomes of the attention's
 * 42 million of a layer's 1.45 billion parameters, in two units at once. */
static void experts_stay_whole(void)
{
    static const char text[] =
        "{\"model\":\"mixtral-8x7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":8},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":64,\"recompute\":\"full\"},"
        "\"parallel\":{\"zero\":3},\"execution\":{\"framework\":\"torchtitan\"}}";
    OrrArena *arena = orr_arena_new();
    const Report whole = report_of(text, NULL, arena),
                 tiled = report_of(text, SETS("parallel.weight_tiles=16"), arena);
    const double attention = 2.5 * 4096 * 4096, each = 4 + 4;
    g_assert_cmpfloat(tiled.stages[0].peak_bytes, <, whole.stages[0].peak_bytes);
    g_assert_cmpfloat(tiled.stages[0].peak_bytes, >, whole.stages[0].peak_bytes - 2 * each * attention);
    g_assert_cmpint(tiled.part_ps[SIM_PART_COMPUTE], >, whole.part_ps[SIM_PART_COMPUTE]);
    orr_arena_free(arena);
}

/* Gradients that are reduced behind the last micro-batch wait whole, 4 B a parameter of all layers, whatever tiles they came
 * from. */
static void sums_stay_whole(void)
{
    static const char text[] =
        "{\"model\":\"llama3-8b\",\"cluster\":\"dgx-h100\",\"training\":{\"sequence_length\":4096,"
        "\"global_batch\":32,\"recompute\":\"full\"},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":"
        "\"torchtitan\"}}";
    static const char late[] = "execution.framework.data_parallel.reduce_each_microbatch=false";
    OrrArena *arena = orr_arena_new();
    const Report whole = report_of(text, SETS(late), arena),
                 tiled = report_of(text, SETS(late, "parallel.weight_tiles=16"), arena),
                 early = report_of(text, SETS("parallel.weight_tiles=16"), arena);
    g_assert_cmpfloat_with_epsilon(tiled.stages[0].gradients_bytes / whole.stages[0].gradients_bytes, 1,
                                   0.02);
    g_assert_cmpfloat(early.stages[0].gradients_bytes, <, tiled.stages[0].gradients_bytes / 2);
    orr_arena_free(arena);
}

static const char long_sequence[] =
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
    "\"training\":{\"sequence_length\":8192,\"global_batch\":1,\"micro_batch\":1,\"recompute\":\"full\"},"
    "\"parallel\":{\"zero\":3,\"context\":8,\"context_mode\":\"ulysses\"},"
    "\"execution\":{\"framework\":{\"preset\":\"transformers-deepspeed\",\"loss\":{\"kernel\":\"chunked\"}}},"
    "\"offload\":{\"scheme\":\"zero3-offload\",\"weights\":{\"tier\":\"gpu\"}}}";

/* MLPs in tiles over a sequence of 1,048,576 tokens, as many as it is longer than the model is wide: 3 tensors of 14,336 and
 * their gradients are of a tile alone, for one more forward of the MLPs. */
static void mlp_tiles(void)
{
    OrrArena *arena = orr_arena_new();
    static const char million[] = "training.sequence_length=1048576";
    const Report whole = report_of(long_sequence, SETS(million), arena),
                 tiled = report_of(long_sequence, SETS(million, "training.mlp_tiles=32"), arena);
    const double inner = 2.0 * 1048576 / 8 * 14336;
    g_assert_cmpfloat(tiled.stages[0].workspace_bytes, <, whole.stages[0].workspace_bytes - 3 * inner);
    g_assert_cmpfloat(tiled.reserved_bytes, <, whole.reserved_bytes);
    g_assert_cmpint(tiled.part_ps[SIM_PART_COMPUTE], >, whole.part_ps[SIM_PART_COMPUTE]);
    g_assert_cmpint(tiled.step_ps, <, whole.step_ps * 11 / 10);
    g_assert_cmpfloat(tiled.hfu, >, 0.9 * whole.hfu);
    orr_arena_free(arena);
}

/* DeepSpeed's checkpoints on the host, by hand: each layer's input of 2 B s b h goes out and comes back through ordinary memory,
 * beside nothing. A quarter of it with 4 tensor ranks that share it, gathered again; twice as much in halves, whose backwards
 * hold less at once. */
static void checkpoints(void)
{
    static const char text[] =
        "{\"model\":\"gpt3-6.7b\",\"cluster\":{\"preset\":\"dgx-2\",\"gpus_per_node\":4},\"training\":{"
        "\"sequence_length\":2048,\"global_batch\":4,\"micro_batch\":4,\"precision\":\"fp16\","
        "\"recompute\":\"full\"},\"parallel\":{\"tensor\":4,\"sequence_parallel\":false},"
        "\"execution\":{\"framework\":\"deepspeed\"}}";
    static const char parts[] = "training.recompute={\"mode\":\"full\",\"partitioned\":true}",
                      halves[] =
                          "training.recompute={\"mode\":\"full\",\"partitioned\":true,\"halves\":true}",
                      host[] = "offload.activations={\"tier\":\"host\"}";
    const double input = 2.0 * 2048 * 4 * 4096, layers = 32, rate = 0.15 * 15.75e9;
    OrrArena *arena = orr_arena_new();
    const Report whole = report_of(text, NULL, arena), away = report_of(text, SETS(host), arena),
                 kept = report_of(text, SETS(parts), arena),
                 shared = report_of(text, SETS(parts, host), arena),
                 split = report_of(text, SETS(halves), arena),
                 both = report_of(text, SETS(halves, host), arena);
    const double copied_s = 2 * layers * input / rate;
    g_assert_cmpfloat_with_epsilon((double)(away.step_ps - whole.step_ps) * 1e-12, copied_s, 1e-3 * copied_s);
    g_assert_cmpfloat_with_epsilon((double)(shared.step_ps - kept.step_ps) * 1e-12, copied_s / 4,
                                   1e-3 * copied_s);
    g_assert_cmpfloat_with_epsilon((double)(both.step_ps - split.step_ps) * 1e-12, copied_s / 2,
                                   1e-3 * copied_s);
    g_assert_cmpint(kept.step_ps, >, whole.step_ps); /* gathers */
    g_assert_cmpfloat_with_epsilon(whole.stages[0].activations_bytes - kept.stages[0].activations_bytes,
                                   0.75 * layers * input, 0.05 * layers * input);
    g_assert_cmpfloat_with_epsilon(split.stages[0].activations_bytes - kept.stages[0].activations_bytes,
                                   0.25 * layers * input, 0.05 * layers * input);
    g_assert_cmpfloat(split.stages[0].workspace_bytes, <, kept.stages[0].workspace_bytes);
    orr_arena_free(arena);
}

/* One rank frees gradients behind the optimizer, sharded or not. Short sequences: weights, gradients, moments and the roots that AdamW's
 * foreach kernels make, 20 B a parameter, are the peak. Long ones: activations are, and 4 B a parameter less than with them kept. */
static void cleared_gradients(void)
{
    static const char text[] =
        "{\"model\":\"gpt3-2.7b\",\"cluster\":{\"preset\":\"dgx-h200\",\"gpus_per_node\":1},\"training\":{"
        "\"sequence_length\":256,\"global_batch\":1},\"parallel\":{\"zero\":3},"
        "\"execution\":{\"framework\":\"pytorch-fsdp2\"}}";
    static const char longer[] = "training.sequence_length=2048", more[] = "training.micro_batch=4",
                      batch[] = "training.global_batch=4",
                      kept[] = "execution.framework.allocator.gradients=kept";
    OrrArena *arena = orr_arena_new();
    const Report brief = report_of(text, NULL, arena),
                 wide = report_of(text, SETS(longer, more, batch), arena),
                 held = report_of(text, SETS(longer, more, batch, kept), arena);
    g_assert_cmpfloat_with_epsilon(brief.stages[0].peak_bytes, 20 * brief.parameters,
                                   0.02 * 20 * brief.parameters);
    g_assert_cmpfloat_with_epsilon(held.stages[0].peak_bytes - wide.stages[0].peak_bytes, 4 * wide.parameters,
                                   0.05 * wide.parameters);
    for (int gpus = 1; gpus <= 2; gpus++) { /* whole gradients: replicas' hooks keep them */
        g_autofree char *node = g_strdup_printf("cluster.gpus_per_node=%d", gpus),
                        *samples = g_strdup_printf("training.global_batch=%d", 4 * gpus);
        const char *const whole = "parallel.zero=0";
        const Report freed = report_of(text, SETS(longer, more, samples, node, whole), arena),
                     stay = report_of(text, SETS(longer, more, samples, node, whole, kept), arena);
        g_assert_cmpfloat_with_epsilon(stay.stages[0].peak_bytes - freed.stages[0].peak_bytes,
                                       gpus == 1 ? 4 * freed.parameters : 0, 0.05 * freed.parameters);
    }
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/offload-software/other-hosts", other_hosts);
    g_test_add_func("/offload-software/host-on-a-fabric", host_on_a_fabric);
    g_test_add_func("/offload-software/tiles", tiles);
    g_test_add_func("/offload-software/tiles-and-experts", experts_stay_whole);
    g_test_add_func("/offload-software/tiles-and-sums", sums_stay_whole);
    g_test_add_func("/offload-software/mlp-tiles", mlp_tiles);
    g_test_add_func("/offload-software/checkpoints", checkpoints);
    g_test_add_func("/offload-software/cleared-gradients", cleared_gradients);
    return g_test_run();
}
