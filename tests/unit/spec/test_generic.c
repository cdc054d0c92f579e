/* Profile generic: what its recipe for shared models says is what most programs of the class do, whichever is left out;
 * and which facts of a scenario ask for it. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "spec/fields.h"
#include "spec/load.h"
#include "spec/recipe_facts.h"

static void loaded(const char *framework, const char *set, Spec *ret_spec)
{
    GError *error = NULL;
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":1},\"training\":{"
        "\"sequence_length\":4096,\"global_batch\":64},\"parallel\":{\"tensor\":2,\"zero\":1},"
        "\"execution\":{\"framework\":\"%s\"}}",
        framework);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", &error);
    const char *sets[] = {set, NULL};
    spec_load_json(orr_json_root(doc), "test", sets, true, ret_spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static const SpecField *field_of(const SpecTable *table, const char *key)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return &table->fields[i];
    g_error("no field %s", key);
}

static double value_of(const SpecFramework *framework, const SpecField *group, const SpecField *field)
{
    const char *at = (const char *)framework + group->offset + field->offset;
    switch (field->type) {
    case SPEC_TYPE_BOOL:
        return *(const bool *)(const void *)at ? 1 : 0;
    case SPEC_TYPE_DOUBLE:
        return *(const double *)(const void *)at;
    default:
        g_assert_true(field->type == SPEC_TYPE_INT || field->type == SPEC_TYPE_WORD);
        return *(const int *)(const void *)at;
    }
}

/* Of the profile's recipes the first that asks for this fact. */
static const OrrJson *recipe_of(const OrrJson *profile, const char *fact)
{
    for (const OrrJson *recipe = orr_json_first(orr_json_member(profile, "recipes")); recipe != NULL;
         recipe = orr_json_next(recipe))
        if (strcmp(orr_json_text(orr_json_first(orr_json_member(recipe, "facts"))), fact) == 0)
            return recipe;
    g_error("no recipe for %s", fact);
}

static void test_most_of_the_class(void)
{
    static const char *const class[] = {"megatron-lm", "megatron-deepspeed", "nanotron", "meta-llama3",
                                        "megatron-llama"};
    enum { COUNT = G_N_ELEMENTS(class) };
    g_autofree Spec *spec = g_new0(Spec, COUNT + 1);
    for (int i = 0; i < COUNT; i++)
        loaded(class[i], NULL, &spec[i]);
    loaded("generic", NULL, &spec[COUNT]);
    g_autofree char *path =
        g_build_filename(g_getenv("ORRERY_SCENARIOS"), "frameworks", "generic.json", NULL);
    OrrJsonDoc *profile = orr_json_read_file(path, NULL);
    const OrrJson *recipe = recipe_of(orr_json_root(profile), "shared-model");
    const OrrJson *groups =
        orr_json_member(orr_json_member(orr_json_member(recipe, "scenario"), "execution"), "framework");
    int keys = 0;
    for (const OrrJson *group = orr_json_first(groups); group != NULL; group = orr_json_next(group))
        for (const OrrJson *key = orr_json_first(group); key != NULL; key = orr_json_next(key)) {
            const SpecField *in = field_of(&spec_table_framework, orr_json_key(group)),
                            *field = field_of(in->table, orr_json_key(key));
            const double said = value_of(&spec[COUNT].execution.framework, in, field);
            int same = 0;
            for (int i = 0; i < COUNT; i++)
                same += fabs(value_of(&spec[i].execution.framework, in, field) - said) < 1e-12;
            g_test_message("%s.%s: %d of %d", orr_json_key(group), orr_json_key(key), same, COUNT);
            if (strcmp(orr_json_key(key), "bucket_bytes") != 0) /* a median */
                g_assert_cmpint(2 * (same - 1), >=, COUNT - 1);
            keys++;
        }
    g_assert_cmpint(keys, >, 20);
    orr_json_free(profile);
}

/* Who shards besides, and who shares nothing, is a plain loop. */
static void test_class_of_scenario(void)
{
    static const struct {
        const char *set;
        SpecLoss loss;
    } cases[] = {{NULL, SPEC_LOSS_VOCAB_PARALLEL},
                 {"parallel.zero=3", SPEC_LOSS_UNFUSED},
                 {"parallel.tensor=1", SPEC_LOSS_UNFUSED},
                 {"parallel.pipeline=2", SPEC_LOSS_VOCAB_PARALLEL},
                 {"execution.compiled=true", SPEC_LOSS_VOCAB_PARALLEL},
                 {"execution.framework.loss.kernel=\"fused\"", SPEC_LOSS_FUSED}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        loaded("generic", cases[i].set, spec);
        g_assert_cmpint(spec->execution.framework.loss.kernel, ==, cases[i].loss);
    }
}

/* Modules of transformers whatever loop stands around them, and 16 bits where states alone are shared. */
static void test_modules_and_engines(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    loaded("generic", "execution.framework_text=\"our trainer on Hugging Face models\"", spec);
    const SpecFramework *framework = &spec->execution.framework;
    g_assert_cmpint(framework->kernels.norm, ==, SPEC_NORM_KERNEL_EAGER);
    g_assert_cmpint(framework->loss.kernel, ==, SPEC_LOSS_UNFUSED);
    g_assert_cmpint(framework->data_parallel.gradient_reduce_dtype, ==,
                    SPEC_FP32); /* layers are shared too */
    loaded("generic", "parallel.tensor=1", spec);
    g_assert_cmpint(framework->kernels.norm, ==, SPEC_NORM_KERNEL_FUSED);
    g_assert_cmpint(framework->data_parallel.gradient_reduce_dtype, ==, SPEC_BF16);
    loaded("generic\",\"compiled\":true,\"attention\":\"flash2", "parallel={\"zero\":0}", spec);
    g_assert_cmpint(framework->loss.kernel, ==, SPEC_LOSS_COMPILED);
}

