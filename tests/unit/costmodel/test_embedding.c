/* tests/unit/costmodel/test_embedding.c - lookups of tokens and the gradient of their table, bytes and products counted by
 * hand. */
#include "costmodel/ops.h"
#include "tests/unit/layer_fixture.h"

static const double TOKENS = 2 * 4096.0, HIDDEN = 4096;

/* Two products of tokens x vocabulary x hidden, which nobody counts as FLOPs. */
static void one_hot(void)
{
    Spec spec = fixture_spec(1, false);
    CostShape shape;
    for (int on = 0; on < 2; on++) {
        spec.execution.framework.kernels.embedding = on ? SPEC_EMBEDDING_ONE_HOT : SPEC_EMBEDDING_ROWS;
        cost_shape_init(&shape, &spec);
        CostOps forward = {.count = 0}, backward = {.count = 0};
        cost_ops_embedding(&shape, COST_FORWARD, &forward);
        cost_ops_embedding(&shape, COST_BACKWARD_WEIGHT, &backward);
        const CostOp *first = &forward.op[on], *second = &backward.op[on];
        g_assert_cmpint(first->kind, ==, on ? COST_OP_GEMM : COST_OP_MEMORY);
        g_assert_cmpfloat(first->model_flops + second->model_flops, ==, 0);
        if (on) {
            g_assert_cmpfloat(first->u.gemm.m * first->u.gemm.n * first->u.gemm.k, ==,
                              TOKENS * 128256 * HIDDEN);
            g_assert_cmpfloat(second->u.gemm.k, ==, TOKENS);
        }
    }
}

/* A gradient of the whole table: 2 bytes cleared, 2 read and the sum's 4 or 2 read and written; beside it each token's row is
 * read, and its place read and written. Off, the rows alone move. A multi-token module looks its tokens up likewise. */
static void table_gradient(void)
{
    const double vocab = 128256;
    for (int tensor = 1; tensor <= 2; tensor++) {
        for (int fp32 = 0; fp32 < 2; fp32++) {
            Spec spec = fixture_spec(tensor, false);
            CostShape shape;
            CostOps off = {.count = 0}, ops = {.count = 0}, module = {.count = 0};
            cost_shape_init(&shape, &spec);
            cost_ops_embedding(&shape, COST_BACKWARD_WEIGHT, &off);
            g_assert_cmpfloat(fixture_moved(&off, "clear table grad") + fixture_moved(&off, "add table grad"),
                              ==, 0);
            spec.execution.framework.kernels.embedding = SPEC_EMBEDDING_TABLE;
            spec.training.gradient_dtype = fp32 ? SPEC_FP32 : SPEC_BF16;
            cost_shape_init(&shape, &spec);
            cost_ops_embedding(&shape, COST_BACKWARD_WEIGHT, &ops);
            g_assert_cmpfloat(fixture_moved(&ops, "clear table grad"), ==, 2 * vocab / tensor * HIDDEN);
            g_assert_cmpfloat(fixture_moved(&ops, "add table grad"), ==,
                              (2 + (shape.accumulate_fp32 ? 8 : 4)) * vocab / tensor * HIDDEN);
            g_assert_cmpfloat(fixture_moved(&ops, "token rows grad"), ==, 6 * TOKENS * HIDDEN);
            cost_ops_mtp(&shape, COST_BACKWARD_WEIGHT, &module);
            g_assert_cmpfloat(fixture_moved(&module, "add table grad"), ==,
                              fixture_moved(&ops, "add table grad"));
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/embedding/one-hot", one_hot);
    g_test_add_func("/embedding/table-gradient", table_gradient);
    return g_test_run();
}
