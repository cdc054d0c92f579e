/* costmodel/ops_attention.c - the attention block of a layer: projections, position encoding, core. */
#include <math.h>

#include "costmodel/context.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"

/* Pairs (query, key) of one sequence on this rank: every pair, and those that causality and the window
 * leave. Zig-zag context parallelism gives every rank the same share. */
typedef struct Pairs {
    double all, useful;
    double window; /* tokens; 0: none */
} Pairs;

static Pairs pairs_of(const CostShape *shape, int layer)
{
    const SpecModel *model = &shape->spec->model;
    const double s = shape->sequence;
    const double documents = shape->spec->training.document_tokens;
    Pairs pairs = {.all = s * s / shape->context, .useful = s * s / shape->context};
    if (documents > 0) { /* masked between documents: the window that leaves as many pairs */
        pairs.useful = cost_document_pairs(s, documents) / shape->context * (model->causal ? 1 : 2);
        pairs.window = cost_document_window(s, documents);
        pairs.all = fmin(pairs.all, s * pairs.window / shape->context * (model->causal ? 1 : 2));
    } else if (cost_layer_windowed(model, layer) && model->attention_window_tokens < s) {
        const double w = model->attention_window_tokens;
        pairs.window = w;
        pairs.all = s * w / shape->context;
        pairs.useful = (s * w - (model->causal ? w * w / 2 : 0)) / shape->context;
    } else if (model->causal) {
        pairs.useful = pairs.all / 2;
    }
    return pairs;
}

static double qk_dim(const SpecModel *model)
{
    return model->mla.kv_lora_rank > 0 ? model->mla.qk_nope_head_dim + model->mla.qk_rope_head_dim
                                       : model->head_dim;
}

static double v_dim(const SpecModel *model)
{
    return model->mla.kv_lora_rank > 0 ? model->mla.v_head_dim : model->head_dim;
}

SpecAttention cost_attention_kernel(const Spec *spec)
{
    const SpecAttention named = spec->execution.attention;
    const bool latent = qk_dim(&spec->model) > 128 && qk_dim(&spec->model) != v_dim(&spec->model);
    return named == SPEC_ATTENTION_CUDNN && latent &&
                   !spec->execution.framework.kernels.latent_heads_blackwell &&
                   spec->cluster.accelerator.generation == SPEC_GENERATION_BLACKWELL
               ? SPEC_ATTENTION_UNFUSED
               : named;
}

static void push_fused_core(const CostShape *shape, int layer, bool backward, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const Pairs pairs = pairs_of(shape, layer);
    const double per_pair =
        2 * shape->batch * shape->heads * (qk_dim(model) + v_dim(model)) * (backward ? 2 : 1);
    CostOp *op = cost_ops_push(ops, "attention", COST_OP_ATTENTION, COST_MODULE_ATTENTION_CORE);
    op->u.attention = (CostAttention){
        .kernel = cost_attention_kernel(shape->spec),
        .batch = shape->batch,
        .q_tokens = shape->sequence / shape->context,
        .kv_tokens = shape->sequence,
        .heads = shape->heads,
        .kv_heads = model->mla.kv_lora_rank > 0 ? shape->heads : shape->kv_heads,
        .qk_head_dim = qk_dim(model),
        .v_head_dim = v_dim(model),
        .causal = model->causal,
        .window_tokens = pairs.window,
        .backward = backward,
        .dtype = shape->activation_dtype,
    };
    op->kernels = backward ? 3 : 1; /* backward: dot(dO, O), main, and the dQ conversion */
    op->model_flops = per_pair * pairs.useful;
    op->full_flops = per_pair * pairs.all;
}

/* Batched products of 16-bit heads whose rows do not begin at multiples of 16 bytes miss the tensor cores and run
 * on the FP32 ones. Source: heads of 108 and 150 against 216 and 192 dimensions in [BigScience]: 14 TFLOP/s on
 * A100, where FP32 peaks at 19.5 */
static SpecDtype core_dtype(const CostShape *shape)
{
    const SpecModel *model = &shape->spec->model;
    const bool aligned = fmod(qk_dim(model) * shape->element_bytes, 16) == 0 &&
                         fmod(v_dim(model) * shape->element_bytes, 16) == 0;
    return aligned ? shape->activation_dtype : SPEC_FP32;
}

