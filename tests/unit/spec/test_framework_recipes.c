/* Recipes of frameworks: groups and the ungrouped keys of before, what software does unless told otherwise, old
 * names. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <glib/gstdio.h>

#include "base/file.h"
#include "report/report.h"
#include "spec/fields.h"
#include "spec/framework_keys.h"
#include "spec/load.h"
#include "spec/resolve.h"

static bool load(const char *cluster, const char *zero, const char *execution, const char *const *sets,
                 Spec *ret_spec, SpecSource *ret_source, GError **error)
{
    g_autofree char *text =
        g_strdup_printf("{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"%s\",\"nodes\":1},\"training\":{"
                        "\"sequence_length\":"
                        "4096,\"global_batch\":64},\"parallel\":{\"zero\":%s},\"execution\":%s}",
                        cluster, zero, execution);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", error);
    g_assert_nonnull(doc);
    const bool ok = spec_load_json(orr_json_root(doc), "test", sets, true, ret_spec, ret_source, error);
    orr_json_free(doc);
    return ok;
}

static void loaded(const char *cluster, const char *zero, const char *execution, const char *set,
                   Spec *ret_spec)
{
    const char *sets[] = {set, NULL};
    GError *error = NULL;
    load(cluster, zero, execution, sets, ret_spec, NULL, &error);
    g_assert_no_error(error);
}

static void test_defaults(void)
{
    const unsigned both = SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER;
    static const struct {
        const char *framework, *cluster, *zero;
        unsigned overlap;
        SpecAttention attention;
        int compiled;
    } cases[] = {
        {"torchtitan", "dgx-b200", "3", SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER,
         SPEC_ATTENTION_CUDNN, 1},
        {"torchtitan", "dgx-h100", "3", SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER,
         SPEC_ATTENTION_FLASH2, 1},
        {"pytorch-fsdp2", "dgx-b200", "3", SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER,
         SPEC_ATTENTION_CUDNN, 0},
        {"pytorch-fsdp2-2025", "dgx-h100", "3", SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER,
         SPEC_ATTENTION_FLASH2, 0},
        {"megatron-core", "dgx-h100", "1", SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER,
         SPEC_ATTENTION_CUDNN, 0},
        {"megatron-lm", "dgx-h100", "1", 0, SPEC_ATTENTION_CUDNN, 0},
        {"deepspeed", "dgx-a100-80gb", "2", 0, SPEC_ATTENTION_FLASH2, 0},
        {"deepspeed", "dgx-a100-80gb", "3", SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER,
         SPEC_ATTENTION_FLASH2, 0},
        {"pytorch-ddp", "dgx-a100-80gb", "0", SPEC_OVERLAP_GRAD_REDUCE, SPEC_ATTENTION_FLASH2, 0},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec spec;
        g_autofree char *named = g_strdup_printf("{\"framework\":\"%s\"}", cases[i].framework);
        loaded(cases[i].cluster, cases[i].zero, named, NULL, &spec);
        g_test_message("%s on %s, ZeRO %s", cases[i].framework, cases[i].cluster, cases[i].zero);
        g_assert_cmpuint(spec.execution.overlap, ==, cases[i].overlap);
        g_assert_cmpint(spec.execution.compiled, ==, cases[i].compiled);
        if (strcmp(cases[i].framework, "deepspeed") != 0)
            g_assert_cmpint(spec.execution.attention, ==, cases[i].attention);
        /* What a scenario says goes before. */
        loaded(cases[i].cluster, cases[i].zero, named, "execution.overlap=[]", &spec);
        g_assert_cmpuint(spec.execution.overlap & both, ==, 0);
    }
}

