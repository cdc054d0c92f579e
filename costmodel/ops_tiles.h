/* costmodel/ops_tiles.h - ops that run tile by tile: MLPs over the sequence (`training.mlp_tiles`), matrices over their
 * output under ZeRO-3 (`parallel.weight_tiles`). */
#ifndef ORR_COSTMODEL_OPS_TILES_H
#define ORR_COSTMODEL_OPS_TILES_H

#include "costmodel/ops.h"

/* Tiles of a layer's matrices that are gathered one after the other; 1 where weights stay once they are there. */
int cost_weight_tiles(const Spec *spec);
/* Cuts the product at `gemm` of a linear layer along the linear's output. One tile changes nothing. */
void cost_tile_linear(const CostShape *shape, CostOps *ops, CostPass pass, int gemm);

typedef void (*CostMlpOps)(const CostShape *shape, CostPass pass, int input, CostOps *ops);

/* The ops of an MLP that `list` makes, `training.mlp_tiles` (2 or more) times for as many parts of the tokens. */
void cost_tile_mlp(const CostShape *shape, CostPass pass, int input, CostMlpOps list, CostOps *ops);

#endif
