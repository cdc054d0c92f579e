/* unit/exchange/test_export_finetune.c - fine-tuning configurations that are written: names, the way back, refusals. */
#include <string.h>

#include "exchange/exchange.h"
#include "spec/load.h"

#define LLAMA8B "\"model\":\"llama3-8b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1}"

static Spec *load(const char *text, OrrJsonDoc **ret_doc)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    *ret_doc = orr_json_parse(text, strlen(text), "test", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(*ret_doc), "test", NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    return spec;
}

typedef struct Case {
    ExchangeFormat format;
    const char *training, *rest; /* of the scenario */
    const char *holds[8];
} Case;

#define ADAPTER(more) "\"adapter\":{\"rank\":16,\"alpha\":32,\"dropout_frac\":0.05" more "}"
#define BATCH         "\"sequence_length\":4096,\"global_batch\":64,\"micro_batch\":2,\"tokens\":262144000,"
#define DDP                                                                                                  \
    ",\"parallel\":{\"data\":8,\"zero\":0},\"execution\":{\"framework\":\"transformers-ddp\",\"attention\":" \
    "\"flash2\"}"
#define ZERO3                                                                                                \
    ",\"parallel\":{\"data\":8,\"zero\":3},\"execution\":{\"framework\":\"transformers-deepspeed\","         \
    "\"attention\":\"flash2\"}"
#define TORCHTUNE                                                                                            \
    ",\"parallel\":{\"data\":8,\"zero\":3},\"execution\":{\"framework\":\"torchtune\",\"attention\":"        \
    "\"flash2\"}"

static const Case cases[] = {
    {EXCHANGE_FORMAT_AXOLOTL,
     "\"task\":\"lora\"," ADAPTER(",\"targets\":[\"q_proj\",\"v_proj\"]"),
     DDP,
     {"adapter: \"lora\"", "lora_r: 16", "lora_alpha: 32", "lora_dropout: 0.05",
      "lora_target_modules: [q_proj, v_proj]", "gradient_accumulation_steps: 4", "max_steps: 1000",
      "gradient_checkpointing: false"}},
    {EXCHANGE_FORMAT_AXOLOTL,
     "\"task\":\"qlora\",\"recompute\":\"full\"," ADAPTER(
         ",\"targets\":\"all-linear\",\"base_dtype\":\"nf4\""),
     DDP,
     {"adapter: \"qlora\"", "load_in_4bit: true", "lora_target_linear: true",
      "gradient_checkpointing: true"}},
    {EXCHANGE_FORMAT_AXOLOTL,
     "\"task\":\"orpo\"",
     ZERO3,
     {"rl: \"orpo\"", "deepspeed_configs/zero3.json", "micro_batch_size: 1"}},
    {EXCHANGE_FORMAT_LLAMA_FACTORY,
     "\"task\":\"lora\"," ADAPTER(",\"targets\":\"all-linear\""),
     ZERO3,
     {"finetuning_type: \"lora\"", "lora_rank: 16", "lora_target: \"all\"", "stage: \"sft\"",
      "ds_z3_config.json"}},
    {EXCHANGE_FORMAT_LLAMA_FACTORY,
     "\"task\":\"sft\",\"freeze\":{\"embedding\":true,\"head\":true,\"layers\":28}",
     DDP,
     {"finetuning_type: \"freeze\"", "freeze_trainable_layers: 4"}},
    {EXCHANGE_FORMAT_LLAMA_FACTORY,
     "\"task\":\"kto\",\"reference\":\"adapter-off\"," ADAPTER(""),
     DDP,
     {"stage: \"kto\"", "lora_target: q_proj, k_proj, v_proj, o_proj", "flash_attn: \"fa2\""}},
    {EXCHANGE_FORMAT_TORCHTUNE,
     "\"task\":\"lora\"," ADAPTER(",\"targets\":\"all-linear\""),
     TORCHTUNE,
     {"_component_: \"torchtune.models.llama3.lora_llama3_8b", "lora_rank: 16", "apply_lora_to_mlp: true",
      "lora_attn_modules: [q_proj, k_proj, v_proj, output_proj]"}},
    {EXCHANGE_FORMAT_TORCHTUNE,
     "\"task\":\"qlora\"," ADAPTER(",\"targets\":[\"q_proj\",\"v_proj\"],\"base_dtype\":\"nf4\""),
     TORCHTUNE,
     {"qlora_llama3_8b", "lora_attn_modules: [q_proj, v_proj]"}},
    {EXCHANGE_FORMAT_TRL,
     "\"task\":\"qlora\"," ADAPTER(",\"targets\":[\"q_proj\",\"v_proj\"],\"base_dtype\":\"nf4\""),
     ZERO3,
     {"--use_peft true", "--load_in_4bit true", "--lora_target_modules q_proj v_proj", "--lora_r 16",
      "--deepspeed zero3.json", "--gradient_accumulation_steps 4", "--packing true", "--max_length 4096"}},
    {EXCHANGE_FORMAT_TRL,
     "\"task\":\"dpo\",\"reference\":\"cached\"," ADAPTER(",\"targets\":\"all-linear\""),
     DDP,
     {"--loss_type sigmoid", "--precompute_ref_log_probs true", "--per_device_train_batch_size 1",
      "--lora_target_modules all-linear", "--bf16 true"}},
    {EXCHANGE_FORMAT_TRL,
     "\"task\":\"apo-unpaired\",\"reference\":\"model\"",
     ZERO3,
     {"--loss_type apo_zero_unpaired", "--per_device_train_batch_size 2"}},
    {EXCHANGE_FORMAT_TRL, "\"task\":\"sft\",\"precision\":\"fp32\"", DDP, {"--bf16 false"}},
};

