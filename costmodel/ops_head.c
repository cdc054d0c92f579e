/* costmodel/ops_head.c - final norm, LM head and loss: bytes that each kind of loss moves and keeps for a logit. */
#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/adapter.h"
#include "costmodel/ops.h"

/* Share of a row of logits that a later pass finds no more in the L2 cache: two blocks of 1,024 threads an SM each hold a
 * row. */
static double row_missed_frac(const SpecAccelerator *accelerator, double row_bytes)
{
    const double in_flight = 2.0 * accelerator->sm_count * row_bytes;
    return in_flight > accelerator->l2_bytes ? 1 - accelerator->l2_bytes / in_flight : 0;
}

/* Of the vocabulary that the rank's loss works on: its own part, or all of it gathered. */
static double loss_vocab(const CostShape *shape)
{
    const double ranks = shape->spec->execution.framework.loss.gathers_logits ? 1 : shape->tensor;
    return shape->spec->model.vocab / ranks;
}

/* Bytes moved for each logit by the loss. Unfused PyTorch: to fp32 (2+4), log-softmax (4+4),
 * gather; backward zeros of the gather (4), softmax's (4+4+4) and back to 16 bits (4+2). Its kernels pass over a row two
 * and three times, but times on H200 and H100 grow with these bytes alone. Source: [PyTorchSoftmax]
 * Megatron's vocabulary-parallel, a plain stream each: to fp32 (2+4), maximum (4), subtract (4+4), exp (4+4), sum (4),
 * divide (4+4); backward scale (4+4) and back to 16 bits (4+2). Fused: one pass each way. */
static CostMoved loss_moved(const CostShape *shape, SpecLoss loss, bool backward)
{
    const double vocab = loss_vocab(shape);
    const double missed_16bit = row_missed_frac(&shape->accelerator, 2 * vocab);
    switch (loss) {
    case SPEC_LOSS_UNFUSED:
        return backward ? cost_both_ways(12, 10) : cost_both_ways(6, 8);
    case SPEC_LOSS_UNFUSED_SHIFTED: /* a copy (4+4); backward its gradient into zeros (4, 4+4) */
        return backward ? cost_both_ways(16, 18) : cost_both_ways(10, 12);
    case SPEC_LOSS_UNFUSED_16BIT: /* log-softmax; zeros of the gather, softmax's */
        return backward ? cost_both_ways(4, 4) : cost_both_ways(2, 2);
    case SPEC_LOSS_UNFUSED_AUTOCAST: /* 16 bits to fp32 behind log-softmax; zeros in fp32, back to 16 bits before it */
        return backward ? cost_both_ways(8, 8) : cost_both_ways(4, 6);
    case SPEC_LOSS_SHIFTED_16BIT: /* a copy (2+2) more; backward its gradient into zeros (2, 2+2) */
        return backward ? cost_both_ways(6, 8) : cost_both_ways(4, 4);
    case SPEC_LOSS_SHIFTED_AUTOCAST: /* and what the model returns to fp32 (2+4) */
        return backward ? cost_both_ways(10, 12) : cost_both_ways(8, 12);
    case SPEC_LOSS_VOCAB_PARALLEL:
        return backward ? cost_both_ways(8, 6) : cost_both_ways(22, 16);
    case SPEC_LOSS_VOCAB_PARALLEL_COMPILED: /* cast; subtract, exp, sum and copy back; divide. Scatter, copy, cast */
        return backward ? cost_both_ways(8, 10) : cost_both_ways(14, 16);
    case SPEC_LOSS_XENTROPY: /* rows of 16 bits read for the maximum and for the sum; backward read and overwritten */
        return backward ? cost_both_ways(2, 2) : (CostMoved){.read = 2 + 2 * missed_16bit};
    case SPEC_LOSS_FUSED:
        return backward ? cost_both_ways(2, 2) : cost_both_ways(4, 2);
    default:
        return backward ? cost_both_ways(2, 2) : cost_both_ways(4, 2);
    }
}

