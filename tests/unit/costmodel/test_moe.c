/* tests/unit/costmodel/test_moe.c - layers of experts: what each dispatcher moves, copies, products, biases. */
#include <math.h>
#include <string.h>

#include "costmodel/spread.h"
#include "costmodel/moe.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"
#include "costmodel/pass.h"

#define CLOSE(a, b, eps) g_assert_cmpfloat_with_epsilon((a), (b), (eps) + 1e-15)

static Spec make_spec(SpecMoeDispatcher dispatcher, int expert)
{
    Spec spec = {0};
    spec.model = (SpecModel){.layers = 4,
                             .hidden = 7168,
                             .heads = 56,
                             .kv_heads = 56,
                             .head_dim = 128,
                             .ffn_hidden = 2048,
                             .gated_mlp = true,
                             .vocab = 1024,
                             .norm = SPEC_NORM_RMSNORM,
                             .position = SPEC_POSITION_ROPE,
                             .causal = true,
                             .moe = {.experts = 256, .top_k = 8, .expert_ffn_hidden = 2048, .layer_step = 1}};
    spec.cluster = (SpecCluster){.gpus_per_node = 8, .nodes = 8, .scale_up_domain_gpus = 8};
    spec.training = (SpecTraining){
        .sequence_length = 4096, .global_batch = 128, .micro_batch = 1, .precision = SPEC_PRECISION_BF16};
    spec.parallel = (SpecParallel){.tensor = 1,
                                   .context = 1,
                                   .pipeline = 1,
                                   .virtual_stages = 1,
                                   .data = 64,
                                   .expert = expert,
                                   .expert_tensor = 1,
                                   .moe_dispatcher = dispatcher};
    spec.execution.attention = SPEC_ATTENTION_FLASH2;
    return spec;
}

static void exchanges(void)
{
    const double tokens = 4096, row = 7168 * 2.0, whole = tokens * row;
    const CostGroup group = {.ranks = 64, .per_domain = 8, .nic_sharers = 1},
                    node = {.ranks = 8, .per_domain = 8, .nic_sharers = 1};
    const Spec plain = make_spec(SPEC_DISPATCHER_ALLTOALL, 64), deep = make_spec(SPEC_DISPATCHER_DEEPEP, 64),
               steps = make_spec(SPEC_DISPATCHER_HIERARCHICAL, 64);
    const CostExchange a = cost_moe_exchange(&plain, &group, tokens, row),
                       d = cost_moe_exchange(&deep, &group, tokens, row),
                       h = cost_moe_exchange(&steps, &group, tokens, row),
                       inside = cost_moe_exchange(&deep, &node, tokens, row);
    CLOSE(a.scale_out_bytes / (whole * 8 * 7 / 8), 1, 1e-12);
    CLOSE((a.scale_out_bytes + a.scale_up_bytes) / (whole * 8 * 63 / 64), 1, 1e-12);
    CLOSE(d.scale_out_bytes / (whole * 5.295 * 7 / 8), 1, 1e-4);
    CLOSE(h.scale_out_bytes / a.scale_out_bytes, 1, 1e-12);
    g_assert_cmpfloat(h.scale_up_bytes, >, a.scale_up_bytes);
    CLOSE(inside.scale_out_bytes, 0, 0);
    CLOSE(inside.scale_up_bytes / (whole * 5.295 * 7 / 8), 1, 1e-4); /* a rank of eight is what a node was */
    CLOSE(d.received_rows / tokens, cost_moe_places_touched(256, 8, 64, 0, 0), 1e-12);
}

