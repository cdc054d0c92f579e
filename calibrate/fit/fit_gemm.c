/* calibrate/fit/fit_gemm.c - the numbers of the GEMM model that an accelerator's rows move.
 *
 * One simplex over what all dtypes share and each dtype's own. The 4-bit block comes after: its serving rows
 * time another library's kernels, so that the rows of its own decide alone how fast it is, and without any the
 * 8-bit block's fractions stand. Rows of [AzureBench] alone leave it as its donor lends it.
 */
#include <math.h>
#include <string.h>

#include "calibrate/fit/fit_internal.h"

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
    return row->gemm.grouped;
}

static bool is_fp4(const CalRow *row)
{
    return row->gemm.dtype == SPEC_FP4;
}

static bool is_wider(const CalRow *row)
{
    return !is_fp4(row);
}

/* Operands of unsaid scales: what they draw is less than what a training step's do. Source: [AzureBench] */
static bool is_azure(const CalRow *row)
{
    return strcmp(row->source, "azure") == 0;
}

static bool is_pure(const CalRow *row)
{
    return !cal_row_is_serving(row) && !is_azure(row);
}

/* Serving engines quantise the activations in the timed region. Source: [aiconfigurator] */
static bool is_quantised(const CalRow *row)
{
    return cal_row_is_serving(row) && (row->gemm.dtype == SPEC_FP8 || row->gemm.dtype == SPEC_FP4);
}

static CalCondition *free_pass(CalFit *fit, SpecDtype dtype)
{
    CalCondition *pass = cal_condition_get(fit->profile, "aic-gemm", CAL_GEMM, (int)dtype);
    pass->pass_s = 2e-6;
    pass->pass_memory_frac = 0.5;
    pass->k_s = 1e-9;
    cal_fit_number(fit, &pass->k_s, 1e-11, 1e-8);
    cal_fit_number(fit, &pass->pass_s, 1e-7, 1e-4);
    cal_fit_number(fit, &pass->pass_memory_frac, 0.05, 4);
    return pass;
}

/* Long loops of training shapes draw more than a server's short bursts: both states from their rows. */
static void free_burst(CalFit *fit, SpecDtype dtype)
{
    SpecGemmModel *gemm = &fit->profile->accelerator.model.gemm[dtype];
    CalCondition *burst = cal_condition_get(fit->profile, "aic-gemm", CAL_GEMM, (int)dtype);
    burst->power_scale = 0.5;
    burst->throttle_scale = 10;
    gemm->power_frac /= burst->power_scale;
    gemm->throttle_s /= burst->throttle_scale;
    cal_fit_number(fit, &burst->power_scale, 0.2, 1);
    cal_fit_number(fit, &burst->throttle_scale, 0.5, 200);
}

#define LONGEST_CALL_S 2e-5 /* of the framework's Python and C++ for one product: an estimate */

/* The source starts products from Python, one after another, and reads the host's clock: no row is shorter than a call,
 * and no call longer than the shortest row. Source: [SimuMax] */
static void free_call(CalFit *fit, SpecDtype dtype)
{
    CalCondition *loop = cal_condition_get(fit->profile, "simumax", CAL_GEMM, (int)dtype);
    double shortest_s = LONGEST_CALL_S;
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalRow *row = g_ptr_array_index(fit->rows, i);
        if (cal_row_is_training(row) && cal_row_block(row) == (int)dtype)
            shortest_s = fmin(shortest_s, row->measured_s);
    }
    loop->call_s = shortest_s;
    cal_fit_number(fit, &loop->call_s, 1e-7, shortest_s);
}

static void free_block(CalFit *fit, SpecDtype dtype)
{
    const SpecAccelerator *accelerator = &fit->profile->accelerator;
    SpecGemmModel *gemm = &fit->profile->accelerator.model.gemm[dtype];
    /* Source: [MlEngineering] */
    cal_fit_number(fit, &gemm->peak_frac, 0.2,
                   accelerator->generation.sheet_below_highest_clock ? 1.08 : 1.0);
    cal_fit_number(fit, &gemm->tile_half, 1, 200);
    cal_fit_number(fit, &gemm->power_frac, 0.3, 5);
    cal_fit_number(fit, &gemm->throttle_s, 1e-6, 1);
    if (cal_fit_rows_with(fit, (int)dtype, is_input) > 0)
        cal_fit_number(fit, &gemm->backward_input_frac, 0.5, 1.2);
    if (cal_fit_rows_with(fit, (int)dtype, is_weight) > 0)
        cal_fit_number(fit, &gemm->backward_weight_frac, 0.5, 1.2);
    if (cal_fit_rows_with(fit, (int)dtype, is_grouped) > 0) {
        cal_fit_number(fit, &gemm->grouped_frac, 0.3, 1.2);
        cal_fit_number(fit, &gemm->group_s, 1e-8, 1e-4);
    }
    if (cal_fit_rows_with(fit, (int)dtype, is_quantised) > 0)
        free_pass(fit, dtype);
    if (cal_fit_rows_with(fit, (int)dtype, cal_row_is_training) > 0)
        free_call(fit, dtype);
    if (cal_fit_rows_with(fit, (int)dtype, cal_row_is_serving) > 0 &&
        cal_fit_rows_with(fit, (int)dtype, cal_row_is_training) > 0)
        free_burst(fit, dtype);
}

