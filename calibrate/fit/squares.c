/* calibrate/fit/squares.c - Levenberg-Marquardt on logarithms. Source: [Marquardt1963] */
#include "calibrate/fit/squares.h"

#include <glib.h>
#include <math.h>
#include <string.h>

#define GREATEST_DAMPING 1e8

static double loss(const CalSquares *problem, const double *residual, const double *logs)
{
    const double scale = problem->loss_scale;
    double sum = 0;
    for (int i = 0; i < problem->rows; i++)
        sum += 2 * scale * scale * (sqrt(1 + pow(residual[i] / scale, 2)) - 1);
    for (int j = 0; j < problem->count; j++)
        sum += pow(problem->prior * (logs[j] - problem->start[j]), 2);
    return sum;
}

/* Gaussian elimination; the pivots of a positive system are positive. */
void cal_squares_linear(int n, double a[CAL_MAX_SQUARES][CAL_MAX_SQUARES], double *b)
{
    for (int i = 0; i < n; i++)
        for (int r = i + 1; r < n; r++) {
            double factor = a[r][i] / a[i][i];
            for (int c = i; c < n; c++)
                a[r][c] -= factor * a[i][c];
            b[r] -= factor * b[i];
        }
    for (int i = n - 1; i >= 0; i--) {
        for (int c = i + 1; c < n; c++)
            b[i] -= a[i][c] * b[c];
        b[i] /= a[i][i];
    }
}

void cal_squares_jacobian(const CalSquares *problem, const double *logs, const double *residual,
                          double *ret_jacobian)
{
    double moved[CAL_MAX_SQUARES] = {0};
    memcpy(moved, logs, sizeof *moved * (size_t)problem->count);
    for (int j = 0; j < problem->count; j++) {
        double *column = ret_jacobian + (size_t)j * (size_t)problem->rows;
        moved[j] += problem->step;
        problem->residuals(problem->context, moved, column);
        moved[j] = logs[j];
        for (int i = 0; i < problem->rows; i++)
            column[i] = (column[i] - residual[i]) / problem->step;
    }
}

typedef struct Normal {
    double matrix[CAL_MAX_SQUARES][CAL_MAX_SQUARES], gradient[CAL_MAX_SQUARES];
} Normal;

/* Normal equations at `logs`, rows weighted by the derivative of the soft-L1 loss. */
static void normal_equations(const CalSquares *problem, const double *logs, const double *residual,
                             const double *jacobian, Normal *out)
{
    const int n = problem->rows;
    memset(out, 0, sizeof *out);
    for (int j = 0; j < problem->count; j++) {
        for (int i = 0; i < n; i++) {
            double weight = 1 / sqrt(1 + pow(residual[i] / problem->loss_scale, 2));
            out->gradient[j] += weight * jacobian[j * n + i] * residual[i];
            for (int l = 0; l <= j; l++)
                out->matrix[j][l] += weight * jacobian[j * n + i] * jacobian[l * n + i];
        }
        out->gradient[j] += problem->prior * problem->prior * (logs[j] - problem->start[j]);
        out->matrix[j][j] += problem->prior * problem->prior;
        for (int l = 0; l < j; l++)
            out->matrix[l][j] = out->matrix[j][l];
    }
}

/* A step from `logs` into `trial`; no parameter moves by more than a factor e. */
static void propose(const CalSquares *problem, const Normal *normal, const double *logs, double damping,
                    double *trial)
{
    Normal damped = *normal;
    for (int j = 0; j < problem->count; j++)
        damped.matrix[j][j] *= 1 + damping;
    cal_squares_linear(problem->count, damped.matrix, damped.gradient);
    for (int j = 0; j < problem->count; j++)
        trial[j] = logs[j] - CLAMP(damped.gradient[j], -1, 1);
}

double cal_squares_solve(const CalSquares *problem, double *ret_logs)
{
    g_assert(problem->count <= CAL_MAX_SQUARES && problem->rows > 0);
    const size_t n = (size_t)problem->rows;
    double logs[CAL_MAX_SQUARES] = {0}, trial[CAL_MAX_SQUARES] = {0}, damping = 1e-2;
    g_autofree double *residual = g_new(double, n), *tried = g_new(double, n);
    g_autofree double *jacobian = g_new(double, n *(size_t)MAX(problem->count, 1));
    g_autofree Normal *normal = g_new(Normal, 1);
    bool moved = true, settled = problem->count == 0;
    memcpy(logs, problem->start, sizeof logs);
    problem->residuals(problem->context, logs, residual);
    double best = loss(problem, residual, logs);
    for (int round = 0; round < problem->iterations && damping < GREATEST_DAMPING && !settled; round++) {
        if (moved) {
            cal_squares_jacobian(problem, logs, residual, jacobian);
            normal_equations(problem, logs, residual, jacobian, normal);
        }
        propose(problem, normal, logs, damping, trial);
        problem->residuals(problem->context, trial, tried);
        const double now = loss(problem, tried, trial);
        moved = now < best;
        if (moved) {
            settled = best - now < problem->settled_frac * best;
            best = now;
            memcpy(logs, trial, sizeof logs);
            memcpy(residual, tried, n * sizeof *residual);
            damping = MAX(damping / 5, 1e-9);
        } else {
            damping *= 4;
            settled = problem->settled_frac > 0 && damping > 100;
        }
    }
    memcpy(ret_logs, logs, sizeof *logs * (size_t)problem->count);
    return best;
}