/* [DeepSeekV3]: 4096 tokens of 7168 to four nodes: 121.1 MB in 8 bits with scales, 234.9 MB back in 16. */
static void published_bytes(void)
{
    CLOSE(4 * 4096 * 7168 * (1 + 4.0 / 128) / 1e6, 121.1, 0.05);
    CLOSE(4 * 4096 * 7168 * 2.0 / 1e6, 234.9, 0.05);
    Spec spec = make_spec(SPEC_DISPATCHER_DEEPEP, 64);
    spec.parallel.moe_dispatch_fp8 = true;
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, &spec);
    cost_ops_moe(&shape, COST_FORWARD, COST_OUTSIDE, &ops);
    double out[2] = {0};
    int next = 0;
    for (int i = 0; i < ops.count; i++) {
        if (ops.op[i].kind == COST_OP_COLLECTIVE && ops.op[i].u.collective.collective.group.per_domain == 1) {
            out[next++] = cost_collective_traffic(&ops.op[i].u.collective.collective).scale_out_bytes;
        }
    }
    g_assert_cmpint(next, ==, 2);
    CLOSE(out[0] / (4096 * 7168 * (1 + 4.0 / 128) * 5.295 * 7 / 8), 1, 1e-4);
    CLOSE(out[1] / out[0], 2 / (1 + 4.0 / 128), 1e-12);
}

static double total_flops(const CostOps *ops, bool model)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        sum += model ? ops->op[i].model_flops : ops->op[i].full_flops;
    }
    return sum;
}

static void load_is_time_not_work(void)
{
    Spec even = make_spec(SPEC_DISPATCHER_ALLTOALL, 64), uneven = even, padded = even;
    uneven.training.router = (SpecRouter){.distribution = SPEC_ROUTER_ZIPF, .exponent = 0.5};
    padded.model.moe.capacity_factor = 1.5;
    CostShape shapes[3];
    CostOps ops[3] = {{.count = 0}, {.count = 0}, {.count = 0}};
    const Spec *const specs[] = {&even, &uneven, &padded};
    for (int i = 0; i < 3; i++) {
        cost_shape_init(&shapes[i], specs[i]);
        cost_ops_moe(&shapes[i], COST_FORWARD, COST_OUTSIDE, &ops[i]);
    }
    g_assert_cmpfloat(shapes[1].expert_load, >, 1.2);
    CLOSE(total_flops(&ops[1], true) / total_flops(&ops[0], true), 1, 1e-12);
    CLOSE(total_flops(&ops[1], false) / total_flops(&ops[0], false), 1, 1e-12);
    CLOSE(total_flops(&ops[2], true) / total_flops(&ops[0], true), 1, 1e-12);
    g_assert_cmpfloat(total_flops(&ops[2], false), >, total_flops(&ops[0], false));
    CLOSE(cost_routed_rows(&shapes[2]) / cost_routed_rows(&shapes[0]), 1.5, 1e-12);
}

static Spec timed_spec(SpecMoeDispatcher dispatcher)
{
    Spec spec = make_spec(dispatcher, 64);
    spec.cluster.scale_up_bytes_per_s = 450e9;
    spec.cluster.scale_out_bytes_per_s_per_gpu = 50e9;
    spec.cluster.accelerator = (SpecAccelerator){.memory_bytes_per_s = 3.3e12,
                                                 .sm_count = 132,
                                                 .l2_bytes = 50e6,
                                                 .generation = *spec_generation("hopper"),
                                                 .scale_up_bytes_per_s = 450e9};
    spec.cluster.accelerator.peak_flops_per_s[SPEC_BF16] = 989e12;
    spec.training.global_batch = 256;
    spec.execution.framework.kernels.attention_speed_frac = 1;
    return spec;
}

static CostTime layer_time(const Spec *spec)
{
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, spec);
    cost_ops_moe(&shape, COST_FORWARD, COST_OUTSIDE, &ops);
    return cost_time_ops(&shape, &ops, COST_FORWARD);
}

