/* tests/unit/costmodel/test_ops.c - op lists: FLOPs by pass, bytes of tensor parallelism, what recomputation picks. */
#include <math.h>
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "spec/load.h"
#include "tests/unit/layer_fixture.h"
#include "tests/unit/tensor_fixture.h"

static double gemm_flops(const CostOps *ops)
{
    double sum = 0;
    for (int i = 0; i < ops->count; i++) {
        sum += ops->op[i].kind == COST_OP_GEMM ? ops->op[i].full_flops : 0;
    }
    return sum;
}

static void flops_by_pass(void)
{
    const Spec spec = make_spec(1, false, SPEC_ATTENTION_FLASH2);
    const CostOps forward = fixture_layer_ops(&spec, COST_FORWARD),
                  input = fixture_layer_ops(&spec, COST_BACKWARD_INPUT),
                  weight = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    const double tokens = 2 * 4096.0, expected = 2 * tokens * 4096 * (6144 + 4096 + 3 * 14336.0);
    g_assert_cmpfloat(gemm_flops(&forward), ==, expected);
    g_assert_cmpfloat(gemm_flops(&input), ==, expected);
    g_assert_cmpfloat(gemm_flops(&weight), ==, expected);
}

static void attention_kernels_agree(void)
{
    const Spec fused = make_spec(1, false, SPEC_ATTENTION_FLASH2),
               unfused = make_spec(1, false, SPEC_ATTENTION_UNFUSED);
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        const CostOps a = fixture_layer_ops(&fused, (CostPass)pass),
                      b = fixture_layer_ops(&unfused, (CostPass)pass);
        double model[2] = {0}, full[2] = {0};
        for (int i = 0; i < a.count; i++) {
            model[0] += a.op[i].model_flops, full[0] += a.op[i].full_flops;
        }
        for (int i = 0; i < b.count; i++) {
            model[1] += b.op[i].model_flops, full[1] += b.op[i].full_flops;
        }
        g_assert_cmpfloat_with_epsilon(model[0] / model[1], 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(full[0] / full[1], 1, 1e-12);
    }
}

/* Bytes a rank sends for tensor parallelism in a forward and a backward, without the extra gathers for weight
 * gradients that sequence parallelism adds. */
static double tensor_bytes(const Spec *spec, double *ret_regather)
{
    double sum = 0;
    *ret_regather = 0;
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        const CostOps ops = fixture_layer_ops(spec, (CostPass)pass);
        for (int i = 0; i < ops.count; i++) {
            if (ops.op[i].kind == COST_OP_COLLECTIVE) {
                const CostTraffic traffic = cost_collective_traffic(&ops.op[i].u.collective.collective);
                const bool again = strcmp(ops.op[i].name, "regather") == 0;
                *(again ? ret_regather : &sum) += traffic.scale_up_bytes + traffic.scale_out_bytes;
            }
        }
    }
    return sum;
}

/* 8 (t-1)/t M a layer either way; sequence parallelism gathers 2 (t-1)/t M again. [Korthikanti2022] */
static void tensor_traffic(void)
{
    const double message = 2 * 4096.0 * 4096 * 2;
    for (int tensor = 2; tensor <= 8; tensor *= 2) {
        const Spec plain = make_spec(tensor, false, SPEC_ATTENTION_FLASH2),
                   parts = make_spec(tensor, true, SPEC_ATTENTION_FLASH2);
        double regather_plain, regather_parts;
        const double share = (tensor - 1.0) / tensor * message;
        g_assert_cmpfloat_with_epsilon(tensor_bytes(&plain, &regather_plain) / share, 8, 1e-9);
        g_assert_cmpfloat_with_epsilon(tensor_bytes(&parts, &regather_parts) / share, 8, 1e-9);
        g_assert_cmpfloat(regather_plain, ==, 0);
        g_assert_cmpfloat_with_epsilon(regather_parts / share, 2, 1e-9);
    }
}

