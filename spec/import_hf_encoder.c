/* spec/import_hf_encoder.c - config.json of models with an encoder and a decoder: BART and its kin, T5 and its kin. Defaults of
 * keys that files leave out: transformers' configuration classes. */
#include "spec/import_hf_internal.h"

#include <string.h>

typedef struct HfEncoderFamily {
    const char *type;
    bool t5;
    bool embedding_norm;   /* behind the embedding */
    bool positions_tabled; /* learned; else computed, without parameters */
    int position_offset;   /* rows of the table before the first position */
    bool final_norm;
    bool tied; /* T5's kin: unless the file says */
} HfEncoderFamily;

static const HfEncoderFamily families[] = {
    {.type = "bart", .embedding_norm = true, .positions_tabled = true, .position_offset = 2},
    {.type = "mbart",
     .embedding_norm = true,
     .positions_tabled = true,
     .position_offset = 2,
     .final_norm = true},
    {.type = "blenderbot", .positions_tabled = true, .final_norm = true},
    {.type = "blenderbot-small", .embedding_norm = true, .positions_tabled = true},
    {.type = "marian"},
    {.type = "pegasus", .final_norm = true},
    {.type = "t5", .t5 = true, .tied = true, .final_norm = true},
    {.type = "mt5", .t5 = true, .final_norm = true},
    {.type = "umt5", .t5 = true, .final_norm = true},
};

static const HfEncoderFamily *find_family(const char *type)
{
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++)
        if (strcmp(families[i].type, type) == 0)
            return &families[i];
    return NULL;
}

bool spec_hf_has_encoder(const char *type)
{
    return find_family(type) != NULL;
}

void spec_hf_name_encoders(GString *text)
{
    for (gsize i = 0; i < G_N_ELEMENTS(families); i++)
        g_string_append_printf(text, ", %s", families[i].type);
}

static double rate(SpecHf *import, const char *key)
{
    const double value = spec_hf_find(import, key) != NULL ? spec_hf_real(import->config, key, 0.1) : 0.1;
    return value >= 0 && value < 1 ? value : 0.1;
}

/* What both stacks have alike in a scenario. */
static int64_t common(SpecHf *import, const char *key, const char *of_encoder)
{
    const int64_t value = spec_hf_whole(import, key, -1), encoder = spec_hf_whole(import, of_encoder, value);
    if (!import->failed && value != encoder)
        spec_hf_fail(import, of_encoder, spec_hf_find(import, of_encoder),
                     "the decoder's number: a scenario's stacks are alike but for their layers");
    return value;
}

static void import_bart(SpecHf *import, const HfEncoderFamily *family)
{
    const int64_t positions = MAX(1, spec_hf_whole(import, "max_position_embeddings", 1024));
    spec_hf_put_required(import, "encoder_layers", "encoder_layers");
    spec_hf_put_required(import, "layers", "decoder_layers");
    spec_hf_put_required(import, "hidden", "d_model");
    spec_hf_put(import, "heads", common(import, "decoder_attention_heads", "encoder_attention_heads"));
    spec_hf_put(import, "ffn_hidden", common(import, "decoder_ffn_dim", "encoder_ffn_dim"));
    spec_hf_put_required(import, "vocab", "vocab_size");
    spec_hf_put(import, "max_positions", positions + family->position_offset);
    orr_jw_text(&import->out, "position", family->positions_tabled ? "learned" : "none");
    orr_jw_text(&import->out, "norm", "layernorm");
    orr_jw_bool(&import->out, "biases", true);
    orr_jw_bool(&import->out, "embedding_norm",
                spec_hf_flag(import, "normalize_embedding", family->embedding_norm));
    orr_jw_bool(&import->out, "no_final_norm",
                !spec_hf_flag(import, "add_final_layer_norm", family->final_norm));
    orr_jw_bool(&import->out, "tied_embeddings", spec_hf_flag(import, "tie_word_embeddings", true));
    orr_jw_number(&import->out, "dropout_frac", rate(import, "dropout"));
    if (!family->positions_tabled)
        spec_hf_change(import, "%s: sinusoidal positions have no parameters; adding them is left out",
                       family->type);
}

/* "gated-gelu" is a product of two linear layers. */
static bool is_gated(SpecHf *import)
{
    const OrrJson *node = spec_hf_find(import, "feed_forward_proj");
    return node != NULL && orr_json_type(node) == ORR_JSON_TEXT &&
           g_str_has_prefix(orr_json_text(node), "gated-");
}

static void import_t5(SpecHf *import, const HfEncoderFamily *family)
{
    const int64_t layers = spec_hf_whole(import, "num_layers", -1);
    spec_hf_put(import, "encoder_layers", layers);
    spec_hf_put(import, "layers", spec_hf_whole(import, "num_decoder_layers", MAX(layers, 0)));
    spec_hf_put_required(import, "hidden", "d_model");
    spec_hf_put_required(import, "heads", "num_heads");
    spec_hf_put_required(import, "head_dim", "d_kv");
    spec_hf_put_required(import, "ffn_hidden", "d_ff");
    spec_hf_put_required(import, "vocab", "vocab_size");
    orr_jw_bool(&import->out, "gated_mlp", is_gated(import));
    orr_jw_text(&import->out, "position", "relative");
    spec_hf_put(import, "position_buckets",
                MAX(1, spec_hf_whole(import, "relative_attention_num_buckets", 32)));
    orr_jw_text(&import->out, "norm", "rmsnorm");
    orr_jw_bool(&import->out, "biases", false);
    orr_jw_bool(&import->out, "tied_embeddings", spec_hf_flag(import, "tie_word_embeddings", family->tied));
    orr_jw_number(&import->out, "dropout_frac", rate(import, "dropout_rate"));
    if (strcmp(family->type, "umt5") == 0)
        spec_hf_change(import, "umt5: a table of positions in each layer; simulated as one a stack");
}

/* Keys of these families that change no step: what is said twice, and rates inside of blocks. */
static void skip_rest(const SpecHf *import)
{
    static const char *const keys[] = {"num_hidden_layers",
                                       "scale_embedding",
                                       "dense_act_fn",
                                       "is_gated_act",
                                       "attention_dropout",
                                       "activation_dropout",
                                       "n_positions",
                                       "relative_attention_max_distance",
                                       "extra_pos_embeddings",
                                       "extra_layer_norm",
                                       "normalize_before",
                                       "static_position_embeddings",
                                       "max_position_embeddings",
                                       "layernorm_variant",
                                       "force_bos_token_to_be_generated",
                                       "init_std",
                                       "add_bias_logits",
                                       "encoder_layerdrop",
                                       "decoder_layerdrop",
                                       "decoder_vocab_size"};
    for (gsize i = 0; i < G_N_ELEMENTS(keys); i++)
        (void)spec_hf_find(import, keys[i]);
}

void spec_hf_encoder(SpecHf *import, const char *type)
{
    skip_rest(import);
    const HfEncoderFamily *family = find_family(type);
    g_assert(family != NULL);
    if (family->t5)
        import_t5(import, family);
    else
        import_bart(import, family);
}
