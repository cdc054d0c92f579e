/* tests/unit/test_ops.c - op lists: FLOPs by pass, bytes of tensor parallelism, what recomputation picks. */
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/pass.h"

static Spec make_spec(int tensor, bool sequence_parallel, SpecAttention attention)
{
    Spec spec = {0};
    spec.model = (SpecModel){.layers = 4,
                             .hidden = 4096,
                             .heads = 32,
                             .kv_heads = 8,
                             .head_dim = 128,
                             .ffn_hidden = 14336,
                             .gated_mlp = true,
                             .vocab = 128256,
                             .norm = SPEC_NORM_RMSNORM,
                             .position = SPEC_POSITION_ROPE,
                             .causal = true};
    spec.cluster.gpus_per_node = spec.cluster.scale_up_domain_gpus = 8;
    spec.cluster.nodes = 1;
    spec.training = (SpecTraining){.sequence_length = 4096,
                                   .global_batch = 8,
                                   .micro_batch = 2,
                                   .precision = SPEC_PRECISION_BF16,
                                   .gradient_dtype = SPEC_FP32,
                                   .gradient_reduce_dtype = SPEC_FP32};
    spec.parallel = (SpecParallel){.tensor = tensor,
                                   .sequence_parallel = sequence_parallel,
                                   .context = 1,
                                   .pipeline = 1,
                                   .virtual_stages = 1,
                                   .data = 8 / tensor,
                                   .expert = 1,
                                   .expert_tensor = 1};
    spec.execution.attention = attention;
    return spec;
}

static CostOps layer_ops(const Spec *spec, CostPass pass)
{
    CostShape shape;
    CostOps ops = {.count = 0};
    cost_shape_init(&shape, spec);
    cost_ops_layer(&shape, 0, pass, &ops);
    return ops;
}

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
    const CostOps forward = layer_ops(&spec, COST_FORWARD), input = layer_ops(&spec, COST_BACKWARD_INPUT),
                  weight = layer_ops(&spec, COST_BACKWARD_WEIGHT);
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
        const CostOps a = layer_ops(&fused, (CostPass)pass), b = layer_ops(&unfused, (CostPass)pass);
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
        const CostOps ops = layer_ops(spec, (CostPass)pass);
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
    const CostOps ops = layer_ops(&spec, COST_FORWARD);
    int picked = 0;
    for (int i = 0; i < ops.count; i++) {
        const bool core = ops.op[i].module == COST_MODULE_ATTENTION_CORE;
        g_assert_cmpint(cost_recomputes_op(&spec, &ops, i), ==, core);
        picked += core;
    }
    g_assert_cmpint(picked, ==, 3); /* scores, softmax, values */
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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/ops/flops-by-pass", flops_by_pass);
    g_test_add_func("/ops/attention-kernels-agree", attention_kernels_agree);
    g_test_add_func("/ops/tensor-traffic", tensor_traffic);
    g_test_add_func("/ops/one-rank-is-silent", one_rank_is_silent);
    g_test_add_func("/ops/selective-picks-the-core", selective_picks_the_core);
    g_test_add_func("/ops/extents", extents);
    return g_test_run();
}
