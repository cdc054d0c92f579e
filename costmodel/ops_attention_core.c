/* costmodel/ops_attention_core.c - scores, softmax and values of a layer: one fused kernel or several, on one rank or over
 * those that share the sequence (costmodel/context.h). */
#include <math.h>

#include "costmodel/context.h"
#include "costmodel/lengths.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"

/* Zig-zag context parallelism gives every rank the same share. */
static CostPairs pairs_of(const CostShape *shape, int layer)
{
    const SpecModel *model = &shape->spec->model;
    const double s = shape->sequence;
    const double documents = shape->spec->training.document_tokens;
    const double packed = cost_packed_pairs(shape->spec);
    const double all = s * shape->keys / shape->context;
    CostPairs pairs = {.all = all, .useful = all};
    if (documents > 0) { /* masked between documents: the window that leaves as many pairs */
        pairs.useful = cost_document_pairs(s, documents) / shape->context * (shape->causal ? 1 : 2);
        pairs.window = cost_document_window(s, documents);
        pairs.all = fmin(pairs.all, s * pairs.window / shape->context * (shape->causal ? 1 : 2));
    } else if (packed > 0) {
        pairs.useful = packed / shape->context * (shape->causal ? 1 : 2);
        pairs.window = s - sqrt(fmax(0, s * s - 2 * packed));
        pairs.all = fmin(pairs.all, s * pairs.window / shape->context * (shape->causal ? 1 : 2));
    } else if (cost_layer_windowed(model, layer) && model->attention_window_tokens < s) {
        const double w = cost_attention_window(model, s);
        pairs.window = w;
        pairs.all = s * w / shape->context;
        pairs.useful = (s * w - (shape->causal ? w * w / 2 : 0)) / shape->context;
    } else if (shape->causal) {
        pairs.useful = pairs.all / 2;
    }
    return pairs;
}

