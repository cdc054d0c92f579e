/* spec/spec.h - what a scenario says, as values.
 *
 * A Spec is loaded once (spec/load.h), checked, completed with defaults, and const from then on. It
 * holds everything: presets and profiles are copied into it, so nothing below this room opens a file.
 * All quantities are base SI; sizes of batches are in sequences. A field that may be "auto" holds
 * SPEC_AUTO until the search (or `validate`'s enumerator) chooses. Every field is described in a field
 * table (spec/fields_*.c), from which reading, ranges, defaults, `orrery help KEY` and the JSON Schema
 * come.
 */
#ifndef ORR_SPEC_SPEC_H
#define ORR_SPEC_SPEC_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/kernel_model.h"
#include "spec/names.h"

#define SPEC_AUTO        (-1)
#define SPEC_NAME_SIZE   128
#define SPEC_MAX_EXPERTS 1024 /* that a router's histogram may list */
#define SPEC_MAX_STAGES  1024 /* pipeline ranks x virtual stages that a layout may list */

/* --- model --- */

typedef struct SpecMoe {
    int experts; /* 0: dense model */
    int top_k;
    int expert_ffn_hidden;
    int shared_experts;
    int shared_expert_ffn_hidden; /* of all shared experts together; default shared_experts x expert_ffn_hidden */
    int dense_layers;             /* leading layers without experts */
    int layer_step;               /* 1: every layer after those has experts, 2: every second */
    int late_layers, late_experts; /* pyramid: the last late_layers have this many experts instead; 0: none */
    double capacity_factor;        /* 0: dropless */
    int router_groups;             /* experts lie in this many groups ...; 0: no groups */
    int router_top_groups;         /* ... and a token's experts come from at most this many of them */
} SpecMoe;

typedef struct SpecMla {
    int q_lora_rank;  /* 0: queries projected directly */
    int kv_lora_rank; /* 0: no multi-head latent attention */
    int qk_nope_head_dim;
    int qk_rope_head_dim;
    int v_head_dim;
} SpecMla;

typedef struct SpecModel {
    char name[SPEC_NAME_SIZE];
    int layers, hidden, heads, kv_heads, head_dim, ffn_hidden;
    bool gated_mlp;
    int vocab;
    bool tied_embeddings;
    SpecNorm norm;
    SpecBiases biases; /* JSON true: all, false: none; or mlp (MLP only), qkv (QKV projection only) */
    SpecPosition position;
    int max_positions; /* rows of the learned position table; default the sequence length */
    bool embedding_norm, qk_norm, causal;
    bool rope_scaled;            /* YaRN: cosines and sines carry an attention factor */
    double dropout_frac;         /* 0: no dropout kernels, no masks */
    int attention_window_tokens; /* 0: none */
    int attention_window_every;  /* every n-th layer uses the window; 1: all */
    int mtp_layers;              /* multi-token prediction modules behind the last layer */
    SpecMoe moe;
    SpecMla mla;
} SpecModel;

/* --- hardware --- */

typedef struct SpecAccelerator {
    char name[SPEC_NAME_SIZE];
    double memory_bytes, memory_bytes_per_s;
    double peak_flops_per_s[SPEC_DTYPE_COUNT]; /* dense; 0: the dtype has no tensor path */
    int sm_count;
    double l2_bytes, power_w;
    bool
        static_products; /* products hold every SM, dealt out beforehand: a collective beside one hides nothing */
    double
        exponentials_per_s; /* of its special function units; 0: not known. Attention kernels wait for them */
    double speed_spread_frac;     /* standard deviation of sustained speed between chips of this type */
    SpecGeneration generation;    /* which NCCL tuning rows apply */
    double scale_up_bytes_per_s;  /* NVLink and kin, one way, per GPU; 0: PCIe only */
    double host_link_bytes_per_s; /* one way */
    double reference_scale_out_bytes_per_s_per_gpu; /* of its reference node, one way */
    int reference_gpus_per_node;
    int reference_scale_up_domain_gpus;
    SpecKernelModel model; /* fitted: GEMM per dtype, attention per kernel, memory-bound ops, launch, power */
} SpecAccelerator;

