/* plots/shares.c - a timeline with too many passes to tell apart: what each moment of a rank's compute goes into, as shares.
 *
 * The step is cut into equal columns. A column's value is the share of it in which boxes of a kind lie, smoothed twice over
 * its neighbours: passes of a steady state beat with the columns otherwise. Tested: unit/plots/test_shares.c
 */
#include <math.h>

#include "plots/data.h"
#include "plots/driver.h"

enum { MOST_BOXES = 6000, MOST_BOXES_A_LANE = 1000 };

bool plot_crowded(const PlotTimeline *timeline)
{
    const int boxes = (int)timeline->boxes->len;
    return boxes > MOST_BOXES || boxes > MOST_BOXES_A_LANE * timeline->lanes;
}

static float *cell(const PlotShares *shares, int lane, int column)
{
    return shares->share + ((gsize)lane * (gsize)shares->columns + (gsize)column) * (gsize)shares->kinds;
}

static void add_box(const PlotShares *shares, const PlotTimeline *timeline, const PlotBox *box)
{
    const double from = box->start / timeline->end * shares->columns,
                 to = box->end / timeline->end * shares->columns;
    int kind = 0;
    while (timeline->kinds[kind] != box->kind)
        kind++;
    for (int column = (int)from; column < shares->columns && column < to; column++)
        cell(shares, box->lane, column)[kind] += (float)(fmin(to, column + 1) - fmax(from, column));
}

/* The mean of each column and its neighbours; at the ends, of those that there are. */
static void smooth(const PlotShares *shares, int lane, int kind)
{
    float before = 0;
    for (int column = 0; column < shares->columns; column++) {
        const float here = cell(shares, lane, column)[kind];
        const bool last = column + 1 == shares->columns;
        const float sum = before + here + (last ? 0 : cell(shares, lane, column + 1)[kind]);
        cell(shares, lane, column)[kind] = sum / (float)(3 - (column == 0) - last);
        before = here;
    }
}

PlotShares plot_shares(const PlotTimeline *timeline, int columns)
{
    PlotShares shares = {.lanes = timeline->lanes, .columns = columns, .kinds = timeline->kind_count};
    shares.share = g_new0(float, (gsize)shares.lanes *(gsize)columns *(gsize)shares.kinds);
    for (guint i = 0; i < timeline->boxes->len; i++) {
        const PlotBox *box = &g_array_index(timeline->boxes, PlotBox, i);
        if (box->compute)
            add_box(&shares, timeline, box);
    }
    for (int i = 0; i < 2 * shares.lanes * shares.kinds; i++)
        smooth(&shares, i / 2 / shares.kinds, i / 2 % shares.kinds);
    return shares;
}

void plot_shares_clear(PlotShares *shares)
{
    g_free(shares->share);
}

void plot_shares_band(const PlotShares *shares, int lane, int kind, int column, double *ret_low,
                      double *ret_high)
{
    const float *share = cell(shares, lane, column);
    double low = 0;
    for (int i = 0; i < kind; i++)
        low += share[i];
    *ret_low = low;
    *ret_high = low + share[kind];
}

int plot_shares_points(const PlotShares *shares, int lane, int kind, int *ret_columns)
{
    const double near = 0.01; /* of a lane's height: not seen */
    double kept[2] = {-1, -1};
    bool any = false;
    int count = 0;
    for (int column = 0; column < shares->columns; column++) {
        double here[2], next[2];
        plot_shares_band(shares, lane, kind, column, &here[0], &here[1]);
        plot_shares_band(shares, lane, kind, MIN(column + 1, shares->columns - 1), &next[0], &next[1]);
        any = any || here[1] - here[0] > near;
        const bool level = fabs(here[0] - kept[0]) < near && fabs(here[1] - kept[1]) < near &&
                           fabs(next[0] - kept[0]) < near && fabs(next[1] - kept[1]) < near;
        if (level && column + 1 < shares->columns)
            continue;
        ret_columns[count++] = column;
        kept[0] = here[0];
        kept[1] = here[1];
    }
    return any ? count : 0;
}
