/* costmodel/ops_linear.c - linear layers, what crosses tensor ranks around them, and what ops move. See ops.h. */
#include <math.h>

#include "costmodel/adapter.h"
#include "costmodel/moe.h"
#include "costmodel/ops_tiles.h"
#include "costmodel/spread.h"
#include "costmodel/tensor_grid.h"
#include "costmodel/states.h"

double cost_kept_input_bytes(const CostShape *shape, double element_bytes)
{
    const bool whole = shape->spec->execution.framework.tensor.keeps_gathered_input;
    return element_bytes * (whole ? shape->tokens : shape->part_tokens) * shape->hidden;
}

int cost_push_linear(const CostShape *shape, CostOps *ops, const char *name, CostModule module, CostPass pass,
                     double tokens, double in, double out, SpecDtype dtype)
{
    if (pass != COST_BACKWARD_WEIGHT && dtype == shape->linear_dtype) {
        cost_push_weight_cast(shape, ops, module, pass, in * out);
        cost_push_scales(shape, ops, module,
                         pass == COST_FORWARD ? (const double[]){tokens, out, in}
                                              : (const double[]){tokens, in, out},
                         1, true);
    }
    cost_push_autocast_weight(shape, ops, module, pass, in * out);
    cost_push_widening(shape, ops, module, pass, in * out);
    int gemm = ops->count;
    switch (pass) {
    case COST_FORWARD:
        cost_push_gemm(ops, name, module, pass, tokens, out, in, 1, dtype);
        break;
    case COST_BACKWARD_INPUT:
        cost_push_gemm(ops, name, module, pass, tokens, in, out, 1, dtype);
        break;
    default:
        gemm =
            cost_push_weight_gradient(shape, ops, name, module, (const double[]){out, in, tokens}, 1, dtype);
    }
    cost_tile_linear(shape, ops, pass, gemm);
    cost_push_adapter(shape, ops, name, module, pass, tokens, in);
    return gemm;
}

void cost_split_linear(const CostShape *shape, CostOps *ops, CostPass pass, int gemm,
                       const double parts[COST_MAX_PARTS])
{
    if (!cost_separate_projections(shape)) {
        return;
    }
    CostOp *op = &ops->op[gemm];
    const int tiles = MAX(1, op->kernels);
    op->kernels = 0;
    for (int i = 0; i < COST_MAX_PARTS; i++) {
        op->parts[i] = parts[i] / tiles;
        op->kernels += parts[i] > 0 ? tiles : 0;
    }
    if (pass == COST_BACKWARD_INPUT) {
        cost_push_maximum(shape, ops, op->module, op->kernels / tiles - 1);
        /* two read, one written; compiled, the next kernel reads one more */
        const bool compiled = shape->spec->execution.compiled;
        const double e = shape->element_bytes;
        const int sums = op->kernels / tiles - 1;
        cost_push_memory(ops, "add input grads", op->module, COST_MEMORY_ELEMENTWISE,
                         sums * op->u.gemm.m * op->u.gemm.n,
                         compiled ? (CostMoved){.read = e} : cost_both_ways(2 * e, e), compiled ? 1 : sums);
    }
}

double cost_moved_bytes(const CostOp *op)
{
    const CostMoved *each = &op->u.memory.each;
    return op->u.memory.elements * (each->read + each->written + each->undivided);
}

/* An output that is added to is read as well. */
static CostMoved gemm_moved(const CostGemm *gemm)
{
    const double in = gemm->groups * (gemm->m + gemm->n) * gemm->k * spec_dtype_bytes(gemm->dtype);
    const double out = gemm->groups * gemm->m * gemm->n *
                       (gemm->accumulate_fp32 ? 4 : fmax(spec_dtype_bytes(gemm->dtype), 2));
    CostMoved moved = cost_both_ways(in + (gemm->accumulate_fp32 || gemm->accumulate ? out : 0), out);
    moved.undivided = gemm->fused_bytes;
    return moved;
}

