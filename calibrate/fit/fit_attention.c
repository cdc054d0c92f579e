/* calibrate/fit/fit_attention.c - the numbers of one attention kernel's model that an accelerator's rows move. */
#include <string.h>

#include "calibrate/fit/fit_internal.h"

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

static bool is_block_scaled(const CalRow *row)
{
    return row->attention.block_scaled;
}

static bool is_fp8(const CalRow *row)
{
    return row->attention.dtype == SPEC_FP8 && !row->attention.backward;
}

static bool is_fp8_backward(const CalRow *row)
{
    return row->attention.dtype == SPEC_FP8 && row->attention.backward;
}

static bool is_narrow_fp8_backward(const CalRow *row)
{
    return is_fp8_backward(row) && row->attention.qk_head_dim + row->attention.v_head_dim < 256;
}

/* The library's own benchmark: the kernel itself, where serving engines' are its kin. */
static bool is_own(const CalRow *row)
{
    return strcmp(row->source, "cudnn-frontend") == 0;
}

/* Each way its own: the backward casts scores and their gradients between its products, the forward scores alone. */
static void free_fp8(CalFit *fit, SpecAttentionModel *attention, int kernel)
{
    if (cal_fit_rows_with(fit, kernel, is_fp8) > 0)
        cal_fit_number(fit, &attention->fp8_frac, 0.2, 1.2);
    if (cal_fit_rows_with(fit, kernel, is_fp8_backward) == 0)
        return;
    if (attention->backward_fp8_frac <= 0)
        attention->backward_fp8_frac = attention->fp8_frac;
    cal_fit_number(fit, &attention->backward_fp8_frac, 0.1, 1.2);
    const int narrow = cal_fit_rows_with(fit, kernel, is_narrow_fp8_backward);
    if (narrow == 0 || narrow == cal_fit_rows_with(fit, kernel, is_fp8_backward)) /* heads of one size */
        return;
    if (attention->backward_fp8_half_dim <= 0)
        attention->backward_fp8_half_dim = attention->backward_half_dim;
    cal_fit_number(fit, &attention->backward_fp8_half_dim, 1, 1000);
}

static void free_kernel(CalFit *fit, SpecAttentionModel *attention, int kernel)
{
    if (cal_fit_rows_with(fit, kernel, is_forward) > 0) {
        cal_fit_number(fit, &attention->peak_frac, 0.05, 1);
        cal_fit_number(fit, &attention->half_dim, 1, 300);
        cal_fit_number(fit, &attention->tile_s, 1e-8, 2e-5);
        cal_fit_number(fit, &attention->wave_quantum, 0.01, 1);
        cal_fit_number(fit, &attention->latency_s, 1e-7, 1e-4);
        cal_fit_number(fit, &attention->power_frac, 0.2, 10);
    }
    if (cal_fit_rows_with(fit, kernel, is_backward) > 0) {
        cal_fit_number(fit, &attention->backward_peak_frac, 0.05, 1);
        cal_fit_number(fit, &attention->backward_half_dim, 1, 300);
        cal_fit_number(fit, &attention->backward_tile_s, 1e-8, 2e-5);
        cal_fit_number(fit, &attention->backward_latency_s, 1e-7, 1e-4);
    }
    if (cal_fit_rows_with(fit, kernel, is_wide) > 0)
        cal_fit_number(fit, &attention->wide_frac, 0.3, 1.3);
    if (cal_fit_rows_with(fit, kernel, is_wide_backward) > 0)
        cal_fit_number(fit, &attention->backward_wide_frac, 0.3, 1.3);
    free_fp8(fit, attention, kernel);
    if (cal_fit_rows_with(fit, kernel, is_block_scaled) > 0) {
        cal_fit_number(fit, &attention->mxfp8_frac, 0.3, 1.2);
        cal_fit_number(fit, &attention->backward_mxfp8_frac, 0.3, 1.2);
    }
}