/* Behind the comments, which hold the scenario. */
static const char *settings(const char *text)
{
    while (text[0] == '#')
        text = strchr(text, '\n') + 1;
    return text;
}

/* What is written holds the program's names, and is read back as the same scenario. */
static void test_there_and_back(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        const Case *at = &cases[i];
        GError *error = NULL;
        OrrJsonDoc *doc, *unused;
        g_autofree char *text =
            g_strdup_printf("{" LLAMA8B ",\"training\":{" BATCH "%s}%s}", at->training, at->rest);
        g_autofree Spec *spec = load(text, &doc);
        g_autoptr(GString) out = g_string_new(NULL);
        exchange_export(spec, orr_json_root(doc), at->format, out, NULL, &error);
        g_assert_no_error(error);
        for (gsize k = 0; k < G_N_ELEMENTS(at->holds) && at->holds[k] != NULL; k++)
            if (strstr(out->str, at->holds[k]) == NULL)
                g_error("case %zu: \"%s\" is not in\n%s", i, at->holds[k], out->str);
        ExchangeLoss loss;
        exchange_loss_init(&loss);
        OrrJsonDoc *back = exchange_import(out->str, out->len, "back", (int)at->format, NULL, &loss, &error);
        g_assert_no_error(error);
        g_autofree char *again = orr_json_dump(orr_json_root(back));
        g_autofree Spec *read = load(again, &unused);
        g_autoptr(GString) twice = g_string_new(NULL);
        exchange_export(read, orr_json_root(unused), at->format, twice, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(settings(twice->str), ==, settings(out->str));
        g_assert_cmpfloat(read->training.tokens, ==, spec->training.tokens);
        g_assert_cmpint(read->training.global_batch, ==, spec->training.global_batch);
        g_assert_cmpint(read->parallel.zero, ==, spec->parallel.zero);
        g_assert_cmpint((int)read->training.task, ==, (int)spec->training.task);
        exchange_loss_clear(&loss);
        orr_json_free(unused);
        orr_json_free(back);
        orr_json_free(doc);
    }
}

