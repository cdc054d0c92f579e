/* spec/fields_model.c - field tables of the model. */
#include "spec/fields_internal.h"

#define COUNT_MAX  1e9
#define LAYERS_MAX 1e5

static bool read_biases(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    int value = SPEC_BIASES_NONE;
    if (orr_json_type(node) == ORR_JSON_BOOL)
        value = orr_json_bool(node) ? SPEC_BIASES_ALL : SPEC_BIASES_NONE;
    else if (!spec_read_word(context, &spec_words_biases, node, &value, error))
        return false;
    *(SpecBiases *)target = (SpecBiases)value;
    return true;
}

static const SpecField moe_fields[] = {
    SPEC_F_INT(SpecMoe, experts, 0, 1e5, "0", 0, "Routed experts of a layer; 0: a dense model."),
    SPEC_F_INT(SpecMoe, top_k, 1, 1e4, "1", 0, "Routed experts that each token visits."),
    SPEC_F_INT(SpecMoe, expert_ffn_hidden, 1, 1e7, NULL, SPEC_FIELD_DERIVED,
               "Hidden size of one expert's MLP; default ffn_hidden."),
    SPEC_F_INT(SpecMoe, shared_experts, 0, 1e4, "0", 0, "Experts that every token visits."),
    SPEC_F_INT(SpecMoe, shared_expert_ffn_hidden, 0, 1e7, NULL, SPEC_FIELD_DERIVED,
               "Hidden size of all shared experts together; default shared_experts x expert_ffn_hidden."),
    SPEC_F_INT(SpecMoe, dense_layers, 0, LAYERS_MAX, "0", 0, "Leading layers without experts."),
    SPEC_F_INT(SpecMoe, layer_step, 1, LAYERS_MAX, "1", 0,
               "1: every layer after the dense ones has experts, 2: every second."),
    SPEC_F_INT(SpecMoe, late_layers, 0, LAYERS_MAX, "0", 0,
               "Pyramid: this many of the last layers have late_experts experts; 0: none."),
    SPEC_F_INT(SpecMoe, late_experts, 0, 1e5, "0", 0, "Pyramid: experts of the last late_layers layers."),
    {.key = "by_layer",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = spec_moe_read_runs,
     .form = "a list of objects",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":64}",
     .table = &spec_table_moe_run,
     .help = "Layers whose experts differ, in the order of the layers that have experts; a shorter list "
             "repeats."},
    SPEC_F_DOUBLE(
        SpecMoe, capacity_factor, ORR_UNIT_NONE, 0, 1e4, "0", 0,
        "Most tokens that an expert takes, as a multiple of the even share; 0: no limit (dropless)."),
    SPEC_F_INT(SpecMoe, router_groups, 0, 1e5, "0", 0,
               "Groups into which the experts are divided, for group- or node-limited routing; 0: none."),
    SPEC_F_INT(SpecMoe, router_top_groups, 0, 1e5, "0", 0,
               "Groups that the experts of one token may come from; 0: all."),
    SPEC_F_BOOL(SpecMoe, router_fp32, "false", 0,
                "The router multiplies in fp32 (Megatron's moe_router_dtype; DeepSeek-V3 there); "
                "execution.framework says on which units."),
};
static SPEC_TABLE(table_moe, "model.moe", "Mixture of experts.", moe_fields);

static const SpecField mla_fields[] = {
    SPEC_F_INT(SpecMla, q_lora_rank, 0, 1e6, "0", 0,
               "Rank of the query compression; 0: queries projected directly."),
    SPEC_F_INT(SpecMla, kv_lora_rank, 0, 1e6, "0", 0,
               "Rank of the key-value compression; 0: no latent attention."),
    SPEC_F_INT(SpecMla, qk_nope_head_dim, 0, 1e5, "0", 0,
               "Dimensions of a query and key head without position."),
    SPEC_F_INT(SpecMla, qk_rope_head_dim, 0, 1e5, "0", 0,
               "Dimensions of a query and key head with rotary position."),
    SPEC_F_INT(SpecMla, v_head_dim, 0, 1e5, "0", 0, "Dimensions of a value head."),
};
static SPEC_TABLE(table_mla, "model.mla", "Multi-head latent attention (DeepSeek-V2).", mla_fields);