/* Unsloth's 8-bit AdamW, and inputs of all layers but three on the host, unless a scenario says otherwise. */
static void test_unsloth(void)
{
    Spec spec;
    loaded("dgx-h100", "0", "{\"framework\":\"unsloth\"}", NULL, &spec);
    g_assert_cmpint(spec.training.optimizer, ==, SPEC_OPTIMIZER_ADAM8BIT);
    g_assert_cmpint(spec.training.recompute.mode, ==, SPEC_RECOMPUTE_FULL);
    g_assert_cmpint(spec.offload.activation_layers, ==, spec.model.layers - 3);
    g_assert_cmpint(spec.execution.attention, ==, SPEC_ATTENTION_FLASH2);
    loaded("dgx-h100", "0", "{\"framework\":\"unsloth\"}", "model.layers=30", &spec);
    g_assert_cmpint(spec.offload.activation_layers, ==, 30);
    loaded("dgx-h100", "0", "{\"framework\":\"unsloth\"}", "offload=none", &spec);
    g_assert_false(spec_offloads(&spec.offload));
    loaded("dgx-h100", "0", "{\"framework\":\"unsloth\"}", "training.optimizer=adam", &spec);
    g_assert_cmpint(spec.training.optimizer, ==, SPEC_OPTIMIZER_ADAM);
}

static void test_compiled(void)
{
    static const struct {
        const char *framework, *set;
        int compiled;
    } cases[] = {{"pytorch-fsdp2", "execution.compiled=auto", 1},
                 {"megatron-core", "execution.compiled=auto", 0},
                 {"torchtitan", "execution.compiled=false", 0},
                 {"pytorch-fsdp2", "execution.compiled=true", 1}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        Spec spec;
        g_autofree char *named = g_strdup_printf("{\"framework\":\"%s\"}", cases[i].framework);
        loaded("dgx-h100", "1", named, cases[i].set, &spec);
        g_assert_cmpint(spec.execution.compiled, ==, cases[i].compiled);
    }
}

/* An ungrouped key means what its grouped one means, wherever it is written; of two --set the later one holds. */
static void test_ungrouped(void)
{
    static const char *const FLAT =
        "{\"framework\":{\"preset\":\"nanotron\",\"kernel_host_s\":1e-3,\"loss\":\"fused\"}}";
    static const char *const GROUPED =
        "{\"framework\":{\"preset\":\"nanotron\",\"host\":{\"kernel_host_s\":1e-3},"
        "\"loss\":{\"kernel\":\"fused\"}}}";
    Spec flat, grouped;
    loaded("dgx-h100", "1", FLAT, NULL, &flat);
    loaded("dgx-h100", "1", GROUPED, NULL, &grouped);
    g_assert_true(memcmp(&flat.execution.framework, &grouped.execution.framework, sizeof(SpecFramework)) ==
                  0);
    loaded("dgx-h100", "1", FLAT, "execution.framework.host.kernel_host_s=2e-3", &flat);
    g_assert_cmpfloat(flat.execution.framework.host.kernel_host_s, ==, 2e-3);
    loaded("dgx-h100", "1", GROUPED, "execution.framework.host.kernel_host_s=3e-3", &flat);
    g_assert_cmpfloat(flat.execution.framework.host.kernel_host_s, ==, 3e-3);
    GError *error = NULL;
    g_assert_false(
        load("dgx-h100", "1",
             "{\"framework\":{\"preset\":\"nanotron\",\"kernel_host_s\":1,\"host\":{\"kernel_host_s\":2}}}",
             NULL, &flat, NULL, &error));
    g_assert_nonnull(
        strstr(error->message, "\"kernel_host_s\" is \"host.kernel_host_s\" today, and both are given"));
    g_clear_error(&error);
}

static guint told_of(const SpecSource *source, const char *key)
{
    guint times = 0;
    for (guint i = 0; i < source->notes->len; i++)
        times += strstr(g_ptr_array_index(source->notes, i), key) != NULL;
    return times;
}

