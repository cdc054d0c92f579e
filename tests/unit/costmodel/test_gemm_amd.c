/* tests/unit/costmodel/test_gemm_amd.c - products of AMD's and Intel's chips beside figures that no constant was fitted to, and
 * beside the best that anybody found. */
#include <math.h>

#include "costmodel/gemm.h"
#include "costmodel/kernels.h"
#include "tests/unit/kernel_fixture.h"

static double seconds(const SpecAccelerator *accelerator, SpecDtype dtype, double m, double n, double k)
{
    const CostGemm gemm = {.m = m, .n = n, .k = k, .groups = 1, .dtype = dtype};
    return cost_gemm_s(accelerator, &gemm);
}

/* AMD's ten products of DeepSeek-V3, each over 32 and 32,768 tokens; FLOPs of all over seconds of all.
 * Source: [AmdMaf] "Typical Attained FLOPs" */
static double ten_products(const char *preset, SpecDtype dtype)
{
    static const double sizes[][2] = {{2112, 7168}, {3072, 1536}, {7168, 2048}, {4608, 7168}, {7168, 256}};
    const SpecAccelerator accelerator = fixture_preset(preset);
    double flops = 0, time_s = 0;
    for (gsize i = 0; i < G_N_ELEMENTS(sizes); i++) {
        for (int many = 0; many < 2; many++) {
            const double m = many ? 32768 : 32;
            flops += 2 * m * sizes[i][0] * sizes[i][1];
            time_s += seconds(&accelerator, dtype, m, sizes[i][0], sizes[i][1]);
        }
    }
    g_test_message("%s: %.0f TFLOP/s", preset, 1e-12 * flops / time_s);
    return 1e-12 * flops / time_s;
}

static void test_typical(void)
{
    fixture_within(ten_products("mi325x-256gb", SPEC_BF16), 616.4, 0.04);
    fixture_within(ten_products("mi325x-256gb", SPEC_FP8), 1143.2, 0.04);
}

/* Under 750 W the die runs at 1,207 MHz where it has 1,447 under 1,000 W, in 8 bits at 1,230 and 1,464. */
static void test_clocks(void)
{
    fixture_within(ten_products("mi300x-192gb", SPEC_BF16) / ten_products("mi325x-256gb", SPEC_BF16),
                   1207.0 / 1447, 0.03);
    fixture_within(ten_products("mi300x-192gb", SPEC_FP8) / ten_products("mi325x-256gb", SPEC_FP8),
                   1230.0 / 1464, 0.03);
}

typedef struct Best {
    const char *preset;
    SpecDtype dtype;
    double m, n, k, tflops;
} Best;

/* Nothing is faster than what a search over shapes found. Source: [MlEngineering], [AmdMaf] */
static void test_below_best(void)
{
    static const Best rows[] = {
        {"mi250x-gcd", SPEC_BF16, 1024, 19968, 14080, 147.0},
        {"mi300x-192gb", SPEC_BF16, 4096, 4864, 32896, 708},
        {"mi300x-192gb", SPEC_FP8, 4096, 3648, 32896, 1273},
        {"mi325x-256gb", SPEC_BF16, 4096, 4864, 32896, 843},
        {"mi325x-256gb", SPEC_FP8, 4096, 3648, 32896, 1519},
        {"gaudi3-128gb", SPEC_BF16, 22272, 12288, 7936, 1288.8},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const Best *row = &rows[i];
        const SpecAccelerator accelerator = fixture_preset(row->preset);
        const double time_s = seconds(&accelerator, row->dtype, row->m, row->n, row->k);
        g_assert_cmpfloat(2e-12 * row->m * row->n * row->k / time_s, <=, 1.01 * row->tflops);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/costmodel/gemm-amd/typical", test_typical);
    g_test_add_func("/costmodel/gemm-amd/clocks", test_clocks);
    g_test_add_func("/costmodel/gemm-amd/below-best", test_below_best);
    return g_test_run();
}