static const SpecField vision_fields[] = {
    SPEC_F_INT(SpecVision, layers, 0, LAYERS_MAX, "0", 0,
               "Layers of the tower; 0: the model sees no images."),
    SPEC_F_INT(SpecVision, hidden, 0, 1e6, "0", 0, "Hidden size of the tower."),
    SPEC_F_INT(SpecVision, heads, 0, 1e5, "0", 0, "Attention heads of the tower; no position is masked."),
    SPEC_F_INT(SpecVision, ffn_hidden, 0, 1e7, "0", 0, "Hidden size of the tower's MLP."),
    SPEC_F_BOOL(SpecVision, gated_mlp, "false", 0,
                "The tower's MLP is gated: three matrices in place of two."),
    SPEC_F_BOOL(SpecVision, biases, "true", 0,
                "Linear layers of the tower and of the projector have biases."),
    SPEC_F_WORD(SpecVision, norm, &spec_words_norm, "\"layernorm\"", 0, "Kind of the tower's normalisation."),
    SPEC_F_INT(
        SpecVision, patch_values, 0, 1e7, "0", 0,
        "Numbers of one patch: colours x its pixels x frames; 14 x 14 pixels of three colours are 588."),
    SPEC_F_INT(SpecVision, window_patches, 0, COUNT_MAX, "0", 0,
               "Patches of a window, which alone see each other; 0: all patches of an image do."),
    SPEC_F_INT(SpecVision, full_every, 0, LAYERS_MAX, "0", 0,
               "Every n-th layer sees the whole image in place of a window; 0: none."),
    SPEC_F_INT(SpecVision, merged_patches, 1, 1e4, "1", 0,
               "Neighbouring patches that the projector joins to one token of the language model."),
    SPEC_F_BOOL(SpecVision, projector_norm, "false", 0, "A normalisation lies before the projector."),
    SPEC_F_INT(SpecVision, projector_hidden, 0, 1e7, "0", 0,
               "Hidden size of a projector of two linear layers; 0: it is one linear layer."),
};
static SPEC_TABLE(table_vision, "model.vision",
                  "A vision tower before the language model: patches of images, transformer layers, and a "
                  "projector to tokens.",
                  vision_fields);

/* A number, or a list of layers: then `target` is the member before which the struct lies. */
static bool read_layers(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecModel *model = target;
    if (orr_json_type(node) == ORR_JSON_LIST)
        return spec_layer_list_take(context, node, model, error);
    model->list.text = NULL;
    if (!spec_read_int(context, node, 1, LAYERS_MAX, &model->decoder_layers, error))
        return false;
    model->layers = model->decoder_layers;
    return true;
}