typedef struct SpecCluster {
    char name[SPEC_NAME_SIZE]; /* preset or "" */
    SpecAccelerator accelerator;
    int gpus_per_node, nodes;
    int scale_up_domain_gpus;             /* GPUs joined by scale-up links; default gpus_per_node */
    double scale_up_bytes_per_s;          /* default the accelerator's */
    double scale_out_bytes_per_s_per_gpu; /* one way; default the accelerator's reference node */
    double scale_out_latency_s;           /* one message, host to host */
    SpecTopology topology;
    double oversubscription;         /* 1: full bisection */
    double usd_per_gpu_hour;         /* 0: not given */
    double pue;                      /* facility power over IT power */
    double host_power_w_per_gpu;     /* CPU, NIC, fans, per GPU */
    SpecCollectiveModel collectives; /* fitted: NCCL time model per level */
    char calibration[SPEC_NAME_SIZE];
} SpecCluster;

/* --- training --- */

typedef struct SpecRecompute {
    SpecRecomputeMode mode;
    int layers;         /* full on this many layers of each stage; 0: all */
    int every_n_layers; /* selective-layer: every n-th layer is fully recomputed */
    unsigned modules;   /* modules: bits of SpecRecomputeModule */
} SpecRecompute;

/* Bytes a parameter of each state; 0: the state does not exist. */
typedef struct SpecStates {
    SpecStatesRecipe recipe; /* default the framework's; custom: the four numbers are the user's */
    double weights_bytes, gradients_bytes, master_bytes, moments_bytes; /* a parameter; custom only */
} SpecStates;

/* How unevenly the router spreads tokens: with the data, what decides the load of the busiest expert rank. */
typedef struct SpecRouter {
    SpecRouterDistribution distribution;
    double exponent;      /* zipf */
    double concentration; /* dirichlet, per expert: large is even */
    int histogram_count;
    float histogram[SPEC_MAX_EXPERTS]; /* shares in any unit, in expert order */
} SpecRouter;

typedef struct SpecTraining {
    int sequence_length, global_batch, micro_batch;
    double tokens; /* of the whole training run; 0: not given */
    SpecPrecision precision;
    SpecOptimizer optimizer;
    SpecRecompute recompute;
    SpecDtype gradient_dtype;        /* storage of accumulated gradients; SPEC_AUTO: the framework's */
    SpecDtype gradient_reduce_dtype; /* on the wire; SPEC_AUTO: the framework's */
    SpecStates states;
    SpecRouter router;
    double
        document_tokens; /* mean length of packed documents, exponentially distributed; 0: whole sequences */
} SpecTraining;

/* --- how it is split --- */

/* Which pipeline rank holds a model stage: around the ranks again and again, there and back, or two copies of the model
 * from both ends. */

/* Op orders from a file; spec/orders.h reads the text. */
typedef struct SpecOrders {
    const char *text; /* a line a rank, interned: lives as long as the program; NULL: no file */
    int ranks, chunks, microbatches;
    SimPlacement placement;
} SpecOrders;

