/* spec/import_hf.c - Hugging Face config.json to a model object. Key names: transformers' configuration classes. */
#include "spec/import_hf_internal.h"

#include <math.h>
#include <string.h>

/* --- GPT-2 --- */

static void import_gpt2(HfImport *import)
{
    const int64_t hidden = spec_hf_whole(import, "n_embd|hidden_size", -1);
    spec_hf_put_required(import, "layers", "n_layer|num_hidden_layers");
    spec_hf_put(import, "hidden", hidden);
    spec_hf_put_required(import, "heads", "n_head|num_attention_heads");
    spec_hf_put(import, "ffn_hidden", spec_hf_whole(import, "n_inner", 4 * MAX(hidden, 0)));
    spec_hf_put_required(import, "vocab", "vocab_size");
    spec_hf_put(import, "max_positions",
                spec_hf_whole(import, "n_positions|n_ctx|max_position_embeddings", 1024));
    orr_jw_bool(&import->out, "gated_mlp", false);
    orr_jw_bool(&import->out, "tied_embeddings", spec_hf_flag(import, "tie_word_embeddings", true));
    orr_jw_text(&import->out, "norm", "layernorm");
    orr_jw_bool(&import->out, "biases", true);
    orr_jw_text(&import->out, "position", "learned");
    const OrrJson *dropout = spec_hf_find(import, "resid_pdrop");
    if (dropout != NULL && orr_json_type(dropout) == ORR_JSON_NUMBER)
        orr_jw_number(&import->out, "dropout_frac", orr_json_number(dropout));
}

/* --- Llama and its kin: RMSNorm, rotary positions, gated MLP --- */

typedef enum { HF_DENSE, HF_MIXTRAL, HF_QWEN_MOE, HF_DEEPSEEK, HF_GPT_OSS, HF_GLM_MOE, HF_LLAMA4 } HfKind;

typedef struct HfFamily {
    const char *type; /* "model_type" */
    HfKind kind;
    const char *biases; /* NULL: from attention_bias and mlp_bias */
    bool qk_norm;
    bool plain_mlp;                       /* two matrices, not gated */
    bool layernorm;                       /* else RMSNorm */
    bool tied;                            /* unless the file says */
    int extra_norms;                      /* of a layer's hidden size, beyond two */
    bool parallel;                        /* attention and MLP read one norm */
    int heads, kv_heads, head_dim, vocab; /* of files that leave them to the class; 0: files say them */
} HfFamily;

static const HfFamily families[] = {
    {.type = "llama"},
    {.type = "mistral", .biases = "none"},
    {.type = "mixtral", .kind = HF_MIXTRAL, .biases = "none"},
    {.type = "qwen2", .biases = "qkv"},
    {.type = "qwen3", .qk_norm = true},
    {.type = "qwen2_moe", .kind = HF_QWEN_MOE, .biases = "qkv"},
    {.type = "qwen3_moe", .kind = HF_QWEN_MOE, .qk_norm = true},
    {.type = "deepseek_v2", .kind = HF_DEEPSEEK},
    {.type = "deepseek_v3", .kind = HF_DEEPSEEK},
    {.type = "kimi_k2", .kind = HF_DEEPSEEK},
    {.type = "gpt_oss", .kind = HF_GPT_OSS, .biases = "all"},
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
    {.type = "glm4_moe", .kind = HF_GLM_MOE},
    {.type = "llama4_text", .kind = HF_LLAMA4},
    {.type = "phi", .biases = "all", .plain_mlp = true, .layernorm = true, .parallel = true},
    {.type = "phi3", .biases = "none"},
    {.type = "phimoe", .kind = HF_MIXTRAL, .layernorm = true},
    {.type = "olmo2", .qk_norm = true},
    {.type = "olmo3", .qk_norm = true},
    {.type = "olmoe", .kind = HF_QWEN_MOE, .qk_norm = true},
    {.type = "gpt_neox", .biases = "all", .plain_mlp = true, .layernorm = true},
    {.type = "falcon", .plain_mlp = true, .layernorm = true, .tied = true},
    {.type = "nemotron", .plain_mlp = true, .layernorm = true},
};