static const SpecField model_fields[] = {
    SPEC_F_FILE_KEYS("models"),
    SPEC_F_NAME(SpecModel, name, "\"\"", "What reports call the model."),
    {.key = "layers",
     .type = SPEC_TYPE_CUSTOM,
     .min = 1,
     .max = LAYERS_MAX,
     .flags = SPEC_FIELD_REQUIRED,
     .read = read_layers,
     .form = "a whole number from 1 to 100000, or a list of layers",
     .schema = "{\"type\":[\"integer\",\"array\"],\"minimum\":1,\"maximum\":100000}",
     .table = &spec_table_layer,
     .help = "Number of transformer layers. For any other network: a list of its layers in forward order, "
             "for one sample."},
    SPEC_F_INT(SpecModel, encoder_layers, 0, LAYERS_MAX, "0", 0,
               "Encoder layers (T5, BART). The layers of `layers` then also attend to the encoder's output. "
               "0: no encoder."),
    SPEC_F_INT(SpecModel, hidden, 1, 1e7, NULL, SPEC_FIELD_DERIVED,
               "Hidden size h; needed unless layers is a list."),
    SPEC_F_INT(SpecModel, heads, 1, 1e5, NULL, SPEC_FIELD_DERIVED,
               "Attention (query) heads a; needed unless layers is a list."),
    SPEC_F_INT(SpecModel, kv_heads, 1, 1e5, NULL, SPEC_FIELD_DERIVED, "Key-value heads; default heads."),
    SPEC_F_INT(SpecModel, head_dim, 1, 1e5, NULL, SPEC_FIELD_DERIVED,
               "Dimensions of a head; default hidden / heads."),
    SPEC_F_INT(SpecModel, ffn_hidden, 1, 1e7, NULL, SPEC_FIELD_DERIVED,
               "Hidden size of the MLP; default 4 x hidden when the MLP is not gated."),
    SPEC_F_BOOL(SpecModel, gated_mlp, "false", 0, "A gated MLP (SwiGLU): three matrices instead of two."),
    SPEC_F_INT(SpecModel, vocab, 1, COUNT_MAX, NULL, SPEC_FIELD_DERIVED,
               "Rows of the vocabulary, padding included; needed unless layers is a list."),
    SPEC_F_BOOL(SpecModel, tied_embeddings, "true", 0, "Input and output embedding share one matrix."),
    SPEC_F_BOOL(
        SpecModel, scalar_head, "false", 0,
        "The head returns one number a token in place of logits: a reward model or a critic. The input "
        "embedding is then tied to nothing."),
    SPEC_F_WORD(SpecModel, norm, &spec_words_norm, "\"layernorm\"", 0, "Kind of normalisation."),
    SPEC_F_CUSTOM(
        SpecModel, biases, read_biases, "true", 0, "true, false, or one of none, all, mlp, qkv",
        "{\"enum\":[true,false,\"none\",\"all\",\"mlp\",\"qkv\"]}", NULL,
        "Biases of linear layers: true is all, false none; or only the MLP's or the QKV projection's."),
    SPEC_F_WORD(SpecModel, position, &spec_words_position, "\"learned\"", 0, "Position encoding."),
    SPEC_F_INT(SpecModel, max_positions, 1, COUNT_MAX, NULL, SPEC_FIELD_DERIVED,
               "Rows of the learned position table; default the sequence length."),
    SPEC_F_INT(SpecModel, position_buckets, 1, COUNT_MAX, "32", 0,
               "Relative positions: distances that each head has a bias for, one table a stack (T5)."),
    SPEC_F_BOOL(
        SpecModel, no_final_norm, "false", 0,
        "No normalisation after the last layer, nor after an encoder's last: each block ends with one "
        "(BART)."),
    SPEC_F_BOOL(SpecModel, embedding_norm, "false", 0, "A normalisation after the embedding (BLOOM)."),
    SPEC_F_BOOL(SpecModel, qk_norm, "false", 0, "Normalisation of queries and keys (Qwen3)."),
    SPEC_F_BOOL(SpecModel, rope_scaled, "false", 0,
                "Rotary positions carry an attention factor (YaRN, gpt-oss). Transformer Engine's fused "
                "kernel does not support it; its kernel for MLA does."),
    SPEC_F_BOOL(SpecModel, causal, "true", 0, "Causal attention; false for encoders."),
    SPEC_F_DOUBLE(SpecModel, dropout_frac, ORR_UNIT_FRAC, 0, 0.999, NULL, SPEC_FIELD_DERIVED,
                  "Dropout; 0: no dropout kernels and no masks. Default the framework's."),
    SPEC_F_INT(SpecModel, attention_window_tokens, 0, COUNT_MAX, "0", 0,
               "Sliding attention window; 0: none."),
    SPEC_F_INT(SpecModel, attention_window_every, 1, LAYERS_MAX, "1", 0,
               "Every n-th layer uses the window; 1: all."),
    SPEC_F_INT(SpecModel, attention_full_every, 0, LAYERS_MAX, "0", 0,
               "Every n-th layer sees all tokens in place of its window; 0: none. Llama 4 has 4."),
    SPEC_F_BOOL(SpecModel, attention_chunked, "false", 0,
                "Windows are chunks that follow each other, and tokens see earlier ones of their own chunk "
                "alone (Llama 4). Else a window slides along."),
    SPEC_F_INT(SpecModel, mtp_layers, 0, 1000, "0", 0,
               "Multi-token prediction modules after the last layer."),
    SPEC_F_DOUBLE(SpecModel, time_frac, ORR_UNIT_NONE, 1e-3, 1e3, NULL, SPEC_FIELD_DERIVED,
                  "For a list of layers: measured time of the layers over their predicted time, from one of "
                  "your own runs. Default 1."),
    SPEC_F_DOUBLE(SpecModel, sample_spread_frac, ORR_UNIT_FRAC, 0, 10, NULL, SPEC_FIELD_DERIVED,
                  "For a list of layers: standard deviation of one sample's time over the mean, as with "
                  "texts that are not padded. All replicas wait for the one with most work. Default 0."),
    SPEC_F_OBJECT(SpecModel, moe, table_moe, SPEC_FIELD_DERIVED,
                  "Mixture of experts; absent: a dense model."),
    SPEC_F_OBJECT(SpecModel, mla, table_mla, SPEC_FIELD_DERIVED,
                  "Multi-head latent attention; absent: none."),
    SPEC_F_OBJECT(SpecModel, vision, table_vision, SPEC_FIELD_DERIVED,
                  "A vision tower, which runs before the first layer; absent: none."),
};
SPEC_TABLE(spec_table_model, "model",
           "The model: a transformer that is a decoder, an encoder or both, or a list of layers.",
           model_fields);