/* The NIC's part and the scale-up links' part of DeepEP run at once, those of the hierarchical exchange in turn. */
static void two_networks(void)
{
    const Spec deep = timed_spec(SPEC_DISPATCHER_DEEPEP), steps = timed_spec(SPEC_DISPATCHER_HIERARCHICAL);
    const Spec *const specs[] = {&deep, &steps};
    for (int s = 0; s < 2; s++) {
        CostShape shape;
        CostOps ops = {.count = 0};
        double longest = 0, sum = 0, together = 0;
        cost_shape_init(&shape, specs[s]);
        cost_ops_moe(&shape, COST_FORWARD, COST_OUTSIDE, &ops);
        for (int i = 0; i < ops.count; i++) {
            const bool net = ops.op[i].kind == COST_OP_COLLECTIVE &&
                             ops.op[i].u.collective.collective.group.per_domain == 1;
            if (net) {
                const double across = cost_op_s(&shape, &ops.op[i]),
                             inside = cost_op_s(&shape, &ops.op[i + 1]);
                longest += fmax(across, inside), sum += across + inside;
            }
        }
        together = layer_time(specs[s]).comm_s[COST_COMM_EXPERT];
        CLOSE(together / (s == 0 ? longest : sum), 1, 1e-12);
    }
}

static void overlapped(void)
{
    Spec spec = timed_spec(SPEC_DISPATCHER_DEEPEP);
    const CostTime apart = layer_time(&spec);
    spec.execution.overlap = SPEC_OVERLAP_EXPERT;
    const CostTime beside = layer_time(&spec);
    const double taken = beside.compute_s - apart.compute_s;
    g_assert_cmpfloat(beside.comm_s[COST_COMM_EXPERT], <, 0.5 * apart.comm_s[COST_COMM_EXPERT]);
    g_assert_cmpfloat(taken, >, 0);
    g_assert_cmpfloat(taken, <=, 20.0 / 132 * 1.5 * apart.comm_s[COST_COMM_EXPERT] * (1 + 1e-12));
    spec.parallel.schedule = sim_schedule_usual(1);
    double exposed_s[3];
    for (int i = 0; i < 3;
         i++) { /* one of m micro-batches has no partner: as much again as its exchanges hide */
        spec.training.global_batch = 64 * (2 << i);
        exposed_s[i] = layer_time(&spec).comm_s[COST_COMM_EXPERT];
    }
    CLOSE((exposed_s[0] - exposed_s[1]) / (exposed_s[1] - exposed_s[2]), 2, 1e-9);
    spec.training.global_batch = 64; /* one micro-batch has nothing to run beside */
    CLOSE(layer_time(&spec).comm_s[COST_COMM_EXPERT], apart.comm_s[COST_COMM_EXPERT], 0);
}

static void host(void)
{
    Spec spec = timed_spec(SPEC_DISPATCHER_ALLTOALL);
    spec.parallel.expert = 1;
    spec.parallel.data = 64;
    spec.execution.framework.host.kernel_host_s = 1e-3; /* so slow that only launches count */
    const double eager = layer_time(&spec).host_s;
    spec.execution.framework.experts.expert_products = SPEC_EXPERT_PRODUCTS_GROUPED;
    g_assert_cmpfloat(layer_time(&spec).host_s, <,
                      eager - 2 * 255 * 0.9e-3); /* two products of 256 experts */
    spec.execution.framework.experts.expert_products = SPEC_EXPERT_PRODUCTS_EACH;
    g_strlcpy(spec.execution.cuda_graph, "transformer_engine/['attn', 'moe_router']", SPEC_NAME_SIZE);
    const double router = layer_time(&spec).host_s;
    g_assert_cmpfloat(router, <, eager);
    g_assert_cmpfloat(router, >, eager / 2);
    g_strlcpy(spec.execution.cuda_graph, "full_iteration/[]", SPEC_NAME_SIZE);
    CLOSE(layer_time(&spec).host_s, 0, 0);
    static const char *const nothing[] = {"none", "None", "none/['attn']", "False", "null"};
    for (size_t i = 0; i < G_N_ELEMENTS(nothing); i++) {
        g_strlcpy(spec.execution.cuda_graph, nothing[i], SPEC_NAME_SIZE);
        CLOSE(layer_time(&spec).host_s, eager, 1e-12);
    }
    spec.execution.cuda_graph[0] = '\0';
    spec.execution.framework.experts.host_sync_s =
        0.5; /* read back once a layer, unless capacity fixes the sizes */
    CLOSE(layer_time(&spec).host_s, eager + 0.5, 1e-9);
    spec.model.moe.capacity_factor = 1;
    const double padded = layer_time(&spec).host_s;
    g_assert_cmpfloat(padded, <, eager + 0.1);
    spec.execution.framework.experts.host_sync_s = 0;
    CLOSE(layer_time(&spec).host_s, padded, 1e-9);
    spec.execution.framework.host.host_spread_frac = 0.5; /* one tensor rank waits for nobody */
    CLOSE(layer_time(&spec).host_s, padded, 1e-9);
    spec.parallel.tensor = 2;
    spec.parallel.data = 32;
    const CostTime two = layer_time(&spec);
    spec.execution.framework.host.host_spread_frac = 0;
    const CostTime alike = layer_time(&spec);
    g_assert_cmpfloat(alike.host_s, >, 0);
    CLOSE(cost_time_total_s(&two) / cost_time_total_s(&alike), 1 + 0.5 * cost_largest_deviate(2), 1e-9);
    spec.parallel.tensor = 1;
    spec.parallel.data = 64;
    const CostTime behind = layer_time(&spec);
    spec.execution.framework.host.waits =
        SPEC_HOST_WAITS_KERNEL; /* then nothing of the launches hides behind kernels */
    CLOSE(layer_time(&spec).host_s - behind.host_s, cost_time_total_s(&behind) - behind.host_s, 1e-9);
    spec.execution.framework.host.kernel_host_s = 0;
    CLOSE(layer_time(&spec).host_s, 0, 0);
}

