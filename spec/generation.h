/* spec/generation.h - what chips of one generation have in common: a row of traits for each. Nobody asks for a
 * generation's name but the reader: code asks what a chip can do. */
#ifndef ORR_SPEC_GENERATION_H
#define ORR_SPEC_GENERATION_H

#include <stdbool.h>

#include "spec/names.h"

/* Which of a framework's `defaults` names the attention kernel. In the order of the words in generation.c. */
typedef enum {
    SPEC_ATTENTION_DEFAULT,
    SPEC_ATTENTION_SINCE_HOPPER,
    SPEC_ATTENTION_SINCE_BLACKWELL
} SpecAttentionDefault;

/* What a chip is to a program: whose kernels and libraries it needs. In the order of the words in generation.c. */
typedef enum {
    SPEC_CHIP_GPU,
    SPEC_CHIP_TPU,
    SPEC_CHIP_TRAINIUM,
    SPEC_CHIP_GAUDI,
    SPEC_CHIP_WAFER,
    SPEC_CHIP_OTHER
} SpecChip;

/* What each trait means is told in generation.c. All zero: the oldest GPU that there is. */
typedef struct SpecGeneration {
    char name[32];
    int order;
    bool assumed;
    bool without_sms, foreign_kernels;
    int nccl_row;
    bool multicast;
    bool two_sm_tiles, either_order, small_pieces_leave_tensor_cores;
    double sm_flops_per_clock, narrow_cache_per_clock;
    SpecAttentionDefault attention_default;
    bool assembly_attention;
    bool late_latent_heads, fused_grouped_experts, free_queues;
    int cudnn_query_tokens;
    bool sheet_below_highest_clock;
    SpecTopology scale_up_topology;
    int compute_capability;
    SpecChip chip;
} SpecGeneration;

extern const SpecWords spec_words_chip;

/* Words of the rows. */
extern const SpecWords spec_words_generation;

/* Traits of a row; NULL: there is none of this name. */
const SpecGeneration *spec_generation(const char *name);
/* The latest row with this compute capability, times ten (90: Hopper), or one before it. */
const SpecGeneration *spec_generation_of_capability(double capability);
/* As alike as chips of one generation: figures of one carry over to the other by their peaks and power. */
bool spec_generation_same(const SpecGeneration *a, const SpecGeneration *b);
/* `a` comes after `b`, of the same maker. */
bool spec_generation_later(const SpecGeneration *a, const SpecGeneration *b);
/* "without_sms, nccl_row 1": traits that are not zero; g_free. */
char *spec_generation_traits(const SpecGeneration *generation);

#endif
