/* tests/unit/step/test_offload_scenarios.c - states off the GPU in whole scenarios: what fits, what it costs, what a
 * node's GPUs share, random schemes under every check, and what is refused. */
#include <math.h>
#include <string.h>

#include "costmodel/offload.h"
#include "tests/unit/checked_run_fixture.h"

/* `layers` of 4,096 on one GPU of a DGX-2, activations recomputed. */
#define V100(layers, batch, offload)                                                                         \
    "{\"model\":{\"name\":\"m\",\"layers\":" layers                                                          \
    ",\"hidden\":4096,\"heads\":32,\"ffn_hidden\":16384,\"vocab\":50257,"                                    \
    "\"tied_embeddings\":true,\"max_positions\":1024},\"cluster\":{\"preset\":\"dgx-2\",\"gpus_per_node\":"  \
    "1},"                                                                                                    \
    "\"training\":{\"sequence_length\":1024,\"global_batch\":" batch ",\"micro_batch\":" batch               \
    ",\"precision\":\"fp16\","                                                                               \
    "\"recompute\":\"full\"},\"parallel\":{\"zero\":2},\"execution\":{\"framework\":\"deepspeed-2021\"},"    \
    "\"offload\":" offload "}"

/* 13 billion parameters train on one V100 of 32 GB with states on the host, a tenth of that without. */
static void one_v100(void)
{
    OrrArena *arena = orr_arena_new();
    const Report off = report_of(V100("63", "4", "{\"scheme\":\"zero-offload\"}"), NULL, arena);
    g_assert_cmpfloat(off.parameters, >, 12.8e9);
    g_assert_true(off.fits);
    g_assert_false(report_of(V100("63", "4", "\"none\""), NULL, arena).fits);
    g_assert_false(report_of(V100("72", "4", "{\"scheme\":\"zero-offload\"}"), NULL, arena).fits);
    const Report small = report_of(V100("6", "4", "\"none\""), NULL, arena);
    g_assert_cmpfloat(small.parameters, >, 1.3e9);
    g_assert_true(small.fits);
    g_assert_false(report_of(V100("9", "4", "\"none\""), NULL, arena).fits);
    orr_arena_free(arena);
}

/* Scheme "auto" beside every tier of every part: a step, or one sentence. */
static void auto_beside_tiers(void)
{
    static const char *const parts[] = {"activations", "optimizer", "gradients", "weights"};
    static const char *const tiers[] = {"gpu", "host", "nvme"};
    const char *text = V100("6", "4", "{\"scheme\":\"auto\"}");
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", NULL);
    g_autofree Spec *spec = g_new0(Spec, 1);
    for (gsize p = 0; p < G_N_ELEMENTS(parts); p++)
        for (gsize t = 0; t < G_N_ELEMENTS(tiers); t++) {
            g_autofree char *set = g_strdup_printf("offload.%s.tier=%s", parts[p], tiers[t]);
            const char *const sets[] = {set, NULL};
            GError *error = NULL;
            if (!spec_load_json(orr_json_root(doc), "here", sets, true, spec, NULL, &error))
                g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
            g_clear_error(&error);
        }
    orr_json_free(doc);
}

/* 13 billion parameters on one wafer of 40 GB: by streaming weights only, nearly as fast as the copies allow. */
static void one_wafer(void)
{
    static const char wafer[] =
        "{\"model\":\"gpt3-13b\",\"cluster\":\"cs2-memoryx\",\"training\":{\"sequence_length\":2048,"
        "\"global_batch\":512,\"micro_batch\":16,\"precision\":\"fp16\",\"recompute\":\"full\"},"
        "\"parallel\":{\"zero\":2},\"execution\":{\"framework\":\"cerebras\"},\"offload\":{\"scheme\":"
        "\"stronghold\"}}";
    OrrArena *arena = orr_arena_new();
    const Report streamed = report_of(wafer, NULL, arena);
    const Report resident = report_of(wafer, SETS("offload.scheme=none"), arena);
    g_assert_true(streamed.fits);
    g_assert_false(resident.fits);
    g_assert_cmpint(streamed.step_ps, >, resident.step_ps);
    g_assert_cmpint(streamed.step_ps, <, resident.step_ps * 5 / 4);
    orr_arena_free(arena);
}