/* Of these the casts, copies and zeros around log-softmax, which stream as any element-wise kernel does: log-softmax
 * goes over its rows in blocks that wait for each other. Measured on an H200 (PyTorch 2.11, 4,096 x 50,304 in fp32): 42 %
 * of the bandwidth forward, 64 % with the zeros backward. */
static CostMoved loss_streams(SpecLoss loss, bool backward)
{
    switch (loss) {
    case SPEC_LOSS_UNFUSED:
    case SPEC_LOSS_UNFUSED_AUTOCAST:
        return backward ? cost_both_ways(4, 6) : cost_both_ways(2, 4);
    case SPEC_LOSS_UNFUSED_SHIFTED:
        return backward ? cost_both_ways(8, 14) : cost_both_ways(6, 8);
    case SPEC_LOSS_SHIFTED_16BIT:
        return backward ? cost_both_ways(2, 6) : cost_both_ways(2, 2);
    case SPEC_LOSS_SHIFTED_AUTOCAST:
        return backward ? cost_both_ways(6, 10) : cost_both_ways(6, 10);
    case SPEC_LOSS_UNFUSED_16BIT:
        return backward ? cost_both_ways(0, 2) : cost_both_ways(0, 0);
    default:
        return cost_both_ways(0, 0);
    }
}

/* The loss as it runs: what a compiler would fuse is unfused where nothing is compiled. */
static SpecLoss loss_that_runs(const SpecExecution *execution)
{
    const SpecLoss loss = execution->framework.loss.kernel;
    const bool compiles = loss == SPEC_LOSS_COMPILED || loss == SPEC_LOSS_CHUNKED_OUTPUT;
    return compiles && !execution->compiled ? SPEC_LOSS_UNFUSED : loss;
}

/* Bytes a logit: kept until the backward; only for the moment of the loss; and reserved but unusable, the hole that
 * freed 16-bit logits leave: no fp32 tensor of their count fits in it. */
typedef struct LogitBytes {
    double kept, forward_temp, backward_temp, hole;
} LogitBytes;

static LogitBytes logit_bytes(const Spec *spec)
{
    /* 16-bit logits, their fp32 copy, log-softmax; backward: the gradients of log-softmax and of the copy. Over
     * tensor ranks PyTorch's loss_parallel runs unfused: zeros, exp, their sum, its product. */
    const LogitBytes eager = {4, 6, spec->parallel.tensor > 1 ? 12 : 8, 2};
    switch (spec->execution.framework.loss.kernel) {
    case SPEC_LOSS_UNFUSED:
        return eager;
    case SPEC_LOSS_COMPILED:
        return spec->execution.compiled ? (LogitBytes){.kept = 2, .backward_temp = 2} : eager;
    case SPEC_LOSS_CHUNKED_OUTPUT: /* eager: log-softmax stays; a piece of 8 is widened, forward and backward.
                                    * Source: torchtune modules/loss/ce_chunked_output_loss.py */
        return spec->execution.compiled ? (LogitBytes){.kept = 2}
                                        : (LogitBytes){.kept = 6, .forward_temp = 0.5, .backward_temp = 1};
    case SPEC_LOSS_UNFUSED_SHIFTED: /* what the model returns, and log-softmax; the copy dies with the forward */
        return (LogitBytes){8, 4, 8, 2};
    case SPEC_LOSS_UNFUSED_16BIT: /* logits and log-softmax, and both their gradients */
        return (LogitBytes){.kept = 4, .backward_temp = 4};
    case SPEC_LOSS_UNFUSED_AUTOCAST: /* logits, log-softmax and its fp32 copy, whose gradient comes beside it */
        return (LogitBytes){.kept = 8, .backward_temp = 4};
    case SPEC_LOSS_SHIFTED_16BIT: /* log-softmax; logits and their copy before, its two gradients behind */
        return (LogitBytes){.kept = 2, .forward_temp = 4, .backward_temp = 4};
    case SPEC_LOSS_SHIFTED_AUTOCAST: /* log-softmax and its fp32 copy; what the model returns, also in fp32 */
        return (LogitBytes){.kept = 6, .forward_temp = 6, .backward_temp = 4};
    case SPEC_LOSS_VOCAB_PARALLEL: /* fp32 softmax in place of the fp32 logits; 16-bit logits freed after the cast */
        return (LogitBytes){.kept = 4, .forward_temp = 4, .backward_temp = 2};
    case SPEC_LOSS_VOCAB_PARALLEL_COMPILED: /* and what a graph both sums and changes is a fresh fp32 buffer */
        return (LogitBytes){.kept = 4, .forward_temp = 6, .backward_temp = 6};
    case SPEC_LOSS_XENTROPY:
    case SPEC_LOSS_FUSED: /* the gradient overwrites the 16-bit logits */
        return (LogitBytes){.kept = 2};
    default:
        return (LogitBytes){.forward_temp = 2, .backward_temp = 2};
    }
}

