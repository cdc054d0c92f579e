/* tests/unit/costmodel/test_eight_bit.c - fused attention and the LM head in 8 bits beside an 8-bit precision. */
#include <string.h>

#include "base/json.h"
#include "costmodel/ops.h"
#include "spec/load.h"

static bool load(const char *precision, const char *more, Spec *ret_spec, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":8,\"hidden\":4096,\"heads\":32,\"ffn_hidden\":16384,\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"dgx-b200\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":32,\"precision\":\"%s\"%s},"
        "\"execution\":{\"attention\":\"cudnn\"}}",
        precision, more);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok =
        doc != NULL && spec_load_json(orr_json_root(doc), "here", NULL, false, ret_spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

typedef void (*OpsOf)(const CostShape *shape, CostPass pass, CostOps *ops);

static void layer_ops(const CostShape *shape, CostPass pass, CostOps *ops)
{
    cost_ops_layer(shape, 0, pass, ops);
}

/* Ops of one pass, and bytes that casts move. */
static CostOps ops_of(const char *more, OpsOf fill, CostPass pass, double *ret_cast_bytes)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    GError *error = NULL;
    load("mxfp8", more, spec, &error);
    g_assert_no_error(error);
    CostShape shape;
    CostOps ops = {0};
    cost_shape_init(&shape, spec);
    fill(&shape, pass, &ops);
    *ret_cast_bytes = 0;
    for (int i = 0; i < ops.count; i++)
        if (strcmp(ops.op[i].name, "cast") == 0)
            *ret_cast_bytes += cost_moved_bytes(&ops.op[i]);
    return ops;
}

static const CostOp *named(const CostOps *ops, const char *name)
{
    for (int i = 0; i < ops->count; i++)
        if (strcmp(ops->op[i].name, name) == 0)
            return &ops->op[i];
    return NULL;
}

#define CAST_BYTES (2 + 2 * (1 + 1.0 / 32)) /* of an element: read, rows and columns written */

static void attention(void)
{
    const double inputs = 4096.0 * 3 * 4096, gradient = 4096.0 * 4096;
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_INPUT; pass++) {
        double wide = 0, narrow = 0;
        const CostOps plain = ops_of("", layer_ops, (CostPass)pass, &wide);
        const CostOps eight = ops_of(",\"attention_8bit\":true", layer_ops, (CostPass)pass, &narrow);
        g_assert_cmpint(named(&plain, "attention")->u.attention.dtype, ==, SPEC_BF16);
        g_assert_cmpint(named(&eight, "attention")->u.attention.dtype, ==, SPEC_FP8);
        g_assert_cmpfloat_with_epsilon(narrow - wide, (pass == COST_FORWARD ? inputs : gradient) * CAST_BYTES,
                                       1);
    }
}

/* One scale a tensor, unless the precision is mxfp8 and the software attends in it. */
static void attention_scales(void)
{
    for (int mx = 0; mx < 2; mx++)
        for (int has = 0; has < 2; has++) {
            g_autofree Spec *spec = g_new(Spec, 1);
            g_autoptr(GError) error = NULL;
            load(mx == 1 ? "mxfp8" : "fp8-cs", ",\"attention_8bit\":true", spec, &error);
            g_assert_no_error(error);
            spec->execution.framework.kernels.transformer_engine =
                has == 1 ? SPEC_TE_SINCE_2_16 : SPEC_TE_BEFORE_2_16;
            CostShape shape;
            CostOps ops = {0};
            cost_shape_init(&shape, spec);
            layer_ops(&shape, COST_FORWARD, &ops);
            g_assert_cmpint(named(&ops, "attention")->u.attention.block_scaled, ==, mx == 1 && has == 1);
        }
}

static void head(void)
{
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_WEIGHT; pass++) {
        double wide = 0, narrow = 0;
        const CostOps plain = ops_of("", cost_ops_head, (CostPass)pass, &wide);
        const CostOps eight = ops_of(",\"head_8bit\":true", cost_ops_head, (CostPass)pass, &narrow);
        g_assert_cmpint(named(&plain, "lm head")->u.gemm.dtype, ==, SPEC_BF16);
        g_assert_cmpint(named(&eight, "lm head")->u.gemm.dtype, ==, SPEC_FP8);
        const double elements = pass == COST_FORWARD ? 4096.0 * 4096 : 4096.0 * 32000;
        g_assert_cmpfloat_with_epsilon(narrow - wide,
                                       pass == COST_BACKWARD_WEIGHT ? 0 : elements * CAST_BYTES, 1);
    }
}

/* A gated MLP keeps half of its activation's input, and casts it once in each pass that reads it. */
static void activation_input(void)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    g_autoptr(GError) error = NULL;
    g_assert_true(load("mxfp8", "", spec, NULL));
    spec->model.gated_mlp = spec->execution.framework.kernels.fused_swiglu = true;
    for (int pass = COST_FORWARD; pass <= COST_BACKWARD_WEIGHT; pass++) {
        CostOps ops[2] = {0};
        double kept[2] = {0};
        for (int narrow = 0; narrow < 2; narrow++) {
            CostShape shape;
            spec->training.activation_input_8bit = narrow == 1;
            cost_shape_init(&shape, spec);
            layer_ops(&shape, (CostPass)pass, &ops[narrow]);
            for (int i = 0; i < ops[narrow].kept_count; i++)
                kept[narrow] += ops[narrow].kept[i].bytes;
        }
        const bool reads = pass != COST_BACKWARD_WEIGHT;
        const double elements = 2.0 * 4096 * 16384;
        g_assert_cmpint(ops[1].count, ==, ops[0].count + (reads ? 1 : 0));
        g_assert_cmpfloat_with_epsilon(kept[0] - kept[1], pass == COST_FORWARD ? elements : 0, 1);
        g_assert_null(named(&ops[0], "activation input cast"));
        if (reads)
            g_assert_cmpfloat_with_epsilon(cost_moved_bytes(named(&ops[1], "activation input cast")),
                                           3 * elements, 1);
    }
    g_assert_false(load("bf16", ",\"activation_input_8bit\":true", spec, &error)); /* not gated */
    g_assert_nonnull(strstr(error->message, "activation_input_8bit"));
    g_assert_nonnull(strstr(error->message, "gated_mlp"));
}

static void refused(void)
{
    static const char *const keys[] = {"attention_8bit", "head_8bit"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        g_autofree Spec *spec = g_new(Spec, 1);
        g_autofree char *more = g_strdup_printf(",\"%s\":true", keys[i]);
        g_autoptr(GError) error = NULL;
        g_assert_false(load("bf16", more, spec, &error));
        g_assert_nonnull(strstr(error->message, keys[i]));
        g_assert_nonnull(strstr(error->message, "such as mxfp8"));
        g_assert_true(load("nvfp4", more, spec, NULL));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/eight-bit/attention", attention);
    g_test_add_func("/eight-bit/attention-scales", attention_scales);
    g_test_add_func("/eight-bit/head", head);
    g_test_add_func("/eight-bit/activation-input", activation_input);
    g_test_add_func("/eight-bit/refused", refused);
    return g_test_run();
}