static void import_biases(HfImport *import, const HfFamily *family)
{
    const bool whole_layer =
        spec_hf_flag(import, strcmp(family->type, "falcon") == 0 ? "bias" : "use_bias", false);
    const bool attention = spec_hf_flag(import, "attention_bias", false) || whole_layer,
               mlp = spec_hf_flag(import, "mlp_bias", false) || whole_layer;
    const char *biases = family->biases;
    if (biases == NULL)
        biases = attention ? (mlp ? "all" : "qkv") : (mlp ? "mlp" : "none");
    orr_jw_text(&import->out, "biases", biases);
}

static double yarn_scale(double factor, double weight)
{
    return factor > 1 ? 1 + 0.1 * weight * log(factor) : 1;
}

/* YaRN multiplies cosines and sines by 1 + ln(factor) / 10 unless the file says what by. DeepSeek's files give two
 * weights of that logarithm, for positions and for attention's scale, and only their ratio goes with the positions.
 * Source: [Transformers] modeling_rope_utils.py (_compute_yarn_parameters) */
static bool scales_rope(HfImport *import)
{
    const OrrJson *scaling = spec_hf_find(import, "rope_scaling");
    if (scaling == NULL)
        scaling = spec_hf_find(import, "rope_parameters");
    if (scaling == NULL || orr_json_type(scaling) != ORR_JSON_OBJECT)
        return false;
    const OrrJson *type = orr_json_member(scaling, "rope_type");
    if (type == NULL)
        type = orr_json_member(scaling, "type");
    if (type == NULL || orr_json_type(type) != ORR_JSON_TEXT || strcmp(orr_json_text(type), "yarn") != 0)
        return false;
    const double factor = spec_hf_real(scaling, "factor", 2), weight = spec_hf_real(scaling, "mscale", 0),
                 whole_weight = spec_hf_real(scaling, "mscale_all_dim", 0);
    const double scale = weight > 0 && whole_weight > 0
                             ? yarn_scale(factor, weight) / yarn_scale(factor, whole_weight)
                             : yarn_scale(factor, 1);
    return fabs(spec_hf_real(scaling, "attention_factor", scale) - 1) > 0;
}

/* Of files that give no list of layers, one layer in so many has no window; 0: by the list, or all have one. */
static int64_t family_pattern(HfImport *import)
{
    const OrrJson *type = spec_hf_find(import, "model_type");
    const char *name = type != NULL && orr_json_type(type) == ORR_JSON_TEXT ? orr_json_text(type) : "";
    return strcmp(name, "gemma2") == 0 ? 2 : strcmp(name, "gemma3_text") == 0 ? 6 : 0;
}

/* Every second layer in gpt-oss; every layer in Mistral; none where use_sliding_window is false (Qwen). */
static void import_window(HfImport *import)
{
    const int64_t window = spec_hf_whole(import, "sliding_window", 0);
    if (window <= 0 || !spec_hf_flag(import, "use_sliding_window", true))
        return;
    int64_t every = 1;
    const int64_t pattern = spec_hf_whole(import, "sliding_window_pattern", family_pattern(import));
    const OrrJson *types = spec_hf_find(import, "layer_types");
    if (types != NULL && orr_json_type(types) == ORR_JSON_LIST) {
        int sliding = 0, count = 0;
        for (const OrrJson *type = orr_json_first(types); type != NULL; type = orr_json_next(type), count++)
            sliding +=
                orr_json_type(type) == ORR_JSON_TEXT && strcmp(orr_json_text(type), "sliding_attention") == 0;
        if (sliding == 0)
            return;
        every = MAX(1, (count + sliding / 2) / sliding);
        if (sliding * every != count)
            spec_hf_change(
                import, "layer_types: %d of %d layers have a window; a scenario has every n-th, here n = %d",
                sliding, count, (int)every);
    } else if (pattern == 2) { /* Gemma 2: every second layer */
        every = 2;
    } else if (pattern > 2) {
        spec_hf_change(
            import,
            "sliding_window_pattern: %d: one layer in so many sees everything; a scenario has every n-th "
            "windowed layer, here all",
            (int)pattern);
    }
    spec_hf_put(import, "attention_window_tokens", window);
    spec_hf_put(import, "attention_window_every", every);
}