/* One batched GEMM of the unfused core: masked pairs are computed all the same. */
static void push_core_gemm(const CostShape *shape, CostOps *ops, const char *name, CostPass pass,
                           const double size[3], double useful_share)
{
    CostOp *op = cost_push_gemm(ops, name, COST_MODULE_ATTENTION_CORE, pass, size[0], size[1], size[2],
                                shape->batch * shape->heads, core_dtype(shape));
    op->model_flops *= useful_share;
}

/* Megatron's kernel gives each of the four warps of a block a row of another head and falls back to separate kernels
 * where heads x sequences do not divide. Source: Megatron-LM, FusedScaleMaskSoftmax.is_kernel_available */
static bool softmax_is_fused(const CostShape *shape)
{
    const SpecFramework *framework = &shape->spec->execution.framework;
    const double rows = shape->batch * shape->heads;
    return shape->spec->execution.compiled ||
           (framework->kernels.fused_softmax &&
            fmod(rows, fmax(1, framework->kernels.fused_softmax_rows)) == 0);
}

/* One by one on each score: to fp32 (6 B), scale (8), mask (9), softmax (8), back to 16 bits (6); backward the same with
 * the saved probabilities read (4). Source: Megatron-LM, FusedScaleMaskSoftmax.forward_torch_softmax */
#define EAGER_SOFTMAX_KERNELS        5
#define EAGER_SOFTMAX_BYTES          37
#define EAGER_SOFTMAX_BACKWARD_BYTES 41

/* Transformer Engine's mask of a sequence, once for all heads: distances of queries and keys, both edges, two comparisons
 * as 64-bit numbers and their difference. Bytes a pair. Source: [TransformerEngine] get_full_mask */
#define FULL_MASK_KERNELS 9
#define FULL_MASK_BYTES   81

static void push_softmax(const CostShape *shape, CostOps *ops, double queries, double keys, bool fused)
{
    const CostModule core = COST_MODULE_ATTENTION_CORE;
    const double rows = shape->batch * shape->heads * queries;
    const bool waits = fused && shape->spec->execution.framework.kernels.masked_softmax;
    if (waits) {
        cost_push_move(ops, "mask", core, COST_MOVE_ELEMENTWISE, queries * keys * FULL_MASK_BYTES,
                       FULL_MASK_KERNELS);
    }
    cost_push_move(ops, "softmax", core, COST_MOVE_SOFTMAX,
                   rows * keys * (fused ? 2 * shape->element_bytes : EAGER_SOFTMAX_BYTES),
                   fused ? 1 : EAGER_SOFTMAX_KERNELS);
    if (waits) {
        CostOp *op = &ops->op[ops->count - 1];
        op->u.move.rows = rows;
        op->u.move.row_elements = keys;
    }
}

/* Scores, softmax, dropout and values as separate kernels. [Shoeybi2019] Fused softmax: scale, mask and
 * softmax in one pass; eager: scale, mask, softmax apart. */
static void push_unfused_core(const CostShape *shape, int layer, bool backward, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const Pairs pairs = pairs_of(shape, layer);
    const bool fused = softmax_is_fused(shape);
    const bool dropout = model->dropout_frac > 0;
    const double q = shape->sequence / shape->context, s = shape->sequence, e = shape->element_bytes;
    const double share = pairs.useful / (q * s), qk = qk_dim(model), v = v_dim(model);
    const double scores = shape->batch * shape->heads * q * s;
    const CostModule core = COST_MODULE_ATTENTION_CORE;
    if (!backward) {
        if (model->position ==
            SPEC_POSITION_ALIBI) { /* the bias is spread over the scores, which then add to it */
            cost_push_move(ops, "position bias", core, COST_MOVE_ELEMENTWISE, scores * 2 * e, 1);
        }
        push_core_gemm(shape, ops, "scores", COST_FORWARD, (const double[]){q, s, qk}, share);
        push_softmax(shape, ops, q, s, fused);
        if (dropout) {
            cost_push_move(ops, "attention dropout", core, COST_MOVE_ELEMENTWISE, scores * (2 * e + 1), 1);
        }
        push_core_gemm(shape, ops, "values", COST_FORWARD, (const double[]){q, v, s}, share);
        return;
    }
    push_core_gemm(shape, ops, "values grad", COST_BACKWARD_WEIGHT, (const double[]){s, v, q}, share);
    push_core_gemm(shape, ops, "probabilities grad", COST_BACKWARD_INPUT, (const double[]){q, s, v}, share);
    if (dropout) {
        cost_push_move(ops, "attention dropout", core, COST_MOVE_ELEMENTWISE, scores * (2 * e + 1), 1);
    }
    cost_push_move(ops, "softmax", core, COST_MOVE_SOFTMAX,
                   scores * (fused ? 3 * e : EAGER_SOFTMAX_BACKWARD_BYTES),
                   fused ? 1 : EAGER_SOFTMAX_KERNELS);
    push_core_gemm(shape, ops, "query grad", COST_BACKWARD_INPUT, (const double[]){q, qk, s}, share);
    push_core_gemm(shape, ops, "key grad", COST_BACKWARD_WEIGHT, (const double[]){s, qk, q}, share);
}

