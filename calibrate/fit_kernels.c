/* calibrate/fit_kernels.c - one accelerator's blocks from measured rows.
 *
 * Loss: over groups of rows (source, block, pass), the mean of a robust function of the logarithmic error,
 * weighted by the root of the group's size, so that a source with few rows is heard and one with many leads.
 */
#include "calibrate/fit_kernels.h"

#include <math.h>
#include <string.h>

#include "calibrate/derive.h"
#include "calibrate/minimize.h"

#define ROBUST_FRAC   0.05 /* errors beyond this count linearly */
#define PRIOR         1e-3
#define DERIVED_PRIOR 4e-3 /* a start carried over from a sibling says more than a default */
#define ROUNDS        6

bool cal_row_fitted(const CalRow *row)
{
    return strstr(row->source, "MAMF") == NULL;
}

double cal_row_error(CalProfile *profile, const CalRow *row)
{
    if (row->kind == CAL_STREAM)
        return 1073741824.0 / row->bytes_per_s > 0
                   ? cal_predict_s(profile, row) * row->bytes_per_s / 1073741824.0 - 1
                   : 0;
    return cal_predict_s(profile, row) / row->measured_s - 1;
}

static int by_size(const void *a, const void *b)
{
    double x = fabs(*(const double *)a), y = fabs(*(const double *)b);
    return x < y ? -1 : x > y;
}

static double quantile(const double *sorted, int count, double q)
{
    double position = q * (count - 1);
    int below = (int)floor(position);
    int above = MIN(below + 1, count - 1);
    return fabs(sorted[below]) + (position - below) * (fabs(sorted[above]) - fabs(sorted[below]));
}

void cal_error_summary(double *errors, int count, double *ret_median, double *ret_p90, double *ret_bias)
{
    g_assert(count > 0);
    qsort(errors, (size_t)count, sizeof *errors, by_size);
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += errors[i];
    *ret_median = quantile(errors, count, 0.5);
    *ret_p90 = quantile(errors, count, 0.9);
    *ret_bias = sum / count;
}

/* --- a fit --- */

typedef struct Fit {
    CalProfile *profile;
    GPtrArray *rows; /* CalRow* */
    GArray *weights; /* double */
    CalNumber numbers[CAL_MAX_NUMBERS];
    int count;
} Fit;

static double loss(void *context)
{
    const Fit *fit = context;
    double sum = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalRow *row = g_ptr_array_index(fit->rows, i);
        double error = log(cal_predict_s(fit->profile, row) / row->measured_s) / ROBUST_FRAC;
        sum += g_array_index(fit->weights, double, i) * ROBUST_FRAC * (sqrt(1 + error * error) - 1);
    }
    return sum;
}

static void number(Fit *fit, double *value, double min, double max)
{
    g_assert(fit->count<CAL_MAX_NUMBERS && * value> 0);
    fit->numbers[fit->count++] = (CalNumber){.value = value, .min = min, .max = max};
}

static bool same_group(const CalRow *a, const CalRow *b)
{
    return cal_row_block(a) == cal_row_block(b) && strcmp(a->source, b->source) == 0 &&
           (a->kind != CAL_ATTENTION ||
            (a->attention.backward == b->attention.backward &&
             (a->attention.dtype == SPEC_FP8) == (b->attention.dtype == SPEC_FP8))) &&
           (a->kind != CAL_GEMM || (a->gemm.groups > 1) == (b->gemm.groups > 1));
}

static void weigh(Fit *fit)
{
    double sum = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        int peers = 0;
        for (guint j = 0; j < fit->rows->len; j++)
            peers += same_group(g_ptr_array_index(fit->rows, i), g_ptr_array_index(fit->rows, j));
        double weight = 1 / sqrt(peers);
        sum += weight;
        g_array_append_val(fit->weights, weight);
    }
    for (guint i = 0; i < fit->weights->len; i++)
        g_array_index(fit->weights, double, i) /= sum;
}

static Fit *fit_new(CalProfile *profile, const GPtrArray *rows, CalKind kind, int block)
{
    Fit *fit = g_new0(Fit, 1);
    fit->profile = profile;
    fit->rows = g_ptr_array_new();
    fit->weights = g_array_new(FALSE, FALSE, sizeof(double));
    for (guint i = 0; i < rows->len; i++) {
        CalRow *row = g_ptr_array_index(rows, i);
        if (row->kind == kind && (block == CAL_ANY_BLOCK || cal_row_block(row) == block))
            g_ptr_array_add(fit->rows, row);
    }
    weigh(fit);
    return fit;
}

