/* tests/unit/costmodel/test_norms.c - norms as kernels: spelled out and by element, the gradient of the weight apart, one pass. */
#include <math.h>
#include <string.h>
#include "costmodel/norms.h"
#include "costmodel/ops.h"
#include "costmodel/pass.h"
#include "tests/unit/kernel_fixture.h"
#include "tests/unit/layer_fixture.h"

static const double TOKENS = 2 * 4096.0, HIDDEN = 4096;

/* What broadcasts and widens in an eager norm takes what the SMs take: three kernels forward and four back, seven tenths as
 * many elements a second on an A100; what the bytes take where instructions do not count. */
static void norms_by_element(void)
{
    Spec spec = fixture_spec(1, false);
    SpecRecipeKernels *const kernels = &spec.execution.framework.kernels;
    kernels->norm = SPEC_NORM_KERNEL_EAGER;
    static const char *const names[] = {"h200-sxm5-141gb", "a100-sxm4-80gb"};
    static const double sm_frac[] = {1, 0.7};
    for (int i = 0; i < 4; i++) {
        const CostPass pass = i % 2 == 0 ? COST_FORWARD : COST_BACKWARD_INPUT;
        spec.cluster.accelerator = fixture_preset(names[i / 2]);
        const SpecAccelerator *gpu = &spec.cluster.accelerator;
        CostShape shape;
        kernels->sm_elements_per_s = 1e9;
        cost_shape_init(&shape, &spec);
        const CostOps ops = fixture_layer_ops(&spec, pass);
        const CostOp *chain = NULL;
        for (int k = 0; k < ops.count; k++)
            if (strcmp(ops.op[k].name, "norm by element") == 0)
                chain = &ops.op[k];
        const double times = pass == COST_FORWARD ? 3 : 4,
                     empty_s = times * cost_memory_bound_s(gpu, COST_MEMORY_ELEMENTWISE, 0);
        fixture_within(cost_op_s(&shape, chain) - empty_s,
                       times * TOKENS * HIDDEN / (gpu->sm_count * 1e9 * sm_frac[i / 2]), 1e-9);
        kernels->sm_elements_per_s = 0;
        cost_shape_init(&shape, &spec);
        fixture_within(
            cost_op_s(&shape, chain),
            times * cost_memory_bound_s(gpu, COST_MEMORY_ELEMENTWISE, cost_moved_bytes(chain) / times), 1e-9);
    }
}

/* The gradient of a norm's weight as a kernel of its own moves what both moved together, takes as long where it streams, and else
 * what the SMs take; a chain of kernels in fp32 has it already. */
static void norm_weights(void)
{
    Spec spec = fixture_spec(1, false);
    spec.cluster.accelerator = (SpecAccelerator){.sm_count = 100, .memory_bytes_per_s = 1e12};
    spec.cluster.accelerator.generation = *spec_generation("hopper");
    double *const rate = &spec.execution.framework.kernels.norm_weight_elements_per_s;
    double seconds[3];
    for (int i = 0; i < 3; i++) {
        *rate = i == 0 ? 0 : i == 1 ? 1e13 : 1e8;
        CostShape shape;
        cost_shape_init(&shape, &spec);
        const CostOps ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
        seconds[i] = 0;
        for (int k = 0; k < ops.count; k++)
            if (g_str_has_prefix(ops.op[k].name, "norm"))
                seconds[i] += cost_op_s(&shape, &ops.op[k]);
        g_assert_cmpfloat(fixture_moved(&ops, "norm") + fixture_moved(&ops, "norm weight"), ==,
                          2 * 10 * TOKENS * HIDDEN);
        g_assert_cmpfloat(fixture_moved(&ops, "norm weight"), ==, i == 0 ? 0 : 2 * 4 * TOKENS * HIDDEN);
    }
    g_assert_cmpfloat(fabs(seconds[1] / seconds[0] - 1), <, 1e-12);
    g_assert_cmpfloat(seconds[2], >, 2 * TOKENS * HIDDEN / (100 * 1e8));
    spec.execution.framework.kernels.norm = SPEC_NORM_KERNEL_EAGER;
    const CostOps chain = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&chain, "norm weight"), ==, 0);
}

