/* spec/names.h - closed lists of names: enums and the words that stand for them in JSON.
 *
 * Each enum has one table of words (spec/names.c), in the enum's order, used by the reader, the
 * messages, `orrery list` and the schema. Schedules have none: their table is schedule/schedules.c.
 */
#ifndef ORR_SPEC_NAMES_H
#define ORR_SPEC_NAMES_H

#include "schedule/schedule.h"
#define SPEC_NAME_SIZE 128 /* of names in specs, with the closing zero */

typedef enum { SPEC_NORM_LAYERNORM, SPEC_NORM_RMSNORM, SPEC_NORM_NONE } SpecNorm;
typedef enum { SPEC_BIASES_NONE, SPEC_BIASES_ALL, SPEC_BIASES_MLP, SPEC_BIASES_QKV } SpecBiases;
typedef enum {
    SPEC_POSITION_LEARNED,
    SPEC_POSITION_ROPE,
    SPEC_POSITION_ALIBI,
    SPEC_POSITION_RELATIVE,
    SPEC_POSITION_NONE
} SpecPosition;

/* Storage and compute types. FP8 and FP4 name the width; the recipe is the precision. */
typedef enum {
    SPEC_FP32,
    SPEC_TF32,
    SPEC_FP16,
    SPEC_BF16,
    SPEC_FP8,
    SPEC_FP4,
    SPEC_INT8,
    SPEC_INT4,
    SPEC_DTYPE_COUNT
} SpecDtype;

/* Training precision: which dtype the GEMMs run in and how scales are kept. */
typedef enum {
    SPEC_PRECISION_FP32,
    SPEC_PRECISION_TF32,
    SPEC_PRECISION_FP16,
    SPEC_PRECISION_BF16,
    SPEC_PRECISION_FP8,            /* delayed scaling */
    SPEC_PRECISION_FP8_CS,         /* current scaling */
    SPEC_PRECISION_FP8_TENSORWISE, /* float8 tensorwise (torchao) */
    SPEC_PRECISION_FP8_ROWWISE,
    SPEC_PRECISION_FP8_BLOCKWISE,
    SPEC_PRECISION_MXFP8,
    SPEC_PRECISION_NVFP4,
    SPEC_PRECISION_INT8, /* one scale a row of either operand */
    SPEC_PRECISION_INT4, /* the same behind a Hadamard transform */
    SPEC_PRECISION_COUNT
} SpecPrecision;

typedef enum {
    SPEC_OPTIMIZER_ADAM,
    SPEC_OPTIMIZER_SGD,
    SPEC_OPTIMIZER_MOMENTUM,
    SPEC_OPTIMIZER_ADAFACTOR,
    SPEC_OPTIMIZER_LION,
    SPEC_OPTIMIZER_MUON,
    SPEC_OPTIMIZER_ADAM8BIT,
    SPEC_OPTIMIZER_COUNT
} SpecOptimizer;

typedef enum {
    SPEC_RECOMPUTE_NONE,
    SPEC_RECOMPUTE_SELECTIVE, /* attention core */
    SPEC_RECOMPUTE_FULL,
    SPEC_RECOMPUTE_SELECTIVE_OP,    /* torchtitan: every second matmul and attention kept */
    SPEC_RECOMPUTE_SELECTIVE_LAYER, /* every n-th layer fully */
    SPEC_RECOMPUTE_MODULES,
} SpecRecomputeMode;

typedef enum { /* bits */
               SPEC_MODULE_LAYERNORM = 1,
               SPEC_MODULE_MLA_UP_PROJ = 2,
               SPEC_MODULE_MOE_ACT = 4,
               SPEC_MODULE_MLP = 8,
               SPEC_MODULE_CORE_ATTN = 16,
               SPEC_MODULE_MOE = 32,
               SPEC_MODULE_SHARED_EXPERTS = 64,
               /* of offloading alone: what these read, as Megatron-Core names them */
               SPEC_MODULE_ATTN_NORM = 128,
               SPEC_MODULE_QKV_LINEAR = 256,
               SPEC_MODULE_ATTN_PROJ = 512,
               SPEC_MODULE_MLP_NORM = 1024,
               SPEC_MODULE_EXPERT_FC1 = 2048,
} SpecRecomputeModule;