static void free_all(CalFit *fit)
{
    SpecGemmShared *shared = &fit->profile->accelerator.model.gemm_shared;
    cal_fit_number(fit, &shared->memory_frac, 0.4, 1);
    cal_fit_number(fit, &shared->overlap_loss_frac, 0.02, 1);
    cal_fit_number(fit, &shared->tile_s, 1e-8, 1e-5);
    cal_fit_number(fit, &shared->epilogue_s, 1e-8, 1e-5);
    cal_fit_number(fit, &shared->wave_quantum, 0.01, 1);
    cal_fit_number(fit, &shared->split_s, 1e-7, 1e-4);
    cal_fit_number(fit, &shared->split_speedup, 0.3, 20);
    cal_fit_number(fit, &shared->latency_s, 1e-7, 1e-4);
    for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
        if (cal_fit_rows_with(fit, dtype, NULL) > 0)
            free_block(fit, (SpecDtype)dtype);
}

/* Whether the serving engine's quantised kernels split k: the better of both. */
static bool choose_split(CalFit *fit, SpecDtype dtype)
{
    CalCondition *pass = cal_condition_find(fit->profile, "aic-gemm", CAL_GEMM, (int)dtype);
    if (pass == NULL || cal_fit_rows_with(fit, (int)dtype, is_quantised) == 0)
        return false;
    const double with = cal_fit_loss(fit);
    pass->split_k = false;
    if (cal_fit_loss(fit) < with)
        return true;
    pass->split_k = true;
    return false;
}

static int rows_of(const CalFit *fit, const CalCondition *lent)
{
    int count = 0;
    for (guint i = 0; i < fit->rows->len; i++) {
        const CalRow *row = g_ptr_array_index(fit->rows, i);
        count += cal_row_block(row) == lent->block && strcmp(row->source, lent->source) == 0;
    }
    return count;
}

/* A donor whose block tells training from what a source measured lends the state of the rows at hand. */
static void start_as_measured(CalFit *fit, const CalProfile *donor)
{
    for (int i = 0; donor != NULL && i < donor->condition_count; i++) {
        const CalCondition *lent = &donor->conditions[i];
        if (lent->kind != CAL_GEMM || rows_of(fit, lent) == 0 ||
            cal_fit_rows_with(fit, lent->block, cal_row_is_training) > 0)
            continue;
        SpecGemmModel *gemm = &fit->profile->accelerator.model.gemm[lent->block];
        gemm->power_frac *= lent->power_scale;
        gemm->throttle_s *= lent->throttle_scale;
    }
}

static void fit_wider(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor, double prior)
{
    CalFit *fit = cal_fit_new(profile, rows, CAL_GEMM, is_wider, prior);
    if (fit->rows->len > 0) {
        start_as_measured(fit, donor);
        free_all(fit);
        CalNumber numbers[CAL_MAX_NUMBERS];
        const int count = fit->count;
        memcpy(numbers, fit->numbers, sizeof numbers);
        cal_fit_solve(fit);
        if (choose_split(fit, SPEC_FP8)) {
            memcpy(fit->numbers, numbers, sizeof numbers);
            fit->count = count;
            cal_fit_solve(fit);
        }
    }
    cal_fit_free(fit);
}

/* Laying out the block scales is timed with the product, and the limit acts later. Source: [AzureBench] */
static void free_azure(CalFit *fit)
{
    CalCondition *azure = cal_condition_get(fit->profile, "azure", CAL_GEMM, (int)SPEC_FP4);
    azure->pass_s = 2e-6;
    azure->power_scale = 0.5;
    cal_fit_number(fit, &azure->pass_s, 1e-7, 1e-4);
    cal_fit_number(fit, &azure->power_scale, 0.2, 1);
    cal_fit_number(fit, &azure->speed_frac, 0.8, 1.3);
}

