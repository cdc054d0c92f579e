/* costmodel/activations.c - see activations.h. Bytes are for the tokens of one micro-batch on this rank. */
#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/context.h"
#include "costmodel/params.h"

static void keep(CostTensors *tensors, const char *name, CostModule module, double bytes, bool weight_grad)
{
    g_assert(tensors->count < COST_MAX_TENSORS);
    tensors->tensor[tensors->count++] =
        (CostTensor){.name = name, .module = module, .bytes = bytes, .weight_grad = weight_grad};
}

/* A tensor that survives recomputation of its module because something outside reads it. */
static void keep_output(CostTensors *tensors, const char *name, CostModule module, double bytes)
{
    keep(tensors, name, module, bytes, true);
    tensors->tensor[tensors->count - 1].output = true;
}

static void keep_second(CostTensors *tensors, const char *name, CostModule module, double bytes)
{
    keep(tensors, name, module, bytes, false);
    tensors->tensor[tensors->count - 1].second = true;
}

/* Bytes of an element that a linear layer saves as its input: 8-bit recipes keep the cast operand (and on
 * hardware without transposing GEMMs its transpose). */
static double linear_input_bytes(const CostShape *shape)
{
    if (shape->spec->execution.framework.kernels.saves_unquantized_inputs) {
        return shape->element_bytes;
    }
    if (shape->linear_dtype == SPEC_FP8) {
        return shape->spec->training.precision == SPEC_PRECISION_MXFP8 ? 1 + 1.0 / 32 : 1;
    }
    return shape->linear_dtype == SPEC_FP4 ? 0.5 + 1.0 / 16 : shape->element_bytes;
}

/* Input of a column-parallel linear at `bytes` an element: this rank's part where the backward gathers it again. */
static double linear_input(const CostShape *shape, double bytes)
{
    const bool whole = shape->spec->execution.framework.tensor.keeps_gathered_input;
    return bytes * (whole ? shape->tokens : shape->part_tokens) * shape->hidden;
}

/* Keys and values as attention reads them; a compiler spreads them over the heads again where it recomputes nothing. */
static bool repeats_are_kept(const CostShape *shape)
{
    const Spec *spec = shape->spec;
    const bool spread = spec->execution.framework.context.repeats_kv && spec->model.mla.kv_lora_rank == 0 &&
                        shape->kv_heads < shape->heads;
    return spread && !(spec->execution.compiled && spec->training.recompute.mode == SPEC_RECOMPUTE_NONE);
}

static void attention_core_tensors(const CostShape *shape, CostTensors *tensors)
{
    const SpecModel *model = &shape->spec->model;
    const bool mla = model->mla.kv_lora_rank > 0;
    const CostModule core = COST_MODULE_ATTENTION_CORE,
                     projection = mla ? COST_MODULE_MLA_UP : COST_MODULE_ATTENTION_PROJECTION;
    const double e = shape->element_bytes, t = shape->tokens, a = shape->heads;
    const double qk = mla ? model->mla.qk_nope_head_dim + model->mla.qk_rope_head_dim : shape->head_dim;
    const double v = mla ? model->mla.v_head_dim : shape->head_dim, kv = mla ? a : shape->kv_heads;
    keep(tensors, "query", projection, e * t * a * qk, false);
    keep_second(tensors, "key", projection, e * t * kv * qk);
    keep(tensors, "value", projection, e * t * kv * v, false);
    if (repeats_are_kept(shape)) {
        keep_second(tensors, "repeated keys and values", projection, e * t * (a - kv) * (qk + v));
    }
    if (cost_attention_kernel(shape->spec) == SPEC_ATTENTION_UNFUSED) {
        const double scores = shape->batch * a * (shape->sequence / shape->context) * shape->sequence;
        keep(tensors, "softmax", core, e * scores, false);
        if (model->dropout_frac > 0) {
            keep(tensors, "attention dropout mask", core, scores, false);
            keep(tensors, "attention dropout", core, e * scores, false);
        }
    } else {
        keep(tensors, "log-sum-exp", core, 4 * t * a, false);
    }
    keep_output(tensors, "attention output", core, e * t * a * v);
    if (linear_input_bytes(shape) != e) { /* the projection's cast copy beside it */
        keep(tensors, "attention output cast", COST_MODULE_ATTENTION_PROJECTION,
             linear_input_bytes(shape) * t * a * v, true);
    }
}

