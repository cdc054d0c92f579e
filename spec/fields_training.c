/* spec/fields_training.c - field tables of the training run. */
#include <string.h>

#include "base/text.h"
#include "spec/fields_internal.h"

static const SpecField recompute_fields[] = {
    SPEC_F_WORD(SpecRecompute, mode, &spec_words_recompute, NULL, SPEC_FIELD_REQUIRED,
                "What the backward computes again. none: nothing. selective: the attention core. full: whole "
                "layers. selective-op: what torchtitan's per-op mode does. selective-layer: every n-th "
                "layer. modules: the modules listed."),
    SPEC_F_INT(SpecRecompute, layers, 0, 1e5, "0", 0,
               "Mode full: layers of each stage that are recomputed; 0: all."),
    SPEC_F_INT(SpecRecompute, every_n_layers, 1, 1e5, "1", 0,
               "Mode selective-layer: every n-th layer is recomputed."),
    {.key = "modules",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecompute, modules),
     .words = &spec_words_module,
     .default_text = "[]",
     .help = "Mode modules: the modules that are recomputed."},
    SPEC_F_BOOL(SpecRecompute, partitioned, "false", 0,
                "Tensor ranks keep a part each of a layer's input, gathered again before its backward "
                "(partition_activations of DeepSpeed, --distribute-saved-activations of Megatron)."),
    SPEC_F_BOOL(SpecRecompute, halves, "false", 0,
                "Attention and MLP run again apart, and each keeps its input (--split-transformers of "
                "DeepSpeed's Megatron-LM)."),
};
static SPEC_TABLE(table_recompute, "training.recompute", "Activation recomputation.", recompute_fields);

static bool read_recompute(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecRecompute *recompute = target;
    if (orr_json_type(node) == ORR_JSON_OBJECT) {
        SpecReadContext inside = *context;
        inside.quiet++;
        return spec_read_table(&inside, &table_recompute, node, recompute, error);
    }
    *recompute = (SpecRecompute){.every_n_layers = 1};
    if (spec_is_auto(node)) {
        recompute->mode = (SpecRecomputeMode)SPEC_AUTO;
        return context->allow_auto ||
               spec_read_fail(context, NULL, error,
                              "\"auto\" leaves the choice to a search; give none, selective or full here");
    }
    int mode = 0;
    if (!spec_read_word(context, &spec_words_recompute, node, &mode, error))
        return false;
    recompute->mode = (SpecRecomputeMode)mode;
    if (recompute->mode == SPEC_RECOMPUTE_MODULES)
        return spec_read_fail(
            context, node, error,
            "says not which modules; give {\"mode\":\"modules\",\"modules\":[\"layernorm\", ...]}");
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER)
        return spec_read_fail(
            context, node, error,
            "says not which layers; give {\"mode\":\"selective-layer\",\"every_n_layers\":2}");
    return true;
}

#define STATE(word, member, text)                                                                            \
    {                                                                                                        \
        .key = word, .type = SPEC_TYPE_DOUBLE, .unit = ORR_UNIT_BYTES,                                       \
        .offset = offsetof(SpecStates, member), .min = 0, .max = 64, .default_text = "0", .help = text       \
    }
static const SpecField states_fields[] = {
    {.key = "weights",
     .type = SPEC_TYPE_DOUBLE,
     .unit = ORR_UNIT_BYTES,
     .flags = SPEC_FIELD_REQUIRED,
     .offset = offsetof(SpecStates, weights_bytes),
     .min = 0.125,
     .max = 64,
     .help = "Bytes a parameter of the weights that are computed with."},
    STATE("gradients", gradients_bytes, "Bytes a parameter of accumulated gradients."),
    STATE("master", master_bytes, "Bytes a parameter of the master copy."),
    STATE("moments", moments_bytes, "Bytes a parameter of all optimizer moments."),
};
static SPEC_TABLE(table_states, "training.states", "Bytes a parameter of each model state.", states_fields);

static bool read_states(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecStates *states = target;
    if (orr_json_type(node) == ORR_JSON_OBJECT) {
        SpecReadContext inside = *context;
        inside.quiet++;
        states->recipe = SPEC_STATES_CUSTOM;
        return spec_read_table(&inside, &table_states, node, states, error);
    }
    int recipe = SPEC_AUTO;
    const bool framework =
        orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), "framework") == 0;
    if (!framework && !spec_is_auto(node) &&
        !spec_read_word(context, &spec_words_states, node, &recipe, error))
        return false;
    if (recipe == SPEC_STATES_CUSTOM)
        return spec_read_fail(
            context, node, error,
            "needs its numbers; give {\"weights\":2,\"gradients\":4,\"master\":4,\"moments\":8}");
    *states = (SpecStates){.recipe = (SpecStatesRecipe)recipe, .named = recipe != SPEC_AUTO};
    return true;
}

