/* costmodel/ops.h - the graph of one piece of the model: what one rank executes in each pass, op by op, and which tensors
 * the forward keeps for the backward.
 *
 * cost_ops_*() append GEMMs, attention, byte-moving kernels and collectives with their sizes, and the tensors that these
 * keep; nothing here knows time. All else is a fold over these lists: costmodel/pass.h makes seconds of them and says what
 * recomputation runs again, costmodel/flops.h FLOPs, costmodel/activations.h bytes of memory. Forward, backward-input and
 * backward-weight are separate lists: zero-bubble schedules and recomputation need the split.
 */
#ifndef ORR_COSTMODEL_OPS_H
#define ORR_COSTMODEL_OPS_H

#include "costmodel/attention.h"
#include "costmodel/collective.h"
#include "costmodel/gemm.h"
#include "costmodel/norms.h"
#include "costmodel/placement.h"
#include <glib.h>

#include "spec/spec.h"

/* Sizes on one rank, derived once from a Spec. */
typedef struct CostShape {
    const Spec *spec;
    SpecAccelerator accelerator; /* of the spec, at its sustained clock */
    double batch;                /* sequences in a micro-batch */
    double sequence;             /* tokens of a whole sequence */
    double longest_over_mean;    /* sequences at their longest, for memory; 1 where all are equally long */
    double tokens;               /* of a micro-batch on this rank: batch x sequence / context */
    double keys;       /* tokens of a sequence that its queries may see: `sequence`, or the encoder's */
    double key_tokens; /* of a micro-batch on this rank, which keys and values are made of */
    bool causal, position_bias; /* of the attention: half of the pairs; a bias on each score */
    double part_tokens;         /* where sequence parallelism divides: tokens / tensor, else tokens */
    double tensor, context;
    double hidden, heads, kv_heads, head_dim; /* heads on this rank */
    double element_bytes;                     /* of an activation */
    double stream_bytes;                      /* of an element of the residual stream: fp32 under autocast */
    SpecDtype activation_dtype, linear_dtype; /* of what stays in 16 bits; of the linear layers */
    SpecDtype core_dtype, head_dtype;         /* of fused attention and of the LM head */
    bool sequence_parallel;
    bool accumulate_fp32; /* weight gradients are summed in fp32 */
    bool accumulates;     /* ... over several micro-batches before anything reduces them */
    double slowest;       /* time of the slowest chip of the job over the average one: cost_slowest_chip() */
    double expert_load;   /* rows of the busiest expert rank over the mean: cost_moe_load_factor() */
    CostGroup tensor_group, context_group, expert_group;
} CostShape;

void cost_shape_init(CostShape *shape, const Spec *spec);

/* What of a product hides a tensor-parallel collective: pieces of it, or the rank's own rows as products of their own. */
bool cost_cuts_pieces(const CostShape *shape);
bool cost_own_products(const CostShape *shape);

/* Queries, keys and values, and gate and up, are linear layers each. */
bool cost_separate_projections(const CostShape *shape);

/* Its Transformer Engine has the kernels of that range of versions, or later ones. */
bool cost_has_engine(const CostShape *shape, SpecTransformerEngine least);

typedef enum { COST_FORWARD, COST_BACKWARD_INPUT, COST_BACKWARD_WEIGHT, COST_PASS_COUNT } CostPass;

/* What an op belongs to: recomputation picks by this. */
typedef enum {
    COST_MODULE_NORM,
    COST_MODULE_ATTENTION_PROJECTION,
    COST_MODULE_ATTENTION_CORE,
    COST_MODULE_MLA_UP,
    COST_MODULE_MLP_LINEAR,
    COST_MODULE_MLP_ACTIVATION,
    COST_MODULE_MOE,
    COST_MODULE_MOE_ACTIVATION,
    COST_MODULE_RESIDUAL,
    COST_MODULE_EMBEDDING,
    COST_MODULE_HEAD,
    COST_MODULE_ROUTER,
    COST_MODULE_SHARED_EXPERT,
} CostModule;

/* What a kernel, or a chain of them, moves between its SMs and memory for each element that it works on. */
typedef struct CostMoved {
    double read, written; /* bytes */
    double undivided;     /* bytes of which a recipe says the sum of both alone */
} CostMoved;

static inline CostMoved cost_both_ways(double read, double written)
{
    return (CostMoved){.read = read, .written = written};
}

typedef enum { COST_OP_GEMM, COST_OP_ATTENTION, COST_OP_MEMORY, COST_OP_COLLECTIVE } CostOpKind;

