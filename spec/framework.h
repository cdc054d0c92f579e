/* spec/framework.h - the recipe of a training software, in groups: which kernels it runs, how it launches, shards,
 * exchanges and keeps. What each member means, its unit and its range: the tables of spec/fields_framework.c.
 */
#ifndef ORR_SPEC_FRAMEWORK_H
#define ORR_SPEC_FRAMEWORK_H

#include <stdbool.h>

#include "spec/generation.h"
#include "spec/names.h"

/* Which kernels run, fused, split, copied or cast. */
typedef struct SpecRecipeKernels {
    SpecSoftmax softmax;
    int fused_softmax_rows;
    SpecBias bias;
    SpecGelu gelu;
    SpecRope rope;
    SpecNormKernel norm;
    SpecEmbedding embedding;
    SpecGradientSum gradient_sum;
    SpecVocabRows vocab_rows;
    bool fused_swiglu, fused_dropout_add, batches_heads;
    double gate_backward_copies;
    SpecProjections projections;
    double attention_speed_frac;
    SpecCudnn cudnn;
    SpecTransformerEngine transformer_engine;
    SpecCasts casts;
    double rowwise_gemm_frac, rowwise_long_gemm_frac;
    bool recompute_stops_early, pageable_checkpoints, compiler, autocast, stacks_layers,
        one_pass_norm_backward, reductions_apart, selective_keeps_products;
    unsigned recompute_modes; /* bits of SpecRecomputeMode */
    unsigned attention_cores; /* bits of SpecAttention */
    unsigned overlaps;        /* bits of SpecOverlap */
    unsigned chips;           /* bits of SpecChip; 0: any */
    bool recompute_partial;
    double sm_elements_per_s, norm_weight_elements_per_s;
} SpecRecipeKernels;

/* What the host costs: launches, waits, bookkeeping. */
typedef struct SpecRecipeHost {
    double kernel_host_s, host_spread_frac, backward_host_frac;
    SpecHostWaits waits;
    double collective_check_hop_s;
    bool collective_checks_pipelines_only;
    double kernel_gap_s, collective_gap_s, step_overhead_s, microbatch_overhead_s;
    bool reads_masks;
} SpecRecipeHost;

/* How gradients are reduced and sharded weights gathered. */
typedef struct SpecRecipeDataParallel {
    SpecDtype gradient_dtype, gradient_reduce_dtype;
    double bucket_bytes, bucket_rank_bytes, first_bucket_bytes;
    SpecBucketFill bucket_fill;
    SpecReductions reductions;
    SpecZero1Reduces zero1_reduces;
    SpecGathers gathers;
    bool initial_broadcast, reduce_each_microbatch, gathers_within_layer;
    int prefetch_units;
    SpecResharding resharding;
    bool root_unit, gradient_cast, prefetches_by_trace;
    double gradient_copies, bucket_copies, gathered_copies;
    double tensor_list_rank_host_s, tensor_list_copies;
    SpecGathersBegin gathers_begin;
    int least_zero, most_zero, most_zero_in_pipeline;
    int plain_zero;
} SpecRecipeDataParallel;

/* How tensor-parallel ranks exchange activations. */
typedef struct SpecRecipeTensor {
    SpecTensorOverlap tensor_overlap;
    bool overlap_tensor_backward, keeps_gathered_input;
    double tensor_layout_copies;
    bool tensor_gather_8bit, cuts_latents;
    SpecSharedMaxima shares_maxima;
} SpecRecipeTensor;

/* How context-parallel ranks exchange keys and values. */
typedef struct SpecRecipeContext {
    bool repeats_kv;
    SpecContextMerge context_merge;
} SpecRecipeContext;

/* How a rank runs its experts. */
typedef struct SpecRecipeExperts {
    SpecExpertProducts expert_products;
    bool pads_expert_rows, router_tf32, paged_stash;
    unsigned dispatchers; /* bits of SpecMoeDispatcher */
    int hybridep_sms, fused_mlp_free_sms;
    double host_sync_s;
} SpecRecipeExperts;

/* How stages are laid out and exchange messages. */
typedef struct SpecRecipePipeline {
    unsigned schedules;
    bool balances_head;
    SpecP2pWaits p2p_waits;
    double p2p_host_s;
    int p2p_forward_messages;
    SpecP2pTensors p2p_tensors;
    bool p2p_one_at_a_time;
    int deferred_head_gradients;
} SpecRecipePipeline;

/* Model states and the optimizer's step. */
typedef struct SpecRecipeOptimizer {
    SpecStatesRecipe states;
    bool optimizer_fused;
    SpecGradNorm grad_norm;
    double optimizer_flat_bytes, optimizer_streams, optimizer_temp_bytes;
    unsigned offload_schemes;     /* bits of SpecOffloadScheme that it has */
    double host_optimizer_passes; /* times that its optimizer on the host streams states over a fused one */
    double host_gradient_bytes;   /* of a parameter's gradient on its way to the host; 0: the weights' */
    SpecHostGradients host_gradients;
    double host_gradient_check_bytes; /* of a parameter that the GPU moves before its gradient may leave */
    double host_weight_bytes;         /* of an updated weight on its way back; 0: the weights' */
    double host_shard_bytes;   /* ZeRO-3: of a weight on its way to its gather; 0: as wide as the gather */
    double host_scaling_bytes; /* of a parameter that the host moves to clip and scale its gradient */
    bool host_casts_weights;   /* the host casts them into ordinary memory, and waits for each tile's copy */
} SpecRecipeOptimizer;

/* How logits and loss are computed. */
typedef struct SpecRecipeLoss {
    SpecLoss kernel;
    int logit_metrics;
    bool gathers_logits;
} SpecRecipeLoss;

