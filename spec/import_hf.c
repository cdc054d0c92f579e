/* spec/import_hf.c - Hugging Face config.json to a model object. Key names: transformers' configuration classes. */
#include "spec/import_hf.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

typedef struct Import {
    const OrrJson *config;
    const char *path;
    OrrJsonWriter out;
    GError **error;
    bool failed;
} Import;

static void import_fail(Import *import, const char *key, const OrrJson *node, const char *expected)
{
    if (import->failed)
        return;
    import->failed = true;
    g_autofree char *shown = node != NULL ? orr_json_show(node) : g_strdup("missing");
    orr_fail(import->error, ORR_ERROR_INPUT, "%s: %s: %s; give %s", import->path, key, shown, expected);
}

static const OrrJson *find(const Import *import, const char *key)
{
    const OrrJson *node = orr_json_member(import->config, key);
    return node != NULL && orr_json_type(node) != ORR_JSON_NULL ? node : NULL;
}

/* The whole number under the first of `keys` ("a|b|c") that is there; `fallback` when none is; -1 and an error
 * when it is required (fallback below 0) or no whole number. */
static int64_t whole(Import *import, const char *keys, int64_t fallback)
{
    g_auto(GStrv) names = g_strsplit(keys, "|", -1);
    for (int i = 0; names[i] != NULL; i++) {
        const OrrJson *node = find(import, names[i]);
        if (node == NULL)
            continue;
        const double value = orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : -1;
        if (value >= 0 && value <= 1e12 && !(floor(value) < value))
            return (int64_t)value;
        import_fail(import, names[i], node, "a whole number");
        return -1;
    }
    if (fallback < 0)
        import_fail(import, names[0], NULL, "a whole number");
    return fallback;
}

static bool flag(Import *import, const char *key, bool fallback)
{
    const OrrJson *node = find(import, key);
    if (node == NULL)
        return fallback;
    if (orr_json_type(node) == ORR_JSON_BOOL)
        return orr_json_bool(node);
    import_fail(import, key, node, "true or false");
    return fallback;
}

static void put(Import *import, const char *key, int64_t value)
{
    orr_jw_int(&import->out, key, value);
}

static void put_required(Import *import, const char *key, const char *from)
{
    put(import, key, whole(import, from, -1));
}

/* --- GPT-2 --- */

static void import_gpt2(Import *import)
{
    const int64_t hidden = whole(import, "n_embd|hidden_size", -1);
    put_required(import, "layers", "n_layer|num_hidden_layers");
    put(import, "hidden", hidden);
    put_required(import, "heads", "n_head|num_attention_heads");
    put(import, "ffn_hidden", whole(import, "n_inner", 4 * MAX(hidden, 0)));
    put_required(import, "vocab", "vocab_size");
    put(import, "max_positions", whole(import, "n_positions|n_ctx|max_position_embeddings", 1024));
    orr_jw_bool(&import->out, "gated_mlp", false);
    orr_jw_bool(&import->out, "tied_embeddings", flag(import, "tie_word_embeddings", true));
    orr_jw_text(&import->out, "norm", "layernorm");
    orr_jw_bool(&import->out, "biases", true);
    orr_jw_text(&import->out, "position", "learned");
    const OrrJson *dropout = find(import, "resid_pdrop");
    if (dropout != NULL && orr_json_type(dropout) == ORR_JSON_NUMBER)
        orr_jw_number(&import->out, "dropout_frac", orr_json_number(dropout));
}

/* --- Llama and its kin: RMSNorm, rotary positions, gated MLP --- */

typedef enum { HF_DENSE, HF_MIXTRAL, HF_QWEN_MOE, HF_DEEPSEEK, HF_GPT_OSS } HfKind;

typedef struct HfFamily {
    const char *type; /* "model_type" */
    HfKind kind;
    const char *biases; /* NULL: from attention_bias and mlp_bias */
    bool qk_norm;
} HfFamily;

static const HfFamily families[] = {
    {"llama", HF_DENSE, NULL, false},          {"mistral", HF_DENSE, "none", false},
    {"mixtral", HF_MIXTRAL, "none", false},    {"qwen2", HF_DENSE, "qkv", false},
    {"qwen3", HF_DENSE, NULL, true},           {"qwen2_moe", HF_QWEN_MOE, "qkv", false},
    {"qwen3_moe", HF_QWEN_MOE, NULL, true},    {"deepseek_v2", HF_DEEPSEEK, NULL, false},
    {"deepseek_v3", HF_DEEPSEEK, NULL, false}, {"kimi_k2", HF_DEEPSEEK, NULL, false},
    {"gpt_oss", HF_GPT_OSS, "all", false},
};

