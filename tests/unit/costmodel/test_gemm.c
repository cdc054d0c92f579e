/* GEMM time: limits worked by hand, monotonicity on every preset, and a few published rows. */
#include "costmodel/gemm.h"
#include "costmodel/kernels.h"
#include "tests/unit/kernel_fixture.h"

static CostGemm square(double size, SpecDtype dtype)
{
    return (CostGemm){.m = size, .n = size, .k = size, .groups = 1, .dtype = dtype};
}

static double rate(const SpecAccelerator *accelerator, CostGemm gemm)
{
    return 2 * gemm.m * gemm.n * gemm.k * gemm.groups / cost_gemm_s(accelerator, &gemm);
}

/* One tile's worth of terms on a round machine: 100 tiles of 256 x 128 on 100 SMs, k = 64,000. */
static void test_one_wave_by_hand(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.memory_bytes_per_s = 1e18;
    SpecKernelModel *model = &accelerator.model;
    model->gemm_shared = (SpecGemmShared){.memory_frac = 1,
                                          .tile_s = 2e-6,
                                          .epilogue_s = 3e-6,
                                          .wave_quantum = 1,
                                          .split_s = 1,
                                          .split_speedup = 1,
                                          .latency_s = 5e-6};
    model->gemm[SPEC_BF16] = (SpecGemmModel){.peak_frac = 0.8,
                                             .tile_half = 256.0 / 3,
                                             .backward_input_frac = 0.5,
                                             .backward_weight_frac = 0.25,
                                             .grouped_frac = 0.5,
                                             .group_s = 1e-3,
                                             .throttle_s = 1e-9};
    CostGemm gemm = {.m = 2560, .n = 1280, .k = 64000, .groups = 1, .dtype = SPEC_BF16};
    /* main loop at 0.8 / 2 of 1 TFLOP/s: 2 x 256 x 128 x 64,000 / 0.4e12 = 10.48576 ms */
    const double loop_s = 10.48576e-3;
    fixture_within(cost_gemm_s(&accelerator, &gemm), loop_s + 2e-6 + 3e-6 + 5e-6, 1e-9);
    gemm.layout = COST_LAYOUT_BACKWARD_INPUT;
    fixture_within(cost_gemm_s(&accelerator, &gemm), 2 * loop_s + 1e-5, 1e-9);
    gemm.layout = COST_LAYOUT_BACKWARD_WEIGHT;
    fixture_within(cost_gemm_s(&accelerator, &gemm), 4 * loop_s + 1e-5, 1e-9);
    /* one tile more is a second wave */
    gemm.layout = COST_LAYOUT_FORWARD;
    gemm.m = 2816;
    g_assert_cmpfloat(cost_gemm_s(&accelerator, &gemm), >, 1.3 * loop_s);
    gemm.m = 2560;
    gemm.grouped = true;
    fixture_within(cost_gemm_s(&accelerator, &gemm), 2 * loop_s + 1e-5 + 1e-3, 1e-9);
}

/* DRAM alone: an outer product of 65,536 x 65,536 with k = 1 writes 2 bytes an output. */
static void test_memory_roof(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.model.gemm_shared =
        (SpecGemmShared){.memory_frac = 0.5, .wave_quantum = 1, .split_speedup = 1};
    accelerator.model.gemm[SPEC_BF16] = (SpecGemmModel){.peak_frac = 1e6, .tile_half = 1, .throttle_s = 1};
    accelerator.model.gemm_shared.memory_frac = 0.5;
    CostGemm gemm = {.m = 65536, .n = 65536, .k = 1, .groups = 1, .dtype = SPEC_BF16};
    const double bytes = 65536.0 * 65536 * 2;
    fixture_within(cost_gemm_s(&accelerator, &gemm), bytes / 0.5e12, 1e-3);
    gemm.accumulate = true; /* reads and writes 2 bytes */
    fixture_within(cost_gemm_s(&accelerator, &gemm), 2 * bytes / 0.5e12, 1e-3);
    gemm.accumulate_fp32 = true; /* reads and writes 4 bytes */
    fixture_within(cost_gemm_s(&accelerator, &gemm), 4 * bytes / 0.5e12, 1e-3);
}

/* The product of the first test on a machine that loads its operands in the time of its main loop: one half where
 * nothing is lost, a quarter more with a loss of 0.25, both in a row with a loss of 1. */
