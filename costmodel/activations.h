/* costmodel/activations.h - activation memory of one micro-batch on one rank, tensor by tensor.
 *
 * What a layer keeps between its forward and its backward, given recomputation, tensor and sequence
 * parallelism, attention kernel and precision; and the working set that lives only during a pass.
 * [Korthikanti2022] for GPT layers; docs/MODEL.md lists every tensor.
 */
#ifndef ORR_COSTMODEL_ACTIVATIONS_H
#define ORR_COSTMODEL_ACTIVATIONS_H

#include "costmodel/ops.h"
#include "costmodel/pass.h"

typedef struct CostTensor {
    const char *name;
    CostModule module; /* recomputation of the module drops it ... */
    bool output;       /* ... unless it is the input of something kept */
    bool weight_grad;  /* still needed by the backward-weight pass */
    bool second;       /* output of every second matmul: torchtitan's per-op policy recomputes it */
    double bytes;
} CostTensor;

#define COST_MAX_TENSORS 48

typedef struct CostTensors {
    CostTensor tensor[COST_MAX_TENSORS];
    int count;
} CostTensors;

/* Everything a layer's forward saves without recomputation. */
void cost_layer_tensors(const CostShape *shape, int layer, CostTensors *tensors);

typedef struct CostActivations {
    double kept_bytes;          /* from forward to backward */
    double input_only_bytes;    /* of them freed by the backward-input pass */
    double forward_temp_bytes;  /* alive only during the forward */
    double backward_temp_bytes; /* alive only during the backward: recomputed tensors and gradients */
} CostActivations;

CostActivations cost_layer_activations(const CostShape *shape, int layer, int layer_in_stage);
CostActivations cost_embedding_activations(const CostShape *shape);
CostActivations cost_head_activations(const CostShape *shape);
/* Bytes of one micro-batch that crosses a pipeline boundary, and of the last stage's result: 16-bit logits. */
double cost_boundary_bytes(const CostShape *shape);
double cost_result_bytes(const CostShape *shape);
/* Bytes that the allocator reserves for the loss at its peak beyond those of its tensors. */
double cost_head_stranded_bytes(const CostShape *shape);

#endif
