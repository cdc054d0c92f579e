/* costmodel/activations.h - activation memory of one micro-batch on one rank: a fold over the graph of a piece.
 *
 * What its ops keep between forward and backward, less what recomputation makes again, and the working set that lives
 * only during a pass. [Korthikanti2022] for GPT layers; docs/MODEL.md lists every tensor.
 */
#ifndef ORR_COSTMODEL_ACTIVATIONS_H
#define ORR_COSTMODEL_ACTIVATIONS_H

#include "costmodel/ops.h"
#include "costmodel/pass.h"

typedef struct CostActivations {
    double kept_bytes;          /* from forward to backward */
    double input_only_bytes;    /* of them freed by the backward-input pass */
    double forward_temp_bytes;  /* alive only during the forward */
    double backward_temp_bytes; /* alive only during the backward: recomputed tensors and gradients */
} CostActivations;

/* `extent`: how much of the piece runs again (costmodel/pass.h). */
CostActivations cost_activations(const CostShape *shape, const CostGraph *graph, CostRecomputeExtent extent);
/* Whether recomputation makes a kept tensor of the forward list again, so that it need not stay. */
bool cost_drops_tensor(const Spec *spec, const CostOps *forward, const CostTensor *tensor,
                       CostRecomputeExtent extent);
/* Whether it is the second half's input, behind attention. */
bool cost_stands_between(const CostOps *forward, const CostTensor *tensor);

/* Ranks that a layer's input is divided over while it waits for its recomputation (training.recompute.partitioned), 1 where
 * nothing is or sequence parallelism has done so; and bytes of a kept tensor on one of them.
 * Source: [DeepSpeedCheckpoints] get_partition_size(), get_full_inputs() */
int cost_checkpoint_parts(const CostShape *shape, CostRecomputeExtent extent);
double cost_kept_bytes(const CostShape *shape, const CostTensor *tensor, CostRecomputeExtent extent);

/* Of what a layer keeps, the bytes that a loop over layers copies into a buffer of all layers and out of it again: what
 * products of a library made, which cannot write there themselves; 0 without such a loop (stacks_layers).
 * Source: lax.scan stacks residuals by dynamic updates of a slice, which XLA's GPU backend fuses with element-wise
 * kernels but not with library calls. Ignores: that element-wise readers fuse the copy out. */
double cost_stacked_bytes(const CostShape *shape, const CostOps *forward, CostRecomputeExtent extent);

/* The same of one layer, and of the head. */
/* Of a layer's temporaries of a forward or a backward, frozen weights that are widened: those that the backward makes again,
 * and the buffer of a product, where no other op asks for more. */
double cost_widened_bytes(const CostShape *shape, const CostGraph *graph, CostRecomputeExtent extent,
                          bool backward);
CostActivations cost_layer_activations(const CostShape *shape, int layer, int layer_in_stage);
CostActivations cost_head_activations(const CostShape *shape);
/* Bytes of one micro-batch that crosses a pipeline boundary, and of the last stage's result: 16-bit logits. */
double cost_boundary_bytes(const CostShape *shape);
double cost_result_bytes(const CostShape *shape);
/* Bytes that the allocator reserves for the loss at its peak beyond those of its tensors. */
double cost_head_stranded_bytes(const CostShape *shape);

#endif