/* Which report part a collective's exposed time belongs to. */
typedef enum { COST_COMM_TENSOR, COST_COMM_CONTEXT, COST_COMM_EXPERT, COST_COMM_COUNT } CostComm;

#define COST_MAX_PARTS 3

typedef struct CostOp {
    const char *name;
    CostOpKind kind;
    CostModule module;
    int kernels;      /* launches, for host time and gaps */
    int host_kernels; /* launches beyond those, whose gaps the op's own time already has */
    double
        parts[COST_MAX_PARTS]; /* a GEMM that is several of these sizes along the linear's output; 0: none */
    double
        repeat; /* runs this often, with its time and bytes each time; 0: once. FLOPs and kernels are of all */
    bool adapter;       /* of a low-rank adapter: trained where all else is frozen */
    bool again;         /* what the forward ran, run once more in the backward: FLOPs of recomputation */
    double idle_s;      /* the GPU waits for the host before what follows */
    double temp_bytes;  /* memory beside what it reads and keeps, while it runs */
    double model_flops; /* causal half counted as half */
    double full_flops;  /* causal half counted whole */
    union {
        CostGemm gemm;
        CostAttention attention;
        struct {
            CostMemoryKernel kernel;
            double elements; /* that it works on ... */
            CostMoved each;  /* ... and what it moves of each: cost_moved_bytes() */
            double
                row_elements; /* a warp a row of so many, which waits for each load of 32 x 4; 0: streamed */
            double rows;
            double
                addressed; /* elements that are addressed one by one (views, broadcasts, mixed types); 0: streams */
            double
                sm_rate; /* those of them that an SM takes in a second; 0: the framework's sm_elements_per_s */
            CostNormRows norm;        /* of a norm whose blocks wait; zeros: streams */
            double walks, walk_loads; /* blocks that wait for so many loads of the L2 cache each; 0: none */
            bool beside; /* on a stream of its own: what runs there loses the SMs that it takes */
        } memory;
        struct {
            CostCollective collective;
            CostComm comm;
            int hidden_under; /* index of the op in the same list that runs beside it; -1: exposed */
            bool chunked;     /* the GEMM itself is cut into tensor-degree pieces that overlap */
        } collective;
    } u;
} CostOp;

/* A tensor that an op of the forward keeps for the backward. */
typedef struct CostTensor {
    const char *name;
    double bytes;
    int written_by;   /* op of the list that makes it, and makes it again where it runs again ... */
    int product;      /* ... as its first (0), second ... part where that keeps its parts apart */
    int kept_by;      /* op of the list whose backward reads it */
    bool weight_grad; /* still needed by the backward-weight pass */
} CostTensor;

#define COST_OUTSIDE (-1) /* CostTensor.written_by: what comes in from the piece before */

#define COST_MAX_OPS     192 /* with a recipe's own, SPEC_RECIPE_MOST_OPS behind every op that they name */
#define COST_MAX_TENSORS 48

typedef struct CostOps {
    CostOp op[COST_MAX_OPS];
    int count;
    CostTensor kept[COST_MAX_TENSORS]; /* of a forward list */
    int kept_count;
} CostOps;

/* All of one piece. */
typedef struct CostGraph {
    CostOps pass[COST_PASS_COUNT];
} CostGraph;

typedef void (*CostListOps)(const CostShape *shape, CostPass pass, CostOps *ops);

/* A layer of a model on one stage, or of a stage that it is the layer_in_stage'th of, from 0 (freeze.h). */
void cost_graph_layer(const CostShape *shape, int layer, CostGraph *graph);
void cost_graph_layer_in(const CostShape *shape, int layer, int layer_in_stage, CostGraph *graph);
/* `list`: cost_ops_embedding, cost_ops_head or cost_ops_mtp. */
void cost_graph(const CostShape *shape, CostListOps list, CostGraph *graph);

/* One transformer layer (0-based along the model). */
void cost_ops_layer(const CostShape *shape, int layer, CostPass pass, CostOps *ops);
/* Token and position lookup, embedding norm and dropout. */
void cost_ops_embedding(const CostShape *shape, CostPass pass, CostOps *ops);
/* Final norm, LM head, loss. */
void cost_ops_head(const CostShape *shape, CostPass pass, CostOps *ops);
/* One multi-token prediction module without its head. */
void cost_ops_mtp(const CostShape *shape, CostPass pass, CostOps *ops);

/* The recipe's own kernels (`framework.ops`) behind the ops from `first` on; `ops` is what the pass runs. */
void cost_push_recipe_ops(const CostShape *shape, CostPass pass, int first, CostOps *ops);