/* ZeRO-Offload's 10 billion parameters on one V100, published at 40 TFLOP/s: within 15 % of it as its authors count a step,
 * 8 FLOPs a parameter and token where activations are recomputed [Rajbhandari2021]. Each thing that its software does
 * costs something, and all of them together are what a recipe without them lacks. */
static void ten_billion(void)
{
    static const char *const off[] = {"execution.framework.optimizer.host_gradients=as-made",
                                      "execution.framework.optimizer.host_gradient_check_bytes=0",
                                      "execution.framework.optimizer.host_weight_bytes=0",
                                      "execution.framework.kernels.fused_softmax=true"};
    OrrArena *arena = orr_arena_new();
    const char *const sets[] = {"execution.framework=deepspeed-2020"};
    const Report report = report_of(V100("50", "10", "{\"scheme\":\"zero-offload\"}"), SETS(sets[0]), arena);
    const double flops = 8 * report.parameters * 10 * 1024 / ((double)report.step_ps * 1e-12);
    g_test_message("%.1f TFLOP/s", flops * 1e-12);
    g_assert_cmpfloat(fabs(flops / 40e12 - 1), <, 0.15);
    for (gsize i = 0; i < G_N_ELEMENTS(off); i++) {
        const Report without =
            report_of(V100("50", "10", "{\"scheme\":\"zero-offload\"}"), SETS(sets[0], off[i]), arena);
        g_test_message("%s: %.2f s less", off[i], (double)(report.step_ps - without.step_ps) * 1e-12);
        g_assert_cmpint(without.step_ps, <, report.step_ps);
    }
    /* beside the passes of a reduction that overlaps, the last tensor of a bucket leaves */
    const Report beside = report_of(V100("50", "10", "{\"scheme\":\"zero-offload\"}"),
                                    SETS(sets[0], "execution.overlap=[\"grad_reduce\"]"), arena);
    g_assert_cmpint(beside.step_ps, <, report.step_ps);
    orr_arena_free(arena);
}

/* GPT-2 XL on one card of 24 GB: not at batch 1 as it is, at batch 16 with ZeRO-3 and the host. */
static void one_titan(void)
{
    static const char text[] =
        "{\"model\":\"gpt2-xl\",\"cluster\":{\"preset\":\"titan-rtx-pair\",\"gpus_per_node\":1,"
        "\"scale_up_domain_gpus\":1},\"training\":{\"sequence_length\":1024,\"global_batch\":16,\"micro_"
        "batch\":16,"
        "\"precision\":\"fp16\",\"recompute\":\"full\"},\"parallel\":{\"zero\":3},"
        "\"execution\":{\"framework\":\"transformers-deepspeed\"},\"offload\":{\"scheme\":\"zero3-offload\"}"
        "}";
    OrrArena *arena = orr_arena_new();
    const Report off = report_of(text, NULL, arena);
    g_assert_true(off.fits);
    const Report plain = report_of(text,
                                   SETS("offload=none", "parallel.zero=0", "training.micro_batch=1",
                                        "training.global_batch=1", "training.recompute=none"),
                                   arena);
    g_assert_false(plain.fits);
    g_assert_cmpfloat(off.stages[0].weights_bytes, <, 0.1 * plain.stages[0].weights_bytes);
    orr_arena_free(arena);
}

