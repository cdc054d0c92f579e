/* costmodel/ops_cast.c - casts of 8- and 4-bit recipes before the products of linear layers. See ops.h. */
#include "costmodel/ops.h"

/* The cast operand and, on hardware without transposing products, its transpose in its place. */
double cost_kept_element_bytes(const CostShape *shape)
{
    if (shape->spec->execution.framework.kernels.casts == SPEC_CASTS_TORCHAO) {
        return shape->element_bytes;
    }
    if (shape->linear_dtype == SPEC_FP8) {
        return shape->spec->training.precision == SPEC_PRECISION_MXFP8 ? 1 + 1.0 / 32 : 1;
    }
    if (shape->linear_dtype == SPEC_INT4) { /* transformed and cast once for both products */
        return 0.5;
    }
    return shape->linear_dtype == SPEC_FP4 ? 0.5 + 1.0 / 16 : shape->element_bytes;
}

/* One scale a row of either operand: the weight's gradient needs other scales than the forward, so it casts anew. */
static bool scaled_by_rows(const CostShape *shape)
{
    const SpecPrecision precision = shape->spec->training.precision;
    return precision == SPEC_PRECISION_FP8_ROWWISE || precision == SPEC_PRECISION_INT8;
}

static bool scaled_whole(SpecPrecision precision)
{
    return precision == SPEC_PRECISION_FP8 || precision == SPEC_PRECISION_FP8_CS ||
           precision == SPEC_PRECISION_FP8_TENSORWISE;
}

static bool wants_transposes(const CostShape *shape)
{
    return !shape->accelerator.generation.either_order;
}

/* PyTorch's casts are element-wise kernels, and what a product wants transposed is copied before it by another, whose
 * writes do not follow its reads. Source: [torchao] float8_ops.py, preprocess_addmm */
static bool copies_transposes(const CostShape *shape)
{
    return shape->spec->execution.framework.kernels.casts == SPEC_CASTS_TORCHAO &&
           shape->linear_dtype == SPEC_FP8;
}

static void push_copied_transpose(CostOps *ops, CostModule module, double elements, double read)
{
    if (elements > 0) {
        cost_push_memory(ops, "cast transpose", module, COST_MEMORY_PERMUTE, elements,
                         cost_both_ways(read, 1), 1);
    }
}

/* Bytes that casting an element of 16 bits moves, and the kernels of a cast.
 *   delayed scaling      2 + 1 + t                t = 1 where products want both operands k-major (before Blackwell): a
 *   current scaling      2 (maximum) + 2 + 1 + t      transposed copy for the weight gradient
 *   scaled by blocks     2 + 2 (1 + 1/32)         along rows and along columns
 *   4 bits               2 (maxima) + 2 + 2 + 2 (1/2 + 1/16)    rows, and columns after a Hadamard transform; both in
 *                        one kernel 2 + 2 + 2 (1/2 + 1/16)      (Transformer Engine since 2.14)
 *   4-bit integers       2 + 2 (Hadamard transform) + 2 + 2 + 2 (1/2)    then rows and columns, a scale each
 * Compiled casts find the maximum in the kernel that writes the tensor. Beside adapters no frozen weight has a gradient: rows
 * alone are cast, without a transform.
 * Source: [TransformerEngine] (module/linear.py: columnwise=backward_needs_input), [torchao], [Xi2023] */
static CostMoved cast_moved(const CostShape *shape, int *ret_kernels)
{
    const SpecPrecision precision = shape->spec->training.precision;
    const bool compiled = shape->spec->execution.compiled;
    const bool frozen = shape->spec->training.adapter.given;
    const double ways = frozen ? 1 : 2;
    *ret_kernels = 1;
    if (shape->linear_dtype == SPEC_FP4) { /* a kernel zeroes the maxima */
        const bool fused = frozen || cost_has_engine(shape, SPEC_TE_BEFORE_2_16);
        *ret_kernels = fused ? 3 : 4;
        return cost_both_ways(fused ? 4 : 6, ways * (0.5 + 1.0 / 16));
    }
    if (shape->linear_dtype == SPEC_INT4) {
        *ret_kernels = 3;
        return cost_both_ways(6, 2 + 2 * 0.5);
    }
    if (precision == SPEC_PRECISION_MXFP8 || precision == SPEC_PRECISION_FP8_BLOCKWISE) {
        return cost_both_ways(2, ways * (1 + 1.0 / 32));
    }
    const bool current = precision == SPEC_PRECISION_FP8_CS || precision == SPEC_PRECISION_FP8_TENSORWISE;
    const bool transposes = wants_transposes(shape) && !copies_transposes(shape) && !frozen;
    *ret_kernels = current && !compiled ? 3 : 1;
    return cost_both_ways(current && !compiled ? 4 : 2, transposes ? 2 : 1);
}

/* Row-wise scales: rows of either operand along the dimension that a product sums over. Forward and for the input's
 * gradient a row is read and cast at once (2 + 1); for the weight's gradient both operands go along the tokens: a pass
 * for the maxima (2), one that casts and transposes (2 + 1). Tensor ranks gather in 16 bits, so each casts the whole.
 * Source: [torchao] float8_linear.py, matmul_with_hp_or_float8_args */
