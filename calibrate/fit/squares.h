/* calibrate/fit/squares.h - least squares of residuals over the logarithms of a few positive parameters.
 *
 * Levenberg-Marquardt with a soft-L1 loss (a residual beyond `loss_scale` counts by its size, not its square) and a pull
 * of each parameter towards its start, so that one that no residual feels stays there. Deterministic.
 *
 *   sum over rows 2 s^2 (sqrt(1 + (r/s)^2) - 1)  +  sum over parameters (prior (log p - log start))^2
 */
#ifndef ORR_CALIBRATE_SQUARES_H
#define ORR_CALIBRATE_SQUARES_H

#include <stdbool.h>

#define CAL_MAX_SQUARES 24

/* Residuals, log(predicted / measured), of every row at parameters exp(logs). */
typedef void (*CalResiduals)(void *context, const double *logs, double *out);

typedef struct CalSquares {
    CalResiduals residuals;
    void *context;
    int rows, count;                /* residuals; parameters */
    double start[CAL_MAX_SQUARES];  /* logarithms */
    double loss_scale, prior, step; /* step: of the derivatives, in the logarithm */
    int iterations;
    double settled_frac; /* stop when a round gains less than this share of the loss; 0: never */
} CalSquares;

/* Least loss; `ret_logs` has room for `count`. */
double cal_squares_solve(const CalSquares *problem, double *ret_logs);

/* Derivatives of the residuals at `logs`: ret_jacobian[parameter * rows + row]. */
void cal_squares_jacobian(const CalSquares *problem, const double *logs, const double *residual,
                          double *ret_jacobian);

/* Solves the symmetric positive system a x = b in place. */
void cal_squares_linear(int count, double a[CAL_MAX_SQUARES][CAL_MAX_SQUARES], double *b);

#endif
