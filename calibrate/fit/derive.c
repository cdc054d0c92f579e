/* calibrate/fit/derive.c - blocks without rows of their own, carried over from a sibling. */
#include "calibrate/fit/derive.h"

#include <math.h>
#include <string.h>

/* Static share of the target's power limit: static watts go with the SMs.
 *   s' = s P/P' n'/n            P = power limit, n = SMs, s = static_frac */
static double carried_static(double static_frac, const SpecAccelerator *from, const SpecAccelerator *to)
{
    if (from->power_w <= 0 || to->power_w <= 0 || !spec_generation_same(&from->generation, &to->generation))
        return static_frac;
    return fmin(0.6, static_frac * from->power_w / to->power_w * to->sm_count / from->sm_count);
}

/* Dynamic watts of the same silicon go with the peak.
 *   u' = u P (1-s) / (P' (1-s')) x peak'/peak        u = power_frac */
static double carried_power(double power_frac, const SpecAccelerator *from, const SpecAccelerator *to,
                            SpecDtype block, SpecDtype dtype)
{
    if (from->power_w <= 0 || to->power_w <= 0 || !spec_generation_same(&from->generation, &to->generation))
        return power_frac;
    double peaks = 1;
    if (from->peak_flops_per_s[block] > 0 && to->peak_flops_per_s[dtype] > 0)
        peaks = to->peak_flops_per_s[dtype] / from->peak_flops_per_s[block];
    double static_frac = from->model.gemm_shared.static_frac;
    return power_frac * peaks * from->power_w * (1 - static_frac) /
           (to->power_w * (1 - carried_static(static_frac, from, to)));
}

/* An SM that multiplies faster on the same paths to its operands waits longer for them: tile_half goes with the peak. */
static SpecGemmModel carried_gemm(const SpecAccelerator *from, const SpecAccelerator *to, SpecDtype block,
                                  SpecDtype dtype)
{
    SpecGemmModel gemm = from->model.gemm[block];
    if (spec_generation_same(&from->generation, &to->generation) && to->generation.order > 0 &&
        from->peak_flops_per_s[block] > 0 && from->sm_count > 0)
        gemm.tile_half *= to->peak_flops_per_s[dtype] / from->peak_flops_per_s[block] * from->sm_count /
                          fmax(1, to->sm_count);
    gemm.power_frac = carried_power(gemm.power_frac, from, to, block, dtype);
    gemm.fit_rows = gemm.fit_median_frac = gemm.fit_p90_frac = 0;
    return gemm;
}

/* half_dim is the head size at which exponentials take as long as products:
 *   h' = h (P'/X') / (P/X)      P = dense 16-bit peak, X = exponentials a second; data sheets without X: h' = h */
static double carried_half_dim(double half_dim, const SpecAccelerator *from, const SpecAccelerator *to)
{
    const double own = to->exponentials_per_s / fmax(1, to->peak_flops_per_s[SPEC_BF16]),
                 donor = from->exponentials_per_s / fmax(1, from->peak_flops_per_s[SPEC_BF16]);
    return own > 0 && donor > 0 ? half_dim * donor / own : half_dim;
}

/* A kernel written for an older generation runs on a newer one's legacy path: it keeps its speed, not its share
 * of the peak. */
static SpecAttentionModel carried_attention(const SpecAccelerator *from, const SpecAccelerator *to,
                                            SpecAttention kernel)
{
    SpecAttentionModel attention = from->model.attention[kernel];
    const SpecDtype half = from->peak_flops_per_s[SPEC_BF16] > 0 ? SPEC_BF16 : SPEC_FP16;
    attention.power_frac = carried_power(attention.power_frac, from, to, half, half);
    if (spec_generation_later(&to->generation, &from->generation)) {
        double ratio = from->peak_flops_per_s[SPEC_BF16] / fmax(1, to->peak_flops_per_s[SPEC_BF16]);
        attention.peak_frac *= ratio;
        attention.backward_peak_frac *= ratio;
    } else {
        attention.half_dim = carried_half_dim(attention.half_dim, from, to);
        attention.backward_half_dim = carried_half_dim(attention.backward_half_dim, from, to);
        attention.backward_fp8_half_dim = carried_half_dim(attention.backward_fp8_half_dim, from, to);
    }
    attention.fit_rows = attention.fit_median_frac = attention.fit_p90_frac = 0;
    return attention;
}