/* Bytes a parameter of weights, gradients, master copy and moments: costmodel/states.h has the table. */
typedef enum {
    SPEC_STATES_MEGATRON_FP32_GRADS, /* 2 + 4 + 4 + 8 */
    SPEC_STATES_MEGATRON_FP16_GRADS, /* 2 + 2 + 4 + 8, and 4 for the fp32 copy of gradients */
    SPEC_STATES_MEGATRON_FP32,       /* 4 + 4 + 0 + 8 */
    SPEC_STATES_ZERO_FP16,           /* 2 + 2 + 4 + 8 */
    SPEC_STATES_BF16_FP32_ACC,       /* 2 + 2 + 4 + 8, and 4 for the accumulated gradient */
    SPEC_STATES_FSDP_BF16,           /* 2 + 2 + 0 + 4 */
    SPEC_STATES_FSDP_MIXED,          /* 4 + 4 + 0 + 8, live units in 2 */
    SPEC_STATES_DEEPSPEED,           /* 2 + 2 + 4 + 8 */
    SPEC_STATES_FP32_ADAM,           /* 4 + 4 + 0 + 8 */
    SPEC_STATES_FP32_ADAM_NOTES,     /* 4 + 4 + 0 + 12: "Adam x 3" */
    SPEC_STATES_MIXED_12,            /* 4 + 2 + 0 + 6 */
    SPEC_STATES_DEEPSEEK_V3,         /* 1 + 4 + 4 + 4 */
    SPEC_STATES_FP8_PRIMARY,         /* 2 (two fp8 copies) + 2 + 4 + 8 */
    SPEC_STATES_MEGATRON_BF16_GRADS, /* 2 + 2 + 4 + 8 */
    SPEC_STATES_CUSTOM,
    SPEC_STATES_COUNT
} SpecStatesRecipe;

/* A row of the table of schedules (schedule/schedules.c), or orders that came from a file. */
typedef int SpecSchedule;
#define SPEC_SCHEDULE_FILE 31

typedef enum {
    SPEC_DISPATCHER_ALLTOALL,     /* one all-to-all: a copy of the token for each of its experts */
    SPEC_DISPATCHER_DEEPEP,       /* a copy for each node over the NIC, then one for each rank */
    SPEC_DISPATCHER_HYBRIDEP,     /* the same, and rows land in the experts' order */
    SPEC_DISPATCHER_HIERARCHICAL, /* all-to-all in the node, then across nodes along the rails */
    SPEC_DISPATCHER_ONE_HOT, /* products with one-hot masks put tokens into padded rows, which go all-to-all */
    SPEC_DISPATCHER_RAGGED,  /* all-to-all into buffers that have room for all that may come */
} SpecMoeDispatcher;

/* How tokens spread over experts. */
typedef enum {
    SPEC_ROUTER_EVEN,      /* every expert the same, to the token */
    SPEC_ROUTER_UNIFORM,   /* every expert equally likely: the busiest has more by chance */
    SPEC_ROUTER_ZIPF,      /* the i-th most popular in proportion to 1 / i^exponent */
    SPEC_ROUTER_DIRICHLET, /* popularity itself drawn: Dirichlet with this concentration */
    SPEC_ROUTER_HISTOGRAM, /* given */
    SPEC_ROUTER_LEARNED, /* as trained routers spread text: Dirichlet, its concentration by the kind of attention */
} SpecRouterDistribution;

/* How replicas put their gradients together. */
typedef enum {
    SPEC_DATA_ALLREDUCE,
    SPEC_DATA_PARAMETER_SERVER,
    SPEC_DATA_SINGLE_PROCESS, /* torch.nn.DataParallel: everything passes through GPU 0 */
} SpecDataScheme;
typedef enum { SPEC_SERVERS_DEDICATED, SPEC_SERVERS_COLOCATED, SPEC_SERVERS_BYTEPS } SpecServerPlacement;
typedef enum { SPEC_SERVERS_NAIVE, SPEC_SERVERS_WFBP, SPEC_SERVERS_BYTESCHEDULER } SpecServerScheme;
typedef enum { SPEC_SERVERS_SYNC, SPEC_SERVERS_ASYNC, SPEC_SERVERS_BOUNDED } SpecServerMode;
typedef enum { SPEC_SPREAD_NONE, SPEC_SPREAD_NORMAL, SPEC_SPREAD_EXPONENTIAL } SpecSpread;
/* What gradients become before they are sent. */
typedef enum {
    SPEC_COMPRESSION_NONE,
    SPEC_COMPRESSION_TOPK, /* the largest, with their indices */
    SPEC_COMPRESSION_INT8, /* blocks of 256 with a scale */
    SPEC_COMPRESSION_FP16,
    SPEC_COMPRESSION_ONEBIT, /* signs, blocks of 256 with a scale */
} SpecCompressionKind;

