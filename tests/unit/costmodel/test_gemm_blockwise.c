/* tests/unit/costmodel/test_gemm_blockwise.c - 8-bit products with a scale for each 128 of a sum, beside what DeepGEMM publishes for
 * an H800. Two numbers are fitted, one a table: what a tile's store takes. */
#include <math.h>

#include "costmodel/gemm.h"
#include "costmodel/kernels.h"
#include "tests/unit/kernel_fixture.h"

typedef struct Row {
    double m, n, k, tflops;
} Row;

static double tflops(const SpecAccelerator *accelerator, const Row *row, CostLayout layout, bool blockwise)
{
    const CostGemm gemm = {.m = row->m,
                           .n = row->n,
                           .k = row->k,
                           .groups = 1,
                           .dtype = SPEC_FP8,
                           .layout = layout,
                           .accumulate_fp32 = layout == COST_LAYOUT_BACKWARD_WEIGHT,
                           .blockwise = blockwise};
    return 2e-12 * row->m * row->n * row->k / cost_gemm_s(accelerator, &gemm);
}

/* Returns the mean error. */
static double check(const Row *rows, gsize count, CostLayout layout, double most)
{
    const SpecAccelerator accelerator = fixture_preset("h800-sxm5-80gb");
    double sum = 0;
    for (gsize i = 0; i < count; i++) {
        const double error = tflops(&accelerator, &rows[i], layout, true) / rows[i].tflops - 1;
        g_test_message("%.0f x %.0f x %.0f: %+.1f %%", rows[i].m, rows[i].n, rows[i].k, 100 * error);
        g_assert_cmpfloat(fabs(error), <=, most);
        sum += fabs(error);
    }
    return sum / (double)count;
}

/* Source: [DeepGemm] README of February 2025; the last two are its grouped products of contiguous rows */
static void test_forward(void)
{
    static const Row rows[] = {{4096, 2112, 7168, 1058},  {4096, 24576, 1536, 990}, {4096, 32768, 512, 590},
                               {4096, 7168, 16384, 1358}, {4096, 4096, 7168, 1304}, {4096, 7168, 2048, 1025},
                               {32768, 4096, 7168, 1297}, {32768, 7168, 2048, 1099}};
    g_assert_cmpfloat(check(rows, G_N_ELEMENTS(rows), COST_LAYOUT_FORWARD, 0.10), <=, 0.045);
    /* input gradients are the same kernel's */
    const SpecAccelerator accelerator = fixture_preset("h800-sxm5-80gb");
    g_assert_cmpfloat(tflops(&accelerator, &rows[3], COST_LAYOUT_BACKWARD_INPUT, true), ==,
                      tflops(&accelerator, &rows[3], COST_LAYOUT_FORWARD, true));
}

/* Source: [DeepGemmWeights] */
static void test_weights(void)
{
    static const Row rows[] = {{7168, 2112, 4096, 920},  {1536, 24576, 4096, 986},  {512, 32768, 4096, 878},
                               {16384, 7168, 4096, 994}, {7168, 4096, 4096, 942},   {2048, 7168, 4096, 920},
                               {7168, 2112, 8192, 1052}, {1536, 24576, 8192, 1092}, {512, 32768, 8192, 1014}};
    g_assert_cmpfloat(check(rows, G_N_ELEMENTS(rows), COST_LAYOUT_BACKWARD_WEIGHT, 0.05), <=, 0.03);
}

/* Waves are whole: with 112 of 132 SMs 128 tiles take the second wave that 132 SMs do not need. */
static void test_fewer_sms(void)
{
    const SpecAccelerator accelerator = fixture_preset("h800-sxm5-80gb");
    CostGemm gemm = {
        .m = 16 * 128, .n = 8 * 128, .k = 65536, .groups = 1, .dtype = SPEC_FP8, .blockwise = true};
    const double whole_s = cost_gemm_s(&accelerator, &gemm);
    gemm.free_sms = 20;
    const double fewer_s = cost_gemm_s(&accelerator, &gemm);
    g_assert_cmpfloat(fewer_s / whole_s, >, 1.2); /* more than 132/112 */
    gemm.free_sms = 4;                            /* as many waves of as many tiles */
    fixture_within(cost_gemm_s(&accelerator, &gemm), whole_s, 0.02);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/costmodel/gemm-blockwise/forward", test_forward);
    g_test_add_func("/costmodel/gemm-blockwise/weights", test_weights);
    g_test_add_func("/costmodel/gemm-blockwise/fewer-sms", test_fewer_sms);
    return g_test_run();
}