void cal_derive_start(CalProfile *profile, const CalProfile *donor)
{
    SpecAccelerator *to = &profile->accelerator;
    SpecKernelModel *model = &to->model;
    const SpecMemoryBoundModel own = model->memory_bound;
    double early[SPEC_ATTENTION_COUNT], backward_early[SPEC_ATTENTION_COUNT];
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        early[i] = model->attention[i].early_frac;
        backward_early[i] = model->attention[i].backward_early_frac;
    }
    memset(model->gemm, 0, sizeof model->gemm);
    memset(model->attention, 0, sizeof model->attention);
    model->gemm_shared = spec_gemm_shared_default;
    model->memory_bound = spec_memory_bound_model_default;
    if (donor != NULL) {
        const SpecAccelerator *from = &donor->accelerator;
        model->gemm_shared = from->model.gemm_shared;
        model->gemm_shared.split_speedup *= from->memory_bytes_per_s / to->memory_bytes_per_s;
        model->gemm_shared.static_frac = carried_static(from->model.gemm_shared.static_frac, from, to);
        for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
            if (from->model.gemm[i].peak_frac > 0 && to->peak_flops_per_s[i] > 0)
                model->gemm[i] = carried_gemm(from, to, (SpecDtype)i, (SpecDtype)i);
        /* Before bf16 there was fp16. */
        if (to->peak_flops_per_s[SPEC_BF16] <= 0 && to->peak_flops_per_s[SPEC_FP16] > 0 &&
            model->gemm[SPEC_FP16].peak_frac <= 0 && from->model.gemm[SPEC_BF16].peak_frac > 0)
            model->gemm[SPEC_FP16] = carried_gemm(from, to, SPEC_BF16, SPEC_FP16);
        for (int i = 0; i < SPEC_ATTENTION_COUNT; i++)
            if (from->model.attention[i].peak_frac > 0)
                model->attention[i] = carried_attention(from, to, (SpecAttention)i);
        model->memory_bound = from->model.memory_bound;
        model->memory_bound.fit_rows = model->memory_bound.fit_median_frac =
            model->memory_bound.fit_p90_frac = 0;
    }
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++)
        if (early[i] > 0) {
            model->attention[i].early_frac = early[i];
            model->attention[i].backward_early_frac = backward_early[i];
        }
    if (own.elementwise_frac > 0) {
        model->memory_bound.cross_entropy_frac = own.cross_entropy_frac;
        model->memory_bound.permute_frac = own.permute_frac;
    }
}

static const CalProfile *named_donor(const CalProfile *profile, GPtrArray *profiles, const char *path,
                                     const char *key, bool *ret_named, GError **error)
{
    g_autofree char *full = g_strdup_printf("%s.%s", path, key);
    const char *name = cal_profile_text(profile, full);
    *ret_named = name != NULL;
    if (name == NULL)
        return NULL;
    const CalProfile *donor = cal_profile_find(profiles, name);
    if (donor == NULL)
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT, "%s: %s: \"%s\" is not an accelerator", profile->path,
                    full, name);
    return donor;
}

/* Whether rows of `source` are behind the GEMM block of `dtype`. */
static bool has_rows_of(const CalProfile *profile, const char *source, SpecDtype dtype)
{
    for (int i = 0; i < profile->condition_count; i++) {
        const CalCondition *condition = &profile->conditions[i];
        if (condition->rows > 0 && condition->kind == CAL_GEMM && condition->block == (int)dtype &&
            strcmp(condition->source, source) == 0)
            return true;
    }
    return false;
}

/* A dtype without rows of its own, on an accelerator whose bf16 products were measured: what sets those apart from the
 * donor's is the chip, as far as one source measured the donor's bf16 and its `dtype` and this chip's bf16.
 *   f' = f b'/b      f = peak_frac, tile_half of the dtype; b = of bf16 */
