/* unit/costmodel/test_scalar_head.c - models that score: a vector in place of the LM head, no logits, no loss. */
#include <string.h>

#include "costmodel/ops.h"
#include "costmodel/params.h"
#include "report/report.h"
#include "spec/load.h"

static Spec *load(const char *set, const char *more, GError **error)
{
    static const char TEXT[] = "{\"model\":\"llama3.2-1b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
                               "\"training\":{\"sequence_length\":2048,"
                               "\"global_batch\":16,\"micro_batch\":2},\"parallel\":{\"data\":8},"
                               "\"execution\":{\"framework\":\"pytorch-fsdp2\"}}";
    const char *const sets[] = {set, more, NULL};
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "test", NULL);
    const bool ok = spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, error);
    orr_json_free(doc);
    if (!ok)
        g_clear_pointer(&spec, g_free);
    return spec;
}

static Report ask(const Spec *spec, OrrArena *arena)
{
    static const ReportOptions checked = {.check = true};
    GError *error = NULL;
    Report report;
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

/* Llama 3.2 1B, tied: 1,235,814,400 parameters, and 2,048 of the head. Faster and smaller than with logits. */
static void test_reward(void)
{
    g_autofree Spec *plain = load("training.task=sft", NULL, NULL),
                    *reward = load("training.task=reward", NULL, NULL);
    OrrArena *arena = orr_arena_new();
    const Report logits = ask(plain, arena), score = ask(reward, arena);
    g_assert_true(reward->model.scalar_head);
    g_assert_cmpfloat(logits.parameters, ==, 1235814400);
    g_assert_cmpfloat(score.parameters, ==, 1235814400 + 2048);
    g_assert_cmpint(score.step_ps, <, logits.step_ps);
    g_assert_cmpfloat(score.peak_bytes, <, logits.peak_bytes);
    orr_arena_free(arena);
}

/* Norm and one product of one column; what is kept is their inputs. */
static void test_ops(void)
{
    g_autofree Spec *spec = load("model.scalar_head=true", NULL, NULL);
    CostShape shape;
    g_autofree CostOps *ops = g_new0(CostOps, 1);
    cost_shape_init(&shape, spec);
    cost_ops_head(&shape, COST_FORWARD, ops);
    int products = 0;
    for (int i = 0; i < ops->count; i++) {
        if (ops->op[i].kind == COST_OP_GEMM) {
            products++;
            g_assert_cmpfloat(ops->op[i].u.gemm.n, ==, 1);
            g_assert_cmpfloat(ops->op[i].u.gemm.k, ==, 2048);
            g_assert_cmpfloat(ops->op[i].u.gemm.m, ==, 2 * 2048);
        }
        g_assert_cmpstr(ops->op[i].name, !=, "loss");
    }
    g_assert_cmpint(products, ==, 1);
    double kept = 0;
    for (int i = 0; i < ops->kept_count; i++)
        kept += ops->kept[i].bytes;
    g_assert_cmpfloat(kept, <=, 2 * 2.0 * 2 * 2048 * 2048);
}

static void test_refused(void)
{
    g_autoptr(GError) error = NULL;
    g_assert_null(load("training.task=reward", "training.micro_batch=1", &error));
    g_assert_nonnull(strstr(error->message, "an odd number of sequences"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/scalar-head/reward", test_reward);
    g_test_add_func("/scalar-head/ops", test_ops);
    g_test_add_func("/scalar-head/refused", test_refused);
    return g_test_run();
}