/* Ring attention: K and V of every other rank pass by; backward they and their gradients do. The compute of
 * each step runs beside the hop. [Liu2023] */
static void push_context_comm(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const bool mla = model->mla.kv_lora_rank > 0;
    const double kv_width = (mla ? shape->heads : shape->kv_heads) * (qk_dim(model) + v_dim(model));
    const double bytes = shape->batch * shape->sequence * kv_width * shape->element_bytes;
    cost_push_collective(ops, "kv ring", COST_MODULE_ATTENTION_CORE, COST_ALL_GATHER,
                         bytes * (pass == COST_FORWARD ? 1 : 2), shape->context_group, COST_COMM_CONTEXT,
                         ops->count - 1);
}

static void push_core(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    if (pass == COST_BACKWARD_WEIGHT) {
        return; /* the core has no weights */
    }
    const Pairs pairs = pairs_of(shape, layer);
    if (cost_attention_kernel(shape->spec) == SPEC_ATTENTION_UNFUSED) {
        push_unfused_core(shape, layer, pass == COST_BACKWARD_INPUT, ops);
    } else if (shape->context > 1 && pairs.window <= 0) {
        cost_push_context_core(shape, pass == COST_BACKWARD_INPUT, pairs.useful, pairs.all, ops);
        return;
    } else {
        push_fused_core(shape, layer, pass == COST_BACKWARD_INPUT, ops);
    }
    push_context_comm(shape, pass, ops);
}

/* Latent attention's position, eagerly; passes over the rotated part of the queries:
 *   forward   even and odd dimensions put apart 2, x cos 2, halves swapped 3, x sin 2, sum 3, joined with nothing 2
 *   backward  joined 7, x sin 2, x cos 2, swapped 3, sum 3, even and odd into zeros 4, sum 3
 * and the whole queries are put together once each way. Source: [MegatronCore] rope_utils.py, multi_latent_attention.py */
#define MLA_ROPE_PASSES           14
#define MLA_ROPE_BACKWARD_PASSES  24
#define MLA_ROPE_KERNELS          9
#define MLA_ROPE_BACKWARD_KERNELS 16

static void push_mla_rope(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double whole = 2.0 * (mla->qk_nope_head_dim + mla->qk_rope_head_dim),
                 rotated = mla->qk_rope_head_dim;
    const bool forward = pass == COST_FORWARD;
    cost_push_move(ops, "rope", COST_MODULE_MLA_UP, COST_MOVE_ELEMENTWISE,
                   shape->tokens * shape->heads * shape->element_bytes *
                       (rotated * (forward ? MLA_ROPE_PASSES : MLA_ROPE_BACKWARD_PASSES) + whole),
                   forward ? MLA_ROPE_KERNELS : MLA_ROPE_BACKWARD_KERNELS);
}

/* Cosines and sines with an attention factor (YaRN) are not for Transformer Engine's kernel. Queries and keys apart, bytes
 * an element of e bytes: x cos 2 e, half of it negated e, both halves together out of views 2 e, that sin 2 e; stream: their
 * sum 3 e. Backward: two products 2 e each, half negated e; streams: halves together 2 e, sum 3 e.
 * Source: [MegatronCore] rope_utils.py (apply_rotary_pos_emb, _rotate_half); [PyTorchEager] */