typedef struct SpecParallel {
    int tensor;
    SpecTensorScheme tensor_scheme;
    int tensor_depth;      /* 2.5D: layers of the grid */
    int sequence_parallel; /* 0, 1 or SPEC_AUTO */
    int context, pipeline, virtual_stages, data, expert, expert_tensor;
    int zero;            /* ZeRO stage 0-3 */
    int zero_group_gpus; /* 0: shard over all data-parallel ranks */
    SpecSchedule schedule;
    char schedule_file[SPEC_NAME_SIZE * 2]; /* a file of op orders instead of a named schedule */
    SpecOrders orders;                      /* what it says */
    int live_microbatches; /* zb-auto: activations that a rank may hold; 0: what the GPU's memory leaves */
    char order[SPEC_NAME_SIZE];       /* dimensions, innermost first: "tp-cp-ep-dp-pp" */
    SpecMoeDispatcher moe_dispatcher; /* SPEC_UNSET while loading: the framework's */
    bool moe_dispatch_fp8; /* tokens cross to their experts in 8 bits with block scales; they return in 16 */
    int expert_replicas;   /* copies of hot experts, beyond one of each, over the ranks of an expert group */
    bool expert_rebalance; /* experts are dealt to ranks by load, not in order */
    SpecContextMode context_mode;   /* SPEC_UNSET while loading: the framework's */
    int context_inner;              /* hierarchical: ranks of the all-to-all; 0: those of a scale-up domain */
    bool quantized_weight_gather;   /* ZeRO-3: weights cross in 8 bits (qwZ) */
    bool secondary_weight_shard;    /* ZeRO-3: backward gathers stay in the node, from a second shard (hpZ) */
    bool quantized_gradient_reduce; /* ZeRO-3: gradients cross in 4 bits, two all-to-alls (qgZ) */
    int stage_layers_count;         /* 0: derived */
    int stage_layers[SPEC_MAX_STAGES];
    int first_stage_layers, last_stage_layers; /* 0: derived; layers of the first and last pipeline rank */
    bool embedding_as_layer, loss_as_layer, mtp_as_layer; /* count as a layer when layers are dealt out */
} SpecParallel;

/* --- software --- */