static void push_rowwise_cast(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                              double in, double out, CostGathered gathered)
{
    const double whole = shape->tokens / shape->part_tokens;
    const double input = in * (gathered == COST_GATHERED_INPUT ? whole : 1),
                 output = out * (gathered == COST_GATHERED_OUTPUT_GRAD ? whole : 1);
    if (pass == COST_BACKWARD_WEIGHT) {
        cost_push_memory(ops, "cast", module, COST_MEMORY_ELEMENTWISE, input + output, (CostMoved){.read = 2},
                         2);
        push_copied_transpose(ops, module, input + output, 2);
    } else {
        cost_push_memory(ops, "cast", module, COST_MEMORY_ELEMENTWISE, pass == COST_FORWARD ? input : output,
                         cost_both_ways(2, 1), 1);
    }
}

void cost_push_maximum(const CostShape *shape, CostOps *ops, CostModule module, int tensors)
{
    const int before = ops->count;
    if (shape->spec->execution.framework.kernels.casts == SPEC_CASTS_TORCHAO &&
        shape->linear_dtype == SPEC_FP8 && scaled_whole(shape->spec->training.precision)) {
        cost_push_collective(ops, "maximum", module, COST_ALL_REDUCE, 4, shape->tensor_group,
                             COST_COMM_TENSOR, -1);
    }
    if (ops->count > before) {
        ops->op[before].repeat = ops->op[before].kernels = tensors;
    }
}

void cost_push_cast(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass, double in,
                    double out, CostGathered gathered)
{
    const double elements = pass == COST_FORWARD ? in : out;
    const bool narrow =
        shape->linear_dtype == SPEC_FP8 || shape->linear_dtype == SPEC_FP4 || cost_is_integer(shape);
    if (!narrow || elements <= 0) {
        return;
    }
    if (scaled_by_rows(shape)) {
        push_rowwise_cast(shape, ops, module, pass, in, out, gathered);
        return;
    }
    if (pass == COST_BACKWARD_WEIGHT) {
        if (copies_transposes(shape) && wants_transposes(shape)) { /* the rest: cost_push_transpose() */
            const bool parts = shape->sequence_parallel;
            push_copied_transpose(ops, module,
                                  (parts && gathered == COST_GATHERED_INPUT ? 0 : in) +
                                      (parts && gathered == COST_GATHERED_OUTPUT_GRAD ? 0 : out),
                                  1);
        }
        return;
    }
    int kernels = 1;
    const CostMoved each = cast_moved(shape, &kernels);
    cost_push_maximum(shape, ops, module, 1);
    cost_push_memory(ops, "cast", module,
                     copies_transposes(shape) ? COST_MEMORY_ELEMENTWISE : COST_MEMORY_CAST, elements, each,
                     kernels);
}

void cost_push_8bit_cast(const CostShape *shape, CostOps *ops, CostModule module, double elements)
{
    if (shape->linear_dtype == SPEC_FP8) {
        cost_push_cast(shape, ops, module, COST_FORWARD, elements, 0, COST_GATHERED_NOTHING);
    } else { /* one current scale a tensor */
        cost_push_memory(ops, "cast", module, COST_MEMORY_CAST, elements, cost_both_ways(4, 1), 3);
    }
}

void cost_push_weight_cast(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                           double weights)
{
    const bool rowwise = shape->spec->training.precision == SPEC_PRECISION_FP8_ROWWISE;
    const bool backward = pass == COST_BACKWARD_INPUT;
    if (cost_is_integer(shape)) { /* read, and its rows or columns written with a scale each */
        const double transform = shape->linear_dtype == SPEC_INT4 ? 2 : 0;
        cost_push_memory(ops, "weight cast", module, COST_MEMORY_CAST, weights,
                         cost_both_ways(2 + transform, transform + spec_dtype_bytes(shape->linear_dtype)), 1);
        return;
    }
    if (!copies_transposes(shape) || !wants_transposes(shape)) {
        return;
    }
    if (rowwise) {
        cost_push_memory(ops, "weight cast", module, COST_MEMORY_ELEMENTWISE, weights,
                         cost_both_ways(2, backward ? 0 : 1), 1);
    }
    push_copied_transpose(ops, module, backward ? weights : 0, rowwise ? 2 : 1);
}

/* Columns of 4 bits lie transposed, so that what ranks gather is a block of columns after the other's: each block's rows
 * are copied between the others', data and scales in a kernel each.
 * Source: [TransformerEngine] distributed.py, _post_process_nvfp4_gather */
static void push_interleave(const CostShape *shape, CostOps *ops, CostModule module)
{
    const double element = 0.5 + 1.0 / 16;
    cost_push_memory(ops, "interleave", module, COST_MEMORY_ELEMENTWISE, shape->tokens * shape->hidden,
                     cost_both_ways(element, element), 2);
}

/* Before Blackwell weight gradients want 8-bit operands with the tokens innermost: what was gathered is transposed, whole,
 * on every tensor rank. Block recipes cast along both before they gather. */
void cost_push_transpose(const CostShape *shape, CostOps *ops, CostModule module)
{
    if (!shape->sequence_parallel || shape->tensor_group.ranks < 2 ||
        !shape->spec->execution.framework.tensor.tensor_gather_8bit) {
        return;
    }
    if (shape->linear_dtype == SPEC_FP4) {
        push_interleave(shape, ops, module);
    } else if (scaled_whole(shape->spec->training.precision) && wants_transposes(shape)) {
        cost_push_memory(ops, "transpose", module,
                         copies_transposes(shape) ? COST_MEMORY_PERMUTE : COST_MEMORY_CAST,
                         shape->tokens * shape->hidden, cost_both_ways(1, 1), 1);
    }
}