static void push_fused_core(const CostShape *shape, int layer, bool backward, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const CostPairs pairs = pairs_of(shape, layer);
    const double per_pair =
        2 * shape->batch * shape->heads * (cost_qk_dim(model) + cost_v_dim(model)) * (backward ? 2 : 1);
    CostOp *op = cost_ops_push(ops, "attention", COST_OP_ATTENTION, COST_MODULE_ATTENTION_CORE);
    op->u.attention = (CostAttention){
        .kernel = cost_attention_kernel(shape->spec),
        .batch = shape->batch,
        .q_tokens = shape->sequence / shape->context,
        .kv_tokens = shape->keys,
        .heads = shape->heads,
        .kv_heads = model->mla.kv_lora_rank > 0 ? shape->heads : shape->kv_heads,
        .qk_head_dim = cost_qk_dim(model),
        .v_head_dim = cost_v_dim(model),
        .causal = shape->causal,
        .window_tokens = pairs.window,
        .backward = backward,
        .dtype = shape->core_dtype,
        .block_scaled = cost_core_block_scaled(shape),
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
    const bool aligned = fmod(cost_qk_dim(model) * shape->element_bytes, 16) == 0 &&
                         fmod(cost_v_dim(model) * shape->element_bytes, 16) == 0;
    return aligned ? shape->activation_dtype : SPEC_FP32;
}

/* One batched GEMM of the unfused core: masked pairs are computed all the same. */
static void push_core_gemm(const CostShape *shape, CostOps *ops, const char *name, CostPass pass,
                           const double size[3], double heads, double useful_share)
{
    CostOp *op = cost_push_gemm(ops, name, COST_MODULE_ATTENTION_CORE, pass, size[0], size[1], size[2],
                                shape->batch * heads, core_dtype(shape));
    op->model_flops *= useful_share;
}

/* Megatron's kernel gives each of the four warps of a block a row of another head and falls back to separate kernels
 * where heads x sequences do not divide. Source: Megatron-LM, FusedScaleMaskSoftmax.is_kernel_available */
static bool softmax_is_fused(const CostShape *shape)
{
    const SpecFramework *framework = &shape->spec->execution.framework;
    const double rows = shape->batch * shape->heads;
    return shape->spec->execution.compiled ||
           (framework->kernels.softmax >= SPEC_SOFTMAX_FUSED &&
            fmod(rows, fmax(1, framework->kernels.fused_softmax_rows)) == 0);
}

/* One by one on each score, bytes read + written: to fp32 2 + 4, scale 4 + 4, mask 5 + 4, softmax 4 + 4, back to 16 bits
 * 4 + 2; backward the same with the saved probabilities read (4).
 * Source: Megatron-LM, FusedScaleMaskSoftmax.forward_torch_softmax */
#define EAGER_SOFTMAX_KERNELS 5
static const CostMoved eager_softmax = {.read = 19, .written = 18},
                       eager_softmax_backward = {.read = 23, .written = 18};

/* Without casts, a kernel each, elements read + written: quotient, product with the mask, less what masks, softmax 1 + 1;
 * backward: softmax with the saved probabilities 2 + 1, product and quotient 1 + 1. A mask for all heads stays in the cache.
 * Source: [DeepSpeedExamples] Megatron-LM/mpu/transformer.py, GPT2ParallelSelfAttention */
#define NARROW_SOFTMAX_KERNELS          4
#define NARROW_SOFTMAX_BACKWARD_KERNELS 3

/* With a mask that is added: quotient, sum, softmax 1 + 1; backward: softmax 2 + 1, quotient 1 + 1.
 * Source: [NvidiaBert] modeling.py, BertSelfAttention */
#define ADDED_MASK_KERNELS          3
#define ADDED_MASK_BACKWARD_KERNELS 2

/* Transformer Engine's mask of a sequence, once for all heads: distances of queries and keys 0 + 4, both edges
 * 8 + 8, two comparisons 8 + 2, as 64-bit numbers 2 + 16, their difference 16 + 8, where that is 0 8 + 1. Bytes of a pair,
 * read + written. Source: [TransformerEngine] get_full_mask */
#define FULL_MASK_KERNELS 9
static const CostMoved full_mask = {.read = 42, .written = 39};

static bool softmax_upcasts(const CostShape *shape, bool fused)
{
    const SpecSoftmax softmax = shape->spec->execution.framework.kernels.softmax;
    return !fused && softmax >= SPEC_SOFTMAX_EAGER;
}

/* XLA: the maximum and the sum of a row in a kernel each, that of its gradient times the result in another, which read what
 * the one that writes reads again.   Source: [XlaFusion] */
static bool sums_rows_apart(const CostShape *shape)
{
    return shape->spec->execution.compiled && shape->spec->execution.framework.kernels.reductions_apart;
}

/* Scale, mask and softmax of the scores, or their gradient. */
static void push_scores(const CostShape *shape, CostOps *ops, double scores, bool fused, bool backward)
{
    const double e = shape->element_bytes;
    CostMoved moved = backward ? cost_both_ways(2 * e, e) : cost_both_ways(e, e);
    int kernels = 1;
    if (softmax_upcasts(shape, fused)) {
        moved = backward ? eager_softmax_backward : eager_softmax;
        kernels = EAGER_SOFTMAX_KERNELS;
    } else if (sums_rows_apart(shape)) {
        kernels = backward ? 2 : 3;
        moved.read *= kernels;
    } else if (!fused) {
        const bool added = shape->spec->execution.framework.kernels.softmax == SPEC_SOFTMAX_NARROW_ADDED;
        const int narrow = backward ? NARROW_SOFTMAX_BACKWARD_KERNELS : NARROW_SOFTMAX_KERNELS;
        const int sum = backward ? ADDED_MASK_BACKWARD_KERNELS : ADDED_MASK_KERNELS;
        kernels = added ? sum : narrow;
        moved = cost_both_ways((kernels + (backward ? 1 : 0)) * e, kernels * e);
    }
    cost_push_memory(ops, "softmax", COST_MODULE_ATTENTION_CORE, COST_MEMORY_SOFTMAX, scores, moved, kernels);
}

static void push_softmax(const CostShape *shape, CostOps *ops, double queries, double keys, double heads,
                         bool fused)
{
    const CostModule core = COST_MODULE_ATTENTION_CORE;
    const double rows = shape->batch * heads * queries;
    const bool waits = fused && shape->spec->execution.framework.kernels.softmax == SPEC_SOFTMAX_FUSED_MASKED;
    if (waits) {
        cost_push_memory(ops, "mask", core, COST_MEMORY_ELEMENTWISE, queries * keys, full_mask,
                         FULL_MASK_KERNELS);
    }
    push_scores(shape, ops, rows * keys, fused, false);
    if (waits) {
        CostOp *op = &ops->op[ops->count - 1];
        op->u.memory.rows = rows;
        op->u.memory.row_elements = keys;
    }
}

/* What backward reads of the core's own work; the ops are the last of the list. A fused softmax keeps its 16-bit result, which
 * the product with the values keeps too. An eager one works in fp32 and keeps that: PyTorch's softmax keeps its result, casts,
 * scalar products and masks in place keep nothing of their own; the 16-bit copy stays where the product reads it, which with
 * dropout reads the dropped copy instead, and dropout keeps its mask alone.
 * Source: Megatron-LM, FusedScaleMaskSoftmax.forward_torch_softmax; [PyTorchAutograd] _softmax, native_dropout */
static void keep_unfused_core(const CostShape *shape, double scores, bool fused, CostOps *ops)
{
    const bool dropout = shape->spec->model.dropout_frac > 0;
    const int values = ops->count - 1, softmax = values - (dropout ? 2 : 1), dropped = values - 1;
    const double wide = shape->element_bytes * scores;
    const bool upcast = softmax_upcasts(shape, fused) && shape->element_bytes < 4;
    cost_keep(ops, (CostTensor){"softmax in fp32", upcast ? 4 * scores : 0, softmax, .kept_by = softmax});
    cost_keep(ops, (CostTensor){"softmax", upcast && dropout ? 0 : wide, softmax,
                                .kept_by = upcast ? values : softmax});
    if (dropout) {
        cost_keep(ops, (CostTensor){"attention dropout mask", scores, dropped, .kept_by = dropped});
        cost_keep(ops, (CostTensor){"attention dropout", wide, dropped, .kept_by = values});
    }
}

/* Scores, softmax, dropout and values as separate kernels. [Shoeybi2019] Fused softmax: scale, mask and
 * softmax in one pass; eager: scale, mask, softmax apart. */
static void push_unfused_core(const CostShape *shape, int layer, bool backward, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const CostPairs pairs = pairs_of(shape, layer);
    const bool fused = softmax_is_fused(shape);
    const bool dropout = model->dropout_frac > 0;
    const CostContextPlan plan = cost_context_plan(shape);
    const double q = plan.q_tokens, s = cost_context_keys(shape, &pairs), e = shape->element_bytes,
                 a = plan.heads;
    const double share = pairs.useful * (shape->heads / a) / (q * s), qk = cost_qk_dim(model),
                 v = cost_v_dim(model);
    const double scores = shape->batch * a * q * s;
    const CostModule core = COST_MODULE_ATTENTION_CORE;
    if (!backward) {
        if (shape->position_bias) { /* it is spread over the scores, which then add to it */
            cost_push_memory(ops, "position bias", core, COST_MEMORY_ELEMENTWISE, scores,
                             cost_both_ways(e, e), 1);
        }
        push_core_gemm(shape, ops, "scores", COST_FORWARD, (const double[]){q, s, qk}, a, share);
        push_softmax(shape, ops, q, s, a, fused);
        if (dropout) {
            cost_push_memory(ops, "attention dropout", core, COST_MEMORY_ELEMENTWISE, scores,
                             cost_both_ways(e, e + 1), 1);
        }
        push_core_gemm(shape, ops, "values", COST_FORWARD, (const double[]){q, v, s}, a, share);
        keep_unfused_core(shape, scores, fused, ops);
        return;
    }
    push_core_gemm(shape, ops, "values grad", COST_BACKWARD_WEIGHT, (const double[]){s, v, q}, a, share);
    push_core_gemm(shape, ops, "probabilities grad", COST_BACKWARD_INPUT, (const double[]){q, s, v}, a,
                   share);
    if (dropout) {
        cost_push_memory(ops, "attention dropout", core, COST_MEMORY_ELEMENTWISE, scores,
                         cost_both_ways(e + 1, e), 1);
    }
    push_scores(shape, ops, scores, fused, true);
    push_core_gemm(shape, ops, "query grad", COST_BACKWARD_INPUT, (const double[]){q, qk, s}, a, share);
    push_core_gemm(shape, ops, "key grad", COST_BACKWARD_WEIGHT, (const double[]){s, qk, q}, a, share);
}

/* Fused attention in 8 bits: queries, keys and values are cast before the forward kernel, the output's gradient before the
 * backward one; both kernels write 16 bits.   Ignores: that the backward keeps the casts in place of what was cast
 * Source: [TransformerEngine] fused_attn, fp8_dpa without fp8_mha */
static void push_core_cast(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    if (shape->core_dtype != SPEC_FP8 || cost_attention_kernel(shape->spec) == SPEC_ATTENTION_UNFUSED) {
        return;
    }
    const double qk = cost_qk_dim(model), v = cost_v_dim(model);
    const double kv = model->mla.kv_lora_rank > 0 ? shape->heads : shape->kv_heads;
    const double elements = pass == COST_FORWARD
                                ? shape->tokens * shape->heads * qk + shape->key_tokens * kv * (qk + v)
                                : shape->tokens * shape->heads * v;
    cost_push_8bit_cast(shape, ops, COST_MODULE_ATTENTION_CORE, elements);
}

static void push_core_ops(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    const CostPairs pairs = pairs_of(shape, layer);
    const bool backward = pass == COST_BACKWARD_INPUT, split = shape->context > 1;
    if (cost_attention_kernel(shape->spec) == SPEC_ATTENTION_UNFUSED) {
        if (split) {
            cost_push_context_before(shape, backward, ops);
        }
        const int first = ops->count;
        push_unfused_core(shape, layer, backward, ops);
        if (split) {
            cost_push_context_after(shape, backward, first, ops->count - 1, ops);
        }
    } else if (split) {
        cost_push_context_core(shape, backward, &pairs, ops);
    } else {
        push_fused_core(shape, layer, backward, ops);
    }
}

/* Keys and values as attention reads them; a compiler spreads them over the heads again where it recomputes nothing. */
static void keep_core_inputs(const CostShape *shape, const CostProjections *from, int core, CostOps *ops)
{
    const Spec *spec = shape->spec;
    const double wide = shape->element_bytes * shape->tokens, a = shape->heads,
                 seen = shape->element_bytes * shape->key_tokens, qk = cost_qk_dim(&spec->model),
                 v = cost_v_dim(&spec->model), kv = spec->model.mla.kv_lora_rank > 0 ? a : shape->kv_heads;
    const bool latent = spec->model.mla.kv_lora_rank > 0, parts = from->query == from->key;
    const bool spread = from->spread != COST_OUTSIDE &&
                        !(spec->execution.compiled && spec->training.recompute.mode == SPEC_RECOMPUTE_NONE);
    cost_keep(ops, (CostTensor){"query", wide * a * qk, from->query, .kept_by = core});
    cost_keep(ops, (CostTensor){"key", seen * kv * qk, from->key, .product = parts ? 1 : 0, .kept_by = core});
    cost_keep(ops, (CostTensor){"value", seen * kv * v, from->value, .product = parts ? 2 : (latent ? 0 : 1),
                                .kept_by = core});
    cost_keep(ops, (CostTensor){"repeated keys and values", spread ? seen * (a - kv) * (qk + v) : 0,
                                from->spread, .kept_by = core});
}

int cost_push_attention_core(const CostShape *shape, int layer, CostPass pass, const CostProjections *from,
                             CostOps *ops)
{
    if (pass == COST_BACKWARD_WEIGHT) {
        return ops->count - 1; /* the core has no weights */
    }
    push_core_cast(shape, pass, ops);
    const int first = ops->count;
    push_core_ops(shape, layer, pass, ops);
    ops->op[first].temp_bytes = cost_context_buffer_bytes(shape, pass == COST_BACKWARD_INPUT);
    int writes = first;
    for (int i = first; i < ops->count; i++) {
        const bool computes = ops->op[i].kind == COST_OP_GEMM || ops->op[i].kind == COST_OP_ATTENTION;
        writes = computes ? i : writes;
    }
    if (pass == COST_FORWARD) {
        keep_core_inputs(shape, from, first, ops);
        const bool fused = ops->op[writes].kind == COST_OP_ATTENTION;
        cost_keep(ops, (CostTensor){"log-sum-exp", fused ? 4 * shape->tokens * shape->heads : 0, writes,
                                    .kept_by = writes});
    }
    return writes;
}