static void free_conditions(CalFit *fit, int kernel, const CalProfile *donor)
{
    const bool serving = cal_fit_rows_with(fit, kernel, cal_row_is_serving) > 0;
    const bool training = cal_fit_rows_with(fit, kernel, cal_row_is_training) > 0;
    const bool own = cal_fit_rows_with(fit, kernel, is_own) > 0;
    if (serving) { /* appending to the key-value cache is timed with it. Source: [aiconfigurator] */
        CalCondition *pass = cal_condition_get(fit->profile, "aic-attn", CAL_ATTENTION, kernel);
        pass->pass_s = 2e-6;
        pass->pass_memory_frac = 0.8;
        cal_fit_number(fit, &pass->pass_s, 1e-7, 1e-4);
        cal_fit_number(fit, &pass->pass_memory_frac, 0.05, 4);
        const CalCondition *lent = NULL;
        for (int i = 0; donor != NULL && i < donor->condition_count; i++)
            if (donor->conditions[i].kind == CAL_ATTENTION && donor->conditions[i].block == kernel &&
                g_str_has_prefix(donor->conditions[i].source, "aic"))
                lent = &donor->conditions[i];
        if (training || own)
            cal_fit_number(fit, &pass->speed_frac, 0.5, 1.5);
        else if (lent != NULL)
            pass->speed_frac = lent->speed_frac;
        if (own)
            cal_fit_number(fit, &pass->tile_scale, 0.1, 20);
    }
    if (own) {
        /* One kernel at a time on a chip that idled before: the power limit acts later than in a training loop. The kernel
         * draws what it draws, so that its power stays the model's. Source: [cudnn-frontend] benchmark_single_sdpa.py */
        CalCondition *burst = cal_condition_get(fit->profile, "cudnn-frontend", CAL_ATTENTION, kernel);
        burst->throttle_scale = 10;
        cal_fit_number(fit, &burst->throttle_scale, 1, 1000);
    }
    if (training) { /* timed through the framework: starting the kernels counts. Source: [SimuMax] */
        CalCondition *pass = cal_condition_get(fit->profile, "simumax", CAL_ATTENTION, kernel);
        pass->pass_s = 1e-5;
        cal_fit_number(fit, &pass->pass_s, 1e-7, 2e-4);
    }
}

void cal_fit_attention(CalProfile *profile, const GPtrArray *rows, SpecAttention kernel,
                       const CalProfile *donor, double prior)
{
    g_autoptr(GPtrArray) own = g_ptr_array_new();
    for (guint i = 0; i < rows->len; i++) {
        CalRow *row = g_ptr_array_index(rows, i);
        if (row->kind == CAL_ATTENTION && row->attention.kernel == kernel)
            g_ptr_array_add(own, row);
    }
    if (own->len == 0)
        return;
    SpecAccelerator *accelerator = &profile->accelerator;
    SpecAttentionModel *attention = &accelerator->model.attention[kernel];
    if (attention->peak_frac <= 0) {
        const SpecAttentionModel noted = *attention;
        *attention = spec_attention_model_default;
        if (noted.early_frac > 0) { /* versions of a library, which no row of one version tells */
            attention->early_frac = noted.early_frac;
            attention->backward_early_frac = noted.backward_early_frac;
        }
    }
    /* A thread block of the newest kernels works on two blocks of queries at once: few heads cost a floor of that
     * length. Source: [SimuMax] */
    if (accelerator->generation.cudnn_query_tokens > 0 && kernel == SPEC_ATTENTION_CUDNN)
        attention->q_tile_tokens = accelerator->generation.cudnn_query_tokens;
    CalFit *fit = cal_fit_new(profile, own, CAL_ATTENTION, NULL, prior);
    free_kernel(fit, attention, (int)kernel);
    free_conditions(fit, (int)kernel, donor);
    cal_fit_solve(fit);
    cal_fit_free(fit);
}