static bool read_framework_dtype(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    int dtype = SPEC_AUTO;
    const bool framework =
        orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), "framework") == 0;
    if (!framework && !spec_is_auto(node) && !spec_read_word(context, &spec_words_dtype, node, &dtype, error))
        return false;
    *(SpecDtype *)target = (SpecDtype)dtype;
    return true;
}

static bool read_histogram(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecRouter *router = target;
    if (orr_json_type(node) != ORR_JSON_LIST || orr_json_count(node) > SPEC_MAX_EXPERTS)
        return spec_read_fail(context, NULL, error,
                              "is not a list of at most %d shares; give one number an expert",
                              SPEC_MAX_EXPERTS);
    int count = 0;
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        if (orr_json_type(item) != ORR_JSON_NUMBER || orr_json_number(item) < 0)
            return spec_read_fail(context, item, error, "is not a share; give a number of at least 0");
        router->histogram[count++] = (float)orr_json_number(item);
    }
    router->histogram_count = count;
    return true;
}

static const SpecField router_fields[] = {
    SPEC_F_WORD(SpecRouter, distribution, &spec_words_router, NULL, SPEC_FIELD_REQUIRED,
                "How tokens choose experts. even: exactly evenly, as benchmarks force it. uniform: at "
                "random, all equally likely. zipf: by rank. dirichlet: shares are drawn. histogram: shares "
                "are given. learned: as trained routers spread text."),
    SPEC_F_DOUBLE(SpecRouter, exponent, ORR_UNIT_NONE, 0, 10, "1", 0,
                  "Distribution zipf: popularity of the i-th expert is 1 / i^exponent."),
    SPEC_F_DOUBLE(SpecRouter, concentration, ORR_UNIT_NONE, 1e-3, 1e6, "1", 0,
                  "Distribution dirichlet: its parameter for each expert. Large values are nearly even."),
    {.key = "histogram",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = read_histogram,
     .form = "a list of shares, one an expert",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"number\",\"minimum\":0},\"maxItems\":1024}",
     .help = "Distribution histogram: load of each expert, in any unit."},
};
static SPEC_TABLE(table_router, "training.router", "How tokens spread over experts.", router_fields);

/* Each parameter is of one distribution; beside another it would say nothing. */
static bool check_router_keys(const SpecReadContext *context, const OrrJson *node, const SpecRouter *router,
                              GError **error)
{
    static const struct {
        const char *key;
        SpecRouterDistribution of;
    } own[] = {{"exponent", SPEC_ROUTER_ZIPF},
               {"concentration", SPEC_ROUTER_DIRICHLET},
               {"histogram", SPEC_ROUTER_HISTOGRAM}};
    for (gsize i = 0; i < G_N_ELEMENTS(own); i++) {
        const OrrJson *given = orr_json_member(node, own[i].key);
        if (given == NULL || router->distribution == own[i].of)
            continue;
        g_autofree char *shown = orr_json_show(given);
        return spec_read_fail(context, NULL, error,
                              "%s %s belongs to distribution \"%s\" and says nothing of \"%s\"; leave it out",
                              own[i].key, shown, orr_word(&spec_words_router, (int)own[i].of),
                              orr_word(&spec_words_router, (int)router->distribution));
    }
    return true;
}

static bool read_router_word(SpecReadContext *context, const OrrJson *node, int *ret_word, GError **error)
{
    static const char *const alone[] = {"framework"};
    const char *text = orr_json_type(node) == ORR_JSON_TEXT ? orr_json_text(node) : NULL;
    if (text == NULL)
        return spec_read_fail(context, node, error,
                              "is %s; give a word such as \"uniform\", or an object with distribution",
                              orr_json_type_name(node));
    if (strcmp(text, alone[0]) == 0) {
        *ret_word = SPEC_AUTO;
        return true;
    }
    if (orr_nearest(text, alone, 1) != NULL)
        return spec_read_fail(context, node, error, "is not a way of routing; did you mean \"framework\"?");
    return spec_read_word(context, &spec_words_router, node, ret_word, error);
}

static bool read_router(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecRouter *router = target;
    int word = SPEC_AUTO;
    if (orr_json_type(node) == ORR_JSON_OBJECT) {
        SpecReadContext inside = *context;
        inside.quiet++;
        return spec_read_table(&inside, &table_router, node, router, error) &&
               check_router_keys(context, node, router, error);
    }
    if (!read_router_word(context, node, &word, error))
        return false;
    if (word == SPEC_ROUTER_HISTOGRAM)
        return spec_read_fail(context, node, error,
                              "says not which; give {\"distribution\":\"histogram\",\"histogram\":[...]}");
    *router = (SpecRouter){.distribution = (SpecRouterDistribution)word, .exponent = 1, .concentration = 1};
    return true;
}

