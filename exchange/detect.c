/* exchange/detect.c - see detect.h. Tested: unit/exchange/test_import_trainer.c, test_import_scripts.c */
#include "exchange/detect.h"

#include <string.h>

#include "exchange/import_dump.h"
#include "spec/import_hf.h"

/* A word of the text that only one kind of file has. */
static bool holds(const char *text, size_t length, const char *needle)
{
    return g_strstr_len(text, (gssize)length, needle) != NULL;
}

/* "defaults: ../grpo.yaml", as no other program's files have it. */
static bool extends_a_file(const char *text, size_t length)
{
    const char *line = g_strstr_len(text, (gssize)length, "defaults: ");
    const char *end = line != NULL ? memchr(line, '\n', length - (size_t)(line - text)) : NULL;
    return end != NULL && (line == text || line[-1] == '\n') &&
           g_strstr_len(line, (gssize)(end - line), ".yaml") != NULL;
}

/* Which of TRL's trainers a launch starts: "dpo" in "trl dpo", "trl.scripts.dpo", "scripts/dpo.py"; NULL: none that is known.
 * `loops`: those that generate answers as they train. */
static const char *trl_script(const char *text, size_t length, bool loops)
{
    static const char
        *const names[] = {"sft", "dpo", "kto", "reward", "orpo", "cpo"},
               *const that_generate[] = {"grpo", "rloo",       "online_dpo", "ppo",      "nash_md", "xpo",
                                         "gkd",  "dpo_online", "grpo_agent", "grpo_vlm", "rloo_vlm"},
               *const before[] = {"trl ", "trl.scripts.", "scripts/"}, *const behind[] = {" ", "\n", ".py"};
    const char *const *list = loops ? that_generate : names;
    const gsize count = loops ? G_N_ELEMENTS(that_generate) : G_N_ELEMENTS(names);
    for (gsize i = 0; i < count * G_N_ELEMENTS(before) * G_N_ELEMENTS(behind); i++) {
        const char *name = list[i % count];
        g_autofree char *mark = g_strconcat(before[i / count % G_N_ELEMENTS(before)], name,
                                            behind[i / count / G_N_ELEMENTS(before)], NULL);
        if (holds(text, length, mark))
            return name;
    }
    return NULL;
}

/* What the trainer of a TRL launch does by itself: its loss says whether pairs or verdicts are trained on. */
void exchange_settle_trl(const char *text, size_t length, Settings *settings)
{
    static const char *const losses[][2] = {
        {"dpo", "sigmoid"}, {"kto", "kto"}, {"orpo", "orpo"}, {"cpo", "cpo"}};
    const char *script = trl_script(text, length, false);
    if (script != NULL && strcmp(script, "reward") == 0)
        settings_text(settings, "reward_model", "true");
    for (gsize i = 0; script != NULL && i < G_N_ELEMENTS(losses); i++)
        if (strcmp(losses[i][0], script) == 0 && settings_find(settings, "loss_type") == NULL)
            settings_text(settings, "loss_type", losses[i][1]);
}