static void test_overlap(void)
{
    SpecAccelerator accelerator = fixture_round();
    const double loop_s = 10.48576e-3, bytes = 2 * ((2560.0 + 1280) * 64000 + 2560 * 1280);
    accelerator.l2_bytes = 1e12;
    accelerator.memory_bytes_per_s = bytes / loop_s;
    accelerator.model.gemm_shared =
        (SpecGemmShared){.memory_frac = 1, .wave_quantum = 1, .split_s = 1, .split_speedup = 1};
    accelerator.model.gemm[SPEC_BF16] =
        (SpecGemmModel){.peak_frac = 0.8, .tile_half = 256.0 / 3, .throttle_s = 1e-9};
    const CostGemm gemm = {.m = 2560, .n = 1280, .k = 64000, .groups = 1, .dtype = SPEC_BF16};
    static const double losses[] = {0, 0.25, 1};
    for (size_t i = 0; i < G_N_ELEMENTS(losses); i++) {
        accelerator.model.gemm_shared.overlap_loss_frac = losses[i];
        fixture_within(cost_gemm_s(&accelerator, &gemm), (1 + losses[i]) * loop_s, 1e-9);
    }
    /* memory that takes half as long: (1 + 0.5^p)^(1/p) with 2^(1/p) = 1.25 */
    accelerator.model.gemm_shared.overlap_loss_frac = 0.25;
    accelerator.memory_bytes_per_s *= 2;
    const double p = log(2) / log(1.25);
    fixture_within(cost_gemm_s(&accelerator, &gemm), loop_s * pow(1 + pow(0.5, p), 1 / p), 1e-9);
}

static void test_throttle(void)
{
    g_assert_cmpfloat(cost_throttled_s(1, 1, 1e-3), ==, 1);
    g_assert_cmpfloat(cost_throttled_s(1, 0, 1e-3), ==, 1);
    fixture_within(cost_throttled_s(1, 4, 1e-9), 2, 1e-6);    /* long: clock at 1/sqrt(4) */
    fixture_within(cost_throttled_s(1e-9, 4, 1), 1e-9, 1e-6); /* short: boost clock */
    fixture_within(cost_throttled_s(1e-3, 4, 1e-3), 1.5e-3, 1e-9);
    /* the same silicon under a lower limit */
    const SpecAccelerator full = fixture_preset("h100-sxm5-80gb"),
                          capped = fixture_preset("h100-sxm5-96gb-500w");
    const double ratio = rate(&capped, square(16384, SPEC_BF16)) / rate(&full, square(16384, SPEC_BF16));
    g_assert_cmpfloat(ratio, >, 0.7);
    g_assert_cmpfloat(ratio, <, 0.95);
    const CostGemm small = {.m = 1024, .n = 1024, .k = 1024, .groups = 1, .dtype = SPEC_BF16};
    fixture_within(cost_gemm_s(&capped, &small), cost_gemm_s(&full, &small), 0.05); /* its memory is slower */
}

/* 32 experts of 1,024 rows, four tiles of 256: drawn rows fill a fifth tile in every second expert. Away from the edge of
 * a tile small deviations change nothing, and large ones cost half a tile. */
static void test_drawn_rows(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.l2_bytes = 1e12;
    accelerator.memory_bytes_per_s = 1e18;
    accelerator.model.gemm_shared =
        (SpecGemmShared){.memory_frac = 1, .split_speedup = 1}; /* a part of a wave costs its share */
    accelerator.model.gemm[SPEC_BF16] = (SpecGemmModel){.peak_frac = 0.5,
                                                        .tile_half = 1e4, /* only the largest tiles count */
                                                        .backward_weight_frac = 1,
                                                        .grouped_frac = 1,
                                                        .throttle_s = 1};
    CostGemm gemm = {.m = 1024, .n = 1280, .k = 6400, .groups = 32, .dtype = SPEC_BF16, .grouped = true};
    const double even_s = cost_gemm_s(&accelerator, &gemm);
    gemm.row_deviation = 8;
    fixture_within(cost_gemm_s(&accelerator, &gemm), even_s * 8.5 / 8,
                   1e-6); /* tiles of 128 rows, 256 columns */
    gemm.row_deviation = 1000;
    fixture_within(cost_gemm_s(&accelerator, &gemm), even_s * 8.5 / 8, 1e-6);
    gemm.row_deviation = 0;
    gemm.m = 960;
    const double between_s = cost_gemm_s(&accelerator, &gemm);
    gemm.row_deviation = 4;
    fixture_within(cost_gemm_s(&accelerator, &gemm), between_s, 1e-6);
    gemm = (CostGemm){.m = 2560, .n = 1280, .k = 1024, .groups = 32, .dtype = SPEC_BF16, .grouped = true};
    gemm.layout = COST_LAYOUT_BACKWARD_WEIGHT; /* the rows are the inner dimension, in steps of 64 */
    const double weight_s = cost_gemm_s(&accelerator, &gemm);
    gemm.row_deviation = 40;
    fixture_within(cost_gemm_s(&accelerator, &gemm), weight_s * 16.5 / 16, 1e-6);
}