/* One pass of a norm's backward: input and gradient read once, and the sums that the blocks leave; as long as the kernels of a table
 * are taken to be. Off, as before. */
static void norm_in_one_pass(void)
{
    Spec spec = fixture_spec(1, false);
    spec.cluster.accelerator = (SpecAccelerator){.sm_count = 100, .memory_bytes_per_s = 1e12};
    spec.cluster.accelerator.generation = *spec_generation("hopper");
    const CostOps before = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&before, "norm weight"), ==, 0);
    spec.execution.framework.kernels.one_pass_norm_backward = true;
    CostShape shape;
    cost_shape_init(&shape, &spec);
    const CostOps ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    const CostNormRows norm = {COST_NORM_STAYING, TOKENS, HIDDEN, 4};
    const double sums = cost_norm_sums(&shape.accelerator, &norm);
    double seconds = 0;
    for (int k = 0; k < ops.count; k++)
        if (g_str_has_prefix(ops.op[k].name, "norm"))
            seconds += cost_op_s(&shape, &ops.op[k]);
    g_assert_cmpfloat(sums, >, 0);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 6 * TOKENS * HIDDEN);
    g_assert_cmpfloat(fixture_moved(&ops, "norm weight"), ==, 2 * COST_NORM_SUM_BYTES * sums);
    g_assert_cmpfloat(fabs(seconds / (2 * cost_norm_backward_s(&shape.accelerator, TOKENS, HIDDEN, 2)) - 1),
                      <, 1e-12);
}

/* A norm that adds: the sums of the residual stream are no kernels, and both move 8 bytes an element in all. */
static void norm_that_adds(void)
{
    Spec spec = fixture_spec(1, false);
    spec.cluster.accelerator = (SpecAccelerator){.sm_count = 100, .memory_bytes_per_s = 1e12};
    spec.cluster.accelerator.generation = *spec_generation("hopper");
    int kernels[2] = {0};
    for (int adds = 0; adds < 2; adds++) {
        spec.execution.framework.kernels.norm = adds ? SPEC_NORM_KERNEL_ADDS : SPEC_NORM_KERNEL_FUSED;
        const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
        for (int k = 0; k < ops.count; k++)
            kernels[adds] += ops.op[k].kernels;
        g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 4 * TOKENS * HIDDEN);
        g_assert_cmpfloat(fixture_moved(&ops, "residual"), ==, 2 * (adds ? 4 : 6) * TOKENS * HIDDEN);
    }
    g_assert_cmpint(kernels[0] - kernels[1], ==, 2);
    const CostOps backward = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&backward, "norm"), ==, 2 * 6 * TOKENS * HIDDEN);
}

/* The forward of PyTorch's norms waits for its blocks, eager or compiled; another framework's streams. A norm of
 * each head has the head's width. */
static void norm_by_rows(void)
{
    static const CostNormBlocks want[] = {COST_NORM_STREAMED, COST_NORM_ROW, COST_NORM_COMPILED};
    for (int way = 0; way < 3; way++) {
        Spec spec = fixture_spec(1, false);
        spec.cluster.accelerator = (SpecAccelerator){.sm_count = 100, .memory_bytes_per_s = 1e12};
        spec.cluster.accelerator.generation = *spec_generation("hopper");
        spec.model.qk_norm = true;
        spec.execution.framework.kernels.norm_weight_elements_per_s = way == 0 ? 0 : 4e9;
        spec.execution.compiled = way == 2;
        const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
        int norms = 0, of_heads = 0;
        for (int k = 0; k < ops.count; k++)
            if (strcmp(ops.op[k].name, "norm") == 0) {
                const CostNormRows *norm = &ops.op[k].u.memory.norm;
                norms++;
                of_heads += (int)norm->cols == spec.model.head_dim;
                g_assert_cmpint(norm->blocks, ==, want[way]);
                g_assert_cmpfloat(norm->rows * norm->cols, ==, ops.op[k].u.memory.elements);
            }
        g_assert_cmpint(norms, ==, 3);
        g_assert_cmpint(of_heads, ==, 1);
    }
}

