/* tests/unit/costmodel/test_context.c - the ways to split a sequence: balance, work, bytes, packed documents. */
#include <math.h>
#include <string.h>

#include "costmodel/context.h"
#include "costmodel/pass.h"
#include "tests/unit/layer_fixture.h"

#define CLOSE(a, b, eps) g_assert_cmpfloat_with_epsilon((a), (b), (eps) + 1e-15)

/* Pairs (query, key) of the busiest rank over the mean: contiguous pieces (2 cp - 1) / cp, else 1. */
static double most_pairs(SpecContextMode mode, int context, bool causal)
{
    return causal && mode == SPEC_CONTEXT_RING_NAIVE ? (2.0 * context - 1) / context : 1;
}

static const SpecContextMode MODES[] = {
    SPEC_CONTEXT_RING,           SPEC_CONTEXT_RING_NAIVE, SPEC_CONTEXT_RING_STRIPED, SPEC_CONTEXT_ALLGATHER,
    SPEC_CONTEXT_ALLGATHER_RING, SPEC_CONTEXT_ULYSSES,    SPEC_CONTEXT_HIERARCHICAL};

static Spec make_spec(SpecContextMode mode, int context, bool causal)
{
    Spec spec = {0};
    spec.model = fixture_llama(1024, causal);
    spec.cluster = (SpecCluster){.gpus_per_node = 8,
                                 .nodes = 1,
                                 .scale_up_domain_gpus = 8,
                                 .scale_up_bytes_per_s = 450e9,
                                 .scale_out_bytes_per_s_per_gpu = 50e9};
    spec.cluster.accelerator = (SpecAccelerator){.memory_bytes_per_s = 3.3e12,
                                                 .sm_count = 132,
                                                 .l2_bytes = 50e6,
                                                 .generation = *spec_generation("hopper"),
                                                 .scale_up_bytes_per_s = 450e9};
    spec.cluster.accelerator.peak_flops_per_s[SPEC_BF16] = 989e12;
    spec.training = (SpecTraining){
        .sequence_length = 65536, .global_batch = 8, .micro_batch = 2, .precision = SPEC_PRECISION_BF16};
    spec.parallel = (SpecParallel){.tensor = 1,
                                   .context = context,
                                   .pipeline = 1,
                                   .virtual_stages = 1,
                                   .data = 8 / context,
                                   .expert = 1,
                                   .expert_tensor = 1,
                                   .context_mode = mode,
                                   .context_inner = mode == SPEC_CONTEXT_HIERARCHICAL ? 2 : 0};
    spec.execution.attention = SPEC_ATTENTION_FLASH3;
    spec.execution.framework.kernels.attention_speed_frac = 1;
    return spec;
}

static CostOps core_ops(const Spec *spec, CostPass pass)
{
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, spec);
    cost_ops_attention(&shape, 0, pass, &ops);
    return ops;
}

static double flops(const CostOps *ops, bool model)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        if (ops->op[i].module == COST_MODULE_ATTENTION_CORE) {
            sum += model ? ops->op[i].model_flops : ops->op[i].full_flops;
        }
    }
    return sum;
}

static double bytes(const CostOps *ops)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        if (op->kind == COST_OP_COLLECTIVE && op->u.collective.comm == COST_COMM_CONTEXT) {
            const CostTraffic traffic = cost_collective_traffic(&op->u.collective.collective);
            sum += (op->repeat > 0 ? op->repeat : 1) * (traffic.scale_up_bytes + traffic.scale_out_bytes);
        }
    }
    return sum;
}

/* Pairs that the busiest rank's kernels work on, from their sizes: half a block where causal. */
static double kernel_pairs(const CostOps *ops)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostAttention *a = &ops->op[i].u.attention;
        if (ops->op[i].kind == COST_OP_ATTENTION) {
            const double share = a->causal ? 0.5 : 1;
            sum += (ops->op[i].repeat > 0 ? ops->op[i].repeat : 1) * a->q_tokens * a->kv_tokens * share *
                   a->heads;
        }
    }
    return sum;
}