/* An adapter alone: PEFT's keys and no other, read back over any scenario, whose stored weights stay as they are. */
static void test_adapter(void)
{
    static const char *const targets[][2] = {
        {"\"all-linear\"", "\"target_modules\": \"all-linear\""},
        {"[\"q_proj\",\"down_proj\"]", "\"down_proj\""},
        {"\"all-linear\",\"modules_to_save\":[\"embed_tokens\",\"lm_head\"]", "\"lm_head\""}};
    for (gsize i = 0; i < G_N_ELEMENTS(targets); i++) {
        GError *error = NULL;
        OrrJsonDoc *doc, *unused;
        g_autofree char *text = g_strdup_printf(
            "{" LLAMA8B ",\"training\":{" BATCH "\"task\":\"qlora\",\"adapter\":{\"rank\":16,\"alpha\":8,"
            "\"dropout_frac\":0.05,\"base_dtype\":\"nf4\",\"targets\":%s}}" DDP "}",
            targets[i][0]);
        g_autofree Spec *spec = load(text, &doc);
        g_autoptr(GString) out = g_string_new(NULL), twice = g_string_new(NULL);
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        exchange_export(spec, orr_json_root(doc), EXCHANGE_FORMAT_PEFT, out, &loss, &error);
        g_assert_no_error(error);
        g_assert_nonnull(strstr(out->str, targets[i][1]));
        g_assert_nonnull(strstr(out->str, "\"r\": 16"));
        g_assert_null(strstr(out->str, "orrery"));
        g_assert_cmpuint(loss.changes->len, ==, 1);
        g_assert_cmpuint(loss.placeholders->len, ==, 0);
        OrrJsonDoc *base = orr_json_copy(orr_json_root(doc), "base");
        orr_json_set(base, "training.adapter.rank", "64", &error);
        OrrJsonDoc *back =
            exchange_import(out->str, out->len, "back", -1, orr_json_root(base), &loss, &error);
        g_assert_no_error(error);
        g_assert_cmpuint(loss.changes->len, ==, 1);
        g_autofree char *again = orr_json_dump(orr_json_root(back));
        g_autofree Spec *read = load(again, &unused);
        g_assert_cmpint(memcmp(&read->training.adapter, &spec->training.adapter, sizeof(SpecAdapter)), ==, 0);
        g_assert_cmpint((int)read->training.task, ==, SPEC_TASK_QLORA);
        exchange_export(read, orr_json_root(unused), EXCHANGE_FORMAT_PEFT, twice, NULL, &error);
        g_assert_no_error(error);
        g_assert_cmpstr(twice->str, ==, out->str);
        orr_json_free(unused);
        orr_json_free(back);
        orr_json_free(base);
        orr_json_free(doc);
    }
}

static void test_refusals(void)
{
    static const struct {
        ExchangeFormat format;
        const char *training, *rest, *says;
    } bad[] = {
        {EXCHANGE_FORMAT_AXOLOTL, "\"task\":\"pretrain\"", DDP, "axolotl: training.task: pretrain; give sft"},
        {EXCHANGE_FORMAT_AXOLOTL, "\"task\":\"lora\"," ADAPTER(",\"base_dtype\":\"fp8\""), DDP,
         "training.adapter.base_dtype: fp8; give bf16, nf4 or int8"},
        {EXCHANGE_FORMAT_AXOLOTL, "\"task\":\"sft\",\"freeze\":{\"embedding\":true}", DDP,
         "training.freeze: some layers"},
        {EXCHANGE_FORMAT_TORCHTUNE, "\"task\":\"kto\",\"reference\":\"cached\"", TORCHTUNE,
         "training.task: kto"},
        {EXCHANGE_FORMAT_LLAMA_FACTORY, "\"task\":\"sft\"",
         ",\"parallel\":{\"tensor\":2},\"execution\":{\"framework\":\"transformers-ddp\"}",
         "parallel.tensor: above 1"},
        {EXCHANGE_FORMAT_DEEPSPEED, "\"task\":\"lora\"," ADAPTER(""), DDP,
         "give megatron-bridge, axolotl, llama-factory, torchtune, trl or peft"},
        {EXCHANGE_FORMAT_TRL, "\"task\":\"orpo\"", DDP, "training.task: orpo; give sft, lora"},
        {EXCHANGE_FORMAT_PEFT, "\"task\":\"sft\"", DDP, "training.adapter: none; give one"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        GError *error = NULL;
        OrrJsonDoc *doc;
        g_autofree char *text =
            g_strdup_printf("{" LLAMA8B ",\"training\":{" BATCH "%s}%s}", bad[i].training, bad[i].rest);
        g_autofree Spec *spec = load(text, &doc);
        g_autoptr(GString) out = g_string_new(NULL);
        g_assert_false(exchange_export(spec, orr_json_root(doc), bad[i].format, out, NULL, &error));
        if (strstr(error->message, bad[i].says) == NULL)
            g_error("case %zu: %s", i, error->message);
        g_clear_error(&error);
        orr_json_free(doc);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/export-finetune/adapter", test_adapter);
    g_test_add_func("/export-finetune/there-and-back", test_there_and_back);
    g_test_add_func("/export-finetune/refusals", test_refusals);
    return g_test_run();
}
