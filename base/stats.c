/* base/stats.c - see stats.h. Tested: unit/base/test_stats.c */
#include "base/stats.h"

#include <glib.h>
#include <math.h>
#include <stdlib.h>

static int rising(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

void orr_stats_sort(double *values, size_t count)
{
    if (count > 1)
        qsort(values, count, sizeof *values, rising);
}

size_t orr_stats_rank(size_t count, double frac)
{
    return (size_t)CLAMP(ceil(frac * (double)count) - 1, 0, (double)(count - 1));
}

double orr_stats_quantile(const double *sorted, size_t count, double frac)
{
    if (count == 0)
        return NAN;
    const double at = frac * (double)(count - 1);
    const size_t low = (size_t)at, high = MIN(low + 1, count - 1);
    const double share = at - (double)low;
    return (1 - share) * sorted[low] + share * sorted[high];
}

double orr_stats_mean(const double *values, size_t count)
{
    double mean = 0;
    for (size_t i = 0; i < count; i++)
        mean += (values[i] - mean) / (double)(i + 1);
    return mean;
}

double orr_stats_mean_error(const double *values, size_t count, double mean)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += (values[i] - mean) * (values[i] - mean);
    return count > 1 ? sqrt(sum / (double)(count - 1) / (double)count) : 0;
}

OrrSpread orr_stats_spread(double *values, size_t count)
{
    const double mean = orr_stats_mean(values, count);
    orr_stats_sort(values, count);
    return (OrrSpread){.mean = mean,
                       .p10 = values[orr_stats_rank(count, .1)],
                       .p50 = values[orr_stats_rank(count, .5)],
                       .p90 = values[orr_stats_rank(count, .9)],
                       .most = values[count - 1]};
}
