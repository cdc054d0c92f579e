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

/* Megatron's vocabulary-parallel loss: the cast to fp32 (2 + 4), what subtracts (4 + 4) and divides (4 + 4) widen or broadcast,
 * maximum (4), exp (4 + 4) and sum (4) stream; backward the scale (4 + 4) broadcasts, the cast back (4 + 2) streams. Counted by
 * hand; elements count once a kernel. */
static void by_element(void)
{
    Spec spec = fixture_spec(1, false);
    CostShape shape;
    spec.execution.framework.loss.kernel = SPEC_LOSS_VOCAB_PARALLEL;
    cost_shape_init(&shape, &spec);
    const double logits = TOKENS * 128256;
    for (int back = 0; back < 2; back++) {
        CostOps ops = {.count = 0};
        cost_ops_head(&shape, back ? COST_BACKWARD_INPUT : COST_FORWARD, &ops);
        g_assert_cmpfloat(fixture_moved(&ops, "loss by element"), ==, (back ? 8 : 22) * logits);
        g_assert_cmpfloat(fixture_moved(&ops, "loss"), ==, (back ? 6 : 16) * logits);
        double addressed = 0;
        int kernels = 0;
        for (int i = 0; i < ops.count; i++) {
            const bool loss = g_str_has_prefix(ops.op[i].name, "loss");
            addressed += loss && ops.op[i].kind == COST_OP_MEMORY ? ops.op[i].u.memory.addressed : 0;
            kernels += loss ? ops.op[i].kernels : 0;
        }
        g_assert_cmpfloat(addressed, ==, (back ? 1 : 3) * logits);
        g_assert_cmpint(kernels, ==, 6);
    }
}

/* The head's products under an odd vocabulary: what they write or read has rows of an odd count, of a multiple of 4, and of
 * 8, where nothing counts, nor where the software or its compiler pads. */
static void odd_rows(void)
{
    static const struct {
        int vocab, tensor, align;
        SpecVocabRows rows;
        bool compiled;
    } cases[] = {{50257, 1, 1, SPEC_VOCAB_COMPILER_PADS, false},
                 {50257, 2, 1, SPEC_VOCAB_ODD, false},
                 {50260, 1, 4, SPEC_VOCAB_ODD, false},
                 {50304, 1, 0, SPEC_VOCAB_ODD, false},
                 {50257, 1, 0, SPEC_VOCAB_PADDED, false},
                 {50257, 1, 0, SPEC_VOCAB_COMPILER_PADS, true},
                 {50257, 1, 1, SPEC_VOCAB_ODD, true}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec spec = fixture_spec(cases[i].tensor, false);
        spec.model.vocab = cases[i].vocab;
        spec.execution.compiled = cases[i].compiled;
        spec.execution.framework.kernels.vocab_rows = cases[i].rows;
        CostShape shape;
        cost_shape_init(&shape, &spec);
        for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
            CostOps ops = {.count = 0};
            cost_ops_head(&shape, (CostPass)pass, &ops);
            int products = 0;
            for (int k = 0; k < ops.count; k++)
                if (ops.op[k].kind == COST_OP_GEMM) {
                    g_assert_cmpint(ops.op[k].u.gemm.align, ==, cases[i].align);
                    products++;
                }
            g_assert_cmpint(products, ==, 1);
        }
    }
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
    g_test_add_func("/loss/by-element", by_element);
    g_test_add_func("/loss/odd-rows", odd_rows);
    g_test_add_func("/loss/predicted", predicted);
    return g_test_run();
}
