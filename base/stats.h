/* base/stats.h - what many values come to: their order, quantiles, mean and spread.
 *
 * There are two definitions of a quantile, each for its own kind of values:
 * - Nearest rank: the smallest value that at least `frac` of all do not exceed. Simulated times use it, since the answer is
 *   then a step, a job or a replica that occurred, in whole picoseconds.
 * - Linear: position frac * (count - 1) between the sorted values. Errors and measured times use it, since they are
 *   often few: the nearest rank's 90th percentile of ten or fewer values says the same of nine as of ten.
 */
#ifndef ORR_BASE_STATS_H
#define ORR_BASE_STATS_H

#include <stddef.h>

/* Rising; values must not be NaN. */
void orr_stats_sort(double *values, size_t count);

/* Index of the nearest rank among `count` sorted values, count >= 1 and frac in 0..1. */
size_t orr_stats_rank(size_t count, double frac);

/* Linear, of sorted values, frac in 0..1; NaN where there are none. */
double orr_stats_quantile(const double *sorted, size_t count, double frac);

/* 0 where there are none. */
double orr_stats_mean(const double *values, size_t count);

/* Deviation that the mean of independent values has, `mean` being theirs; 0 for one value. */
double orr_stats_mean_error(const double *values, size_t count, double mean);

/* p10, p50 and p90 are nearest ranks. */
typedef struct OrrSpread {
    double mean, p10, p50, p90, most;
} OrrSpread;

/* Sorts `values`; count >= 1. */
OrrSpread orr_stats_spread(double *values, size_t count);

#endif
