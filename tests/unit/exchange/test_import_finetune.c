/* unit/exchange/test_import_finetune.c - fine-tuning configurations: axolotl, LLaMA-Factory, torchtune, TRL. */
#include <string.h>

#include "exchange/exchange.h"
#include "spec/model_names.h"
#include "tests/unit/import_fixture.h"

static const ImportCase cases[] = {
    {"axolotl",
     "base_model: NousResearch/Meta-Llama-3-8B\nload_in_4bit: true\nadapter: qlora\nlora_r: 32\nlora_alpha: "
     "16\n"
     "lora_dropout: 0.05\nlora_target_modules:\n  - q_proj\n  - down_proj # of the MLP\nsequence_len: 4096\n"
     "sample_packing: true\ngradient_accumulation_steps: 4\nmicro_batch_size: 2\nnum_epochs: 3\n"
     "optimizer: adamw_torch_fused\nbf16: auto\ngradient_checkpointing: true\nflash_attention: true\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"model", "\"llama3-8b\""},
      {"training.task", "\"qlora\""},
      {"training.adapter.rank", "32"},
      {"training.adapter.alpha", "16"},
      {"training.adapter.dropout_frac", "0.05"},
      {"training.adapter.base_dtype", "\"nf4\""},
      {"training.adapter.targets", "[\"q_proj\",\"down_proj\"]"},
      {"training.sequence_length", "4096"},
      {"training.micro_batch", "2"},
      {"training.global_batch", "8"},
      {"training.epochs", NULL},
      {"training.recompute", "\"full\""},
      {"parallel.zero", "0"},
      {"execution.framework", "\"transformers-ddp\""}}},
    {"axolotl-pattern",
     "base_model: google/x\nadapter: lora\nlora_target_modules: "
     "'model.language_model.layers.[\\d]+.(mlp|self_attn).(up|q|o)_proj'\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.adapter.targets", "[\"q_proj\",\"o_proj\",\"up_proj\"]"}}},
    {"axolotl-linear",
     "base_model: meta-llama/Llama-3.1-70B\nadapter: lora\nlora_target_linear: true\nmicro_batch_size: 1\n"
     "deepspeed: deepspeed_configs/zero3_bf16.json\nmax_steps: 100\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"model", "\"llama3-70b\""},
      {"training.task", "\"lora\""},
      {"training.adapter.rank", "8"},
      {"training.adapter.targets", "\"all-linear\""},
      {"training.sequence_length", "512"},
      {"parallel.zero", "3"},
      {"execution.framework", "\"transformers-deepspeed\""}}},
    {"llama-factory-freeze",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: freeze\n"
     "freeze_trainable_layers: 4\nfreeze_extra_modules: norm,lm_head\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.task", "\"sft\""},
      {"training.freeze.layers", "28"},
      {"training.freeze.embedding", "true"},
      {"training.freeze.head", "false"}}},
    {"llama-factory-freeze-default",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: freeze\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.freeze.layers", "30"}, {"training.freeze.head", "true"}}},
    {"llama-factory-freeze-first",
     "model_name_or_path: meta-llama/Meta-Llama-3-8B\nstage: sft\nfinetuning_type: freeze\n"
     "freeze_trainable_layers: -4\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.task", "\"sft\""}, {"training.freeze", NULL}}},
    {"llama-factory",
     "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\ndo_train: true\nfinetuning_type: lora\n"
     "lora_rank: 16\nlora_target: all\ncutoff_len: 2048\nper_device_train_batch_size: 1\n"
     "gradient_accumulation_steps: 8\nnum_train_epochs: 3.0\nbf16: true\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"model", "\"qwen2.5-7b\""},
      {"training.task", "\"lora\""},
      {"training.adapter.rank", "16"},
      {"training.adapter.targets", "\"all-linear\""},
      {"training.global_batch", "8"},
      {"training.precision", "\"bf16\""},
      {"training.recompute", "\"full\""},
      {"training.epochs", NULL}}},
    {"llama-factory-unsloth",
     "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\nuse_unsloth: true\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"execution.framework", "\"unsloth\""}, {"training.optimizer", "\"adam\""}}},
    {"axolotl-unsloth",
     "base_model: Qwen/Qwen3-8B\nadapter: qlora\nload_in_4bit: true\nunsloth_lora_mlp: true\n"
     "optimizer: adamw_8bit\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"execution.framework", "\"unsloth\""}, {"training.optimizer", "\"adam8bit\""}}},
    {"llama-factory-unsloth-sharded",
     "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: sft\nfinetuning_type: lora\nuse_unsloth: true\n"
     "deepspeed: examples/deepspeed/ds_z2_config.json\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"execution.framework", "\"transformers-deepspeed\""}, {"training.optimizer", "\"adam\""}}},
    {"llama-factory-dpo",
     "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: dpo\nfinetuning_type: full\ncutoff_len: 2048\n"
     "deepspeed: examples/deepspeed/ds_z2_config.json\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.task", "\"dpo\""},
      {"training.reference", "\"model\""},
      {"training.adapter", NULL},
      {"training.micro_batch", "16"}, /* 8 pairs */
      {"parallel.zero", "2"}}},
    {"llama-factory-rm",
     "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: rm\nfinetuning_type: full\ncutoff_len: 2048\n"
     "per_device_train_batch_size: 2\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.task", "\"reward\""}, {"training.reference", NULL}, {"training.micro_batch", "4"}}},
    {"llama-factory-kto",
     "model_name_or_path: Qwen/Qwen2.5-7B-Instruct\nstage: kto\nfinetuning_type: lora\ncutoff_len: 2048\n"
     "per_device_train_batch_size: 2\n",
     EXCHANGE_FORMAT_LLAMA_FACTORY,
     {{"training.task", "\"kto\""},
      {"training.reference", "\"adapter-off\""},
      {"training.micro_batch", "2"}}},
    {"axolotl-kto",
     "base_model: Qwen/Qwen3-8B\nrl: kto\nmicro_batch_size: 2\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.task", "\"kto\""}, {"training.reference", "\"model\""}, {"training.micro_batch", "2"}}},
    {"axolotl-reward",
     "base_model: Qwen/Qwen3-8B\nreward_model: true\nmicro_batch_size: 2\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.task", "\"reward\""}, {"training.adapter", NULL}, {"training.micro_batch", "4"}}},
    {"axolotl-orpo",
     "base_model: Qwen/Qwen3-8B\nadapter: lora\nrl: orpo\nmicro_batch_size: 2\n",
     EXCHANGE_FORMAT_AXOLOTL,
     {{"training.task", "\"orpo\""}, {"training.reference", NULL}, {"training.micro_batch", "4"}}},
    {"torchtune",
     "model:\n  _component_: torchtune.models.llama3_1.lora_llama3_1_8b\n  lora_attn_modules: ['q_proj', "
     "'v_proj', "
     "'output_proj']\n  apply_lora_to_mlp: True\n  lora_rank: 8\n  lora_alpha: 16\ntokenizer:\n  "
     "max_seq_len: 8192\n"
     "dataset:\n  packed: True\nbatch_size: 2\noptimizer:\n  _component_: torch.optim.AdamW\nepochs: 1\n"
     "max_steps_per_epoch: null\ngradient_accumulation_steps: 8\ncompile: "
     "False\nenable_activation_checkpointing: False\n"
     "dtype: bf16\n",
     EXCHANGE_FORMAT_TORCHTUNE,
     {{"model", "\"llama3-8b\""},
      {"training.task", "\"lora\""},
      {"training.adapter.targets",
       "[\"q_proj\",\"v_proj\",\"o_proj\",\"gate_proj\",\"up_proj\",\"down_proj\"]"},
      {"training.sequence_length", "8192"},
      {"training.global_batch", "16"},
      {"training.recompute", "\"none\""}}},
    {"trl",
     "accelerate launch trl/scripts/sft.py --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size "
     "4 "
     "--gradient_accumulation_steps 2 --use_peft --lora_r 64 --lora_target_modules q_proj v_proj "
     "--lora_modules_to_save lm_head "
     "--max_length 2048 --packing --load_in_4bit --attn_implementation flash_attention_2\n",
     EXCHANGE_FORMAT_TRL,
     {{"model", "\"qwen3-8b\""},
      {"training.task", "\"qlora\""},
      {"training.adapter.rank", "64"},
      {"training.adapter.targets", "[\"q_proj\",\"v_proj\"]"},
      {"training.adapter.modules_to_save", "[\"lm_head\"]"},
      {"training.global_batch", "8"},
      {"training.precision", "\"bf16\""},
      {"training.recompute", "\"full\""},
      {"execution.attention", "\"flash2\""}}},
};