static void imbalance(void)
{
    CLOSE(most_pairs(SPEC_CONTEXT_RING_NAIVE, 1, true), 1, 0);
    CLOSE(most_pairs(SPEC_CONTEXT_RING_NAIVE, 8, true), 15.0 / 8, 1e-15);
    CLOSE(most_pairs(SPEC_CONTEXT_RING_NAIVE, 8, false), 1, 0);
    for (int context = 2; context <= 8; context *= 2) {
        for (size_t m = 0; m < G_N_ELEMENTS(MODES); m++) {
            for (int causal = 0; causal < 2; causal++) {
                const Spec spec = make_spec(MODES[m], context, causal);
                const CostOps ops = core_ops(&spec, COST_FORWARD);
                const double s = 65536, even = s * s / context * (causal ? 0.5 : 1) * 32;
                CLOSE(kernel_pairs(&ops) / even, most_pairs(MODES[m], context, causal), 1e-12);
            }
        }
    }
}

static void flops_do_not_depend_on_the_mode(void)
{
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
        const Spec whole = make_spec(SPEC_CONTEXT_RING, 1, true);
        const CostOps one = core_ops(&whole, (CostPass)pass);
        for (size_t m = 0; m < G_N_ELEMENTS(MODES); m++) {
            const Spec spec = make_spec(MODES[m], 4, true);
            const CostOps ops = core_ops(&spec, (CostPass)pass);
            CLOSE(flops(&ops, true) / flops(&one, true), 0.25, 1e-12);
            CLOSE(flops(&ops, false) / flops(&one, false), 0.25, 1e-12);
        }
    }
}

static void volumes(void)
{
    const double kv = 2.0 * 2 * 65536 * 8 * 128 * 2; /* K and V of both sequences, bf16 */
    for (int context = 2; context <= 8; context *= 2) {
        const double part = (context - 1.0) / context;
        for (size_t m = 0; m < G_N_ELEMENTS(MODES); m++) {
            const Spec spec = make_spec(MODES[m], context, true);
            const CostOps forward = core_ops(&spec, COST_FORWARD),
                          backward = core_ops(&spec, COST_BACKWARD_INPUT);
            if (MODES[m] ==
                SPEC_CONTEXT_ULYSSES) { /* queries, keys, values there, output back: the same either way */
                const double sent = part / context * 2 * 65536 * (2 * 32 + 2 * 8) * 128 * 2.0;
                CLOSE(bytes(&forward) / sent, 1, 1e-12);
                CLOSE(bytes(&backward) / sent, 1, 1e-12);
            } else if (MODES[m] == SPEC_CONTEXT_ALLGATHER_RING) { /* gradients in fp32, all the way round */
                CLOSE(bytes(&forward) / (part * kv), 1, 1e-12);
                CLOSE(bytes(&backward) / ((part + 2) * kv), 1, 1e-12);
            } else if (MODES[m] != SPEC_CONTEXT_HIERARCHICAL) {
                CLOSE(bytes(&forward) / (part * kv), 1, 1e-12);
                CLOSE(bytes(&backward) / bytes(&forward), 2, 1e-12);
            }
        }
    }
}

/* Inside the node heads are traded, across it keys and values pass: the two parts of domain 5.3. */
static void hierarchical(void)
{
    const Spec spec = make_spec(SPEC_CONTEXT_HIERARCHICAL, 8, true);
    CostShape shape;
    cost_shape_init(&shape, &spec);
    const CostContextPlan plan = cost_context_plan(&shape);
    g_assert_cmpint(plan.inner, ==, 2);
    g_assert_cmpint(plan.ring, ==, 4);
    CLOSE(plan.q_tokens, 65536 / 4, 0);
    CLOSE(plan.heads, 16, 0);
    const CostOps ops = core_ops(&spec, COST_FORWARD);
    const double trade = 0.5 * (2 * 65536 / 8.0) * (2 * 32 + 2 * 8) * 128 * 2,
                 ring = 3.0 / 4 * 2 * 2.0 * 65536 * 4 * 128 * 2;
    CLOSE(bytes(&ops) / (trade + ring), 1, 1e-12);
}

