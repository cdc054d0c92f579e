/* spec/fields_kernel.c - field tables of the "model" block of an accelerator: what GEMM, attention and
 * memory-bound kernels take. Each list below gives the table, the manual and the defaults at once, so that
 * an accelerator without measurements and a block with a key left out agree.
 *
 * Defaults are the middle of the fitted accelerators, rounded; they stand for no device in particular.
 */
#include <stddef.h>

#include "spec/fields.h"

#define OPTIONAL SPEC_FIELD_DERIVED

/* Text and lists beside the numbers: provenance for people and tools, not stored. */
static bool read_note(SpecReadContext *context, const OrrJson *node, void *target, GError **error)
{
    (void)context, (void)target;
    if (orr_json_type(node) == ORR_JSON_TEXT || orr_json_type(node) == ORR_JSON_LIST)
        return true;
    char *shown = orr_json_show(node);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "\"%s\" is %s; it is a note: a text or a list",
                orr_json_key(node) ? orr_json_key(node) : "", shown);
    g_free(shown);
    return false;
}

#define NOTE(name, text)                                                                                     \
    {                                                                                                        \
        .key = name, .type = SPEC_TYPE_CUSTOM, .flags = OPTIONAL, .read = read_note,                         \
        .form = "text or a list", .schema = "{\"type\":[\"string\",\"array\"]}", .help = (text)              \
    }
#define NOTES                                                                                                \
    NOTE("source", "Where the measurements come from."),                                                     \
        NOTE("derived_from", "The accelerator whose fit was carried over, and how."),                        \
        NOTE("layouts_from",                                                                                 \
             "The accelerator whose speeds of the backward layouts and of grouped products apply."),         \
        NOTE("backward_from", "The accelerator whose ratio of backward to forward speed applies."),          \
        NOTE("fits",                                                                                         \
             "Fit error per source: rows, median and 90th percentile of the absolute relative error.")

#define OBJECT(name, st, member, tab, text)                                                                  \
    {                                                                                                        \
        .key = name, .type = SPEC_TYPE_OBJECT, .offset = offsetof(st, member),                               \
        .size = sizeof(((st *)0)->member), .flags = OPTIONAL, .table = &(tab), .help = (text)                \
    }
#define TABLE(tab, title, text, list)                                                                        \
    static const SpecTable tab = {                                                                           \
        .name = title, .help = text, .fields = list, .count = (int)G_N_ELEMENTS(list)}

/* F(member, unit, least, greatest, default, help) */
#define SHARED_FIELDS(F)                                                                                     \
    F(memory_frac, FRAC, 0.05, 1.2, 0.83,                                                                    \
      "DRAM bandwidth that a GEMM streaming its operands reaches, over the data sheet's.")                   \
    F(overlap_loss_frac, FRAC, 0, 1, 0.1892,                                                                 \
      "Where DRAM and the tensor cores need the same time, how much longer both together take; 0: no "       \
      "longer, "                                                                                             \
      "1: one after the other.")                                                                             \
    F(tile_s, SECONDS, 0, 1e-3, 6e-7, "Prologue and drain of one tile's main loop.")                         \
    F(epilogue_s, SECONDS, 0, 1e-3, 7e-7,                                                                    \
      "Writing one 256 x 128 tile of output; smaller tiles in proportion.")                                  \
    F(wave_quantum, NONE, 0, 1, 0.6, "1: a partial last wave of tiles costs a whole one; 0: its share.")     \
    F(split_s, SECONDS, 0, 1e-3, 2e-6, "Start of the reduction of a split-k product.")                       \
    F(split_speedup, NONE, 0.1, 100, 2.5,                                                                    \
      "Bandwidth of that reduction over DRAM's: it stays in the L2 cache.")                                  \
    F(latency_s, SECONDS, 0, 1e-3, 2.8e-6, "An empty kernel: first instruction to last byte.")               \
    F(static_frac, FRAC, 0, 0.9, 0.2, "Share of the power limit that does not depend on the clock.")