CostMoved cost_op_moved(const CostOp *op)
{
    CostMoved all = {0};
    double runs = op->repeat > 0 ? op->repeat : 1;
    switch (op->kind) {
    case COST_OP_GEMM:
        all = gemm_moved(&op->u.gemm);
        break;
    case COST_OP_ATTENTION:
        all.read = cost_attention_read_bytes(&op->u.attention);
        all.written = cost_attention_written_bytes(&op->u.attention);
        break;
    case COST_OP_MEMORY:
        all = op->u.memory.each;
        runs *= op->u.memory.elements;
        break;
    case COST_OP_COLLECTIVE:
        all.undivided = op->u.collective.collective.bytes;
        break;
    }
    return (CostMoved){all.read * runs, all.written * runs, all.undivided * runs};
}

/* Scales of a block-scaled recipe, bytes an element; 0 for recipes that scale whole tensors or rows. */
static double block_scale_bytes(const CostShape *shape)
{
    const SpecPrecision precision = shape->spec->training.precision;
    if (shape->linear_dtype == SPEC_FP4) {
        return 1.0 / 16;
    }
    return precision == SPEC_PRECISION_MXFP8 || precision == SPEC_PRECISION_FP8_BLOCKWISE ? 1.0 / 32 : 0;
}

/* Transformer Engine and torchao cast before they gather. Source: [TransformerEngine] distributed.py; [torchao] */
static bool gathers_narrow(const CostShape *shape)
{
    return shape->spec->execution.framework.tensor.tensor_gather_8bit &&
           shape->spec->training.precision != SPEC_PRECISION_FP8_ROWWISE &&
           (shape->linear_dtype == SPEC_FP8 || shape->linear_dtype == SPEC_FP4);
}

/* Bytes of an activation that tensor ranks gather. A gradient that both backward products read is gathered as cast along
 * rows and as cast along columns where blocks scale it. Source: [TransformerEngine] module/linear.py */
static double gathered_bytes(const CostShape *shape, bool for_both_products)
{
    const double scales = block_scale_bytes(shape), elements = shape->tokens * shape->hidden;
    if (!gathers_narrow(shape)) {
        return elements * shape->element_bytes;
    }
    return elements * (spec_dtype_bytes(shape->linear_dtype) + scales) *
           (for_both_products && scales > 0 ? 2 : 1);
}

/* A gather hides beside its product unless a cast stands between them. Source: [PyTorchAsyncTP] */
static bool hides_gather(const CostShape *shape)
{
    return cost_overlaps_tensor(shape) && (shape->linear_dtype != SPEC_FP8 || gathers_narrow(shape));
}

/* A tensor that lies in pieces on the ranks and is cast with one current scale: its maximum is taken over all of them
 * before each of them casts. Where that goes for every cast (torchao), cost_push_cast() has it.
 * Source: [TransformerEngine] with_amax_reduction */
static void push_maximum(const CostShape *shape, CostOps *ops, CostModule module)
{
    const SpecPrecision precision = shape->spec->training.precision;
    const bool whole = precision == SPEC_PRECISION_FP8_CS || precision == SPEC_PRECISION_FP8_TENSORWISE ||
                       shape->linear_dtype == SPEC_FP4;
    const SpecFramework *framework = &shape->spec->execution.framework;
    if (whole && shape->sequence_parallel && framework->tensor.tensor_gather_8bit &&
        framework->kernels.casts != SPEC_CASTS_TORCHAO) {
        cost_push_collective(ops, "maximum", module, COST_ALL_REDUCE, 4, shape->tensor_group,
                             COST_COMM_TENSOR, -1);
    }
}

/* Transformer Engine's user buffers hold data alone: the scales of blocks of 32 go ahead in a collective of the library,
 * which hides beside nothing (those along columns of a gradient go with its data, beside a product). Without user buffers
 * data and scales are one coalesced collective. Returns the bytes that so travel apart.
 * Source: [TransformerEngine] module/base.py, fill_userbuffers_buffer_for_all_gather; module/linear.py */
