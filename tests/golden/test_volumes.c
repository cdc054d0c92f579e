/* tests/golden/test_volumes.c - bytes that the engine counts, against the volumes of the papers: ZeRO, ZeRO++, hybrid
 * sharding, tensor and sequence parallelism, context parallelism, experts. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "costmodel/moe.h"
#include "costmodel/params.h"
#include "report/report.h"

#define LAYERS 4
#define HIDDEN 1024.0
#define TOKENS 2048.0

typedef struct Counted {
    double parameters, last_unit; /* of the model; of the head */
    double step_s;
    double up, out; /* bytes that rank 0 sends, by kind of link */
    double tag_up[SIM_TAG_COUNT], tag_out[SIM_TAG_COUNT], tag_s[SIM_TAG_COUNT];
} Counted;

/* `model`, `parallel` and `training` are members of those objects; `nodes` of 8 GPUs, 0: four GPUs. */
static Counted count(int nodes, const char *model, const char *parallel, const char *training,
                     const char *framework)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":%d,\"hidden\":1024,\"heads\":16,\"kv_heads\":8,\"ffn_hidden\":4096,\"gated_"
        "mlp\":true,"
        "\"vocab\":32768,\"tied_embeddings\":false,\"norm\":\"rmsnorm\",\"biases\":false,\"position\":"
        "\"rope\"%s},"
        "\"cluster\":{\"accelerator\":\"h100-sxm5-80gb\",\"gpus_per_node\":%d,\"nodes\":%d},"
        "\"training\":{\"sequence_length\":2048,\"gradient_reduce_dtype\":\"bf16\"%s},\"parallel\":{%s},"
        "\"execution\":{\"framework\":%s,\"attention\":\"flash2\",\"overlap\":[]}}",
        LAYERS, model, nodes == 0 ? 4 : 8, MAX(nodes, 1), training, parallel, framework);
    GError *error = NULL;
    Spec spec;
    Report report;
    const ReportOptions options = {.check = true, .record = SIM_RECORD_SPANS};
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "volumes", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "volumes", NULL, false, &spec, NULL, &error);
    g_assert_no_error(error);
    OrrArena *arena = orr_arena_new();
    report_run(&spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const CostParams head = cost_part_params(&spec.model, COST_PART_HEAD, 0);
    Counted counted = {.parameters = report.parameters,
                       .last_unit = head.tensor_sharded + head.replicated,
                       .step_s = (double)report.result.step_ps * 1e-12,
                       .up = (double)report.result.rank[0].scale_up_bytes,
                       .out = (double)report.result.rank[0].scale_out_bytes};
    for (int64_t i = 0; i < report.result.span_count; i++) {
        const SimSpan *span = &report.result.spans[i];
        if (span->rank == 0 && span->work >= 0) {
            counted.tag_up[span->tag] += (double)report.program.works[span->work].scale_up_bytes;
            counted.tag_s[span->tag] += (double)(span->end_ps - span->start_ps) * 1e-12;
            counted.tag_out[span->tag] += (double)report.program.works[span->work].scale_out_bytes;
        }
    }
    orr_arena_free(arena);
    orr_json_free(doc);
    return counted;
}

#define NEAR(a, b)       g_assert_cmpfloat_with_epsilon((a), (b), 64) /* bytes: rounding, and the 4 of the norm */
#define RATIO(a, b, eps) g_assert_cmpfloat_with_epsilon((a) / (b), 1, (eps))

#define ONE_BATCH ",\"global_batch\":8"
#define MEGATRON  "\"megatron-core\""
#define FSDP      "{\"preset\":\"pytorch-fsdp\"}"
#define KEEPING   "{\"preset\":\"pytorch-fsdp\",\"resharding\":\"never\"}"

/* ZeRO-0, 1, 2: 2 of the parameters; 3: 3, less the last unit, which is still there when its backward begins;
 * without resharding 2. All times (n - 1) / n. */
