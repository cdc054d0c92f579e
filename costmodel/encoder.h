/* costmodel/encoder.h - an encoder beside the decoder: its layers' sizes, the attention of decoder layers to what it
 * returns, and what pipeline ranks pass on.
 *
 * Layers are in the order in which they run: the encoder's, then the decoder's. The first pipeline stage looks up the rows of
 * both sequences; each boundary between stages carries both, the decoder's rows beside the encoder's layers and the encoder's
 * output beside the decoder's. Source of the shapes: [Vaswani2017], [Raffel2020], [Lewis2020]
 */
#ifndef ORR_COSTMODEL_ENCODER_H
#define ORR_COSTMODEL_ENCODER_H

#include "costmodel/ops.h"

/* The shape of the encoder's layers: its sequences, and no causal mask. */
CostShape cost_encoder_shape(const CostShape *shape);

/* Queries of the decoder, keys and values of the encoder's output, between self-attention and MLP; `residual` is the op that
 * writes the block's input. Returns the op that writes its output. FLOPs forward for T and E tokens: 2 T h 2 a d (queries,
 * output), 2 E h 2 kv d (keys and values), 4 b s e a d (scores and values, nothing masked). */
int cost_push_cross_attention(const CostShape *shape, int layer, CostPass pass, int residual, CostOps *ops);

/* Behind the encoder's last layer: its final norm, and its output, which stays for all layers of the decoder. */
void cost_push_encoder_end(const CostShape *shape, CostPass pass, int residual, CostOps *ops);

/* Tokens that a boundary between pipeline stages carries: `tokens` (of a micro-batch, or this rank's part) and the encoder's. */
double cost_boundary_tokens(const CostShape *shape, double tokens);

/* Bytes of the encoder's output that a stage of decoder layers keeps for a micro-batch; 0 without an encoder. */
double cost_encoder_output_bytes(const CostShape *shape);

#endif