#define GEMM_FIELDS(F)                                                                                       \
    F(peak_frac, FRAC, 0, 1.3, 0.95,                                                                         \
      "Main loop of an endlessly large tile, over the dense peak, before throttling; 0: block absent.")      \
    F(tile_half, NONE, 0, 1000, 12,                                                                          \
      "Tile size, as operand reuse tm tn / (tm + tn), at which half of the peak fraction is reached.")       \
    F(backward_input_frac, FRAC, 0.1, 2, 1,                                                                  \
      "Speed of the input-gradient layout (NN) over the forward one (TN).")                                  \
    F(backward_weight_frac, FRAC, 0.1, 2, 1,                                                                 \
      "Speed of the weight-gradient layout (NT) over the forward one (TN).")                                 \
    F(grouped_frac, FRAC, 0.05, 2, 0.9, "Speed of grouped (expert) products over dense ones.")               \
    F(group_s, SECONDS, 0, 1e-3, 2e-6,                                                                       \
      "What every group of a grouped product adds: experts' kernels start one by one.")                      \
    F(power_frac, FRAC, 0, 5, 1.2,                                                                           \
      "Power of the dense peak at the boost clock, over what the power limit leaves above static_frac.")     \
    F(throttle_s, SECONDS, 0, 10, 1e-3, "Kernels much shorter than this run at the boost clock.")            \
    F(fit_rows, NONE, 0, 1e9, 0, "Number of measured rows that the block was fitted to; 0: none.")           \
    F(fit_median_frac, FRAC, 0, 10, 0, "Median absolute relative error on the rows of the fit.")             \
    F(fit_p90_frac, FRAC, 0, 10, 0,                                                                          \
      "90th percentile of the absolute relative error on the rows of the fit (fit_rows).")

#define ATTENTION_FIELDS(F)                                                                                  \
    F(peak_frac, FRAC, 0, 1.3, 0.85,                                                                         \
      "Forward, over the dense peak, head dimension without end; 0: block absent.")                          \
    F(half_dim, NONE, 0, 1000, 40,                                                                           \
      "Head dimension at which the softmax takes as long as the products, forward.")                         \
    F(wide_frac, FRAC, 0.1, 2, 1, "Speed of head dimensions above 128, whose tiles are smaller, forward.")   \
    F(backward_peak_frac, FRAC, 0, 1.3, 0.75,                                                                \
      "Share of the dense peak that the backward would reach with an endless head dimension.")               \
    F(backward_half_dim, NONE, 0, 1000, 35,                                                                  \
      "Head dimension at which the softmax takes as long as the products, backward.")                        \
    F(backward_wide_frac, FRAC, 0.1, 2, 0.8, "Speed of head dimensions above 128, backward.")                \
    F(q_tile_tokens, TOKENS, 1, 4096, 128, "Block of queries that one thread block holds.")                  \
    F(kv_tile_tokens, TOKENS, 1, 4096, 128, "Block of keys and values that it streams.")                     \
    F(wave_quantum, NONE, 0, 1, 0.5, "1: a partial last wave of blocks costs a whole one; 0: its share.")    \
    F(tile_s, SECONDS, 0, 1e-3, 2e-6, "Prologue and epilogue of one block of queries, forward.")             \
    F(backward_tile_s, SECONDS, 0, 1e-3, 3e-6, "Prologue and epilogue of one block of queries, backward.")   \
    F(latency_s, SECONDS, 0, 1e-3, 6e-6, "An empty forward kernel.")                                         \
    F(backward_latency_s, SECONDS, 0, 1e-3, 1.2e-5,                                                          \
      "Fixed time of the backward kernels (row sums, main, conversion of dQ), whatever their work.")         \
    F(power_frac, FRAC, 0, 20, 2,                                                                            \
      "Power of the dense peak at the boost clock, over what the power limit leaves.")                       \
    F(fp8_frac, FRAC, 0.05, 2, 0.65, "Efficiency over the fp8 peak against that over the 16-bit peak.")      \
    F(backward_fp8_frac, FRAC, 0, 2, 0,                                                                      \
      "Speed of the backward kernel in fp8 over 16-bit. 0: the forward's figure.")                           \
    F(backward_fp8_half_dim, NONE, 0, 1000, 0,                                                               \
      "Head dimension at which exponentials and casts take as long as products of 8 bits, backward; 0: as "  \
      "in 16 bits.")                                                                                         \
    F(mxfp8_frac, FRAC, 0.05, 2, 1, "Speed with a scale for 32 elements over one a tensor, forward.")        \
    F(backward_mxfp8_frac, FRAC, 0.05, 2, 1,                                                                 \
      "Speed with a scale for 32 elements over one a tensor, backward.")                                     \
    F(early_frac, FRAC, 0.05, 2, 1, "Speed before cuDNN 9.17 (framework.kernels.cudnn), forward.")           \
    F(backward_early_frac, FRAC, 0.05, 2, 1, "Speed before cuDNN 9.17 (framework.kernels.cudnn), backward.") \
    F(fit_rows, NONE, 0, 1e9, 0, "Number of measured rows that the block was fitted to; 0: none.")           \
    F(fit_median_frac, FRAC, 0, 10, 0, "Median absolute relative error on the rows of the fit.")             \
    F(fit_p90_frac, FRAC, 0, 10, 0,                                                                          \
      "90th percentile of the absolute relative error on the rows of the fit (fit_rows).")