static void zero_stages(void)
{
    const double ring = 7.0 / 8;
    for (int zero = 0; zero <= 2; zero++) {
        g_autofree char *parallel = g_strdup_printf("\"data\":8,\"zero\":%d", zero);
        const Counted c = count(1, "", parallel, ONE_BATCH, MEGATRON);
        NEAR(c.up, 2 * ring * 2 * c.parameters);
        g_assert_cmpfloat(c.out, ==, 0);
    }
    const Counted full = count(1, "", "\"data\":8,\"zero\":3", ONE_BATCH, FSDP),
                  kept = count(1, "", "\"data\":8,\"zero\":3", ONE_BATCH, KEEPING);
    NEAR(full.up, ring * 2 * (3 * full.parameters - full.last_unit));
    NEAR(kept.up, ring * 2 * 2 * kept.parameters);
}

/* Over a micro-batches: ZeRO-1 still 2; ZeRO-2 that reduces each time a + 1; ZeRO-3 3 a. */
static void accumulation(void)
{
    const double ring = 7.0 / 8, a = 4;
    const Counted one = count(1, "", "\"data\":8,\"zero\":1", ",\"global_batch\":32", MEGATRON),
                  two = count(1, "", "\"data\":8,\"zero\":2", ",\"global_batch\":32", "\"deepspeed\""),
                  three = count(1, "", "\"data\":8,\"zero\":3", ",\"global_batch\":32", FSDP);
    NEAR(one.up, 2 * ring * 2 * one.parameters);
    NEAR(two.up, (a + 1) * ring * 2 * two.parameters);
    g_assert_cmpfloat(three.up, <=, 3 * a * ring * 2 * three.parameters + 64);
    g_assert_cmpfloat(three.up, >=, ring * 2 * (3 * a * three.parameters - 2 * a * three.last_unit) - 64);
}

#define DEEPSPEED(more) "{\"preset\":\"deepspeed-2021\",\"list_rank_host_s\":0,\"list_passes\":0" more "}"

/* Weights that recomputation used, gathered again for the gradients: 4 of the parameters, where the first unit of a
 * backward is still there from its forward. Each of 8 ranks' part of a list of tensors costs the host 1 ms: of 4 layers
 * of 4 weights and the input table gathered three times and the head's once, of their 6 tensors a layer, the tables and
 * the last norm reduced once. */
static void tensor_by_tensor(void)
{
    static const char *const FULL = ",\"global_batch\":8,\"recompute\":\"full\"";
    const double ring = 7.0 / 8;
    const Counted once = count(1, "", "\"data\":8,\"zero\":3", FULL,
                               DEEPSPEED(",\"resharding\":\"after-forward\"")),
                  twice = count(1, "", "\"data\":8,\"zero\":3", FULL, DEEPSPEED());
    NEAR(once.up, ring * 2 * (3 * once.parameters - once.last_unit));
    NEAR(twice.up, ring * 2 * (4 * twice.parameters - 2 * twice.last_unit));
    const Counted slow = count(1, "", "\"data\":8,\"zero\":3", FULL,
                               "{\"preset\":\"deepspeed-2021\",\"list_rank_host_s\":1e-3,\"list_passes\":0}");
    g_assert_cmpfloat_with_epsilon(slow.step_s - twice.step_s, 8e-3 * (3 * 17 + 1 + 24 + 3), 1e-6);
}

/* ZeRO-1 on lists of slices: 27 tensors (6 a layer, two tables, the last norm), 8 ranks, 1 ms for each part when the
 * weights are gathered. The sums lie in one buffer, which is all-reduced. */
static void lists_of_slices(void)
{
    static const char *const ONE = "\"data\":8,\"zero\":1";
    const Counted none = count(1, "", ONE, ONE_BATCH,
                               "{\"preset\":\"nanotron\",\"list_rank_host_s\":0,\"list_passes\":0}"),
                  slow = count(1, "", ONE, ONE_BATCH,
                               "{\"preset\":\"nanotron\",\"list_rank_host_s\":1e-3,\"list_passes\":0}");
    g_assert_cmpfloat_with_epsilon(slow.step_s - none.step_s, 27 * 8e-3, 1e-6);
    NEAR(slow.up, none.up);
    NEAR(none.tag_up[SIM_TAG_GRAD_REDUCE], 2 * 7.0 / 8 * 2 * none.parameters);
    NEAR(none.tag_up[SIM_TAG_PARAM_GATHER], 7.0 / 8 * 2 * none.parameters);
}