static void one_rank_is_silent(void)
{
    const Spec spec = make_spec(1, true, SPEC_ATTENTION_FLASH2);
    double regather;
    g_assert_cmpfloat(tensor_bytes(&spec, &regather), ==, 0);
    g_assert_cmpfloat(regather, ==, 0);
}

static void selective_picks_the_core(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_UNFUSED);
    spec.training.recompute.mode = SPEC_RECOMPUTE_SELECTIVE;
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    int picked = 0;
    for (int i = 0; i < ops.count; i++) {
        const bool core = ops.op[i].module == COST_MODULE_ATTENTION_CORE;
        g_assert_cmpint(cost_recomputes_op(&spec, &ops, i), ==, core);
        picked += core;
    }
    g_assert_cmpint(picked, ==, 3); /* scores, softmax, values */
}

/* Where products of weights alone are kept, the core and all that only moves bytes run again, in no other mode. */
static void selective_products(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_UNFUSED);
    spec.execution.framework.kernels.selective_keeps_products = true;
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    int kept = 0;
    for (int i = 0; i < ops.count; i++) {
        const bool core = ops.op[i].module == COST_MODULE_ATTENTION_CORE;
        spec.training.recompute.mode = SPEC_RECOMPUTE_SELECTIVE;
        g_assert_cmpint(cost_recomputes_op(&spec, &ops, i), ==, core || ops.op[i].kind == COST_OP_MEMORY);
        kept += !cost_recomputes_op(&spec, &ops, i);
        spec.training.recompute.mode = SPEC_RECOMPUTE_NONE;
        g_assert_false(cost_recomputes_op(&spec, &ops, i));
    }
    g_assert_cmpint(kept, ==, 4); /* queries to values, output, both of the MLP */
}

static void extents(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_FLASH2);
    spec.training.recompute = (SpecRecompute){.mode = SPEC_RECOMPUTE_FULL, .layers = 2};
    g_assert_cmpint(cost_recompute_extent(&spec, 1), ==, COST_RECOMPUTE_OP_ALL);
    g_assert_cmpint(cost_recompute_extent(&spec, 2), ==, COST_RECOMPUTE_OP_NONE);
    spec.training.recompute = (SpecRecompute){.mode = SPEC_RECOMPUTE_SELECTIVE_LAYER, .every_n_layers = 2};
    g_assert_cmpint(cost_recompute_extent(&spec, 0), ==, COST_RECOMPUTE_OP_ALL);
    g_assert_cmpint(cost_recompute_extent(&spec, 1), ==, COST_RECOMPUTE_OP_NONE);
}

static const CostOp *named(const CostOps *ops, const char *name)
{
    for (int i = 0; i < ops->count; i++) {
        if (strcmp(ops->op[i].name, name) == 0)
            return &ops->op[i];
    }
    g_assert_not_reached();
}

/* Two heads of one sequence do not fill a block of four: the softmax of two sequences is one kernel, of one it is five
 * that move 37 bytes a score, or, without casts to fp32, four that move 16. */
static void softmax_needs_rows(void)
{
    Spec spec = make_spec(8, false, SPEC_ATTENTION_UNFUSED);
    spec.model.heads = spec.model.kv_heads = 16;
    spec.execution.framework.kernels.softmax = SPEC_SOFTMAX_FUSED;
    spec.execution.framework.kernels.fused_softmax_rows = 4;
    const double scores = 2 * 4096.0 * 4096.0; /* of one sequence */
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpint(named(&ops, "softmax")->kernels, ==, 1);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "softmax")), ==, 2 * scores * 4);
    spec.training.micro_batch = 1;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpint(named(&ops, "softmax")->kernels, ==, 5);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "softmax")), ==, scores * 37);
    spec.execution.framework.kernels.softmax = SPEC_SOFTMAX_NARROW;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpint(named(&ops, "softmax")->kernels, ==, 4);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "softmax")), ==, scores * 16);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpint(named(&ops, "softmax")->kernels, ==, 3);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "softmax")), ==, scores * 14);
    spec.execution.compiled = true;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpint(named(&ops, "softmax")->kernels, ==, 1);
}

