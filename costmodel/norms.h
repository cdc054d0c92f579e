/* costmodel/norms.h - seconds of the kernels of a norm, by how their blocks share the rows. */
#ifndef ORR_COSTMODEL_NORMS_H
#define ORR_COSTMODEL_NORMS_H

#include "costmodel/memory_bound.h"

typedef enum {
    COST_NORM_STREAMED, /* bytes alone */
    COST_NORM_ROW,      /* PyTorch's forward: a block of 128 threads a row, which it reads twice */
    COST_NORM_COMPILED, /* Inductor's forward: blocks of 512 threads and more, a row in registers */
    COST_NORM_COLUMNS,  /* PyTorch's gradient of the weight: a block of 1,024 threads for 32 columns */
    COST_NORM_LEFT,     /* the same over what blocks that stay leave in the L2 cache */
    COST_NORM_STAYING,  /* cuDNN's and Transformer Engine's backward: blocks that stay take row after row */
    COST_NORM_SUMMING, /* flash-attention's forward: blocks that stay, a row of each SM's blocks after the other */
    COST_NORM_SUMMED,  /* its backward: as staying, of wider blocks */
    COST_NORM_SUMMAND, /* what its forward moves for the residual stream: no kernel of its own */
} CostNormBlocks;

typedef struct CostNormRows {
    CostNormBlocks blocks;
    double rows, cols;
    double input_bytes; /* of an element that is read */
} CostNormRows;

/* Seconds of one kernel over `norm` that moves `bytes` in all; for no rows or columns, what is not
 * made of SMs, and COST_NORM_STREAMED, what cost_memory_bound_s() says of the bytes. docs/MODEL-kernels.md has the formulas.
 * Source: [cudnn-frontend] norms      Tested: unit/costmodel/test_memory_bound.c */
double cost_norm_rows_s(const SpecAccelerator *accelerator, const CostNormRows *norm, double bytes);

/* The backward of a norm over `rows` of `cols` elements as cuDNN and Transformer Engine have it: one kernel reads input and
 * gradient once and writes the input's gradient; its blocks stay on their SMs and keep the sums of the weight's gradient in
 * registers. What they leave, in fp32, a second kernel adds up. Seconds of both, and the number of sums; 0 for no elements.
 * Source: [TransformerEngine] rmsnorm_bwd_kernels.cuh      Tested: unit/costmodel/test_memory_bound.c */
double cost_norm_backward_s(const SpecAccelerator *accelerator, double rows, double cols,
                            double element_bytes);
double cost_norm_sums(const SpecAccelerator *accelerator, const CostNormRows *norm);
CostNormRows cost_norm_left(const SpecAccelerator *accelerator,
                            const CostNormRows *norm); /* the second kernel */
#define COST_NORM_SUM_BYTES 4.0 /* fp32, written; what reads them finds them in the L2 cache */

#endif