#define MEMORY_BOUND_FIELDS(F)                                                                               \
    F(elementwise_frac, FRAC, 0, 1.2, 0.85,                                                                  \
      "Bandwidth of element-wise kernels over the data sheet's; 0: block absent.")                           \
    F(norm_frac, FRAC, 0.01, 1.2, 0.8,                                                                       \
      "DRAM bandwidth that layer norms and RMS norms reach, over the data sheet's.")                         \
    F(softmax_frac, FRAC, 0.01, 1.2, 0.8,                                                                    \
      "DRAM bandwidth that softmax over materialised scores reaches, over the data sheet's.")                \
    F(cross_entropy_frac, FRAC, 0.01, 1.2, 0.7,                                                              \
      "DRAM bandwidth that the loss (cross entropy) reaches, over the data sheet's.")                        \
    F(permute_frac, FRAC, 0.01, 1.2, 0.4,                                                                    \
      "DRAM bandwidth that gathering and scattering token rows reaches, over the data sheet's.")             \
    F(cast_frac, FRAC, 0.01, 1.2, 0.65,                                                                      \
      "DRAM bandwidth that casts to 8 and 4 bits reach, over the data sheet's.")                             \
    F(optimizer_frac, FRAC, 0.01, 1.2, 0.8,                                                                  \
      "DRAM bandwidth that the optimizer's kernels reach, over the data sheet's.")                           \
    F(addressed_frac, FRAC, 0.05, 4, 1,                                                                      \
      "Elements an SM takes of kernels that address each by itself, over "                                   \
      "framework.kernels.sm_elements_per_s.")                                                                \
    F(latency_s, SECONDS, 0, 1e-3, 3e-6, "An empty kernel.")                                                 \
    F(row_block_s, SECONDS, 0, 1e-3, 1.4e-6,                                                                 \
      "Fixed time of one row of PyTorch's norm kernels, on top of its bytes: launch, memory latency, sums.") \
    F(fit_rows, NONE, 0, 1e9, 0, "Number of measured rows that the block was fitted to; 0: none.")           \
    F(fit_median_frac, FRAC, 0, 10, 0, "Median absolute relative error on the rows of the fit.")             \
    F(fit_p90_frac, FRAC, 0, 10, 0,                                                                          \
      "90th percentile of the absolute relative error on the rows of the fit (fit_rows).")