/* A larger inner dimension, more groups or an accumulated output is never faster; halving all sizes never
 * slower. (m and n alone may be: another tile fits better.) */
static void test_monotone(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fixture_presets); i++) {
        const SpecAccelerator accelerator = fixture_preset(fixture_presets[i]);
        for (double m = 16; m <= 16384; m *= 4) {
            double before_s = 0;
            for (double k = 64; k <= 65536; k += k < 4096 ? 192 : 4096) {
                CostGemm gemm = {.m = m, .n = 3072, .k = k, .groups = 1, .dtype = SPEC_BF16};
                const double t_s = cost_gemm_s(&accelerator, &gemm);
                g_assert_cmpfloat(t_s, >, 0);
                g_assert_cmpfloat(t_s, >=, before_s * (1 - 1e-12));
                before_s = t_s;
                gemm.groups = 4;
                g_assert_cmpfloat(cost_gemm_s(&accelerator, &gemm), >=, t_s);
                gemm.groups = 1;
                gemm.accumulate_fp32 = true;
                g_assert_cmpfloat(cost_gemm_s(&accelerator, &gemm), >=, t_s);
            }
        }
        double before_s = 0;
        for (double size = 64; size <= 32768; size *= 2) {
            const CostGemm gemm = square(size, SPEC_BF16);
            const double t_s = cost_gemm_s(&accelerator, &gemm);
            g_assert_cmpfloat(t_s, >, before_s);
            before_s = t_s;
        }
    }
}

static void test_limits(void)
{
    for (size_t i = 0; i < G_N_ELEMENTS(fixture_presets); i++) {
        const SpecAccelerator accelerator = fixture_preset(fixture_presets[i]);
        CostGemm gemm = square(8192, SPEC_BF16);
        gemm.m = 0;
        g_assert_cmpfloat(cost_gemm_s(&accelerator, &gemm), <, 2e-5);
        const double peak = cost_dense_peak_flops_per_s(&accelerator, SPEC_BF16);
        const double plateau = rate(&accelerator, square(16384, SPEC_BF16));
        g_assert_cmpfloat(plateau, >, 0.4 * peak);
        /* matrix units that memory feeds in time reach their peak: 96 ms of 95.6 on TPU v2 [ScalingBook] */
        g_assert_cmpfloat(plateau, <, (accelerator.matrix_unit > 0 ? 1 : 0.95) * peak);
        /* one row: the weights stream from memory */
        const CostGemm vector = {.m = 1, .n = 16384, .k = 16384, .groups = 1, .dtype = SPEC_BF16};
        const double bytes_per_s = 2.0 * 16384 * 16384 / cost_gemm_s(&accelerator, &vector);
        g_assert_cmpfloat(bytes_per_s, >, 0.4 * accelerator.memory_bytes_per_s);
        g_assert_cmpfloat(bytes_per_s, <, accelerator.memory_bytes_per_s);
    }
}

/* fp16 takes bf16's block; an accelerator without any block takes the defaults. */
static void test_fallback(void)
{
    const SpecAccelerator h100 = fixture_preset("h100-sxm5-80gb");
    const CostGemm half = square(4096, SPEC_FP16), brain = square(4096, SPEC_BF16);
    g_assert_cmpfloat(cost_gemm_s(&h100, &half), ==, cost_gemm_s(&h100, &brain));
    const SpecAccelerator bare = fixture_round();
    const double share = rate(&bare, square(8192, SPEC_BF16)) / 1e14;
    g_assert_cmpfloat(share, >, 0.5);
    g_assert_cmpfloat(share, <, 0.9);
    const CostGemm quantised = square(8192, SPEC_FP8); /* no fp8 path: runs in bf16 */
    g_assert_cmpfloat(rate(&bare, quantised), <=, 1e14);
}

/* A batch of attention-sized products is one launch: far cheaper than as many launches. */
static void test_batched(void)
{
    const SpecAccelerator a100 = fixture_preset("a100-sxm4-80gb");
    const CostGemm scores = {.m = 2048, .n = 2048, .k = 128, .groups = 96, .dtype = SPEC_BF16};
    CostGemm single = scores;
    single.groups = 1;
    g_assert_cmpfloat(cost_gemm_s(&a100, &scores), <, 0.8 * 96 * cost_gemm_s(&a100, &single));
    /* writing the scores is a floor */
    g_assert_cmpfloat(cost_gemm_s(&a100, &scores), >, 96 * 2048.0 * 2048 * 2 / a100.memory_bytes_per_s);
}

