/* tests/unit/plots/test_plots.c - the arithmetic behind the plots; the pictures themselves are drawn in tests/cli. */
#include <math.h>

#include "plots/plots.h"
#include "spec/load.h"

/* Whatever the ranks did, losses and MFU make up the peak. */
static void test_losses_add_up(void)
{
    for (int round = 0; round < 200; round++) {
        SimRankResult ranks[5] = {{.end_ps = 0}};
        Report report = {.step_ps = 0};
        const int64_t step_ps = g_test_rand_int_range(1000, G_MAXINT32);
        for (int rank = 0; rank < 5; rank++) {
            int64_t left = step_ps;
            for (int part = 0; part < SIM_PART_COUNT; part++) {
                ranks[rank].part_ps[part] = left / g_test_rand_int_range(1, 6);
                left -= ranks[rank].part_ps[part];
            }
            ranks[rank].idle_ps = left;
        }
        report.step_ps = step_ps;
        report.mfu = g_test_rand_double_range(0.0, 0.9);
        report.result.ranks = 5;
        report.result.rank = ranks;
        PlotLoss losses[PLOT_LOSS_COUNT];
        plot_losses(&report, losses);
        double sum = report.mfu;
        for (int i = 0; i < PLOT_LOSS_COUNT; i++)
            sum += losses[i].frac;
        g_assert_cmpfloat(fabs(sum - 1.0), <, 1e-12);
    }
}

/* Two ranks, by hand: compute 60 and 40 of 100, tensor comm 10 on one, MFU 30 %. */
static void test_losses_by_hand(void)
{
    SimRankResult ranks[2] = {{.idle_ps = 40}, {.idle_ps = 50}};
    ranks[0].part_ps[SIM_PART_COMPUTE] = 60;
    ranks[1].part_ps[SIM_PART_COMPUTE] = 40;
    ranks[1].part_ps[SIM_PART_TENSOR_COMM] = 10;
    const Report report = {.step_ps = 100, .mfu = 0.3, .result = {.ranks = 2, .rank = ranks}};
    PlotLoss losses[PLOT_LOSS_COUNT];
    plot_losses(&report, losses);
    for (int i = 0; i < PLOT_LOSS_COUNT; i++) {
        const double expected = g_str_equal(losses[i].label, "kernel loss")   ? 0.2
                                : g_str_equal(losses[i].label, "tensor comm") ? 0.05
                                : g_str_equal(losses[i].label, "bubble")      ? 0.45
                                                                              : 0.0;
        g_assert_cmpfloat(fabs(losses[i].frac - expected), <, 1e-12);
    }
}

/* Utilisation over time: a GPU that waits for the host's optimizer is busy for less of the step; shares stay within 0 and 1,
 * and their mean is what the parts of the step say. */
static void test_busy(void)
{
    enum { BINS = 97 };
    static const char *const schemes[] = {"none", "zero-offload", "superoffload", "stronghold"};
    double means[G_N_ELEMENTS(schemes)] = {0};
    for (gsize i = 0; i < G_N_ELEMENTS(schemes); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
        Report report;
        double values[PLOT_BUSY_COUNT][BINS], *busy[PLOT_BUSY_COUNT];
        g_autofree char *set = g_strdup_printf("offload.scheme=%s", schemes[i]);
        g_autofree char *path =
            g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "zero_offload_10b_v100.json", NULL);
        const ReportOptions options = {.record = SIM_RECORD_SPANS};
        spec_load_file(path, (const char *const[]){set, NULL}, false, spec, NULL, &error);
        g_assert_no_error(error);
        report_run(spec, NULL, &options, arena, &report, &error);
        g_assert_no_error(error);
        for (int row = 0; row < PLOT_BUSY_COUNT; row++)
            busy[row] = values[row];
        plot_busy(&report, BINS, busy);
        for (int bin = 0; bin < BINS; bin++) {
            for (int row = 0; row < PLOT_BUSY_COUNT; row++)
                g_assert_true(values[row][bin] >= 0 && values[row][bin] <= 1);
            means[i] += values[PLOT_BUSY_GPU][bin] / BINS;
        }
        const double parts = (double)(report.part_ps[SIM_PART_COMPUTE] + report.part_ps[SIM_PART_RECOMPUTE]) +
                             (i == 0 ? (double)report.part_ps[SIM_PART_OPTIMIZER] : 0);
        g_assert_cmpfloat_with_epsilon(means[i], parts / (double)report.result.end_ps, 0.01);
        orr_arena_free(arena);
    }
    g_assert_cmpfloat(means[0], >, 0.95);
    g_assert_cmpfloat(means[1], <, 0.85 * means[0]);
    g_assert_cmpfloat(means[2], >, means[1]);
    g_assert_cmpfloat(means[3], >, means[1]);
}

/* Disks have rows of their own: where states lie there, reads, updates and writes of one tile after the other fill what the
 * passes leave of the step. */
static void test_busy_disks(void)
{
    enum { BINS = 200 };
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    Report report;
    double values[PLOT_BUSY_COUNT][BINS], *busy[PLOT_BUSY_COUNT];
    g_autofree char *path =
        g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "zero_infinity_1t_512.json", NULL);
    const ReportOptions options = {.record = SIM_RECORD_SPANS};
    spec_load_file(path, NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    for (int row = 0; row < PLOT_BUSY_COUNT; row++)
        busy[row] = values[row];
    plot_busy(&report, BINS, busy);
    const int late = BINS - 10; /* behind the passes */
    g_assert_cmpfloat(values[PLOT_BUSY_GPU][late], ==, 0);
    g_assert_cmpfloat(values[PLOT_BUSY_READ][late], >, 0.2);
    g_assert_cmpfloat(values[PLOT_BUSY_WRITE][late], >, 0.2);
    g_assert_cmpfloat_with_epsilon(
        values[PLOT_BUSY_READ][late] + values[PLOT_BUSY_WRITE][late] + values[PLOT_BUSY_HOST][late], 1, 0.01);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/losses/add-up", test_losses_add_up);
    g_test_add_func("/plots/losses/by-hand", test_losses_by_hand);
    g_test_add_func("/plots/busy", test_busy);
    g_test_add_func("/plots/busy-disks", test_busy_disks);
    return g_test_run();
}
