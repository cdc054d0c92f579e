/* tests/unit/base/test_stats.c - order, the two quantiles, mean and spread, of values whose answers are known by hand. */
#include <glib.h>
#include <math.h>

#include "base/stats.h"

static void test_sort(void)
{
    double values[] = {3, -1, INFINITY, 2, 2};
    const double sorted[] = {-1, 2, 2, 3, INFINITY};
    orr_stats_sort(values, 5);
    for (int i = 0; i < 5; i++)
        g_assert_true(values[i] >= sorted[i] && values[i] <= sorted[i]);
    orr_stats_sort(NULL, 0);
}

/* The smallest index that leaves at least `frac` at or below it. */
static void test_rank(void)
{
    for (size_t count = 1; count <= 200; count++)
        for (int percent = 0; percent <= 100; percent++) {
            const size_t rank = orr_stats_rank(count, percent / 100.0);
            g_assert_cmpuint(rank, <, count);
            g_assert_cmpfloat((double)(rank + 1), >=, percent / 100.0 * (double)count);
            g_assert_true(rank == 0 || (double)rank < percent / 100.0 * (double)count);
        }
    g_assert_cmpuint(orr_stats_rank(10, .9), ==, 8);
    g_assert_cmpuint(orr_stats_rank(10, .5), ==, 4);
}

static void test_quantile(void)
{
    const double values[] = {1, 2, 4, 8};
    g_assert_cmpfloat(orr_stats_quantile(values, 4, 0), ==, 1);
    g_assert_cmpfloat(orr_stats_quantile(values, 4, .5), ==, 3);
    g_assert_cmpfloat(orr_stats_quantile(values, 4, 1), ==, 8);
    g_assert_cmpfloat(orr_stats_quantile(values, 1, .9), ==, 1);
    g_assert_cmpfloat_with_epsilon(orr_stats_quantile(values, 4, .9), 6.8, 1e-12);
    g_assert_true(isnan(orr_stats_quantile(values, 0, .5)));
}

static void test_mean(void)
{
    const double values[] = {2, 4, 4, 4, 5, 5, 7, 9};
    g_assert_cmpfloat(orr_stats_mean(values, 8), ==, 5);
    g_assert_cmpfloat_with_epsilon(orr_stats_mean_error(values, 8, 5), sqrt(32.0 / 7 / 8), 1e-15);
    g_assert_cmpfloat(orr_stats_mean(values, 0), ==, 0);
    g_assert_cmpfloat(orr_stats_mean_error(values, 1, 2), ==, 0);
}

static void test_spread(void)
{
    double values[20];
    for (int i = 0; i < 20; i++)
        values[i] = 20 - i;
    const OrrSpread spread = orr_stats_spread(values, 20);
    g_assert_cmpfloat_with_epsilon(spread.mean, 10.5, 1e-12);
    g_assert_cmpfloat(spread.p10, ==, 2);
    g_assert_cmpfloat(spread.p50, ==, 10);
    g_assert_cmpfloat(spread.p90, ==, 18);
    g_assert_cmpfloat(spread.most, ==, 20);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/stats/sort", test_sort);
    g_test_add_func("/stats/rank", test_rank);
    g_test_add_func("/stats/quantile", test_quantile);
    g_test_add_func("/stats/mean", test_mean);
    g_test_add_func("/stats/spread", test_spread);
    return g_test_run();
}