static void fit_free(Fit *fit)
{
    g_ptr_array_unref(fit->rows);
    g_array_unref(fit->weights);
    g_free(fit);
}

typedef bool (*RowTest)(const CalRow *row);

static int rows_with(const Fit *fit, int block, RowTest test)
{
    int count = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalRow *row = g_ptr_array_index(fit->rows, i);
        count += (block == CAL_ANY_BLOCK || cal_row_block(row) == block) && (test == NULL || test(row));
    }
    return count;
}

/* --- GEMM --- */

static bool is_input(const CalRow *row)
{
    return row->gemm.layout == COST_LAYOUT_BACKWARD_INPUT;
}
static bool is_weight(const CalRow *row)
{
    return row->gemm.layout == COST_LAYOUT_BACKWARD_WEIGHT;
}
static bool is_grouped(const CalRow *row)
{
    return row->gemm.groups > 1;
}
static bool is_serving(const CalRow *row)
{
    return g_str_has_prefix(row->source, "aic");
}
static bool is_training(const CalRow *row)
{
    return strcmp(row->source, "simumax") == 0;
}
/* Serving engines quantise the activations in the timed region. Source: [AiConfigurator] */
static bool is_quantised(const CalRow *row)
{
    return is_serving(row) && (row->gemm.dtype == SPEC_FP8 || row->gemm.dtype == SPEC_FP4);
}

static void free_gemm_block(Fit *fit, SpecDtype dtype)
{
    SpecGemmModel *gemm = &fit->profile->accelerator.model.gemm[dtype];
    bool ampere_or_older = fit->profile->accelerator.generation <= SPEC_GENERATION_AMPERE;
    /* Data sheets from Hopper on state the peak below the highest clock. Source: [MlEngineering] */
    number(fit, &gemm->peak_frac, 0.2, ampere_or_older ? 1.0 : 1.08);
    number(fit, &gemm->tile_half, 1, 200);
    number(fit, &gemm->power_frac, 0.3, 5);
    number(fit, &gemm->throttle_s, 1e-6, 1);
    if (rows_with(fit, (int)dtype, is_input) > 0)
        number(fit, &gemm->backward_input_frac, 0.5, 1.2);
    if (rows_with(fit, (int)dtype, is_weight) > 0)
        number(fit, &gemm->backward_weight_frac, 0.5, 1.2);
    if (rows_with(fit, (int)dtype, is_grouped) > 0)
        number(fit, &gemm->grouped_frac, 0.3, 1.2);
    if (rows_with(fit, (int)dtype, is_quantised) > 0) {
        CalCondition *pass = cal_condition_get(fit->profile, "aic-gemm", CAL_GEMM, (int)dtype);
        pass->pass_s = 2e-6;
        pass->pass_memory_frac = 0.5;
        number(fit, &pass->pass_s, 1e-7, 1e-4);
        number(fit, &pass->pass_memory_frac, 0.05, 4);
    }
    /* Long loops of training shapes draw more than a server's short bursts: both states from their rows. */
    if (rows_with(fit, (int)dtype, is_serving) > 0 && rows_with(fit, (int)dtype, is_training) > 0) {
        CalCondition *burst = cal_condition_get(fit->profile, "aic-gemm", CAL_GEMM, (int)dtype);
        burst->power_scale = 0.5;
        burst->throttle_scale = 10;
        gemm->power_frac /= burst->power_scale;
        gemm->throttle_s /= burst->throttle_scale;
        number(fit, &burst->power_scale, 0.2, 1);
        number(fit, &burst->throttle_scale, 0.5, 200);
    }
}

static void fit_gemms(CalProfile *profile, const GPtrArray *rows, double prior)
{
    Fit *fit = fit_new(profile, rows, CAL_GEMM, CAL_ANY_BLOCK);
    SpecKernelModel *model = &profile->accelerator.model;
    SpecGemmShared *shared = &model->gemm_shared;
    if (fit->rows->len > 0) {
        number(fit, &shared->memory_frac, 0.4, 1);
        number(fit, &shared->tile_s, 1e-8, 1e-5);
        number(fit, &shared->epilogue_s, 1e-8, 1e-5);
        number(fit, &shared->wave_quantum, 0.01, 1);
        number(fit, &shared->split_s, 1e-7, 1e-4);
        number(fit, &shared->split_speedup, 0.3, 20);
        number(fit, &shared->latency_s, 1e-7, 1e-4);
        for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
            if (rows_with(fit, dtype, NULL) > 0)
                free_gemm_block(fit, (SpecDtype)dtype);
        cal_minimize(fit->numbers, fit->count, loss, fit, prior, ROUNDS);
    }
    fit_free(fit);
}

