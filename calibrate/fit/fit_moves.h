/* calibrate/fit/fit_moves.h - the memory-bound block from timed kernels of each kind. No CUDA here. */
#ifndef ORR_CALIBRATE_FIT_MOVES_H
#define ORR_CALIBRATE_FIT_MOVES_H

#include "base/json.h"
#include "calibrate/fit/residual.h"
#include "spec/spec.h"

/* Rows { gpu, kernel, bytes, time_us } of "memory_bound_measurements": turns latency_s and the share of the bandwidth of
 * every kind that has rows (gelu, swiglu, dropout, residual_add, copy, triad; norms; softmax; cross_entropy; permute,
 * embedding; adam) until the model meets them, and notes the fit's error. Kinds without rows keep theirs. Returns the
 * number of rows used; 0 changes nothing. */
int cal_fit_moves(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator);

/* The same rows beside what `accelerator` predicts (CalResidual, appended; NULL: nothing). */
void cal_move_residuals(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator,
                        GArray *residuals);

#endif