#define FIELD(st, member, u, lo, hi, def, text)                                                              \
    SPEC_F_DOUBLE(st, member, ORR_UNIT_##u, lo, hi, #def, 0, text),
#define SHARED_FIELD(member, u, lo, hi, def, text)    FIELD(SpecGemmShared, member, u, lo, hi, def, text)
#define GEMM_FIELD(member, u, lo, hi, def, text)      FIELD(SpecGemmModel, member, u, lo, hi, def, text)
#define ATTENTION_FIELD(member, u, lo, hi, def, text) FIELD(SpecAttentionModel, member, u, lo, hi, def, text)
#define MEMORY_BOUND_FIELD(member, u, lo, hi, def, text)                                                     \
    FIELD(SpecMemoryBoundModel, member, u, lo, hi, def, text)
#define DEFAULT(member, u, lo, hi, def, text) .member = (def),

const SpecGemmShared spec_gemm_shared_default = {SHARED_FIELDS(DEFAULT)};
const SpecGemmModel spec_gemm_model_default = {GEMM_FIELDS(DEFAULT)};
const SpecAttentionModel spec_attention_model_default = {ATTENTION_FIELDS(DEFAULT)};
const SpecMemoryBoundModel spec_memory_bound_model_default = {MEMORY_BOUND_FIELDS(DEFAULT)};

static const SpecField shared_fields[] = {SHARED_FIELDS(SHARED_FIELD) NOTES};
TABLE(table_shared, "model.gemm.shared", "What GEMMs of every dtype share.", shared_fields);
static const SpecField gemm_fields[] = {GEMM_FIELDS(GEMM_FIELD) NOTES};
TABLE(table_gemm, "model.gemm", "Matrix products of one dtype.", gemm_fields);
static const SpecField attention_fields[] = {ATTENTION_FIELDS(ATTENTION_FIELD) NOTES};
TABLE(table_attention, "model.attention", "One kernel of the attention core.", attention_fields);
static const SpecField memory_bound_fields[] = {MEMORY_BOUND_FIELDS(MEMORY_BOUND_FIELD) NOTES};
TABLE(table_memory_bound, "model.memory_bound", "Kernels that only move bytes.", memory_bound_fields);

#define GEMM_OF(word, dtype)                                                                                 \
    OBJECT(word, SpecKernelModel, gemm[dtype], table_gemm, "Matrix products in " word ".")
static const SpecField gemms_fields[] = {
    OBJECT("shared", SpecKernelModel, gemm_shared, table_shared, "What GEMMs of every dtype share."),
    GEMM_OF("fp32", SPEC_FP32),
    GEMM_OF("tf32", SPEC_TF32),
    GEMM_OF("fp16", SPEC_FP16),
    GEMM_OF("bf16", SPEC_BF16),
    GEMM_OF("fp8", SPEC_FP8),
    GEMM_OF("fp4", SPEC_FP4),
    GEMM_OF("int8", SPEC_INT8),
    GEMM_OF("int4", SPEC_INT4),
};
TABLE(table_gemms, "model.gemm",
      "Matrix products, a block a dtype; absent: the nearest dtype's, against its own peak.", gemms_fields);

#define ATTENTION_OF(word, kernel)                                                                           \
    OBJECT(word, SpecKernelModel, attention[kernel], table_attention, "The " word " kernels.")
static const SpecField attentions_fields[] = {
    ATTENTION_OF("flash2", SPEC_ATTENTION_FLASH2),
    ATTENTION_OF("flash3", SPEC_ATTENTION_FLASH3),
    ATTENTION_OF("cudnn", SPEC_ATTENTION_CUDNN),
};
TABLE(table_attentions, "model.attention", "The attention core, a block a kernel generation.",
      attentions_fields);

/* "gemm" and "attention" hold blocks of the whole struct: their tables' offsets count from its start. */
#define GROUP(name, tab, text)                                                                               \
    {                                                                                                        \
        .key = name, .type = SPEC_TYPE_OBJECT, .offset = 0, .size = sizeof(SpecKernelModel),                 \
        .flags = OPTIONAL, .table = &(tab), .help = (text)                                                   \
    }
static const SpecField kernel_fields[] = {
    GROUP("gemm", table_gemms, "Matrix products."),
    GROUP("attention", table_attentions, "The attention core."),
    OBJECT("memory_bound", SpecKernelModel, memory_bound, table_memory_bound,
           "Kernels that only move bytes."),
    OBJECT("collectives", SpecKernelModel, collectives, spec_table_collective_model,
           "NCCL on this accelerator's links."),
    NOTES,
};
const SpecTable spec_table_kernel_model = {
    .name = "model",
    .help = "Fitted parameters of the time model: docs/MODEL-kernels.md.",
    .fields = kernel_fields,
    .count = (int)G_N_ELEMENTS(kernel_fields),
};
