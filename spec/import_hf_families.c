/* spec/import_hf_families.c - what the classes of transformers make of a config.json: GPT-2, and Llama with its kin (RMSNorm,
 * rotary positions, gated MLP). Key names: transformers' configuration classes. */
#include "spec/import_hf_internal.h"

#include <math.h>
#include <string.h>

static const char *const gpt2_kin[] = {"gpt2", "bloom", "opt"};

bool spec_hf_is_gpt2(const char *type)
{
    for (gsize i = 0; i < G_N_ELEMENTS(gpt2_kin); i++)
        if (strcmp(type, gpt2_kin[i]) == 0)
            return true;
    return false;
}

void spec_hf_name_gpt2(GString *text)
{
    for (gsize i = 0; i < G_N_ELEMENTS(gpt2_kin); i++)
        g_string_append_printf(text, "%s%s", i > 0 ? ", " : "", gpt2_kin[i]);
}

/* What OPT's smallest and its 350M have that a model has no field for. */
static void say_opt(SpecHf *import, int64_t hidden)
{
    const int64_t width = spec_hf_whole(import, "word_embed_proj_dim", hidden);
    if (width != hidden)
        spec_hf_change(import, "word_embed_proj_dim: %d: embeddings are simulated as wide as the layers",
                       (int)width);
    if (!spec_hf_flag(import, "do_layer_norm_before", true))
        spec_hf_change(import, "do_layer_norm_before: norms after each block are simulated before it");
}

void spec_hf_gpt2(SpecHf *import, const char *type)
{
    const bool bloom = strcmp(type, "bloom") == 0;
    const int64_t hidden = spec_hf_whole(import, "n_embd|hidden_size|n_embed", -1);
    spec_hf_put_required(import, "layers", "n_layer|num_hidden_layers");
    spec_hf_put(import, "hidden", hidden);
    spec_hf_put_required(import, "heads", "n_head|num_attention_heads");
    spec_hf_put(import, "ffn_hidden", spec_hf_whole(import, "n_inner|ffn_dim", 4 * MAX(hidden, 0)));
    spec_hf_put_required(import, "vocab", "vocab_size");
    spec_hf_put(import, "max_positions",
                spec_hf_whole(import, "n_positions|n_ctx|max_position_embeddings|seq_length",
                              strcmp(type, "gpt2") == 0 ? 1024 : 2048));
    orr_jw_bool(&import->out, "gated_mlp", false);
    orr_jw_bool(&import->out, "tied_embeddings", spec_hf_flag(import, "tie_word_embeddings", true));
    orr_jw_text(&import->out, "norm", "layernorm");
    orr_jw_bool(&import->out, "biases", true);
    orr_jw_text(&import->out, "position", bloom ? "alibi" : "learned");
    orr_jw_bool(&import->out, "embedding_norm", bloom);
    const OrrJson *dropout = spec_hf_find(import, strcmp(type, "gpt2") == 0  ? "resid_pdrop"
                                                  : strcmp(type, "opt") == 0 ? "dropout"
                                                                             : "hidden_dropout");
    if (dropout != NULL && orr_json_type(dropout) == ORR_JSON_NUMBER)
        orr_jw_number(&import->out, "dropout_frac", orr_json_number(dropout));
    if (strcmp(type, "opt") == 0)
        say_opt(import, hidden);
}

static void import_biases(SpecHf *import, const SpecHfFamily *family)
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
static bool scales_rope(SpecHf *import)
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
static int64_t family_pattern(SpecHf *import)
{
    const OrrJson *type = spec_hf_find(import, "model_type");
    const char *name = type != NULL && orr_json_type(type) == ORR_JSON_TEXT ? orr_json_text(type) : "";
    return strcmp(name, "gemma2") == 0 ? 2 : strcmp(name, "gemma3_text") == 0 ? 6 : 0;
}