/* Transformer Engine's unfused core: nine kernels make a mask of 81 bytes a pair, once for all heads, and the softmax
 * takes as long as its rows wait; backward nothing of that. */
static void softmax_reads_a_mask(void)
{
    Spec spec = make_spec(8, false, SPEC_ATTENTION_UNFUSED);
    spec.execution.framework.kernels.softmax = SPEC_SOFTMAX_FUSED_MASKED;
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    const double rows = 2 * (32 / 8) * 4096.0;
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "mask")), ==, 4096.0 * 4096.0 * 81);
    g_assert_cmpfloat(named(&ops, "softmax")->u.memory.rows, ==, rows);
    g_assert_cmpfloat(named(&ops, "softmax")->u.memory.row_elements, ==, 4096);
    CostShape shape;
    cost_shape_init(&shape, &spec);
    shape.accelerator.sm_count = 1;
    shape.accelerator.memory_bytes_per_s = 8e12;
    g_assert_cmpfloat(cost_op_s(&shape, named(&ops, "softmax")), ==,
                      cost_row_warps_s(&shape.accelerator, rows, 4096));
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(named(&ops, "softmax")->u.memory.rows, ==, 0);
}

/* Latent attention on Blackwell before cuDNN 9.11: no fused kernel, whatever the scenario names; elsewhere as named. */
static void latent_attention_falls_back(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_CUDNN);
    spec.model.mla = (SpecMla){.q_lora_rank = 1536,
                               .kv_lora_rank = 512,
                               .qk_nope_head_dim = 128,
                               .qk_rope_head_dim = 64,
                               .v_head_dim = 128};
    spec.cluster.accelerator.generation = *spec_generation("blackwell");
    spec.execution.framework.kernels.cudnn = SPEC_CUDNN_SINCE_9_17;
    g_assert_cmpint(cost_attention_kernel(&spec), ==, SPEC_ATTENTION_CUDNN);
    spec.execution.framework.kernels.cudnn = SPEC_CUDNN_BEFORE_9_11;
    g_assert_cmpint(cost_attention_kernel(&spec), ==, SPEC_ATTENTION_UNFUSED);
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_nonnull(named(&ops, "scores"));
    spec.cluster.accelerator.generation = *spec_generation("hopper");
    g_assert_cmpint(cost_attention_kernel(&spec), ==, SPEC_ATTENTION_CUDNN);
    spec.cluster.accelerator.generation = *spec_generation("blackwell");
    spec.execution.attention = SPEC_ATTENTION_FLASH2; /* what a scenario names is not second-guessed */
    g_assert_cmpint(cost_attention_kernel(&spec), ==, SPEC_ATTENTION_FLASH2);
    spec.execution.attention = SPEC_ATTENTION_CUDNN;
    spec.model.mla = (SpecMla){0};
    g_assert_cmpint(cost_attention_kernel(&spec), ==, SPEC_ATTENTION_CUDNN);
}

/* Eager rotary position of latent attention: 14 passes over the rotated 64 dimensions and two over all 192, of which nine
 * and both address each element by itself, as do keys and values out of views. */