/* How a linear layer lies on its tensor ranks. */
typedef enum { SPEC_TENSOR_1D, SPEC_TENSOR_2D, SPEC_TENSOR_2_5D, SPEC_TENSOR_3D } SpecTensorScheme;

/* How a sequence that is split over context ranks meets its keys and values. */
typedef enum {
    SPEC_CONTEXT_RING,       /* keys and values pass around, zig-zag halves: every rank the same work */
    SPEC_CONTEXT_RING_NAIVE, /* the same with contiguous pieces: the last rank has most of the causal work */
    SPEC_CONTEXT_RING_STRIPED,   /* the same with every cp-th token */
    SPEC_CONTEXT_ALLGATHER,      /* keys and values gathered first, then one kernel */
    SPEC_CONTEXT_ALLGATHER_RING, /* gathered in one collective, worked off step by step as a ring does */
    SPEC_CONTEXT_ULYSSES,        /* all-to-all: whole sequences of some heads */
    SPEC_CONTEXT_HIERARCHICAL,   /* all-to-all inside the node, ring across */
} SpecContextMode;

typedef enum {
    SPEC_ATTENTION_UNFUSED,
    SPEC_ATTENTION_FLASH2,
    SPEC_ATTENTION_FLASH3,
    SPEC_ATTENTION_CUDNN,
    SPEC_ATTENTION_COUNT
} SpecAttention;

typedef enum { /* bits */
               SPEC_OVERLAP_GRAD_REDUCE = 1,
               SPEC_OVERLAP_PARAM_GATHER = 2,
               SPEC_OVERLAP_TENSOR = 4,
               SPEC_OVERLAP_PIPELINE = 8,
               SPEC_OVERLAP_EXPERT = 16,
               SPEC_OVERLAP_AUTO = 1 << 30,
} SpecOverlap;

/* How a step's communication is timed: alone on the network, or beside everything else on a fabric's links. */
typedef enum { SPEC_FIDELITY_ANALYTIC, SPEC_FIDELITY_FLOW } SpecFidelity;

/* In the order of network/routes.h. */
typedef enum {
    SPEC_ROUTING_SHORTEST,
    SPEC_ROUTING_ECMP,
    SPEC_ROUTING_E_ECMP,
    SPEC_ROUTING_ADAPTIVE,
    SPEC_ROUTING_RAIL
} SpecRouting;

/* Which domains exchange at once in a reduction or gather over several. */
typedef enum { SPEC_NETWORK_RING, SPEC_NETWORK_TREES, SPEC_NETWORK_HALVING } SpecNetworkAlgorithm;

/* Whose links traffic beside the job takes. */
typedef enum { SPEC_TRAFFIC_FABRIC, SPEC_TRAFFIC_FRONT_END } SpecTrafficLinks;

/* How the GPUs of one scale-up domain are joined. */
typedef enum {
    SPEC_TOPOLOGY_SWITCH,    /* any-to-any at full rate: NVSwitch */
    SPEC_TOPOLOGY_CUBE_MESH, /* DGX-1 */
    SPEC_TOPOLOGY_PCIE,
    SPEC_TOPOLOGY_TORUS3D,
    SPEC_TOPOLOGY_MESH,    /* direct links between pairs: MI300X, MI250X */
    SPEC_TOPOLOGY_TORUS2D, /* a part of a square whose sides alone wrap around: TPU v5e, v6e */
} SpecTopology;