/* Whether products are cut so that tensor-parallel transfers hide beside their pieces: `execution.overlap` "tensor", but
 * never in 4 bits, for which Transformer Engine has no such kernels.   Source: [MegatronRecipes] */
bool cost_overlaps_tensor(const CostShape *shape);

/* What an op moves in all its runs, in bytes: of memory kernels what they read and write; of a GEMM and of attention the
 * operands once, as if caches held all that is used again; of a collective its payload, undivided. */
CostMoved cost_op_moved(const CostOp *op);
/* Bytes that a memory kernel moves in one run. */
double cost_moved_bytes(const CostOp *op);

/* --- for the files that build lists --- */
CostOp *cost_ops_push(CostOps *ops, const char *name, CostOpKind kind, CostModule module);
/* The forward keeps a tensor; nothing where it has no bytes. */
void cost_keep(CostOps *ops, CostTensor tensor);
/* Bytes that a column-parallel linear keeps of its input at `element_bytes`: this rank's part where the backward gathers it
 * again. */
double cost_kept_input_bytes(const CostShape *shape, double element_bytes);
/* Bytes of an element that a linear layer keeps of its input: 8-bit recipes keep the cast operand. */
double cost_kept_element_bytes(const CostShape *shape);
/* Products of 8- or 4-bit integers. */
static inline bool cost_is_integer(const CostShape *shape)
{
    return shape->linear_dtype == SPEC_INT8 || shape->linear_dtype == SPEC_INT4;
}
/* A linear layer [tokens, in] -> [tokens, out] in one pass; returns the GEMM's index. */
int cost_push_linear(const CostShape *shape, CostOps *ops, const char *name, CostModule module, CostPass pass,
                     double tokens, double in, double out, SpecDtype dtype);
/* The weight gradient of `groups` linears, size {out, in, tokens}; returns the GEMM's index. */
int cost_push_weight_gradient(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                              const double size[3], double groups, SpecDtype dtype);
/* `groups` independent [m,k] x [k,n]. */
CostOp *cost_push_gemm(CostOps *ops, const char *name, CostModule module, CostPass pass, double m, double n,
                       double k, double groups, SpecDtype dtype);
/* The linear whose GEMM is at `gemm` is one of each size in `parts` where the framework keeps them apart
 * (`projections`): a product each, and the gradients of their common input are summed. */
void cost_split_linear(const CostShape *shape, CostOps *ops, CostPass pass, int gemm,
                       const double parts[COST_MAX_PARTS]);
/* `kernels` that work on `elements` and move `each` of every one. */
void cost_push_memory(CostOps *ops, const char *name, CostModule module, CostMemoryKernel move,
                      double elements, CostMoved each, int kernels);
/* The same of kernels that address each element so many `times` by itself (CostOp.u.memory.addressed). */
void cost_push_by_element(CostOps *ops, const char *name, CostModule module, double elements, double times,
                          CostMoved each, int kernels);
void cost_push_collective(CostOps *ops, const char *name, CostModule module, CostCollectiveOp op,
                          double bytes, CostGroup group, CostComm comm, int hidden_under);
/* What tensor ranks gather of a linear layer under sequence parallelism: given here as this rank's part. */
typedef enum { COST_GATHERED_NOTHING, COST_GATHERED_INPUT, COST_GATHERED_OUTPUT_GRAD } CostGathered;

/* fp8 and fp4 recipes cast what enters the products of a linear layer: the `in` elements of its input forward, the
 * `out` elements of its output's gradient backward (one cast serves both products). */
void cost_push_cast(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass, double in,
                    double out, CostGathered gathered);
/* The same of `elements` outside the linear layers: as they are cast, under 4 bits with one current scale a tensor. */
void cost_push_8bit_cast(const CostShape *shape, CostOps *ops, CostModule module, double elements);
/* The maxima of `tensors` tensors, one number each, which their casts wait for on all tensor ranks. */
void cost_push_maximum(const CostShape *shape, CostOps *ops, CostModule module, int tensors);
/* Weights of an 8-bit linear layer: row-wise they are cast along either dimension (3 bytes an element, then 5 with the
 * maxima); scaled as a whole they arrive cast and are transposed for the input's gradient. Source: [torchao] */
void cost_push_weight_cast(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                           double weights);
/* What the weight gradient needs of what tensor ranks have gathered narrow: 8 bits transposed, columns of 4 bits put in
 * order. */
void cost_push_transpose(const CostShape *shape, CostOps *ops, CostModule module);
/* Products of operands scaled by blocks want the scales in tiles: one small kernel an operand before each, over the
 * `groups` of a grouped product at once; m k + k n elements of `size` m, n, k, one scale for 32 (16 in 4 bits), read and
 * written. Where casts write them so (Transformer Engine since 2.12) only the weight's, the second operand, are left. Nothing for
 * other recipes.   Source: [TransformerEngine] swizzled scales, module/linear.py (optimize_for_gemm) */