typedef struct SpecFramework {
    char name[SPEC_NAME_SIZE];
    char until[8]; /* an earlier generation: its last month, "2025-01"; "" the current one */
    /* Which element-wise chains run as one kernel. */
    bool fused_softmax, fused_bias_gelu, fused_swiglu, fused_dropout_add, fused_rope;
    bool fused_mla_rope;    /* ... of latent attention, whose queries are rotated in part */
    int fused_softmax_rows; /* heads x sequences that a block of the fused softmax covers */
    bool norm_upcasts_fp32; /* eager RMSNorm: extra fp32 passes */
    /* Host. A kernel costs the host `kernel_host_s`; a chain of kernels takes the longer of its GPU time
     * and its host time. Between dependent kernels the GPU idles `kernel_gap_s`. */
    double kernel_host_s, kernel_gap_s;
    double sm_elements_per_s;  /* of kernels that address each element by itself, on one SM; 0: they stream */
    double host_spread_frac;   /* standard deviation of it between tensor ranks, which wait for each other */
    double backward_host_frac; /* of it that a kernel of the backward costs */
    bool launch_blocking;      /* the host waits for every kernel: its time adds to the GPU's */
    bool microbatch_sync;      /* the host waits for the GPU before every micro-batch's forward */
    double collective_check_hop_s; /* hosts compare each collective first: one of 2 n messages of n ranks */
    bool collective_checks_pipelines_only; /* ... in runs with several pipeline ranks */
    double compiled_kernel_frac;           /* kernels left when execution.compiled (fusion by a compiler) */
    double
        gradient_copies; /* ZeRO-3: times an unsharded gradient is read and written between GEMM and wire */
    bool gradient_cast;  /* ZeRO-3: cast to the wire's wider type first, and scaled in that */
    double qkv_copies,
        qkv_backward_copies;      /* copies of queries, keys, values around a fused attention kernel */
    double gate_backward_copies;  /* unfused SwiGLU: of the gradients of gate and up, put together again */
    double step_overhead_s;       /* data loading, logging, loss scale check: once a step */
    double microbatch_overhead_s; /* schedule bookkeeping, once per micro-batch and pass on each rank */
    /* Data parallelism. */
    SpecDtype gradient_dtype, gradient_reduce_dtype;
    double bucket_bytes;    /* gradient and parameter bucket; 0: one bucket */
    bool reduces_at_end;    /* gradients wait for the end of the last backward: no overlap "grad_reduce" */
    bool reduce_scatter;    /* ZeRO-1 reduces with reduce-scatter (else all-reduce + all-gather) */
    bool zero1_all_reduces; /* ... but not ZeRO-1, which all-reduces */
    bool hooks_reduce_unsharded; /* ZeRO-0 reduces beside the last backward, whatever `overlap` says */
    bool
        fused_grad_accumulation; /* the weight-gradient GEMM adds to the gradient; else a pass of its own does */
    bool gradient_upcast;        /* unfused sums in fp32: the 16-bit gradient is first copied to fp32 */
    bool optimizer_fused;        /* multi-tensor optimizer; else one kernel chain per tensor */
    bool grad_norm_clip;         /* a global norm before the optimizer */
    bool
        optimizer_post_validation; /* with weight gradients apart: steps on a partial norm, checked in the next step */
    SpecStatesRecipe states;
    int prefetch_units;         /* ZeRO-3: units gathered ahead */
    double gathered_copies;     /* ZeRO-3: times gathered weights are read and written before their use */
    bool pipeline_keeps_params; /* ZeRO-3 under a pipeline: gathered once a step, reduced once a step */
    bool gathers_each_tensor;   /* ZeRO-3: a collective a tensor, not one a unit */
    double list_rank_host_s;    /* of those: host time for each rank's part of a tensor */
    double list_passes;         /* times the whole tensor is read or written besides the wire */
    bool regathers_recompute;   /* gathered for recomputation and again for the gradients */
    bool reshard_after_forward;
    bool reduce_each_microbatch;          /* ZeRO-2/3: gradients are reduced on every micro-batch */
    double dropout_frac;                  /* of models that do not say */
    double rowwise_gemm_frac;             /* its row-wise scaled fp8 GEMMs over tensor-wise scaled ones */
    double rowwise_long_gemm_frac;        /* the same of those that sum over 16,384 and more */
    SpecAttention attention;              /* of scenarios that do not say */
    SpecAttention attention_since_hopper; /* on Hopper and Blackwell; SPEC_UNSET: the same */
    bool latent_heads_blackwell; /* its cuDNN trains latent attention, 192 and 128 dimensions, on Blackwell */
    bool masked_softmax; /* unfused attention builds a mask, its softmax reads that and waits for each load */
    SpecMoeDispatcher moe_dispatcher; /* likewise */
    SpecContextMode context_mode;     /* likewise */
    bool repeats_kv;                  /* keys and values are copied to every query head before attention */
    bool transposes_after_cast; /* 8-bit operands of weight gradients: a copy; else the cast writes both */
    bool reduces_maximum;       /* tensor ranks agree on the maximum that scales a tensor's cast */
    bool separate_projections;  /* queries, keys, values; gate and up: a linear layer each */
    bool traced_exchange_waits; /* compiled: each exchange of context ranks is waited for where it starts */
    double context_merge_bytes; /* an output element, for adding one ring step's part to the rest */
    double context_merge_backward_bytes; /* the same for a gradient of queries, keys and values */
    int context_merge_kernels;           /* launches of either */
    bool grouped_experts;                /* one kernel for all experts of a rank; else one each */
    bool fused_grouped_mlp; /* mxfp8 experts on Blackwell: activation and casts inside the products */
    bool pads_expert_rows;  /* 8- and 4-bit experts' rows are copied into padded ones, and back */
    double
        collective_gap_s; /* streams and ranks wait for each other around a collective that nothing hides */
    double host_sync_s;   /* the host waits for the GPU's token counts: idle until it has caught up */
    double attention_speed_frac; /* its attention kernel over the generation that execution.attention names */
    bool
        chunked_tensor_overlap; /* overlap "tensor" cuts GEMMs in pieces; else only the rank's own part hides a gather */
    bool
        own_part_products; /* ... backward too, with a product for it and for the rows before and behind it */
    bool
        keeps_gathered_input; /* the gathered input of a linear is kept for its backward; else gathered again */
    double tensor_layout_copies;  /* of an activation around a gather or reduce-scatter along the sequence */
    bool tensor_gather_8bit;      /* 8- and 4-bit recipes cast before they gather */
    bool recompute_stops_early;   /* full recomputation ends with the last tensor that the backward needs */
    bool overlap_tensor_backward; /* tensor-parallel collectives run beside the backward GEMMs */
    /* Pipeline. */
    unsigned schedules;                   /* bits of the pipeline schedules that it has; 0: not known, any */
    int most_zero, most_zero_in_pipeline; /* ZeRO stages that it has */
    bool balances_head;                   /* layers are dealt out by compute cost, the LM head included */
    bool p2p_blocking;                    /* the compute stream waits for its own sends */
    bool p2p_overlap_needs_chunks;        /* ... under 1F1B whatever execution.overlap asks for */
    unsigned
        recipe_overlap; /* bits of SpecOverlap that its recipes switch on with grad_reduce and param_gather */
    double p2p_host_s;  /* of each message: its shape goes ahead and is read back on the host */
    int p2p_forward_messages;     /* of a forward: the activation, and what layers pass on beside it */
    bool p2p_scatter_gather;      /* SC21: each tensor rank sends 1/t and all-gathers */
    bool p2p_partitioned_tensors; /* DeepSpeed's way of doing so: more copies, outputs gathered again */
    bool p2p_one_at_a_time;       /* an exchange of two stages takes both messages, one after the other */
    int deferred_head_gradients; /* micro-batches whose LM head's weight gradient waits for the end of a pipeline */
    /* Loss. */
    SpecLoss loss;
    int logit_metrics; /* cross-entropies of training metrics on every micro-batch's logits */
    /* Memory. */
    double context_bytes;   /* CUDA context, NCCL buffers, cuBLAS workspace: reserved outside the allocator */
    double workspace_bytes; /* allocated workspaces */
    bool
        weight_placeholders; /* fused accumulation hands autograd an unused tensor of each weight's shape, cached */
    bool pipeline_keeps_boundaries; /* a stage keeps input and gradient buffers of all micro-batches ... */
    bool pipeline_keeps_outputs;    /* ... and the outputs of all; else of those in flight */
    bool saves_unquantized_inputs;  /* 8-bit linear layers keep their input in 16 bits and cast again */
    double
        bucket_copy_elements; /* gradients copied into one flat buffer at a time, on their way to the wire */
    double
        optimizer_flat_bytes; /* a parameter of the shard: flat copies that the optimizer step makes of 16-bit sums */
    double gather_buffers; /* ZeRO-3: flat buffers of the largest unit that a stream of its own reserves */
    bool
        gradients_within_backward; /* 16-bit gradients beside fp32 sums die with the backward that made them */
    double launch_lead_layers;     /* layers of a forward that the host launches ahead of the GPU at most */
    bool logs_reserved;            /* what its log calls allocated is what the allocator has reserved */
    double fragmentation_frac;     /* reserved beyond allocated, as a share of dynamic memory */
} SpecFramework;

