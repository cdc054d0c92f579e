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

#include "spec/batches.h"
#include "spec/network.h"
#include "spec/generation.h"
#include "spec/kernel_model.h"
#include "spec/framework.h"
#include "spec/names.h"
#include "spec/offload.h"
#include "spec/data.h"
#include "spec/faults.h"
#include "spec/adapter.h"
#include "spec/lengths.h"
#include "spec/jitter.h"
#include "spec/workload.h"

#define SPEC_AUTO        (-1)
#define SPEC_MAX_EXPERTS 1024 /* that a router's histogram may list */
#define SPEC_MAX_STAGES  1024 /* pipeline ranks x virtual stages that a layout may list */

/* --- model --- */

#define SPEC_MOE_RUNS  64
#define SPEC_MOE_KINDS 7

/* Layers with experts that follow each other and are alike (spec/moe.h). */
typedef struct SpecMoeRun {
    int layers, experts, top_k, expert_ffn_hidden;
    int kind; /* 0: as model.moe says, else 1 to SPEC_MOE_KINDS */
} SpecMoeRun;

typedef struct SpecMoe {
    int experts; /* 0: dense model */
    int top_k;
    int expert_ffn_hidden;
    int shared_experts;
    int shared_expert_ffn_hidden; /* of all shared experts together; default shared_experts x expert_ffn_hidden */
    int dense_layers;             /* leading layers without experts */
    int layer_step;               /* 1: every layer after those has experts, 2: every second */
    int late_layers, late_experts; /* pyramid: the last late_layers have this many experts instead; 0: none */
    SpecMoeRun
        run[SPEC_MOE_RUNS]; /* by_layer, in the order of the layers with experts, again from the first */
    int run_count;          /* 0: all are alike, but for late_layers */
    double capacity_factor; /* 0: dropless */
    int router_groups;      /* experts lie in this many groups ...; 0: no groups */
    int router_top_groups;  /* ... and a token's experts come from at most this many of them */
    bool router_fp32;       /* logits in fp32, not in the type of the activations */
} SpecMoe;

typedef struct SpecMla {
    int q_lora_rank;  /* 0: queries projected directly */
    int kv_lora_rank; /* 0: no multi-head latent attention */
    int qk_nope_head_dim;
    int qk_rope_head_dim;
    int v_head_dim;
} SpecMla;

/* A tower before the language model: patches of images, layers of its own, and a projector that makes tokens of them. */
typedef struct SpecVision {
    int layers; /* 0: none */
    int hidden, heads, ffn_hidden;
    bool gated_mlp, biases;
    SpecNorm norm;
    int patch_values;     /* numbers of one patch: colours x pixels x frames */
    int window_patches;   /* patches that see each other; 0: all of an image */
    int full_every;       /* ... but in every n-th layer all of it; 0: in none */
    int merged_patches;   /* of which the projector makes one token */
    bool projector_norm;  /* before patches are merged */
    int projector_hidden; /* 0: one linear layer */
} SpecVision;

/* A network that is no transformer: its layers in forward order, of one sample. spec/layer_list.h reads the text. */
typedef struct SpecLayerList {
    const char *
        text; /* a line a layer, interned, as long-lived as what it was loaded with (SpecSource); NULL: a transformer */
} SpecLayerList;