static void import_biases(Import *import, const HfFamily *family)
{
    const bool attention = flag(import, "attention_bias", false), mlp = flag(import, "mlp_bias", false);
    const char *biases = family->biases;
    if (biases == NULL)
        biases = attention ? (mlp ? "all" : "qkv") : (mlp ? "mlp" : "none");
    orr_jw_text(&import->out, "biases", biases);
}

/* The number under `key`; `fallback` where there is none. */
static double real(const OrrJson *object, const char *key, double fallback)
{
    const OrrJson *node = orr_json_member(object, key);
    return node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : fallback;
}

static double yarn_scale(double factor, double weight)
{
    return factor > 1 ? 1 + 0.1 * weight * log(factor) : 1;
}

/* YaRN multiplies cosines and sines by 1 + ln(factor) / 10 unless the file says what by. DeepSeek's files give two
 * weights of that logarithm, for positions and for attention's scale, and only their ratio goes with the positions.
 * Source: [Transformers] modeling_rope_utils.py (_compute_yarn_parameters) */
static bool scales_rope(Import *import)
{
    const OrrJson *scaling = find(import, "rope_scaling");
    if (scaling == NULL)
        scaling = find(import, "rope_parameters");
    if (scaling == NULL || orr_json_type(scaling) != ORR_JSON_OBJECT)
        return false;
    const OrrJson *type = orr_json_member(scaling, "rope_type");
    if (type == NULL)
        type = orr_json_member(scaling, "type");
    if (type == NULL || orr_json_type(type) != ORR_JSON_TEXT || strcmp(orr_json_text(type), "yarn") != 0)
        return false;
    const double factor = real(scaling, "factor", 2), weight = real(scaling, "mscale", 0),
                 whole_weight = real(scaling, "mscale_all_dim", 0);
    const double scale = weight > 0 && whole_weight > 0
                             ? yarn_scale(factor, weight) / yarn_scale(factor, whole_weight)
                             : yarn_scale(factor, 1);
    return fabs(real(scaling, "attention_factor", scale) - 1) > 0;
}

/* Every second layer in gpt-oss; every layer in Mistral; none where use_sliding_window is false (Qwen). */
static void import_window(Import *import)
{
    const int64_t window = whole(import, "sliding_window", 0);
    if (window <= 0 || !flag(import, "use_sliding_window", true))
        return;
    int64_t every = 1;
    const OrrJson *types = find(import, "layer_types");
    if (types != NULL && orr_json_type(types) == ORR_JSON_LIST) {
        int sliding = 0, count = 0;
        for (const OrrJson *type = orr_json_first(types); type != NULL; type = orr_json_next(type), count++)
            sliding +=
                orr_json_type(type) == ORR_JSON_TEXT && strcmp(orr_json_text(type), "sliding_attention") == 0;
        if (sliding == 0)
            return;
        every = MAX(1, (count + sliding / 2) / sliding);
    }
    put(import, "attention_window_tokens", window);
    put(import, "attention_window_every", every);
}

/* Layers that a list such as mlp_only_layers names, when they are the leading ones; else an error. */
static int64_t leading_layers(Import *import, const char *key)
{
    const OrrJson *list = find(import, key);
    if (list == NULL || orr_json_type(list) != ORR_JSON_LIST)
        return 0;
    int64_t expected = 0;
    for (const OrrJson *item = orr_json_first(list); item != NULL; item = orr_json_next(item), expected++) {
        if (orr_json_type(item) != ORR_JSON_NUMBER || fabs(orr_json_number(item) - (double)expected) > 0) {
            import_fail(import, key, list, "leading layers only ([0, 1, ...]); others cannot be described");
            return 0;
        }
    }
    return expected;
}

static void import_moe(Import *import, HfKind kind)
{
    const int64_t experts = whole(import, "n_routed_experts|num_experts|num_local_experts", -1);
    const int64_t expert_ffn = whole(import, "moe_intermediate_size|intermediate_size", -1);
    const int64_t shared_ffn = whole(import, "shared_expert_intermediate_size", 0);
    const int64_t shared = whole(import, "n_shared_experts", shared_ffn > 0 ? 1 : 0);
    orr_jw_begin(&import->out, "moe", '{');
    put(import, "experts", experts);
    put_required(import, "top_k", "num_experts_per_tok|experts_per_token");
    put(import, "expert_ffn_hidden", expert_ffn);
    put(import, "shared_experts", shared);
    if (shared_ffn > 0)
        put(import, "shared_expert_ffn_hidden", shared_ffn);
    put(import, "dense_layers",
        kind == HF_DEEPSEEK ? whole(import, "first_k_dense_replace", 0)
                            : leading_layers(import, "mlp_only_layers"));
    put(import, "layer_step", MAX(1, whole(import, "moe_layer_freq|decoder_sparse_step", 1)));
    orr_jw_end(&import->out, '}');
}

