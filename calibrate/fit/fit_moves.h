/* calibrate/fit/fit_moves.h - the memory-bound block from timed kernels of each kind. No CUDA here. */
#ifndef ORR_CALIBRATE_FIT_MOVES_H
#define ORR_CALIBRATE_FIT_MOVES_H

#include "base/json.h"
#include "calibrate/fit/residual.h"
#include "costmodel/norms.h"
#include "spec/spec.h"

#define CAL_SWEEP_SOURCE "orrery-calibrate" /* of a sweep's own rows */

typedef struct CalMove {
    CostMemoryKernel kind;
    double bytes, measured_s;
    double rows, cols;     /* of a norm; 0: none, or not said */
    bool backward;         /* of a norm */
    CostNormBlocks blocks; /* its forward's */
    double weight_rate;    /* elements a second and SM in the gradient of its weight; 0: a library's kernel */
} CalMove;

/* One row; false where it lacks a number, or moves rows in a way that the model has no kind for. */
bool cal_move_read(const OrrJson *row, CalMove *ret_move);

/* Seconds that `accelerator` predicts for it: bytes; a norm as cuDNN and Transformer Engine have it, or as the recipe of
 * PyTorch's says, eager or compiled. */
double cal_move_s(const SpecAccelerator *accelerator, const CalMove *move);

/* Rows { gpu, kernel, bytes, time_us } of "memory_bound_measurements": turns latency_s and the share of the bandwidth of
 * every kind that has rows (gelu, swiglu, dropout, residual_add, copy, triad; norms; softmax; cross_entropy; permute,
 * embedding; adam) until the model meets them, and notes the fit's error. Kinds without rows keep theirs. Returns the
 * number of rows used; 0 changes nothing. A framework's own kernels (source "... pytorch", "... torch_compile") are left out,
 * and so is the backward of a norm by the sweep's own kernel, whose blocks add the weight's gradient one after the other:
 * no framework runs it; how many says the log (NULL: nobody reads it). */
int cal_fit_moves(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator,
                  GString *log);

/* A row of the sweep's own backward of a norm. */
bool cal_move_own_norm(const OrrJson *row);

/* The same rows beside what `accelerator` predicts (CalResidual, appended; NULL: nothing). */
void cal_move_residuals(const OrrJson *table, const char *accelerator_name, SpecAccelerator *accelerator,
                        GArray *residuals);

#endif
