/* calibrate/fit/fit_rows.c - rows of one kind, their weights, and the numbers that move until they agree.
 *
 * Loss: over groups of rows (source, block, pass), the mean of a robust function of the logarithmic error,
 * weighted so that a source with few rows is heard and one with many leads.
 */
#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_internal.h"

#define ROBUST_FRAC   0.05 /* errors beyond this count linearly */
#define ROUNDS        6
#define PEER_DISCOUNT 0.65 /* 1: every group alike; 0: every row alike */

bool cal_row_fitted(const CalRow *row)
{
    return strstr(row->source, "MAMF") == NULL;
}

double cal_row_error(CalProfile *profile, const CalRow *row)
{
    return cal_predict_s(profile, row) / row->measured_s - 1;
}

double cal_fit_loss(void *context)
{
    const CalFit *fit = context;
    double sum = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalRow *row = g_ptr_array_index(fit->rows, i);
        double error = log(cal_predict_s(fit->profile, row) / row->measured_s) / ROBUST_FRAC;
        sum += g_array_index(fit->weights, double, i) * ROBUST_FRAC * (sqrt(1 + error * error) - 1);
    }
    return sum;
}

void cal_fit_number(CalFit *fit, double *value, double min, double max)
{
    g_assert(fit->count < CAL_MAX_NUMBERS);
    g_assert(*value > 0);
    fit->numbers[fit->count++] = (CalNumber){.value = value, .min = min, .max = max};
}

double cal_fit_solve(CalFit *fit)
{
    double least = cal_minimize(fit->numbers, fit->count, cal_fit_loss, fit, fit->prior, ROUNDS);
    cal_fit_untold(fit);
    fit->count = 0;
    return least;
}

static bool same_group(const CalRow *a, const CalRow *b)
{
    if (cal_row_block(a) != cal_row_block(b) || strcmp(a->source, b->source) != 0)
        return false;
    if (a->kind == CAL_GEMM)
        return a->gemm.grouped == b->gemm.grouped;
    return a->attention.backward == b->attention.backward &&
           (a->attention.dtype == SPEC_FP8) == (b->attention.dtype == SPEC_FP8);
}

static void weigh(CalFit *fit)
{
    double sum = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        int peers = 0;
        for (guint j = 0; j < fit->rows->len; j++)
            peers += same_group(g_ptr_array_index(fit->rows, i), g_ptr_array_index(fit->rows, j));
        double weight = pow(peers, -PEER_DISCOUNT);
        sum += weight;
        g_array_append_val(fit->weights, weight);
    }
    for (guint i = 0; i < fit->weights->len; i++)
        g_array_index(fit->weights, double, i) /= sum;
}

CalFit *cal_fit_new(CalProfile *profile, const GPtrArray *rows, CalKind kind, CalRowTest test, double prior)
{
    CalFit *fit = g_new0(CalFit, 1);
    fit->profile = profile;
    fit->prior = prior;
    fit->rows = g_ptr_array_new();
    fit->weights = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < rows->len; i++) {
        CalRow *row = g_ptr_array_index(rows, i);
        if (row->kind == kind && (test == NULL || test(row)))
            g_ptr_array_add(fit->rows, row);
    }
    weigh(fit);
    return fit;
}

void cal_fit_free(CalFit *fit)
{
    g_ptr_array_unref(fit->rows);
    g_array_unref(fit->weights);
    g_free(fit);
}

int cal_fit_rows_with(const CalFit *fit, int block, CalRowTest test)
{
    int count = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalRow *row = g_ptr_array_index(fit->rows, i);
        count += (block == CAL_ANY_BLOCK || cal_row_block(row) == block) && (test == NULL || test(row));
    }
    return count;
}

bool cal_row_is_serving(const CalRow *row)
{
    return g_str_has_prefix(row->source, "aic");
}

bool cal_row_is_training(const CalRow *row)
{
    return strcmp(row->source, "simumax") == 0;
}