static void latent_rope(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_CUDNN);
    spec.model.position = SPEC_POSITION_ROPE;
    spec.model.mla =
        (SpecMla){.kv_lora_rank = 512, .qk_nope_head_dim = 128, .qk_rope_head_dim = 64, .v_head_dim = 128};
    spec.execution.framework.kernels.rope = SPEC_ROPE_FUSED;
    const double dims = 2 * 4096.0 * 32 * 2; /* bytes of one dimension of all heads and tokens */
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "rope")), ==, dims * 64 * 2);
    g_assert_cmpfloat(named(&ops, "keys and values")->u.memory.addressed, ==, 0);
    spec.execution.framework.kernels.rope = SPEC_ROPE_FUSED_NOT_LATENT;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "rope")), ==, dims * 64 * 5);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "rotate")), ==, dims * (64 * 9 + 192 * 2));
    g_assert_cmpfloat(named(&ops, "rotate")->u.memory.addressed, ==, dims / 2 * (64 * 4.5 + 192));
    g_assert_cmpfloat(named(&ops, "keys and values")->u.memory.addressed, ==, dims / 2 * (192 + 128));
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "rope")), ==, dims * 64 * 15);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "rotate")), ==, dims * (64 * 9 + 192 * 2));
    g_assert_cmpfloat(named(&ops, "keys and values")->u.memory.addressed, ==, dims / 2 * (128 + 128));
}

/* A 16-bit gradient added to an fp32 sum: 2 + 4 + 4 bytes a weight; copied to fp32 first, 4 + 4 more. */
static void sums_in_fp32(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_FLASH2);
    spec.parallel.data = 1;
    CostOps ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    const double weights = 4096.0 * (32 + 2 * 8) * 128;
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "add to gradient")), ==, 10 * weights);
    spec.execution.framework.kernels.gradient_sum = SPEC_SUM_WIDENED;
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "widen gradient")), ==, 6 * weights);
    g_assert_cmpfloat(named(&ops, "widen gradient")->u.memory.addressed, ==, weights);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "add to gradient")), ==, 12 * weights);
    spec.training.gradient_dtype = SPEC_BF16;
    ops = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
    g_assert_cmpfloat(cost_moved_bytes(named(&ops, "add to gradient")), ==, 6 * weights);
}

/* Gradients of queries, keys and values put together again: read and written once, (32 + 2 x 8) heads of 128. */
static void copies_around_a_fused_core(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_FLASH2);
    const int before = fixture_layer_ops(&spec, COST_BACKWARD_INPUT).count;
    spec.execution.framework.ops.count = 1;
    spec.execution.framework.ops.op[0] = (SpecRecipeOp){.after = 0 /* qkv */,
                                                        .with = SPEC_NO_OP,
                                                        .pass = SPEC_PASS_BACKWARD_INPUT,
                                                        .copies = 1,
                                                        .kernels = 2};
    const CostOps backward = fixture_layer_ops(&spec, COST_BACKWARD_INPUT),
                  forward = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpint(backward.count, ==, before + 1);
    g_assert_cmpfloat(cost_moved_bytes(named(&backward, "copy")), ==, 2 * 8192.0 * 48 * 128 * 2);
    for (int i = 0; i < forward.count; i++)
        g_assert_cmpstr(forward.op[i].name, !=, "copy");
}

