/* costmodel/layer_list.h - what the layers of a network that is no transformer cost, from a few numbers of each.
 *
 * A layer with P parameters and F FLOPs a sample is a product whose weights are a square of P: as many rows as F / 2P
 * asks for (of a convolution its implicit product: rows are the pixels of its output), with the efficiency of the
 * accelerator's model at that size. Kernels beside it move what is kept for the backward, in and out. One kernel in all:
 * the longer of product and bytes, the roofline.
 *   forward  max(product, 2A/bandwidth), or product + (kernels - 1) kernels that move 2A in all
 *   backward two products, kernels beside them move 3A
 * Tensor parallelism: each of t ranks has 1/t of a layer's outputs, so of its weights, FLOPs and bytes (of measured
 * seconds too). What a layer reads is gathered before it and the gradients of that are reduced and scattered behind it,
 * but where its groups of channels stay on a rank.
 * Source: [Krizhevsky2012] section 3.2
 * Ignores: the host (launches of small batches), L2 hits, kernels chosen by shape (Winograd)
 */
#ifndef ORR_COSTMODEL_LAYER_LIST_H
#define ORR_COSTMODEL_LAYER_LIST_H

#include "spec/layer_list.h"

typedef struct CostListLayer {
    double forward_s, backward_input_s, backward_weight_s; /* of a micro-batch */
} CostListLayer;

CostListLayer cost_list_layer(const Spec *spec, const SpecLayer *layer);

/* Whether tensor ranks exchange the input of the layer. */
bool cost_list_gathers(const Spec *spec, const SpecLayer *layer);

/* Of all layers; the FLOPs of forward and backward of one sample. */
double cost_list_parameters(const SpecModel *model);
double cost_list_flops(const SpecModel *model);

#endif