static void import_mla(Import *import)
{
    orr_jw_begin(&import->out, "mla", '{');
    put(import, "q_lora_rank", whole(import, "q_lora_rank", 0));
    put_required(import, "kv_lora_rank", "kv_lora_rank");
    put_required(import, "qk_nope_head_dim", "qk_nope_head_dim");
    put_required(import, "qk_rope_head_dim", "qk_rope_head_dim");
    put_required(import, "v_head_dim", "v_head_dim");
    orr_jw_end(&import->out, '}');
}

static void import_llama(Import *import, const HfFamily *family)
{
    const int64_t hidden = whole(import, "hidden_size", -1), heads = whole(import, "num_attention_heads", -1);
    const bool moe =
        family->kind != HF_DENSE && (family->kind != HF_DEEPSEEK || find(import, "n_routed_experts") != NULL);
    put_required(import, "layers", "num_hidden_layers");
    put(import, "hidden", hidden);
    put(import, "heads", heads);
    put(import, "kv_heads",
        family->kind == HF_DEEPSEEK ? heads : whole(import, "num_key_value_heads", heads));
    const char *head_key = family->kind == HF_DEEPSEEK ? "v_head_dim" : "head_dim";
    put(import, "head_dim", whole(import, head_key, heads > 0 ? MAX(hidden, 0) / heads : 0));
    put_required(import, "ffn_hidden", "intermediate_size");
    put_required(import, "vocab", "vocab_size");
    put(import, "max_positions", MAX(1, whole(import, "max_position_embeddings", 4096)));
    orr_jw_bool(&import->out, "gated_mlp", true);
    orr_jw_bool(&import->out, "tied_embeddings", flag(import, "tie_word_embeddings", false));
    orr_jw_text(&import->out, "norm", "rmsnorm");
    import_biases(import, family);
    orr_jw_text(&import->out, "position", "rope");
    orr_jw_bool(&import->out, "qk_norm", family->qk_norm);
    orr_jw_bool(&import->out, "rope_scaled", scales_rope(import));
    orr_jw_number(&import->out, "dropout_frac", 0);
    put(import, "mtp_layers", whole(import, "num_nextn_predict_layers", 0));
    import_window(import);
    if (moe)
        import_moe(import, family->kind);
    if (family->kind == HF_DEEPSEEK)
        import_mla(import);
}

/* --- which one --- */

bool spec_is_hf_config(const OrrJson *root)
{
    static const char *const marks[] = {"model_type", "architectures", "hidden_size", "n_embd"};
    for (guint i = 0; i < G_N_ELEMENTS(marks); i++)
        if (orr_json_member(root, marks[i]) != NULL)
            return true;
    return false;
}

static const HfFamily *find_family(Import *import, bool *ret_gpt2)
{
    const char *known[G_N_ELEMENTS(families) + 1] = {"gpt2"};
    for (guint i = 0; i < G_N_ELEMENTS(families); i++)
        known[i + 1] = families[i].type;
    const OrrJson *node = find(import, "model_type");
    const char *type = node != NULL && orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : "";
    *ret_gpt2 = strcmp(type, "gpt2") == 0;
    for (guint i = 0; i < G_N_ELEMENTS(families); i++)
        if (strcmp(families[i].type, type) == 0)
            return &families[i];
    if (!*ret_gpt2) {
        g_autofree char *list = NULL;
        GString *text = g_string_new("one of ");
        for (guint i = 0; i < G_N_ELEMENTS(known); i++)
            g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", known[i]);
        list = g_string_free(text, FALSE);
        import_fail(import, "model_type", node, list);
    }
    return NULL;
}

/* .../Llama-3-8B/config.json is "Llama-3-8B". */
static char *model_name(const Import *import)
{
    const OrrJson *given = find(import, "_name_or_path");
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

OrrJsonDoc *spec_import_hf(const OrrJson *root, const char *path, GError **error)
{
    GString *text = g_string_new(NULL);
    Import import = {.config = root, .path = path, .error = error};
    orr_jw_init(&import.out, text, true);
    bool gpt2 = false;
    const HfFamily *family = find_family(&import, &gpt2);
    OrrJsonDoc *doc = NULL;
    if (!import.failed) {
        g_autofree char *name = model_name(&import);
        orr_jw_begin(&import.out, NULL, '{');
        orr_jw_text(&import.out, "name", name);
        if (gpt2)
            import_gpt2(&import);
        else
            import_llama(&import, family);
        orr_jw_end(&import.out, '}');
    }
    if (!import.failed)
        doc = orr_json_parse(text->str, text->len, path, error);
    g_string_free(text, TRUE);
    return doc;
}
