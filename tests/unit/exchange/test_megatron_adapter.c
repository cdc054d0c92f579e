/* unit/exchange/test_megatron_adapter.c - adapters to Megatron-Bridge and back: what is written, what is refused, what
 * its own defaults are. */
#include <string.h>

#include "exchange/exchange.h"
#include "spec/load.h"

#define SCENARIO(targets, more, parallel)                                                                    \
    "{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"task\":"     \
    "\"lora\",\"sequence_length\":4096,\"global_batch\":64,\"tokens\":262144000,\"adapter\":{\"rank\":16,"   \
    "\"alpha\":64,\"targets\":" targets more "}},\"parallel\":{" parallel                                    \
    "},\"execution\":{\"framework\":\"megatron-core\"}}"

static bool export(const char *text, GString *out, GError **error)
{
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", error);
    g_assert_no_error(*error);
    spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, error);
    g_assert_no_error(*error);
    const bool ok =
        exchange_export(spec, orr_json_root(doc), EXCHANGE_FORMAT_MEGATRON_BRIDGE, out, &loss, error);
    g_free(spec);
    orr_json_free(doc);
    return ok;
}

/* Written for a module what its linear layers say, and read again as the module. */
static void test_there_and_back(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    g_auto(ExchangeLoss) loss;
    GError *error = NULL;
    const bool ok =
        export(SCENARIO("[\"linear_qkv\",\"linear_fc2\"]", "", "\"tensor\":2,\"data\":4"), out, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_assert_nonnull(strstr(out->str, "peft.target_modules='[linear_qkv,linear_fc2]'"));
    g_assert_nonnull(strstr(out->str, "peft.dim=16"));
    exchange_loss_init(&loss);
    char *comment = strstr(out->str, "# orrery-scenario"); /* it would give the scenario back by itself */
    g_assert_nonnull(comment);
    memset(comment, '#', strcspn(comment, "\n"));
    OrrJsonDoc *doc = exchange_import(out->str, out->len, "b.sh", -1, NULL, &loss, &error);
    g_assert_no_error(error);
    const OrrJson *training = orr_json_member(orr_json_root(doc), "training"),
                  *adapter = orr_json_member(training, "adapter"),
                  *targets = orr_json_member(adapter, "targets");
    g_assert_cmpstr(orr_json_text_of(training, "task", ""), ==, "lora");
    g_assert_cmpfloat(orr_json_number_of(adapter, "rank", 0), ==, 16);
    g_assert_cmpfloat(orr_json_number_of(adapter, "alpha", 0), ==, 64);
    g_assert_cmpint(orr_json_count(targets), ==, 2);
    g_assert_cmpstr(orr_json_text(orr_json_first(targets)), ==, "linear_qkv");
    orr_json_free(doc);
}

/* peft=lora alone: class LoRA's own rank and modules. */
static void test_defaults(void)
{
    static const char text[] = "BRIDGE_OVERRIDES=(\nmodel.num_layers=32\nmodel.hidden_size=4096\n"
                               "model.num_attention_heads=32\nmodel.vocab_size=32000\nmodel.seq_length=4096\n"
                               "train.global_batch_size=8\ntrain.micro_batch_size=1\npeft=lora\n)\n";
    g_auto(ExchangeLoss) loss;
    GError *error = NULL;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc =
        exchange_import(text, strlen(text), "b.sh", EXCHANGE_FORMAT_MEGATRON_BRIDGE, NULL, &loss, &error);
    g_assert_no_error(error);
    const OrrJson *adapter = orr_json_member(orr_json_member(orr_json_root(doc), "training"), "adapter");
    g_assert_cmpfloat(orr_json_number_of(adapter, "rank", 0), ==, 32);
    g_assert_cmpint(orr_json_count(orr_json_member(adapter, "targets")), ==, 4);
    orr_json_free(doc);
}

static void test_refusals(void)
{
    static const char *const cases[][2] = {
        {SCENARIO("[\"q_proj\",\"v_proj\"]", "", "\"data\":8"), "q_proj, k_proj and v_proj together"},
        {"{\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"task\":"
         "\"kto\","
         "\"reference\":\"adapter-off\",\"sequence_length\":4096,\"global_batch\":64,\"adapter\":{\"rank\":"
         "16}},"
         "\"parallel\":{\"data\":8}}",
         "training.task: kto; give lora"},
        {SCENARIO("[\"up_proj\"]", "", "\"data\":8"), "gate_proj and up_proj together"},
        {SCENARIO("\"all-linear\"", ",\"fused\":true", "\"tensor\":2,\"data\":4"), "parallel.tensor 1"},
        {SCENARIO("\"all-linear\"", ",\"base_dtype\":\"fp8\"", "\"data\":8"), "give bf16"},
        {SCENARIO("\"all-linear\"", ",\"modules_to_save\":[\"lm_head\"]", "\"data\":8"), "leave it out"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autoptr(GString) out = g_string_new(NULL);
        GError *error = NULL;
        g_assert_false(export(cases[i][0], out, &error));
        g_assert_nonnull(error);
        g_test_message("%s", error->message);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_clear_error(&error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/exchange/megatron-adapter/there-and-back", test_there_and_back);
    g_test_add_func("/exchange/megatron-adapter/defaults", test_defaults);
    g_test_add_func("/exchange/megatron-adapter/refusals", test_refusals);
    return g_test_run();
}