static double push_scale_gather(const CostShape *shape, CostOps *ops, CostModule module)
{
    const SpecRecipeTensor *tensor = &shape->spec->execution.framework.tensor;
    if (shape->spec->training.precision != SPEC_PRECISION_MXFP8 || shape->linear_dtype != SPEC_FP8 ||
        !tensor->tensor_gather_8bit || !cost_cuts_pieces(shape) || !cost_overlaps_tensor(shape)) {
        return 0;
    }
    const double bytes = shape->tokens * shape->hidden * block_scale_bytes(shape);
    cost_push_collective(ops, "gather scales", module, COST_ALL_GATHER, bytes, shape->tensor_group,
                         COST_COMM_TENSOR, -1);
    return bytes;
}

bool cost_overlaps_tensor(const CostShape *shape)
{
    return (spec_overlap(shape->spec) & SPEC_OVERLAP_TENSOR) != 0 && shape->linear_dtype != SPEC_FP4 &&
           !cost_is_integer(shape);
}

/* Sequences behind the batch: what was gathered is put in order, what is scattered is put into the order of ranks. */
static void push_layout_copy(const CostShape *shape, CostOps *ops, CostModule module, double bytes)
{
    const double copies = shape->spec->execution.framework.tensor.tensor_layout_copies;
    if (shape->sequence_parallel && copies > 0 && shape->tensor_group.ranks > 1) {
        cost_push_memory(ops, "layout", module, COST_MEMORY_ELEMENTWISE, bytes,
                         cost_both_ways(copies, copies), 1);
    }
}

static double full_bytes(const CostShape *shape)
{
    return shape->tokens * shape->hidden * shape->element_bytes;
}

/* Pieces that arrive lie with the sequence before the batch, and products along rows take them so. A weight's gradient
 * sums over tokens in the order of its other operand: what was gathered is copied into that order, or a cast's transpose
 * writes it so. One sequence has one order. Source: [PyTorchAsyncTP] */
static void push_pieces_copy(const CostShape *shape, CostOps *ops, CostModule module)
{
    const bool pieces = cost_cuts_pieces(shape) && hides_gather(shape);
    if (pieces && shape->batch > 1 && shape->linear_dtype != SPEC_FP8) {
        push_layout_copy(shape, ops, module, full_bytes(shape));
    }
}

/* Linear layers that gather the same input each for itself. */
static int gathers_of(const CostShape *shape, const CostOp *gemm)
{
    int parts = 0;
    for (int i = 0; i < COST_MAX_PARTS; i++) {
        parts += gemm->parts[i] > 0;
    }
    return shape->spec->execution.framework.kernels.projections == SPEC_PROJECTIONS_SEPARATE_EXCHANGED
               ? MAX(parts, 1)
               : 1;
}

/* A column-parallel linear's input. Forward: sequence parallelism gathers it. Backward: without, the input
 * gradient is all-reduced beside the weight-gradient GEMM; with, it is reduce-scattered beside it and the
 * input is gathered again beside the input-gradient GEMM. [Shoeybi2019, Korthikanti2022]
 * `gemm`: index in `ops` of this linear's GEMM (the op beside which the collective may run). */
