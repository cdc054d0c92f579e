/* tests/unit/costmodel/test_spelled.c - formulas that eager Python spells out, a kernel an operation: GELU, and the core of
 * attention by torch.matmul. Elements are counted by hand. */
#include <string.h>

#include "costmodel/activations.h"
#include "costmodel/ops.h"
#include "tests/unit/layer_fixture.h"

static const double TOKENS = 2 * 4096.0, FFN = 14336;

static double kept(const Spec *spec)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    return cost_layer_activations(&shape, 0, 0).kept_bytes;
}

/* Gate and up that are halves of one product's rows are views: the activation (2 + 2) and the product (4 + 2) forward, the
 * gradients of both (4 + 2 each) backward address each element; one product (4 + 2) and what puts the halves together (4 + 4)
 * stream. Linear layers of their own write no views. */
static void gate_views(void)
{
    Spec spec = fixture_spec(1, false);
    for (int back = 0; back < 2; back++) {
        for (int views = 0; views < 2; views++) {
            spec.execution.framework.kernels.gate_backward_copies = views;
            const CostOps ops = fixture_layer_ops(&spec, back ? COST_BACKWARD_INPUT : COST_FORWARD);
            double addressed = 0;
            for (int i = 0; i < ops.count; i++)
                if (strcmp(ops.op[i].name, "activation") == 0)
                    addressed += ops.op[i].u.memory.addressed;
            g_assert_cmpfloat(addressed, ==, views ? 2 * TOKENS * FFN : 0);
            g_assert_cmpfloat(fixture_moved(&ops, "activation") + fixture_moved(&ops, "gate gradients"), ==,
                              (back ? views ? 26 : 18 : 10) * TOKENS * FFN);
            g_assert_cmpfloat(fixture_moved(&ops, "gate gradients"), ==,
                              back && views ? 14 * TOKENS * FFN : 0);
        }
    }
}

/* GELU by its erf formula: a bias and five kernels of 13 elements forward, ten of 24 backward, three tensors kept where one
 * kernel keeps one; by tanh 20 elements and 28, and four. Fused, compiled or gated nothing is spelled out. */
static void spelled_gelu(void)
{
    Spec spec = fixture_spec(1, false);
    spec.model.biases = SPEC_BIASES_ALL;
    spec.model.gated_mlp = false;
    static const double forward[] = {4, 13, 20}, backward[] = {5, 24, 28}, tensors[] = {1, 3, 4};
    const double each = 2 * TOKENS * FFN;
    const double plain = kept(&spec);
    for (int gelu = SPEC_GELU_KERNEL; gelu <= SPEC_GELU_TANH; gelu++) {
        spec.execution.framework.kernels.gelu = (SpecGelu)gelu;
        const CostOps ops = fixture_layer_ops(&spec, COST_FORWARD),
                      back = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
        g_assert_cmpfloat(fixture_moved(&ops, "activation"), ==, forward[gelu] * each);
        g_assert_cmpfloat(fixture_moved(&back, "activation"), ==, backward[gelu] * each);
        g_assert_cmpfloat(kept(&spec) - plain, ==, (tensors[gelu] - 1) * each);
    }
    spec.execution.compiled = true;
    const CostOps compiled = fixture_layer_ops(&spec, COST_FORWARD);
    g_assert_cmpfloat(fixture_moved(&compiled, "activation"), ==, 2 * each);
}

/* torch.matmul of four dimensions copies queries, keys and values besides what the core returns; backward nothing changes. A
 * mask that is added is a kernel less than one that multiplies and subtracts. */
static void unfused_core(void)
{
    Spec spec = fixture_spec(1, false);
    spec.execution.attention = SPEC_ATTENTION_UNFUSED;
    SpecRecipeKernels *kernels = &spec.execution.framework.kernels;
    kernels->softmax = SPEC_SOFTMAX_NARROW;
    const CostOps one = fixture_layer_ops(&spec, COST_FORWARD),
                  one_back = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    kernels->batches_heads = true;
    kernels->softmax = SPEC_SOFTMAX_NARROW_ADDED;
    const CostOps four = fixture_layer_ops(&spec, COST_FORWARD),
                  four_back = fixture_layer_ops(&spec, COST_BACKWARD_INPUT);
    g_assert_cmpfloat(fixture_moved(&four, "layout"), ==, 4 * fixture_moved(&one, "layout"));
    g_assert_cmpfloat(fixture_moved(&four_back, "layout"), ==, fixture_moved(&one_back, "layout"));
    g_assert_cmpfloat(8 * fixture_moved(&four, "softmax"), ==, 6 * fixture_moved(&one, "softmax"));
    g_assert_cmpfloat(7 * fixture_moved(&four_back, "softmax"), ==, 5 * fixture_moved(&one_back, "softmax"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spelled/gelu", spelled_gelu);
    g_test_add_func("/spelled/core", unfused_core);
    g_test_add_func("/spelled/gate-views", gate_views);
    return g_test_run();
}
