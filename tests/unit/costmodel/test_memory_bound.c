/* Byte-moving kernels: the formula by hand, its limits, and the streams of [AzureBench]. */
#include "costmodel/kernels.h"
#include "costmodel/norms.h"
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

/* A machine without SMs has none of their limits: the same bytes in the same time, whatever its number of cores. */
static void test_without_sms(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 2;
    g_assert_true(cost_has_sms(&accelerator));
    g_assert_cmpfloat(cost_row_warps_s(&accelerator, 1e6, 4096), >, 0);
    g_assert_cmpfloat(cost_walk_s(&accelerator, 1e6, 64), >, 0);
    accelerator.generation = *spec_generation("other");
    g_assert_false(cost_has_sms(&accelerator));
    g_assert_cmpfloat(cost_row_warps_s(&accelerator, 1e6, 4096), ==, 0);
    g_assert_cmpfloat(cost_walk_s(&accelerator, 1e6, 64), ==, 0);
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

/* 168 registers a thread of a row of 4,096 let 3 blocks of 4 warps in, 256 of 8,192 two; wider rows are two blocks' and more. A block
 * takes for a row what it moves at its share of the bandwidth, a trip to memory and its elements' 28 cycles. Sums are written once. */
static void test_norm_backward(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 100;
    accelerator.model.memory_bound =
        (SpecMemoryBoundModel){.elementwise_frac = 0.8, .norm_frac = 0.5, .latency_s = 3e-6};
    const double bytes_per_s = 0.5 * accelerator.memory_bytes_per_s;
    static const struct {
        double rows, cols, blocks, sums, row_s;
    } cases[] = {{1e5, 4096, 334, 3 * 4096, 0.4e-6 + 32 * 28 / 1.9e9},
                 {1e5, 8192, 500, 2 * 8192, 0.4e-6 + 64 * 28 / 1.9e9},
                 {1e5, 16384, 1000, 2 * 8192, 0.4e-6 + 64 * 28 / 1.9e9 + 0.3e-6},
                 {150, 4096, 1, 2 * 4096, 0.4e-6 + 32 * 28 / 1.9e9}};
    for (int fast = 0; fast < 2; fast++)
        for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
            const double elements = cases[i].rows * cases[i].cols, scale = fast ? 100 : 1,
                         bytes_s = 6 * elements / (scale * bytes_per_s),
                         moved_s = bytes_s * 100 / cases[i].rows / (cases[i].cols > 8192 ? 2 : 1);
            SpecAccelerator fast_one = accelerator;
            fast_one.memory_bytes_per_s *= scale;
            const CostNormRows norm = {COST_NORM_STAYING, cases[i].rows, cases[i].cols, 4};
            fixture_within(cost_norm_rows_s(&fast_one, &norm, 6 * elements),
                           3e-6 + fmax(bytes_s, cases[i].blocks * (moved_s + cases[i].row_s)), 1e-12);
            g_assert_cmpfloat(cost_norm_sums(&fast_one, &norm), ==, 100 * cases[i].sums);
            fixture_within(cost_norm_backward_s(&accelerator, cases[i].rows, cases[i].cols, 2),
                           cost_norm_rows_s(&accelerator, &norm, 6 * elements) + 3e-6 +
                               fmax(4 * 100 * cases[i].sums / bytes_per_s,
                                    ceil(cases[i].cols / 3200) *
                                        ceil(100 * cases[i].sums / cases[i].cols / 128) * 0.15e-6),
                           1e-12);
        }
    g_assert_cmpfloat(cost_norm_backward_s(&accelerator, 0, 4096, 2), ==, 0);
    g_assert_cmpfloat(cost_norm_backward_s(&accelerator, 4096, 0, 2), ==, 0);
}

/* Flash-attention's norms. Forward 166 registers of 56 elements a thread let 3 blocks on an SM, 147 of 48 three of four rows, 70 of
 * 16 seven: rows that wait together add to the bytes. Backward 196 of 28 let one block of 256 threads in, which waits alone. The
 * residual stream costs its bytes and no launch. */
static void test_norm_that_adds(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 100;
    accelerator.model.memory_bound =
        (SpecMemoryBoundModel){.elementwise_frac = 0.8, .norm_frac = 0.5, .latency_s = 3e-6};
    const double bytes_per_s = 0.5 * accelerator.memory_bytes_per_s, element_s = 28 / 1.9e9;
    static const struct {
        double rows, cols, waves, elements;
    } forward[] = {{3000, 7168, 10, 56}, {3001, 7168, 11, 56}, {2400, 1536, 2, 48}, {2800, 512, 1, 16}};
    for (size_t i = 0; i < G_N_ELEMENTS(forward); i++) {
        const double bytes = 4 * forward[i].rows * forward[i].cols;
        const CostNormRows norm = {COST_NORM_SUMMING, forward[i].rows, forward[i].cols, 2};
        fixture_within(cost_norm_rows_s(&accelerator, &norm, bytes),
                       3e-6 + bytes / bytes_per_s +
                           forward[i].waves * (0.4e-6 + forward[i].elements * element_s),
                       1e-12);
    }
    const double bytes = 6 * 3001 * 7168.0;
    const CostNormRows backward = {COST_NORM_SUMMED, 3001, 7168, 4}, summand = {COST_NORM_SUMMAND, 0, 0, 0};
    fixture_within(cost_norm_rows_s(&accelerator, &backward, bytes),
                   3e-6 + 31 * (bytes / bytes_per_s * 100 / 3001 + 0.4e-6 + 28 * element_s), 1e-12);
    g_assert_cmpfloat(cost_norm_sums(&accelerator, &backward), ==, 100 * 7168);
    fixture_within(cost_norm_rows_s(&accelerator, &summand, bytes), bytes / bytes_per_s, 1e-12);
}