typedef enum {
    SPEC_LOSS_UNFUSED,                 /* fp32 logits kept with their gradient */
    SPEC_LOSS_VOCAB_PARALLEL,          /* Megatron's vocabulary-parallel cross-entropy */
    SPEC_LOSS_FUSED,                   /* fused cross-entropy in place */
    SPEC_LOSS_CHUNKED,                 /* never the whole logits */
    SPEC_LOSS_VOCAB_PARALLEL_COMPILED, /* Megatron's, compiled whole: the compiler copies the fp32 logits */
    SPEC_LOSS_COMPILED, /* compiled with the model: 16-bit logits and their gradient; eager when the run is */
    SPEC_LOSS_XENTROPY, /* Apex's kernel, as flash-attn ships it: the forward keeps the logits and one sum a row */
    SPEC_LOSS_UNFUSED_SHIFTED, /* fp32 logits that the model returns, and a copy of them without the last token */
    SPEC_LOSS_UNFUSED_16BIT,    /* PyTorch's cross-entropy of 16-bit logits, which nobody casts */
    SPEC_LOSS_UNFUSED_AUTOCAST, /* the same under torch.autocast, which casts what log-softmax gives */
    SPEC_LOSS_CHUNKED_OUTPUT, /* torchtune's: all logits in 16 bits, in pieces; the loss of one piece at a time */
    SPEC_LOSS_SHIFTED_16BIT, /* as unfused-16bit, of a copy without the last token; the logits go when it returns */
    SPEC_LOSS_SHIFTED_AUTOCAST, /* the same under torch.autocast; Accelerate gives the logits back in fp32 */
} SpecLoss;

/* What an eager GELU runs as: a kernel of its own, or the operations of its formula. */
typedef enum { SPEC_GELU_KERNEL, SPEC_GELU_ERF, SPEC_GELU_TANH, SPEC_GELU_FUSED_BIAS } SpecGelu;

/* What rotates queries and keys. */
typedef enum {
    SPEC_ROPE_COMPLEX,         /* eager: as complex numbers, at streaming speed */
    SPEC_ROPE_HALVES,          /* eager: joins negated halves, element by element */
    SPEC_ROPE_HALVES_JOINED,   /* so, and copies the dimensions that turn to those that do not */
    SPEC_ROPE_FUSED,           /* one kernel */
    SPEC_ROPE_FUSED_NOT_LATENT /* one kernel, but for latent attention */
} SpecRope;

typedef enum {
    SPEC_NORM_KERNEL_FUSED,
    SPEC_NORM_KERNEL_EAGER, /* RMSNorm as a chain of kernels with fp32 passes */
    SPEC_NORM_KERNEL_COPY,  /* fused, on an fp32 copy of its input; the backward makes both again */
    SPEC_NORM_KERNEL_ADDS   /* flash-attention's: one kernel with the sum of the residual stream */
} SpecNormKernel;

/* Scale, mask and softmax of attention as separate kernels. */
typedef enum {
    SPEC_SOFTMAX_NARROW,       /* in 16 bits; the mask multiplies and is subtracted */
    SPEC_SOFTMAX_NARROW_ADDED, /* in 16 bits; the mask is added */
    SPEC_SOFTMAX_EAGER,        /* scores are cast to fp32 and back */
    SPEC_SOFTMAX_FUSED,        /* one kernel */
    SPEC_SOFTMAX_FUSED_MASKED  /* one kernel, a warp a row, and a mask made anew each time */
} SpecSoftmax;

typedef enum {
    SPEC_BIAS_ADDED,      /* with the kernel that follows, or one of its own */
    SPEC_BIAS_IN_PRODUCT, /* by the product; its gradient is a sum of its own */
    SPEC_BIAS_QKV_APART /* as the first; that of queries, keys and values has its own kernels, compiled or not */
} SpecBias;

/* Rows of the embedding table, and their gradients. */
typedef enum {
    SPEC_EMBEDDING_ROWS,   /* rows in use are added in place */
    SPEC_EMBEDDING_TABLE,  /* each micro-batch fills a gradient of the whole table and adds that */
    SPEC_EMBEDDING_ONE_HOT /* a product of one-hot rows with the table */
} SpecEmbedding;