typedef struct SpecModel {
    char name[SPEC_NAME_SIZE];
    int layers;         /* of the whole model: the encoder's first, then the decoder's */
    int encoder_layers; /* 0: no encoder */
    int decoder_layers; /* what the file calls `layers` where it is a number */
    int hidden, heads, kv_heads, head_dim, ffn_hidden;
    bool gated_mlp;
    int vocab;
    bool tied_embeddings;
    SpecNorm norm;
    SpecBiases biases; /* JSON true: all, false: none; or mlp (MLP only), qkv (QKV projection only) */
    SpecPosition position;
    int max_positions;    /* rows of the learned position table; default the sequence length */
    int position_buckets; /* relative: distances that each head has a bias for */
    bool scalar_head;     /* one number a token, a reward or value, in place of logits */
    bool no_final_norm;   /* behind the last layer, nor behind the last one of an encoder */
    bool embedding_norm, qk_norm, causal;
    bool rope_scaled;            /* YaRN: cosines and sines carry an attention factor */
    double dropout_frac;         /* 0: no dropout kernels, no masks */
    int attention_window_tokens; /* 0: none */
    int attention_window_every;  /* every n-th layer uses the window; 1: all */
    int attention_full_every;    /* ... but every n-th sees all tokens; 0: none */
    bool attention_chunked;      /* windows are chunks: tokens see those of their own */
    int mtp_layers;              /* multi-token prediction modules behind the last layer */
    SpecLayerList list;          /* instead of all that: `layers` is then its length */
    double time_frac;            /* list: measured over predicted time of its layers */
    double sample_spread_frac;   /* list: standard deviation of a sample's time over its mean */
    SpecMoe moe;
    SpecMla mla;
    SpecVision vision;
} SpecModel;

/* --- hardware --- */

typedef struct SpecAccelerator {
    char name[SPEC_NAME_SIZE];
    double memory_bytes, memory_bytes_per_s;
    double peak_flops_per_s[SPEC_DTYPE_COUNT];        /* dense; 0: the dtype has no tensor path */
    double fp64_flops_per_s, fp64_tensor_flops_per_s; /* of the data sheet, no time uses them; 0: not given */
    double sparsity_gain; /* peak of 2:4 sparse products over the dense one; no time uses it */
    int sm_count;
    double l2_bytes, power_w;
    double power_cap_w;  /* set below power_w by whoever runs it; 0: none */
    double idle_power_w; /* while it waits; 0: not known */
    bool
        static_products; /* products hold every SM, dealt out beforehand: a collective beside one hides nothing */
    double
        exponentials_per_s; /* of its special function units; 0: not known. Attention kernels wait for them */
    int matrix_unit;        /* width of a systolic array; 0: none, or not known */
    bool split_attention_backward; /* gradients of queries, and of keys and values, by kernels of their own */
    double speed_spread_frac;      /* standard deviation of sustained speed between chips of this type */
    SpecGeneration generation;
    double scale_up_bytes_per_s;                    /* NVLink and kin, one way, per GPU; 0: PCIe only */
    double host_link_bytes_per_s;                   /* one way */
    double reference_scale_out_bytes_per_s_per_gpu; /* of its reference node, one way */
    int reference_gpus_per_node;
    int reference_scale_up_domain_gpus;
    SpecTopology reference_topology; /* of its scale-up links, unless on a board without a switch */
    int reference_mesh_gpus;         /* of a board of it without a switch; 0: none */
    double reference_mesh_power_w;   /* of a GPU there; 0: power_w */
    char reference_host[48];         /* cluster whose host a node of it usually has; "": not known */
    SpecKernelModel model; /* fitted: GEMM per dtype, attention per kernel, memory-bound ops, launch, power */
} SpecAccelerator;

enum { SPEC_MOST_GROUPS = 4, SPEC_MOST_REPLICAS = 1024 };

/* Nodes of one kind in a mixed cluster: what they have of their own (spec/groups.h). */
typedef struct SpecGroup {
    char name[SPEC_NAME_SIZE];
    SpecAccelerator accelerator;
    int nodes, gpus_per_node, scale_up_domain_gpus;
    double scale_up_bytes_per_s, scale_out_bytes_per_s_per_gpu, scale_out_latency_s;
    double usd_per_gpu_hour, host_power_w_per_gpu;
    SpecTopology topology;
    SpecCollectiveModel collectives;
    SpecHost host;
} SpecGroup;

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
    double usd_per_kwh;              /* of what is drawn, beside that price; 0: it is in it */
    double co2_g_per_kwh;            /* of the region's electricity; 0: not given */
    double pue;                      /* facility power over IT power */
    int rack_gpus;                   /* GPUs of a rack; 0: not given */
    double host_power_w_per_gpu;     /* CPU, NIC, fans, per GPU */
    SpecCollectiveModel collectives; /* fitted: NCCL time model per level */
    SpecHost host;                   /* of a node: memory, cores, disks and the ways to them */
    bool host_assumed;               /* that of accelerator.reference_host: the scenario has none */
    SpecNetwork network;             /* the fabric between the GPUs, where a step is to meet itself on it */
    char calibration[SPEC_NAME_SIZE];
    int group_count; /* 0: all nodes are alike; else what is above is of the first group, but for `nodes` */
    SpecGroup groups[SPEC_MOST_GROUPS];
} SpecCluster;