/* The host is 3 s behind in the forward and 2 ahead in the backward: the GPU waits 1 s; 2 s of other waiting stay. */
static void host_runs_ahead(void)
{
    CostTime passes[COST_PASS_COUNT] = {{.host_s = 5, .launch_wait_s = 3}, {.slack_s = 2}};
    CostTime recompute = {.host_s = 3, .launch_wait_s = 3};
    cost_time_run_ahead(passes, &recompute, COST_HOST_SYNC_NONE);
    g_assert_cmpfloat_with_epsilon(passes[COST_FORWARD].host_s, 3, 1e-12);
    g_assert_cmpfloat_with_epsilon(recompute.host_s, 3, 1e-12); /* nothing is left for it */
    CostTime more[COST_PASS_COUNT] = {{.host_s = 1, .launch_wait_s = 1}, {.slack_s = 2}, {.slack_s = 1}};
    cost_time_run_ahead(more, &recompute, COST_HOST_SYNC_NONE);
    g_assert_cmpfloat_with_epsilon(more[COST_FORWARD].host_s, 0, 1e-12);
    g_assert_cmpfloat_with_epsilon(recompute.host_s, 1, 1e-12);
    /* Where each micro-batch starts with both together, what the backward is ahead by comes too late for the forward. */
    CostTime synced[COST_PASS_COUNT] = {
        {.host_s = 3, .launch_wait_s = 3}, {.slack_s = 2}, {.host_s = 1, .launch_wait_s = 1}};
    recompute = (CostTime){.host_s = 3, .launch_wait_s = 3};
    cost_time_run_ahead(synced, &recompute, COST_HOST_SYNC_FORWARD);
    g_assert_cmpfloat_with_epsilon(synced[COST_FORWARD].host_s, 3, 1e-12);
    g_assert_cmpfloat_with_epsilon(synced[COST_BACKWARD_WEIGHT].host_s, 0, 1e-12);
    g_assert_cmpfloat_with_epsilon(recompute.host_s, 2, 1e-12);
    CostTime ahead[COST_PASS_COUNT] = {{.slack_s = 2}, {.host_s = 3, .launch_wait_s = 3}};
    cost_time_run_ahead(ahead, &recompute,
                        COST_HOST_SYNC_FORWARD); /* what the forward is ahead by serves the backward */
    g_assert_cmpfloat_with_epsilon(ahead[COST_BACKWARD_INPUT].host_s, 1, 1e-12);
    CostTime apart[COST_PASS_COUNT] = {{.slack_s = 2}, {.host_s = 3, .launch_wait_s = 3}, {.slack_s = 1}};
    cost_time_run_ahead(apart, &recompute,
                        COST_HOST_SYNC_PASSES); /* unless they meet again before the backward */
    g_assert_cmpfloat_with_epsilon(apart[COST_BACKWARD_INPUT].host_s, 2, 1e-12);
}

/* 2 s ahead in the forward: what runs again takes 1 of them and the input gradients the other; the weight gradients' 9 are
 * too late for any of them. */
static void host_runs_ahead_in_order(void)
{
    CostTime passes[COST_PASS_COUNT] = {{.slack_s = 2}, {.host_s = 3, .launch_wait_s = 3}, {.slack_s = 9}};
    CostTime recompute = {.host_s = 1, .launch_wait_s = 1};
    cost_time_run_ahead(passes, &recompute, COST_HOST_SYNC_IN_ORDER);
    g_assert_cmpfloat_with_epsilon(recompute.host_s, 0, 1e-12);
    g_assert_cmpfloat_with_epsilon(passes[COST_BACKWARD_INPUT].host_s, 2, 1e-12);
    CostTime cold[COST_PASS_COUNT] = {
        {.host_s = 3, .launch_wait_s = 3}, {.slack_s = 2}, {.host_s = 3, .launch_wait_s = 3}};
    cost_time_run_ahead(cold, &recompute, COST_HOST_SYNC_IN_ORDER);
    g_assert_cmpfloat_with_epsilon(cold[COST_FORWARD].host_s, 3, 1e-12); /* nothing is before it */
    g_assert_cmpfloat_with_epsilon(cold[COST_BACKWARD_WEIGHT].host_s, 1, 1e-12);
}

/* All launches and no work: a backward's take a fifth, those of what it recomputes as long as the forward's. */
static void backward_launches(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_FLASH2);
    g_assert_true(spec_load_accelerator("a100-sxm4-80gb", &spec.cluster.accelerator, NULL));
    spec.execution.framework.kernels.attention_speed_frac = 1;
    spec.execution.framework.host.kernel_host_s = 1;
    spec.execution.framework.host.backward_host_frac = 0.2;
    CostShape shape;
    cost_shape_init(&shape, &spec);
    const CostOps forward = fixture_layer_ops(&spec, COST_FORWARD),
                  backward = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    int launches = 0;
    for (int i = 0; i < backward.count; i++)
        launches += backward.op[i].kernels + backward.op[i].host_kernels;
    const CostTime back = cost_time_ops(&shape, &backward, COST_BACKWARD_INPUT),
                   there = cost_time_ops(&shape, &forward, COST_FORWARD),
                   again = cost_time_recompute(&shape, &forward, COST_RECOMPUTE_OP_ALL);
    g_assert_cmpfloat_with_epsilon(cost_time_total_s(&back), 0.2 * launches, 1e-9);
    g_assert_cmpfloat_with_epsilon(cost_time_total_s(&again), cost_time_total_s(&there), 1e-9);
    spec.cluster.host.launch_frac = 0.25; /* a slower host: a backward's fifth of all launches, four times */
    cost_shape_init(&shape, &spec);
    const CostTime slow = cost_time_ops(&shape, &backward, COST_BACKWARD_INPUT);
    g_assert_cmpfloat_with_epsilon(cost_time_total_s(&slow), 0.8 * launches, 1e-9);
}

