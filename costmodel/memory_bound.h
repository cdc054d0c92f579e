/* costmodel/memory_bound.h - seconds of kernels that only move bytes: norms, activations, dropout,
 * softmax, cross-entropy, permutation, optimizer, casts. */
#ifndef ORR_COSTMODEL_MEMORY_BOUND_H
#define ORR_COSTMODEL_MEMORY_BOUND_H

#include "spec/spec.h"

typedef enum {
    COST_MEMORY_ELEMENTWISE, /* add, bias, activation, dropout, casts */
    COST_MEMORY_NORM,        /* row reductions: layer norm, RMS norm */
    COST_MEMORY_SOFTMAX,
    COST_MEMORY_CROSS_ENTROPY,
    COST_MEMORY_PERMUTE,   /* gather/scatter of token rows */
    COST_MEMORY_CAST,      /* to 8 or 4 bits, with scales and transposes */
    COST_MEMORY_OPTIMIZER, /* streaming many arrays */
    COST_MEMORY_COUNT
} CostMemoryKernel;

/* Seconds to read and write `bytes` in all by one kernel, launch gap excluded. Small kernels do not
 * reach the bandwidth: a ramp over the bytes in flight. */
double cost_memory_bound_s(const SpecAccelerator *accelerator, CostMemoryKernel move, double bytes);

/* Whether kernels run on streaming multiprocessors (or CUs), whose warps and instructions can be what they wait for: not on
 * a TPU's or another's few cores with vector units of their own. */
bool cost_has_sms(const SpecAccelerator *accelerator);

/* Seconds of a kernel whose warps take a row each and wait for every load of 128 of its elements before they ask for the
 * next: rows over the warps that the registers let in, times loads, times a trip to memory. 0 for no rows, and without SMs.
 * Source: [TransformerEngine] scaled_masked_softmax.cu, forward      Tested: unit/costmodel/test_memory_bound.c */
double cost_row_warps_s(const SpecAccelerator *accelerator, double rows, double row_elements);

/* Seconds of a kernel whose blocks of 128 threads wait for `loads` of the L2 cache each, one after the other: sixteen
 * blocks at once on an SM, and no less than one block takes. 0 for no loads.
 * Source: [TransformerEngine] triton/permutation.py      Tested: unit/costmodel/test_memory_bound.c */
double cost_walk_s(const SpecAccelerator *accelerator, double blocks, double loads);

#endif