/* Memory reserved or allocated that holds no tensor of the model. */
typedef struct SpecRecipeAllocator {
    double context_bytes, workspace_bytes;
    bool weight_placeholders;
    SpecGradientsLife gradients;
    SpecPipelineKeeps pipeline_keeps;
    double bucket_copy_elements, gather_buffers, launch_lead_layers;
    bool log_reports_reserved, expandable_segments;
    double fragmentation_frac;
} SpecRecipeAllocator;

/* What its kernels take beyond what the model of the GPU says, as a trace of a step showed: shares of that; 0: nothing. */
typedef struct SpecRecipeLearned {
    double excess_frac[SPEC_LEARNED_CLASSES];
} SpecRecipeLearned;

/* What a scenario that does not say gets from this software. */
typedef struct SpecRecipeDefaults {
    SpecAttention attention, attention_since_hopper, attention_since_blackwell;
    SpecMoeDispatcher moe_dispatcher;
    SpecContextMode context_mode;
    unsigned overlap, overlap_zero3, recipe_overlap; /* bits of SpecOverlap */
    bool compiled, slices_experts, sequence_parallel, learned_router;
    int zero;
    double dropout_frac;
} SpecRecipeDefaults;

/* Ops whose name a recipe may put a kernel behind: spec_words_op. */
enum { SPEC_RECIPE_MOST_OPS = 8, SPEC_NO_OP = -1 };

/* A pass of a layer, as costmodel's CostPass. */
typedef enum { SPEC_PASS_FORWARD, SPEC_PASS_BACKWARD_INPUT, SPEC_PASS_BACKWARD_WEIGHT } SpecRecipePass;

/* A tensor that the software copies or reads once more: kernels behind an op of a layer. */
typedef struct SpecRecipeOp {
    int after, with; /* rows of spec_words_op; `with`: SPEC_NO_OP: whatever else the pass runs */
    SpecRecipePass pass;
    double copies, bytes_per_element;
    int kernels;
} SpecRecipeOp;

typedef struct SpecRecipeOps {
    SpecRecipeOp op[SPEC_RECIPE_MOST_OPS];
    int count;
} SpecRecipeOps;

/* How experts are stored and multiplied: what their kernels are made for. */
typedef enum {
    SPEC_EXPERTS_16BIT,
    SPEC_EXPERTS_FP8,       /* a scale a tensor, or a row of either operand */
    SPEC_EXPERTS_FP8_BLOCK, /* a scale for 128 elements */
    SPEC_EXPERTS_FP4_16BIT, /* stored in 4 bits, multiplied in 16 */
    SPEC_EXPERTS_FP4_8BIT,
    SPEC_EXPERTS_FP4,
} SpecExpertFormat;

enum { SPEC_ENGINE_MOST_KERNELS = 16 };

/* All kernels of the experts of one layer as a benchmark of the engine times them, from the scores of the router to the sum of
 * the experts' rows; costmodel/decode.c has the formula. */
typedef struct SpecExpertKernel {
    SpecExpertFormat format;
    SpecGeneration generation; /* of the GPUs that were measured */
    double start_s, memory_frac, flops_frac, rows_frac;
} SpecExpertKernel;

typedef struct SpecExpertKernels {
    SpecExpertKernel kernel[SPEC_ENGINE_MOST_KERNELS];
    int count;
} SpecExpertKernels;

/* What the cache of attention holds: keys and values, or latents of multi-head latent attention. */
typedef enum {
    SPEC_CACHE_16BIT,
    SPEC_CACHE_8BIT,
    SPEC_CACHE_LATENT_16BIT,
    SPEC_CACHE_LATENT_8BIT,
} SpecCacheFormat;

/* Attention of one layer of a step that writes a token a sequence, as a benchmark of the engine times it;
 * costmodel/decode_attention.c has the formula. */
typedef struct SpecAttentionKernel {
    SpecCacheFormat format;
    SpecGeneration generation; /* of the GPUs that were measured */
    double start_s, memory_frac, rows_frac;
} SpecAttentionKernel;

typedef struct SpecAttentionKernels {
    SpecAttentionKernel kernel[SPEC_ENGINE_MOST_KERNELS];
    int count;
} SpecAttentionKernels;

/* How it generates, where it does. */
typedef struct SpecEngine {
    double memory_frac, free_memory_frac, fixed_bytes, prefill_tokens, step_host_s, kernel_gap_s,
        drafted_tokens, sequence_host_s, logprob_host_s, load_host_s, workspace_rows;
    int max_sequences; /* 0: it generates nothing */
    bool reserves_longest, shares_prefixes, keeps_windows, pads_batches, captures_graphs, gathers_rows,
        narrow_rows, keeps_cache, whole_batches;
    SpecDtype cache_dtype;
    SpecDtype weights_dtype; /* SPEC_AUTO: of training.precision */
    SpecExpertKernels experts;
    SpecAttentionKernels attention;
} SpecEngine;

typedef struct SpecFramework {
    char name[SPEC_NAME_SIZE];
    char until[8];                 /* an earlier generation: its last month, "2025-01"; "" the current one */
    char software[SPEC_NAME_SIZE]; /* words by which free text names it: "A + B; C" */
    SpecRecipeKernels kernels;
    SpecRecipeHost host;
    SpecRecipeDataParallel data_parallel;
    SpecRecipeTensor tensor;
    SpecRecipeContext context;
    SpecRecipeExperts experts;
    SpecRecipePipeline pipeline;
    SpecRecipeOptimizer optimizer;
    SpecRecipeLoss loss;
    SpecRecipeAllocator allocator;
    SpecRecipeLearned learned;
    SpecRecipeDefaults defaults;
    SpecRecipeOps ops;
    SpecEngine engine;
} SpecFramework;

#endif