static void fit_fp4(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor, double prior)
{
    CalFit *fit = cal_fit_new(profile, rows, CAL_GEMM, is_fp4, prior);
    SpecGemmModel *gemm = profile->accelerator.model.gemm;
    if (fit->rows->len > 0) {
        const int azure = cal_fit_rows_with(fit, (int)SPEC_FP4, is_azure);
        const bool lent = donor != NULL && donor->accelerator.model.gemm[SPEC_FP4].peak_frac > 0;
        if (gemm[SPEC_FP8].peak_frac > 0 && (azure < (int)fit->rows->len || !lent))
            gemm[SPEC_FP4] = gemm[SPEC_FP8];
        if (cal_fit_rows_with(fit, (int)SPEC_FP4, is_pure) > 0) {
            cal_fit_number(fit, &gemm[SPEC_FP4].peak_frac, 0.2, 1.08);
            cal_fit_number(fit, &gemm[SPEC_FP4].power_frac, 0.3, 5);
        }
        if (cal_fit_rows_with(fit, (int)SPEC_FP4, is_weight) > 0)
            cal_fit_number(fit, &gemm[SPEC_FP4].backward_weight_frac, 0.5, 1.2);
        if (azure > 0)
            free_azure(fit);
        if (cal_fit_rows_with(fit, (int)SPEC_FP4, is_quantised) > 0) {
            CalCondition *engine = free_pass(fit, SPEC_FP4);
            engine->split_k = false;
            cal_fit_number(fit, &engine->speed_frac, 0.3, 1.2);
            cal_fit_number(fit, &engine->power_scale, 0.2, 5);
        }
        cal_fit_solve(fit);
    }
    cal_fit_free(fit);
}

/* Narrow dtypes that only serving bursts timed, on a chip whose bf16 products a training loop timed too: what the loop
 * does to the power limit it does to all products. The rows of the bursts are predicted as before.
 *   power' = power / s   with s = power_scale of the bf16 bursts */
static void lend_training_state(CalProfile *profile)
{
    const CalCondition *bf16 = cal_condition_find(profile, "aic-gemm", CAL_GEMM, SPEC_BF16);
    static const SpecDtype narrow[] = {SPEC_FP8, SPEC_FP4};
    for (size_t i = 0; bf16 != NULL && i < G_N_ELEMENTS(narrow); i++) {
        SpecGemmModel *gemm = &profile->accelerator.model.gemm[narrow[i]];
        CalCondition *own = cal_condition_find(profile, "aic-gemm", CAL_GEMM, (int)narrow[i]);
        if (own == NULL || gemm->peak_frac <= 0) {
            continue;
        }
        own->power_scale *= bf16->power_scale;
        own->throttle_scale *= bf16->throttle_scale;
        gemm->power_frac /= bf16->power_scale;
        gemm->throttle_s /= bf16->throttle_scale;
    }
}

/* Uniform numbers from 0 to 1 become whole numbers in DeepBench's 16-bit operands: zeros, on which a V100 is up to 15 % faster
 * than on numbers, for it draws less. Near the limit time goes with the root of the demand. The rows are predicted as before.
 *   power' = power 1.15^2     Source: [DeepBenchZeros] */
static void fill_operands(CalProfile *profile, const GPtrArray *rows)
{
    static const double zeros_scale = 1 / (1.15 * 1.15);
    bool zeros = false;
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = g_ptr_array_index(rows, i);
        zeros = zeros || (row->kind == CAL_GEMM && cal_row_block(row) == (int)SPEC_FP16 &&
                          strcmp(row->source, "deepbench") == 0);
    }
    if (!zeros)
        return;
    cal_condition_get(profile, "deepbench", CAL_GEMM, (int)SPEC_FP16)->power_scale = zeros_scale;
    profile->accelerator.model.gemm[SPEC_FP16].power_frac /= zeros_scale;
}

void cal_fit_gemms(CalProfile *profile, const GPtrArray *rows, const CalProfile *donor, double prior)
{
    SpecGemmModel *gemm = profile->accelerator.model.gemm;
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *row = g_ptr_array_index(rows, i);
        if (row->kind == CAL_GEMM && gemm[cal_row_block(row)].peak_frac <= 0)
            gemm[cal_row_block(row)] = spec_gemm_model_default;
    }
    fit_wider(profile, rows, donor, prior);
    fit_fp4(profile, rows, donor, prior);
    lend_training_state(profile);
    fill_operands(profile, rows);
}