void cost_push_scales(const CostShape *shape, CostOps *ops, CostModule module, const double size[3],
                      double groups, bool has_weight);
/* The kernel of the attention core: `execution.attention`, but none where cuDNN does not train the model's heads on
 * Blackwell (`cudnn`).   Source: [TransformerEngine] fused_attn.cpp, dot_product_attention/utils.py */
SpecAttention cost_attention_kernel(const Spec *spec);
/* Fused attention in 8 bits whose operands have a scale for 32 elements: Transformer Engine since 2.16. */
bool cost_core_block_scaled(const CostShape *shape);
void cost_ops_attention(const CostShape *shape, int layer, CostPass pass, CostOps *ops);
/* The ops of a forward list that write what the attention core reads. */
typedef struct CostProjections {
    int last;              /* GEMM beside which the collective of the input runs */
    int query, key, value; /* products, or the norm behind them */
    int spread;            /* keys and values over the heads; COST_OUTSIDE: not */
} CostProjections;
/* The attention core, and what it keeps. Returns the op that writes its output. */
int cost_push_attention_core(const CostShape *shape, int layer, CostPass pass, const CostProjections *from,
                             CostOps *ops);
/* The attention block from its core on: the projection of its output, and what that keeps. */
void cost_push_attention_rest(const CostShape *shape, int layer, CostPass pass, const CostProjections *in,
                              CostOps *ops);
/* `input`: the op that writes the block's input, for what the forward keeps of it. */
void cost_ops_mlp(const CostShape *shape, CostPass pass, int input, CostOps *ops);
void cost_ops_moe(const CostShape *shape, CostPass pass, int input, CostOps *ops);
/* Gradients alive at the widest point of an MLP's backward: of `rows` tokens, or rows of experts, of an inner `width`. */
double cost_gradient_working_bytes(const CostShape *shape, double rows, double width);
/* Rows that the routed experts of the average rank work on: top_k copies of its own tokens, padded to capacity. */
double cost_routed_rows(const CostShape *shape);
/* Of an element of the activation's input that the backward pass keeps: 1 with training.activation_input_8bit. */
double cost_activation_input_bytes(const CostShape *shape);
/* An MLP's activation over `elements` of its intermediate size. */
void cost_push_activation(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module,
                          double elements);
/* The same of experts with biases, clamped, over `elements` of their intermediate size; and the bias behind their second
 * product, over `elements` of the hidden size, for each of `experts`. */
void cost_push_clamped_activation(const CostShape *shape, CostOps *ops, CostPass pass, double elements);
void cost_push_output_bias(const CostShape *shape, CostOps *ops, CostPass pass, double elements,
                           double experts);
/* Of such models, the bias of the attention's output, over `elements`, where it is not added with the residual. Forward. */
void cost_push_unfused_bias(const CostShape *shape, CostOps *ops, double elements);
void cost_push_norm(const CostShape *shape, CostOps *ops, CostPass pass, double tokens, double width);
/* The norm of the residual stream. */
void cost_push_stream_norm(const CostShape *shape, CostOps *ops, CostPass pass);

/* Whether an eager norm runs as a chain of kernels, with fp32 passes (RMSNorm; a layer norm is one kernel). */
bool cost_norm_spelled_out(const Spec *spec);
/* Under autocast: the stream cast for `linears` linear layers that read it, each for itself where they are apart and
 * nothing compiles them; and the cast of a linear layer's weights before its product, of their gradient behind it. Nothing
 * where the stream is as wide as activations.   Source: [PyTorchAutocast] */
void cost_push_autocast_input(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module,
                              int linears);
/* Times that the common input of `linears` linear layers is kept: each its own where each casts or exchanges it for itself. */
double cost_input_copies(const CostShape *shape, int linears);
void cost_push_autocast_weight(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                               double weights);
/* The norm before a block keeps its own input `name`, which op `input` writes; returns the op that writes the block's. */
int cost_push_block_norm(const CostShape *shape, CostOps *ops, CostPass pass, const char *name, int input);
/* The residual add with bias and dropout after a block; `mask` names what dropout keeps. Returns its index. */
int cost_push_residual(const CostShape *shape, CostOps *ops, CostPass pass, const char *mask);
/* Before a column-parallel linear (gather or nothing) and after a row-parallel one (reduce). */
void cost_push_tensor_in(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module, int gemm);
void cost_push_tensor_out(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module, int gemm);

#endif