/* How a weight's gradient joins the sum of earlier micro-batches. */
typedef enum {
    SPEC_SUM_PASS,       /* a pass of its own */
    SPEC_SUM_IN_PRODUCT, /* the product adds to it */
    SPEC_SUM_WIDENED     /* a pass of its own, and a cast to fp32 before it */
} SpecGradientSum;

/* Whether a tensor rank's part of the vocabulary is a multiple of 8. */
typedef enum { SPEC_VOCAB_PADDED, SPEC_VOCAB_ODD, SPEC_VOCAB_COMPILER_PADS } SpecVocabRows;

/* What a bucket of gradients holds. */
typedef enum {
    SPEC_FILL_LAYERS,     /* whole layers */
    SPEC_FILL_CUT_LAYERS, /* so, but a layer that is larger than a bucket goes in several */
    SPEC_FILL_FROM_FIRST, /* tensors, from the first one on */
    SPEC_FILL_FROM_LAST   /* tensors, from the last one on */
} SpecBucketFill;

/* When gradients are reduced. */
typedef enum {
    SPEC_REDUCTIONS_AS_ASKED,  /* as execution.overlap says */
    SPEC_REDUCTIONS_HOOKS,     /* ZeRO-0: beside the last backward, whatever that says */
    SPEC_REDUCTIONS_AT_END,    /* behind the last backward, whatever that says */
    SPEC_REDUCTIONS_HOLD_QUEUE /* kernels launched behind a reduction wait for it */
} SpecReductions;

/* How ZeRO-1 reduces gradients. */
typedef enum {
    SPEC_ZERO1_SCATTER,       /* reduce-scatter of whole gradients */
    SPEC_ZERO1_SCATTER_EARLY, /* so; beside the backward only shards stay, as in ZeRO-2 */
    SPEC_ZERO1_ALL_REDUCE
} SpecZero1Reduces;

/* Collectives that put sharded weights together. */
typedef enum {
    SPEC_GATHERS_UNITS,           /* ZeRO-3: an all-gather a unit */
    SPEC_GATHERS_TENSORS,         /* ZeRO-3: one a tensor */
    SPEC_GATHERS_TENSORS_DRAINED, /* so, and the host waits for all of the GPU's work before each */
    SPEC_GATHERS_BROADCASTS       /* owners of whole tensors broadcast them in turn */
} SpecGathers;

/* What crosses between stages of an activation that all tensor ranks have. */
typedef enum {
    SPEC_P2P_WHOLE,          /* each tensor rank sends all of it */
    SPEC_P2P_SCATTER_GATHER, /* between nodes each sends 1/t and the receivers gather */
    SPEC_P2P_PARTITIONED     /* so inside a node too, and the sender gathers its own output again */
} SpecP2pTensors;

/* Buffers between stages that a pipeline rank keeps for a whole step. */
typedef enum {
    SPEC_PIPELINE_KEEPS_IN_FLIGHT,  /* none: what is in flight */
    SPEC_PIPELINE_KEEPS_BOUNDARIES, /* inputs and gradients of all micro-batches */
    SPEC_PIPELINE_KEEPS_OUTPUTS     /* their outputs too */
} SpecPipelineKeeps;

/* Which kernels its cuDNN has. */
typedef enum {
    SPEC_CUDNN_BEFORE_9_11, /* none for latent attention on Blackwell, and those before 9.17 */
    SPEC_CUDNN_BEFORE_9_17, /* slower ones */
    SPEC_CUDNN_SINCE_9_17
} SpecCudnn;

/* Classes of kernels whose times a trace teaches; the first of exchange/trace.h. */
typedef enum {
    SPEC_LEARNED_PRODUCTS,
    SPEC_LEARNED_ATTENTION,
    SPEC_LEARNED_NORMS,
    SPEC_LEARNED_ELEMENTWISE, /* other kernels of a layer, which only move bytes */
    SPEC_LEARNED_OPTIMIZER,
    SPEC_LEARNED_ALL_REDUCE,
    SPEC_LEARNED_ALL_GATHER,
    SPEC_LEARNED_REDUCE_SCATTER,
    SPEC_LEARNED_ALL_TO_ALL,
    SPEC_LEARNED_SEND_RECEIVE,
    SPEC_LEARNED_CLASSES
} SpecLearnedClass;