/* Rows of [aiconfigurator] and [AzureBench], within 15 %: the fit's own median is below 6 %. */
static void test_published(void)
{
    static const struct {
        const char *accelerator;
        double m, n, k;
        SpecDtype dtype;
        double measured_s;
    } rows[] = {
        {"a100-sxm4-80gb", 8192, 8192, 8192, SPEC_FP16, 2 * 0x1p39 / 253.7e12},
        {"a100-sxm4-80gb", 16384, 16384, 16384, SPEC_FP16, 2 * 0x1p42 / 256.5e12},
        {"h100-sxm5-80gb", 4096, 8192, 8192, SPEC_BF16, 682.9e-6},
        {"h100-sxm5-80gb", 16384, 16384, 16384, SPEC_BF16, 13624.39e-6},
        {"h100-sxm5-80gb", 128, 16384, 16384, SPEC_BF16, 192.44e-6},
        {"h100-sxm5-80gb", 8192, 8192, 8192, SPEC_FP8, 2 * 0x1p39 / 1290.1e12},
        {"gb200-nvl72", 16384, 16384, 16384, SPEC_FP8, 2 * 0x1p42 / 2906.9e12},
        {"tpu-v6e", 8192, 8192, 8192, SPEC_BF16, 1.328756e-3}, /* [TpuMicrobench] */
    };
    for (size_t i = 0; i < G_N_ELEMENTS(rows); i++) {
        const SpecAccelerator accelerator = fixture_preset(rows[i].accelerator);
        const CostGemm gemm = {
            .m = rows[i].m, .n = rows[i].n, .k = rows[i].k, .groups = 1, .dtype = rows[i].dtype};
        fixture_within(cost_gemm_s(&accelerator, &gemm), rows[i].measured_s, 0.15);
    }
}

/* Matrix units fed from 1 MiB: sums of 256 x 256 outputs find room, so that operands of 1,024 x 1,024 stream by four times
 * each; where that takes as long as multiplying, both together take half more. Without units, operands go once. */
static void test_arrays(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.generation = *spec_generation("other");
    accelerator.matrix_unit = 128;
    accelerator.l2_bytes = 1 << 20;
    accelerator.model.gemm_shared =
        (SpecGemmShared){.memory_frac = 1, .overlap_loss_frac = 0.5, .latency_s = 0};
    accelerator.model.gemm[SPEC_BF16] = (SpecGemmModel){.peak_frac = 1, .throttle_s = 1};
    const CostGemm gemm = square(1024, SPEC_BF16);
    const double flops = 2.0 * 1024 * 1024 * 1024, streamed = 2 * 4 * 2.0 * 1024 * 1024 + 2.0 * 1024 * 1024;
    const double multiply_s = flops / cost_dense_peak_flops_per_s(&accelerator, SPEC_BF16);
    accelerator.memory_bytes_per_s = streamed / multiply_s;
    fixture_within(cost_gemm_s(&accelerator, &gemm), 1.5 * multiply_s, 1e-6);
    accelerator.memory_bytes_per_s = 1e30;
    fixture_within(cost_gemm_s(&accelerator, &gemm), multiply_s, 1e-6);
    accelerator.memory_bytes_per_s = 1e9;
    fixture_within(cost_gemm_s(&accelerator, &gemm), streamed / 1e9, 1e-2);
    accelerator.matrix_unit = 0;
    fixture_within(cost_gemm_s(&accelerator, &gemm), 3 * 2.0 * 1024 * 1024 / 1e9, 1e-6);
}

/* Rows of experts as they come: 63 of 64 groups share their first tile of 512 rows with the one before; 1,408 columns are two
 * tiles of 1,024. Equal groups are one batch. */
static void test_grouped_tiles(void)
{
    SpecAccelerator accelerator = fixture_round();
    accelerator.generation = *spec_generation("other");
    accelerator.matrix_unit = 128;
    accelerator.l2_bytes = 1 << 20;
    accelerator.memory_bytes_per_s = 1e30;
    accelerator.model.gemm_shared = (SpecGemmShared){.memory_frac = 1, .overlap_loss_frac = 0.5};
    accelerator.model.gemm[SPEC_BF16] =
        (SpecGemmModel){.peak_frac = 1, .backward_weight_frac = 1, .throttle_s = 1};
    CostGemm gemm = {.m = 1024, .n = 1408, .k = 2048, .groups = 64, .dtype = SPEC_BF16};
    const double even_s = cost_gemm_s(&accelerator, &gemm);
    gemm.row_deviation = 10;
    fixture_within(cost_gemm_s(&accelerator, &gemm), even_s * (1 + 0.5 * 63 / 64) * 2048 / 1408, 1e-6);
    gemm = (CostGemm){.m = 2048,
                      .n = 1408,
                      .k = 1024,
                      .groups = 64,
                      .dtype = SPEC_BF16,
                      .row_deviation = 10,
                      .layout = COST_LAYOUT_BACKWARD_WEIGHT};
    fixture_within(cost_gemm_s(&accelerator, &gemm), even_s * (1 + 0.5 * 63 / 64) * 2048 / 1408, 1e-6);
}

