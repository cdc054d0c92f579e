/* unit/exchange/test_import_peft.c - PEFT's adapter_config.json, and files that are known and hold no configuration. */
#include <string.h>

#include "exchange/exchange.h"

static const char CONFIG[] = "{\"peft_type\":\"LORA\",\"r\":64,\"lora_alpha\":16,\"lora_dropout\":0.05,"
                             "\"bias\":\"none\",\"use_dora\":%s,"
                             "\"target_modules\":[\"q_proj\",\"model.layers.0.mlp.down_proj\",\"lm_head\"]}";

static OrrJsonDoc *import(const char *text, const OrrJson *base, ExchangeLoss *loss, GError **error)
{
    return exchange_import(text, strlen(text), "adapter_config.json", -1, base, loss, error);
}

static void test_lora(void)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    g_autoptr(GString) text = g_string_new(CONFIG);
    g_string_replace(text, "%s", "true", 1);
    OrrJsonDoc *base = orr_json_parse("{\"training\":{\"global_batch\":16}}", 32, "base", &error);
    g_assert_no_error(error);
    OrrJsonDoc *doc = import(text->str, orr_json_root(base), &loss, &error);
    g_assert_no_error(error);
    const OrrJson *training = orr_json_member(orr_json_root(doc), "training"),
                  *adapter = orr_json_member(training, "adapter"),
                  *targets = orr_json_member(adapter, "targets");
    g_assert_cmpfloat(orr_json_number_of(training, "global_batch", 0), ==, 16);
    g_assert_cmpstr(orr_json_text_of(training, "task", ""), ==, "lora");
    g_assert_cmpfloat(orr_json_number_of(adapter, "rank", 0), ==, 64);
    g_assert_cmpfloat(orr_json_number_of(adapter, "alpha", 0), ==, 16);
    g_assert_cmpfloat(orr_json_number_of(adapter, "dropout_frac", 0), ==, 0.05);
    g_assert_cmpint(orr_json_count(targets), ==, 2);
    g_assert_cmpstr(orr_json_text(orr_json_next(orr_json_first(targets))), ==, "down_proj");
    g_assert_cmpuint(loss.changes->len, ==, 3); /* lm_head, DoRA, a single layer */
    orr_json_free(doc);
    orr_json_free(base);
}

/* Unsloth's models are stored in nf4, which their names say. */
static void test_stored_narrow(void)
{
    static const char *const names[] = {"unsloth/llama-3.2-3b-instruct-bnb-4bit",
                                        "unsloth/Llama-3.2-3B-Instruct"},
                             *const tasks[] = {"qlora", "lora"}, *const bases[] = {"nf4", ""};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        GError *error = NULL;
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        g_autofree char *text = g_strdup_printf("{\"peft_type\":\"LORA\",\"r\":8,\"base_model_name_or_path\":"
                                                "\"%s\",\"target_modules\":[\"q_proj\"]}",
                                                names[i]);
        OrrJsonDoc *doc = import(text, NULL, &loss, &error);
        g_assert_no_error(error);
        const OrrJson *training = orr_json_member(orr_json_root(doc), "training");
        g_assert_cmpstr(orr_json_text_of(orr_json_root(doc), "model", ""), ==, "llama3.2-3b");
        g_assert_cmpstr(orr_json_text_of(training, "task", ""), ==, tasks[i]);
        g_assert_cmpstr(orr_json_text_of(orr_json_member(training, "adapter"), "base_dtype", ""), ==,
                        bases[i]);
        orr_json_free(doc);
    }
}

static void test_others(void)
{
    static const char *const cases[][2] = {
        {"{\"peft_type\":\"IA3\",\"r\":8}", "LORA is"},
        {"{\"schemaVersion\":1,\"traceEvents\":[]}", "profiler's trace"},
        {"model:\n  _target_: nemo_automodel.NeMoAutoModelForCausalLM.from_pretrained\n", "NeMo AutoModel"},
        {"model: Qwen/Qwen3-4B\nmodel_class: llm\n", "LLaMA-Factory's v1"},
        {"compute_environment: LOCAL_MACHINE\n", "a launch of Accelerate"},
        {"model_name_or_path: m\nexport_dir: out\n", "trains nothing"},
        {"model_name_or_path: m\ninfer_backend: huggingface\n", "trains nothing"}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GError) error = NULL;
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        g_assert_null(import(cases[i][0], NULL, &loss, &error));
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_assert_true(g_str_has_prefix(error->message, "adapter_config.json: "));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import-peft/lora", test_lora);
    g_test_add_func("/import-peft/stored-narrow", test_stored_narrow);
    g_test_add_func("/import-peft/others", test_others);
    return g_test_run();
}