static CostOps moe_ops(const Spec *spec, CostPass pass)
{
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, spec);
    cost_ops_moe(&shape, pass, COST_OUTSIDE, &ops);
    return ops;
}

/* Bytes, or for a collective its own, of all ops of this name. */
static double bytes_of(const CostOps *ops, const char *name)
{
    double bytes = 0;
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        if (strcmp(op->name, name) == 0) {
            bytes += op->kind == COST_OP_MEMORY ? cost_moved_bytes(op) : op->u.collective.collective.bytes;
        }
    }
    return bytes;
}

static void copies_of_rows(void)
{
    const double rows = 4096 * 8 * 7168 * 2.0; /* bytes */
    Spec spec = make_spec(SPEC_DISPATCHER_ALLTOALL, 64);
    spec.execution.framework.experts.pads_expert_rows = true;
    CostOps ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "pad rows"), 0, 0); /* 16 bits want no padding */
    CLOSE(bytes_of(&ops, "probabilities"), 4096 * 8 * 4, 0);
    CLOSE(bytes_of(&ops, "rows of experts"), 4 * 256 * 64, 0);
    spec.training.precision = SPEC_PRECISION_FP8_CS;
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
        ops = moe_ops(&spec, (CostPass)pass);
        CLOSE(bytes_of(&ops, "pad rows"), 2 * rows, 0);
        CLOSE(bytes_of(&ops, "unpad rows"), 2 * rows, 0);
    }
    spec.model.moe.capacity_factor = 1; /* fixed sizes are chosen to fit */
    ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "pad rows"), 0, 0);
    CLOSE(bytes_of(&ops, "rows of experts"), 0, 0);
    CLOSE(bytes_of(&ops, "reorder"), 4 * rows, 0); /* once each way, as a view */
    CLOSE(bytes_of(&ops, "permute") / rows, 1 + 1.0 / 8, 1e-12);
    spec.model.moe.capacity_factor = 0;
    ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "reorder"), 0, 0); /* a kernel of its own: with the permutation */
    CLOSE(bytes_of(&ops, "permute") / rows, 3 + 1.0 / 8, 1e-12);
    spec.parallel.moe_dispatcher = SPEC_DISPATCHER_HYBRIDEP;
    ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "pad rows") + bytes_of(&ops, "probabilities"), 0, 0);
    const double unique =
        cost_moe_places_touched(256, 8, 64, 0, 0) / 8; /* every row is written, unique ones read */
    CLOSE(bytes_of(&ops, "permute") / (rows * (1 + unique)), 1, 1e-12);
}