static void mla_tensors(const CostShape *shape, CostTensors *tensors)
{
    const SpecMla *mla = &shape->spec->model.mla;
    const CostModule projection = COST_MODULE_ATTENTION_PROJECTION;
    const double e = shape->element_bytes, t = shape->part_tokens;
    if (mla->kv_lora_rank == 0) {
        return;
    }
    keep(tensors, "q latent", projection, e * t * mla->q_lora_rank, true);
    keep(tensors, "q latent normed", COST_MODULE_NORM, e * t * mla->q_lora_rank, true);
    keep(tensors, "kv latent", projection, e * t * (mla->kv_lora_rank + mla->qk_rope_head_dim), true);
    keep(tensors, "kv latent normed", COST_MODULE_NORM, e * t * mla->kv_lora_rank, true);
}

static void mask_tensor(const CostShape *shape, const char *name, CostTensors *tensors)
{
    if (shape->spec->model.dropout_frac > 0) {
        keep(tensors, name, COST_MODULE_RESIDUAL, shape->part_tokens * shape->hidden, false);
    }
}

static void mlp_tensors(const CostShape *shape, CostTensors *tensors)
{
    const SpecModel *model = &shape->spec->model;
    const double f = model->ffn_hidden / shape->tensor, e = shape->element_bytes, t = shape->tokens;
    const SpecExecution *execution = &shape->spec->execution;
    keep(tensors, "mlp input", COST_MODULE_NORM, linear_input(shape, linear_input_bytes(shape)), true);
    keep(tensors, "activation input", COST_MODULE_MLP_LINEAR, e * t * f, false);
    if (model->gated_mlp) {
        keep_second(tensors, "gate input", COST_MODULE_MLP_LINEAR, e * t * f);
    }
    if (model->gated_mlp && !execution->framework.kernels.fused_swiglu && !execution->compiled) {
        keep(tensors, "gate activation", COST_MODULE_MLP_ACTIVATION, e * t * f, false);
    }
    keep(tensors, "mlp output input", COST_MODULE_MLP_ACTIVATION, linear_input_bytes(shape) * t * f, true);
}

/* Routed rows are top_k copies of this rank's tokens. */
static void moe_tensors(const CostShape *shape, int experts, CostTensors *tensors)
{
    const SpecModel *model = &shape->spec->model;
    const SpecMoe *moe = &model->moe;
    const double own = shape->tokens / shape->tensor, e = shape->element_bytes, x = linear_input_bytes(shape);
    const double rows = cost_routed_rows(shape) * (moe->capacity_factor > 0 ? 1 : shape->expert_load);
    const double f = (double)moe->expert_ffn_hidden / shape->spec->parallel.expert_tensor;
    const double shared = moe->shared_expert_ffn_hidden / shape->tensor, width = model->gated_mlp ? 2 : 1;
    keep(tensors, "router input", COST_MODULE_NORM, e * shape->part_tokens * shape->hidden, true);
    keep(tensors, "router logits and probabilities", COST_MODULE_ROUTER, own * experts * 8, false);
    keep(tensors, "permuted rows", COST_MODULE_MOE, x * rows * shape->hidden, true);
    keep(tensors, "expert activation input", COST_MODULE_MOE, e * rows * f * width, false);
    keep(tensors, "expert output input", COST_MODULE_MOE_ACTIVATION, x * rows * f, true);
    if (moe->shared_experts > 0) {
        keep(tensors, "shared expert activation input", COST_MODULE_SHARED_EXPERT,
             e * shape->tokens * shared * width, false);
        keep(tensors, "shared expert output input", COST_MODULE_SHARED_EXPERT, x * shape->tokens * shared,
             true);
    }
}

