/* spec/model_names.c - see model_names.h. Tested: unit/exchange/test_import_finetune.c */
#include "spec/model_names.h"

#include <string.h>

#include "spec/resolve.h"

static bool changes_no_shape(const char *word)
{
    static const char *const words[] = {
        "meta", "hf",   "instruct", "chat", "base",  "it",   "lora",     "qlora",   "v0.1", "v0.2",
        "v0.3", "2507", "0324",     "bnb",  "4bit",  "8bit", "bf16",     "gptq",    "awq",  "fp8",
        "int4", "0528", "nf4",      "v1.0", "coder", "math", "thinking", "preview", "pt"};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

/* Versions that have the shapes of another one: Llama 3.1 and 3.3 those of 3, Qwen 2 those of 2.5, distilled and tuned ones
 * those of what they began with; and names without the size that a preset's has. The distilled Qwen 1.5B unties its head. */
static const char *const same_shape[][2] = {
    {"llama318b", "llama38b"},
    {"llama3170b", "llama370b"},
    {"llama3370b", "llama370b"},
    {"llama31405b", "llama3405b"},
    {"qwen205b", "qwen2505b"},
    {"qwen215b", "qwen2515b"},
    {"deepseekr1", "deepseekv3"},
    {"qwen27b", "qwen257b"},
    {"qwen272b", "qwen2572b"},
    {"phi3mini", "phi3mini38b"},
    {"phi3mini4k", "phi3mini38b"},
    {"phi3mini128k", "phi3mini38b"},
    {"phi4", "phi414b"},
    {"gpt2", "gpt2small"},
    {"qwq32b", "qwen2532b"},
    {"bloom", "bloom176b"},
    {"bertlargeuncased", "bertlarge"},
    {"nemotron4340b", "nemotron340b"},
    {"zephyr7bbeta", "mistral7b"},
    {"vicuna7bv15", "llama27b"},
    {"vicuna13bv15", "llama213b"},
    {"llama4scout17b16e", "llama4scout109b"},
    {"llama4maverick17b128e", "llama4maverick400b"},
    {"deepseekr1distillqwen7b", "qwen257b"},
    {"deepseekr1distillqwen14b", "qwen2514b"},
    {"deepseekr1distillqwen32b", "qwen2532b"},
    {"deepseekr1distillllama8b", "llama38b"},
    {"deepseekr1distillllama70b", "llama370b"},
};

/* "llama38b" of "Meta-Llama-3.1-8B-Instruct". */
static char *normal(const char *name)
{
    const char *slash = strrchr(name, '/'), *last = slash != NULL ? slash + 1 : name;
    const char *dot = g_str_has_prefix(last, "torchtune.") ? strrchr(last, '.') : NULL;
    g_autofree char *low = g_ascii_strdown(dot != NULL ? dot + 1 : last, -1);
    g_auto(GStrv) words = g_strsplit_set(low, "-_ ", -1);
    g_autoptr(GString) text = g_string_new(NULL);
    for (char **word = words; *word != NULL; word++)
        for (const char *c = *word; !changes_no_shape(*word) && *c != '\0'; c++)
            if (g_ascii_isalnum(*c))
                g_string_append_c(text, *c);
    for (gsize i = 0; i < G_N_ELEMENTS(same_shape); i++)
        if (strcmp(text->str, same_shape[i][0]) == 0)
            return g_strdup(same_shape[i][1]);
    return g_strdup(text->str);
}

char *spec_model_preset(const char *name)
{
    g_autofree char *wanted = normal(name);
    g_autoptr(GPtrArray) presets = spec_preset_names("models", NULL);
    for (guint i = 0; presets != NULL && i < presets->len; i++) {
        const char *preset = g_ptr_array_index(presets, i);
        g_autofree char *own = normal(preset);
        if (strcmp(own, wanted) == 0)
            return g_strdup(preset);
    }
    return NULL;
}