static void follow_own_bf16(CalProfile *profile, const CalProfile *donor, SpecDtype dtype)
{
    static const char *const source = "aic-gemm";
    SpecGemmModel *gemm = &profile->accelerator.model.gemm[dtype];
    const SpecGemmModel *own = &profile->accelerator.model.gemm[SPEC_BF16],
                        *from = &donor->accelerator.model.gemm[SPEC_BF16];
    if (dtype == SPEC_BF16 || gemm->peak_frac <= 0 || gemm->fit_rows > 0 || own->fit_rows <= 0 ||
        !has_rows_of(profile, source, SPEC_BF16) || !has_rows_of(donor, source, SPEC_BF16) ||
        !has_rows_of(donor, source, dtype))
        return;
    gemm->peak_frac *= own->peak_frac / from->peak_frac;
    gemm->tile_half *= own->tile_half / from->tile_half;
}

static bool derive_gemm(CalProfile *profile, GPtrArray *profiles, SpecDtype dtype, GError **error)
{
    g_autofree char *path = g_strdup_printf("model.gemm.%s", spec_word(&spec_words_dtype, (int)dtype));
    SpecAccelerator *to = &profile->accelerator;
    bool named;
    const CalProfile *donor = named_donor(profile, profiles, path, "derived_from", &named, error);
    if (named && donor == NULL)
        return false;
    if (donor != NULL && to->model.gemm[dtype].fit_rows <= 0)
        to->model.gemm[dtype] = carried_gemm(&donor->accelerator, to, dtype, dtype);
    if (donor == NULL)
        donor = named_donor(profile, profiles, "model", "derived_from", &named, error);
    if (donor != NULL)
        follow_own_bf16(profile, donor, dtype);
    donor = named_donor(profile, profiles, path, "layouts_from", &named, error);
    if (named && donor == NULL)
        return false;
    if (donor != NULL) {
        const SpecGemmModel *from = &donor->accelerator.model.gemm[SPEC_BF16];
        to->model.gemm[dtype].backward_input_frac = from->backward_input_frac;
        to->model.gemm[dtype].backward_weight_frac = from->backward_weight_frac;
        to->model.gemm[dtype].grouped_frac = from->grouped_frac;
        to->model.gemm[dtype].group_s = from->group_s;
    }
    return true;
}

/* The backward pass as the donor's, in proportion to the forward pass. */
static void carry_backward(SpecAttentionModel *to, const SpecAttentionModel *from)
{
    double forward = to->peak_frac / (1 + to->half_dim / 128),
           donor = from->peak_frac / (1 + from->half_dim / 128);
    to->backward_peak_frac = fmin(1, from->backward_peak_frac * forward / donor);
    to->backward_half_dim = from->backward_half_dim;
    to->backward_fp8_half_dim = from->backward_fp8_half_dim;
    to->backward_tile_s = from->backward_tile_s;
    to->backward_latency_s = from->backward_latency_s;
    to->wide_frac = from->wide_frac;
    to->backward_wide_frac = from->backward_wide_frac;
}

static bool derive_attention(CalProfile *profile, GPtrArray *profiles, SpecAttention kernel, GError **error)
{
    g_autofree char *path =
        g_strdup_printf("model.attention.%s", spec_word(&spec_words_attention, (int)kernel));
    SpecAccelerator *to = &profile->accelerator;
    SpecAttentionModel *attention = &to->model.attention[kernel];
    bool named;
    const CalProfile *donor = named_donor(profile, profiles, path, "derived_from", &named, error);
    if (named && donor == NULL)
        return false;
    if (donor != NULL && attention->fit_rows <= 0)
        *attention = carried_attention(&donor->accelerator, to, kernel);
    donor = named_donor(profile, profiles, path, "backward_from", &named, error);
    if (named && donor == NULL)
        return false;
    if (donor != NULL)
        carry_backward(attention, &donor->accelerator.model.attention[kernel]);
    return true;
}

bool cal_derive_blocks(CalProfile *profile, GPtrArray *profiles, GError **error)
{
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        if (!derive_gemm(profile, profiles, (SpecDtype)i, error))
            return false;
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++)
        if (!derive_attention(profile, profiles, (SpecAttention)i, error))
            return false;
    return true;
}