void cost_layer_tensors(const CostShape *shape, int layer, CostTensors *tensors)
{
    const double residual = shape->element_bytes * shape->part_tokens * shape->hidden;
    const bool eager =
        shape->spec->execution.framework.kernels.norm_upcasts_fp32 && !shape->spec->execution.compiled;
    const double normed =
        eager ? 4 * shape->part_tokens * shape->hidden : 0; /* fp32 copy inside an eager norm */
    tensors->count = 0;
    keep_output(tensors, "layer input", COST_MODULE_RESIDUAL, residual);
    if (eager) {
        keep(tensors, "norm in fp32", COST_MODULE_NORM, normed, false);
    }
    keep(tensors, "qkv input", COST_MODULE_NORM, linear_input(shape, linear_input_bytes(shape)), true);
    mla_tensors(shape, tensors);
    attention_core_tensors(shape, tensors);
    mask_tensor(shape, "attention residual mask", tensors);
    keep_output(tensors, "mlp residual", COST_MODULE_RESIDUAL, residual);
    if (eager) {
        keep(tensors, "norm in fp32", COST_MODULE_NORM, normed, false);
    }
    if (cost_layer_has_experts(&shape->spec->model, layer)) {
        moe_tensors(shape, cost_layer_experts(&shape->spec->model, layer), tensors);
    } else {
        mlp_tensors(shape, tensors);
    }
    mask_tensor(shape, "mlp residual mask", tensors);
}

static bool module_dropped(const Spec *spec, const CostTensor *tensor)
{
    CostOps probe = {.count = 1};
    probe.op[0] = (CostOp){.kind = COST_OP_MOVE, .module = tensor->module};
    const bool per_op = spec->training.recompute.mode == SPEC_RECOMPUTE_SELECTIVE_OP;
    if (tensor
            ->output) { /* a compiler keeps no product that the backward does not read: the MLP's last one */
        return per_op && spec->execution.compiled && tensor->module == COST_MODULE_RESIDUAL;
    }
    if (per_op) {
        /* kept: attention's output and the outputs of the first, third ... matmul of query, key, value, out, and the
         * three of the MLP; the last of them stands for the residual that it becomes */
        return tensor->second || tensor->module == COST_MODULE_NORM ||
               tensor->module == COST_MODULE_MLP_ACTIVATION;
    }
    return cost_recomputes_op(spec, &probe, 0);
}

/* Gradients alive at the widest point of a layer's backward: of the activation and its input, whose two parts wait to be
 * summed where gate and up are linear layers of their own. */
static double gradient_working_bytes(const CostShape *shape)
{
    const SpecModel *model = &shape->spec->model;
    const double f = model->ffn_hidden / shape->tensor * (model->gated_mlp ? 3 : 2);
    const bool parts = model->gated_mlp && shape->spec->execution.framework.kernels.separate_projections;
    return shape->element_bytes * shape->tokens * (f + (parts ? 2 : 1) * shape->hidden);
}

CostActivations cost_layer_activations(const CostShape *shape, int layer, int layer_in_stage)
{
    const CostRecomputeExtent extent = cost_recompute_extent(shape->spec, layer_in_stage);
    CostTensors tensors;
    CostActivations sum = {.forward_temp_bytes = cost_context_buffer_bytes(shape, false),
                           .backward_temp_bytes =
                               fmax(gradient_working_bytes(shape), cost_context_buffer_bytes(shape, true))};
    cost_layer_tensors(shape, layer, &tensors);
    for (int i = 0; i < tensors.count; i++) {
        const CostTensor *tensor = &tensors.tensor[i];
        const bool input = i == 0;
        const bool dropped =
            !input && (extent == COST_RECOMPUTE_OP_ALL ||
                       (extent == COST_RECOMPUTE_OP_SOME && module_dropped(shape->spec, tensor)));
        if (dropped) {
            sum.backward_temp_bytes += tensor->bytes;
            sum.forward_temp_bytes += tensor->bytes;
        } else {
            sum.kept_bytes += tensor->bytes;
            sum.input_only_bytes += tensor->weight_grad ? 0 : tensor->bytes;
        }
    }
    return sum;
}

