/* calibrate/fit/residual.h - one measured row beside its prediction: what fits hand out for a picture. */
#ifndef ORR_CALIBRATE_RESIDUAL_H
#define ORR_CALIBRATE_RESIDUAL_H

#include <glib.h>

typedef struct CalResidual {
    char group[64]; /* "gemm bf16", "all_reduce", "memory bound" */
    char what[128]; /* sizes, for people */
    double measured_s, predicted_s;
} CalResidual;

typedef struct CalErrors {
    double mean_frac, median_frac, p90_frac; /* of |predicted / measured - 1| */
    double bias_frac;                        /* mean of predicted / measured - 1 */
} CalErrors;

/* Appends to an array of CalResidual; NULL: nobody asked. */
static inline void cal_residual_add(GArray *residuals, const char *group, const char *what, double measured_s,
                                    double predicted_s)
{
    CalResidual residual = {.measured_s = measured_s, .predicted_s = predicted_s};
    if (residuals == NULL)
        return;
    g_strlcpy(residual.group, group, sizeof residual.group);
    g_strlcpy(residual.what, what, sizeof residual.what);
    g_array_append_val(residuals, residual);
}

#endif
