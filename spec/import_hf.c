/* spec/import_hf.c - Hugging Face config.json to a model object: which family it is, its name, what is left unread. */
#include "spec/import_hf_internal.h"

#include <string.h>

static const SpecHfFamily families[] = {
    {.type = "llama"},
    {.type = "mistral", .biases = "none"},
    {.type = "mixtral", .kind = SPEC_HF_MIXTRAL, .biases = "none"},
    {.type = "qwen2", .biases = "qkv"},
    {.type = "qwen3", .qk_norm = true},
    {.type = "qwen2_moe", .kind = SPEC_HF_QWEN_MOE, .biases = "qkv"},
    {.type = "qwen3_moe", .kind = SPEC_HF_QWEN_MOE, .qk_norm = true},
    {.type = "deepseek_v2", .kind = SPEC_HF_DEEPSEEK},
    {.type = "deepseek_v3", .kind = SPEC_HF_DEEPSEEK},
    {.type = "kimi_k2", .kind = SPEC_HF_DEEPSEEK},
    {.type = "gpt_oss", .kind = SPEC_HF_GPT_OSS, .biases = "all"},
    {.type = "gemma", .tied = true},
    {.type = "gemma2", .tied = true, .extra_norms = 2},
    {.type = "gemma3_text",
     .tied = true,
     .qk_norm = true,
     .extra_norms = 2,
     .heads = 8,
     .kv_heads = 4,
     .head_dim = 256,
     .vocab = 262208},
    {.type = "glm"},
    {.type = "glm4", .extra_norms = 2},
    {.type = "glm4_moe", .kind = SPEC_HF_GLM_MOE},
    {.type = "llama4_text", .kind = SPEC_HF_LLAMA4},
    {.type = "hunyuan_v1_moe", .kind = SPEC_HF_HUNYUAN, .qk_norm = true},
    {.type = "phi", .biases = "all", .plain_mlp = true, .layernorm = true, .parallel = true},
    {.type = "phi3", .biases = "none"},
    {.type = "phimoe", .kind = SPEC_HF_MIXTRAL, .layernorm = true},
    {.type = "olmo2", .qk_norm = true},
    {.type = "olmo3", .qk_norm = true},
    {.type = "olmoe", .kind = SPEC_HF_QWEN_MOE, .qk_norm = true},
    {.type = "gpt_neox", .biases = "all", .plain_mlp = true, .layernorm = true},
    {.type = "falcon", .plain_mlp = true, .layernorm = true, .tied = true},
    {.type = "nemotron", .plain_mlp = true, .layernorm = true},
    {.type = "granite"},
    {.type = "seed_oss", .biases = "qkv"},
    {.type = "smollm3", .tied = true},
    {.type = "internlm2", .biases = "none"},
    {.type = "exaone4", .qk_norm = true},
    {.type = "starcoder2", .biases = "all", .plain_mlp = true, .layernorm = true, .tied = true},
    {.type = "cohere", .layernorm = true, .tied = true, .parallel = true},
    {.type = "minimax_m2", .kind = SPEC_HF_MIXTRAL},
    {.type = "ernie4_5_moe", .kind = SPEC_HF_GLM_MOE, .tied = true},
    {.type = "deepseek_v32", .kind = SPEC_HF_DEEPSEEK},
    {.type = "qwen2_vl", .biases = "qkv"},
    {.type = "qwen2_vl_text", .biases = "qkv"},
    {.type = "qwen2_5_vl", .biases = "qkv"},
    {.type = "qwen2_5_vl_text", .biases = "qkv"},
    {.type = "qwen3_vl_text", .qk_norm = true},
    {.type = "qwen3_vl_moe_text", .kind = SPEC_HF_QWEN_MOE, .qk_norm = true},
};

bool spec_is_hf_config(const OrrJson *root)
{
    static const char *const marks[] = {"model_type", "architectures", "hidden_size", "n_embd",
                                        "text_config"};
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++)
        if (orr_json_member(root, marks[i]) != NULL)
            return true;
    return false;
}

/* Layers that are no attention: state-space, linear attention, convolution. A scenario has none of them. */
static const char *recurrent_layers(const SpecHf *import, const char *type)
{
    static const char *const types[] = {"nemotron_h",      "qwen3_next", "mamba", "mamba2",
                                        "falcon_mamba",    "falcon_h1",  "jamba", "bamba",
                                        "zamba",           "zamba2",     "rwkv",  "granitemoehybrid",
                                        "recurrent_gemma", "minimax",    "lfm2",  "kimi_linear"};
    static const char *const keys[] = {"mamba_d_state",           "ssm_state_size",
                                       "mamba_num_heads",         "linear_num_key_heads",
                                       "hybrid_override_pattern", "linear_attn_config"};
    for (gsize i = 0; i < G_N_ELEMENTS(types); i++)
        if (strcmp(types[i], type) == 0)
            return types[i];
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const OrrJson *node = orr_json_member(import->config, keys[i]);
        if (node != NULL && orr_json_type(node) != ORR_JSON_NULL)
            return keys[i];
    }
    return NULL;
}