/* Hooks of ZeRO-0 reduce beside the last backward without being told; ZeRO-1 does not have them. */
static void hooks(void)
{
    static const char *const OFF =
        "{\"preset\":\"nanotron\",\"data_parallel\":{\"reductions\":\"as-asked\"}}";
    const Counted late = count(1, "", "\"data\":8,\"zero\":0", ONE_BATCH, OFF),
                  beside = count(1, "", "\"data\":8,\"zero\":0", ONE_BATCH, "\"nanotron\""),
                  one_late = count(1, "", "\"data\":8,\"zero\":1", ONE_BATCH, OFF),
                  one = count(1, "", "\"data\":8,\"zero\":1", ONE_BATCH, "\"nanotron\"");
    g_assert_cmpfloat(beside.step_s, <, late.step_s);
    NEAR(beside.up, late.up);
    g_assert_cmpfloat_with_epsilon(one.step_s, one_late.step_s, 1e-12);
}

/* A message's shape read back on the host delays it: one micro-batch over two ranks waits for it there, with its mask,
 * and back. */
static void shapes_sent_ahead(void)
{
    static const char *const TWO = "\"pipeline\":2,\"data\":4,\"zero\":0";
    const Counted plain =
                      count(1, "", TWO, ",\"global_batch\":4", "{\"preset\":\"nanotron\",\"p2p_host_s\":0}"),
                  ahead = count(1, "", TWO, ",\"global_batch\":4",
                                "{\"preset\":\"nanotron\",\"p2p_host_s\":0.01}");
    g_assert_cmpfloat_with_epsilon(ahead.step_s - plain.step_s, 3 * 0.01, 1e-6);
    NEAR(ahead.up, plain.up);
}

#define DEEPSPEED_PIPE(more) "{\"preset\":\"megatron-core\",\"p2p_waits\":\"as-asked\"" more "}"

/* DeepSpeed's pipeline. Stages 0 and 2 of four are on rank 0, whose two forward messages are a quarter of the activation and
 * a gather of the rest each; its gradient to stage 1 is gathered there beside that stage's output: one quarter, twice
 * three quarters. One at a time, a forward and its gradient take twice as long between two ranks. */
static void deepspeed_pipe(void)
{
    static const char
        *const CUT = "\"tensor\":4,\"sequence_parallel\":false,\"pipeline\":2,\"virtual_stages\":2,"
                     "\"data\":1",
               *const TWO = "\"pipeline\":2,\"data\":4,\"zero\":0";
    const double m = TOKENS * HIDDEN * 2;
    const Counted cut = count(1, "", CUT, ",\"global_batch\":2",
                              DEEPSPEED_PIPE(",\"pipeline\":{\"p2p_tensors\":\"partitioned\"}"));
    NEAR(cut.tag_up[SIM_TAG_SEND_FORWARD], 2 * 2 * m);
    NEAR(cut.tag_up[SIM_TAG_SEND_BACKWARD], 2 * 1.75 * m);
    const Counted both = count(1, "", TWO, ",\"global_batch\":4", DEEPSPEED_PIPE()),
                  one =
                      count(1, "", TWO, ",\"global_batch\":4", DEEPSPEED_PIPE(",\"p2p_one_at_a_time\":true"));
    g_assert_cmpfloat_with_epsilon(one.step_s - both.step_s, 2 * both.tag_s[SIM_TAG_SEND_FORWARD], 1e-9);
    g_assert_cmpfloat_with_epsilon(one.tag_s[SIM_TAG_SEND_FORWARD], 2 * both.tag_s[SIM_TAG_SEND_FORWARD],
                                   1e-9);
}

/* Hosts of a pipeline compare each bucket before hooks reduce it: 4 messages between two replicas for each 50 MiB of the
 * 16-bit gradients of the first rank, all but the head's. Without a pipeline they do not. */
