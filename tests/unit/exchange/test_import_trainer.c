/* unit/exchange/test_import_trainer.c - fine-tuning configurations: number formats, sharding, stored weights, one GPU, refusals. */
#include <string.h>

#include "exchange/exchange.h"

#define MOST 14

typedef struct Case {
    const char *name, *text;
    ExchangeFormat format;
    const char *expect[MOST][2]; /* path, value as JSON */
} Case;

static const Case cases[] = {
    {"axolotl-bf16-auto",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "bf16: auto\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.precision", "\"bf16\""}, {"training.states", NULL}}},
    {"axolotl-bf16-absent",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "micro_batch_size: 1\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.precision", "\"bf16\""}}},
    {"axolotl-bf16-false",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "bf16: false\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.precision", "\"fp32\""}}},
    {"axolotl-bf16-auto-fp16",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "bf16: auto\n"
     "fp16: true\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.precision", "\"fp16\""}}},
    {"axolotl-bf16-full",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "bf16: full\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.precision", "\"bf16\""},
      {"training.states", "{\"weights\":2,\"gradients\":2,\"master\":0,\"moments\":4}"}}},
    {"axolotl-bf16-full-lora",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "bf16: full\n"
     "adapter: lora\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.precision", "\"bf16\""}, {"training.states", NULL}}},
    {"axolotl-fsdp2",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "fsdp_version: 2\n"
     "fsdp_config:\n"
     "  offload_params: false\n"
     "  reshard_after_forward: true\n"
     "dp_shard_size: 4\n"
     "dp_replicate_size: 2\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"parallel.zero", "3"},
      {"execution.framework", "\"transformers-fsdp\""},
      {"parallel.data", "8"},
      {"parallel.zero_group_gpus", "4"},
      {"training.recompute", "\"none\""},
      {"offload", NULL}}},
    {"axolotl-fsdp2-version-alone",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "fsdp_version: 2\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"parallel.zero", "3"}, {"execution.framework", "\"transformers-fsdp\""}}},
    {"axolotl-fsdp2-keeps",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "fsdp_config:\n"
     "  reshard_after_forward: false\n"
     "  activation_checkpointing: true\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"parallel.zero", "2"},
      {"execution.framework", "\"transformers-fsdp\""},
      {"training.recompute", "\"full\""}}},
    {"axolotl-fsdp2-host",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "fsdp_config:\n"
     "  offload_params: true\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"parallel.zero", "3"},
      {"offload.scheme", "\"zero3-offload\""},
      {"offload.optimizer.tier", "\"host\""},
      {"offload.weights.tier", "\"host\""}}},
    {"axolotl-fsdp-off",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "fsdp: []\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"parallel.zero", "0"}, {"execution.framework", "\"transformers-ddp\""}}},
    {"axolotl-strokes",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "sequence_len: 500_000\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.sequence_length", "500000"}}},
    {"axolotl-gptq",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "gptq: true\n"
     "adapter: lora\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.task", "\"qlora\""},
      {"training.adapter.base_dtype", "\"int4\""},
      {"training.adapter.dtype", "\"fp32\""}}},
    {"axolotl-qlora-without-bits",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "adapter: qlora\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.task", "\"qlora\""}, {"training.adapter.base_dtype", "\"nf4\""}}},
    {"axolotl-no-cast",
     "base_model: NousResearch/Meta-Llama-3-8B\n"
     "adapter: lora\n"
     "peft_autocast_adapter_dtype: false\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.adapter.dtype", "\"bf16\""}}},
    {"llama-factory-gptq",
     "model_name_or_path: TechxGenus/Meta-Llama-3-8B-Instruct-GPTQ\n"
     "finetuning_type: lora\n"
     "bf16: true\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.task", "\"qlora\""},
      {"training.adapter.base_dtype", "\"int4\""},
      {"training.adapter.dtype", "\"fp32\""}}},
    {"llama-factory-awq",
     "model_name_or_path: TechxGenus/Meta-Llama-3-8B-Instruct-AWQ\n"
     "finetuning_type: lora\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.adapter.base_dtype", "\"int4\""}}},
    {"llama-factory-bnb",
     "model_name_or_path: unsloth/llama-3-8b-Instruct-bnb-4bit\n"
     "finetuning_type: lora\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.adapter.base_dtype", "\"nf4\""}}},
    {"llama-factory-pure-bf16",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\n"
     "finetuning_type: lora\n"
     "pure_bf16: true\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.precision", "\"bf16\""}, {"training.adapter.dtype", "\"bf16\""}}},
    {"llama-factory-z3-offload",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\n"
     "finetuning_type: lora\n"
     "deepspeed: examples/deepspeed/ds_z3_offload_config.json\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"parallel.zero", "3"},
      {"offload.scheme", "\"zero3-offload\""},
      {"offload.optimizer.tier", "\"host\""},
      {"offload.weights.tier", "\"host\""},
      {"offload.pinned", "true"}}},
    {"llama-factory-z2-offload",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\n"
     "finetuning_type: lora\n"
     "deepspeed: ds_z2_offload_config.json\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"parallel.zero", "2"},
      {"offload.scheme", "\"zero-offload\""},
      {"offload.optimizer.tier", "\"host\""},
      {"offload.weights.tier", "\"gpu\""}}},
    {"llama-factory-z0",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\n"
     "finetuning_type: lora\n"
     "deepspeed: examples/deepspeed/ds_z0_config.json\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"parallel.zero", "0"}, {"execution.framework", "\"transformers-deepspeed\""}}},
    {"torchtune-single-device",
     "# tune run lora_finetune_single_device --config llama3/8B_lora_single_device\n"
     "model:\n"
     "  _component_: torchtune.models.llama3.lora_llama3_8b\n"
     "tokenizer:\n"
     "  max_seq_len: 2048\n"
     "optimizer:\n"
     "  _component_: torch.optim.AdamW\n"
     "dtype: bf16\n",
     EXCHANGE_FORMAT_TORCHTUNE,
     {{"parallel.data", "1"}, {"parallel.zero", "0"}, {"training.adapter.dtype", NULL}}},
    {"trl-gptq",
     "accelerate launch trl/scripts/sft.py --model_name_or_path Qwen/Qwen3-8B-GPTQ-Int4 --use_peft "
     "--per_device_train_batch_size 1\n",
     EXCHANGE_FORMAT_TRL,
     {{"training.task", "\"qlora\""},
      {"training.adapter.base_dtype", "\"int4\""},
      {"training.adapter.dtype", "\"fp32\""}}},
};