/* What the host waits for. */
typedef enum {
    SPEC_HOST_WAITS_NONE,
    SPEC_HOST_WAITS_MICROBATCH, /* the GPU's work, before the forward of each micro-batch */
    SPEC_HOST_WAITS_KERNEL      /* each kernel's end, before it launches the next */
} SpecHostWaits;

/* When compute waits for its own messages. */
typedef enum {
    SPEC_P2P_WAITS_NEVER,
    SPEC_P2P_WAITS_AS_ASKED, /* unless execution.overlap names them */
    SPEC_P2P_WAITS_IN_1F1B   /* so, and always on ranks with one chunk */
} SpecP2pWaits;

/* What of a product hides a tensor-parallel collective. */
typedef enum {
    SPEC_TENSOR_OWN_PART,     /* the rank's own rows hide a gather */
    SPEC_TENSOR_OWN_PRODUCTS, /* so, as products of their own, in the backward too */
    SPEC_TENSOR_PIECES,       /* pieces, one behind another */
    SPEC_TENSOR_SUMMED_PIECES /* so, and a kernel adds those that a reduce-scatter leaves side by side */
} SpecTensorOverlap;

/* Whose casts to 8 bits run. */
typedef enum { SPEC_CASTS_TRANSFORMER_ENGINE, SPEC_CASTS_TORCHAO } SpecCasts;

/* Which kernels its Transformer Engine has: each version those of the one before, but for walks of 2.5. */
typedef enum {
    SPEC_TE_BEFORE_2_6,  /* permutations that look at every expert for each token */
    SPEC_TE_BEFORE_2_12, /* kernels that order scales */
    SPEC_TE_BEFORE_2_14, /* mxfp8 casts order the scales of activations */
    SPEC_TE_BEFORE_2_16, /* nvfp4 casts rows and transformed columns in one kernel */
    SPEC_TE_SINCE_2_16   /* attention under mxfp8 has a scale for 32 elements */
} SpecTransformerEngine;

/* Linear layers of a common input: queries, keys and values; gate and up. */
typedef enum {
    SPEC_PROJECTIONS_JOINED,
    SPEC_PROJECTIONS_SEPARATE,
    SPEC_PROJECTIONS_SEPARATE_EXCHANGED /* tensor ranks exchange the input for each */
} SpecProjections;

/* How a gradient gets to the host. */
typedef enum {
    SPEC_HOST_GRADIENTS_AS_MADE,
    SPEC_HOST_GRADIENTS_AT_STEP, /* the optimizer's step fetches them */
    SPEC_HOST_GRADIENTS_RETURNED /* as made, but 16-bit copies and sums come back to the GPU; passes wait */
} SpecHostGradients;

/* When ZeRO-3 drops gathered weights. */
typedef enum {
    SPEC_RESHARDING_AFTER_FORWARD,
    SPEC_RESHARDING_AFTER_RECOMPUTE, /* so, and once more between a layer's recomputation and its backward */
    SPEC_RESHARDING_UNLESS_PIPELINE, /* several stages keep them, and reduce gradients once a step */
    SPEC_RESHARDING_NEVER
} SpecResharding;

/* Whose norm the optimizer waits for. */
typedef enum {
    SPEC_GRAD_NORM_NONE,
    SPEC_GRAD_NORM_BEFORE_STEP,
    SPEC_GRAD_NORM_VALIDATED_LATER /* that of the ranks before; the next step checks all */
} SpecGradNorm;

/* Kernels of a rank's experts. */
typedef enum {
    SPEC_EXPERT_PRODUCTS_EACH,
    SPEC_EXPERT_PRODUCTS_GROUPED, /* one for all of them */
    SPEC_EXPERT_PRODUCTS_FUSED /* so, with activation and casts, where kernels for that exist; else one each */
} SpecExpertProducts;

/* How long gradients take memory. */
typedef enum {
    SPEC_GRADIENTS_KEPT,
    SPEC_GRADIENTS_DROPPED_IN_BACKWARD, /* 16-bit ones beside fp32 sums */
    SPEC_GRADIENTS_CLEARED              /* freed behind the optimizer */
} SpecGradientsLife;