/* Positions whose logits are made: of masked language models those that hold a mask, where software picks them.
 * Source: [NvidiaBert] sequence_output_is_dense */
static double head_tokens(const CostShape *shape)
{
    return shape->tokens * shape->spec->training.predicted_frac;
}

static double rank_logits(const CostShape *shape)
{
    return head_tokens(shape) * loss_vocab(shape);
}

double cost_result_bytes(const CostShape *shape)
{
    if (shape->spec->model.scalar_head)
        return shape->element_bytes * shape->part_tokens;
    return shape->element_bytes * rank_logits(shape);
}

double cost_head_stranded_bytes(const CostShape *shape)
{
    return shape->spec->model.scalar_head ? 0 : logit_bytes(shape->spec).hole * rank_logits(shape);
}

/* Share of the tokens whose logits are there at once: as many pieces as the vocabulary is wider than the model, their tokens
 * a power of two.   Source: [Liger] fused_linear_cross_entropy.py */
static double share_at_once(const CostShape *shape)
{
    const SpecModel *model = &shape->spec->model;
    if (shape->spec->execution.framework.loss.kernel != SPEC_LOSS_CHUNKED)
        return 1;
    const double piece = ceil(head_tokens(shape) / ceil((double)model->vocab / model->hidden));
    return fmin(1, exp2(ceil(log2(piece))) / head_tokens(shape));
}

/* Losses of a logit: orpo's pairs also have the cross-entropy of the chosen half.   Source: [TRL] trainer/orpo_trainer.py */
static double losses(const Spec *spec)
{
    return spec->training.task == SPEC_TASK_ORPO ? 1.5 : 1;
}

/* Compilers take the layers: the final norm stays eager. The loss is the last op of the list. */
static void keep_head(const CostShape *shape, int gemm, CostPass pass, CostOps *ops)
{
    const double elements = shape->part_tokens * shape->hidden, logits = rank_logits(shape);
    const bool normed = !shape->spec->model.no_final_norm,
               upcasts = normed && cost_norm_spelled_out(shape->spec);
    LogitBytes each = logit_bytes(shape->spec);
    const int loss = ops->count - 1;
    each.kept *= losses(shape->spec);
    if (cost_reference_forwards(shape->spec) >
        0)                              /* its logits come beside those that wait for the backward */
        each.forward_temp += each.kept; /* Source: [TRL] trainer/dpo_trainer.py, get_batch_loss_metrics */
    ops->op[loss].temp_bytes =
        share_at_once(shape) * logits * (pass == COST_FORWARD ? each.forward_temp : each.backward_temp);
    if (pass != COST_FORWARD) {
        return;
    }
    cost_keep(ops, (CostTensor){"head residual", normed ? elements * shape->stream_bytes : 0,
                                .written_by = COST_OUTSIDE});
    cost_keep(ops, (CostTensor){"norm in fp32", upcasts ? 4 * elements : 0, .weight_grad = true});
    cost_keep(ops, (CostTensor){"head input",
                                shape->spec->training.predicted_frac *
                                    cost_kept_input_bytes(shape, shape->element_bytes),
                                .kept_by = gemm, .weight_grad = true});
    cost_keep(ops, (CostTensor){"logits", each.kept * logits, gemm, .kept_by = loss, .weight_grad = true});
}

