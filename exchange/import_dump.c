/* exchange/import_dump.c - see import_dump.h. Tested: unit/exchange/test_import_scripts.c
 * Sources: megatron/bridge/training/utils/config_utils.py and mixed_precision.py; NeMo's lightning/pytorch/strategies
 * and plugins (megatron_strategy.py, mixed_precision.py). */
#include "exchange/import_dump.h"

#include <string.h>

#include "spec/model_names.h"

static bool holds(const char *text, size_t length, const char *what)
{
    return g_strstr_len(text, (gssize)length, what) != NULL;
}

bool exchange_is_dump(const char *text, size_t length)
{
    return holds(text, length, "_target_: megatron.bridge.") || holds(text, length, "_target_: nemo.");
}

static char *value_of(const Settings *settings, const char *key)
{
    char *value = NULL;
    for (guint i = 0; i < settings->list->len; i++) {
        const Setting *setting = &g_array_index(settings->list, Setting, i);
        if (strcmp(setting->key, key) == 0)
            value = setting->value;
    }
    return value;
}

static bool is_on(const Settings *settings, const char *section, const char *key)
{
    g_autofree char *path = g_strconcat(section, key, NULL);
    const char *value = value_of(settings, path);
    return value != NULL && g_ascii_strcasecmp(value, "true") == 0;
}

/* The name that Megatron-Bridge has for the precision that an object's members say; `section` ends in a dot. */
static const char *precision_of(const Settings *settings, const char *section)
{
    static const char *const recipes[][2] = {
        {"delayed", "bf16_with_fp8_delayed_scaling_mixed"},
        {"tensorwise", "bf16_with_fp8_current_scaling_mixed"},
        {"blockwise", "bf16_with_fp8_subchannel_scaling_mixed"},
        {"mxfp8", "bf16_with_mxfp8_mixed"},
    };
    g_autofree char *fp8 = g_strconcat(section, "fp8", NULL),
                    *recipe = g_strconcat(section, "fp8_recipe", NULL),
                    *fp4 = g_strconcat(section, "fp4", NULL), *word = g_strconcat(section, "precision", NULL);
    const char *scaling = value_of(settings, recipe), *precision = value_of(settings, word);
    if (value_of(settings, fp4) != NULL)
        return "bf16_with_nvfp4_mixed";
    for (gsize i = 0; value_of(settings, fp8) != NULL && i < G_N_ELEMENTS(recipes); i++)
        if (strcmp(scaling != NULL ? scaling : "delayed", recipes[i][0]) == 0)
            return recipes[i][1];
    if (is_on(settings, section, "bf16") || g_strcmp0(precision, "bf16-mixed") == 0)
        return "bf16_mixed";
    return is_on(settings, section, "fp16") || g_strcmp0(precision, "16-mixed") == 0 ? "fp16_mixed" : NULL;
}

static void take_precision(Settings *settings)
{
    static const char *const sections[] = {"mixed_precision.", "trainer.plugins.", "plugins.", "model."};
    for (gsize i = 0; i < G_N_ELEMENTS(sections); i++) {
        const char *name = precision_of(settings, sections[i]);
        if (value_of(settings, "mixed_precision") == NULL && name != NULL)
            settings_text(settings, "mixed_precision", name);
        for (guint k = 0; k < settings->list->len; k++) { /* said by that name */
            Setting *setting = &g_array_index(settings->list, Setting, k);
            const char *const words[] = {"bf16", "fp16", "fp8", "fp8_recipe", "fp4", "precision"};
            for (gsize w = 0; w < G_N_ELEMENTS(words); w++)
                setting->used = setting->used || (g_str_has_prefix(setting->key, sections[i]) &&
                                                  strcmp(setting->key + strlen(sections[i]), words[w]) == 0);
        }
    }
}