/* T = 8192 tokens: inputs h, (a d), h, f forward; gradients of (a + 2g) d, h, 2f, h backward; parts of the sequence
 * before a gather and after a reduce-scatter. */
static void casts(void)
{
    static const struct {
        SpecPrecision precision;
        const char *generation;
        double bytes;
        bool fused;
    } recipes[] = {
        {SPEC_PRECISION_BF16, "hopper", 0, false},          {SPEC_PRECISION_FP8, "hopper", 4, false},
        {SPEC_PRECISION_FP8, "blackwell", 3, false},        {SPEC_PRECISION_FP8_CS, "hopper", 6, false},
        {SPEC_PRECISION_MXFP8, "blackwell", 4.0625, false}, {SPEC_PRECISION_NVFP4, "blackwell", 7.125, false},
        {SPEC_PRECISION_NVFP4, "blackwell", 5.125, true}};
    const double tokens = 8192, part = tokens / 4, forward = 2 * part * 4096 + tokens * (4096 + 14336) / 4,
                 backward = 2 * part * 4096 + tokens * (4096 + 2048 + 2 * 14336) / 4;
    for (size_t i = 0; i < G_N_ELEMENTS(recipes); i++) {
        Spec spec = make_spec(4, true, SPEC_ATTENTION_CUDNN);
        spec.training.precision = recipes[i].precision;
        spec.cluster.accelerator.generation = *spec_generation(recipes[i].generation);
        spec.execution.framework.kernels.transformer_engine =
            recipes[i].fused ? SPEC_TE_BEFORE_2_16 : SPEC_TE_BEFORE_2_14;
        const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD),
                      back = fixture_layer_ops(&spec, COST_BACKWARD_INPUT),
                      weight = fixture_layer_ops(&spec, COST_BACKWARD_WEIGHT);
        g_assert_cmpfloat_with_epsilon(move_bytes(&ops, "cast"), recipes[i].bytes * forward, 1);
        g_assert_cmpfloat_with_epsilon(move_bytes(&back, "cast"), recipes[i].bytes * backward, 1);
        g_assert_cmpfloat(move_bytes(&weight, "cast"), ==, 0);
        /* qkv, out, MLP in, MLP out; one scale for 32 or 16 elements, read and written */
        const double operands =
            (tokens + 1536) * 4096 + (tokens + 4096) * 1024 + (tokens + 7168) * 4096 + (tokens + 4096) * 3584;
        const double blocks = recipes[i].precision == SPEC_PRECISION_MXFP8   ? 32
                              : recipes[i].precision == SPEC_PRECISION_NVFP4 ? 16
                                                                             : INFINITY;
        g_assert_cmpfloat_with_epsilon(move_bytes(&ops, "scales"), 2 * operands / blocks, 1);
    }
}

/* Casts that order scales leave a kernel for each weight and none before weight gradients; gathered activations are ordered
 * as before, and other recipes have nothing to order or order all. */