static const char trillion[] =
    "{\"model\":{\"name\":\"1t\",\"layers\":128,\"hidden\":25600,\"heads\":256,\"ffn_hidden\":102400,"
    "\"vocab\":50257,"
    "\"tied_embeddings\":true,\"max_positions\":1024},\"cluster\":{\"preset\":\"dgx-2\",\"nodes\":32},"
    "\"training\":{\"sequence_length\":1024,\"global_batch\":1280,\"micro_batch\":10,\"precision\":\"fp16\","
    "\"recompute\":{\"mode\":\"full\",\"partitioned\":true,"
    "\"halves\":true}},\"parallel\":{\"zero\":3,\"tensor\":4},"
    "\"execution\":{\"framework\":\"deepspeed-"
    "2021\","
    "\"overlap\":[\"grad_reduce\",\"param_gather\"]},"
    "\"offload\":{\"scheme\":\"zero-infinity\",\"subgroup_parameters\":2e8,\"activations\":{\"tier\":"
    "\"host\"}}}";

/* A trillion parameters on 512 V100s: on the disks and in the hosts, not on the GPUs. Published at 49 TFLOP/s a GPU, 8 FLOPs a
 * parameter and token: within 15 % [Rajbhandari2021]. */
static void trillion_parameters(void)
{
    OrrArena *arena = orr_arena_new();
    const Report off = report_of(trillion, NULL, arena);
    g_assert_cmpfloat(off.parameters, >, 1e12);
    g_assert_true(off.fits);
    g_assert_cmpfloat(off.offload.nvme_bytes, >, 0);
    const double flops = 8 * off.parameters * 1280 * 1024 / 512 / ((double)off.step_ps * 1e-12);
    g_test_message("%.1f TFLOP/s", flops * 1e-12);
    g_assert_cmpfloat(fabs(flops / 49e12 - 1), <, 0.15);
    /* a node's disks: fp32 states and gradients, 16-bit weights for three passes; states, gradients, weights */
    const double node_s = off.parameters / 32 / 25.6e9, step_s = (double)off.step_ps * 1e-12;
    g_assert_cmpfloat_with_epsilon(off.offload.read_busy_frac * step_s / node_s, 12 + 4 + 3 * 2, 0.05);
    g_assert_cmpfloat_with_epsilon(off.offload.write_busy_frac * step_s / node_s, 12 + 4 + 2, 0.05);
    g_assert_false(report_of(trillion, SETS("offload=none"), arena).fits);
    const Report cramped = report_of(trillion, SETS("cluster.host.nvme_bytes=100e9"), arena);
    g_assert_false(cramped.fits || cramped.offload.nvme_fits);
    g_assert_cmpint(cramped.step_ps, ==, off.step_ps);
    orr_arena_free(arena);
}

/* Little's law: requests on their way over a disk's latency, up to the disks' rate; many large ones change nothing. */
static void requests(void)
{
    OrrArena *arena = orr_arena_new();
    Spec *spec = g_new0(Spec, 1);
    GError *error = NULL;
    spec_load_cluster("dgx-2", &spec->cluster, &error);
    g_assert_no_error(error);
    spec->offload.pinned = true;
    const double disks = cost_host(spec).nvme_read;
    g_assert_cmpfloat(cost_host(spec).own_read, ==, disks);
    spec->offload.aio =
        (SpecAio){.block_bytes = 4096, .queue_depth = 8, .threads = 2, .overlap_events = true};
    g_assert_cmpfloat_with_epsilon(cost_host(spec).own_read, 65536 / 1e-4, 1);
    spec->offload.aio.overlap_events = false;
    g_assert_cmpfloat_with_epsilon(cost_host(spec).own_write, 65536 / (1e-4 + 65536 / disks), 1);
    spec->offload.aio.overlap_events = true;
    spec->offload.aio.block_bytes = 1 << 20;
    g_assert_cmpfloat(cost_host(spec).own_write, ==, cost_host(spec).nvme_write);
    g_free(spec);
    const int64_t step = report_of(trillion, NULL, arena).step_ps;
    g_assert_cmpint(report_of(trillion, SETS("offload.aio.block_bytes=1MiB"), arena).step_ps, ==, step);
    g_assert_cmpint(report_of(trillion, SETS("offload.aio.block_bytes=4096"), arena).step_ps, >, step);
    orr_arena_free(arena);
}