/* NeMo 2's sections; the longer first where one begins with another. */
static void rename_sections(Settings *settings)
{
    static const char *const sections[][2] = {
        {"trainer.strategy.ddp.", "ddp."},
        {"trainer.strategy.", "model."},
        {"trainer.num_nodes", "num_nodes"},
        {"trainer.devices", "num_gpus"},
        {"trainer.max_steps", "train.train_iters"},
        {"data.micro_batch_size", "train.micro_batch_size"},
        {"data.global_batch_size", "train.global_batch_size"},
        {"data.seq_length", "model.seq_length"},
        {"dataset.seq_length", "model.seq_length"},
        {"dataset.sequence_length", "model.seq_length"},
        {"model.config.", "model."},
        {"optim.config.", "optimizer."},
    };
    for (guint i = 0; i < settings->list->len; i++) {
        Setting *setting = &g_array_index(settings->list, Setting, i);
        for (gsize k = 0; k < G_N_ELEMENTS(sections); k++)
            if (g_str_has_prefix(setting->key, sections[k][0])) {
                char *key = g_strconcat(sections[k][1], setting->key + strlen(sections[k][0]), NULL);
                g_free(setting->key);
                setting->key = key;
                break;
            }
    }
}

/* "nemo.collections.llm.gpt.model.llama.Llama3Config8B" as a preset's name; NULL: none. */
static char *preset_of(const char *target)
{
    static const char *const words[] = {"Config", "ModelProvider", "Provider", "Model"};
    const char *dot = strrchr(target, '.');
    g_autofree char *name = g_strdup(dot != NULL ? dot + 1 : target);
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++) {
        char *at = strstr(name, words[i]);
        if (at != NULL)
            memmove(at, at + strlen(words[i]), strlen(at + strlen(words[i])) + 1);
    }
    return spec_model_preset(name);
}

/* Classes and how they are called say nothing more once the model and the precision are known. */
static void drop_classes(Settings *settings)
{
    static const char *const ends[] = {"_target_", "_partial_", "_call_", "_name_"};
    Setting *list = (Setting *)(void *)settings->list->data;
    guint kept = 0;
    for (guint i = 0; i < settings->list->len; i++) {
        bool of_class = false;
        for (gsize k = 0; k < G_N_ELEMENTS(ends); k++)
            of_class = of_class || g_str_has_suffix(list[i].key, ends[k]);
        if (of_class)
            continue;
        const Setting dropped = list[kept];
        list[kept++] = list[i];
        list[i] = dropped;
    }
    g_array_set_size(settings->list, kept);
}

void exchange_dump_settle(Settings *settings)
{
    const char *target = value_of(settings, "model.config._target_");
    if (target == NULL)
        target = value_of(settings, "model._target_");
    g_autofree char *preset = target != NULL ? preset_of(target) : NULL;
    take_precision(settings);
    rename_sections(settings);
    drop_classes(settings);
    if (preset != NULL && value_of(settings, "model.num_attention_heads") == NULL)
        settings_text(settings, "orrery.preset", preset);
}

bool exchange_is_python(const char *text, const char *path)
{
    return g_str_has_suffix(path, ".py") || g_str_has_prefix(text, "from megatron.bridge") ||
           g_str_has_prefix(text, "from nemo");
}

void exchange_refuse_python(const char *path, const char *text, size_t length, GError **error)
{
    if (holds(text, length, "nemo_run") || holds(text, length, "from nemo"))
        orr_fail(error, ORR_ERROR_INPUT,
                 "%s: is a recipe in Python, which NeMo alone can run; write it as YAML by nemo llm pretrain "
                 "--factory RECIPE --to-yaml FILE.yaml and import that file",
                 path);
    else if (holds(text, length, "megatron.bridge"))
        orr_fail(error, ORR_ERROR_INPUT,
                 "%s: is a recipe in Python, which Megatron-Bridge alone can run; write its configuration by "
                 "cfg.to_yaml(\"FILE.yaml\") and import that file",
                 path);
    else
        orr_fail(error, ORR_ERROR_INPUT,
                 "%s: is a program in Python; import the configuration or the command line that it is "
                 "started with",
                 path);
}
