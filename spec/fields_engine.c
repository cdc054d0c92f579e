/* spec/fields_engine.c - the group "engine" of a framework's recipe: how it generates.
 * Tested: unit/costmodel/test_generate.c
 */
#include "spec/fields_internal.h"

#include <string.h>

/* Which GPUs an entry of measured kernels is for. */
#define MEASURED_ON(which)                                                                                   \
    {                                                                                                        \
        .key = "generation", .type = SPEC_TYPE_CUSTOM, .flags = SPEC_FIELD_REQUIRED,                         \
        .offset = offsetof(which, generation), .size = sizeof(SpecGeneration),                               \
        .words = &spec_words_generation, .read = spec_read_generation, .table = &spec_table_generation,      \
        .form = "or an object with \"like\" and the traits that differ",                                     \
        .help = "Generation of the GPUs that were measured."                                                 \
    }

static const SpecField expert_fields[] = {
    SPEC_F_WORD(SpecExpertKernel, format, &spec_words_expert_format, NULL, SPEC_FIELD_REQUIRED,
                "How experts are stored and multiplied."),
    MEASURED_ON(SpecExpertKernel),
    SPEC_F_DOUBLE(SpecExpertKernel, start_s, ORR_UNIT_SECONDS, 0, 1, NULL, SPEC_FIELD_REQUIRED,
                  "Fixed time of the kernels of one layer's experts, whatever their work."),
    SPEC_F_DOUBLE(SpecExpertKernel, memory_frac, ORR_UNIT_FRAC, 0.01, 1, NULL, SPEC_FIELD_REQUIRED,
                  "Share of the memory's rate at which weights are read."),
    SPEC_F_DOUBLE(SpecExpertKernel, flops_frac, ORR_UNIT_FRAC, 0.01, 1, NULL, SPEC_FIELD_REQUIRED,
                  "Share of the dense peak of the format that products reach."),
    SPEC_F_DOUBLE(
        SpecExpertKernel, rows_frac, ORR_UNIT_FRAC, 0.01, 1, NULL, SPEC_FIELD_REQUIRED,
        "Share of the memory's rate at which rows are cast, put in the order of experts, and summed. "
        "Each row counts as read and written once, in 16 bits."),
    SPEC_F_CUSTOM_SOURCE("The benchmark that measured the kernels."),
};
static SPEC_TABLE(expert_table, "framework.engine.experts", "What the kernels of a layer's experts reach.",
                  expert_fields);

static const SpecField attention_fields[] = {
    SPEC_F_WORD(SpecAttentionKernel, format, &spec_words_cache_format, NULL, SPEC_FIELD_REQUIRED,
                "Kind and bits of the KV cache that these rates are for."),
    MEASURED_ON(SpecAttentionKernel),
    SPEC_F_DOUBLE(SpecAttentionKernel, start_s, ORR_UNIT_SECONDS, 0, 1, NULL, SPEC_FIELD_REQUIRED,
                  "Fixed time of one layer's attention, whatever the context."),
    SPEC_F_DOUBLE(SpecAttentionKernel, memory_frac, ORR_UNIT_FRAC, 0.01, 1, NULL, SPEC_FIELD_REQUIRED,
                  "Share of the memory's rate at which caches are read."),
    SPEC_F_DOUBLE(SpecAttentionKernel, rows_frac, ORR_UNIT_FRAC, 0.001, 1, NULL, SPEC_FIELD_REQUIRED,
                  "Share of the memory's rate at which each sequence's newest queries, keys, values and "
                  "results count as moved once."),
    SPEC_F_CUSTOM_SOURCE("The benchmark that measured the kernels."),
};
static SPEC_TABLE(attention_table, "framework.engine.kv_reads", "What the kernels of decode attention reach.",
                  attention_fields);

/* A list of entries of `size` bytes into `kernels`, and how many. */
static bool read_kernels(SpecReadContext *context, const OrrJson *node, const SpecTable *table, void *kernels,
                         size_t size, int *ret_count, GError **error)
{
    *ret_count = 0;
    if (orr_json_type(node) != ORR_JSON_LIST)
        return spec_read_fail(context, node, error, "is not a list; give a list of objects");
    for (const OrrJson *item = orr_json_first(node); item != NULL; item = orr_json_next(item)) {
        if (*ret_count == SPEC_ENGINE_MOST_KERNELS)
            return spec_read_fail(context, NULL, error, "has more than %d entries", SPEC_ENGINE_MOST_KERNELS);
        context->quiet++;
        const bool ok =
            spec_read_table(context, table, item, (char *)kernels + (size_t)*ret_count * size, error);
        context->quiet--;
        if (!ok)
            return false;
        ++*ret_count;
    }
    return true;
}

static bool read_experts(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecExpertKernels *experts = target;
    memset(experts, 0, sizeof *experts); /* frameworks are compared byte by byte */
    return read_kernels(context, node, &expert_table, experts->kernel, sizeof *experts->kernel,
                        &experts->count, error);
}

static bool read_attention(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    SpecAttentionKernels *attention = target;
    memset(attention, 0, sizeof *attention);
    return read_kernels(context, node, &attention_table, attention->kernel, sizeof *attention->kernel,
                        &attention->count, error);
}

static bool read_weights_dtype(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    int dtype = SPEC_AUTO;
    const bool same = orr_json_type(node) == ORR_JSON_TEXT && strcmp(orr_json_text(node), "precision") == 0;
    if (!same && !spec_read_word(context, &spec_words_dtype, node, &dtype, error))
        return false;
    *(SpecDtype *)target = (SpecDtype)dtype;
    return true;
}

