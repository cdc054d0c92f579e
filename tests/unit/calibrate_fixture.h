/* tests/unit/calibrate_fixture.h - noise that can be had again, sweeps by a stand-in, and steps of what came of
 * them. */
#ifndef ORR_TEST_CALIBRATE_FIXTURE_H
#define ORR_TEST_CALIBRATE_FIXTURE_H

#include <string.h>

#include "calibrate/measure/sweep.h"
#include "costmodel/gemm.h"
#include "tests/unit/kernel_fixture.h"
#include "report/report.h"

#define FIXTURE_NOISE_FRAC 0.03

/* A normal deviate from 12 uniform ones. */
static inline double fixture_noise(guint32 *state)
{
    double sum = -6;
    for (int i = 0; i < 12; i++) {
        *state = *state * 1664525u + 1013904223u;
        sum += *state / 4294967296.0;
    }
    return sum;
}

/* Names that differ in one letter have hashes that do so too: mixed as MurmurHash3 ends. */
static inline guint32 fixture_noise_state(guint32 seed, const char *id)
{
    guint32 h = g_str_hash(id) ^ (seed * 0x9e3779b9u);
    h = (h ^ h >> 16) * 0x85ebca6bu;
    h = (h ^ h >> 13) * 0xc2b2ae35u;
    return h ^ h >> 16;
}

/* The whole sweep of `options`, answered by `measure`; false with nothing left behind when it failed. */
static inline bool fixture_sweep(CalMeter meter, const CalStamp *stamp, const CalSweepOptions *options,
                                 bool expect_ok)
{
    g_autoptr(GArray) points = cal_sweep_points(stamp, options);
    GError *error = NULL;
    const bool ok = cal_sweep_run(&meter, stamp, points, options, &error);
    if (expect_ok)
        g_assert_no_error(error);
    g_clear_error(&error);
    return ok;
}

/* A scenario of JSON text with one --set (NULL: none). */
static inline void fixture_scenario(const char *text, const char *set, Spec *ret_spec)
{
    const char *sets[] = {set, NULL};
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "scenario", &error);
    g_assert_no_error(error);
    spec_load_json(orr_json_root(doc), "scenario", sets, false, ret_spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
}

static inline double fixture_step_s(const Spec *spec)
{
    OrrArena *arena = orr_arena_new();
    Report report;
    const ReportOptions options = {0};
    GError *error = NULL;
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    const double seconds = 1e-12 * (double)report.step_ps;
    orr_arena_free(arena);
    return seconds;
}

/* Seconds of a product by the model: of 8 and 4 bits the pass is told by how they are summed. */
static inline double fixture_gemm_s(const SpecAccelerator *accelerator, const KrnShape *s, bool grouped)
{
    static const SpecDtype dtypes[KRN_MATH_COUNT] = {SPEC_BF16, SPEC_FP16, SPEC_TF32, SPEC_FP32,
                                                     SPEC_FP8,  SPEC_FP8,  SPEC_FP8,  SPEC_FP4};
    const CostLayout eight_bits = s->accumulate_fp32 ? COST_LAYOUT_BACKWARD_WEIGHT
                                  : s->precise       ? COST_LAYOUT_BACKWARD_INPUT
                                                     : COST_LAYOUT_FORWARD;
    const CostGemm gemm = {.m = (double)s->m,
                           .n = (double)s->n,
                           .k = (double)s->k,
                           .groups = (double)s->groups,
                           .dtype = dtypes[s->math],
                           .layout = krn_has_one_layout(s->math) ? eight_bits : (CostLayout)s->layout,
                           .grouped = grouped,
                           .accumulate_fp32 = s->accumulate_fp32};
    return cost_gemm_s(accelerator, &gemm);
}

/* The product of a pass: forward, gradient of the input, gradient of the weight; 8 and 4 bits have one layout. */
static inline KrnShape fixture_product(int64_t m, int64_t n, int64_t k, KrnMath math, int pass)
{
    const bool narrow = krn_has_one_layout(math);
    return (KrnShape){.m = m,
                      .n = n,
                      .k = k,
                      .groups = 1,
                      .math = math,
                      .layout = narrow ? KRN_TN : (KrnLayout)pass,
                      .precise = narrow && pass == 1,
                      .accumulate_fp32 = narrow && pass == 2};
}

#endif