/* Seconds of CPU-Adam by parameters on one process of a DGX-2, published; from cores and memory alone. */
static void host_adam(void)
{
    static const double table[][2] = {{1e9, .22}, {2e9, .51}, {4e9, 1.03}, {8e9, 2.41}, {10e9, 2.57}};
    GError *error = NULL;
    double sum = 0;
    Spec *spec = g_new0(Spec, 1);
    spec_load_cluster("dgx-2", &spec->cluster, &error);
    g_assert_no_error(error);
    spec->cluster.gpus_per_node = 1;
    spec->offload.pinned = true;
    g_assert_cmpfloat_with_epsilon(cost_host_optimizer_bytes_per_parameter(spec), 28, 1e-9);
    for (gsize i = 0; i < G_N_ELEMENTS(table); i++) {
        const double off = fabs(cost_host_optimizer_s(spec, table[i][0]) / table[i][1] - 1);
        g_assert_cmpfloat(off, <, 0.18);
        sum += off;
    }
    g_assert_cmpfloat(sum / G_N_ELEMENTS(table), <, 0.07);
    spec->cluster.host.cores = 8; /* four of a socket: they cannot fill its memory */
    g_assert_cmpfloat_with_epsilon(cost_host_optimizer_s(spec, 1e9), 28e9 / 40e9, 1e-9);
    g_free(spec);
}

static const char eight[] =
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},"
    "\"training\":{\"sequence_length\":2048,\"global_batch\":8,\"micro_batch\":1,\"recompute\":\"full\"},"
    "\"parallel\":{\"zero\":2},\"execution\":{\"framework\":\"deepspeed\",\"overlap\":[\"grad_reduce\"]},"
    "\"offload\":{\"scheme\":\"zero-offload\"}}";

/* Eight GPUs of one node share ports, memory and cores; alone on its node each has them to itself. The networks differ too, so
 * the host's resources are taken away one by one. */
static void shared_node(void)
{
    OrrArena *arena = orr_arena_new();
    const Report node = report_of(eight, NULL, arena);
    const Report ports = report_of(eight, SETS("cluster.host.gpus_per_pcie_root=1"), arena);
    const Report wide = report_of(
        eight, SETS("cluster.host.gpus_per_pcie_root=1", "cluster.host.dram_bytes_per_s=819.2e9"), arena);
    g_assert_cmpint(ports.step_ps, <, node.step_ps);
    g_assert_cmpint(wide.step_ps, <, ports.step_ps);
    const Report crowded = report_of(eight, SETS("cluster.host.gpus_per_pcie_root=8"), arena);
    g_assert_cmpint(crowded.step_ps, >, node.step_ps);
    /* one process on the whole host: its update of all the parameters streams four times as fast as one of four on a
     * socket, and has eight times as many */
    const Report alone = report_of(eight, SETS("cluster.gpus_per_node=1", "training.global_batch=1"), arena);
    const double eighth = (double)node.part_ps[SIM_PART_OPTIMIZER];
    g_assert_cmpfloat((double)alone.part_ps[SIM_PART_OPTIMIZER], >, 1.5 * eighth);
    g_assert_cmpfloat((double)alone.part_ps[SIM_PART_OPTIMIZER], <, 4 * eighth);
    Report unfolded;
    GError *error = NULL;
    run_text(eight, NULL, true, &unfolded, arena, &error);
    g_assert_no_error(error);
    g_assert_cmpint(unfolded.result.ranks, ==, 8);
    g_assert_cmpint(unfolded.step_ps, ==, node.step_ps);
    orr_arena_free(arena);
}

static const char long_sequence[] =
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
    "\"training\":{\"sequence_length\":8192,\"global_batch\":1,\"micro_batch\":1,\"recompute\":\"full\"},"
    "\"parallel\":{\"zero\":3,\"context\":8,\"context_mode\":\"ulysses\"},"
    "\"execution\":{\"framework\":{\"preset\":\"transformers-deepspeed\",\"loss\":{\"kernel\":\"chunked\"}}},"
    "\"offload\":{\"scheme\":\"zero3-offload\",\"weights\":{\"tier\":\"gpu\"}}}";