typedef struct SpecExecution {
    SpecFramework framework;
    char framework_text[SPEC_NAME_SIZE * 2];
    SpecAttention attention;
    bool compiled;
    char cuda_graph[SPEC_NAME_SIZE]; /* "" none; what is captured, in the framework's words */
    unsigned overlap;                /* bits of SpecOverlap; SPEC_AUTO has its own bit */
} SpecExecution;

#define SPEC_OFFLOAD_ALL 100000 /* until the model is known: all of its layers */

typedef struct SpecOffload {
    int activation_layers; /* of each model stage, the first ones; 0: none; or SPEC_AUTO */
} SpecOffload;

/* --- what a search may try --- */

#define SPEC_SEARCH_VALUES 32

/* Values that an "auto" field may take: those listed, or with none listed all from min to max (0: open). */
typedef struct SpecChoices {
    int count, value[SPEC_SEARCH_VALUES];
    int min, max;
} SpecChoices;

#define SPEC_SEARCH_ORDERS 24
#define SPEC_ORDER_SIZE    16

/* All zero: no `search` object, every default of spec_table_search applies. */
typedef struct SpecSearch {
    SpecChoices tensor, context, pipeline, virtual_stages, data, expert, expert_tensor, zero, zero_group_gpus,
        micro_batch, recompute_layers, activation_layers, nodes;
    unsigned schedule, recompute, attention, overlap, precision; /* bits of the words; 0: the default set */
    unsigned moe_dispatcher;
    char order[SPEC_SEARCH_ORDERS][SPEC_ORDER_SIZE]; /* of parallel.order ... */
    int order_count;                                 /* ... 0: the default set */
    int max_tensor;                                  /* 0: GPUs of a node */
    double max_memory_frac;                          /* of the GPU's memory; 0: all */
    double max_memory_bytes, reserve_memory_bytes;   /* of a GPU; 0: no limit, nothing */
    double max_host_bytes_per_node;                  /* 0: no limit */
    int max_tensor_nodes;                            /* 0: no limit */
    double max_micro_batch_tokens, max_batch_tokens; /* 0: no limit */
    int top;                                         /* 0: 5 */
    bool even_only;                                  /* only the framework's own way to deal out layers */
} SpecSearch;

