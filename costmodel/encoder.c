/* costmodel/encoder.c - see encoder.h. */
#include "costmodel/encoder.h"

#include "costmodel/params.h"

CostShape cost_encoder_shape(const CostShape *shape)
{
    CostShape encoder = *shape;
    encoder.sequence = encoder.keys = shape->spec->training.encoder_sequence_length;
    encoder.tokens = encoder.key_tokens = shape->batch * encoder.sequence;
    encoder.part_tokens = shape->sequence_parallel ? encoder.tokens / shape->tensor : encoder.tokens;
    encoder.causal = false;
    return encoder;
}

/* The decoder's queries, which see all of the encoder's sequence. */
static CostShape cross_shape(const CostShape *shape, const CostShape *encoder)
{
    CostShape cross = *shape;
    cross.keys = encoder->sequence;
    cross.key_tokens = encoder->tokens;
    cross.causal = cross.position_bias = false;
    return cross;
}

/* Each layer adds the gradient of the output that they share to the sum: two read, one written. */
static void push_output_gradient(const CostShape *encoder, CostPass pass, CostOps *ops)
{
    if (pass == COST_BACKWARD_INPUT) {
        cost_push_memory(ops, "add encoder grads", COST_MODULE_ATTENTION_PROJECTION, COST_MEMORY_ELEMENTWISE,
                         encoder->part_tokens * encoder->hidden,
                         cost_both_ways(2 * encoder->element_bytes, encoder->element_bytes), 1);
    }
}

static int push_queries(const CostShape *cross, CostPass pass, int input, CostOps *ops)
{
    const CostModule projection = COST_MODULE_ATTENTION_PROJECTION;
    const double width = cross->heads * cross->head_dim;
    cost_push_cast(cross, ops, projection, pass, cross->part_tokens * cross->hidden, cross->tokens * width,
                   COST_GATHERED_INPUT);
    const int gemm = cost_push_linear(cross, ops, "cross q", projection, pass, cross->tokens, cross->hidden,
                                      width, cross->linear_dtype);
    cost_push_tensor_in(cross, ops, pass, projection, gemm);
    if (pass == COST_FORWARD) {
        cost_keep(ops,
                  (CostTensor){"cross q input", cost_kept_input_bytes(cross, cost_kept_element_bytes(cross)),
                               input, .kept_by = gemm, .weight_grad = true});
    }
    return gemm;
}

/* The encoder's output itself is kept once, by its last layer; where ranks or casts keep a copy of what the projection reads,
 * that is the layer's. */
static int push_keys(const CostShape *encoder, CostPass pass, CostOps *ops)
{
    const CostModule projection = COST_MODULE_ATTENTION_PROJECTION;
    const double width = encoder->kv_heads * encoder->head_dim;
    cost_push_cast(encoder, ops, projection, pass, encoder->part_tokens * encoder->hidden,
                   encoder->tokens * 2 * width, COST_GATHERED_INPUT);
    const int cast = ops->count - 1;
    const int gemm = cost_push_linear(encoder, ops, "cross kv", projection, pass, encoder->tokens,
                                      encoder->hidden, 2 * width, encoder->linear_dtype);
    cost_split_linear(encoder, ops, pass, gemm, (const double[]){width, width, 0});
    cost_push_tensor_in(encoder, ops, pass, projection, gemm);
    push_output_gradient(encoder, pass, ops);
    const double each = cost_kept_element_bytes(encoder);
    const bool copy =
        each < encoder->element_bytes || encoder->element_bytes < each ||
        (encoder->sequence_parallel && encoder->spec->execution.framework.tensor.keeps_gathered_input);
    if (pass == COST_FORWARD) {
        cost_keep(ops, (CostTensor){"cross kv input", copy ? cost_kept_input_bytes(encoder, each) : 0,
                                    MAX(cast, 0), .kept_by = gemm, .weight_grad = true});
    }
    return gemm;
}

int cost_push_cross_attention(const CostShape *shape, int layer, CostPass pass, int residual, CostOps *ops)
{
    const CostShape encoder = cost_encoder_shape(shape), cross = cross_shape(shape, &encoder);
    const int input = cost_push_block_norm(&cross, ops, pass, "cross residual", residual);
    const int query = push_queries(&cross, pass, input, ops);
    const int keys = push_keys(&encoder, pass, ops);
    const CostProjections in = {
        .last = keys, .query = query, .key = keys, .value = keys, .spread = COST_OUTSIDE};
    cost_push_attention_rest(&cross, layer, pass, &in, ops);
    return cost_push_residual(&cross, ops, pass, "cross residual mask");
}

void cost_push_encoder_end(const CostShape *shape, CostPass pass, int residual, CostOps *ops)
{
    if (!shape->spec->model.no_final_norm) {
        cost_push_block_norm(shape, ops, pass, "encoder norm input", residual);
    }
    if (pass ==
        COST_FORWARD) { /* read by all layers of the decoder: no recomputation of one layer drops it */
        cost_keep(ops, (CostTensor){"encoder output", cost_encoder_output_bytes(shape), COST_OUTSIDE,
                                    .kept_by = ops->count - 1, .weight_grad = true});
    }
}

double cost_boundary_tokens(const CostShape *shape, double tokens)
{
    const SpecTraining *training = &shape->spec->training;
    if (shape->spec->model.encoder_layers == 0) {
        return tokens;
    }
    return tokens + tokens / training->sequence_length * training->encoder_sequence_length;
}

double cost_encoder_output_bytes(const CostShape *shape)
{
    if (shape->spec->model.encoder_layers == 0) {
        return 0;
    }
    const CostShape encoder = cost_encoder_shape(shape);
    return encoder.element_bytes * encoder.part_tokens * encoder.hidden;
}