static double core_s(const Spec *spec)
{
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, spec);
    cost_ops_attention(&shape, 0, COST_FORWARD, &ops);
    const CostTime time = cost_time_ops(&shape, &ops, COST_FORWARD);
    return cost_time_total_s(&time);
}

static void order_of_the_modes(void)
{
    const Spec ring = make_spec(SPEC_CONTEXT_RING, 8, true),
               naive = make_spec(SPEC_CONTEXT_RING_NAIVE, 8, true),
               gathered = make_spec(SPEC_CONTEXT_ALLGATHER, 8, true),
               one = make_spec(SPEC_CONTEXT_RING, 1, true);
    g_assert_cmpfloat(core_s(&naive), >, 1.3 * core_s(&ring)); /* waits for the last rank */
    g_assert_cmpfloat(core_s(&gathered), >, core_s(&one) / 8); /* nothing is free */
    g_assert_cmpfloat(core_s(&ring), >, core_s(&one) / 8);
    Spec slow = ring; /* hops hide beside steps until the link is slower than compute */
    slow.cluster.scale_up_bytes_per_s = slow.cluster.accelerator.scale_up_bytes_per_s = 2e9;
    g_assert_cmpfloat(core_s(&slow), >, 1.5 * core_s(&ring));
}

/* A window leaves each mode its own exchange, its balance and its work: as wide as the sequence it is none, wider is never
 * faster, and contiguous pieces wait for the last rank until the window is short of its own piece. */
static void windows(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(MODES); i++) {
        Spec spec = make_spec(MODES[i], 8, true);
        const CostOps none = core_ops(&spec, COST_FORWARD);
        const double whole_s = core_s(&spec);
        double before_s = 0;
        for (int window = 256; window <= 65536; window *= 2) {
            spec.model.attention_window_tokens = window - (window == 65536);
            const CostOps ops = core_ops(&spec, COST_FORWARD);
            CLOSE(bytes(&ops), bytes(&none), 1);
            g_assert_cmpfloat(flops(&ops, true), <=, flops(&none, true));
            g_assert_cmpfloat(core_s(&spec), >=, 0.99 * before_s);
            before_s = core_s(&spec);
        }
        CLOSE(before_s / whole_s, 1, 0.015); /* edges of windows, in each step of a striped ring */
    }
    Spec ring = make_spec(SPEC_CONTEXT_RING, 8, true), naive = make_spec(SPEC_CONTEXT_RING_NAIVE, 8, true);
    ring.model.attention_window_tokens = naive.model.attention_window_tokens = 49152;
    g_assert_cmpfloat(core_s(&naive), >, 1.15 * core_s(&ring));
    ring.training.document_tokens = naive.training.document_tokens = 30000;
    ring.model.attention_window_tokens = naive.model.attention_window_tokens = 0;
    g_assert_cmpfloat(core_s(&naive), >, 1.02 * core_s(&ring));
}

/* Scores that are computed whole: half of the blocks where keys pass by and the mask empties them, all where they are gathered
 * or wait for the last rank; what is kept of them is what is computed. */
static void unfused_modes(void)
{
    const double scores = 2.0 * 32 * 8192 * 65536; /* of a rank: sequences, heads, queries, keys */
    static const struct {
        SpecContextMode mode;
        double computed;
    } CASES[] = {{SPEC_CONTEXT_RING, 9.0 / 16},
                 {SPEC_CONTEXT_RING_NAIVE, 1},
                 {SPEC_CONTEXT_ALLGATHER, 1},
                 {SPEC_CONTEXT_ULYSSES, 1},
                 {SPEC_CONTEXT_HIERARCHICAL, 5.0 / 8}};
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        Spec spec = make_spec(CASES[i].mode, 8, true);
        Spec fused = spec;
        spec.execution.attention = SPEC_ATTENTION_UNFUSED;
        spec.execution.framework.kernels.softmax = SPEC_SOFTMAX_FUSED;
        const CostOps ops = core_ops(&spec, COST_FORWARD), other = core_ops(&fused, COST_FORWARD);
        double kept = 0;
        for (int k = 0; k < ops.kept_count; k++) {
            kept += strcmp(ops.kept[k].name, "softmax") == 0 ? ops.kept[k].bytes : 0;
        }
        CLOSE(kept / (2 * scores), CASES[i].computed, 1e-12);
        CLOSE(bytes(&ops) / bytes(&other), 1, 1e-12);
        CLOSE(flops(&ops, true) / flops(&other, true), 1, 1e-12);
    }
}