/* --- attention --- */

static bool is_forward(const CalRow *row)
{
    return !row->attention.backward;
}
static bool is_backward(const CalRow *row)
{
    return row->attention.backward;
}
static bool is_wide(const CalRow *row)
{
    return !row->attention.backward && row->attention.qk_head_dim + row->attention.v_head_dim > 256;
}
static bool is_wide_backward(const CalRow *row)
{
    return row->attention.backward && row->attention.qk_head_dim + row->attention.v_head_dim > 256;
}
static bool is_fp8(const CalRow *row)
{
    return row->attention.dtype == SPEC_FP8;
}

static void free_attention(Fit *fit, SpecAttentionModel *attention, int kernel)
{
    if (rows_with(fit, kernel, is_forward) > 0) {
        number(fit, &attention->peak_frac, 0.05, 1);
        number(fit, &attention->half_dim, 1, 300);
        number(fit, &attention->tile_s, 1e-8, 2e-5);
        number(fit, &attention->wave_quantum, 0.01, 1);
        number(fit, &attention->latency_s, 1e-7, 1e-4);
        number(fit, &attention->power_frac, 0.2, 10);
    }
    if (rows_with(fit, kernel, is_backward) > 0) {
        number(fit, &attention->backward_peak_frac, 0.05, 1);
        number(fit, &attention->backward_half_dim, 1, 300);
        number(fit, &attention->backward_tile_s, 1e-8, 2e-5);
        number(fit, &attention->backward_latency_s, 1e-7, 1e-4);
    }
    if (rows_with(fit, kernel, is_wide) > 0)
        number(fit, &attention->wide_frac, 0.3, 1.3);
    if (rows_with(fit, kernel, is_wide_backward) > 0)
        number(fit, &attention->backward_wide_frac, 0.3, 1.3);
    if (rows_with(fit, kernel, is_fp8) > 0)
        number(fit, &attention->fp8_frac, 0.2, 1.2);
}

static void fit_attention(CalProfile *profile, const GPtrArray *rows, SpecAttention kernel, double prior)
{
    Fit *fit = fit_new(profile, rows, CAL_ATTENTION, (int)kernel);
    SpecAttentionModel *attention = &profile->accelerator.model.attention[kernel];
    if (fit->rows->len > 0) {
        if (attention->peak_frac <= 0)
            *attention = spec_attention_model_default;
        free_attention(fit, attention, (int)kernel);
        /* Appending to the key-value cache is timed with it. Source: [AiConfigurator] */
        if (rows_with(fit, (int)kernel, is_serving) > 0) {
            CalCondition *pass = cal_condition_get(profile, "aic-attn", CAL_ATTENTION, (int)kernel);
            pass->pass_s = 2e-6;
            pass->pass_memory_frac = 0.8;
            number(fit, &pass->pass_s, 1e-7, 1e-4);
            number(fit, &pass->pass_memory_frac, 0.05, 4);
        }
        /* Timed through the framework: starting the kernels counts. Source: [SimuMax] */
        if (rows_with(fit, (int)kernel, is_training) > 0) {
            CalCondition *pass = cal_condition_get(profile, "simumax", CAL_ATTENTION, (int)kernel);
            pass->pass_s = 1e-5;
            number(fit, &pass->pass_s, 1e-7, 2e-4);
        }
        cal_minimize(fit->numbers, fit->count, loss, fit, prior, ROUNDS);
    }
    fit_free(fit);
}

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

void cal_fit_profile(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor)
{
    SpecKernelModel *model = &profile->accelerator.model;
    const double prior = donor != NULL ? DERIVED_PRIOR : PRIOR;
    profile->condition_count = 0;
    cal_derive_start(profile, donor);
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = g_ptr_array_index(rows, i);
        SpecGemmModel *gemm = &model->gemm[row->kind == CAL_GEMM ? cal_row_block(row) : 0];
        if (row->kind == CAL_GEMM && gemm->peak_frac <= 0)
            *gemm = spec_gemm_model_default;
    }
    fit_gemms(profile, rows, prior);
    fit_streams(profile, rows);
    for (int kernel = 0; kernel < SPEC_ATTENTION_COUNT; kernel++)
        fit_attention(profile, rows, (SpecAttention)kernel, prior);
    note_all_errors(profile, rows);
    profile->fitted = true;
}