/* The host's update and the copies of states do not grow with the sequence; passes do. */
static void fixed_part(void)
{
    static const char *const clusters[][2] = {
        {"cluster.preset=dgx-h100", "training.global_batch=8"},
        {"cluster.preset=dgx-h200", "training.global_batch=8"},
        {"cluster.preset=dgx-b200", "training.global_batch=8"},
        {"cluster.preset=gh200", "training.global_batch=1"},
        {"cluster.preset=gb200-nvl72", "training.global_batch=4"}}; /* a sequence a GPU */
    for (gsize c = 0; c < G_N_ELEMENTS(clusters); c++) {
        OrrArena *arena = orr_arena_new();
        const char *const sets[] = {"parallel.zero=3",
                                    "offload={\"scheme\":\"zero3-offload\",\"weights\":{\"tier\":\"gpu\"}}",
                                    clusters[c][0], "execution.attention=flash2"};
        double before = 0, passes = 0;
        for (int tokens = 2048; tokens <= 1048576; tokens *= 8) {
            g_autofree char *length = g_strdup_printf("training.sequence_length=%d", tokens);
            const Report report =
                report_of(eight, SETS(sets[0], sets[1], sets[2], sets[3], clusters[c][1], length), arena);
            const double fixed =
                (double)(report.part_ps[SIM_PART_OPTIMIZER] + report.part_ps[SIM_PART_OFFLOAD]);
            const double compute = (double)report.part_ps[SIM_PART_COMPUTE];
            g_test_message("%s %d: optimizer %.3f s, offload %.3f s, compute %.3f s", clusters[c][0], tokens,
                           (double)report.part_ps[SIM_PART_OPTIMIZER] * 1e-12,
                           (double)report.part_ps[SIM_PART_OFFLOAD] * 1e-12, compute * 1e-12);
            if (before > 0) {
                g_assert_cmpfloat(fabs(fixed / before - 1), <, 0.05);
                g_assert_cmpfloat(compute, >, 6 * passes);
            }
            before = fixed;
            passes = compute;
        }
        orr_arena_free(arena);
    }
}

/* One long sequence on all GPUs of a node, AdamW on the host: both parts by hand. The host streams 28 + 8 + 6 bytes a parameter
 * at its sockets' rates, each rank's 16-bit weights come back from ordinary memory. Passes count 8 FLOPs a parameter and token
 * and 9 s^2 h a layer of causal attention (2 forward, 2 again, 5 backward) at 20 to 65 % of the GPUs' peak. */
