/* spec/fields_framework_defaults.c - fields of what a scenario that does not say gets from its software. */
#include "spec/fields_internal.h"
#include "spec/read.h"

static const SpecField defaults_fields[] = {
    SPEC_F_WORD(SpecRecipeDefaults, attention, &spec_words_attention, "\"flash2\"", 0,
                "Kernels of the attention core of scenarios that do not say."),
    SPEC_F_WORD(
        SpecRecipeDefaults, attention_since_hopper, &spec_words_attention, NULL, SPEC_FIELD_DERIVED,
        "Attention kernel where none is named, on Hopper and Blackwell. Default: the one for other GPUs."),
    SPEC_F_WORD(SpecRecipeDefaults, attention_since_blackwell, &spec_words_attention, NULL,
                SPEC_FIELD_DERIVED,
                "Attention kernel where none is named, on Blackwell. Default: the one for Hopper."),
    SPEC_F_WORD(SpecRecipeDefaults, moe_dispatcher, &spec_words_dispatcher, "\"alltoall\"", 0,
                "What carries tokens to experts, of scenarios that do not say."),
    SPEC_F_WORD(SpecRecipeDefaults, context_mode, &spec_words_context, "\"ring\"", 0,
                "How context ranks exchange keys and values, of scenarios that do not say."),
    {.key = "overlap",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeDefaults, overlap),
     .words = &spec_words_overlap,
     .default_text = "[]",
     .help = "Communication that overlaps with compute where the scenario does not say."},
    {.key = "overlap_zero3",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeDefaults, overlap_zero3),
     .words = &spec_words_overlap,
     .flags = SPEC_FIELD_DERIVED,
     .help = "Overlap where none is named, under ZeRO-3. Default: the list for other ZeRO stages."},
    SPEC_F_BOOL(SpecRecipeDefaults, compiled, "false", 0,
                "Whether a compiler fuses element-wise kernels, of scenarios that do not say."),
    {.key = "recipe_overlap",
     .type = SPEC_TYPE_WORD_SET,
     .offset = offsetof(SpecRecipeDefaults, recipe_overlap),
     .words = &spec_words_overlap,
     .default_text = "[]",
     .help =
         "What recipes overlap further when a run overlaps grad_reduce and param_gather. pipeline: with "
         "interleaved stages. tensor: without experts, with sequence parallelism inside one NVLink node."},
    SPEC_F_INT(SpecRecipeDefaults, zero, 0, 3, "0", 0,
               "ZeRO stage of scenarios that do not say: 3 of software that shards as it stands (FSDP)."),
    SPEC_F_BOOL(SpecRecipeDefaults, sequence_parallel, "false", 0,
                "Whether tensor-parallel ranks split the sequence too, of scenarios that do not say."),
    SPEC_F_BOOL(
        SpecRecipeDefaults, slices_experts, "false", 0,
        "Experts are cut by the tensor degree where parallel.expert_tensor is left out; else they are whole "
        "as soon as "
        "parallel.expert is above 1."),
    SPEC_F_BOOL(
        SpecRecipeDefaults, learned_router, "false", 0,
        "Tokens of scenarios that do not say spread over experts as trained routers spread text; else "
        "evenly, as benchmarks force it."),
    SPEC_F_DOUBLE(SpecRecipeDefaults, dropout_frac, ORR_UNIT_FRAC, 0, 0.999, "0", 0,
                  "Dropout of models that do not say."),
};
const SpecTable spec_table_recipe_defaults = {
    .name = "defaults",
    .help = "What a scenario that does not say gets from this software.",
    .fields = defaults_fields,
    .count = (int)G_N_ELEMENTS(defaults_fields)};