/* "text_config" of files that describe a model for pictures and text. */
static void enter_text_model(SpecHf *import)
{
    const OrrJson *text = orr_json_member(import->config, "text_config");
    import->flat_towers = text == NULL && orr_json_member(import->config, "vision_config") != NULL;
    if (text == NULL || orr_json_type(text) != ORR_JSON_OBJECT)
        return;
    const OrrJson *type = orr_json_member(import->config, "model_type");
    g_autofree char *shown = type != NULL ? orr_json_show(type) : g_strdup("the file");
    spec_hf_change(import, "%s: the text model alone; towers for pictures or sound are left out", shown);
    import->config = text;
}

/* NULL for types that are read apart: GPT-2, and those with an encoder. */
static const SpecHfFamily *find_family(SpecHf *import, const char **ret_apart)
{
    const OrrJson *node = spec_hf_find(import, "model_type");
    const char *type = node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : "";
    const char *lacks = recurrent_layers(import, type);
    *ret_apart = spec_hf_is_gpt2(type) || spec_hf_has_encoder(type) ? type : NULL;
    if (lacks != NULL) {
        import->failed = true;
        orr_fail(
            import->error, ORR_ERROR_INPUT,
            "%s: %.40s: has layers of state-space or linear attention, which a scenario cannot describe yet; "
            "give a model whose layers are attention and MLP",
            import->path, lacks);
        return NULL;
    }
    for (guint i = 0; i < G_N_ELEMENTS(families); i++)
        if (strcmp(families[i].type, type) == 0)
            return &families[i];
    if (*ret_apart == NULL) {
        g_autoptr(GString) text = g_string_new("one of ");
        spec_hf_name_gpt2(text);
        for (guint i = 0; i < G_N_ELEMENTS(families); i++)
            g_string_append_printf(text, ", %s", families[i].type);
        spec_hf_name_encoders(text);
        g_string_append(text, ", or write the model's own keys (orrery help model)");
        spec_hf_fail(import, "model_type", node, text->str);
    }
    return NULL;
}

/* .../Llama-3-8B/config.json is "Llama-3-8B". */
static char *model_name(const SpecHf *import)
{
    const OrrJson *given = spec_hf_find(import, "_name_or_path");
    if (given != NULL && orr_json_type(given) == ORR_JSON_TEXT && orr_json_text(given)[0] != '\0')
        return g_path_get_basename(orr_json_text(given));
    g_autofree char *file = g_path_get_basename(import->path);
    if (strcmp(file, "config.json") != 0) {
        if (g_str_has_suffix(file, ".json"))
            file[strlen(file) - strlen(".json")] = '\0';
        return g_steal_pointer(&file);
    }
    g_autofree char *folder = g_path_get_dirname(import->path),
                    *absolute = g_canonicalize_filename(folder, NULL);
    return g_path_get_basename(absolute);
}

/* Every key of the file is used, known to change no step, or named. */
static void sort_rest(SpecHf *import)
{
    enum { MOST = 40 };
    g_autoptr(GString) names = g_string_new(NULL);
    int said = 0;
    if (import->changes == NULL)
        return;
    for (const OrrJson *node = orr_json_first(import->config); node != NULL; node = orr_json_next(node)) {
        g_autofree char *key = g_strndup(orr_json_key(node), 80);
        if (orr_json_type(node) == ORR_JSON_NULL || g_hash_table_contains(import->used, orr_json_key(node)))
            continue;
        if (spec_hf_changes_no_step(key, node))
            g_ptr_array_add(import->harmless, g_steal_pointer(&key));
        else if (said++ < MOST)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "", key);
    }
    if (said > MOST)
        g_string_append_printf(names, " and %d more", said - MOST);
    if (said > 0)
        spec_hf_change(import, "no field of a model answers to, and may change it: %s", names->str);
}

OrrJsonDoc *spec_import_hf_said(const OrrJson *root, const char *path, GPtrArray *changes,
                                GPtrArray *harmless, GError **error)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autoptr(GHashTable) used = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    SpecHf import = {
        .config = root, .path = path, .used = used, .changes = changes, .harmless = harmless, .error = error};
    orr_jw_init(&import.out, text, true);
    g_autofree char *name = model_name(&import);
    enter_text_model(&import);
    const char *apart = NULL;
    const SpecHfFamily *family = find_family(&import, &apart);
    if (import.failed)
        return NULL;
    orr_jw_begin(&import.out, NULL, '{');
    orr_jw_text(&import.out, "name", name);
    if (apart != NULL && spec_hf_has_encoder(apart))
        spec_hf_encoder(&import, apart);
    else if (apart != NULL)
        spec_hf_gpt2(&import, apart);
    else
        spec_hf_llama(&import, family);
    orr_jw_end(&import.out, '}');
    if (import.failed)
        return NULL;
    sort_rest(&import);
    return orr_json_parse(text->str, text->len, path, error);
}

OrrJsonDoc *spec_import_hf(const OrrJson *root, const char *path, GError **error)
{
    return spec_import_hf_said(root, path, NULL, NULL, error);
}