/* A block a row: 16 an SM, 1.4 us each; 16 rows of 16 KB are twice what the cache has, so half is read again. Compiled: four blocks
 * an SM, beside the bytes. Down the columns: tiles of 256 rows, unless many rows of few columns are split. None: bytes. */
static void test_norm_rows(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.sm_count = 100;
    accelerator.model.memory_bound = (SpecMemoryBoundModel){
        .elementwise_frac = 0.8, .norm_frac = 0.5, .latency_s = 3e-6, .row_block_s = 1.4e-6};
    const double half = 0.5 * accelerator.memory_bytes_per_s, most = 0.8 * accelerator.memory_bytes_per_s;
    const struct {
        CostNormRows norm;
        double seconds;
    } cases[] = {
        {{COST_NORM_ROW, 16e4, 2048, 2}, 4 * 2048 * 16e4 / half + 100 * 1.4e-6},
        {{COST_NORM_ROW, 16e4, 8192, 2}, (4 + 1 / 0.7) * 8192 * 16e4 / half + 100 * 1.4e-6},
        {{COST_NORM_COMPILED, 16e4, 1024, 2}, 4 * 1024 * 16e4 / most},
        {{COST_NORM_COMPILED, 16e4, 2048, 2}, hypot(4 * 2048 * 16e4 / most, 200 * 1.4e-6)},
        {{COST_NORM_COMPILED, 16e4, 4096, 2}, hypot(4 * 4096 * 16e4 / most, 400 * 1.4e-6)},
        {{COST_NORM_COMPILED, 16e4, 16384, 2}, hypot(4 * 16384 * 16e4 / most, 800 * 1.4e-6)},
        {{COST_NORM_COLUMNS, 25600, 128, 2}, fmax(4 * 128 * 25600 / half, 100 * 0.7e-6)},
        {{COST_NORM_COLUMNS, 16e4, 128, 2}, 4 * 128 * 16e4 / half},
        {{COST_NORM_STREAMED, 16e4, 4096, 2}, 4 * 4096 * 16e4 / half},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++)
        fixture_within(
            cost_norm_rows_s(&accelerator, &cases[i].norm, 4 * cases[i].norm.rows * cases[i].norm.cols),
            3e-6 + cases[i].seconds, 1e-12);
    accelerator.generation = *spec_generation("other"); /* no SMs, no blocks */
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const double bytes = 4 * cases[i].norm.rows * cases[i].norm.cols;
        g_assert_cmpfloat(cost_norm_rows_s(&accelerator, &cases[i].norm, bytes), ==,
                          cost_memory_bound_s(&accelerator, COST_MEMORY_NORM, bytes));
    }
    const CostNormRows none = {COST_NORM_ROW, 0, 4096, 2};
    fixture_within(cost_norm_rows_s(&accelerator, &none, 0), 3e-6, 1e-12);
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
                g_assert_cmpfloat(t_s, >=, before_s); /* one round of blocks, however few rows it has */
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

/* What does not depend on the clock is paid before anything else under a cap. */
static void test_power_demand(void)
{
    SpecAccelerator accelerator = fixture_round();
    const double fixed = cost_gemm_shared(&accelerator)->static_frac;
    g_assert_cmpfloat(fixed, >, 0);
    accelerator.power_w = 100;
    accelerator.power_cap_w = 0;
    g_assert_cmpfloat(cost_power_demand(&accelerator), ==, 1);
    for (double cap = 100; cap >= 60; cap -= 20) {
        accelerator.power_cap_w = cap;
        g_assert_cmpfloat_with_epsilon(cost_power_demand(&accelerator) * (cap / 100 - fixed), 1 - fixed,
                                       1e-12);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory-bound/norm-backward", test_norm_backward);
    g_test_add_func("/memory-bound/norm-that-adds", test_norm_that_adds);
    g_test_add_func("/memory-bound/norm-rows", test_norm_rows);
    g_test_add_func("/memory-bound/norm-backward-presets", test_norm_backward_presets);
    g_test_add_func("/memory-bound/power-demand", test_power_demand);
    g_test_add_func("/memory-bound/by-hand", test_by_hand);
    g_test_add_func("/memory-bound/row-warps", test_row_warps);
    g_test_add_func("/memory-bound/without-sms", test_without_sms);
    g_test_add_func("/memory-bound/walks", test_walks);
    g_test_add_func("/memory-bound/presets", test_presets);
    g_test_add_func("/memory-bound/streams", test_streams);
    return g_test_run();
}