static void push_scaled_rope(const CostShape *shape, CostPass pass, double elements, CostOps *ops)
{
    const CostModule module = COST_MODULE_ATTENTION_PROJECTION;
    const bool forward = pass == COST_FORWARD;
    const double bytes = shape->element_bytes * elements;
    cost_push_by_element(ops, "rotate", module, (forward ? 3.5 : 2.5) * elements, (forward ? 7 : 5) * bytes,
                         forward ? 10 : 6);
    cost_push_move(ops, "rope", module, COST_MOVE_ELEMENTWISE, (forward ? 3 : 5) * bytes, forward ? 2 : 4);
}

static void push_rope(const CostShape *shape, CostPass pass, double width, CostOps *ops)
{
    const SpecExecution *execution = &shape->spec->execution;
    const SpecModel *model = &shape->spec->model;
    if (model->position != SPEC_POSITION_ROPE || pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool mla = model->mla.kv_lora_rank > 0;
    const bool fused = execution->framework.kernels.fused_rope || execution->compiled;
    if (mla && fused && !execution->compiled && !execution->framework.kernels.fused_mla_rope) {
        push_mla_rope(shape, pass, ops);
        return;
    }
    if (model->rope_scaled && fused && !execution->compiled && !mla) {
        push_scaled_rope(shape, pass, shape->tokens * width, ops);
        return;
    }
    /* eager, query and key apart: to fp32 complex (2+4), multiply (4+4), back (4+2) */
    cost_push_move(ops, "rope", COST_MODULE_ATTENTION_PROJECTION, COST_MOVE_ELEMENTWISE,
                   shape->tokens * width * (fused ? 2 : 10) * shape->element_bytes, fused ? 2 : 6);
}

static void push_qk_norm(const CostShape *shape, CostPass pass, CostOps *ops)
{
    if (shape->spec->model.qk_norm) {
        cost_push_norm(shape, ops, pass, shape->tokens, (shape->heads + shape->kv_heads) * shape->head_dim);
    }
}

static int push_mla_projections(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double qk = mla->qk_nope_head_dim + mla->qk_rope_head_dim, tokens = shape->part_tokens;
    const CostModule down = COST_MODULE_ATTENTION_PROJECTION, up = COST_MODULE_MLA_UP;
    if (mla->q_lora_rank > 0) {
        cost_push_linear(shape, ops, "q down", down, pass, tokens, shape->hidden, mla->q_lora_rank,
                         shape->linear_dtype);
        cost_push_norm(shape, ops, pass, tokens, mla->q_lora_rank);
    }
    cost_push_linear(shape, ops, "q up", mla->q_lora_rank > 0 ? up : down, pass, shape->tokens,
                     mla->q_lora_rank > 0 ? mla->q_lora_rank : shape->hidden, shape->heads * qk,
                     shape->linear_dtype);
    cost_push_linear(shape, ops, "kv down", down, pass, tokens, shape->hidden,
                     mla->kv_lora_rank + mla->qk_rope_head_dim, shape->linear_dtype);
    cost_push_norm(shape, ops, pass, tokens, mla->kv_lora_rank);
    const int gemm =
        cost_push_linear(shape, ops, "kv up", up, pass, shape->tokens, mla->kv_lora_rank,
                         shape->heads * (mla->qk_nope_head_dim + mla->v_head_dim), shape->linear_dtype);
    push_rope(shape, pass, shape->heads * mla->qk_rope_head_dim, ops);
    if (pass != COST_BACKWARD_WEIGHT) { /* keys put together from their two halves, values apart from them */
        const double read = mla->qk_nope_head_dim + mla->v_head_dim, written = qk + mla->v_head_dim;
        cost_push_move(ops, "keys and values", up, COST_MOVE_ELEMENTWISE,
                       shape->tokens * shape->heads * (read + written) * shape->element_bytes, 2);
    }
    return gemm;
}

/* Keys and values spread over the query heads; backward the sums over each group. */
static void push_repeat(const CostShape *shape, CostPass pass, CostOps *ops)
{
    if (!shape->spec->execution.framework.context.repeats_kv || shape->kv_heads >= shape->heads ||
        pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    cost_push_move(
        ops, "repeat keys", COST_MODULE_ATTENTION_PROJECTION, COST_MOVE_ELEMENTWISE,
        2 * shape->tokens * (shape->heads + shape->kv_heads) * shape->head_dim * shape->element_bytes, 2);
}

static int push_projections(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const double width = (shape->heads + 2 * shape->kv_heads) * shape->head_dim;
    if (shape->spec->model.mla.kv_lora_rank > 0) {
        return push_mla_projections(shape, pass, ops);
    }
    const int gemm = cost_push_linear(shape, ops, "qkv", COST_MODULE_ATTENTION_PROJECTION, pass,
                                      shape->tokens, shape->hidden, width, shape->linear_dtype);
    cost_split_linear(shape, ops, pass, gemm,
                      (const double[]){shape->heads * shape->head_dim, shape->kv_heads * shape->head_dim,
                                       shape->kv_heads * shape->head_dim});
    push_qk_norm(shape, pass, ops);
    push_rope(shape, pass, (shape->heads + shape->kv_heads) * shape->head_dim, ops);
    push_repeat(shape, pass, ops);
    return gemm;
}

/* Casts before the projections: one linear, or the four of latent attention. */
static void push_projection_cast(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const double tokens = shape->tokens, part = shape->part_tokens, hidden = part * shape->hidden;
    const CostModule down = COST_MODULE_ATTENTION_PROJECTION, up = COST_MODULE_MLA_UP;
    if (mla->kv_lora_rank == 0) {
        cost_push_cast(shape, ops, down, pass, hidden,
                       tokens * (shape->heads + 2 * shape->kv_heads) * shape->head_dim, COST_GATHERED_INPUT);
        return;
    }
    const double queries = tokens * shape->heads * (mla->qk_nope_head_dim + mla->qk_rope_head_dim);
    const double keys = tokens * shape->heads * (mla->qk_nope_head_dim + mla->v_head_dim);
    cost_push_cast(shape, ops, down, pass, hidden, part * (mla->kv_lora_rank + mla->qk_rope_head_dim),
                   COST_GATHERED_NOTHING);
    cost_push_cast(shape, ops, up, pass, tokens * mla->kv_lora_rank, keys, COST_GATHERED_NOTHING);
    if (mla->q_lora_rank > 0) {
        cost_push_cast(shape, ops, down, pass, hidden, part * mla->q_lora_rank, COST_GATHERED_NOTHING);
        cost_push_cast(shape, ops, up, pass, tokens * mla->q_lora_rank, queries, COST_GATHERED_NOTHING);
    } else {
        cost_push_cast(shape, ops, down, pass, hidden, queries, COST_GATHERED_INPUT);
    }
}

/* Copies between the packed and the per-head layouts around an unfused core; around a fused one those that the framework
 * makes of queries, keys and values, and of their gradients. */
static void push_layout_copies(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecFramework *framework = &shape->spec->execution.framework;
    const bool unfused = cost_attention_kernel(shape->spec) == SPEC_ATTENTION_UNFUSED,
               forward = pass == COST_FORWARD;
    const double element_bytes = shape->tokens * shape->element_bytes;
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    double passes = forward ? 2 : 8, width = shape->heads * v_dim(&shape->spec->model);
    if (!unfused) {
        passes = 2 * (forward ? framework->kernels.qkv_copies : framework->kernels.qkv_backward_copies);
        width = (shape->heads + 2 * shape->kv_heads) * shape->head_dim;
    }
    if (passes > 0) {
        cost_push_move(ops, "layout", COST_MODULE_ATTENTION_PROJECTION, COST_MOVE_ELEMENTWISE,
                       passes * width * element_bytes, forward && unfused ? 1 : 2);
    }
}

void cost_ops_attention(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const CostModule projection = COST_MODULE_ATTENTION_PROJECTION;
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    push_projection_cast(shape, pass, ops);
    const int in = push_projections(shape, pass, ops);
    cost_push_tensor_in(shape, ops, pass, projection, in);
    push_core(shape, layer, pass, ops);
    push_layout_copies(shape, pass, ops);
    cost_push_cast(shape, ops, projection, pass, shape->tokens * shape->heads * v_dim(model),
                   shape->part_tokens * shape->hidden, COST_GATHERED_OUTPUT_GRAD);
    const int out = cost_push_linear(shape, ops, "attention out", projection, pass, shape->tokens,
                                     shape->heads * v_dim(model), shape->hidden, shape->linear_dtype);
    cost_push_tensor_out(shape, ops, pass, projection, out);
    if (pass == COST_FORWARD) {
        cost_push_unfused_bias(shape, ops, shape->part_tokens * shape->hidden);
    }
    cost_push_residual(shape, ops, pass);
}