static const OrrJson *at(const OrrJson *node, const char *path)
{
    g_auto(GStrv) keys = g_strsplit(path, ".", -1);
    for (char **key = keys; node != NULL && *key != NULL; key++)
        node = orr_json_member(node, *key);
    return node;
}

static void check(const Case *one, int format)
{
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *doc = exchange_import(one->text, strlen(one->text), "config", format, NULL, &loss, &error);
    g_assert_no_error(error);
    for (int i = 0; i < MOST && one->expect[i][0] != NULL; i++) {
        const OrrJson *node = at(orr_json_root(doc), one->expect[i][0]);
        g_autofree char *text = node != NULL ? orr_json_dump(node) : NULL;
        if (one->expect[i][1] != NULL && text != NULL && strcmp(text, one->expect[i][1]) != 0)
            g_test_message("%s: %s", one->name, one->expect[i][0]);
        g_assert_cmpstr(text, ==, one->expect[i][1]);
    }
    orr_json_free(doc);
}

static void test_cases(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        check(&cases[i], -1); /* told from the file */
        check(&cases[i], (int)cases[i].format);
    }
}

/* Files that train nothing, or hold no adapter that there can be, fail in one sentence. */
static void test_refused(void)
{
    static const char *const rows[][2] = {
        {"model:\n  _component_: torchtune.models.llama3.llama3_8b\ntasks: [truthfulqa_mc2]\n",
         "trains nothing"},
        {"model:\n  _component_: torchtune.models.llama3.llama3_8b\nmax_new_tokens: 300\n", "trains nothing"},
        {"model:\n  _component_: torchtune.models.llama3.llama3_8b\nquantizer:\n  groupsize: 256\n",
         "trains nothing"},
        {"model_name_or_path: x\nfinetuning_type: lora\ndo_predict: true\n", "trains nothing"},
        {"model_name_or_path: x\nfinetuning_type: lora\nstage: ppo\n", "generates answers as it trains"},
        {"{\"peft_type\":\"LORA\",\"r\":0}", "r: 0 is no rank"},
        {"base_model: x\nadapter: lora\nlora_r: -8\n", "lora_r: -8 is no rank"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        g_assert_null(exchange_import(rows[i][0], strlen(rows[i][0]), "config", -1, NULL, &loss, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, rows[i][1]));
        g_clear_error(&error);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import-trainer/cases", test_cases);
    g_test_add_func("/import-trainer/refused", test_refused);
    return g_test_run();
}