static void ordered_scales(void)
{
    const double weights = 4096.0 * (6144 + 4096 + 28672 + 14336); /* qkv, out, MLP in, MLP out */
    for (int tensor = 1; tensor <= 4; tensor += 3) {
        Spec spec = make_spec(tensor, tensor > 1, SPEC_ATTENTION_CUDNN);
        spec.training.precision = SPEC_PRECISION_MXFP8;
        spec.cluster.accelerator.generation = *spec_generation("blackwell");
        double before[COST_PASS_COUNT], after[COST_PASS_COUNT];
        for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
            spec.execution.framework.kernels.transformer_engine = SPEC_TE_BEFORE_2_12;
            CostOps ops = fixture_layer_ops(&spec, (CostPass)pass);
            before[pass] = move_bytes(&ops, "scales");
            spec.execution.framework.kernels.transformer_engine = SPEC_TE_BEFORE_2_14;
            ops = fixture_layer_ops(&spec, (CostPass)pass);
            after[pass] = move_bytes(&ops, "scales");
            g_assert_true(tensor == 1 || (after[pass] <= before[pass] && after[pass] >= before[pass]));
        }
        g_assert_cmpfloat(before[COST_BACKWARD_WEIGHT], >, 0);
        if (tensor == 1) {
            g_assert_cmpfloat(after[COST_BACKWARD_WEIGHT], ==, 0);
            g_assert_cmpfloat_with_epsilon(after[COST_FORWARD], 2 * weights / 32, 1);
            g_assert_cmpfloat_with_epsilon(after[COST_BACKWARD_INPUT], 2 * weights / 32, 1);
        }
    }
}

/* What stops early leaves out the MLP's output linear, its reduction and the sum behind it. */
static void stops_early(void)
{
    Spec spec = make_spec(1, false, SPEC_ATTENTION_CUDNN);
    CostShape shape;
    CostTime all, early, without = {0};
    g_autoptr(GError) error = NULL;
    g_assert_true(spec_load_accelerator("h100-sxm5-80gb", &spec.cluster.accelerator, &error));
    spec.execution.framework.kernels.attention_speed_frac = 1;
    const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    cost_shape_init(&shape, &spec);
    all = cost_time_recompute(&shape, &ops, COST_RECOMPUTE_OP_ALL);
    for (int i = ops.count - 2; i < ops.count; i++) {
        without.compute_s += cost_op_s(&shape, &ops.op[i]);
    }
    g_assert_cmpstr(ops.op[ops.count - 2].name, ==, "mlp out");
    spec.execution.framework.kernels.recompute_stops_early = true;
    early = cost_time_recompute(&shape, &ops, COST_RECOMPUTE_OP_ALL);
    g_assert_cmpfloat_with_epsilon(all.compute_s - early.compute_s, without.compute_s, 1e-12);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ops/flops-by-pass", flops_by_pass);
    g_test_add_func("/ops/attention-kernels-agree", attention_kernels_agree);
    g_test_add_func("/ops/tensor-traffic", tensor_traffic);
    g_test_add_func("/ops/one-rank-is-silent", one_rank_is_silent);
    g_test_add_func("/ops/selective-products", selective_products);
    g_test_add_func("/ops/selective-picks-the-core", selective_picks_the_core);
    g_test_add_func("/ops/extents", extents);
    g_test_add_func("/ops/ordered-scales", ordered_scales);
    g_test_add_func("/ops/softmax-needs-rows", softmax_needs_rows);
    g_test_add_func("/ops/softmax-reads-a-mask", softmax_reads_a_mask);
    g_test_add_func("/ops/latent-attention-falls-back", latent_attention_falls_back);
    g_test_add_func("/ops/latent-rope", latent_rope);
    g_test_add_func("/ops/sums-in-fp32", sums_in_fp32);
    g_test_add_func("/ops/copies-around-a-fused-core", copies_around_a_fused_core);
    g_test_add_func("/ops/host-runs-ahead", host_runs_ahead);
    g_test_add_func("/ops/host-runs-ahead-in-order", host_runs_ahead_in_order);
    g_test_add_func("/ops/backward-launches", backward_launches);
    g_test_add_func("/ops/casts", casts);
    g_test_add_func("/ops/stops-early", stops_early);
    return g_test_run();
}