/* XLA reads a row again behind each sum over it: 2 + 2 bytes become 4 + 2 of RMSNorm and 6 + 2 of a layer norm, 8 + 2
 * become 12 + 2 backward; of scores 6 + 2 and 8 + 2. Without the compiler nothing of it holds. */
static void sums_apart(void)
{
    static const struct {
        SpecNorm norm;
        CostPass pass;
        double norm_bytes, score_bytes;
    } cases[] = {{SPEC_NORM_RMSNORM, COST_FORWARD, 6, 8},
                 {SPEC_NORM_LAYERNORM, COST_FORWARD, 8, 8},
                 {SPEC_NORM_LAYERNORM, COST_BACKWARD_INPUT, 14, 10}};
    Spec spec = fixture_spec(1, false);
    SpecRecipeKernels *kernels = &spec.execution.framework.kernels;
    spec.execution.attention = SPEC_ATTENTION_UNFUSED;
    kernels->norm_weight_elements_per_s = 0;
    const double scores = TOKENS * TOKENS / 2 * 32;
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        spec.model.norm = cases[i].norm;
        spec.execution.compiled = kernels->reductions_apart = true;
        CostOps ops = fixture_layer_ops(&spec, cases[i].pass);
        g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * cases[i].norm_bytes * TOKENS * HIDDEN);
        g_assert_cmpfloat(fixture_moved(&ops, "softmax"), ==, cases[i].score_bytes * scores);
        spec.execution.compiled = false;
        ops = fixture_layer_ops(&spec, cases[i].pass);
        const double eager = fixture_moved(&ops, "norm") + fixture_moved(&ops, "softmax");
        kernels->reductions_apart = false;
        ops = fixture_layer_ops(&spec, cases[i].pass);
        g_assert_cmpfloat(fixture_moved(&ops, "norm") + fixture_moved(&ops, "softmax"), ==, eager);
    }
}

/* A fused norm of an fp32 copy that the backward makes again; the compiler's is one kernel. */
static void norms_on_copies(void)
{
    Spec spec = fixture_spec(1, false);
    spec.model.norm = SPEC_NORM_RMSNORM;
    spec.execution.framework.kernels.norm = SPEC_NORM_KERNEL_FUSED;
    const CostOps plain = fixture_layer_ops(&spec, COST_FORWARD);
    spec.execution.framework.kernels.norm = SPEC_NORM_KERNEL_COPY;
    const double stream = TOKENS * HIDDEN;
    CostOps ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 6 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 2 * 6 * stream);
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * (6 + 22) * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 2 * 6 * stream);
    spec.training.recompute.mode = SPEC_RECOMPUTE_FULL; /* the forward runs again anyway */
    ops = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, 2 * 22 * stream);
    g_assert_cmpfloat(fixture_moved(&ops, "norm by element"), ==, 0);
    spec.execution.compiled = true;
    ops = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&ops, "norm"), ==, fixture_moved(&plain, "norm"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/norms/by-element", norms_by_element);
    g_test_add_func("/norms/on-copies", norms_on_copies);
    g_test_add_func("/norms/weights", norm_weights);
    g_test_add_func("/norms/in-one-pass", norm_in_one_pass);
    g_test_add_func("/norms/adds", norm_that_adds);
    g_test_add_func("/norms/by-rows", norm_by_rows);
    g_test_add_func("/norms/sums-apart", sums_apart);
    return g_test_run();
}