/* A key that recipes have no more: read wherever it is written, noted once, and without effect. */
static void test_deleted(void)
{
    const char *const executions[] = {
        "{\"framework\":{\"preset\":\"torchtitan\",\"compiled_kernel_frac\":0.3}}",
        "{\"framework\":{\"preset\":\"torchtitan\",\"kernels\":{\"compiled_kernel_frac\":0.3}}}",
        "{\"framework\":\"torchtitan\"}", "{\"framework\":\"torchtitan\"}"};
    const char *const sets[][3] = {{NULL},
                                   {NULL},
                                   {"execution.framework.compiled_kernel_frac=0.3", NULL},
                                   {"execution.framework.kernels.compiled_kernel_frac=0.3",
                                    "execution.framework.host.kernel_host_s=1e-3", NULL}};
    Spec plain, spec;
    loaded("dgx-h100", "1", "{\"framework\":\"torchtitan\"}", NULL, &plain);
    for (guint i = 0; i < G_N_ELEMENTS(executions); i++) {
        SpecSource source;
        GError *error = NULL;
        g_assert_true(load("dgx-h100", "1", executions[i], sets[i], &spec, &source, &error));
        g_assert_cmpuint(told_of(&source, "kernels.compiled_kernel_frac is not a key"), ==, 1);
        if (i < 3)
            g_assert_true(
                memcmp(&spec.execution.framework, &plain.execution.framework, sizeof(SpecFramework)) == 0);
        else
            g_assert_cmpfloat(spec.execution.framework.host.kernel_host_s, ==, 1e-3);
        spec_source_clear(&source);
    }
}

/* Every key of every group has one ungrouped form, and no two groups share one. */
static void test_keys(void)
{
    g_autoptr(GHashTable) seen = g_hash_table_new(g_str_hash, g_str_equal);
    int keys = 0;
    for (int i = 0; i < spec_table_framework.count; i++) {
        const SpecField *field = &spec_table_framework.fields[i];
        const SpecTable *group = field->type == SPEC_TYPE_OBJECT ? field->table : NULL;
        for (int k = 0; group != NULL && k < group->count; k++, keys++) {
            const char *key = group->fields[k].key;
            g_assert_true(g_hash_table_add(seen, (gpointer)key) || strcmp(key, "kernel") == 0);
            g_autofree char *want = g_strconcat(spec_table_framework.fields[i].key, ".", key, NULL);
            g_autofree char *got = spec_framework_grouped_key(key);
            g_assert_cmpstr(got, ==, want);
        }
    }
    g_assert_cmpint(keys, >, 100);
}

static void test_old_names(void)
{
    static const char *const NAMES[][2] = {{"pytorch-fsdp", "llm-foundry"},
                                           {"pytorch-fsdp-2023", "llm-foundry-2023"},
                                           {"nemo-megatron-2023", "nemo-megatron"},
                                           {"nemo-megatron-2023-2022", "nemo-megatron-2022"}};
    for (size_t i = 0; i < G_N_ELEMENTS(NAMES); i++) {
        Spec spec;
        SpecSource source;
        GError *error = NULL;
        g_autofree char *named = g_strdup_printf("{\"framework\":\"%s\"}", NAMES[i][0]);
        load("dgx-h100", "1", named, NULL, &spec, &source, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(spec.execution.framework.name, ==, NAMES[i][1]);
        bool told = false;
        for (guint n = 0; n < source.defaulted->len; n++)
            told |= strstr(g_ptr_array_index(source.defaulted, n), "is its old name") != NULL;
        g_assert_true(told);
        spec_source_clear(&source);
    }
}

/* The entries of `from` but one, as links in `to`. */
static void link_entries(const char *from, const char *to, const char *but)
{
    GDir *dir = g_dir_open(from, 0, NULL);
    const char *name;
    g_assert_nonnull(dir);
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *old = g_build_filename(from, name, NULL), *new = g_build_filename(to, name, NULL);
        if (strcmp(name, but) != 0)
            g_assert_cmpint(symlink(old, new), ==, 0);
    }
    g_dir_close(dir);
}

