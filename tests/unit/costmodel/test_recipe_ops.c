/* tests/unit/costmodel/test_recipe_ops.c - a program that copies something once more is a recipe file and no C: the copy
 * stands in the list of kernels, and the step is longer by it. */
#include <stdlib.h>
#include <string.h>

#include <glib/gstdio.h>

#include "costmodel/memory_bound.h"
#include "costmodel/ops.h"
#include "report/report.h"
#include "spec/load.h"

#define COPY(more) "{\"after\":\"qkv\",\"pass\":\"backward-input\",\"source\":\"its code\"" more "}"

/* A recipe in a file of its own, whose list "ops" is as given (NULL: it has none); a scenario of 32 layers that names it. */
static bool load(const char *ops, Spec *ret_spec, GError **error)
{
    g_autofree char *folder = g_dir_make_tmp("orrery-recipe-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "next-program.json", NULL);
    g_autofree char *recipe =
        g_strdup_printf("{\"schema\":1,\"name\":\"next-program\",\"preset\":\"megatron-core\","
                        "\"source\":\"test\"%s%s}",
                        ops != NULL ? ",\"ops\":" : "", ops != NULL ? ops : "");
    g_assert_true(g_file_set_contents(path, recipe, -1, NULL));
    g_autofree char *text =
        g_strdup_printf("{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},"
                        "\"training\":{\"sequence_length\":4096,\"global_batch\":8},"
                        "\"execution\":{\"overlap\":[],\"framework\":\"%s\"}}",
                        path);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", error);
    g_assert_nonnull(doc);
    const bool ok = spec_load_json(orr_json_root(doc), "test", NULL, true, ret_spec, NULL, error);
    orr_json_free(doc);
    g_unlink(path);
    g_rmdir(folder);
    return ok;
}

static int64_t step_of(const Spec *spec)
{
    const ReportOptions options = {.check = true};
    Report report;
    GError *error = NULL;
    OrrArena *arena = orr_arena_new();
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const int64_t step = report.step_ps;
    orr_arena_free(arena);
    return step;
}

static void copies_without_c(void)
{
    Spec plain, none, copied;
    GError *error = NULL;
    load(NULL, &plain, &error);
    g_assert_no_error(error);
    load("[]", &none, &error);
    g_assert_no_error(error);
    load("[" COPY(",\"bytes_per_element\":9.3,\"kernels\":2") "]", &copied, &error);
    g_assert_no_error(error);
    CostShape shape;
    CostOps before = {.count = 0}, after = {.count = 0};
    cost_shape_init(&shape, &none);
    cost_ops_layer(&shape, 0, COST_BACKWARD_INPUT, &before);
    cost_shape_init(&shape, &copied);
    cost_ops_layer(&shape, 0, COST_BACKWARD_INPUT, &after);
    g_assert_cmpint(after.count, ==, before.count + 1);
    int at = 0;
    while (strcmp(after.op[at].name, "qkv") != 0)
        at++;
    g_assert_cmpstr(after.op[at + 1].name, ==, "copy");
    g_assert_cmpint(after.op[at + 1].kernels, ==, 2);
    const double bytes = 9.3 * 4096 * (32 + 2 * 8) * 128; /* gradients of queries, keys and values */
    g_assert_cmpfloat_with_epsilon(cost_moved_bytes(&after.op[at + 1]), bytes, 1);
    const int64_t step = step_of(&none);
    g_assert_cmpint(step_of(&plain), ==, step);
    const double each = 2 * (cost_memory_bound_s(&shape.accelerator, COST_MEMORY_ELEMENTWISE, bytes / 2) +
                             copied.execution.framework.host.kernel_gap_s);
    const double longer = (double)(step_of(&copied) - step) * 1e-12;
    g_assert_cmpfloat_with_epsilon(longer, 32 * each, 1e-9);
}

/* Of a collective and a kept tensor behind the copy, what they name is the op that it was. */
static void others_stay(void)
{
    Spec spec;
    GError *error = NULL;
    load("[{\"after\":\"qkv\",\"pass\":\"forward\",\"copies\":1,\"source\":\"its code\"}]", &spec, &error);
    g_assert_no_error(error);
    CostShape shape;
    CostOps with = {.count = 0}, without = {.count = 0};
    cost_shape_init(&shape, &spec);
    cost_ops_layer(&shape, 0, COST_FORWARD, &with);
    spec.execution.framework.ops.count = 0;
    cost_ops_layer(&shape, 0, COST_FORWARD, &without);
    g_assert_cmpint(with.kept_count, ==, without.kept_count);
    for (int i = 0; i < with.kept_count; i++) {
        const CostTensor *a = &with.kept[i], *b = &without.kept[i];
        g_assert_cmpstr(with.op[a->kept_by].name, ==, without.op[b->kept_by].name);
        g_assert_true((a->written_by == COST_OUTSIDE) == (b->written_by == COST_OUTSIDE));
        if (a->written_by != COST_OUTSIDE)
            g_assert_cmpstr(with.op[a->written_by].name, ==, without.op[b->written_by].name);
    }
}

static void refusals(void)
{
    static const char *const CASES[][2] = {
        {"[{\"after\":\"qvk\",\"pass\":\"forward\",\"copies\":1,\"source\":\"code\"}]", "qkv"},
        {"[{\"after\":\"qkv\",\"pass\":\"forward\",\"copies\":-1,\"source\":\"code\"}]", "copies"},
        {"[{\"after\":\"qkv\",\"pass\":\"forward\",\"bytes_per_element\":-2,\"source\":\"code\"}]",
         "bytes_per_element"},
        {"[{\"after\":\"qkv\",\"pass\":\"forward\",\"copies\":1}]", "source: missing"},
        {"[{\"after\":\"qkv\",\"pass\":\"forward\",\"copies\":1,\"source\":\"\"}]", "source: names nothing"},
        {"[{\"after\":\"qkv\",\"pass\":\"forward\",\"source\":\"code\"}]", "moves nothing"},
        {"[{\"after\":\"qkv\",\"pass\":\"forward\",\"copies\":1,\"source\":\"code\",\"copy\":1}]",
         "unknown key"},
        {"3", "is not a list"}};
    for (size_t i = 0; i < G_N_ELEMENTS(CASES); i++) {
        Spec spec;
        GError *error = NULL;
        g_assert_false(load(CASES[i][0], &spec, &error));
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, CASES[i][1]));
        g_clear_error(&error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recipe-ops/copies-without-c", copies_without_c);
    g_test_add_func("/recipe-ops/others-stay", others_stay);
    g_test_add_func("/recipe-ops/refusals", refusals);
    return g_test_run();
}
