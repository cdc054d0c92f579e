/* tests/unit/costmodel/test_loss.c - bytes that PyTorch's cross-entropies move, counted by hand. */
#include "costmodel/activations.h"
#include "costmodel/ops.h"
#include "tests/unit/layer_fixture.h"

static const double TOKENS = 2 * 4096.0;

static double flops_of(const CostOps *ops)
{
    double flops = 0;
    for (int i = 0; i < ops->count; i++)
        flops += ops->op[i].model_flops;
    return flops;
}

/* PyTorch's log-softmax counts each pass over a row once: what H200 and H100 take for 32,000, 50,304 and 128,256 columns grows
 * with the bytes, not with the rows that the L2 cache no longer holds. flash-attn's kernel reads rows of 16 bits again: half
 * of them where the cache holds half. */
static void rows_read_again(void)
{
    Spec spec = fixture_spec(1, false);
    CostShape shape;
    spec.execution.framework.loss.logit_metrics = 1;
    spec.cluster.accelerator.sm_count = 100;
    const double rows = 200, row_bytes = 2 * 128256.0, logits = TOKENS * 128256;
    for (int half = 0; half < 2; half++) {
        spec.cluster.accelerator.l2_bytes = rows * row_bytes / (half ? 2 : 1);
        spec.execution.framework.loss.kernel = SPEC_LOSS_UNFUSED;
        cost_shape_init(&shape, &spec);
        CostOps forward = {.count = 0}, backward = {.count = 0};
        cost_ops_head(&shape, COST_FORWARD, &forward);
        cost_ops_head(&shape, COST_BACKWARD_INPUT, &backward);
        g_assert_cmpfloat(fixture_moved(&forward, "loss"), ==, 8 * logits);
        g_assert_cmpfloat(fixture_moved(&forward, "loss copies"), ==, 6 * logits);
        g_assert_cmpfloat(fixture_moved(&forward, "metrics"), ==, 14 * logits);
        g_assert_cmpfloat(fixture_moved(&backward, "loss"), ==, 12 * logits);
        g_assert_cmpfloat(fixture_moved(&backward, "loss copies"), ==, 10 * logits);
        spec.execution.framework.loss.kernel = SPEC_LOSS_XENTROPY;
        forward.count = 0;
        cost_ops_head(&shape, COST_FORWARD, &forward);
        g_assert_cmpfloat(fixture_moved(&forward, "loss"), ==, (half ? 3 : 2) * logits);
    }
}

/* What torch.autocast casts is what log-softmax wrote in 16 bits (2 + 2, then 2 + 4); backward zeros (4), the gradient back to
 * 16 bits (4 + 2) and log-softmax's (2 + 2 + 2). */
static void autocast(void)
{
    Spec spec = fixture_spec(1, false);
    CostShape shape;
    spec.execution.framework.loss.kernel = SPEC_LOSS_UNFUSED_AUTOCAST;
    spec.cluster.accelerator.sm_count = 100;
    spec.cluster.accelerator.l2_bytes = 1e12;
    cost_shape_init(&shape, &spec);
    const double logits = TOKENS * 128256;
    CostOps forward = {.count = 0}, backward = {.count = 0};
    cost_ops_head(&shape, COST_FORWARD, &forward);
    cost_ops_head(&shape, COST_BACKWARD_INPUT, &backward);
    g_assert_cmpfloat(fixture_moved(&forward, "loss"), ==, 4 * logits);
    g_assert_cmpfloat(fixture_moved(&forward, "loss copies"), ==, 6 * logits);
    g_assert_cmpfloat(fixture_moved(&backward, "loss"), ==, 6 * logits);
    g_assert_cmpfloat(fixture_moved(&backward, "loss copies"), ==, 10 * logits);
}

/* A quarter of the positions picked ahead of the head: a quarter of its product, of the loss and of what both keep. The copy is
 * of rows in 16 bits; backward zeros of all rows, then each picked row read, added to and written. */
static void predicted(void)
{
    Spec spec = fixture_spec(1, false);
    CostShape shape;
    double flops[2], kept[2];
    CostOps forward = {.count = 0}, backward = {.count = 0};
    for (int some = 0; some < 2; some++) {
        spec.training.predicted_frac = some ? 0.25 : 1;
        cost_shape_init(&shape, &spec);
        forward.count = backward.count = 0;
        cost_ops_head(&shape, COST_FORWARD, &forward);
        cost_ops_head(&shape, COST_BACKWARD_INPUT, &backward);
        flops[some] = flops_of(&forward);
        kept[some] = cost_head_activations(&shape).kept_bytes - 2 * shape.part_tokens * shape.hidden;
        g_assert_cmpint(fixture_moved(&forward, "pick predicted") > 0, ==, some);
    }
    const double rows = TOKENS * shape.hidden;
    g_assert_cmpfloat(flops[1], ==, flops[0] / 4);
    g_assert_cmpfloat(kept[1], ==, kept[0] / 4);
    g_assert_cmpfloat(fixture_moved(&forward, "pick predicted"), ==, rows / 4 * (2 + 2));
    g_assert_cmpfloat(fixture_moved(&backward, "spread predicted"), ==, rows * 2 + rows / 4 * (2 + 2 + 2));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/loss/rows-read-again", rows_read_again);
    g_test_add_func("/loss/autocast", autocast);
    g_test_add_func("/loss/predicted", predicted);
    return g_test_run();
}