/* Layers that a list such as mlp_only_layers names, when they are the leading ones; else an error. */
static int64_t leading_layers(HfImport *import, const char *key)
{
    const OrrJson *list = spec_hf_find(import, key);
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return 0;
    int64_t expected = 0;
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item), expected++) {
        if (orr_json_type(item) != ORR_JSON_NUMBER || fabs(orr_json_number(item) - (double)expected) > 0) {
            spec_hf_fail(import, key, list, "leading layers only ([0, 1, ...]); others cannot be described");
            return 0;
        }
    }
    return expected;
}

/* Group-limited routing; greedy routers have groups in their files too and ignore them. */
static void import_groups(HfImport *import)
{
    const OrrJson *method = spec_hf_find(import, "topk_method");
    const bool greedy = method != NULL && orr_json_type(method) == ORR_JSON_TEXT &&
                        strcmp(orr_json_text(method), "greedy") == 0;
    const int64_t groups = spec_hf_whole(import, "n_group", 0), top = spec_hf_whole(import, "topk_group", 0);
    if (greedy || groups <= 1 || top <= 0 || top > groups)
        return;
    spec_hf_put(import, "router_groups", groups);
    spec_hf_put(import, "router_top_groups", top);
}

static void import_moe(HfImport *import, HfKind kind)
{
    const int64_t experts = spec_hf_whole(import, "n_routed_experts|num_experts|num_local_experts", -1);
    const int64_t expert_ffn = spec_hf_whole(
        import, kind == HF_LLAMA4 ? "intermediate_size" : "moe_intermediate_size|intermediate_size", -1);
    const int64_t shared_ffn = spec_hf_whole(import, "shared_expert_intermediate_size", 0);
    const int64_t shared =
        spec_hf_whole(import, "n_shared_experts", shared_ffn > 0 || kind == HF_LLAMA4 ? 1 : 0);
    orr_jw_begin(&import->out, "moe", '{');
    spec_hf_put(import, "experts", experts);
    spec_hf_put_required(import, "top_k", "num_experts_per_tok|experts_per_token");
    spec_hf_put(import, "expert_ffn_hidden", expert_ffn);
    spec_hf_put(import, "shared_experts", shared);
    if (shared_ffn > 0)
        spec_hf_put(import, "shared_expert_ffn_hidden", shared_ffn);
    spec_hf_put(import, "dense_layers",
                kind == HF_DEEPSEEK || kind == HF_GLM_MOE ? spec_hf_whole(import, "first_k_dense_replace", 0)
                                                          : leading_layers(import, "mlp_only_layers"));
    spec_hf_put(
        import, "layer_step",
        MAX(1, spec_hf_whole(import, "moe_layer_freq|decoder_sparse_step|interleave_moe_layer_step", 1)));
    import_groups(import);
    orr_jw_end(&import->out, '}');
}

static void import_mla(HfImport *import)
{
    orr_jw_begin(&import->out, "mla", '{');
    spec_hf_put(import, "q_lora_rank", spec_hf_whole(import, "q_lora_rank", 0));
    spec_hf_put_required(import, "kv_lora_rank", "kv_lora_rank");
    spec_hf_put_required(import, "qk_nope_head_dim", "qk_nope_head_dim");
    spec_hf_put_required(import, "qk_rope_head_dim", "qk_rope_head_dim");
    spec_hf_put_required(import, "v_head_dim", "v_head_dim");
    orr_jw_end(&import->out, '}');
}