/* One kernel an expert layer, and nothing between its products. */
static void activation_inside_products(void)
{
    Spec spec = make_spec(SPEC_DISPATCHER_ALLTOALL, 64);
    spec.cluster.accelerator.generation = *spec_generation("blackwell");
    spec.execution.framework.experts.pads_expert_rows = true;
    spec.execution.framework.experts.expert_products = SPEC_EXPERT_PRODUCTS_FUSED;
    spec.execution.framework.kernels.fused_swiglu = true;
    static const struct {
        SpecPrecision precision;
        bool fused;
    } cases[] = {{SPEC_PRECISION_BF16, false}, {SPEC_PRECISION_FP8_CS, false}, {SPEC_PRECISION_MXFP8, true}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        spec.training.precision = cases[i].precision;
        const CostOps forward = moe_ops(&spec, COST_FORWARD), backward = moe_ops(&spec, COST_BACKWARD_INPUT);
        g_assert_true((bytes_of(&forward, "activation") == 0) == cases[i].fused);
        g_assert_true((bytes_of(&backward, "probability grad") == 0) == cases[i].fused);
        if (cases[i].fused) { /* the input's rows and the output's gradient */
            const double each = 4096 * 8 * 7168 * (2 + 2 * (1 + 1.0 / 32));
            CLOSE(bytes_of(&forward, "cast"), each, 1);
            CLOSE(bytes_of(&backward, "cast"), each, 1);
            CLOSE(bytes_of(&forward, "pad rows") + bytes_of(&forward, "scales"), 0, 0);
        }
    }
}

/* Pages: both copies of what fused dropless experts keep, in either pass, at half of their time; nowhere else. */
static void paged_stash(void)
{
    for (int off = 0; off < 4; off++) {
        Spec spec = make_spec(SPEC_DISPATCHER_HYBRIDEP, 64);
        SpecExecution *execution = &spec.execution;
        spec.cluster.accelerator.generation = *spec_generation("blackwell");
        spec.training.precision = SPEC_PRECISION_MXFP8;
        execution->framework.experts.expert_products =
            off != 1 ? SPEC_EXPERT_PRODUCTS_FUSED : SPEC_EXPERT_PRODUCTS_EACH;
        execution->framework.experts.paged_stash = off != 2;
        g_strlcpy(execution->cuda_graph, off == 3 ? "local/['attn']" : "full_iteration",
                  sizeof execution->cuda_graph);
        for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
            const CostOps ops = moe_ops(&spec, (CostPass)pass);
            const double row = (1 + 1.0 / 32) * (7168 + 2048) + 2 * 2 * 2048;
            const bool copies = off == 0 && pass != COST_BACKWARD_WEIGHT;
            CLOSE(bytes_of(&ops, "stash"), copies ? 2 * row * 4096 * 8 : 0, 1);
            for (int k = 0; k < ops.count; k++)
                if (strcmp(ops.op[k].name, "stash") == 0) {
                    CostShape shape;
                    CostOp alone = ops.op[k];
                    cost_shape_init(&shape, &spec);
                    alone.u.memory.beside = false;
                    shape.accelerator.memory_bytes_per_s = 8e12;
                    CLOSE(cost_op_s(&shape, &ops.op[k]) / cost_op_s(&shape, &alone), 0.5, 1e-12);
                }
        }
    }
}

/* A router in fp32: the types of its products and the bytes of its casts, 2 + 4 an element each, by software and pass; and
 * as it was where it is off, or everything is fp32. */
static void router_in_fp32(void)
{
    static const struct {
        bool tf32;
        SpecDtype dtype[COST_PASS_COUNT];
        double bytes[COST_PASS_COUNT];
    } cases[] = {{false, {SPEC_FP32, SPEC_FP32, SPEC_FP32}, {6, 6, 0}},
                 {true, {SPEC_BF16, SPEC_TF32, SPEC_TF32}, {0, 6, 6}}};
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        Spec spec = make_spec(SPEC_DISPATCHER_ALLTOALL, 64);
        const CostOps off = moe_ops(&spec, (CostPass)pass);
        CLOSE(bytes_of(&off, "router cast"), 0, 0);
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
            spec.model.moe.router_fp32 = true;
            spec.execution.framework.experts.router_tf32 = cases[i].tf32;
            const CostOps ops = moe_ops(&spec, (CostPass)pass);
            CLOSE(bytes_of(&ops, "router cast"), cases[i].bytes[pass] * 4096 * 7168, 1);
            for (int k = 0; k < ops.count; k++)
                if (strcmp(ops.op[k].name, "router") == 0)
                    g_assert_cmpint(ops.op[k].u.gemm.dtype, ==, cases[i].dtype[pass]);
            g_assert_cmpint(ops.count - off.count, ==, cases[i].bytes[pass] > 0 ? 1 : 0);
        }
        spec.training.precision = SPEC_PRECISION_FP32;
        const CostOps wide = moe_ops(&spec, (CostPass)pass);
        CLOSE(bytes_of(&wide, "router cast"), 0, 0);
    }
}

