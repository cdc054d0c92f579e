/* costmodel/decode_layer.h - one layer of a step of generation while its kernels are added up; decode.c and its experts alone. */
#ifndef ORR_COSTMODEL_DECODE_LAYER_H
#define ORR_COSTMODEL_DECODE_LAYER_H

#include "costmodel/decode.h"
#include "costmodel/memory_bound.h"

typedef struct CostDecodeLayer {
    const CostShape *shape;
    const CostDecodeLoads *loads;
    double rows; /* tokens of this step on the rank */
    CostDecodeTime time;
} CostDecodeLayer;

/* Pauses behind so many kernels. */
void cost_decode_gap(CostDecodeLayer *layer, int kernels);
/* `groups` products of m x k by k x n. */
void cost_decode_product(CostDecodeLayer *layer, double m, double n, double k, double groups,
                         SpecDtype dtype);
/* One kernel that reads and writes `bytes`. */
void cost_decode_moves(CostDecodeLayer *layer, CostMemoryKernel kernel, double bytes);
/* `groups` feed-forward networks of `rows` rows and `wide` hidden columns each. */
void cost_decode_mlp(CostDecodeLayer *layer, double rows, double wide, double groups);

/* Ranks of experts have sequences of their own. */
bool cost_decode_ranks_apart(const Spec *spec);
/* `most`: sequences that a rank may ever have. */
void cost_decode_fill_loads(const Spec *spec, double most, CostDecodeLoads *loads);
/* Router, exchanges and kernels of the experts of layer `index`. */
void cost_decode_experts(CostDecodeLayer *layer, int index);

/* Attention of all layers, for one token more of each of `batch` sequences that hold `tokens` in all; a stage of the pipeline works
 * on `rows` at once, with those that fill a graph up. */
double cost_decode_attention_s(const CostDecode *decode, double rows, double batch, double tokens);

#endif