static void checked_buckets(void)
{
    static const char *const PIPELINE = "\"pipeline\":2,\"data\":2,\"zero\":0",
                             *const NONE = "\"data\":4,\"zero\":0",
                             *const ONE = "{\"preset\":\"nanotron-2025\",\"collective_check_hop_s\":1}",
                             *const TWO = "{\"preset\":\"nanotron-2025\",\"collective_check_hop_s\":2}";
    const Counted one = count(0, "", PIPELINE, ",\"global_batch\":2", ONE),
                  two = count(0, "", PIPELINE, ",\"global_batch\":2", TWO);
    RATIO(two.step_s - one.step_s, 4 * (one.parameters - one.last_unit) * 2 / 52428800, 1e-4);
    g_assert_cmpfloat(count(0, "", NONE, ONE_BATCH, ONE).step_s, ==,
                      count(0, "", NONE, ONE_BATCH, TWO).step_s);
}

/* Shards of a node, replicas across nodes: 3 inside, 2 / g across (less what one node in k keeps). */
static void hybrid(void)
{
    const Counted c =
        count(2, "", "\"data\":16,\"zero\":3,\"zero_group_gpus\":8", ",\"global_batch\":16", FSDP);
    NEAR(c.tag_up[SIM_TAG_PARAM_GATHER] + c.tag_up[SIM_TAG_GRAD_REDUCE],
         7.0 / 8 * 2 * (3 * c.parameters - c.last_unit));
    NEAR(c.tag_out[SIM_TAG_PARAM_GATHER], 0);
    NEAR(c.tag_out[SIM_TAG_GRAD_REDUCE], 1.0 / 2 * 2 * c.parameters * 2 / 8);
}

/* ZeRO++: across nodes 3 M becomes 0.75 M, and what the blocks' scales add: 4 bytes for 256 values. */
static void zeropp(void)
{
    static const char *const ALL = "\"data\":16,\"zero\":3,\"quantized_weight_gather\":true,"
                                   "\"secondary_weight_shard\":true,\"quantized_gradient_reduce\":true";
    const double scales = 4.0 / 256, share = 1.0 / 2 / 8; /* (k-1)/k of a rank's eighth */
    const Counted plain = count(2, "", "\"data\":16,\"zero\":3", ",\"global_batch\":16", FSDP),
                  plus = count(2, "", ALL, ",\"global_batch\":16", FSDP),
                  weights = count(2, "", "\"data\":16,\"zero\":3,\"secondary_weight_shard\":true",
                                  ",\"global_batch\":16", FSDP);
    NEAR(plain.out, share * 2 * (3 * plain.parameters - plain.last_unit));
    NEAR(plus.out, share * plus.parameters * (1 + scales + 0.5 + scales));
    RATIO(plus.out, 0.25 * share * 2 * 3 * plus.parameters, 0.025);
    NEAR(weights.out,
         share * 2 * 2 * weights.parameters); /* hpZ alone: forward gather and reduction are left */
}

/* Sequence parallelism sends what tensor parallelism sends, and gathers the inputs of column-parallel layers again. */
static void tensor_and_sequence(void)
{
    const double m = TOKENS * HIDDEN * 2, ring = 7.0 / 8;
    const Counted plain = count(1, "", "\"tensor\":8,\"data\":1,\"sequence_parallel\":false",
                                ",\"global_batch\":1", MEGATRON),
                  sequence = count(1, "", "\"tensor\":8,\"data\":1,\"sequence_parallel\":true",
                                   ",\"global_batch\":1", MEGATRON);
    NEAR(sequence.up - (2 * LAYERS + 1) * ring * m, plain.up);
    const double loss = 2 * ring * 3 * TOKENS * 4, once = 2 * ring * m; /* embedding; head's input gradient */
    NEAR(plain.tag_up[SIM_TAG_FORWARD], ring * (4 * LAYERS * m) + once + loss);
    NEAR(plain.tag_up[SIM_TAG_BACKWARD], ring * (4 * LAYERS * m) + once);
}

/* Inputs and outputs of the linear layers of a layer, and of the head. */
static const double LINEARS[][2] = {{1024, 2048}, {1024, 1024}, {1024, 8192}, {4096, 1024}, {1024, 32768}};