/* --- training --- */

typedef struct SpecRecompute {
    SpecRecomputeMode mode;
    int layers;         /* full on this many layers of each stage; 0: all */
    int every_n_layers; /* selective-layer: every n-th layer is fully recomputed */
    unsigned modules;   /* modules: bits of SpecRecomputeModule */
    bool partitioned;   /* inputs of whole layers are divided over the tensor ranks */
    bool halves;        /* attention and MLP of a whole layer run again apart */
} SpecRecompute;

/* Bytes a parameter of each state; 0: the state does not exist. */
typedef struct SpecStates {
    SpecStatesRecipe recipe; /* default the framework's; custom: the four numbers are the user's */
    bool named;              /* by the scenario: these bytes, whatever precision and gradient_dtype are */
    double weights_bytes, gradients_bytes, master_bytes, moments_bytes; /* a parameter; custom only */
} SpecStates;

/* How unevenly the router spreads tokens: with the data, what decides the load of the busiest expert rank. */
typedef struct SpecRouter {
    SpecRouterDistribution distribution;
    double exponent;      /* zipf */
    double concentration; /* dirichlet and learned, per expert: large is even */
    int histogram_count;
    float histogram[SPEC_MAX_EXPERTS]; /* shares in any unit, in expert order */
} SpecRouter;

/* What a model's vision tower looks at. */
typedef struct SpecImages {
    double per_sequence; /* on average; 0: texts alone */
    int patches;         /* of an image */
} SpecImages;

typedef struct SpecTraining {
    int sequence_length, global_batch, micro_batch;
    int micro_batch_preferred;   /* of a framework's recipe, where micro_batch is "auto"; 0: none */
    int encoder_sequence_length; /* of models with an encoder; 0 without */
    double tokens;               /* of the whole training run; 0: not given */
    int batches_count;           /* entries that go before global_batch and sequence_length; 0: none */
    SpecBatches batches[SPEC_MOST_BATCHES];
    double samples;            /* sequences of an epoch; 0: not given */
    double epochs;             /* of the whole run, where `tokens` is not given; 0: not given */
    double skipped_steps_frac; /* steps whose update is dropped, and that are done again */
    SpecPrecision precision;
    SpecOptimizer optimizer;
    int mlp_tiles; /* parts of the sequence that an MLP runs one after the other */
    SpecRecompute recompute, recompute_preferred; /* the latter with every_n_layers 0: nothing is */
    SpecDtype gradient_dtype;        /* storage of accumulated gradients; SPEC_AUTO: the framework's */
    SpecDtype gradient_reduce_dtype; /* on the wire; SPEC_AUTO: the framework's */
    SpecStates states;
    SpecRouter router;
    bool attention_8bit, head_8bit; /* beside an 8- or 4-bit precision */
    bool activation_input_8bit;     /* kept so for the backward pass of gated MLPs, whatever the precision */
    double
        document_tokens; /* mean length of packed documents, exponentially distributed; 0: whole sequences */
    SpecLengths lengths;
    double predicted_frac; /* of the positions those that software picks ahead of the LM head */
    SpecTask task;
    SpecAdapter adapter;
    SpecFreeze freeze;
    SpecImages images;
    SpecReference reference; /* of preference pairs */
} SpecTraining;

/* --- how it is split --- */

