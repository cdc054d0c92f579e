/* calibrate/fit/fit_internal.h - what the fits of GEMM and attention share. Not for other rooms. */
#ifndef ORR_CALIBRATE_FIT_INTERNAL_H
#define ORR_CALIBRATE_FIT_INTERNAL_H

#include "calibrate/fit/fit_kernels.h"
#include "calibrate/fit/minimize.h"

/* Rows of one kind, their weights, and the numbers that may move. */
typedef struct CalFit {
    CalProfile *profile;
    GPtrArray *rows; /* CalRow* */
    GArray *weights; /* double */
    CalNumber numbers[CAL_MAX_NUMBERS];
    int count;
    double prior;
} CalFit;

typedef bool (*CalRowTest)(const CalRow *row);

/* Rows of `kind` for which `test` (NULL: all) holds. */
CalFit *cal_fit_new(CalProfile *profile, const GPtrArray *rows, CalKind kind, CalRowTest test, double prior);
void cal_fit_free(CalFit *fit);
void cal_fit_number(CalFit *fit, double *value, double min, double max);
int cal_fit_rows_with(const CalFit *fit, int block, CalRowTest test);
double cal_fit_loss(void *fit);
/* A number of which the rows leave more than this standard deviation is not told by them. */
#define CAL_TOLD_FRAC 0.15
/* Names into fit->profile->untold what the rows do not tell. */
void cal_fit_untold(CalFit *fit);

/* Moves the numbers to the least loss and forgets them; returns it. */
double cal_fit_solve(CalFit *fit);

/* What is known of the sources: see profile.h. */
bool cal_row_is_serving(const CalRow *row);  /* a serving engine's benchmark */
bool cal_row_is_training(const CalRow *row); /* training shapes and layouts, long loops */

/* `donor` may be NULL: lends what its rows say of the same source. */
void cal_fit_gemms(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor, double prior);
void cal_fit_attention(CalProfile *profile, const GPtrArray *rows, SpecAttention kernel,
                       const CalProfile *donor, double prior);

#endif