/* What adds one context step's part of the attention's output to the rest. */
typedef enum { SPEC_CONTEXT_MERGE_FUSED, SPEC_CONTEXT_MERGE_EAGER } SpecContextMerge;

/* When ZeRO-1/2's gathers beside the forwards begin. */
typedef enum {
    SPEC_GATHERS_STEP,                /* with the step, on every pipeline rank */
    SPEC_GATHERS_STEP_IF_INTERLEAVED, /* so where pipeline ranks have several chunks, else with the first use */
    SPEC_GATHERS_USE,                 /* a chunk's with its first forward */
    SPEC_GATHERS_VALIDATION,          /* not in the step: behind each one a validation gathers */
} SpecGathersBegin;

/* Ranks that agree on the maxima of a chunk's casts behind each pass, delayed scales. */
typedef enum {
    SPEC_MAXIMA_NONE,
    SPEC_MAXIMA_TENSOR, /* those that hold parts of the same layer: tensor and context ranks */
    SPEC_MAXIMA_ALL     /* all of the stage */
} SpecSharedMaxima;

typedef enum { SPEC_SHARED_BY_ALL, SPEC_SHARED_BY_NODE } SpecSharedBy;

typedef enum { SPEC_SLOW_RANK, SPEC_SLOW_NODE, SPEC_SLOW_NIC, SPEC_SLOW_LINK } SpecSlowPart;

typedef enum {
    SPEC_CHECKPOINT_NONE,
    SPEC_CHECKPOINT_SYNC,
    SPEC_CHECKPOINT_ASYNC,
    SPEC_CHECKPOINT_PEERS
} SpecCheckpointMode;

/* Who names NCCL's algorithm: its own estimates, or a plug-in's regions first. */
typedef enum { SPEC_TUNER_NCCL, SPEC_TUNER_AWS_P5, SPEC_TUNER_AWS_P5EN, SPEC_TUNER_AWS_P6 } SpecTuner;

/* One closed list of words, in enum order (for bit sets: word i stands for bit i). */
typedef OrrWords SpecWords;

/* Schedules are named by their table. */
#define spec_words_schedule sim_schedule_words

extern const SpecWords spec_words_norm, spec_words_biases, spec_words_position, spec_words_dtype,
    spec_words_precision, spec_words_optimizer, spec_words_recompute, spec_words_module,
    spec_words_offload_module, spec_words_states, spec_words_dispatcher, spec_words_attention,
    spec_words_overlap, spec_words_topology, spec_words_loss, spec_words_gelu, spec_words_rope,
    spec_words_norm_kernel, spec_words_softmax, spec_words_bias, spec_words_embedding,
    spec_words_gradient_sum, spec_words_vocab_rows, spec_words_op, spec_words_op_pass,
    spec_words_expert_format, spec_words_cache_format, spec_words_router, spec_words_context,
    spec_words_tensor, spec_words_tier, spec_words_offload, spec_words_data_scheme,
    spec_words_server_placement, spec_words_server_scheme, spec_words_server_mode, spec_words_spread,
    spec_words_compression, spec_words_shared_by, spec_words_checkpoint, spec_words_tuner,
    spec_words_fidelity, spec_words_routing, spec_words_network_algorithm, spec_words_traffic_links,
    spec_words_slow_part, spec_words_gathers, spec_words_maxima, spec_words_bucket_fill,
    spec_words_reductions, spec_words_zero1_reduces, spec_words_gathered, spec_words_p2p_tensors,
    spec_words_pipeline_keeps, spec_words_cudnn, spec_words_context_merge, spec_words_learned,
    spec_words_host_waits, spec_words_p2p_waits, spec_words_tensor_overlap, spec_words_casts,
    spec_words_transformer_engine, spec_words_projections, spec_words_host_gradients, spec_words_resharding,
    spec_words_grad_norm, spec_words_expert_products, spec_words_gradients_life;

/* The word of a value; "auto" for SPEC_AUTO. */
const char *spec_word(const SpecWords *words, int value);

/* The dtype that GEMMs of a precision run in, and bytes of one element of a dtype. */
SpecDtype spec_gemm_dtype(SpecPrecision precision);
double spec_dtype_bytes(SpecDtype dtype);

#endif
