/* unit/exchange/test_import_trainer.c - fine-tuning configurations: number formats, sharding, stored weights, one GPU, refusals. */
#include <glib/gstdio.h>
#include <string.h>

#include "exchange/exchange.h"
#include "tests/unit/import_fixture.h"

static const ImportCase cases[] = {
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
    {"peft-sft-qlora",
     "accelerate launch --config_file \"configs/fsdp_config_qlora.yaml\" train.py --model_name_or_path "
     "meta-llama/Llama-2-70b-hf --per_device_train_batch_size 2 --use_peft_lora True --lora_r 8 "
     "--lora_target_modules all-linear --use_4bit_quantization True\n",
     EXCHANGE_FORMAT_TRL,
     {{"training.task", "\"qlora\""},
      {"training.adapter.rank", "8"},
      {"training.adapter.base_dtype", "\"nf4\""},
      {"training.adapter.targets", "\"all-linear\""},
      {"parallel.zero", "3"},
      {"execution.framework", "\"transformers-fsdp\""}}},
    {"accelerate-zero3",
     "accelerate launch --config_file \"accelerate_configs/deepspeed_zero3.yaml\" train.py "
     "--model_name_or_path "
     "meta-llama/Llama-2-70b-hf --per_device_train_batch_size 2\n",
     EXCHANGE_FORMAT_TRL,
     {{"parallel.zero", "3"}, {"execution.framework", "\"transformers-deepspeed\""}}},
    {"accelerate-zero2",
     "accelerate launch --config_file \"deepspeed_zero2.yaml\" train.py --model_name_or_path "
     "meta-llama/Llama-2-70b-hf --per_device_train_batch_size 2 --num_processes 4\n",
     EXCHANGE_FORMAT_TRL,
     {{"parallel.zero", "2"}, {"execution.framework", "\"transformers-deepspeed\""}}},
    {"accelerate-fsdp2",
     "accelerate launch --config_file \"fsdp2.yaml\" train.py --model_name_or_path "
     "meta-llama/Llama-2-70b-hf --per_device_train_batch_size 2\n",
     EXCHANGE_FORMAT_TRL,
     {{"parallel.zero", "3"}, {"execution.framework", "\"transformers-fsdp\""}}},
    {"accelerate-unknown",
     "accelerate launch --config_file \"my.yaml\" train.py --model_name_or_path "
     "meta-llama/Llama-2-70b-hf --per_device_train_batch_size 2\n",
     EXCHANGE_FORMAT_TRL,
     {{"parallel.zero", "0"}, {"execution.framework", "\"transformers-ddp\""}}},
};

static void test_cases(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        import_check(&cases[i]);
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
        {"{\"peft_type\":\"LORA\",\"r\":0}", "r: 0 is not a rank"},
        {"base_model: x\nadapter: lora\nlora_r: -8\n", "lora_r: -8 is not a rank"},
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

/* The file that --config_file names is read where it is there, from the script's folder or one above. */
static void test_accelerate(void)
{
    static const struct {
        const char *file, *expect[4][2];
    } rows[] = {
        {"distributed_type: DEEPSPEED\ndeepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n"
         "  offload_param_device: none\nnum_processes: 8\n",
         {{"parallel.zero", "3"},
          {"parallel.data", "8"},
          {"training.global_batch", "16"},
          {"offload.optimizer.tier", "\"host\""}}},
        {"distributed_type: FSDP\nfsdp_config:\n  fsdp_reshard_after_forward: false\n"
         "  fsdp_activation_checkpointing: true\nnum_processes: 2\n",
         {{"parallel.zero", "2"},
          {"parallel.data", "2"},
          {"training.recompute", "\"full\""},
          {"execution.framework", "\"transformers-fsdp\""}}},
        {"distributed_type: MULTI_GPU\nnum_processes: 4\n",
         {{"parallel.zero", "0"},
          {"parallel.data", "4"},
          {"offload", NULL},
          {"execution.framework", "\"transformers-ddp\""}}},
    };
    static const char launch[] = "accelerate launch --config_file configs/a.yaml scripts/sft.py "
                                 "--model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 2\n";
    g_autofree char *root = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *configs = g_build_filename(root, "configs", NULL),
                    *runs = g_build_filename(root, "runs", NULL);
    g_autofree char *yaml = g_build_filename(configs, "a.yaml", NULL),
                    *script = g_build_filename(runs, "a.sh", NULL);
    g_assert_cmpint(g_mkdir(configs, 0700) | g_mkdir(runs, 0700), ==, 0);
    g_assert_true(g_file_set_contents(script, launch, -1, NULL));
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        g_assert_true(g_file_set_contents(yaml, rows[i].file, -1, NULL));
        OrrJsonDoc *doc = exchange_import(launch, strlen(launch), script, -1, NULL, &loss, &error);
        g_assert_no_error(error);
        for (gsize k = 0; k < G_N_ELEMENTS(rows[i].expect); k++) {
            const OrrJson *node = import_at(orr_json_root(doc), rows[i].expect[k][0]);
            g_autofree char *text = node != NULL ? orr_json_dump(node) : NULL;
            g_assert_cmpstr(text, ==, rows[i].expect[k][1]);
        }
        orr_json_free(doc);
    }
    g_assert_cmpint(g_unlink(yaml) | g_unlink(script) | g_rmdir(configs) | g_rmdir(runs) | g_rmdir(root), ==,
                    0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import-trainer/cases", test_cases);
    g_test_add_func("/import-trainer/refused", test_refused);
    g_test_add_func("/import-trainer/accelerate", test_accelerate);
    return g_test_run();
}