static void remove_entries(const char *folder)
{
    GDir *dir = g_dir_open(folder, 0, NULL);
    const char *name;
    while ((name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        g_remove(path);
    }
    g_dir_close(dir);
    g_rmdir(folder);
}

/* The recipe drill of docs/ARCHITECTURE.md: one file and nothing else, and its name is listed, loads and runs. */
static void test_new_recipe(void)
{
    static const char *const RECIPE = "{\"schema\":1,\"name\":\"a-new-trainer\",\"source\":\"made up for a "
                                      "test\",\"preset\":\"torchtitan\","
                                      "\"host\":{\"step_overhead_s\":0.5}}";
    GError *error = NULL;
    g_autofree char *real = orr_scenarios_dir(&error), *all = g_dir_make_tmp("orrery-XXXXXX", &error);
    g_assert_no_error(error);
    g_autofree char *theirs = g_build_filename(real, "frameworks", NULL);
    g_autofree char *ours = g_build_filename(all, "frameworks", NULL);
    g_autofree char *file = g_build_filename(ours, "a-new-trainer.json", NULL);
    g_assert_cmpint(g_mkdir(ours, 0700), ==, 0);
    link_entries(real, all, "frameworks");
    link_entries(theirs, ours, "");
    g_assert_true(g_file_set_contents(file, RECIPE, -1, NULL));
    g_setenv("ORRERY_SCENARIOS", all, TRUE);

    GPtrArray *names = spec_preset_names("frameworks", &error);
    g_assert_no_error(error);
    g_assert_true(g_ptr_array_find_with_equal_func(names, "a-new-trainer", g_str_equal, NULL));
    g_ptr_array_unref(names);
    OrrArena *arena = orr_arena_new();
    const ReportOptions options = {0};
    int64_t step_ps[2];
    for (int i = 0; i < 2; i++) {
        Spec *spec = g_new0(Spec, 1);
        Report report;
        loaded("dgx-h100", "3",
               i == 0 ? "{\"framework\":\"torchtitan\"}" : "{\"framework\":\"a-new-trainer\"}", NULL, spec);
        report_run(spec, NULL, &options, arena, &report, &error);
        g_assert_no_error(error);
        step_ps[i] = report.step_ps;
        g_free(spec);
    }
    g_assert_cmpint(step_ps[1], >, step_ps[0] + INT64_C(300000000000));
    orr_arena_free(arena);
    g_setenv("ORRERY_SCENARIOS", real, TRUE);
    remove_entries(ours);
    remove_entries(all);
}

/* XLA on a TPU adds biases in its own products and reduces by itself; on a GPU products are a library's. */
static void test_xla(void)
{
    static const char *const names[] = {"paxml", "maxtext", "easylm", "levanter", "jax", "torch-xla"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *execution = g_strdup_printf("{\"framework\":\"%s\"}", names[i]);
        for (int tpu = 0; tpu < 2; tpu++) {
            Spec *spec = g_new0(Spec, 1);
            loaded(tpu ? "tpu-v4-pod" : "dgx-h100", "3", execution, NULL, spec);
            const SpecFramework *framework = &spec->execution.framework;
            g_assert_true((framework->data_parallel.reductions == SPEC_REDUCTIONS_HOLD_QUEUE) == (tpu != 0));
            g_assert_true((framework->kernels.bias == SPEC_BIAS_QKV_APART) == (tpu == 0));
            g_assert_true(spec->execution.compiled);
            g_free(spec);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/recipes/defaults", test_defaults);
    g_test_add_func("/recipes/compiled", test_compiled);
    g_test_add_func("/recipes/unsloth", test_unsloth);
    g_test_add_func("/recipes/ungrouped", test_ungrouped);
    g_test_add_func("/recipes/keys", test_keys);
    g_test_add_func("/recipes/deleted", test_deleted);
    g_test_add_func("/recipes/old-names", test_old_names);
    g_test_add_func("/recipes/xla", test_xla);
    g_test_add_func("/recipes/new-recipe", test_new_recipe);
    return g_test_run();
}