/* Which pipeline rank holds a model stage: around the ranks again and again, there and back, or two copies of the model
 * from both ends. */

/* Op orders from a file; spec/orders.h reads the text. */
typedef struct SpecOrders {
    const char *text; /* a line a rank, interned likewise; NULL: no file */
    int ranks, chunks, microbatches;
    SimPlacement placement;
} SpecOrders;

typedef struct SpecServers {
    int servers; /* 0: no `parameter_server` object */
    SpecServerPlacement placement;
    SpecServerScheme scheme;
    SpecServerMode mode;
    int staleness; /* bounded */
    bool barrier;
    double partition_bytes, credit_bytes; /* partition SPEC_UNSET while loading: the scheme's */
    double startup_s;                     /* of a transfer */
    double nic_bytes_per_s;               /* of a server, one way; 0: as of a worker */
    double flow_bytes_per_s;              /* most that one connection carries; 0: no limit */
    double incast_frac;
    double sum_bytes_per_s, update_bytes_per_s; /* of a server; 0: no time */
    SpecSpread spread;
    double spread_frac;
    bool spread_lasts;
    int seed, iterations;
} SpecServers;

typedef struct SpecCompression {
    SpecCompressionKind kind;
    double fraction; /* topk: of the elements that are sent */
    bool error_feedback;
} SpecCompression;

typedef struct SpecParallel {
    int tensor;
    int tensor_preferred, pipeline_preferred; /* of a framework's recipe, where they are "auto"; 0: none */
    SpecTensorScheme tensor_scheme;
    int tensor_depth;      /* 2.5D: layers of the grid */
    int sequence_parallel; /* 0, 1 or SPEC_AUTO */
    int context, pipeline, virtual_stages, data, expert, expert_tensor;
    SpecDataScheme data_scheme; /* SPEC_UNSET while loading: allreduce */
    SpecServers servers;
    SpecCompression compression;
    int zero;            /* ZeRO stage 0-3 */
    int weight_tiles;    /* ZeRO-3: parts of a layer's matrices, gathered one after the other */
    int zero_group_gpus; /* 0: shard over all data-parallel ranks */
    SpecSchedule schedule;
    char schedule_file[SPEC_NAME_SIZE * 2]; /* a file of op orders instead of a named schedule */
    SpecOrders orders;                      /* what it says */
    int microbatch_group; /* micro-batches that a chunk runs in a row where stages are interleaved; 0: pipeline */
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
    int stage_layers_count;         /* 0: derived; SPEC_AUTO: by what the GPUs of a mixed cluster can */
    int stage_layers[SPEC_MAX_STAGES];
    const char *
        recipe_splits; /* stage_layers that recipes have for a number of stages that is "auto" (spec/recipes.h);
                                  interned; NULL: none */
    int replica_microbatches_count;                    /* 0: all have as many; SPEC_AUTO: likewise */
    uint16_t replica_microbatches[SPEC_MOST_REPLICAS]; /* of each data rank, in a mixed cluster */
    int first_stage_layers, last_stage_layers; /* 0: derived; layers of the first and last pipeline rank */
    bool embedding_as_layer, loss_as_layer, mtp_as_layer; /* count as a layer when layers are dealt out */
} SpecParallel;

/* --- software: spec/framework.h --- */

typedef struct SpecExecution {
    SpecFramework framework;
    char framework_text[SPEC_NAME_SIZE * 2];
    SpecAttention attention;
    int compiled;                    /* 0 or 1 */
    char cuda_graph[SPEC_NAME_SIZE]; /* "" none; what is captured, in the framework's words */
    unsigned overlap;                /* bits of SpecOverlap; SPEC_AUTO has its own bit */
    const char *
        measured_passes; /* seconds of a trace's passes (spec/measured.h reads the text); interned; NULL: none */
    unsigned overlap_besides; /* what a run that follows the recipes gets besides */
} SpecExecution;

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
    const char *
        at_precision[SPEC_PRECISION_COUNT]; /* the resolved scenario at each of `precision`, whose recipes and
                                                       derived fields are its own; interned; "": refused; NULL: as it is */
    unsigned moe_dispatcher;
    unsigned offload;                                /* bits of SpecOffloadScheme */
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
    SpecFaults faults;
    SpecStorage storage;
    SpecJitter jitter;
    SpecData data;
    SpecWorkload workload;
    SpecSearch search;
} Spec;

