/* calibrate/fit/fit_kernels.c - one accelerator's blocks from measured rows, and how far off they stay. */
#include "calibrate/fit/fit_kernels.h"

#include <math.h>
#include <string.h>

#include "base/stats.h"
#include "calibrate/fit/derive.h"
#include "calibrate/fit/fit_internal.h"

#define PRIOR         1e-3
#define DERIVED_PRIOR 4e-3 /* a start carried over from a sibling says more than a default */

void cal_error_summary(double *errors, int count, double *ret_median, double *ret_p90, double *ret_bias)
{
    g_assert(count > 0);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += errors[i];
    *ret_bias = sum / count;
    for (int i = 0; i < count; i++)
        errors[i] = fabs(errors[i]);
    orr_stats_sort(errors, (size_t)count);
    *ret_median = orr_stats_quantile(errors, (size_t)count, 0.5);
    *ret_p90 = orr_stats_quantile(errors, (size_t)count, 0.9);
}

/* --- a fit --- */

/* --- memory-bound kernels --- */

/* Streams: the mean rate. Norms, softmax and optimizers keep their ratio to it. */
static void fit_streams(CalProfile *profile, const GPtrArray *rows)
{
    SpecMemoryBoundModel *model = &profile->accelerator.model.memory_bound;
    if (model->elementwise_frac <= 0)
        *model = spec_memory_bound_model_default;
    double sum = 0;
    int count = 0;
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = g_ptr_array_index(rows, i);
        if (row->kind != CAL_STREAM)
            continue;
        sum += row->bytes_per_s;
        count++;
    }
    if (count == 0)
        return;
    double ratio = sum / count / profile->accelerator.memory_bytes_per_s / model->elementwise_frac;
    model->elementwise_frac *= ratio;
    model->norm_frac *= ratio;
    model->softmax_frac *= ratio;
    model->optimizer_frac *= ratio;
}

/* --- errors --- */

static void note_errors(CalProfile *profile, const GPtrArray *rows, CalKind kind, int block, double *ret_rows,
                        double *ret_median, double *ret_p90)
{
    g_autoptr(GArray) all = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GHashTable) sources = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = g_ptr_array_index(rows, i);
        if (row->kind != kind || cal_row_block(row) != block)
            continue;
        double error = cal_row_error(profile, row);
        g_array_append_val(all, error);
        if (!g_hash_table_add(sources, (gpointer)row->source))
            continue;
        g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
        for (guint j = i; j < rows->len; j++) {
            const CalRow *other = g_ptr_array_index(rows, j);
            if (other->kind != kind || cal_row_block(other) != block ||
                strcmp(other->source, row->source) != 0)
                continue;
            double other_error = cal_row_error(profile, other);
            g_array_append_val(errors, other_error);
        }
        CalCondition *condition = cal_condition_get(profile, row->source, kind, block);
        condition->rows = (int)errors->len;
        cal_error_summary((double *)(void *)errors->data, condition->rows, &condition->median_frac,
                          &condition->p90_frac, &condition->bias_frac);
    }
    double bias;
    *ret_rows = all->len;
    if (all->len > 0)
        cal_error_summary((double *)(void *)all->data, (int)all->len, ret_median, ret_p90, &bias);
}

static void note_all_errors(CalProfile *profile, const GPtrArray *rows)
{
    SpecKernelModel *model = &profile->accelerator.model;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        note_errors(profile, rows, CAL_GEMM, i, &model->gemm[i].fit_rows, &model->gemm[i].fit_median_frac,
                    &model->gemm[i].fit_p90_frac);
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++)
        note_errors(profile, rows, CAL_ATTENTION, i, &model->attention[i].fit_rows,
                    &model->attention[i].fit_median_frac, &model->attention[i].fit_p90_frac);
    note_errors(profile, rows, CAL_STREAM, CAL_ANY_BLOCK, &model->memory_bound.fit_rows,
                &model->memory_bound.fit_median_frac, &model->memory_bound.fit_p90_frac);
}

void cal_fit_best_of_many(CalProfile *profile, const CalRow *row)
{
    SpecGemmModel *gemms = profile->accelerator.model.gemm;
    SpecGemmModel *gemm = &gemms[cal_row_block(row)];
    if (row->kind != CAL_GEMM || gemm->peak_frac <= 0 || gemm->fit_rows > 0)
        return;
    const double before = gemm->peak_frac;
    for (int i = 0; i < 20; i++)
        gemm->peak_frac = CLAMP(gemm->peak_frac * cal_predict_s(profile, row) / row->measured_s, 0.1, 1.08);
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        if (&gemms[i] != gemm && gemms[i].fit_rows <= 0)
            gemms[i].peak_frac *= gemm->peak_frac / before;
}

void cal_fit_profile(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor)
{
    const double prior = donor != NULL ? DERIVED_PRIOR : PRIOR;
    profile->condition_count = 0;
    cal_derive_start(profile, donor);
    cal_fit_gemms(profile, rows, donor, prior);
    fit_streams(profile, rows);
    for (int kernel = 0; kernel < SPEC_ATTENTION_COUNT; kernel++)
        cal_fit_attention(profile, rows, (SpecAttention)kernel, donor, prior);
    note_all_errors(profile, rows);
    profile->fitted = true;
}
