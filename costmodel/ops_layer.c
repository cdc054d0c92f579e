/* costmodel/ops_layer.c - whole layers, what lies before the first of them, and multi-token modules. */
#include "costmodel/adapter.h"
#include "costmodel/encoder.h"
#include "costmodel/ops.h"
#include "costmodel/states.h"
#include "costmodel/params.h"

static void push_moe(const CostShape *shape, int layer, CostPass pass, int input, CostOps *ops)
{
    Spec other;
    CostShape other_shape;
    if (!cost_layer_spec(shape->spec, layer, &other)) {
        cost_ops_moe(shape, pass, input, ops);
        return;
    }
    cost_shape_init(&other_shape, &other);
    cost_ops_moe(&other_shape, pass, input, ops);
}

static void push_blocks(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    cost_ops_attention(shape, layer, pass, ops);
    int residual = cost_push_residual(shape, ops, pass, "attention residual mask");
    if (cost_layer_crosses(&shape->spec->model, layer)) {
        residual = cost_push_cross_attention(shape, layer, pass, residual, ops);
    }
    const int input = cost_push_block_norm(shape, ops, pass, "mlp residual", residual);
    if (cost_layer_has_experts(&shape->spec->model, layer)) {
        push_moe(shape, layer, pass, input, ops);
    } else {
        cost_ops_mlp(shape, pass, input, ops);
    }
    residual = cost_push_residual(shape, ops, pass, "mlp residual mask");
    if (cost_layer_ends_encoder(&shape->spec->model, layer)) {
        cost_push_encoder_end(shape, pass, residual, ops);
    }
}

void cost_ops_layer(const CostShape *shape, int layer, CostPass pass, CostOps *ops)
{
    const int first = ops->count;
    if (cost_layer_encodes(&shape->spec->model, layer)) {
        const CostShape encoder = cost_encoder_shape(shape);
        push_blocks(&encoder, layer, pass, ops);
    } else {
        push_blocks(shape, layer, pass, ops);
    }
    cost_push_recipe_ops(shape, pass, first, ops);
}

/* Up to so many tokens one kernel sums their gradient rows into the table, beyond it a chain that sorts them first.
 * Source: [PyTorchEmbedding] */
#define UNSORTED_TOKENS       3072
#define SORTED_LOOKUP_KERNELS 8

/* Gradient rows summed into the table's: where the sum of earlier micro-batches lies, or in a table that is cleared anew
 * in every micro-batch and added to the sum, the first one too, by a pass of its own: no GEMM makes it.
 * Source: [PyTorchEmbedding]; Megatron-Core's distributed_data_parallel.py (main_grad.add_) */
static void push_table_gradient(const CostShape *shape, CostOps *ops)
{
    const double table = (double)shape->spec->model.vocab / shape->tensor * shape->hidden;
    const double rows = shape->tokens * shape->hidden, e = shape->stream_bytes;
    const double own = cost_weight_wire_bytes(shape->spec), sum = shape->accumulate_fp32 ? 4 : own;
    const CostModule module = COST_MODULE_EMBEDDING;
    if (shape->spec->execution.framework.kernels.embedding != SPEC_EMBEDDING_TABLE) {
        cost_push_memory(ops, "token rows grad", module, COST_MEMORY_PERMUTE, rows, cost_both_ways(e + 4, 4),
                         2);
        return;
    }
    cost_push_memory(ops, "clear table grad", module, COST_MEMORY_ELEMENTWISE, table,
                     (CostMoved){.written = own}, 1);
    cost_push_memory(ops, "token rows grad", module, COST_MEMORY_PERMUTE, rows, cost_both_ways(e + own, own),
                     shape->tokens > UNSORTED_TOKENS ? SORTED_LOOKUP_KERNELS : 1);
    cost_push_memory(ops, "add table grad", module, COST_MEMORY_ELEMENTWISE, table,
                     cost_both_ways(own + sum, sum), 1);
}

/* Rows of the table, or their product with one-hot rows of the vocabulary, written and read; backward the table's gradient
 * likewise. Neither counts as FLOPs of the model. */
static void push_lookup(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const double elements = shape->tokens * shape->hidden, e = shape->stream_bytes;
    const CostModule module = COST_MODULE_EMBEDDING;
    const bool forward = pass == COST_FORWARD;
    if (shape->spec->execution.framework.kernels.embedding != SPEC_EMBEDDING_ONE_HOT) {
        if (forward)
            cost_push_memory(ops, "token rows", module, COST_MEMORY_PERMUTE, elements, cost_both_ways(e, e),
                             2);
        else
            push_table_gradient(shape, ops);
        return;
    }
    const double vocab = shape->spec->model.vocab / shape->tensor, width = shape->element_bytes;
    cost_push_memory(ops, "one-hot rows", module, COST_MEMORY_ELEMENTWISE, shape->tokens * vocab,
                     (CostMoved){.written = width}, 1);
    CostOp *product =
        cost_push_gemm(ops, "token rows", module, pass, forward ? shape->tokens : vocab, shape->hidden,
                       forward ? vocab : shape->tokens, 1, shape->activation_dtype);
    product->model_flops = product->full_flops = 0;
}

