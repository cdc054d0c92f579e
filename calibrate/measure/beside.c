/* calibrate/measure/beside.c - see beside.h. */
#include "calibrate/measure/beside.h"

#include <math.h>

#include "calibrate/measure/sweep.h"

static int count_of(double window_s, double each_s, int most)
{
    const double count = each_s > 0 ? ceil(window_s / each_s) : CAL_BESIDE_LEAST;
    return (int)CLAMP(count, CAL_BESIDE_LEAST, most);
}

CalBesidePlan cal_beside_plan(double product_s, double other_s, double window_s, int most_events)
{
    const double needed_s = fmax(window_s, CAL_BESIDE_LEAST * fmax(product_s, other_s));
    CalBesidePlan plan = {.inner = 1};
    if (other_s > 0 && needed_s / other_s > most_events)
        plan.inner = (int)fmin(ceil(needed_s / other_s / most_events), 1e4);
    plan.others = count_of(needed_s, other_s * plan.inner, most_events);
    plan.products = count_of(plan.others * plan.inner * other_s, product_s, most_events);
    return plan;
}

double cal_beside_median_s(const double *marks_s, int count, double from_s, double until_s)
{
    g_autofree double *lengths = g_new(double, (gsize)MAX(count, 1));
    int inside = 0;
    for (int i = 0; i < count; i++)
        if (marks_s[i] >= from_s && marks_s[i + 1] <= until_s)
            lengths[inside++] = marks_s[i + 1] - marks_s[i];
    return inside > 0 ? cal_summarise(lengths, inside).median_s : 0;
}
