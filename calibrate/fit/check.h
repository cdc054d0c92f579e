/* calibrate/fit/check.h - the error of the presets' kernel models on a table of measurements. No CUDA here. */
#ifndef ORR_CALIBRATE_CHECK_H
#define ORR_CALIBRATE_CHECK_H

#include "calibrate/fit/table.h"

typedef struct CalCheckGroup {
    char accelerator[SPEC_NAME_SIZE];
    char source[SPEC_NAME_SIZE];
    const char *kind;  /* "gemm", "attention", "memory_bound" */
    const char *block; /* "bf16", "flash3", "rms_norm", "" */
    int rows;
    double median_frac, p90_frac; /* of |predicted / measured - 1| */
    double bias_frac;             /* mean of predicted / measured - 1 */
    /* The same rows, each interpolated between its measured neighbours (neighbours.h): what no model of a few parameters
     * is asked to beat. 0 where there is nothing to interpolate between. */
    double near_median_frac, near_p90_frac;
} CalCheckGroup;

/* One group for each accelerator, source and block, in the order of the table. Rows are predicted as their
 * source measures (calibrate/fit/profile.h); a source that the presets do not know is predicted bare.
 * `accelerator` NULL: every accelerator of the table that has a preset; those without are named in `log`. */
bool cal_check_table(const char *path, const char *accelerator, GArray **ret_groups, GString *log,
                     GError **error);

/* Appends the same for the rows of "memory_bound_measurements" of an open table, a group for each accelerator, source and
 * kernel, and where these are several one of all rows of the accelerator. */
void cal_check_moves(const OrrJson *root, const char *accelerator, GArray *groups);

/* One row of a table beside the model's prediction. */
typedef struct CalCheckRow {
    char accelerator[SPEC_NAME_SIZE], source[SPEC_NAME_SIZE];
    const char *kind, *block; /* as in CalCheckGroup */
    char sizes[160];          /* "m=4096 n=4096 k=4096 ..." */
    double measured_s, error_frac;
} CalCheckRow;

/* Appends a CalCheckRow for each product and attention, for looking into a fit. */
bool cal_check_rows(const char *path, const char *accelerator, GArray *rows, GString *log, GError **error);
/* The same for memory-bound kernels. */
void cal_check_move_rows(const OrrJson *root, const char *accelerator, GArray *rows);

#endif
