/* costmodel/ops_layer.c - whole layers, and the pieces before the first and after the last of them. */
#include "costmodel/ops.h"
#include "costmodel/params.h"

/* A layer whose experts are not as many as the others'. */
static void push_moe(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    const int experts = cost_layer_experts(&shape->spec->model, layer);
    if (experts == shape->spec->model.moe.experts) {
        cost_ops_moe(shape, pass, ops);
        return;
    }
    Spec other = *shape->spec;
    CostShape other_shape;
    other.model.moe.experts = experts;
    cost_shape_init(&other_shape, &other);
    cost_ops_moe(&other_shape, pass, ops);
}

void cost_ops_layer(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    cost_ops_attention(shape, layer, pass, ops);
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    if (cost_layer_has_experts(&shape->spec->model, layer)) {
        push_moe(shape, layer, pass, ops);
    } else {
        cost_ops_mlp(shape, pass, ops);
    }
    cost_push_residual(shape, ops, pass);
}

/* Lookup reads a row and writes it; with a sharded vocabulary the partial rows are summed over the tensor
 * ranks. Backward scatters the gradient rows into the table's gradient. */
void cost_ops_embedding(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double elements = shape->tokens * shape->hidden, e = shape->element_bytes;
    const CostModule module = COST_MODULE_EMBEDDING;
    if (pass == COST_FORWARD) {
        cost_push_move(ops, "token rows", module, COST_MOVE_PERMUTE, 2 * elements * e, 2);
        cost_push_collective(ops, "reduce rows", module,
                             shape->sequence_parallel ? COST_REDUCE_SCATTER : COST_ALL_REDUCE, elements * e,
                             shape->tensor_group, COST_COMM_TENSOR, -1);
        if (model->position == SPEC_POSITION_LEARNED) {
            cost_push_move(ops, "position rows", module, COST_MOVE_ELEMENTWISE,
                           3 * shape->part_tokens * shape->hidden * e, 1);
        }
    } else if (pass == COST_BACKWARD_WEIGHT) {
        if (shape->sequence_parallel) {
            cost_push_collective(ops, "gather rows", module, COST_ALL_GATHER, elements * e,
                                 shape->tensor_group, COST_COMM_TENSOR, -1);
        }
        cost_push_move(ops, "token rows grad", module, COST_MOVE_PERMUTE, elements * (e + 8), 2);
    }
    if (model->embedding_norm) {
        cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    }
    if (model->dropout_frac > 0 && pass != COST_BACKWARD_WEIGHT) {
        cost_push_move(ops, "embedding dropout", module, COST_MOVE_ELEMENTWISE,
                       shape->part_tokens * shape->hidden * (2 * e + 1), 1);
    }
}

/* Share of a row of logits that softmax's later passes find no more in the L2 cache: two blocks of 1,024 threads an SM
 * each hold a row. Source: [PyTorchSoftmax] */
static double row_missed_frac(const SpecAccelerator *accelerator, double row_bytes)
{
    const double in_flight = 2.0 * accelerator->sm_count * row_bytes;
    return in_flight > accelerator->l2_bytes ? 1 - accelerator->l2_bytes / in_flight : 0;
}

/* Bytes moved for each logit by the loss. Unfused PyTorch: to fp32 (2+4), log-softmax (4+4, and
 * two more reads), gather; backward zeros of the gather (4), softmax's (4+4+4, and one more read) and back to 16 bits (4+2).
 * Megatron's vocabulary-parallel, a plain stream each: to fp32 (2+4), maximum (4), subtract (4+4), exp (4+4), sum (4),
 * divide (4+4); backward scale (4+4) and back to 16 bits (4+2). Fused: one pass each way. */
static double bytes_of_loss(const CostShape *shape, SpecLoss loss, bool backward)
{
    const double vocab = shape->spec->model.vocab / shape->tensor;
    const double missed = row_missed_frac(&shape->accelerator, 4 * vocab);
    switch (loss) {
    case SPEC_LOSS_UNFUSED:
        return backward ? 22 + 4 * missed : 14 + 8 * missed;
    case SPEC_LOSS_VOCAB_PARALLEL:
        return backward ? 14 : 38;
    case SPEC_LOSS_VOCAB_PARALLEL_COMPILED: /* cast; subtract, exp, sum and copy back; divide. Scatter, copy, cast */
        return backward ? 18 : 30;
    case SPEC_LOSS_XENTROPY: /* rows of 16 bits read for the maximum and for the sum; backward read and overwritten */
        return backward ? 4 : 2 + 2 * row_missed_frac(&shape->accelerator, 2 * vocab);
    case SPEC_LOSS_FUSED:
        return backward ? 4 : 6;
    default:
        return backward ? 4 : 6;
    }
}

static double loss_bytes(const CostShape *shape, bool backward)
{
    const SpecExecution *execution = &shape->spec->execution;
    const SpecLoss loss = execution->framework.loss.kernel;
    const bool eager = loss == SPEC_LOSS_COMPILED && !execution->compiled;
    return bytes_of_loss(shape, eager ? SPEC_LOSS_UNFUSED : loss, backward);
}

void cost_ops_head(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double vocab = model->vocab / shape->tensor, logits = shape->tokens * vocab;
    const SpecLoss loss = shape->spec->execution.framework.loss.kernel;
    const bool compiled = loss == SPEC_LOSS_VOCAB_PARALLEL_COMPILED || loss == SPEC_LOSS_COMPILED;
    const CostModule module = COST_MODULE_HEAD;
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    const int gemm = cost_push_linear(shape, ops, "lm head", module, pass, shape->tokens, shape->hidden,
                                      vocab, shape->activation_dtype);
    cost_push_tensor_in(shape, ops, pass, module, gemm);
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const CostMove move = compiled                           ? COST_MOVE_SOFTMAX
                          : loss == SPEC_LOSS_VOCAB_PARALLEL ? COST_MOVE_ELEMENTWISE
                                                             : COST_MOVE_CROSS_ENTROPY;
    cost_push_move(ops, "loss", module, move, logits * loss_bytes(shape, pass != COST_FORWARD),
                   loss == SPEC_LOSS_FUSED || loss == SPEC_LOSS_XENTROPY ? 2 : 6);
    const int metrics = shape->spec->execution.framework.loss.logit_metrics;
    if (pass == COST_FORWARD && metrics > 0) { /* under no_grad, on what the forward returned */
        cost_push_move(ops, "metrics", module, COST_MOVE_CROSS_ENTROPY,
                       metrics * logits * bytes_of_loss(shape, SPEC_LOSS_UNFUSED, false), 6 * metrics);
    }
    if (pass == COST_FORWARD) { /* maximum, sum and target logit of every token */
        cost_push_collective(ops, "loss reduce", module, COST_ALL_REDUCE, 3 * shape->tokens * 4,
                             shape->tensor_group, COST_COMM_TENSOR, -1);
    }
}

void cost_ops_mtp(const CostShape *shape, CostPass pass, CostOps *ops)
{
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    const int gemm = cost_push_linear(shape, ops, "mtp join", COST_MODULE_MLP_LINEAR, pass, shape->tokens,
                                      2 * shape->hidden, shape->hidden / shape->tensor, shape->linear_dtype);
    cost_push_tensor_in(shape, ops, pass, COST_MODULE_MLP_LINEAR, gemm);
    cost_ops_layer(shape, shape->spec->model.layers - 1, pass, ops);
}