/* Two kernels: twice the bandwidth changes nothing, half of the SMs doubles it, and without the rate they stream. */
static void by_element(const Spec *spec, const CostOp *op)
{
    CostShape shape;
    Spec other = *spec;
    other.cluster.accelerator.memory_bytes_per_s = 8e12;
    other.cluster.accelerator.sm_count = 148;
    cost_shape_init(&shape, &other);
    const double elements = op->u.memory.addressed, empty_s = 2 * 3e-6;
    CLOSE(cost_op_s(&shape, op), empty_s + cost_moved_bytes(op) / (8e12 * 0.85), 1e-12);
    other.execution.framework.kernels.sm_elements_per_s = 2.5e9;
    CLOSE(cost_op_s(&shape, op), empty_s + elements / (148 * 2.5e9), 1e-12);
    shape.accelerator.memory_bytes_per_s *= 2;
    CLOSE(cost_op_s(&shape, op), empty_s + elements / (148 * 2.5e9), 1e-12);
    shape.accelerator.sm_count /= 2;
    CLOSE(cost_op_s(&shape, op), empty_s + elements / (74 * 2.5e9), 1e-12);
    shape.accelerator.memory_bytes_per_s /= 40; /* slow memory is the floor */
    CLOSE(cost_op_s(&shape, op), empty_s + cost_moved_bytes(op) / (0.4e12 * 0.85), 1e-12);
}

/* Gradients of the probabilities and biases: elements of the intermediate and of the hidden size, 2 bytes each. What is
 * clamped and weighed goes element by element: time goes with the SMs, not with the memory. */
static void biased_experts(void)
{
    Spec spec = make_spec(SPEC_DISPATCHER_ALLTOALL, 64);
    spec.execution.framework.kernels.fused_swiglu = true;
    const double inner = 4096 * 8 * 2048 * 2.0, outer = 4096 * 8 * 7168 * 2.0;
    CostOps ops = moe_ops(&spec, COST_BACKWARD_INPUT);
    CLOSE(bytes_of(&ops, "activation") + bytes_of(&ops, "probability grad"), (5 + 3) * inner, 0);
    spec.model.biases = SPEC_BIASES_ALL;
    ops = moe_ops(&spec, COST_BACKWARD_INPUT);
    CLOSE(bytes_of(&ops, "activation"), (5 + 3 + 1.5 + 4) * inner, 0);
    CLOSE(bytes_of(&ops, "clamp"), (3 * 1.5 + 2 * 2.5) * inner, 0);
    CLOSE(bytes_of(&ops, "expert bias"), (1 + 1 + 2) * outer, 0);
    CLOSE(bytes_of(&ops, "weigh bias"), (2 + 2) * outer, 0);
    ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "activation"), (4 + 3) * inner, 0);
    CLOSE(bytes_of(&ops, "clamp"), (2 + 2) * inner, 0);
    CLOSE(bytes_of(&ops, "expert bias"), (3 + 2) * outer, 0);
    CLOSE(bytes_of(&ops, "weigh bias"), 1 * outer, 0);
    CLOSE(bytes_of(&ops, "bias"), 0, 0);
    spec.execution.framework.kernels.fused_dropout_add = true; /* which such experts rule out */
    CostShape shape;
    cost_shape_init(&shape, &spec);
    CostOps layer = {.count = 0};
    cost_ops_layer(&shape, 0, COST_FORWARD, &layer);
    CLOSE(bytes_of(&layer, "bias"), 4096 * 7168 * 2 * 2.0, 0);
    for (int i = 0; i < ops.count; i++) {
        if (strcmp(ops.op[i].name, "clamp") == 0) {
            CLOSE(ops.op[i].u.memory.addressed, inner, 0); /* two kernels over elements of 2 bytes */
            by_element(&spec, &ops.op[i]);
        }
    }
    spec.execution.compiled = true; /* in one kernel */
    ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "clamp") + bytes_of(&ops, "weigh bias"), 0, 0);
    spec.execution.compiled = spec.model.gated_mlp = false; /* nothing to clamp, biases all the same */
    ops = moe_ops(&spec, COST_FORWARD);
    CLOSE(bytes_of(&ops, "clamp"), 0, 0);
    CLOSE(bytes_of(&ops, "weigh bias"), 1 * outer, 0);
}