/* A sum over all linears of x m k + w k n + y m n, 2 bytes each. */
static double linear_bytes(double x, double w, double y)
{
    double sum = 0;
    for (int i = 0; i < 5; i++) {
        const double k = LINEARS[i][0], n = LINEARS[i][1], m = TOKENS;
        sum += (i < 4 ? LAYERS : 1) * 2 * (x * m * k + w * k * n + y * m * n);
    }
    return sum;
}

/* Grids: 2D 3 (q-1)/q^2 (mk + kn) forward and backward; 2.5D the same with m / d, and the layers' weight gradients;
 * 3D 3 (q-1)/q^3 (mk + kn + mn). A third of it forward. */
static void grids(void)
{
    static const struct {
        const char *parallel;
        double ranks, x, w, y, once;
    } cases[] = {
        {"\"tensor\":4,\"data\":1,\"tensor_scheme\":\"2d\"", 4, 1.0 / 4, 1.0 / 4, 0, 0},
        {"\"tensor\":8,\"data\":1,\"tensor_scheme\":\"2.5d\",\"tensor_depth\":2", 8, 1.0 / 8, 1.0 / 4, 0,
         1.0 / 4},
        {"\"tensor\":4,\"data\":1,\"tensor_scheme\":\"2.5d\",\"tensor_depth\":1", 4, 1.0 / 4, 1.0 / 4, 0, 0},
        {"\"tensor\":8,\"data\":1,\"tensor_scheme\":\"3d\"", 8, 1.0 / 8, 1.0 / 8, 1.0 / 8, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double ring = (cases[i].ranks - 1) / cases[i].ranks, embedding = ring * TOKENS * HIDDEN * 2,
                     loss = 2 * ring * 3 * TOKENS * 4, one = linear_bytes(cases[i].x, cases[i].w, cases[i].y);
        const Counted c =
            count((int)cases[i].ranks / 8, "", cases[i].parallel, ",\"global_batch\":1", MEGATRON);
        NEAR(c.tag_up[SIM_TAG_FORWARD], one + embedding + loss);
        NEAR(c.tag_up[SIM_TAG_BACKWARD], 2 * one + linear_bytes(0, cases[i].once, 0) + embedding);
    }
}

/* Keys and values once forward, once more and their gradients backward. */
static void context(void)
{
    const double kv = 2.0 * TOKENS * 8 * 64 * 2, part = 7.0 / 8;
    static const char *const MODES[] = {"ring", "ring-naive", "ring-striped", "allgather"};
    for (size_t i = 0; i < G_N_ELEMENTS(MODES); i++) {
        g_autofree char *parallel =
            g_strdup_printf("\"context\":8,\"data\":1,\"context_mode\":\"%s\"", MODES[i]);
        const Counted c = count(1, "", parallel, ",\"global_batch\":1", MEGATRON);
        NEAR(c.tag_up[SIM_TAG_FORWARD], LAYERS * part * kv);
        NEAR(c.tag_up[SIM_TAG_BACKWARD], 2 * LAYERS * part * kv);
    }
}

#define EXPERTS(n) ",\"moe\":{\"experts\":256,\"top_k\":" #n ",\"expert_ffn_hidden\":512}"

/* An all-to-all moves a probability of 4 bytes beside the two ways of a row of 16 bits. */
#define WITH_PROBABILITIES (1 + 4.0 / (2 * 2 * HIDDEN))

/* Forward gathers how many rows go to each of the 256 experts besides. */
static void counts_besides(const double bytes[SIM_TAG_COUNT], int ranks)
{
    const double counts = bytes[SIM_TAG_FORWARD] - bytes[SIM_TAG_BACKWARD];
    g_assert_cmpfloat(counts, >, 0);
    g_assert_cmpfloat(counts, <=, LAYERS * 4.0 * 256 * ranks);
}

/* A token crosses once to every other node that it has experts on: 5.295, 3.614, 1.993 nodes of 8, 4, 2. */
static void nodes_touched(void)
{
    static const struct {
        int nodes;
        double touched;
    } cases[] = {{8, 5.295}, {4, 3.614}, {2, 1.993}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const int nodes = cases[i].nodes, ranks = 8 * nodes;
        g_autofree char *parallel =
            g_strdup_printf("\"data\":%d,\"expert\":%d,\"moe_dispatcher\":\"deepep\"", ranks, ranks);
        g_autofree char *plain =
            g_strdup_printf("\"data\":%d,\"expert\":%d,\"moe_dispatcher\":\"alltoall\"", ranks, ranks);
        g_autofree char *batch = g_strdup_printf(",\"global_batch\":%d", ranks);
        const Counted deep = count(nodes, EXPERTS(8), parallel, batch, MEGATRON),
                      all = count(nodes, EXPERTS(8), plain, batch, MEGATRON);
        const double once =
            LAYERS * TOKENS * HIDDEN * 2 * (nodes - 1) / nodes; /* one node, one way, every layer */
        RATIO(deep.tag_out[SIM_TAG_FORWARD], 2 * cases[i].touched * once, 2e-4);
        RATIO(deep.tag_out[SIM_TAG_BACKWARD], 2 * cases[i].touched * once, 2e-4);
        RATIO(all.tag_out[SIM_TAG_BACKWARD], 2 * 8 * once * WITH_PROBABILITIES, 1e-6);
        counts_besides(all.tag_out, ranks);
    }
}

static void dispatch_and_combine(void)
{
    const Counted wide = count(2, EXPERTS(4), "\"data\":16,\"expert\":16,\"moe_dispatcher\":\"alltoall\"",
                               ",\"global_batch\":16", MEGATRON),
                  narrow = count(
                      2, EXPERTS(4),
                      "\"data\":16,\"expert\":16,\"moe_dispatcher\":\"alltoall\",\"moe_dispatch_fp8\":true",
                      ",\"global_batch\":16", MEGATRON),
                  one = count(2, EXPERTS(4), "\"data\":16,\"expert\":1", ",\"global_batch\":16", MEGATRON);
    const double rows = LAYERS * TOKENS * 4 * HIDDEN * 2 * 15 / 16; /* all experts but this rank's */
    const double all = wide.tag_up[SIM_TAG_FORWARD] + wide.tag_out[SIM_TAG_FORWARD],
                 back = wide.tag_up[SIM_TAG_BACKWARD] + wide.tag_out[SIM_TAG_BACKWARD];
    RATIO(back, 2 * rows * WITH_PROBABILITIES, 1e-6);
    NEAR(all - back, LAYERS * 4.0 * 256 * 15); /* of 16 ranks, all but its own */
    RATIO(all - narrow.tag_up[SIM_TAG_FORWARD] - narrow.tag_out[SIM_TAG_FORWARD],
          rows * (1 - (1 + 4.0 / 128) / 2), 1e-6);
    g_assert_cmpfloat(one.tag_up[SIM_TAG_FORWARD] + one.tag_out[SIM_TAG_FORWARD], ==, 0);
}

static double sum_of(const double bytes[SIM_TAG_COUNT])
{
    double sum = 0;
    for (int tag = 0; tag < SIM_TAG_COUNT; tag++) {
        sum += bytes[tag];
    }
    return sum;
}

/* ZeRO++ on experts: eight replicas of each, four a node; nothing of the backward's gathers crosses, and gradients and
 * weights do in 4 and 8 bits. */
static void zeropp_experts(void)
{
    static const char *const SHARD = "\"data\":16,\"expert\":2,\"zero\":3,\"secondary_weight_shard\":true";
    g_autofree char *all =
        g_strdup_printf("%s,\"quantized_weight_gather\":true,\"quantized_gradient_reduce\":true", SHARD);
    const Counted node = count(2, EXPERTS(4), SHARD, ",\"global_batch\":16", FSDP),
                  plus = count(2, EXPERTS(4), all, ",\"global_batch\":16", FSDP);
    const double experts = LAYERS * 256 * 3 * HIDDEN * 512 / 2, dense = node.parameters - 2 * experts,
                 across = dense / 8 / 2 + experts / 4 / 2, scales = 4.0 / 256;
    const SimTag tags[] = {SIM_TAG_PARAM_GATHER, SIM_TAG_GRAD_REDUCE};
    double out[2] = {0};
    for (int i = 0; i < 2; i++) {
        out[0] += node.tag_out[tags[i]];
        out[1] += plus.tag_out[tags[i]];
    }
    RATIO(out[0], 2 * 2 * across, 1e-6);
    RATIO(out[1], (1 + scales + 0.5 + scales) * across, 1e-6);
}

/* The order of the ranks says which of them share a node: the same bytes, on other links. */
static void orders(void)
{
    static const char *const DEGREES = "\"tensor\":4,\"data\":4,\"zero\":1";
    g_autofree char *data_inside = g_strdup_printf("%s,\"order\":\"dp-tp-cp-ep-pp\"", DEGREES);
    const Counted tensor = count(2, "", DEGREES, ",\"global_batch\":4", MEGATRON),
                  data = count(2, "", data_inside, ",\"global_batch\":4", MEGATRON);
    g_assert_cmpfloat(tensor.tag_out[SIM_TAG_FORWARD], ==, 0);
    g_assert_cmpfloat(tensor.tag_out[SIM_TAG_GRAD_REDUCE], >, 0);
    g_assert_cmpfloat(data.tag_out[SIM_TAG_GRAD_REDUCE] + data.tag_out[SIM_TAG_PARAM_GATHER], ==, 0);
    NEAR(data.tag_up[SIM_TAG_FORWARD],
         2 * data.tag_out[SIM_TAG_FORWARD]); /* two ranks in each of two nodes */
    NEAR(sum_of(data.tag_up) + sum_of(data.tag_out), sum_of(tensor.tag_up) + sum_of(tensor.tag_out));

    static const char *const STAGES = "\"pipeline\":2,\"data\":8";
    g_autofree char *pipeline_inside = g_strdup_printf("%s,\"order\":\"pp-tp-cp-ep-dp\"", STAGES);
    const Counted far = count(2, "", STAGES, ",\"global_batch\":32", MEGATRON),
                  near = count(2, "", pipeline_inside, ",\"global_batch\":32", MEGATRON);
    NEAR(far.tag_out[SIM_TAG_SEND_FORWARD], 4 * TOKENS * HIDDEN * 2);
    NEAR(near.tag_up[SIM_TAG_SEND_FORWARD], 4 * TOKENS * HIDDEN * 2);
    g_assert_cmpfloat(far.tag_up[SIM_TAG_SEND_FORWARD] + near.tag_out[SIM_TAG_SEND_FORWARD], ==, 0);
}

/* A grid whose ranks lie in two nodes sends what it sends in one. */
static void grids_across(void)
{
    static const char *const GRIDS[] = {
        "\"tensor\":4,\"tensor_scheme\":\"2d\",\"data\":4",
        "\"tensor\":8,\"tensor_scheme\":\"2.5d\",\"tensor_depth\":2,\"data\":2",
        "\"tensor\":8,\"tensor_scheme\":\"3d\",\"data\":2", "\"tensor\":8,\"data\":2"};
    for (size_t i = 0; i < G_N_ELEMENTS(GRIDS); i++) {
        g_autofree char *across = g_strdup_printf("%s,\"order\":\"dp-tp-cp-ep-pp\"", GRIDS[i]);
        const Counted one = count(2, "", GRIDS[i], ",\"global_batch\":4", MEGATRON),
                      two = count(2, "", across, ",\"global_batch\":4", MEGATRON);
        const SimTag tags[] = {SIM_TAG_FORWARD, SIM_TAG_BACKWARD};
        double one_s = 0, two_s = 0;
        for (int t = 0; t < 2; t++) {
            one_s += one.tag_s[tags[t]];
            two_s += two.tag_s[tags[t]];
            g_assert_cmpfloat(one.tag_out[tags[t]], ==, 0);
            g_assert_cmpfloat(two.tag_out[tags[t]], >, 0);
            NEAR(two.tag_out[tags[t]] + two.tag_up[tags[t]], one.tag_up[tags[t]]);
        }
        g_assert_cmpfloat(two_s, >,
                          one_s); /* of passes: gradients are quicker, whose groups are inside now */
    }
}

/* Ulysses: queries, keys, values and outputs of a rank's tokens to c ranks, backward as much. Hierarchical: the same
 * among the eight of a node, and keys and values of a rank's heads once around the nodes. */
static void heads_to_ranks(void)
{
    const double row = (2 * 16 + 2 * 8) * 64 * 2;
    const Counted a = count(1, "", "\"context\":8,\"data\":1,\"context_mode\":\"ulysses\"",
                            ",\"global_batch\":1", MEGATRON),
                  b = count(2, "", "\"context\":16,\"data\":1,\"context_mode\":\"hierarchical\"",
                            ",\"global_batch\":1", MEGATRON);
    const double inside = LAYERS * TOKENS / 8 * row * 7 / 8, ring = 2.0 * TOKENS * 64 * 2 / 2;
    NEAR(a.tag_up[SIM_TAG_FORWARD], inside);
    NEAR(a.tag_up[SIM_TAG_BACKWARD], inside);
    NEAR(b.tag_up[SIM_TAG_FORWARD], inside / 2);
    NEAR(b.tag_out[SIM_TAG_FORWARD], LAYERS * ring);
    NEAR(b.tag_out[SIM_TAG_BACKWARD], 2 * LAYERS * ring);
}

/* All copies of a token to the nodes of its experts, then inside each; every way. */
static void two_steps(void)
{
    const Counted c = count(2, EXPERTS(4), "\"data\":16,\"expert\":16,\"moe_dispatcher\":\"hierarchical\"",
                            ",\"global_batch\":16", MEGATRON);
    const double rows = LAYERS * TOKENS * 4 * HIDDEN * 2;
    RATIO(c.tag_out[SIM_TAG_FORWARD], 2 * rows / 2, 1e-6);
    RATIO(c.tag_up[SIM_TAG_FORWARD], 2 * rows * 7 / 8, 1e-6);
}

/* Shards over 4 of 16 dense and of 8 expert replicas; what is left of either sums its shards. */
static void hybrid_experts(void)
{
    const Counted c = count(2, EXPERTS(4), "\"data\":16,\"expert\":2,\"zero\":3,\"zero_group_gpus\":4",
                            ",\"global_batch\":16", FSDP);
    const double all = LAYERS * 256 * 3 * HIDDEN * 512, dense = c.parameters - all, experts = all / 2;
    const double scattered = 3.0 / 4 * 2 * (dense + experts),
                 summed = 2 * 3.0 / 4 * 2 * dense / 4 + 2 * 1.0 / 2 * 2 * experts / 4;
    RATIO(c.tag_up[SIM_TAG_GRAD_REDUCE] + c.tag_out[SIM_TAG_GRAD_REDUCE], scattered + summed, 1e-6);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/volumes/zero-stages", zero_stages);
    g_test_add_func("/volumes/accumulation", accumulation);
    g_test_add_func("/volumes/tensor-by-tensor", tensor_by_tensor);
    g_test_add_func("/volumes/lists-of-slices", lists_of_slices);
    g_test_add_func("/volumes/hooks", hooks);
    g_test_add_func("/volumes/shapes-sent-ahead", shapes_sent_ahead);
    g_test_add_func("/volumes/deepspeed-pipe", deepspeed_pipe);
    g_test_add_func("/volumes/checked-buckets", checked_buckets);
    g_test_add_func("/volumes/hybrid", hybrid);
    g_test_add_func("/volumes/hybrid-experts", hybrid_experts);
    g_test_add_func("/volumes/zeropp-experts", zeropp_experts);
    g_test_add_func("/volumes/orders", orders);
    g_test_add_func("/volumes/grids-across", grids_across);
    g_test_add_func("/volumes/heads-to-ranks", heads_to_ranks);
    g_test_add_func("/volumes/two-steps", two_steps);
    g_test_add_func("/volumes/zeropp", zeropp);
    g_test_add_func("/volumes/tensor-and-sequence", tensor_and_sequence);
    g_test_add_func("/volumes/grids", grids);
    g_test_add_func("/volumes/context", context);
    g_test_add_func("/volumes/nodes-touched", nodes_touched);
    g_test_add_func("/volumes/dispatch-and-combine", dispatch_and_combine);
    return g_test_run();
}