CostActivations cost_embedding_activations(const CostShape *shape)
{
    const double mask = shape->spec->model.dropout_frac > 0 ? shape->part_tokens * shape->hidden : 0;
    const double ids = 8 * shape->tokens;
    return (CostActivations){.kept_bytes = mask + ids};
}

/* Bytes a logit: kept until the backward; only for the moment of the loss; and reserved but unusable, the hole that
 * freed 16-bit logits leave: no fp32 tensor of their count fits in it. */
typedef struct LossBytes {
    double kept, forward_temp, backward_temp, hole;
} LossBytes;

static LossBytes loss_bytes(const Spec *spec)
{
    /* 16-bit logits, their fp32 copy, log-softmax; backward: the gradients of log-softmax and of the copy. Over
     * tensor ranks PyTorch's loss_parallel runs unfused: zeros, exp, their sum, its product. */
    const LossBytes eager = {4, 6, spec->parallel.tensor > 1 ? 12 : 8, 2};
    switch (spec->execution.framework.loss.kernel) {
    case SPEC_LOSS_UNFUSED:
        return eager;
    case SPEC_LOSS_COMPILED:
        return spec->execution.compiled ? (LossBytes){.kept = 2, .backward_temp = 2} : eager;
    case SPEC_LOSS_VOCAB_PARALLEL: /* fp32 softmax in place of the fp32 logits; 16-bit logits freed after the cast */
        return (LossBytes){.kept = 4, .forward_temp = 4, .backward_temp = 2};
    case SPEC_LOSS_VOCAB_PARALLEL_COMPILED: /* and what a graph both sums and changes is a fresh fp32 buffer */
        return (LossBytes){.kept = 4, .forward_temp = 6, .backward_temp = 6};
    case SPEC_LOSS_XENTROPY:
    case SPEC_LOSS_FUSED: /* the gradient overwrites the 16-bit logits */
        return (LossBytes){.kept = 2};
    default:
        return (LossBytes){.forward_temp = 2, .backward_temp = 2};
    }
}

static double rank_logits(const CostShape *shape)
{
    return shape->tokens * shape->spec->model.vocab / shape->tensor;
}

CostActivations cost_head_activations(const CostShape *shape)
{
    const double residual = shape->element_bytes * shape->part_tokens * shape->hidden;
    const double logits = rank_logits(shape);
    const LossBytes loss = loss_bytes(shape->spec);
    /* compilers take the layers: the final norm stays eager */
    const double normed = shape->spec->execution.framework.kernels.norm_upcasts_fp32
                              ? 4 * shape->part_tokens * shape->hidden
                              : 0;
    return (CostActivations){
        .kept_bytes = residual + normed + linear_input(shape, shape->element_bytes) + loss.kept * logits,
        .input_only_bytes = residual,
        .forward_temp_bytes = loss.forward_temp * logits,
        .backward_temp_bytes = loss.backward_temp * logits,
    };
}

double cost_boundary_bytes(const CostShape *shape)
{
    return shape->element_bytes * shape->part_tokens * shape->hidden;
}

double cost_result_bytes(const CostShape *shape)
{
    return shape->element_bytes * rank_logits(shape);
}

double cost_head_stranded_bytes(const CostShape *shape)
{
    return loss_bytes(shape->spec).hole * rank_logits(shape);
}