void cost_push_tensor_in(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module, int gemm)
{
    const SpecFramework *framework = &shape->spec->execution.framework;
    const bool overlap = hides_gather(shape);
    const double times = gathers_of(shape, &ops->op[gemm]);
    const double bytes = times * full_bytes(shape), gathered = times * gathered_bytes(shape, false);
    if (shape->spec->parallel.tensor_scheme != SPEC_TENSOR_1D && shape->tensor > 1) {
        cost_push_tensor_grid(shape, ops, pass, module, gemm, true);
        return;
    }
    const bool chunked = overlap && shape->tensor_group.ranks > 1;
    if (pass == COST_FORWARD && shape->sequence_parallel) {
        push_maximum(shape, ops, module);
        const double apart = push_scale_gather(shape, ops, module);
        cost_push_collective(ops, "gather", module, COST_ALL_GATHER, gathered - apart, shape->tensor_group,
                             COST_COMM_TENSOR, overlap ? gemm : -1);
        if (chunked) {
            ops->op[ops->count - 1].u.collective.chunked = true;
        } else {
            push_layout_copy(shape, ops, module, gathered);
        }
    } else if (pass == COST_BACKWARD_INPUT && shape->sequence_parallel &&
               !framework->tensor.keeps_gathered_input) {
        const double apart = push_scale_gather(shape, ops, module);
        cost_push_collective(ops, "regather", module, COST_ALL_GATHER, gathered - apart, shape->tensor_group,
                             COST_COMM_TENSOR, gemm);
    } else if (pass == COST_BACKWARD_WEIGHT) {
        cost_push_transpose(shape, ops, module);
        push_pieces_copy(shape, ops, module);
        if (!chunked || !framework->tensor.overlap_tensor_backward) {
            push_layout_copy(shape, ops, module, bytes);
        }
        cost_push_collective(ops, "input grad", module,
                             shape->sequence_parallel ? COST_REDUCE_SCATTER : COST_ALL_REDUCE, bytes,
                             shape->tensor_group, COST_COMM_TENSOR, gemm);
    }
}

/* A row-parallel linear's output: reduced forward; backward its gradient is gathered under sequence
 * parallelism (needed by both backward GEMMs). */
void cost_push_tensor_out(const CostShape *shape, CostOps *ops, CostPass pass, CostModule module, int gemm)
{
    const bool wanted = pass == COST_FORWARD ? cost_overlaps_tensor(shape) : hides_gather(shape);
    /* where products are not cut in pieces, the rank's own part of the product hides a gather but no reduce-scatter */
    const SpecFramework *framework = &shape->spec->execution.framework;
    const bool overlap =
        wanted && (cost_cuts_pieces(shape) || (cost_own_products(shape) && pass == COST_BACKWARD_INPUT));
    const double bytes = full_bytes(shape);
    if (shape->spec->parallel.tensor_scheme != SPEC_TENSOR_1D && shape->tensor > 1) {
        cost_push_tensor_grid(shape, ops, pass, module, gemm, false);
        return;
    }
    const bool chunked = overlap && shape->sequence_parallel && shape->tensor_group.ranks > 1;
    if (pass == COST_FORWARD) {
        if (!chunked) {
            push_layout_copy(shape, ops, module, bytes);
        } else if (framework->tensor.tensor_overlap == SPEC_TENSOR_SUMMED_PIECES) {
            cost_push_memory(ops, "sum pieces", module, COST_MEMORY_ELEMENTWISE, bytes,
                             cost_both_ways(1, 1.0 / shape->tensor), 1);
        }
        cost_push_collective(
            ops, "reduce", module, shape->sequence_parallel ? COST_REDUCE_SCATTER : COST_ALL_REDUCE, bytes,
            shape->tensor_group, COST_COMM_TENSOR, overlap && shape->sequence_parallel ? gemm : -1);
    } else if (pass == COST_BACKWARD_INPUT && shape->sequence_parallel) {
        push_maximum(shape, ops, module);
        const double apart = push_scale_gather(shape, ops, module);
        cost_push_collective(ops, "output grad", module, COST_ALL_GATHER, gathered_bytes(shape, true) - apart,
                             shape->tensor_group, COST_COMM_TENSOR, overlap ? gemm : -1);
    } else {
        if (pass == COST_BACKWARD_WEIGHT) {
            cost_push_transpose(shape, ops, module);
            push_pieces_copy(shape, ops, module);
        }
        return;
    }
    if (chunked) {
        ops->op[ops->count - 1].u.collective.chunked = true;
    } else if (pass == COST_BACKWARD_INPUT) {
        push_layout_copy(shape, ops, module, gathered_bytes(shape, true));
    }
}