static const SpecField engine_fields[] = {
    SPEC_F_INT(SpecEngine, max_sequences, 0, 1e6, "0", 0,
               "Most sequences that a replica works on at once; 0: the software generates nothing."),
    SPEC_F_DOUBLE(SpecEngine, memory_frac, ORR_UNIT_FRAC, 0.1, 1, "0.9", 0,
                  "Share of a GPU's memory that weights, work and caches may take."),
    SPEC_F_DOUBLE(SpecEngine, free_memory_frac, ORR_UNIT_FRAC, 0.1, 1, "1", 0,
                  "Share that the caches take of what weights and work leave of it."),
    SPEC_F_DOUBLE(SpecEngine, fixed_bytes, ORR_UNIT_BYTES, 0, 1e14, "0", 0,
                  "GPU memory of the CUDA context, the communicator and captured graphs."),
    SPEC_F_DOUBLE(SpecEngine, prefill_tokens, ORR_UNIT_TOKENS, 1, 1e7, "8192", 0,
                  "Tokens of prompts that one step reads at most."),
    SPEC_F_DOUBLE(SpecEngine, step_host_s, ORR_UNIT_SECONDS, 0, 3600, "0", 0,
                  "What the host takes for a step while the GPU waits: scheduling, sampling."),
    SPEC_F_DOUBLE(SpecEngine, sequence_host_s, ORR_UNIT_SECONDS, 0, 1, "0", 0,
                  "What the host takes for each sequence of a step while the GPU waits: its blocks of the "
                  "cache, its new token."),
    SPEC_F_DOUBLE(SpecEngine, logprob_host_s, ORR_UNIT_SECONDS, 0, 1, "0", 0,
                  "What it takes beyond that for the log-probability of each token, for which rollouts of "
                  "reinforcement learning ask."),
    SPEC_F_DOUBLE(
        SpecEngine, load_host_s, ORR_UNIT_SECONDS, 0, 1, "0", 0,
        "What the host takes to load one tensor of new weights, in a sync of reinforcement learning."),
    SPEC_F_DOUBLE(
        SpecEngine, drafted_tokens, ORR_UNIT_NONE, 0, 64, "0", 0,
        "Further tokens that a step accepts on average, drafted ahead (speculative decoding). What drafting "
        "costs is not counted."),
    SPEC_F_BOOL(
        SpecEngine, reserves_longest, "false", 0,
        "A sequence starts when there is room for its longest possible answer. Otherwise it starts when "
        "there is room, "
        "and the newest gives way when there is none."),
    SPEC_F_BOOL(SpecEngine, shares_prefixes, "true", 0,
                "Answers to one prompt share what was computed of it."),
    SPEC_F_BOOL(
        SpecEngine, keeps_windows, "false", 0,
        "Layers with a window keep keys and values of the whole sequence. Otherwise they keep the window."),
    SPEC_F_BOOL(SpecEngine, gathers_rows, "true", 0,
                "Ranks with sequences of their own gather all rows for their experts, and sum results by a "
                "reduce-scatter. False: rows go to the ranks of their experts alone."),
    SPEC_F_DOUBLE(
        SpecEngine, workspace_rows, ORR_UNIT_NONE, 0, 1000, "0", 0,
        "Rows of the hidden size in 16 bits that the engine's workspace holds for each token of its "
        "cache, on every tensor rank."),
    SPEC_F_BOOL(SpecEngine, keeps_cache, "false", 0,
                "Memory for keys and values stays on the GPU while other roles work there."),
    SPEC_F_BOOL(SpecEngine, whole_batches, "false", 0,
                "A batch runs to its end as one: memory has to hold all of its answers at their longest. "
                "Otherwise answers start as there is room."),
    SPEC_F_BOOL(SpecEngine, narrow_rows, "false", 0,
                "Rows travel to experts in the format in which these multiply; else in 16 bits. Results "
                "return in 16."),
    SPEC_F_BOOL(
        SpecEngine, pads_batches, "false", 0,
        "Steps run as captured CUDA graphs of 1, 2, 4, 8 and so on sequences: a batch is filled up to "
        "the next of them."),
    SPEC_F_BOOL(
        SpecEngine, captures_graphs, "true", 0,
        "Steps run as captured CUDA graphs. Otherwise (enforce_eager of vLLM) the host launches each kernel "
        "in host.kernel_host_s, and the GPU waits for it where its kernels are shorter."),
    SPEC_F_CUSTOM(SpecEngine, weights_dtype, read_weights_dtype, "\"precision\"", 0,
                  "\"precision\", or one of bf16, fp8, fp4, int8, int4", NULL, NULL,
                  "How matrices of layers are stored, where that is narrower than what is multiplied "
                  "(weight-only quantisation)."),
    SPEC_F_WORD(SpecEngine, cache_dtype, &spec_words_dtype, "\"bf16\"", 0,
                "Number format of keys and values in the cache."),
    {.key = "experts",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecEngine, experts),
     .read = read_experts,
     .form = "a list of at most 16 objects",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":16}",
     .table = &expert_table,
     .help = "What the kernels of a layer's experts reach, by format and generation of GPUs. A model that no "
             "entry fits is priced as grouped products and the kernels around them."},
    {.key = "kv_reads",
     .type = SPEC_TYPE_CUSTOM,
     .offset = offsetof(SpecEngine, attention),
     .read = read_attention,
     .form = "a list of at most 16 objects",
     .schema = "{\"type\":\"array\",\"items\":{\"type\":\"object\"},\"maxItems\":16}",
     .table = &attention_table,
     .help = "What the kernels of decode attention reach, by format of the cache and generation of GPUs. A "
             "model that no entry fits reads its cache at 0.9 of the memory's rate."},
};
SPEC_TABLE(spec_table_engine, "framework.engine", "How it generates, where it does.", engine_fields);