static double dropout(HfImport *import)
{
    static const char *const keys[] = {"hidden_dropout", "resid_pdrop", "residual_dropout"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
        const OrrJson *node = spec_hf_find(import, keys[i]);
        if (node != NULL && orr_json_type(node) == ORR_JSON_NUMBER && orr_json_number(node) > 0 &&
            orr_json_number(node) < 1)
            return orr_json_number(node);
    }
    return 0;
}

/* Queries, keys and values; what the layers of a family have that a model has no field for. */
static void import_heads(HfImport *import, const HfFamily *family, int64_t hidden, int64_t heads)
{
    const bool falcon = strcmp(family->type, "falcon") == 0;
    const bool shared = falcon && spec_hf_flag(import, "multi_query", true) &&
                        !spec_hf_flag(import, "new_decoder_architecture", false);
    const char *head_key = family->kind == HF_DEEPSEEK ? "v_head_dim" : "head_dim";
    int64_t kv = heads;
    if (family->kind != HF_DEEPSEEK)
        kv = shared ? 1
                    : spec_hf_whole(import, falcon ? "num_kv_heads" : "num_key_value_heads",
                                    family->kv_heads > 0 ? family->kv_heads : heads);
    spec_hf_put(import, "kv_heads", kv);
    const int64_t divided = heads > 0 ? MAX(hidden, 0) / heads : 0;
    spec_hf_put(import, "head_dim",
                spec_hf_whole(import, head_key, family->head_dim > 0 ? family->head_dim : divided));
}