/* Keys and their gradients pass beside the same steps of a ring's backward: together they hide as long as these take, so that
 * both on a link too slow for either leave the sum of both less the steps, and a faster GPU is never slower. */
static void gradients_share_the_cover(void)
{
    Spec spec = make_spec(SPEC_CONTEXT_RING, 8, true);
    GRand *rand = g_rand_new_with_seed(5);
    for (int round = 0; round < 200; round++) {
        const double rate = exp(g_rand_double_range(rand, log(2e8), log(2e12)));
        double total_s[2];
        spec.cluster.scale_up_bytes_per_s = spec.cluster.accelerator.scale_up_bytes_per_s = rate;
        for (int fast = 0; fast < 2; fast++) {
            CostShape shape;
            CostOps ops = {.count = 0};
            double passes_s = 0, steps_s = 0;
            spec.execution.framework.kernels.attention_speed_frac = fast ? 2 : 1;
            cost_shape_init(&shape, &spec);
            cost_ops_attention(&shape, 0, COST_BACKWARD_INPUT, &ops);
            for (int i = 0; i < ops.count; i++) {
                const bool passes = g_str_has_prefix(ops.op[i].name, "pass key");
                passes_s += passes ? cost_op_s(&shape, &ops.op[i]) : 0;
                steps_s += strcmp(ops.op[i].name, "attention steps") == 0 ? cost_op_s(&shape, &ops.op[i]) : 0;
            }
            const CostTime time = cost_time_ops(&shape, &ops, COST_BACKWARD_INPUT);
            total_s[fast] = cost_time_total_s(&time);
            g_assert_cmpfloat(time.comm_s[COST_COMM_CONTEXT], >=, (passes_s - steps_s) * (1 - 1e-12));
            if (passes_s > 4 * steps_s) {
                CLOSE(time.comm_s[COST_COMM_CONTEXT] / (passes_s - steps_s), 1, 1e-9);
            }
        }
        g_assert_cmpfloat(total_s[1], <=, total_s[0] * (1 + 1e-12));
    }
    g_rand_free(rand);
}

/* A traced graph waits for each exchange where it starts, and merges in one kernel; gradients of keys come home in one
 * hop more than keys go. */
static void traced_exchanges(void)
{
    Spec spec = make_spec(SPEC_CONTEXT_ALLGATHER_RING, 4, true);
    SpecFramework *framework = &spec.execution.framework;
    framework->context.context_merge = SPEC_CONTEXT_MERGE_EAGER;
    const double merged = 3 * 0.75 * 2 * 16384 * 32 * 128.0;
    for (int compiled = 0; compiled < 2; compiled++) {
        spec.execution.compiled = compiled;
        for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
            const CostOps ops = core_ops(&spec, (CostPass)pass);
            double hops = 0, merge = 0;
            for (int i = 0; i < ops.count; i++) {
                const CostOp *op = &ops.op[i];
                if (op->kind == COST_OP_COLLECTIVE) {
                    g_assert_cmpint(op->u.collective.hidden_under >= 0, ==, !compiled);
                    hops += strcmp(op->name, "pass key grads") == 0 ? op->repeat : 0;
                }
                merge += strcmp(op->name, "merge") == 0 ? cost_moved_bytes(op) : 0;
            }
            g_assert_cmpfloat(hops, ==, pass == COST_FORWARD ? 0 : 4);
            if (pass == COST_FORWARD) {
                CLOSE(merge / merged, compiled ? 13 : 50, 1e-12);
            }
        }
    }
    const double traced_s = core_s(&spec);
    framework->context.context_merge = SPEC_CONTEXT_MERGE_FUSED;
    g_assert_cmpfloat(traced_s, >, 1.005 * core_s(&spec));
}

