/* tests/unit/test_plots.c - the arithmetic behind the plots; the pictures themselves are drawn in tests/cli. */
#include <math.h>

#include "plots/plots.h"

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

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/losses/add-up", test_losses_add_up);
    g_test_add_func("/plots/losses/by-hand", test_losses_by_hand);
    return g_test_run();
}