static void say_layers(HfImport *import, const HfFamily *family)
{
    static const char *const caps[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    if (family->extra_norms > 0)
        spec_hf_change(
            import,
            "%s: %d more norms a layer than a model has: their time and parameters (under 0.1 %%) are "
            "left out",
            family->type, family->extra_norms);
    if (family->parallel ||
        (strcmp(family->type, "falcon") == 0 && spec_hf_flag(import, "parallel_attn", true)) ||
        spec_hf_flag(import, "use_parallel_residual", false))
        spec_hf_change(import, "%s: attention and MLP run on one input; simulated one behind the other",
                       family->type);
    for (gsize i = 0; i < G_N_ELEMENTS(caps); i++)
        if (spec_hf_real(import->config, caps[i], 0) > 0 && spec_hf_find(import, caps[i]) != NULL)
            spec_hf_change(import, "%s: logits are capped; the kernel for it is not simulated", caps[i]);
    static const char *const parts[] = {"partial_rotary_factor", "rotary_pct"};
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        if (spec_hf_find(import, parts[i]) != NULL && spec_hf_real(import->config, parts[i], 1) < 1)
            spec_hf_change(import, "%s: heads are rotated in part; simulated as rotated whole", parts[i]);
    if (spec_hf_whole(import, "attention_chunk_size", 0) > 0)
        spec_hf_change(
            import, "attention_chunk_size: layers that attend inside chunks are simulated as full attention");
    if (strcmp(family->type, "falcon") == 0 && spec_hf_flag(import, "alibi", false))
        spec_hf_change(import, "alibi: taken as rotary positions");
    if (spec_hf_flag(import, "lm_head_bias", false))
        spec_hf_change(import, "lm_head_bias: the LM head's bias is left out");
}

static void import_llama(HfImport *import, const HfFamily *family)
{
    const int64_t hidden = spec_hf_whole(import, "hidden_size", -1),
                  heads =
                      spec_hf_whole(import, "num_attention_heads", family->heads > 0 ? family->heads : -1);
    const bool moe = family->kind != HF_DENSE &&
                     (family->kind != HF_DEEPSEEK || spec_hf_find(import, "n_routed_experts") != NULL);
    const bool falcon = strcmp(family->type, "falcon") == 0;
    spec_hf_put_required(import, "layers", "num_hidden_layers");
    spec_hf_put(import, "hidden", hidden);
    spec_hf_put(import, "heads", heads);
    import_heads(import, family, hidden, heads);
    if (falcon)
        spec_hf_put(import, "ffn_hidden", spec_hf_whole(import, "ffn_hidden_size", 4 * MAX(hidden, 0)));
    else
        spec_hf_put_required(import, "ffn_hidden",
                             family->kind == HF_LLAMA4 ? "intermediate_size_mlp" : "intermediate_size");
    spec_hf_put(import, "vocab", spec_hf_whole(import, "vocab_size", family->vocab > 0 ? family->vocab : -1));
    spec_hf_put(import, "max_positions", MAX(1, spec_hf_whole(import, "max_position_embeddings", 4096)));
    orr_jw_bool(&import->out, "gated_mlp", !family->plain_mlp);
    orr_jw_bool(&import->out, "tied_embeddings", spec_hf_flag(import, "tie_word_embeddings", family->tied));
    orr_jw_text(&import->out, "norm", family->layernorm ? "layernorm" : "rmsnorm");
    import_biases(import, family);
    orr_jw_text(&import->out, "position", "rope");
    orr_jw_bool(&import->out, "qk_norm",
                family->qk_norm ||
                    (family->kind == HF_GLM_MOE && spec_hf_flag(import, "use_qk_norm", false)));
    orr_jw_bool(&import->out, "rope_scaled", scales_rope(import));
    orr_jw_number(&import->out, "dropout_frac", dropout(import));
    spec_hf_put(import, "mtp_layers", spec_hf_whole(import, "num_nextn_predict_layers", 0));
    import_window(import);
    if (moe)
        import_moe(import, family->kind);
    if (family->kind == HF_DEEPSEEK)
        import_mla(import);
    say_layers(import, family);
}

/* --- which one --- */

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
static const char *recurrent_layers(const HfImport *import, const char *type)
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
static void enter_text_model(HfImport *import)
{
    const OrrJson *text = orr_json_member(import->config, "text_config");
    if (text == NULL || orr_json_type(text) != ORR_JSON_OBJECT)
        return;
    const OrrJson *type = orr_json_member(import->config, "model_type");
    g_autofree char *shown = type != NULL ? orr_json_show(type) : g_strdup("the file");
    spec_hf_change(import, "%s: the text model alone; towers for pictures or sound are left out", shown);
    import->config = text;
}

/* NULL for types that are read apart: GPT-2, and those with an encoder. */
static const HfFamily *find_family(HfImport *import, const char **ret_apart)
{
    const OrrJson *node = spec_hf_find(import, "model_type");
    const char *type = node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : "";
    const char *lacks = recurrent_layers(import, type);
    *ret_apart = strcmp(type, "gpt2") == 0 || spec_hf_has_encoder(type) ? type : NULL;
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
        g_autoptr(GString) text = g_string_new("one of gpt2");
        for (guint i = 0; i < G_N_ELEMENTS(families); i++)
            g_string_append_printf(text, ", %s", families[i].type);
        spec_hf_name_encoders(text);
        spec_hf_fail(import, "model_type", node, text->str);
    }
    return NULL;
}

/* .../Llama-3-8B/config.json is "Llama-3-8B". */
static char *model_name(const HfImport *import)
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
static void sort_rest(HfImport *import)
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
    HfImport import = {
        .config = root, .path = path, .used = used, .changes = changes, .harmless = harmless, .error = error};
    orr_jw_init(&import.out, text, true);
    g_autofree char *name = model_name(&import);
    enter_text_model(&import);
    const char *apart = NULL;
    const HfFamily *family = find_family(&import, &apart);
    if (import.failed)
        return NULL;
    orr_jw_begin(&import.out, NULL, '{');
    orr_jw_text(&import.out, "name", name);
    if (apart != NULL && spec_hf_has_encoder(apart))
        spec_hf_import_encoder(&import, apart);
    else if (apart != NULL)
        import_gpt2(&import);
    else
        import_llama(&import, family);
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
