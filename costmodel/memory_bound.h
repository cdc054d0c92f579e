/* costmodel/memory_bound.h - seconds of kernels that only move bytes: norms, activations, dropout,
 * softmax, cross-entropy, permutation, optimizer, casts. */
#ifndef ORR_COSTMODEL_MEMORY_BOUND_H
#define ORR_COSTMODEL_MEMORY_BOUND_H

#include "spec/spec.h"

typedef enum {
    COST_MOVE_ELEMENTWISE, /* add, bias, activation, dropout, casts */
    COST_MOVE_NORM,        /* row reductions: layer norm, RMS norm */
    COST_MOVE_SOFTMAX,
    COST_MOVE_CROSS_ENTROPY,
    COST_MOVE_PERMUTE,   /* gather/scatter of token rows */
    COST_MOVE_CAST,      /* to 8 or 4 bits, with scales and transposes */
    COST_MOVE_OPTIMIZER, /* streaming many arrays */
    COST_MOVE_COUNT
} CostMove;

/* Seconds to read and write `bytes` in all by one kernel, launch gap excluded. Small kernels do not
 * reach the bandwidth: a ramp over the bytes in flight. */
double cost_memory_bound_s(const SpecAccelerator *accelerator, CostMove move, double bytes);

/* Seconds of a kernel whose warps take a row each and wait for every load of 128 of its elements before they ask for the
 * next: rows over the warps that the registers let in, times loads, times a trip to memory. 0 for no rows.
 * Source: [TransformerEngine] scaled_masked_softmax.cu, forward      Tested: unit/test_memory_bound.c */
double cost_row_warps_s(const SpecAccelerator *accelerator, double rows, double row_elements);

#endif
