/* calibrate/fit/fit_moves.h - the memory-bound block from timed kernels of each kind. No CUDA here. */
#ifndef ORR_CALIBRATE_FIT_MOVES_H
#define ORR_CALIBRATE_FIT_MOVES_H

#include "base/json.h"
#include "calibrate/fit/residual.h"
#include "costmodel/memory_bound.h"
#include "spec/spec.h"

typedef struct CalMove {
    CostMemoryKernel kind;
    double bytes, measured_s;
} CalMove;

/* One row; false where it lacks a number, or moves rows in a way that the model has no kind for. */
bool cal_move_read(const OrrJson *row, CalMove *ret_move);

/* Rows { gpu, kernel, bytes, time_us } of "memory_bound_measurements": turns latency_s and the share of the bandwidth of
 * every kind that has rows (gelu, swiglu, dropout, residual_add, copy, triad; norms; softmax; cross_entropy; permute,
 * embedding; adam) until the model meets them, and notes the fit's error. Kinds without rows keep theirs. Returns the
 * number of rows used; 0 changes nothing. A framework's own kernels (source "... pytorch", "... torch_compile") are left out. */
int cal_fit_moves(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator);

/* The same rows beside what `accelerator` predicts (CalResidual, appended; NULL: nothing). */
void cal_move_residuals(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator,
                        GArray *residuals);

#endif
