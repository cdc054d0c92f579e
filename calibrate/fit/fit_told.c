/* calibrate/fit/fit_told.c - which of a fit's numbers its rows tell, and which stayed near their start for want of rows.
 *
 * Around the answer the logarithms of the predictions are taken for linear in the logarithms of the numbers:
 *   r = J x,  cov(x) = s^2 (J'J)^-1    s = scatter of the residuals (1.48 median |r|, 1 % at least)
 * A number whose standard deviation exceeds CAL_TOLD_FRAC trades with others or is felt by no row. The pull to the start is
 * left out: it makes a number sure of nothing. What is ignored: bounds, and curvature further away.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stats.h"
#include "calibrate/fit/fit_internal.h"
#include "spec/fields.h"

#define STEP        0.02 /* of the logarithm, for the derivatives */
#define LEAST_NOISE 0.01
#define RIDGE       1e-9 /* a number that no row feels has a deviation without end */

static const char *key_at(const SpecTable *table, const void *block, size_t size, const double *value)
{
    const ptrdiff_t offset = (const char *)value - (const char *)block;
    for (int i = 0; table != NULL && offset >= 0 && (size_t)offset < size && i < table->count; i++)
        if (table->fields[i].type == SPEC_TYPE_DOUBLE && (ptrdiff_t)table->fields[i].offset == offset)
            return table->fields[i].key;
    return NULL;
}

static const SpecTable *table_of(const SpecTable *table, const char *key)
{
    for (int i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].key, key) == 0)
            return table->fields[i].table;
    return NULL; /* a type that no block is kept for */
}

/* "gemm.bf16.tile_half" of a number of the accelerator's model; "" for what belongs to a source of rows. */
static void name_of(const CalProfile *profile, const double *value, char *ret_name, size_t size)
{
    const SpecKernelModel *model = &profile->accelerator.model;
    const SpecTable *gemms = table_of(&spec_table_kernel_model, "gemm"),
                    *attentions = table_of(&spec_table_kernel_model, "attention");
    const char *key =
        key_at(table_of(gemms, "shared"), &model->gemm_shared, sizeof model->gemm_shared, value);
    ret_name[0] = '\0';
    if (key != NULL)
        g_snprintf(ret_name, size, "gemm.shared.%s", key);
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++) {
        const char *word = spec_word(&spec_words_dtype, i);
        if ((key = key_at(table_of(gemms, word), &model->gemm[i], sizeof model->gemm[i], value)) != NULL)
            g_snprintf(ret_name, size, "gemm.%s.%s", word, key);
    }
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        const char *word = spec_word(&spec_words_attention, i);
        if ((key = key_at(table_of(attentions, word), &model->attention[i], sizeof model->attention[i],
                          value)) != NULL)
            g_snprintf(ret_name, size, "attention.%s.%s", word, key);
    }
}

static double residual(const CalFit *fit, guint i)
{
    const CalRow *row = g_ptr_array_index(fit->rows, i);
    return log(cal_predict_s(fit->profile, row) / row->measured_s);
}

static double scatter(const CalFit *fit)
{
    g_autofree double *errors = g_new(double, fit->rows->len);
    for (guint i = 0; i < fit->rows->len; i++)
        errors[i] = fabs(residual(fit, i));
    orr_stats_sort(errors, fit->rows->len);
    return fmax(LEAST_NOISE, 1.48 * errors[fit->rows->len / 2]);
}

/* J'J, of central differences. */
static void normal_matrix(CalFit *fit, double *ret_matrix)
{
    const guint rows = fit->rows->len;
    const int n = fit->count;
    g_autofree double *jacobian = g_new(double, (gsize)n *rows);
    for (int j = 0; j < n; j++) {
        double *value = fit->numbers[j].value, at = *value;
        *value = at * exp(STEP);
        for (guint i = 0; i < rows; i++)
            jacobian[(gsize)j * rows + i] = residual(fit, i);
        *value = at * exp(-STEP);
        for (guint i = 0; i < rows; i++)
            jacobian[(gsize)j * rows + i] = (jacobian[(gsize)j * rows + i] - residual(fit, i)) / (2 * STEP);
        *value = at;
    }
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++) {
            double sum = j == k ? RIDGE : 0;
            for (guint i = 0; i < rows; i++)
                sum += jacobian[(gsize)j * rows + i] * jacobian[(gsize)k * rows + i];
            ret_matrix[j * n + k] = sum;
        }
}

/* In place, by Gauss and Jordan; the matrix is symmetric and positive. */
static void invert(double *a, int n)
{
    for (int p = 0; p < n; p++) {
        const double pivot = fmax(a[p * n + p], 1e-300);
        a[p * n + p] = 1;
        for (int k = 0; k < n; k++)
            a[p * n + k] /= pivot;
        for (int i = 0; i < n; i++) {
            const double factor = a[i * n + p];
            if (i == p)
                continue;
            a[i * n + p] = 0;
            for (int k = 0; k < n; k++)
                a[i * n + k] -= factor * a[p * n + k];
        }
    }
}

void cal_fit_untold(CalFit *fit)
{
    const int n = fit->count;
    GString *out = fit->profile->untold;
    if (out == NULL || n == 0 || fit->rows->len == 0)
        return;
    g_autofree double *matrix = g_new(double, (gsize)(n * n));
    const double noise = scatter(fit);
    normal_matrix(fit, matrix);
    invert(matrix, n);
    for (int j = 0; j < n; j++) {
        char name[96];
        const double deviation = noise * sqrt(fmax(0, matrix[j * n + j]));
        name_of(fit->profile, fit->numbers[j].value, name, sizeof name);
        if (name[0] == '\0' || deviation <= CAL_TOLD_FRAC)
            continue;
        if (deviation < 1)
            g_string_append_printf(out, "%s%s (+- %.0f %%)", out->len > 0 ? ", " : "", name, 100 * deviation);
        else
            g_string_append_printf(out, "%s%s", out->len > 0 ? ", " : "", name);
    }
}
