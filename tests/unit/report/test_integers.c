/* tests/unit/report/test_integers.c - products of 8- and 4-bit integers: casts, what is kept, peaks, time, and who
 * has none. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "report/report.h"
#include "tests/unit/layer_fixture.h"

static bool load(const char *cluster, const char *precision, Spec *ret_spec, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":8,\"hidden\":8192,\"heads\":64,\"ffn_hidden\":32768,\"vocab\":32000},"
        "\"cluster\":{\"preset\":\"%s\",\"nodes\":1},"
        "\"training\":{\"sequence_length\":4096,\"global_batch\":32,\"micro_batch\":1,\"precision\":\"%s\"},"
        "\"parallel\":{\"zero\":1},\"execution\":{\"framework\":\"megatron-core\",\"attention\":\"flash2\"}}",
        cluster, precision);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "here", error);
    const bool ok =
        doc != NULL && spec_load_json(orr_json_root(doc), "here", NULL, false, ret_spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

typedef struct Ran {
    double step_s, activations, states, mfu;
} Ran;

static Ran run(const char *cluster, const char *precision)
{
    const ReportOptions options = {.check = true};
    GError *error = NULL;
    g_autofree Spec *spec = g_new(Spec, 1);
    Report report;
    OrrArena *arena = orr_arena_new();
    load(cluster, precision, spec, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const ReportStage *stage = &report.stages[0];
    const Ran ran = {(double)report.step_ps * 1e-12, stage->activations_bytes,
                     stage->weights_bytes + stage->gradients_bytes + stage->optimizer_bytes, report.mfu};
    orr_arena_free(arena);
    return ran;
}

/* On A100s a step takes less in 8 bits and less again in 4, with the states of bf16; more of it is not product, so the
 * utilisation against the narrower peak falls. 8 bits keep what 16 do, 4 bits less. */
static void faster(void)
{
    const Ran wide = run("dgx-a100-80gb", "bf16"), eight = run("dgx-a100-80gb", "int8"),
              four = run("dgx-a100-80gb", "int4");
    g_assert_cmpfloat(eight.step_s, <, 0.9 * wide.step_s);
    g_assert_cmpfloat(four.step_s, <, 0.9 * eight.step_s);
    g_assert_cmpfloat(eight.step_s, >, 0.5 * wide.step_s);
    g_assert_cmpfloat(four.step_s, >, 0.25 * wide.step_s);
    g_assert_cmpfloat(four.mfu, <, eight.mfu);
    g_assert_cmpfloat(eight.mfu, <, wide.mfu);
    g_assert_cmpfloat(eight.states, ==, wide.states);
    g_assert_cmpfloat(four.states, ==, wide.states);
    g_assert_cmpfloat(eight.activations, ==, wide.activations);
    g_assert_cmpfloat(four.activations, <, 0.8 * wide.activations);
}

static double bytes_named(const CostOps *ops, const char *name)
{
    double bytes = 0;
    for (int i = 0; i < ops->count; i++)
        if (ops->op[i].kind == COST_OP_MEMORY && strcmp(ops->op[i].name, name) == 0)
            bytes += cost_moved_bytes(&ops->op[i]);
    return bytes;
}

/* A layer's casts: of four linears' inputs or output gradients, and of 12 h^2 weights in each of the two passes. */
static void casts(void)
{
    const double hidden = 8192, tokens = 4096, inputs = tokens * hidden * (1 + 1 + 1 + 4),
                 outputs = tokens * hidden * (3 + 1 + 4 + 1), weights = 12 * hidden * hidden;
    static const struct {
        const char *precision;
        double cast, weight_cast; /* bytes an element */
    } CASES[] = {{"int8", 3, 3}, {"int4", 9, 6.5}};
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        GError *error = NULL;
        g_autofree Spec *spec = g_new(Spec, 1);
        load("dgx-a100-80gb", CASES[i].precision, spec, &error);
        g_assert_no_error(error);
        const CostOps forward = fixture_layer_ops(spec, COST_FORWARD),
                      backward = fixture_layer_ops(spec, COST_BACKWARD_INPUT);
        g_assert_cmpfloat_with_epsilon(bytes_named(&forward, "cast") / (CASES[i].cast * inputs), 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(bytes_named(&backward, "cast") / (CASES[i].cast * outputs), 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(
            bytes_named(&forward, "weight cast") / (CASES[i].weight_cast * weights), 1, 1e-12);
        g_assert_cmpfloat_with_epsilon(
            bytes_named(&backward, "weight cast") / (CASES[i].weight_cast * weights), 1, 1e-12);
    }
}

/* Who has none of them says so, and what would work. */
static void refused(void)
{
    static const char *const CASES[][3] = {
        {"dgx-h100", "int4",
         "\"int4\" needs a dense int4 peak, which accelerator \"h100-sxm5-80gb\" has not"},
        {"dgx-1", "int8", "needs a dense int8 peak"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(CASES); i++) {
        GError *error = NULL;
        g_autofree Spec *spec = g_new(Spec, 1);
        g_assert_false(load(CASES[i][0], CASES[i][1], spec, &error));
        if (strstr(error->message, CASES[i][2]) == NULL)
            g_error("%s", error->message);
        g_assert_nonnull(strstr(error->message, "give one of"));
        g_clear_error(&error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/integers/faster", faster);
    g_test_add_func("/integers/casts", casts);
    g_test_add_func("/integers/refused", refused);
    return g_test_run();
}
