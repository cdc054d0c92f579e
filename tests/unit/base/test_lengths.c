/* unit/base/test_lengths.c - distributions of lengths: moments, the longest of several, rows that texts are packed into. */
#include "base/lengths.h"

#include <glib.h>
#include <math.h>

static void near(double value, double want, double frac)
{
    g_assert_cmpfloat_with_epsilon(value, want, frac * fabs(want));
}

static void test_fixed(void)
{
    OrrLengths lengths;
    orr_lengths_fixed(700, &lengths);
    g_assert_cmpfloat(orr_lengths_mean(&lengths), ==, 700);
    g_assert_cmpfloat(orr_lengths_square(&lengths), ==, 490000);
    g_assert_cmpfloat(orr_lengths_longest(&lengths, 1000), ==, 700);
    g_assert_cmpfloat(orr_lengths_longest_variance(&lengths, 8), ==, 0);
    orr_lengths_log_normal(700, 0, 0, &lengths);
    g_assert_cmpfloat(orr_lengths_longest(&lengths, 16), ==, 700);
    orr_lengths_log_normal(700, 0, 512, &lengths);
    g_assert_cmpfloat(orr_lengths_mean(&lengths), ==, 512);
}

/* E[l^2] = mean^2 exp(sd^2); the longer of two has mean (1 + erf(sd / 2)) times as large. */
static void test_log_normal(void)
{
    for (double sd = 0.25; sd < 1.6; sd *= 2) {
        OrrLengths lengths, cut;
        orr_lengths_log_normal(1000, sd, 0, &lengths);
        near(orr_lengths_mean(&lengths), 1000, 1e-9);
        near(orr_lengths_square(&lengths), 1e6 * exp(sd * sd), 4e-3);
        near(orr_lengths_longest(&lengths, 2), 1000 * (1 + erf(sd / 2)), 2e-3);
        near(orr_lengths_longest_variance(&lengths, 1), 1e6 * (exp(sd * sd) - 1), 2e-2);
        double before = 0;
        for (double draws = 1; draws < 2000; draws *= 2) {
            g_assert_cmpfloat(orr_lengths_longest(&lengths, draws), >, before);
            before = orr_lengths_longest(&lengths, draws);
        }
        orr_lengths_log_normal(1000, sd, 2000, &cut);
        g_assert_cmpfloat(orr_lengths_mean(&cut), <, 1000);
        g_assert_cmpfloat(orr_lengths_longest(&cut, 1e6), <=, 2000);
        near(orr_lengths_longest(&cut, 1e6), 2000, 1e-3);
        /* those up to 800 alone: mean and share of a log-normal cut there */
        const double end = log(0.8) / sd + sd / 2;
        g_assert_true(orr_lengths_log_normal_below(1000, sd, 800, &cut));
        near(orr_lengths_mean(&cut), 1000 * erfc((sd - end) / sqrt(2)) / erfc(-end / sqrt(2)), 1e-6);
        g_assert_cmpfloat(cut.tokens[cut.count - 1], <=, 800);
        g_assert_cmpfloat(cut.tokens[cut.count - 1], >, 780);
    }
    OrrLengths none;
    g_assert_false(orr_lengths_log_normal_below(1000, 0, 800, &none));
    g_assert_false(orr_lengths_log_normal_below(1000, 0.1, 10, &none));
}

/* Of 100 and 300, equally likely: the longest of two is 300 in three of four. */
static void test_histogram(void)
{
    static const double tokens[] = {100, 300}, weight[] = {5, 5};
    OrrLengths lengths;
    orr_lengths_histogram(tokens, weight, 2, 0, &lengths);
    near(orr_lengths_mean(&lengths), 200, 1e-12);
    near(orr_lengths_square(&lengths), 50000, 1e-12);
    near(orr_lengths_longest(&lengths, 2), 250, 1e-12);
    near(orr_lengths_quantile(&lengths, 0.5), 100, 1e-12);
    near(orr_lengths_quantile(&lengths, 0.51), 300, 1e-12);
    near(orr_lengths_longest_variance(&lengths, 1), 10000, 1e-12);
    orr_lengths_histogram(tokens, weight, 2, 200, &lengths);
    near(orr_lengths_mean(&lengths), 150, 1e-12);
    orr_lengths_histogram(tokens, weight, 2, 0, &lengths);
    g_assert_true(orr_lengths_drop(&lengths, 200));
    near(orr_lengths_mean(&lengths), 100, 1e-12);
    g_assert_false(orr_lengths_drop(&lengths, 50));
}

/* Halves fill rows, three fifths leave two fifths of each empty, 0.6 and 0.4 fill them again. */
static void test_packed(void)
{
    static const double pair[] = {400, 600}, even[] = {1, 1};
    OrrLengths lengths;
    orr_lengths_fixed(512, &lengths);
    near(orr_lengths_packed(&lengths, 1024), 1, 1e-12);
    orr_lengths_fixed(600, &lengths);
    near(orr_lengths_packed(&lengths, 1000), 0.6, 1e-12);
    orr_lengths_histogram(pair, even, 2, 0, &lengths);
    near(orr_lengths_packed(&lengths, 1000), 1, 2e-3);
    orr_lengths_fixed(5000, &lengths);
    near(orr_lengths_packed(&lengths, 1000), 1, 1e-12);
    orr_lengths_log_normal(400, 1, 4096, &lengths);
    g_assert_cmpfloat(orr_lengths_packed(&lengths, 4096), >, 0.97); /* many short ones fill every gap */
    orr_lengths_fixed(1, &lengths); /* a text of one token takes one token of a row of 4,096 */
    near(orr_lengths_packed(&lengths, 4096), 1, 1e-12);
    orr_lengths_fixed(3, &lengths);
    near(orr_lengths_packed(&lengths, 9), 1, 1e-3); /* three thirds of a row */
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/lengths/fixed", test_fixed);
    g_test_add_func("/lengths/log-normal", test_log_normal);
    g_test_add_func("/lengths/histogram", test_histogram);
    g_test_add_func("/lengths/packed", test_packed);
    return g_test_run();
}