static void both_parts(void)
{
    static const struct {
        const char *cluster, *ranks, *attention;
        double gpus, sockets, stream, ordinary, peak;
    } nodes[] = {{"dgx-h100", "8", "flash3", 8, 2, 0.85 * 307.2e9, 0.15 * 63e9, 989e12},
                 {"dgx-h200", "8", "flash3", 8, 2, 0.85 * 307.2e9, 0.15 * 63e9, 989e12},
                 {"dgx-b200", "8", "cudnn", 8, 2, 0.85 * 358.4e9, 0.15 * 63e9, 2250e12},
                 {"gh200", "1", "flash3", 1, 1, 0.7 * 512e9, 0.15 * 450e9, 989e12},
                 {"gb200-nvl72", "4", "cudnn", 4, 2, 0.7 * 512e9, 0.15 * 225e9, 2500e12}};
    const double parameters = 8.03e9, hidden = 4096, layers = 32;
    for (gsize n = 0; n < G_N_ELEMENTS(nodes); n++)
        for (double tokens = 8192; tokens < 2e6; tokens *= 4) {
            OrrArena *arena = orr_arena_new();
            char *sets[] = {g_strdup_printf("cluster.preset=%s", nodes[n].cluster),
                            g_strdup_printf("parallel.context=%s", nodes[n].ranks),
                            g_strdup_printf("execution.attention=%s", nodes[n].attention),
                            g_strdup_printf("training.sequence_length=%.0f", tokens)};
            const Report report = report_of(long_sequence, SETS(sets[0], sets[1], sets[2], sets[3]), arena);
            const double update_s = 42 * parameters / (nodes[n].sockets * nodes[n].stream);
            const double weights_s = 2 * parameters / nodes[n].gpus / nodes[n].ordinary;
            const double offload_s = (double)report.part_ps[SIM_PART_OFFLOAD] * 1e-12;
            const double passes_s =
                (double)(report.part_ps[SIM_PART_COMPUTE] + report.part_ps[SIM_PART_RECOMPUTE]) * 1e-12;
            const double flops = 8 * parameters * tokens + 9 * tokens * tokens * hidden * layers;
            const double share = flops / nodes[n].gpus / nodes[n].peak / passes_s;
            g_test_message(
                "%s %.0f tokens: update %.3f of %.3f s, copies %.3f of %.3f s, passes %.3f s at %.0f %%",
                nodes[n].cluster, tokens, (double)report.part_ps[SIM_PART_OPTIMIZER] * 1e-12, update_s,
                offload_s, weights_s, passes_s, 100 * share);
            g_assert_cmpfloat(fabs((double)report.part_ps[SIM_PART_OPTIMIZER] * 1e-12 / update_s - 1), <,
                              0.02);
            g_assert_cmpfloat(offload_s, >, weights_s);
            g_assert_cmpfloat(offload_s, <, 1.4 * weights_s);
            g_assert_cmpfloat(share, >, 0.2);
            g_assert_cmpfloat(share, <, 0.65);
            for (gsize i = 0; i < G_N_ELEMENTS(sets); i++)
                g_free(sets[i]);
            orr_arena_free(arena);
        }
}

/* What one scheme pays that another hides, on one V100. */
static void gains(void)
{
    OrrArena *arena = orr_arena_new();
    const char text[] = V100("50", "10", "{\"scheme\":\"zero-offload\"}");
    const double base = (double)report_of(text, NULL, arena).step_ps;
    const double delayed =
        base / (double)report_of(text, SETS("offload.scheme=zero-offload-dpu"), arena).step_ps;
    const double super = base / (double)report_of(text, SETS("offload.scheme=superoffload"), arena).step_ps;
    const double window = base / (double)report_of(text, SETS("offload.scheme=stronghold"), arena).step_ps;
    const double ferry = base / (double)report_of(text, SETS("offload.scheme=memferry"), arena).step_ps;
    g_assert_cmpfloat(delayed, >, 1.1);
    g_assert_cmpfloat(super, >, 1);
    g_assert_cmpfloat(super, <, 2.5);
    g_assert_cmpfloat(window, >, 1.2);
    g_assert_cmpfloat(window, <, 3.7);
    g_assert_cmpfloat(ferry, >, 1);
    g_assert_cmpfloat(ferry, <, 1.68);
    orr_arena_free(arena);
}

/* Any scheme on any shape: every invariant holds, nothing that is off the GPU is on it; and a memory that all wait for, at a
 * rate that divides by nothing, serves ranks that stand for others as it serves each of them. */