/* --- the whole --- */

typedef struct Spec {
    char name[SPEC_NAME_SIZE * 2];
    SpecModel model;
    SpecCluster cluster;
    SpecTraining training;
    SpecParallel parallel;
    SpecExecution execution;
    SpecOffload offload;
    SpecSearch search;
} Spec;

/* GPUs in the cluster. */
static inline int spec_gpus(const Spec *spec)
{
    return spec->cluster.gpus_per_node * spec->cluster.nodes;
}

/* The run overlaps gradient reductions and parameter gathers: what the framework's recipes switch on with them comes too. */
static inline bool spec_follows_recipes(unsigned overlap)
{
    const unsigned both = SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER;
    return (overlap & both) == both;
}

/* What runs beside compute: execution.overlap and, in runs that follow them, what the framework's recipes switch on:
 * messages where stages are interleaved; transfers of tensor ranks of models without experts where the group is inside
 * one node, beyond which there is no NVLink.   Source: [MegatronRecipes], [TransformerEngine] comm_gemm_overlap */
unsigned spec_overlap(const Spec *spec);
/* Micro-batches whose LM head's weight gradient is computed when the last stage's passes are over: of runs that follow
 * recipes, of models without experts in a pipeline of 1F1B or interleaved stages, ZeRO 0 and 1.   Source: [MegatronRecipes] */
int spec_deferred_heads(const Spec *spec);

/* Whether compute waits for the messages that it sends to the next pipeline rank. */
bool spec_waits_for_sends(const Spec *spec);
/* Flags of execution.overlap that change a step with this ZeRO stage on so many replicas and pipeline ranks. */
unsigned spec_overlap_choices(const SpecFramework *framework, int zero, int64_t replicas, int pipeline);
/* ZeRO-3: units of parameters that are gathered before compute asks for them. */
int spec_prefetch_units(const Spec *spec);
/* With weight gradients apart, ranks step on the norm of what they know and check it in the next step. */
bool spec_validates_later(const Spec *spec);
/* The largest ZeRO stage that the software has. */
int spec_most_zero(const SpecFramework *framework, int pipeline);

/* Which pipeline rank holds which stage, whether the schedule is named or given as orders. */
static inline SimPlacement spec_stage_placement(const SpecParallel *parallel)
{
    const SimSchedule *schedule = sim_schedule_at((int)parallel->schedule);
    return schedule != NULL                           ? schedule->placement
           : parallel->schedule == SPEC_SCHEDULE_FILE ? parallel->orders.placement
                                                      : SIM_PLACE_LOOP;
}

/* Micro-batches that one pipeline works off in a step. */
static inline int spec_microbatches(const Spec *spec)
{
    return spec->training.global_batch / (spec->training.micro_batch * spec->parallel.data);
}

#endif