/* Of the vocabulary-parallel loss the kernels that widen or broadcast, which address each element by itself: the cast to
 * fp32, what subtracts the maximum and divides by the sum; backward what scales by a token's gradient.
 * Source: [PyTorchByElement] */
static CostMoved loss_by_element(SpecLoss loss, bool backward)
{
    if (loss != SPEC_LOSS_VOCAB_PARALLEL)
        return cost_both_ways(0, 0);
    return backward ? cost_both_ways(4, 4) : cost_both_ways(10, 12);
}

static void push_loss(const CostShape *shape, CostOps *ops, CostMemoryKernel kernel, bool backward)
{
    const SpecLoss loss = loss_that_runs(&shape->spec->execution);
    const CostMoved all = loss_moved(shape, loss, backward), streams = loss_streams(loss, backward),
                    addressed = loss_by_element(loss, backward);
    const double logits = losses(shape->spec) * rank_logits(shape);
    const bool apart = streams.read + streams.written > 0;
    const int kernels = loss == SPEC_LOSS_FUSED || loss == SPEC_LOSS_XENTROPY ? 2 : 6,
              wide = addressed.read > 0 ? (backward ? 1 : 3) : 0;
    if (wide > 0)
        cost_push_by_element(ops, "loss by element", COST_MODULE_HEAD, logits, wide, addressed, wide);
    if (apart)
        cost_push_memory(ops, "loss copies", COST_MODULE_HEAD, COST_MEMORY_ELEMENTWISE, logits, streams, 2);
    cost_push_memory(ops, "loss", COST_MODULE_HEAD, kernel, logits,
                     cost_both_ways(all.read - streams.read - addressed.read,
                                    all.written - streams.written - addressed.written),
                     kernels - (apart ? 2 : 0) - wide);
}

/* The logits that the head writes and their gradient, which both its backward products read, have rows as long as the
 * rank's vocabulary: one kernel serves what is aligned least.   Source: [OddLogits] */
static int vocab_align(const CostShape *shape)
{
    const SpecExecution *execution = &shape->spec->execution;
    const SpecVocabRows rows = execution->framework.kernels.vocab_rows;
    const double vocab = ceil(shape->spec->model.vocab / (double)shape->tensor);
    if (rows == SPEC_VOCAB_PADDED || (execution->compiled && rows == SPEC_VOCAB_COMPILER_PADS)) {
        return 0;
    }
    for (int align = 4; align >= 1; align /= 2) {
        if (fmod(vocab, 2 * align) == 0) {
            return align == 4 ? 0 : 2 * align;
        }
    }
    return 1;
}

/* Rows of the predicted positions copied out; backward zeros for all positions, into which theirs are added. */
static void push_pick(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const double frac = shape->spec->training.predicted_frac, elements = shape->part_tokens * shape->hidden,
                 e = shape->stream_bytes;
    if (frac >= 1 || pass == COST_BACKWARD_WEIGHT)
        return;
    if (pass == COST_FORWARD)
        cost_push_memory(ops, "pick predicted", COST_MODULE_HEAD, COST_MEMORY_PERMUTE, frac * elements,
                         cost_both_ways(e, e), 3);
    else
        cost_push_memory(ops, "spread predicted", COST_MODULE_HEAD, COST_MEMORY_PERMUTE, elements,
                         cost_both_ways(2 * frac * e, (1 + frac) * e), 2);
}