/* Pairs of documents whose ends are drawn, one in `mean` tokens. */
static double drawn_pairs(GRand *rand, int tokens, double mean)
{
    double sum = 0;
    for (int round = 0; round < 2000; round++) {
        double at = 0;
        while (at < tokens) {
            const double length = fmin(-mean * log(1 - g_rand_double(rand)), tokens - at);
            sum += length * length / 2;
            at += length;
        }
    }
    return sum / 2000;
}

static void documents(void)
{
    GRand *rand = g_rand_new_with_seed(3);
    static const double means[] = {64, 512, 4096, 32768};
    for (size_t i = 0; i < G_N_ELEMENTS(means); i++) {
        const double pairs = cost_document_pairs(8192, means[i]),
                     window = cost_document_window(8192, means[i]);
        CLOSE(pairs / drawn_pairs(rand, 8192, means[i]), 1, 0.05);
        CLOSE(window * (8192 - window / 2) / pairs, 1, 1e-9);
    }
    CLOSE(cost_document_pairs(8192, 1e12) / (8192.0 * 8192 / 2), 1, 1e-4);
    Spec packed = make_spec(SPEC_CONTEXT_RING, 1, true);
    const Spec whole = packed;
    packed.training.document_tokens = 4096;
    const CostOps a = core_ops(&packed, COST_FORWARD), b = core_ops(&whole, COST_FORWARD);
    CLOSE(flops(&a, true) / flops(&b, true), cost_document_pairs(65536, 4096) / (65536.0 * 65536 / 2), 1e-12);
    g_assert_cmpfloat(core_s(&packed), <, core_s(&whole));
    g_rand_free(rand);
}

/* Pairs counted token by token; the busiest rank is what the kernels take the time of. */
static void work_of_ranks(void)
{
    enum { TOKENS = 48 };
    const SpecContextMode modes[] = {SPEC_CONTEXT_RING_NAIVE, SPEC_CONTEXT_RING_STRIPED, SPEC_CONTEXT_RING};
    for (int c = 1; c <= 8; c *= 2) {
        for (size_t m = 0; m < G_N_ELEMENTS(modes); m++) {
            const int piece = modes[m] == SPEC_CONTEXT_RING ? TOKENS / c / 2 : TOKENS / c;
            double pairs[8] = {0}, most = 0;
            for (int token = 0; token < TOKENS; token++) {
                const int at = token / piece;
                const int rank = modes[m] == SPEC_CONTEXT_RING_STRIPED ? token % c
                                 : modes[m] == SPEC_CONTEXT_RING       ? MIN(at, 2 * c - 1 - at)
                                                                       : at;
                /* half a pair on the diagonal where whole blocks are counted */
                pairs[rank] += modes[m] == SPEC_CONTEXT_RING_STRIPED ? token + 1 : token + 0.5;
            }
            for (int rank = 0; rank < c; rank++) {
                double sum = 0;
                for (int i = 0; i < c; i++) {
                    sum += pairs[i];
                }
                const double work = cost_context_rank_work(modes[m], c, true, TOKENS, rank);
                CLOSE(work, pairs[rank] * c / sum, 1e-12);
                CLOSE(cost_context_rank_work(modes[m], c, false, TOKENS, rank), 1, 0);
                most = fmax(most, work);
            }
            if (modes[m] != SPEC_CONTEXT_RING_STRIPED) {
                CLOSE(most, most_pairs(modes[m], c, true), 1e-12);
            }
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/context/imbalance", imbalance);
    g_test_add_func("/context/work-of-ranks", work_of_ranks);
    g_test_add_func("/context/flops", flops_do_not_depend_on_the_mode);
    g_test_add_func("/context/volumes", volumes);
    g_test_add_func("/context/hierarchical", hierarchical);
    g_test_add_func("/context/windows", windows);
    g_test_add_func("/context/unfused-modes", unfused_modes);
    g_test_add_func("/context/gradients-share-the-cover", gradients_share_the_cover);
    g_test_add_func("/context/traced-exchanges", traced_exchanges);
    g_test_add_func("/context/order-of-the-modes", order_of_the_modes);
    g_test_add_func("/context/documents", documents);
    return g_test_run();
}