/* Every second layer in gpt-oss; every layer in Mistral; none where use_sliding_window is false (Qwen). */
static void import_window(SpecHf *import)
{
    const int64_t window = spec_hf_whole(import, "sliding_window", 0);
    if (window <= 0 || !spec_hf_flag(import, "use_sliding_window", true))
        return;
    int64_t every = 1;
    const OrrJson *letters =
        spec_hf_find(import, "sliding_window_pattern"); /* "LLLG" beside a list of layers */
    const int64_t pattern = letters != NULL && orr_json_type(letters) == ORR_JSON_TEXT
                                ? (int64_t)strlen(orr_json_text(letters))
                                : spec_hf_whole(import, "sliding_window_pattern", family_pattern(import));
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
static int64_t leading_layers(SpecHf *import, const char *key)
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
static void import_groups(SpecHf *import)
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

/* The layer's number under the first of `keys` that is there: one for all, or a list of one a layer. */
static int64_t of_layer(SpecHf *import, const char *keys, int64_t layer)
{
    g_auto(GStrv) names = g_strsplit(keys, "|", -1);
    for (int i = 0; names[i] != NULL; i++) {
        const OrrJson *node = spec_hf_find(import, names[i]), *list = node;
        if (node == NULL)
            continue;
        if (orr_json_type(node) == ORR_JSON_LIST)
            for (node = orr_json_first(list); node != NULL && layer > 0; layer--)
                node = orr_json_next(node);
        const double value =
            node != NULL && orr_json_type(node) == ORR_JSON_NUMBER ? orr_json_number(node) : -1;
        if (value >= 1 && value <= 1e9 && !(floor(value) < value))
            return (int64_t)value;
        spec_hf_fail(import, names[i], list, "a whole number, or a list of one a layer");
        return -1;
    }
    spec_hf_fail(import, names[0], NULL, "a whole number, or a list of one a layer");
    return -1;
}

/* Hunyuan: experts and top-k are one for all layers or a list; a shared expert in each, all of the MLP's width. */
static void import_hunyuan_moe(SpecHf *import)
{
    static const char experts[] = "num_experts", top_k[] = "moe_topk";
    const int64_t layers = spec_hf_whole(import, "num_hidden_layers", -1);
    int64_t most = 0, fewest_tried = G_MAXINT64;
    for (int64_t layer = 0; layer < layers && layer < 100000 && !import->failed; layer++) {
        most = MAX(most, of_layer(import, experts, layer));
        fewest_tried = MIN(fewest_tried, of_layer(import, top_k, layer));
    }
    if (import->failed)
        return;
    orr_jw_begin(&import->out, "moe", '{');
    spec_hf_put(import, "experts", most);
    spec_hf_put(import, "top_k", fewest_tried);
    spec_hf_put_required(import, "expert_ffn_hidden", "intermediate_size");
    spec_hf_put(import, "shared_experts", 1);
    orr_jw_begin(&import->out, "by_layer", '[');
    for (int64_t layer = 0, end = 0; layer < layers; layer = end) {
        const int64_t own = of_layer(import, experts, layer), tried = of_layer(import, top_k, layer);
        for (end = layer + 1;
             end < layers && of_layer(import, experts, end) == own && of_layer(import, top_k, end) == tried;)
            end++;
        orr_jw_begin(&import->out, NULL, '{');
        spec_hf_put(import, "layers", end - layer);
        spec_hf_put(import, "experts", own);
        spec_hf_put(import, "top_k", tried);
        orr_jw_end(&import->out, '}');
    }
    orr_jw_end(&import->out, ']');
    orr_jw_end(&import->out, '}');
}

static void import_moe(SpecHf *import, SpecHfKind kind)
{
    const int64_t experts =
        spec_hf_whole(import, "n_routed_experts|num_experts|num_local_experts|moe_num_experts", -1);
    const int64_t expert_ffn = spec_hf_whole(
        import, kind == SPEC_HF_LLAMA4 ? "intermediate_size" : "moe_intermediate_size|intermediate_size", -1);
    const int64_t shared_ffn = spec_hf_whole(import, "shared_expert_intermediate_size", 0);
    const int64_t shared = spec_hf_whole(import, "n_shared_experts|moe_num_shared_experts",
                                         shared_ffn > 0 || kind == SPEC_HF_LLAMA4 ? 1 : 0);
    orr_jw_begin(&import->out, "moe", '{');
    spec_hf_put(import, "experts", experts);
    spec_hf_put_required(import, "top_k", "num_experts_per_tok|experts_per_token|moe_k");
    spec_hf_put(import, "expert_ffn_hidden", expert_ffn);
    spec_hf_put(import, "shared_experts", shared);
    if (shared_ffn > 0)
        spec_hf_put(import, "shared_expert_ffn_hidden", shared_ffn);
    spec_hf_put(import, "dense_layers",
                kind == SPEC_HF_DEEPSEEK || kind == SPEC_HF_GLM_MOE
                    ? spec_hf_whole(import, "first_k_dense_replace|moe_layer_start_index", 0)
                    : leading_layers(import, "mlp_only_layers"));
    spec_hf_put(
        import, "layer_step",
        MAX(1, spec_hf_whole(
                   import, "moe_layer_freq|decoder_sparse_step|interleave_moe_layer_step|moe_layer_interval",
                   1)));
    import_groups(import);
    orr_jw_end(&import->out, '}');
}

static void import_mla(SpecHf *import)
{
    orr_jw_begin(&import->out, "mla", '{');
    spec_hf_put(import, "q_lora_rank", spec_hf_whole(import, "q_lora_rank", 0));
    spec_hf_put_required(import, "kv_lora_rank", "kv_lora_rank");
    spec_hf_put_required(import, "qk_nope_head_dim", "qk_nope_head_dim");
    spec_hf_put_required(import, "qk_rope_head_dim", "qk_rope_head_dim");
    spec_hf_put_required(import, "v_head_dim", "v_head_dim");
    orr_jw_end(&import->out, '}');
}

static double dropout(SpecHf *import)
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
static void import_heads(SpecHf *import, const SpecHfFamily *family, int64_t hidden, int64_t heads)
{
    const bool falcon = strcmp(family->type, "falcon") == 0;
    const bool shared = falcon && spec_hf_flag(import, "multi_query", true) &&
                        !spec_hf_flag(import, "new_decoder_architecture", false);
    const char *head_key = family->kind == SPEC_HF_DEEPSEEK ? "v_head_dim" : "head_dim";
    int64_t kv = heads;
    if (family->kind == SPEC_HF_DEEPSEEK) /* latent attention has as many as heads, whatever this says */
        spec_hf_whole(import, "num_key_value_heads", heads);
    else
        kv = shared ? 1
                    : spec_hf_whole(import, falcon ? "num_kv_heads" : "num_key_value_heads",
                                    family->kv_heads > 0 ? family->kv_heads : heads);
    spec_hf_put(import, "kv_heads", kv);
    const int64_t divided = heads > 0 ? MAX(hidden, 0) / heads : 0;
    spec_hf_put(import, "head_dim",
                spec_hf_whole(import, head_key, family->head_dim > 0 ? family->head_dim : divided));
}

/* Keys that mean something else than a layer of the model that a scenario has. */
static void say_besides(SpecHf *import)
{
    static const struct {
        const char *key, *with; /* other keys of the same thing, "|" between them */
        const char *means;
    } rows[] = {
        {"index_topk", "index_head_dim|index_n_heads",
         "attention to chosen keys is simulated as full attention, without the indexer that chooses them"},
        {"num_mtp_modules", "use_mtp|mtp_transformer_layers",
         "layers that predict further tokens are left out; model.mtp_layers has them"},
        {"quantization_config", "",
         "is how published weights are stored; training.precision says in what they are trained"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) others = g_strsplit(rows[i].with, "|", -1);
        for (int k = 0; others[k] != NULL; k++)
            spec_hf_find(import, others[k]);
        if (spec_hf_find(import, rows[i].key) != NULL)
            spec_hf_change(import, "%s: %s", rows[i].key, rows[i].means);
    }
    if (import->flat_towers)
        spec_hf_change(import,
                       "vision_config: the text model alone; towers for pictures or sound are left out");
}

static void say_layers(SpecHf *import, const SpecHfFamily *family)
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
        spec_hf_change(import, "%s: attention and MLP run on one input; simulated one after the other",
                       family->type);
    for (gsize i = 0; i < G_N_ELEMENTS(caps); i++)
        if (spec_hf_real(import->config, caps[i], 0) > 0 && spec_hf_find(import, caps[i]) != NULL)
            spec_hf_change(import, "%s: logits are capped; the kernel for it is not simulated", caps[i]);
    say_besides(import);
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

void spec_hf_llama(SpecHf *import, const SpecHfFamily *family)
{
    const int64_t hidden = spec_hf_whole(import, "hidden_size", -1),
                  heads =
                      spec_hf_whole(import, "num_attention_heads", family->heads > 0 ? family->heads : -1);
    const bool moe = family->kind != SPEC_HF_DENSE &&
                     (family->kind != SPEC_HF_DEEPSEEK || spec_hf_find(import, "n_routed_experts") != NULL);
    const bool falcon = strcmp(family->type, "falcon") == 0;
    spec_hf_put_required(import, "layers", "num_hidden_layers");
    spec_hf_put(import, "hidden", hidden);
    spec_hf_put(import, "heads", heads);
    import_heads(import, family, hidden, heads);
    if (falcon)
        spec_hf_put(import, "ffn_hidden", spec_hf_whole(import, "ffn_hidden_size", 4 * MAX(hidden, 0)));
    else
        spec_hf_put_required(import, "ffn_hidden",
                             family->kind == SPEC_HF_LLAMA4 ? "intermediate_size_mlp" : "intermediate_size");
    spec_hf_put(import, "vocab", spec_hf_whole(import, "vocab_size", family->vocab > 0 ? family->vocab : -1));
    spec_hf_put(import, "max_positions", MAX(1, spec_hf_whole(import, "max_position_embeddings", 4096)));
    orr_jw_bool(&import->out, "gated_mlp", !family->plain_mlp);
    orr_jw_bool(&import->out, "tied_embeddings", spec_hf_flag(import, "tie_word_embeddings", family->tied));
    orr_jw_text(&import->out, "norm", family->layernorm ? "layernorm" : "rmsnorm");
    import_biases(import, family);
    orr_jw_text(&import->out, "position", "rope");
    orr_jw_bool(&import->out, "qk_norm",
                family->qk_norm ||
                    (family->kind != SPEC_HF_LLAMA4 && spec_hf_flag(import, "use_qk_norm", false)));
    orr_jw_bool(&import->out, "rope_scaled", scales_rope(import));
    orr_jw_number(&import->out, "dropout_frac", dropout(import));
    spec_hf_put(import, "mtp_layers", spec_hf_whole(import, "num_nextn_predict_layers", 0));
    import_window(import);
    if (family->kind == SPEC_HF_HUNYUAN)
        import_hunyuan_moe(import);
    else if (moe)
        import_moe(import, family->kind);
    if (family->kind == SPEC_HF_DEEPSEEK)
        import_mla(import);
    say_layers(import, family);
}