/* Lookup reads a row and writes it; with a sharded vocabulary the partial rows are summed over the tensor
 * ranks. Backward scatters the gradient rows into the table's gradient. */
static void push_token_rows(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const double bytes = shape->tokens * shape->hidden * shape->stream_bytes;
    const CostModule module = COST_MODULE_EMBEDDING;
    if (pass == COST_FORWARD) {
        push_lookup(shape, pass, ops);
        cost_push_collective(ops, "reduce rows", module,
                             shape->sequence_parallel ? COST_REDUCE_SCATTER : COST_ALL_REDUCE, bytes,
                             shape->tensor_group, COST_COMM_TENSOR, -1);
    } else if (pass == COST_BACKWARD_WEIGHT) {
        if (shape->sequence_parallel) {
            cost_push_collective(ops, "gather rows", module, COST_ALL_GATHER, bytes, shape->tensor_group,
                                 COST_COMM_TENSOR, -1);
        }
        push_lookup(shape, pass, ops);
    }
}

static void push_embedding(const CostShape *shape, CostPass pass, CostOps *ops)
{
    const SpecModel *model = &shape->spec->model;
    const double e = shape->stream_bytes;
    const CostModule module = COST_MODULE_EMBEDDING;
    push_token_rows(shape, pass, ops);
    if (pass == COST_FORWARD && model->position == SPEC_POSITION_LEARNED) {
        cost_push_memory(ops, "position rows", module, COST_MEMORY_ELEMENTWISE,
                         shape->part_tokens * shape->hidden, cost_both_ways(2 * e, e), 1);
    }
    if (model->embedding_norm) {
        cost_push_stream_norm(shape, ops, pass);
    }
    if (model->dropout_frac > 0 && pass != COST_BACKWARD_WEIGHT) {
        const double mask = pass == COST_FORWARD ? 0 : 1; /* read, or else written */
        cost_push_memory(ops, "embedding dropout", module, COST_MEMORY_ELEMENTWISE,
                         shape->part_tokens * shape->hidden, cost_both_ways(e + mask, e + 1 - mask), 1);
    }
    if (pass == COST_FORWARD) {
        const double mask = model->dropout_frac > 0 ? shape->part_tokens * shape->hidden : 0;
        cost_keep(ops, (CostTensor){"token numbers", 8 * shape->tokens, COST_OUTSIDE, .weight_grad = true});
        cost_keep(ops, (CostTensor){"embedding mask", mask, ops->count - 1, .kept_by = ops->count - 1,
                                    .weight_grad = true});
    }
}

void cost_ops_embedding(const CostShape *shape, CostPass pass, CostOps *ops)
{
    if (shape->spec->model.encoder_layers > 0) {
        const CostShape encoder = cost_encoder_shape(shape);
        push_embedding(&encoder, pass, ops);
    }
    push_embedding(shape, pass, ops);
}

/* What the join reads, and the embedding of the next token before its norm. The hidden state before its own is what the head
 * or module before keeps. */
static void keep_join(const CostShape *shape, int norm, int input, int gemm, CostOps *ops)
{
    if (norm < input) {
        cost_keep(ops,
                  (CostTensor){"mtp embedding", shape->part_tokens * shape->hidden * shape->element_bytes,
                               COST_OUTSIDE, .kept_by = norm, .weight_grad = true});
    }
    cost_keep(ops,
              (CostTensor){"mtp join input", 2 * cost_kept_input_bytes(shape, cost_kept_element_bytes(shape)),
                           norm < input ? input : COST_OUTSIDE, .kept_by = gemm, .weight_grad = true});
}

void cost_ops_mtp(const CostShape *shape, CostPass pass, CostOps *ops)
{
    push_token_rows(shape, pass, ops);
    const int norm = ops->count;
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    cost_push_norm(shape, ops, pass, shape->part_tokens, shape->hidden);
    const int input = ops->count - 1;
    const int gemm = cost_push_linear(shape, ops, "mtp join", COST_MODULE_MLP_LINEAR, pass, shape->tokens,
                                      2 * shape->hidden, shape->hidden / shape->tensor, shape->linear_dtype);
    cost_push_tensor_in(shape, ops, pass, COST_MODULE_MLP_LINEAR, gemm);
    if (pass == COST_FORWARD) {
        keep_join(shape, norm, input, gemm, ops);
    }
    cost_ops_layer(shape, shape->spec->model.layers - 1, pass, ops);
}