static void random_schemes(void)
{
    static const char *const schemes[] = {"zero-offload",  "zero-offload-dpu", "twin-flow",
                                          "superoffload",  "stronghold",       "memferry",
                                          "zero3-offload", "zero-infinity"};
    GRand *rand = g_rand_new_with_seed(11);
    for (int round = 0; round < 80; round++) {
        OrrArena *arena = orr_arena_new();
        const char *scheme = schemes[g_rand_int_range(rand, 0, (int)G_N_ELEMENTS(schemes))];
        const bool sharded = strstr(scheme, "zero3") != NULL || strstr(scheme, "infinity") != NULL;
        const bool alone = strcmp(scheme, "stronghold") == 0;
        const int tensor = 1 << g_rand_int_range(rand, 0, 3),
                  pipeline = sharded ? 1 : 1 << g_rand_int_range(rand, 0, 3);
        const int data = 1 << g_rand_int_range(rand, 0, 4), microbatches = g_rand_int_range(rand, 1, 4);
        const int gpus = tensor * pipeline * data, per_node = MIN(gpus, 8);
        g_autofree char *text = g_strdup_printf(
            "{\"model\":{\"layers\":%d,\"hidden\":2048,\"heads\":16,\"ffn_hidden\":8192,\"vocab\":32000},"
            "\"cluster\":{\"preset\":\"%s\",\"gpus_per_node\":%d,\"scale_up_domain_gpus\":%d,\"nodes\":%d},"
            "\"training\":{\"sequence_length\":1024,\"global_batch\":%d,\"micro_batch\":1,\"precision\":"
            "\"fp16\",\"recompute\":\"%s\"},"
            "\"parallel\":{\"tensor\":%d,\"pipeline\":%d,\"data\":%d,\"zero\":%d},"
            "\"execution\":{\"framework\":\"deepspeed\",\"overlap\":[%s]},"
            "\"offload\":{\"scheme\":\"%s\",\"prefetch_depth\":%d,\"window_layers\":%d%s}}",
            8 * g_rand_int_range(rand, 1, 4), g_rand_boolean(rand) ? "dgx-2" : "dgx-h100", per_node, per_node,
            gpus / per_node, microbatches * data, g_rand_boolean(rand) ? "full" : "none", tensor, pipeline,
            data,
            sharded              ? 3
            : data > 1 && !alone ? 1 + g_rand_int_range(rand, 0, pipeline > 1 ? 1 : 2)
                                 : 0,
            g_rand_boolean(rand) ? "\"grad_reduce\",\"param_gather\"" : "", scheme,
            g_rand_int_range(rand, 0, 4), g_rand_int_range(rand, 0, 4),
            g_rand_boolean(rand)   ? ",\"activations\":{\"tier\":\"host\"}"
            : g_rand_boolean(rand) ? ",\"aio\":{\"block_bytes\":8192,\"overlap_events\":false}"
                                   : "");
        GError *error = NULL;
        Report report, slow, each;
        g_autofree char *memory = g_strdup_printf("cluster.host.dram_bytes_per_s=%.0f",
                                                  1e7 * pow(10, g_rand_double_range(rand, 0, 3)));
        if (!run_text(text, NULL, false, &report, arena, &error) ||
            !run_text(text, SETS(memory), false, &slow, arena, &error) ||
            !run_text(text, SETS(memory), true, &each, arena, &error))
            g_test_message("%s %s", text, memory);
        g_assert_no_error(error);
        g_assert_cmpint(slow.step_ps, ==, each.step_ps);
        g_assert_cmpint(slow.step_ps, >, report.step_ps);
        g_assert_true(report.offload.on);
        g_assert_cmpfloat(report.offload.host_bytes, >, 0);
        if (strcmp(scheme, "twin-flow") != 0)
            g_assert_cmpfloat(report.stages[0].optimizer_bytes, ==, 0);
        orr_arena_free(arena);
    }
    g_rand_free(rand);
}

/* Disks that could give much more than the memory before them takes: a read at a part of their rate draws that part of it from
 * the memory too, and never more than there is, whoever is simulated. */
static void small_shares(void)
{
    static const char text[] =
        "{\"model\":{\"layers\":4,\"hidden\":1024,\"heads\":8,\"vocab\":32000},\"cluster\":{\"preset\":"
        "\"aws-p5en\",\"host\":{\"dram_bytes_per_s\":193695089.7}},\"training\":{\"sequence_length\":4096,"
        "\"global_batch\":64,\"micro_batch\":1},\"parallel\":{\"zero\":3},\"execution\":{\"framework\":"
        "\"deepspeed\"},\"offload\":{\"scheme\":\"zero-infinity\",\"aio\":{\"block_bytes\":1048576,"
        "\"queue_depth\":1}}}";
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Report each;
    run_text(text, NULL, true, &each, arena, &error);
    g_assert_no_error(error);
    g_assert_cmpint(report_of(text, NULL, arena).step_ps, ==, each.step_ps);
    orr_arena_free(arena);
}