/* A vector times each token's hidden state: a reward, or a value. Its loss is of one number a sequence or token, and counts
 * nothing. Source: [TRL] AutoModelForSequenceClassification with one label, AutoModelForCausalLMWithValueHead */
static void push_scalar_head(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const double elements = shape->part_tokens * shape->hidden;
    const bool normed = !shape->spec->model.no_final_norm;
    if (normed)
        cost_push_stream_norm(shape, ops, pass);
    const int gemm = cost_push_linear(shape, ops, "scalar head", COST_MODULE_HEAD, pass, shape->part_tokens,
                                      shape->hidden, 1, shape->activation_dtype);
    if (pass != COST_FORWARD)
        return;
    cost_keep(ops, (CostTensor){"head residual", normed ? elements * shape->stream_bytes : 0,
                                .written_by = COST_OUTSIDE});
    cost_keep(ops, (CostTensor){"head input", cost_kept_input_bytes(shape, shape->element_bytes),
                                .kept_by = gemm, .weight_grad = true});
}

void cost_ops_head(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    if (model->scalar_head) {
        push_scalar_head(shape, pass, ops);
        return;
    }
    const double vocab = model->vocab / shape->tensor, logits = rank_logits(shape);
    const SpecLoss loss = shape->spec->execution.framework.loss.kernel;
    const bool compiled = loss == SPEC_LOSS_VOCAB_PARALLEL_COMPILED || loss == SPEC_LOSS_COMPILED ||
                          loss == SPEC_LOSS_CHUNKED_OUTPUT;
    const CostModule module = COST_MODULE_HEAD;
    if (!model->no_final_norm) {
        cost_push_stream_norm(shape, ops, pass);
    }
    push_pick(shape, pass, ops);
    cost_push_autocast_input(shape, ops, pass, module, 1);
    if (shape->head_dtype == SPEC_FP8 && pass != COST_BACKWARD_WEIGHT) {
        cost_push_8bit_cast(shape, ops, module,
                            pass == COST_FORWARD
                                ? shape->spec->training.predicted_frac * shape->part_tokens * shape->hidden
                                : logits);
    }
    const int gemm = cost_push_linear(shape, ops, "lm head", module, pass, head_tokens(shape), shape->hidden,
                                      vocab, shape->head_dtype);
    ops->op[gemm].u.gemm.align = vocab_align(shape);
    cost_push_tensor_in(shape, ops, pass, module, gemm);
    if (pass == COST_BACKWARD_WEIGHT) {
        return;
    }
    const bool gathers = shape->spec->execution.framework.loss.gathers_logits;
    if (gathers && pass == COST_FORWARD) {
        cost_push_collective(ops, "gather logits", module, COST_ALL_GATHER, shape->element_bytes * logits,
                             shape->tensor_group, COST_COMM_TENSOR, -1);
    }
    const CostMemoryKernel move = compiled                           ? COST_MEMORY_SOFTMAX
                                  : loss == SPEC_LOSS_VOCAB_PARALLEL ? COST_MEMORY_ELEMENTWISE
                                                                     : COST_MEMORY_CROSS_ENTROPY;
    push_loss(shape, ops, move, pass != COST_FORWARD);
    keep_head(shape, gemm, pass, ops);
    const int metrics = shape->spec->execution.framework.loss.logit_metrics;
    if (pass == COST_FORWARD && metrics > 0) { /* under no_grad, on what the forward returned */
        cost_push_memory(ops, "metrics", module, COST_MEMORY_CROSS_ENTROPY, metrics * logits,
                         loss_moved(shape, SPEC_LOSS_UNFUSED, false), 6 * metrics);
    }
    if (pass == COST_FORWARD && !gathers) { /* maximum, sum and target logit of every token */
        cost_push_collective(ops, "loss reduce", module, COST_ALL_REDUCE, 3 * head_tokens(shape) * 4,
                             shape->tensor_group, COST_COMM_TENSOR, -1);
    }
}
