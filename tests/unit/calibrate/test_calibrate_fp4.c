/* 4-bit products: what rows of a benchmark that says nothing of its operands may move, and what a chip without rows of its
 * own takes from another. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "calibrate/fit/check.h"
#include "calibrate/fit/derive.h"
#include "calibrate/fit/fit_internal.h"
#include "tests/unit/kernel_fixture.h"

static GPtrArray *shipped(void)
{
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    g_autofree char *folder = g_build_filename(scenarios, "accelerators", NULL);
    GPtrArray *profiles = NULL;
    GError *error = NULL;
    cal_profiles_read(folder, &profiles, &error);
    g_assert_no_error(error);
    return profiles;
}

/* Square products of a chip that is 1.3 times as fast as the donor's block carried over, from `source`. */
static GPtrArray *faster_rows(const CalProfile *profile, const char *source)
{
    GPtrArray *rows = g_ptr_array_new_with_free_func(g_free);
    for (double size = 4096; size <= 16384; size *= 2) {
        CalRow *row = g_new0(CalRow, 1);
        row->kind = CAL_GEMM;
        row->gemm = (CostGemm){.m = size, .n = size, .k = size, .groups = 1, .dtype = SPEC_FP4};
        row->measured_s = cost_gemm_s(&profile->accelerator, &row->gemm) / 1.3;
        g_strlcpy(row->source, source, sizeof row->source);
        g_ptr_array_add(rows, row);
    }
    return rows;
}

/* Azure's rows move what is kept of Azure; a sweep's move the block. */
static void test_rows(void)
{
    static const char *const sources[] = {"azure", "sweep"};
    for (size_t i = 0; i < G_N_ELEMENTS(sources); i++) {
        GPtrArray *profiles = shipped();
        CalProfile *profile = cal_profile_find(profiles, "gb200-nvl72"),
                   *donor = cal_profile_find(profiles, "b200-sxm-180gb");
        profile->condition_count = 0;
        cal_derive_start(profile, donor);
        const SpecGemmModel lent = profile->accelerator.model.gemm[SPEC_FP4];
        const SpecAttentionModel *cudnn = &profile->accelerator.model.attention[SPEC_ATTENTION_CUDNN];
        g_assert_cmpfloat(cudnn->early_frac, ==, 0.91); /* of versions, not of rows: it stays */
        g_assert_cmpfloat(cudnn->backward_early_frac, ==, 0.8);
        GPtrArray *rows = faster_rows(profile, sources[i]);
        cal_fit_gemms(profile, rows, donor, 0.01);
        const SpecGemmModel *block = &profile->accelerator.model.gemm[SPEC_FP4];
        const bool moved =
            block->peak_frac != lent.peak_frac || block->power_frac != lent.power_frac; /* bit for bit */
        g_assert_cmpint(moved, ==, strcmp(sources[i], "sweep") == 0);
        for (guint k = 0; k < rows->len; k++) {
            const CalRow *row = g_ptr_array_index(rows, k);
            fixture_within(cal_predict_s(profile, row), row->measured_s, 0.1);
        }
        g_ptr_array_unref(rows);
        g_ptr_array_unref(profiles);
    }
}

/* A dtype that names its donor follows the chip's own bf16 products all the same. */
static void test_named_donor(void)
{
    GPtrArray *profiles = shipped();
    CalProfile *profile = cal_profile_find(profiles, "b300-sxm-288gb"),
               *donor = cal_profile_find(profiles, "gb200-nvl72");
    const SpecGemmModel *own = profile->accelerator.model.gemm, *from = donor->accelerator.model.gemm;
    GError *error = NULL;
    cal_condition_get(profile, "aic-gemm", CAL_GEMM, SPEC_BF16)->rows = 1; /* as after a fit */
    cal_condition_get(donor, "aic-gemm", CAL_GEMM, SPEC_BF16)->rows = 1;
    cal_condition_get(donor, "aic-gemm", CAL_GEMM, SPEC_FP8)->rows = 1;
    cal_derive_blocks(profile, profiles, &error);
    g_assert_no_error(error);
    fixture_within(own[SPEC_FP8].peak_frac,
                   from[SPEC_FP8].peak_frac * own[SPEC_BF16].peak_frac / from[SPEC_BF16].peak_frac, 1e-9);
    g_ptr_array_unref(profiles);
}

/* What B300's presets hold is what their named donors lend. */
static void test_attention_as_lent(void)
{
    GPtrArray *profiles = shipped();
    CalProfile *profile = cal_profile_find(profiles, "b300-sxm-288gb");
    const SpecAttentionModel *block = &profile->accelerator.model.attention[SPEC_ATTENTION_CUDNN],
                             held = *block;
    GError *error = NULL;
    cal_derive_blocks(profile, profiles, &error);
    g_assert_no_error(error);
    fixture_within(block->half_dim, held.half_dim, 1e-3);
    fixture_within(block->backward_half_dim, held.backward_half_dim, 1e-3);
    fixture_within(block->power_frac, held.power_frac, 1e-3);
    fixture_within(block->fp8_frac, held.fp8_frac, 1e-3);
    g_ptr_array_unref(profiles);
}

/* One chip under two power limits: the higher one is faster, by less than the limits' ratio. */
static void test_same_chip(void)
{
    const SpecAccelerator low = fixture_preset("b300-sxm-288gb"), high = fixture_preset("gb300-nvl72");
    const CostGemm gemm = {.m = 8192, .n = 16384, .k = 16384, .groups = 1, .dtype = SPEC_FP4};
    const double faster = cost_gemm_s(&low, &gemm) / cost_gemm_s(&high, &gemm);
    g_assert_cmpfloat(faster, >, 1);
    g_assert_cmpfloat(faster, <, high.power_w / low.power_w);
}

/* NVIDIA's loop of a layer's products on B300, which nothing was fitted to: 16 and 8 bits within 10 %, 4 bits within 15 %. */
static void test_loop_of_a_layer(void)
{
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    g_autofree char *path = g_build_filename(scenarios, "tables", "te_gemm_b300.csv", NULL);
    g_autoptr(GArray) groups = NULL;
    GError *error = NULL;
    cal_check_table(path, NULL, &groups, NULL, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(groups->len, ==, 3);
    for (guint i = 0; i < groups->len; i++) {
        const CalCheckGroup *group = &g_array_index(groups, CalCheckGroup, i);
        g_assert_cmpfloat(fabs(group->bias_frac), <=, strcmp(group->block, "fp4") == 0 ? 0.15 : 0.1);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/calibrate/fp4/rows", test_rows);
    g_test_add_func("/calibrate/fp4/named-donor", test_named_donor);
    g_test_add_func("/calibrate/fp4/attention-as-lent", test_attention_as_lent);
    g_test_add_func("/calibrate/fp4/same-chip", test_same_chip);
    g_test_add_func("/calibrate/fp4/loop-of-a-layer", test_loop_of_a_layer);
    return g_test_run();
}
