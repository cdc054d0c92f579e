/* calibrate/fit/fit_kernels.h - one accelerator's blocks from measured rows. */
#ifndef ORR_CALIBRATE_FIT_KERNELS_H
#define ORR_CALIBRATE_FIT_KERNELS_H

#include "calibrate/fit/profile.h"

/* Rows of one accelerator that a fit uses. Best-of-many searches over shapes are left out: they name the
 * luckiest shape, which no model of the typical one should chase. */
bool cal_row_fitted(const CalRow *row);

/* Where a best-of-many search is all there is: the dtype's peak_frac is turned until the model meets it, and the
 * other dtypes' in proportion. */
void cal_fit_best_of_many(CalProfile *profile, const CalRow *row);

/* Fits the blocks that `rows` (CalRow*, of this accelerator) speak of. Blocks start from `donor`'s, carried
 * over (derive.h), or from the field tables' defaults; what no row moves stays there. */
void cal_fit_profile(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor);

/* Predicted / measured - 1. */
double cal_row_error(CalProfile *profile, const CalRow *row);

/* Median and 90th percentile of the absolute errors, and the mean of the signed ones; `errors` then
 * holds absolute ones, rising. */
void cal_error_summary(double *errors, int count, double *ret_median, double *ret_p90, double *ret_bias);

#endif