#define FRAMEWORK_DTYPE_FORM "one of fp32, tf32, fp16, bf16, fp8, fp4, or \"framework\""
#define FRAMEWORK_DTYPE_SCHEMA                                                                               \
    "{\"enum\":[\"fp32\",\"tf32\",\"fp16\",\"bf16\",\"fp8\",\"fp4\",\"framework\",\"auto\"]}"

static const SpecField images_fields[] = {
    SPEC_F_DOUBLE(
        SpecImages, per_sequence, ORR_UNIT_NONE, 0, 1e6, "0", 0,
        "Images of a sequence on average; their tokens are part of sequence_length. 0: texts alone."),
    SPEC_F_INT(SpecImages, patches, 0, 1e9, "0", 0,
               "Patches of an image: 576 of 336 x 336 pixels, where a patch has 14 x 14."),
};
static SPEC_TABLE(table_images, "training.images", "What the model's vision tower looks at.", images_fields);

static const SpecField training_fields[] = {
    SPEC_F_INT(SpecTraining, sequence_length, 1, 1e9, NULL, SPEC_FIELD_REQUIRED,
               "Tokens of one sequence; of a model with an encoder, of the decoder's."),
    SPEC_F_INT(SpecTraining, encoder_sequence_length, 1, 1e9, NULL, SPEC_FIELD_DERIVED,
               "Tokens of one sequence of the encoder; default sequence_length."),
    SPEC_F_INT(SpecTraining, global_batch, 1, 1e9, NULL, SPEC_FIELD_REQUIRED,
               "Sequences of one optimizer step, over all GPUs."),
    SPEC_F_INT(SpecTraining, micro_batch, 1, 1e6, "1", SPEC_FIELD_AUTO,
               "Sequences that one pass works on, on each data-parallel rank."),
    SPEC_F_INT(
        SpecTraining, micro_batch_preferred, 0, 1e6, "0", 0,
        "What micro_batch \"auto\" of a run takes where it fits; the framework's recipes set it. 0: none."),
    SPEC_F_DOUBLE(SpecTraining, tokens, ORR_UNIT_TOKENS, 0, 1e18, "0", 0,
                  "Tokens of the whole training run, for days, cost and energy; 0: not given."),
    {.key = "batch_schedule",
     .type = SPEC_TYPE_CUSTOM,
     .flags = SPEC_FIELD_DERIVED,
     .read = spec_read_batches,
     .absent_text = "none",
     .form = "a list of entries like {\"global_batch\": 512, \"tokens\": 10e9}",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":16}",
     .help =
         "Batches, and lengths of sequences, before global_batch and sequence_length, each for its tokens "
         "(or "
         "samples); by N: growing by N sequences. Days, costs and campaigns count them; the step is that of "
         "the run's own batch."},
    SPEC_F_DOUBLE(SpecTraining, samples, ORR_UNIT_NONE, 0, 1e15, "0", 0,
                  "Sequences of an epoch. The report then has the steps and time of an epoch. Every "
                  "data-parallel rank gets equally many, some twice. 0: not given."),
    SPEC_F_DOUBLE(SpecTraining, epochs, ORR_UNIT_NONE, 0, 1e9, "0", 0,
                  "Passes of the whole training run over training.samples, in place of training.tokens. "
                  "0: not given."),
    SPEC_F_DOUBLE(SpecTraining, skipped_steps_frac, ORR_UNIT_FRAC, 0, 0.9, NULL, SPEC_FIELD_DERIVED,
                  "Share of the steps that loss scaling skips: their tokens train nothing."),
    SPEC_F_WORD(SpecTraining, precision, &spec_words_precision, "\"bf16\"", 0,
                "Number format of matrix products, and how FP8 and FP4 scales are kept."),
    SPEC_F_WORD(SpecTraining, optimizer, &spec_words_optimizer, "\"adam\"", 0,
                "Optimizer, which decides the moments that are kept."),
    SPEC_F_CUSTOM(
        SpecTraining, recompute, read_recompute, "\"none\"", SPEC_FIELD_AUTO,
        "one of none, selective, full, selective-op, or an object with mode, layers, every_n_layers, modules",
        NULL, &table_recompute, "Activation recomputation."),
    SPEC_F_CUSTOM(
        SpecTraining, recompute_preferred, read_recompute, NULL, SPEC_FIELD_DERIVED,
        "one of none, selective, full, selective-op, or an object with mode, layers, every_n_layers, modules",
        NULL, &table_recompute,
        "What recompute \"auto\" of a run takes where it fits; the framework's recipes for a model and GPU "
        "set "
        "it."),
    SPEC_F_INT(SpecTraining, mlp_tiles, 1, 4096, "1", 0,
               "Parts of the sequence that a dense MLP runs one after the other (TiledMLP [ALST]). Only the "
               "input is kept; the backward runs each part again. Not with experts."),
    SPEC_F_CUSTOM(SpecTraining, gradient_dtype, read_framework_dtype, "\"framework\"", 0,
                  FRAMEWORK_DTYPE_FORM, FRAMEWORK_DTYPE_SCHEMA, NULL,
                  "Number format in which gradients are summed and kept."),
    SPEC_F_CUSTOM(SpecTraining, gradient_reduce_dtype, read_framework_dtype, "\"framework\"", 0,
                  FRAMEWORK_DTYPE_FORM, FRAMEWORK_DTYPE_SCHEMA, NULL,
                  "Number format in which gradients travel between GPUs."),
    SPEC_F_CUSTOM(
        SpecTraining, states, read_states, "\"framework\"", 0,
        "a recipe's name, \"framework\", or an object with weights, gradients, master, moments (bytes a "
        "parameter)",
        NULL, &table_states, "Bytes a parameter of weights, gradients, master copy and moments."),
    SPEC_F_CUSTOM(SpecTraining, router, read_router, "\"framework\"", 0,
                  "one of even, uniform, learned, \"framework\", or an object with distribution, exponent, "
                  "concentration, histogram",
                  NULL, &table_router, "How tokens spread over experts; default the framework's."),
    SPEC_F_BOOL(
        SpecTraining, attention_8bit, "false", 0,
        "The fused attention core multiplies in 8 bits too (fp8_dot_product_attention). Needs an 8- or "
        "4-bit precision."),
    SPEC_F_BOOL(SpecTraining, head_8bit, "false", 0,
                "The LM head multiplies in 8 bits too (fp8_output_proj). Needs an 8- or 4-bit precision."),
    SPEC_F_BOOL(
        SpecTraining, activation_input_8bit, "false", 0,
        "Gated MLPs keep the input of their activation in 8 bits (activation_func_fp8_input_store): half the "
        "memory, and a cast in each pass."),
    SPEC_F_DOUBLE(SpecTraining, document_tokens, ORR_UNIT_TOKENS, 0, 1e9, "0", 0,
                  "Mean length of documents packed into a sequence, attention masked between them; 0: whole "
                  "sequences."),
    SPEC_F_CUSTOM(SpecTraining, freeze, spec_read_freeze, NULL, SPEC_FIELD_DERIVED, "an object", NULL,
                  &spec_table_freeze,
                  "Weights that training leaves as they are: no gradient, no optimizer state, no reduction."),
    SPEC_F_OBJECT(SpecTraining, images, table_images, SPEC_FIELD_DERIVED,
                  "Images of the sequences, for a model with a vision tower; absent: none."),
    SPEC_F_CUSTOM(SpecTraining, lengths, spec_read_lengths, NULL, SPEC_FIELD_DERIVED, "an object", NULL,
                  &spec_table_lengths,
                  "How long the texts are, and whether they are packed or padded; without it every position "
                  "is trained."),
    SPEC_F_WORD(
        SpecTraining, task, &spec_words_task, "\"pretrain\"", 0,
        "What is trained: pretrain and sft train all weights, lora and qlora those of training.adapter. dpo "
        "trains either on pairs; a chosen and a rejected sequence count as two. orpo is dpo without a "
        "reference (ORPO, SimPO, CPO). reward trains a reward model on pairs (model.scalar_head). kto trains "
        "on "
        "single sequences with a verdict; mismatched ones run forward for its KL term. apo-unpaired is kto "
        "without "
        "it."),
    SPEC_F_WORD(SpecTraining, reference, &spec_words_reference, "\"none\"", 0,
                "dpo, kto: the reference's probabilities are cached, or come from a forward of "
                "the weights with their "
                "adapters off, or of a second, frozen model."),
    SPEC_F_CUSTOM(SpecTraining, adapter, spec_read_adapter, NULL, SPEC_FIELD_DERIVED, "an object", NULL,
                  &spec_table_adapter, "Low-rank adapters (LoRA); without it all weights are trained."),
    SPEC_F_DOUBLE(SpecTraining, predicted_frac, ORR_UNIT_FRAC, 0.001, 1, "1", 0,
                  "Share of positions in the loss, where software picks them before the LM head. NVIDIA's "
                  "BERT has 0.15."),
};
SPEC_TABLE(spec_table_training, "training", "What is trained with: batch, sequence, precision, optimizer.",
           training_fields);