static void test_cases(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        import_check(&cases[i]);
    }
}

/* Epochs become tokens where the base says how many sequences there are. */
static void test_epochs(void)
{
    static const char base[] = "{\"training\":{\"samples\":1000}}";
    GError *error = NULL;
    g_auto(ExchangeLoss) loss;
    exchange_loss_init(&loss);
    OrrJsonDoc *start = orr_json_parse(base, strlen(base), "base", &error);
    OrrJsonDoc *doc = exchange_import(cases[0].text, strlen(cases[0].text), "config", -1,
                                      orr_json_root(start), &loss, &error);
    g_assert_no_error(error);
    g_assert_cmpfloat(orr_json_number_of(import_at(orr_json_root(doc), "training"), "epochs", 0), ==, 3);
    orr_json_free(doc);
    orr_json_free(start);
}

/* What is not modelled, or says no number, is a line of the report, and the file is read all the same. */
static void test_warned(void)
{
    static const char *const lines[][2] = {
        {"adapter: llama-adapter", "is not modelled"},
        {"optimizer: galore_adamw", "galore"},
        {"rl: ipo", "taken as dpo"},
        {"deepspeed: my.json", "does not tell its stage"},
        {"num_epochs: 2", "give --set training.samples=N"},
        {"adapter: lora", "q_proj and v_proj are taken"},
        {"micro_batch_size: 0", "give no whole batch"},
        {"adapter: lora", "sequence_len: not given; 512"},
        {"adapter: qlora", "adapter: qlora without load_in_4bit: true, which axolotl refuses"},
        {"unfrozen_parameters:\n  - ^lm_head.*", "  - unfrozen_parameters: "},
        {"use_galore: true\ngalore_rank: 8", "  - use_galore: true is not modelled"},
        {"use_apollo: true", "  - use_apollo: true is not modelled"},
        {"use_badam: true", "  - use_badam: true is not modelled"},
        {"lisa_n_layers: 4", "  - lisa_n_layers: 4 is not modelled"},
        {"peft_use_dora: true", "  - peft_use_dora: true is not modelled"},
        {"optimizer_in_bwd: True", "  - optimizer_in_bwd: True is not modelled"},
        {"processor_type: AutoProcessor", "processor_type: images of the sequences are left out"},
        {"deepspeed: ds_z0_offload.json", "nothing is sharded"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(lines); i++) {
        GError *error = NULL;
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        g_autofree char *text = g_strdup_printf("base_model: nobody/knows-this\n%s\n", lines[i][0]);
        OrrJsonDoc *doc = exchange_import(text, strlen(text), "config", -1, NULL, &loss, &error);
        g_assert_no_error(error);
        g_autoptr(GString) report = g_string_new(NULL);
        exchange_loss_write(&loss, report);
        g_assert_nonnull(strstr(report->str, lines[i][1]));
        g_assert_nonnull(strstr(report->str, "no preset is called nobody/knows-this"));
        orr_json_free(doc);
    }
}

static void test_names(void)
{
    static const char *const names[][2] = {
        {"microsoft/Phi-3-mini-4k-instruct", "phi-3-mini-3.8b"},
        {"microsoft/phi-4", "phi-4-14b"},
        {"google/gemma-7b-it", "gemma-7b"},
        {"google/gemma-2-9b-it", "gemma-2-9b"},
        {"google/gemma-3-1b-pt", "gemma-3-1b"},
        {"THUDM/glm-4-9b-chat", "glm-4-9b"},
        {"zai-org/GLM-4.5-Air", "glm-4.5-air"},
        {"HuggingFaceTB/SmolLM2-1.7B-Instruct", "smollm2-1.7b"},
        {"TinyLlama/TinyLlama-1.1B-Chat-v1.0", "tinyllama-1.1b"},
        {"gpt2", "gpt2-small"},
        {"meta-llama/Meta-Llama-3.1-8B-Instruct", "llama3-8b"},
        {"NousResearch/Llama-2-7b-hf", "llama2-7b"},
        {"torchtune.models.llama2.qlora_llama2_70b", "llama2-70b"},
        {"Qwen/Qwen3-30B-A3B", "qwen3-30b-a3b"},
        {"Qwen/Qwen2-7B-Instruct", "qwen2.5-7b"},
        {"mistralai/Mixtral-8x7B-v0.1", "mixtral-8x7b"},
        {"meta-llama/Llama-4-Scout-17B-16E-Instruct", "llama4-scout-109b"},
        {"bigscience/bloom", "bloom-176b"},
        {"nvidia/Nemotron-4-340B-Base", "nemotron-340b"},
        {"google-bert/bert-large-uncased", "bert-large"},
        {"Qwen/Qwen2.5-Coder-7B-Instruct", "qwen2.5-7b"},
        {"Qwen/Qwen3-30B-A3B-Thinking-2507", "qwen3-30b-a3b"},
        {"Qwen/QwQ-32B", "qwen2.5-32b"},
        {"deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "llama3-70b"},
        {"deepseek-ai/DeepSeek-R1-Distill-Qwen-1.5B", NULL},
        {"lmsys/vicuna-13b-v1.5", "llama2-13b"},
        {"nobody/knows-this", NULL},
        {"", NULL},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        g_autofree char *preset = spec_model_preset(names[i][0]);
        g_assert_cmpstr(preset, ==, names[i][1]);
    }
}

/* What a TRL launch trains is said by the trainer that it starts, however little it says besides. */
static void test_trl_launches(void)
{
    static const char *const rows[][2] = {
        {"trl sft --model_name_or_path Qwen/Qwen3-8B", "\"sft\""},
        {"trl dpo --model_name_or_path Qwen/Qwen3-8B --dataset_name x", "\"dpo\""},
        {"python -m trl.scripts.kto --model_name_or_path Qwen/Qwen3-8B", "\"kto\""},
        {"accelerate launch examples/scripts/orpo.py --model_name_or_path Qwen/Qwen3-8B", "\"orpo\""},
        {"python trl/scripts/reward.py --model_name_or_path Qwen/Qwen3-8B", "\"reward\""},
        {"trl grpo --model_name_or_path Qwen/Qwen3-8B --per_device_train_batch_size 4", NULL},
        {"python trl/scripts/rloo.py --model_name_or_path Qwen/Qwen3-8B", NULL}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(ExchangeLoss) loss;
        GError *error = NULL;
        exchange_loss_init(&loss);
        OrrJsonDoc *doc =
            exchange_import(rows[i][0], strlen(rows[i][0]), "launch.sh", -1, NULL, &loss, &error);
        if (rows[i][1] == NULL) {
            g_assert_null(doc);
            g_assert_nonnull(strstr(error->message, "a loop of TRL that generates"));
            g_clear_error(&error);
            continue;
        }
        g_assert_no_error(error);
        g_autofree char *task =
            orr_json_dump(orr_json_member(orr_json_member(orr_json_root(doc), "training"), "task"));
        g_assert_cmpstr(task, ==, rows[i][1]);
        orr_json_free(doc);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/import-finetune/cases", test_cases);
    g_test_add_func("/import-finetune/epochs", test_epochs);
    g_test_add_func("/import-finetune/warned", test_warned);
    g_test_add_func("/import-finetune/names", test_names);
    g_test_add_func("/import-finetune/trl-launches", test_trl_launches);
    return g_test_run();
}