/* Most that a GPU draws. */
static inline double spec_power_w(const SpecAccelerator *accelerator)
{
    return accelerator->power_cap_w > 0 ? accelerator->power_cap_w : accelerator->power_w;
}

/* Mean of a GPU that waits for this share of the time; that it draws less then is known or not. */
static inline double spec_mean_power_w(const SpecAccelerator *accelerator, double waits_frac)
{
    const double limit_w = spec_power_w(accelerator), idle_w = accelerator->idle_power_w;
    return idle_w > 0 && idle_w < limit_w ? limit_w - (limit_w - idle_w) * waits_frac : limit_w;
}

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
/* SimTrait of parallel.schedule; of op orders from a file those of the named schedules that software treats them as: all
 * forwards first is GPipe (breadth-first over chunks), other whole passes around the ranks 1F1B (interleaved). */
unsigned spec_schedule_traits(const Spec *spec);
/* Micro-batches whose LM head's weight gradient is computed when the last stage's passes are over: of runs that follow
 * recipes, of models without experts in a pipeline of 1F1B or interleaved stages, ZeRO 0 and 1.   Source: [MegatronRecipes] */
int spec_deferred_heads(const Spec *spec);

/* Whether compute waits for the messages that it sends to the next pipeline rank. */
bool spec_waits_for_sends(const Spec *spec);
/* Whether weights are gathered beside compute: execution.overlap says so, and no reduction holds the queue of kernels. */
bool spec_hides_param_gather(const Spec *spec);
/* Whether a pipeline rank's gathers are beside the forwards and wait for the first of their chunk: software dispatches them
 * from hooks unless all ranks start theirs together, which Megatron does with interleaved stages alone.
 * Source: [MegatronCore] param_and_grad_buffer.py (finish_param_sync), arguments.py (align_param_gather) */
bool spec_gathers_on_use(const Spec *spec);
/* What a GPU holds beside the tensors of a step: CUDA's context and NCCL's buffers. */
static inline double spec_context_bytes(const Spec *spec)
{
    return spec->execution.framework.allocator.context_bytes;
}
/* Flags of execution.overlap that change a step with this ZeRO stage on so many replicas and pipeline ranks. */
unsigned spec_overlap_choices(const SpecFramework *framework, int zero, int64_t replicas, int pipeline);
/* ZeRO-3: units of parameters that are gathered before compute asks for them. */
int spec_prefetch_units(const Spec *spec);
/* Gradients are reduced by a reduce-scatter, not by an all-reduce: ZeRO-1 as its software does it, and above. */
bool spec_scatters_gradients(const Spec *spec);
/* ZeRO-3 gathers each tensor by itself. */
bool spec_gathers_each_tensor(const SpecFramework *framework);
/* With weight gradients apart, ranks step on the norm of what they know and check it in the next step. */
bool spec_validates_later(const Spec *spec);
/* Whether so many tensor ranks make a grid of the scheme: a square, a square times its depth, a cube; 1d takes any. */
bool spec_makes_grid(const SpecParallel *parallel, int tensor);
/* The attention kernel that the software uses unless told otherwise, on GPUs of the cluster's generation. */
SpecAttention spec_default_attention(const Spec *spec);
/* What the framework overlaps unless told otherwise, at the scenario's ZeRO stage. */
unsigned spec_default_overlap(const Spec *spec);
/* The largest ZeRO stage that the software has. */
int spec_most_zero(const SpecFramework *framework, int pipeline);
/* Whether it has that stage; 0, nothing sharded, all have. */
bool spec_has_zero(const SpecFramework *framework, int pipeline, int zero);

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