/* The row-wise kernel has two of the library's tiles and never splits a sum: it is never faster, takes the same where
 * 128 x 128 is the library's best, and 128 outputs of a long sum leave most SMs idle. */
static void test_rowwise(void)
{
    static const double SIZES[][3] = {
        {4096, 4096, 4096}, {98304, 1792, 4096}, {4096, 128, 98304}, {1792, 4096, 98304}, {512, 640, 8192}};
    const SpecAccelerator h100 = fixture_preset("h100-sxm5-80gb");
    for (size_t i = 0; i < G_N_ELEMENTS(SIZES); i++) {
        CostGemm gemm = {
            .m = SIZES[i][0], .n = SIZES[i][1], .k = SIZES[i][2], .groups = 1, .dtype = SPEC_FP8};
        const double library_s = cost_gemm_s(&h100, &gemm);
        gemm.rowwise = true;
        g_assert_cmpfloat(cost_gemm_s(&h100, &gemm), >=, library_s * (1 - 1e-12));
    }
    CostGemm few = {.m = 4096, .n = 128, .k = 98304, .groups = 1, .dtype = SPEC_FP8};
    const double split_s = cost_gemm_s(&h100, &few);
    few.rowwise = true;
    g_assert_cmpfloat(cost_gemm_s(&h100, &few), >, 1.2 * split_s); /* 64 blocks on 132 SMs */
}

/* [Float8Padding]: bf16 products of odd k on an H100, TFLOP/s; others' rows and pieces of 4 and 8 bytes cost less. */
static void test_unaligned(void)
{
    static const double PUBLISHED[][4] = {{1023, 2512, 1029, 71.2},
                                          {2047, 8192, 3073, 115},
                                          {127, 12288, 4097, 86.8},
                                          {4095, 10000, 511, 94.8}};
    const SpecAccelerator h100 = fixture_preset("h100-sxm5-80gb"), v100 = fixture_preset("v100-sxm2-32gb");
    for (size_t i = 0; i < G_N_ELEMENTS(PUBLISHED); i++) {
        const double *row = PUBLISHED[i];
        const CostGemm gemm = {
            .m = row[0], .n = row[1], .k = row[2], .groups = 1, .dtype = SPEC_BF16, .align = 1};
        fixture_within(rate(&h100, gemm) / 1e12, row[3], 0.25);
    }
    CostGemm head = square(8192, SPEC_BF16);
    double before = rate(&h100, head);
    for (int align = 4; align >= 1; align /= 2) {
        head.align = align;
        g_assert_cmpfloat(rate(&h100, head), <, before);
        before = rate(&h100, head);
    }
    g_assert_cmpfloat(before, <, 120e12);
    CostGemm other = square(8192, SPEC_FP16);
    const CostGemm wide = square(8192, SPEC_FP32);
    g_assert_cmpfloat(rate(&v100, other), >, 4 * rate(&v100, wide));
    other.align = 1;
    g_assert_cmpfloat(rate(&v100, other), ==, rate(&v100, wide));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/gemm/one-wave-by-hand", test_one_wave_by_hand);
    g_test_add_func("/gemm/memory-roof", test_memory_roof);
    g_test_add_func("/gemm/overlap", test_overlap);
    g_test_add_func("/gemm/throttle", test_throttle);
    g_test_add_func("/gemm/drawn-rows", test_drawn_rows);
    g_test_add_func("/gemm/monotone", test_monotone);
    g_test_add_func("/gemm/limits", test_limits);
    g_test_add_func("/gemm/fallback", test_fallback);
    g_test_add_func("/gemm/batched", test_batched);
    g_test_add_func("/gemm/published", test_published);
    g_test_add_func("/gemm/arrays", test_arrays);
    g_test_add_func("/gemm/grouped-tiles", test_grouped_tiles);
    g_test_add_func("/gemm/rowwise", test_rowwise);
    g_test_add_func("/gemm/unaligned", test_unaligned);
    return g_test_run();
}