/* A run of a model by the software that a text names. */
#define NEMO(text, model)                                                                                    \
    "{\"execution\":{\"framework_text\":\"" text "\"},\"model\":{\"name\":\"" model "\"}}"

static void test_facts(void)
{
    static const struct {
        const char *fact, *scenario;
        bool holds;
    } cases[] = {
        {"shared-model", "{\"parallel\":{\"expert\":4}}", true},
        {"shared-model", "{\"parallel\":{\"context\":\"auto\"}}", true},
        {"shared-model", "{\"parallel\":{\"tensor\":2,\"zero\":3}}", false},
        {"shared-model", "{\"parallel\":{\"data\":8}}", false},
        {"shared-model", "{}", false},
        {"unfused-attention", "{\"execution\":{\"attention\":\"unfused\"}}", true},
        {"unfused-attention", "{\"execution\":{\"attention\":\"flash2\"}}", false},
        {"learned-positions", "{\"model\":{\"position\":\"learned\"}}", true},
        {"learned-positions", "{\"model\":{\"position\":\"rope\"}}", false},
        {"8-bit", "{\"training\":{\"precision\":\"mxfp8\"}}", true},
        {"8-bit", "{\"training\":{\"precision\":\"bf16\"}}", false},
        {"capacity-factor", "{\"model\":{\"moe\":{\"capacity_factor\":1.25}}}", true},
        {"capacity-factor", "{\"model\":{\"moe\":{\"experts\":8}}}", false},
        {"not-compiled", "{\"execution\":{\"compiled\":true}}", false},
        {"not-compiled", "{\"execution\":{}}", true},
        {"compiled-whole", "{\"execution\":{\"compiled\":true}}", true},
        {"compiled-whole", "{\"execution\":{\"compiled\":\"auto\"}}", false},
        {"compiled-whole", "{\"execution\":{\"compiled\":true},\"parallel\":{\"zero\":0,\"tensor\":2}}",
         false},
        {"compiled-whole", "{\"execution\":{\"compiled\":true},\"parallel\":{\"zero\":3}}", false},
        {"sharded-optimizer", "{\"parallel\":{\"zero\":1}}", true},
        {"sharded-optimizer", "{\"parallel\":{\"zero\":2}}", false},
        {"sharded-optimizer", "{\"parallel\":{\"zero\":\"auto\"}}", false},
        {"hugging-face", "{\"execution\":{\"framework_text\":\"Hugging Face Trainer\"}}", true},
        {"hugging-face", "{\"execution\":{\"framework_text\":\"a loop on LlamaForCausalLM\"}}", true},
        {"hugging-face", "{\"execution\":{\"framework_text\":\"Transformer Engine\"}}", false},
        {"hugging-face", "{\"execution\":{}}", false},
        {"hugging-face",
         "{\"execution\":{\"framework_text\":\"torchax, Hugging Face\"},"
         "\"cluster\":{\"accelerator\":{\"generation\":\"tpu\"}}}",
         false},
        {"hugging-face",
         "{\"execution\":{\"framework_text\":\"Hugging Face\"},"
         "\"cluster\":{\"accelerator\":{\"generation\":{\"like\":\"gaudi\"}}}}",
         false},
        {"hugging-face",
         "{\"execution\":{\"framework_text\":\"Hugging Face\"},"
         "\"cluster\":{\"accelerator\":{\"generation\":\"cdna\"}}}",
         true},
        {"nemo-unfused", NEMO("NeMo 2.3.2, mock data", "qwen2.5-7b"), true},
        {"nemo-unfused", NEMO("NeMo 25.04 (Megatron-Core)", "ours"), true},
        {"nemo-unfused", NEMO("NeMo 2", "gemma-7b"), true},
        {"nemo-unfused", NEMO("NeMo 2", "llama3.1-8b"), false},
        {"nemo-unfused", NEMO("Megatron-Bridge / NeMo 25.09", "qwen3-30b-a3b"), false},
        {"nemo-unfused", NEMO("NeMo 26.02", "qwen3-30b-a3b"), false},
        {"nemo-unfused", NEMO("NeMo Megatron 2022", "ours"), false},
        {"nemo-unfused", "{\"model\":{\"name\":\"qwen2.5-7b\"}}", false},
        {"adapter-task", "{\"training\":{\"task\":\"qlora\"}}", true},
        {"adapter-task", "{\"training\":{\"task\":\"dpo\",\"adapter\":{}}}", false},
        {"whole-model-task", "{\"training\":{\"task\":\"sft\"}}", true},
        {"whole-model-task", "{\"training\":{\"task\":\"lora\",\"adapter\":{}}}", false},
        {"unsharded", "{\"parallel\":{\"zero\":0}}", true},
        {"unsharded", "{\"parallel\":{\"zero\":3}}", false},
        {"unsharded", "{\"parallel\":{\"zero\":\"auto\"}}", false},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrJsonDoc *doc = orr_json_parse(cases[i].scenario, strlen(cases[i].scenario), "test", NULL);
        g_test_message("%s of %s", cases[i].fact, cases[i].scenario);
        g_assert_cmpint(spec_recipe_fact_holds(cases[i].fact, orr_json_root(doc)), ==, cases[i].holds);
        orr_json_free(doc);
    }
    g_assert_false(spec_recipe_fact_is("megatron"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/generic/most-of-the-class", test_most_of_the_class);
    g_test_add_func("/spec/generic/class-of-scenario", test_class_of_scenario);
    g_test_add_func("/spec/generic/facts", test_facts);
    g_test_add_func("/spec/generic/modules-and-engines", test_modules_and_engines);
    return g_test_run();
}