static void refused(void)
{
    static const char *const cases[][5] = {
        {"offload.optimizer.fraction", "a number from 0 to 1",
         "offload={\"optimizer\":{\"tier\":\"host\",\"fraction\":1.5}}"},
        {"offload.optimizer.tier", "no disks", "offload={\"optimizer\":{\"tier\":\"nvme\"}}",
         "cluster.host.nvme_bytes=0"},
        {"offload.optimizer.tier", "dram_bytes", "offload.scheme=zero-offload", "cluster.host.dram_bytes=0"},
        {"offload.scheme", "such as deepspeed", "offload.scheme=zero-offload",
         "execution.framework=nanotron"},
        {"offload.aio.queue_depth", "from 1",
         "offload={\"scheme\":\"zero-offload\",\"aio\":{\"queue_depth\":0}}"},
        {"offload.scheme", "did you mean \"zero-offload\"", "offload.scheme=zero-ofload"},
        {"parallel.zero", "give 3", "offload.scheme=zero-infinity"},
        {"parallel.zero", "give 1 or more", "offload.scheme=zero-offload", "parallel.zero=0"},
        {"offload.scheme", "give zero 0", "offload.scheme=stronghold", "parallel.zero=2"},
        {"parallel.weight_tiles", "give zero 3", "parallel.weight_tiles=4"},
        {"training.mlp_tiles", "leave \"tensor\" out", "training.mlp_tiles=4",
         "execution.overlap=[\"tensor\"]", "parallel.tensor=2"},
        {"training.mlp_tiles", "give 1, or a model without experts", "training.mlp_tiles=4",
         "model=mixtral-8x7b"},
        {"offload.window_layers", "at most 32", "offload={\"scheme\":\"zero-offload\",\"window_layers\":40}"},
        {"offload.weights.tier", "give offload.optimizer tier host",
         "offload={\"weights\":{\"tier\":\"host\"},\"optimizer\":{\"tier\":\"gpu\"}}", "parallel.zero=3"},
        {"offload.gradients.tier", "give offload.optimizer tier host",
         "offload={\"gradients\":{\"tier\":\"host\"},\"optimizer\":{\"tier\":\"gpu\"}}"},
        {"offload.overlap_update", "gradients do not leave at the step",
         "offload={\"scheme\":\"zero-offload\",\"overlap_update\":true}"},
        {"offload.gradients.tier", "give offload.optimizer tier nvme",
         "offload={\"gradients\":{\"tier\":\"nvme\"},\"optimizer\":{\"tier\":\"host\"}}"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Report report;
        g_assert_false(
            run_text(eight, SETS(cases[i][2], cases[i][3], cases[i][4]), false, &report, arena, &error));
        if (strstr(error->message, cases[i][0]) == NULL || strstr(error->message, cases[i][1]) == NULL)
            g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i][0]));
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_error_free(error);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/offload-scenarios/one-v100", one_v100);
    g_test_add_func("/offload-scenarios/auto-beside-tiers", auto_beside_tiers);
    g_test_add_func("/offload-scenarios/one-wafer", one_wafer);
    g_test_add_func("/offload-scenarios/ten-billion", ten_billion);
    g_test_add_func("/offload-scenarios/one-titan", one_titan);
    g_test_add_func("/offload-scenarios/trillion", trillion_parameters);
    g_test_add_func("/offload-scenarios/small-shares", small_shares);
    g_test_add_func("/offload-scenarios/requests", requests);
    g_test_add_func("/offload-scenarios/host-adam", host_adam);
    g_test_add_func("/offload-scenarios/shared-node", shared_node);
    g_test_add_func("/offload-scenarios/fixed-part", fixed_part);
    g_test_add_func("/offload-scenarios/both-parts", both_parts);
    g_test_add_func("/offload-scenarios/gains", gains);
    g_test_add_func("/offload-scenarios/random", random_schemes);
    g_test_add_func("/offload-scenarios/refused", refused);
    return g_test_run();
}
