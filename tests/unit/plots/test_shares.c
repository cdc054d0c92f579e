/* tests/unit/plots/test_shares.c - timelines as shares of each moment: what passes take is kept, and steady states are level. */
#include <math.h>

#include "plots/data.h"

/* Lane 0: 400 times a forward of 1 and a backward of 2, then as long idle; lane 1: idle, then the same. */
static PlotTimeline timeline_new(const PlotKind kinds[2])
{
    PlotTimeline timeline = {.csv = g_string_new(NULL),
                             .boxes = g_array_new(FALSE, FALSE, sizeof(PlotBox)),
                             .lanes = 2,
                             .lane_step = 1,
                             .end = 2400,
                             .kind_count = 2,
                             .kinds = {&kinds[0], &kinds[1]}};
    for (int i = 0; i < 800; i++) {
        const double start = 3.0 * i;
        const PlotBox boxes[2] = {{&kinds[0], i / 400, true, start, start + 1},
                                  {&kinds[1], i / 400, true, start + 1, start + 3}};
        const PlotBox aside = {&kinds[0], 0, false, start, start + 3}; /* no compute: in no share */
        g_array_append_vals(timeline.boxes, boxes, 2);
        g_array_append_val(timeline.boxes, aside);
    }
    return timeline;
}

static void test_shares(void)
{
    enum { COLUMNS = 80 };
    const PlotKind kinds[2] = {{.label = "forward"}, {.label = "backward"}};
    PlotTimeline timeline = timeline_new(kinds);
    PlotShares shares = plot_shares(&timeline, COLUMNS);
    double total[2][2] = {{0}};
    for (int lane = 0; lane < 2; lane++)
        for (int column = 0; column < COLUMNS; column++)
            for (int kind = 0; kind < 2; kind++) {
                double low = 0, high = 0;
                plot_shares_band(&shares, lane, kind, column, &low, &high);
                g_assert_true(low >= 0 && high <= 1 + 1e-5);
                total[lane][kind] += (high - low) / COLUMNS;
                if ((column / 40 == lane) && column % 40 > 3 && column % 40 < 36) { /* steady: 1/3 and 2/3 */
                    g_assert_cmpfloat_with_epsilon(low, kind == 0 ? 0.0 : 1.0 / 3, 0.02);
                    g_assert_cmpfloat_with_epsilon(high, kind == 0 ? 1.0 / 3 : 1.0, 0.02);
                }
            }
    for (int lane = 0; lane < 2; lane++)
        for (int kind = 0; kind < 2; kind++)
            g_assert_cmpfloat_with_epsilon(total[lane][kind], (kind + 1) / 6.0, 0.005);
    int columns[COLUMNS];
    const int points = plot_shares_points(&shares, 0, 0, columns);
    g_assert_true(points > 2 && points < 20); /* what is level needs none */
    g_assert_cmpint(columns[0], ==, 0);
    g_assert_cmpint(columns[points - 1], ==, COLUMNS - 1);
    g_assert_true(plot_crowded(&timeline)); /* 2,400 boxes in two lanes */
    timeline.lanes = 3;
    g_assert_false(plot_crowded(&timeline));
    plot_shares_clear(&shares);
    plot_timeline_clear(&timeline);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/shares", test_shares);
    return g_test_run();
}