/* The last layer has twice the experts: their weights and router more, the work of a token the same. */
static void pyramid(void)
{
    const Spec plain = make_spec(SPEC_DISPATCHER_ALLTOALL, 64);
    Spec late = plain;
    late.model.moe.late_layers = 1;
    late.model.moe.late_experts = 512;
    CLOSE(cost_parameters(&late.model, 0, false) - cost_parameters(&plain.model, 0, false),
          256 * 7168.0 * (3 * 2048 + 1), 1);
    CLOSE(cost_parameters(&late.model, 0, true) - cost_parameters(&plain.model, 0, true), 256 * 7168.0, 1);
    CostShape shapes[2];
    CostOps ops[3] = {{.count = 0}, {.count = 0}, {.count = 0}};
    cost_shape_init(&shapes[0], &plain);
    cost_shape_init(&shapes[1], &late);
    cost_ops_layer(&shapes[0], 3, COST_FORWARD, &ops[0]);
    cost_ops_layer(&shapes[1], 2, COST_FORWARD, &ops[1]);
    cost_ops_layer(&shapes[1], 3, COST_FORWARD, &ops[2]);
    CLOSE(total_flops(&ops[1], true), total_flops(&ops[0], true), 0);
    CLOSE(total_flops(&ops[2], true) - total_flops(&ops[0], true), 2.0 * 4096 * 7168 * 256,
          1); /* the router's */
}

/* Gradients at the widest point of the experts' backward are those of their rows and width, whatever a dense layer's are. */
static void working_set(void)
{
    Spec spec = make_spec(SPEC_DISPATCHER_ALLTOALL, 64);
    CostShape shape;
    cost_shape_init(&shape, &spec);
    const double rows = cost_routed_rows(&shape) * shape.expert_load;
    for (int wide = 1; wide <= 4; wide *= 4) {
        spec.model.ffn_hidden *= wide;
        const CostOps ops = moe_ops(&spec, COST_BACKWARD_INPUT);
        double most = 0;
        for (int i = 0; i < ops.count; i++)
            most = fmax(most, ops.op[i].temp_bytes);
        CLOSE(most, 2 * rows * (3.0 * spec.model.moe.expert_ffn_hidden + spec.model.hidden), 1);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/moe/exchanges", exchanges);
    g_test_add_func("/moe/published-bytes", published_bytes);
    g_test_add_func("/moe/load-is-time-not-work", load_is_time_not_work);
    g_test_add_func("/moe/two-networks", two_networks);
    g_test_add_func("/moe/overlapped", overlapped);
    g_test_add_func("/moe/host", host);
    g_test_add_func("/moe/copies-of-rows", copies_of_rows);
    g_test_add_func("/moe/activation-inside-products", activation_inside_products);
    g_test_add_func("/moe/biased-experts", biased_experts);
    g_test_add_func("/moe/paged-stash", paged_stash);
    g_test_add_func("/moe/router-in-fp32", router_in_fp32);
    g_test_add_func("/moe/pyramid", pyramid);
    g_test_add_func("/moe/working-set", working_set);
    return g_test_run();
}