int exchange_detect(const char *text, size_t length)
{
    size_t start = 0;
    while (start < length && g_ascii_isspace(text[start]))
        start++;
    if (start < length && text[start] == '{') {
        OrrJsonDoc *doc = orr_json_parse(text, length, "file", NULL);
        const OrrJson *root = doc != NULL ? orr_json_root(doc) : NULL;
        const bool hf = root != NULL && spec_is_hf_config(root),
                   peft = root != NULL && orr_json_type(root) == ORR_JSON_OBJECT &&
                          orr_json_member(root, "peft_type") != NULL;
        orr_json_free(doc);
        return hf ? EXCHANGE_FORMAT_HF : peft ? EXCHANGE_FORMAT_PEFT : EXCHANGE_FORMAT_DEEPSPEED;
    }
    if (exchange_is_dump(text, length))
        return EXCHANGE_FORMAT_MEGATRON_BRIDGE;
    if (holds(text, length, "num_generations_per_prompt:") || holds(text, length, "\n  megatron_cfg:") ||
        holds(text, length, "\n  dtensor_cfg:") || holds(text, length, "vllm_cfg:") ||
        extends_a_file(text, length))
        return EXCHANGE_FORMAT_NEMO_RL;
    if (holds(text, length, "actor_rollout_ref."))
        return EXCHANGE_FORMAT_VERL;
    if (holds(text, length, "openrlhf.cli.train_ppo") || holds(text, length, "--vllm_num_engines"))
        return EXCHANGE_FORMAT_OPENRLHF;
    if (holds(text, length, "--rollout-batch-size") && holds(text, length, "--n-samples-per-prompt"))
        return EXCHANGE_FORMAT_SLIME;
    if (holds(text, length, "_component_: torchtune."))
        return EXCHANGE_FORMAT_TORCHTUNE;
    if (holds(text, length, "\nbase_model:") || g_str_has_prefix(text + start, "base_model:"))
        return EXCHANGE_FORMAT_AXOLOTL;
    if (holds(text, length, "finetuning_type:") || holds(text, length, "cutoff_len:"))
        return EXCHANGE_FORMAT_LLAMA_FACTORY;
    if (holds(text, length, "--model_name_or_path") &&
        (holds(text, length, "--per_device_train_batch_size") || trl_script(text, length, false) != NULL))
        return EXCHANGE_FORMAT_TRL;
    if (holds(text, length, "\n[parallelism]") || holds(text, length, "\n[training]") ||
        holds(text, length, "\n[model]"))
        return EXCHANGE_FORMAT_TORCHTITAN;
    if (holds(text, length, "parallelism:\n") || holds(text, length, "batch_accumulation_per_replica"))
        return EXCHANGE_FORMAT_NANOTRON;
    if (holds(text, length, "model.") && holds(text, length, "_parallel_size="))
        return EXCHANGE_FORMAT_MEGATRON_BRIDGE;
    return holds(text, length, "--") ? EXCHANGE_FORMAT_MEGATRON : -1;
}

/* Files of fine-tuning programs that are told apart and not read. Source: [AutoModel] examples, [LlamaFactory] examples, Hugging
 * Face Accelerate */
bool exchange_is_another(const char *text, size_t length, const char *path, GError **error)
{
    static const struct {
        const char *mark, *what;
    } others[] = {
        {"nemo_automodel.", "a recipe of NeMo AutoModel, which is not read; give execution.framework "
                            "nemo-automodel and its sizes in a scenario"},
        {"\nmodel_class:", "a configuration of LLaMA-Factory's v1, which is not read; give its sizes in a "
                           "scenario, or the file of v0"},
        {"compute_environment:",
         "a launch of Accelerate, which says no model and no batch; give the training program's own file"},
        {"\nexport_dir:", "an export of LLaMA-Factory, which trains nothing; give the file of the training"},
        {"\ninfer_backend:",
         "an inference of LLaMA-Factory, which trains nothing; give the file of the training"}};
    if (holds(text, length, "--model_name_or_path") && trl_script(text, length, true) != NULL)
        return !orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: is a loop of TRL that generates answers as it trains, which is not read; write it as a "
            "workload (orrery help workload), or import verl's or NeMo-RL's configuration of it",
            path);
    for (gsize i = 0; i < G_N_ELEMENTS(others); i++)
        if (holds(text, length, others[i].mark))
            return !orr_fail(error, ORR_ERROR_INPUT, "%s: is %s", path, others[i].what);
    return false;
}

static bool says(const char *text, const char *pattern)
{
    return g_regex_match_simple(pattern, text, G_REGEX_MULTILINE | G_REGEX_RAW, 0);
}

void exchange_settle_torchtune(const char *text, Settings *settings)
{
    if (says(text, "^#.*tune run .*_single_device"))
        settings_text(settings, "single_device", "true");
}

bool exchange_trains_nothing(const char *text, size_t length, const char *path, GError **error)
{
    g_autofree char *copy = g_strndup(text, length);
    const char *what = NULL;
    if (holds(text, length, "_component_: torchtune.") && !says(copy, "^optimizer") &&
        says(copy, "^(tasks|max_new_tokens|quantizer):"))
        what =
            "an evaluation, a generation or a quantization of torchtune, which trains nothing; give the file "
            "of the training";
    else if (says(copy, "^do_predict: *[Tt]rue") && !says(copy, "^do_train: *[Tt]rue"))
        what = "a prediction of LLaMA-Factory, which trains nothing; give the file of the training";
    else if (says(copy, "^stage: *ppo\\b") && !holds(text, length, "\nbase_model:"))
        what =
            "a loop of LLaMA-Factory that generates answers as it trains, which is not read; write it as a "
            "workload (orrery help workload)";
    return what != NULL && !orr_fail(error, ORR_ERROR_INPUT, "%s: is %s", path, what);
}
