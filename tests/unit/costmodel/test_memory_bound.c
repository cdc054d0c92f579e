/* Byte-moving kernels: the formula by hand, its limits, and the streams of [AzureBench]. */
#include "costmodel/memory_bound.h"
#include "tests/unit/kernel_fixture.h"

static void test_by_hand(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.model.memory_bound = (SpecMemoryBoundModel){.elementwise_frac = 0.8,
                                                            .norm_frac = 0.5,
                                                            .softmax_frac = 0.4,
                                                            .cross_entropy_frac = 0.25,
                                                            .permute_frac = 0.2,
                                                            .cast_frac = 0.625,
                                                            .optimizer_frac = 1,
                                                            .latency_s = 3e-6};
    static const double want_s[COST_MEMORY_COUNT] = {
        [COST_MEMORY_ELEMENTWISE] = 1.25e-3, [COST_MEMORY_NORM] = 2e-3,    [COST_MEMORY_SOFTMAX] = 2.5e-3,
        [COST_MEMORY_CROSS_ENTROPY] = 4e-3,  [COST_MEMORY_PERMUTE] = 5e-3, [COST_MEMORY_CAST] = 1.6e-3,
        [COST_MEMORY_OPTIMIZER] = 1e-3};
    for (int move = 0; move < COST_MEMORY_COUNT; move++) {
        fixture_within(cost_memory_bound_s(&accelerator, (CostMemoryKernel)move, 1e9), want_s[move] + 3e-6,
                       1e-12);
        fixture_within(cost_memory_bound_s(&accelerator, (CostMemoryKernel)move, 0), 3e-6, 1e-12);
    }
}

/* 149 registers a thread of a row of 4,096 let in 3 blocks of 4 warps, 85 of 2,048 six; a trip for each 128 elements. */
static void test_row_warps(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 100;
    fixture_within(cost_row_warps_s(&accelerator, 1.2e6, 4096), 1.2e6 / 1200 * 32 * 0.4e-6, 1e-12);
    fixture_within(cost_row_warps_s(&accelerator, 1.2e6, 2048), 1.2e6 / 2400 * 16 * 0.4e-6, 1e-12);
    g_assert_cmpfloat(cost_row_warps_s(&accelerator, 0, 4096), ==, 0);
    g_assert_cmpfloat(cost_row_warps_s(&accelerator, 1e6, 0), ==, 0);
}

/* Sixteen blocks an SM at once; no less than one block's walk. */
static void test_walks(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 100;
    fixture_within(cost_walk_s(&accelerator, 4000, 1792), 4000 / 1600.0 * 1792 * 0.15e-6, 1e-12);
    fixture_within(cost_walk_s(&accelerator, 10, 1792), 1792 * 0.15e-6, 1e-12);
    g_assert_cmpfloat(cost_walk_s(&accelerator, 0, 1792), ==, 0);
    g_assert_cmpfloat(cost_walk_s(&accelerator, 4000, 0), ==, 0);
}

/* 168 registers a thread of a row of 4,096 let 3 blocks of 4 warps in, 256 of 8,192 two; wider rows are two blocks' and more. Their
 * sums are written once. */
static void test_norm_backward(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 100;
    static const struct {
        double rows, cols, sums;
    } cases[] = {{1e5, 4096, 3 * 4096}, {1e5, 8192, 2 * 8192}, {1e5, 16384, 2 * 8192}, {150, 4096, 2 * 4096}};
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double moved = 3 * 2 * cases[i].rows * cases[i].cols;
        fixture_within(cost_norm_backward_s(&accelerator, cases[i].rows, cases[i].cols, 2),
                       cost_memory_bound_s(&accelerator, COST_MEMORY_NORM, moved) +
                           cost_memory_bound_s(&accelerator, COST_MEMORY_NORM, 4 * 100 * cases[i].sums),
                       1e-12);
    }
    g_assert_cmpfloat(cost_norm_backward_s(&accelerator, 0, 4096, 2), ==, 0);
    g_assert_cmpfloat(cost_norm_backward_s(&accelerator, 4096, 0, 2), ==, 0);
}

/* On every preset: above what the bytes take, more for more rows, and below two passes where there are many. */
static void test_norm_backward_presets(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fixture_presets); i++) {
        const SpecAccelerator accelerator = fixture_preset(fixture_presets[i]);
        for (double cols = 128; cols <= 16384; cols *= 2) {
            double before_s = 0;
            for (double rows = 1; rows < 1e7; rows *= 8) {
                const double bytes = 6 * rows * cols, t_s = cost_norm_backward_s(&accelerator, rows, cols, 2);
                g_assert_cmpfloat(t_s, >, before_s);
                g_assert_cmpfloat(t_s, >, bytes / accelerator.memory_bytes_per_s);
                before_s = t_s;
            }
        }
        g_assert_cmpfloat(cost_norm_backward_s(&accelerator, 65536, 8192, 2), <,
                          2 * cost_memory_bound_s(&accelerator, COST_MEMORY_NORM, 5.0 * 65536 * 8192));
    }
}

static void test_presets(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fixture_presets); i++) {
        const SpecAccelerator accelerator = fixture_preset(fixture_presets[i]);
        for (int move = 0; move < COST_MEMORY_COUNT; move++) {
            double before_s = 0;
            for (double bytes = 1024; bytes < 1e11; bytes *= 8) {
                const double t_s = cost_memory_bound_s(&accelerator, (CostMemoryKernel)move, bytes);
                g_assert_cmpfloat(t_s, >, before_s);
                g_assert_cmpfloat(t_s, >, bytes / accelerator.memory_bytes_per_s);
                before_s = t_s;
            }
        }
    }
}

/* Triad, bytes per second. */
static void test_streams(void)
{
    static const struct {
        const char *accelerator;
        double bytes_per_s;
    } rows[] = {{"a100-sxm4-80gb", 1.70e12}, {"h100-sxm5-80gb", 2.97e12}, {"h200-sxm5-141gb", 4.15e12}};
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const SpecAccelerator accelerator = fixture_preset(rows[i].accelerator);
        fixture_within(4e9 / cost_memory_bound_s(&accelerator, COST_MEMORY_ELEMENTWISE, 4e9),
                       rows[i].bytes_per_s, 0.05);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory-bound/norm-backward", test_norm_backward);
    g_test_add_func("/memory-bound/norm-backward-presets", test_norm_backward_presets);
    g_test_add_func("/memory-bound/by-hand", test_by_hand);
    g_test_add_func("/memory-bound/row-warps", test_row_warps);
    g_test_add_func("/memory-bound/walks", test_walks);
    g_test_add_func("/memory-bound/presets", test_presets);
    g_test_add_func("/memory-bound/streams", test_streams);
    return g_test_run();
}
