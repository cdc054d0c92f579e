/* tests/unit/calibrate/test_calibrate_plan.c - what a sweep would measure, how long that takes, and how often what runs
 * beside what. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/fit/collectives.h"
#include "calibrate/measure/beside.h"
#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_kernels.h"
#include "tests/unit/calibrate_machine.h"
#include "costmodel/memory_bound.h"

static void test_points(void)
{
    Machine machine;
    machine_init(&machine);
    const CalStamp stamp = stamp_of(&machine);
    guint counts[2];
    for (int full = 0; full < 2; full++) {
        const CalSweepOptions options = {.full = full == 1, .output = "unused"};
        g_autoptr(GArray) points = cal_sweep_points(&stamp, &options);
        g_autoptr(GHashTable) ids = g_hash_table_new(g_str_hash, g_str_equal);
        bool seen[CAL_POINT_KIND_COUNT] = {false};
        for (guint i = 0; i < points->len; i++) {
            const CalPoint *point = &g_array_index(points, CalPoint, i);
            if (!g_hash_table_add(ids, (gpointer)point->id))
                g_error("two points are called \"%s\"", point->id);
            seen[point->kind] = true;
        }
        for (int kind = 0; kind < CAL_POINT_KIND_COUNT; kind++)
            g_assert_true(seen[kind]);
        counts[full] = points->len;
    }
    g_test_message("%u points quick, %u full", counts[0], counts[1]);
    g_assert_cmpuint(counts[0], <, 450); /* 0.2 s each, and two minutes: eight GPUs have the most */
    g_assert_cmpuint(counts[1], >, 2 * counts[0]);
    const CalSweepOptions only = {.full = true, .only = "all_gather", .output = "unused"};
    g_autoptr(GArray) some = cal_sweep_points(&stamp, &only);
    g_assert_cmpuint(some->len, >, 10);
    for (guint i = 0; i < some->len; i++)
        g_assert_nonnull(strstr(g_array_index(some, CalPoint, i).id, "all_gather"));
}

/* A product that lasts until the clocks give way, before the first point, after every 40 and after the last. */
static void test_probes(void)
{
    Machine machine;
    machine_init(&machine);
    const CalStamp stamp = stamp_of(&machine);
    const CalSweepOptions options = {.full = true, .output = "unused"};
    g_autoptr(GArray) points = cal_sweep_points(&stamp, &options);
    guint since = 0;
    for (guint i = 0; i < points->len; i++) {
        const CalPoint *point = &g_array_index(points, CalPoint, i);
        const bool probe = point->kind == CAL_POINT_DRIFT;
        since = probe ? 0 : since + 1;
        g_assert_cmpuint(since, <=, 40);
        g_assert_true(probe || (i > 0 && i + 1 < points->len));
        if (probe) /* 1.1 TFLOP: 1.5 ms on a Hopper GPU */
            g_assert_cmpfloat(2.0 * (double)(point->shape.m * point->shape.n * point->shape.k), >=, 1e12);
    }
}

/* Counts by times: two minutes and a quarter of an hour, on one GPU and on eight. */
static void test_estimate(void)
{
    Machine machine;
    machine_init(&machine);
    for (int gpus = 1; gpus <= 8; gpus += 7)
        for (int full = 0; full < 2; full++) {
            CalStamp stamp = stamp_of(&machine);
            stamp.gpus = gpus;
            const CalSweepOptions options = {.full = full == 1, .output = "unused"};
            g_autoptr(GArray) points = cal_sweep_points(&stamp, &options);
            const double seconds = cal_sweep_estimate_s(points, &options);
            g_test_message("%d GPUs, %s: %u points, %.0f s", gpus, full == 1 ? "full" : "quick", points->len,
                           seconds);
            g_assert_cmpfloat(seconds, <=, full == 1 ? 900 : 120);
            g_assert_cmpfloat(seconds, >=, points->len * cal_point_seconds(&options));
        }
}

/* A product of 1.5 ms that loses a fifth beside a collective of 0.12 ms, which then takes 0.18: played with the plan's counts,
 * the medians say so, and not that of the products that ran alone after the collectives had ended. */
static void test_beside(void)
{
    const double product_s = 1.5e-3, other_s = 0.12e-3, slow_product_s = product_s / 0.8,
                 slow_other_s = 0.18e-3;
    const CalBesidePlan plan = cal_beside_plan(product_s, other_s, 0.15, 200);
    g_assert_cmpint(plan.products, <=, 200);
    g_assert_cmpint(plan.others, <=, 200);
    const double all_others_s = plan.others * plan.inner * slow_other_s;
    g_autofree double *marks = g_new0(double, (gsize)plan.products + 1);
    for (int i = 0; i < plan.products; i++)
        marks[i + 1] = marks[i] + (marks[i] + slow_product_s <= all_others_s ? slow_product_s : product_s);
    fixture_within(cal_beside_median_s(marks, plan.products, 0, all_others_s), slow_product_s, 1e-9);
    g_assert_cmpfloat(all_others_s, >, 8 * slow_product_s);
    g_assert_cmpfloat(cal_beside_median_s(marks, plan.products, 1e9, 2e9), ==, 0);
}

/* A collective is never called more often than its seconds allow, beyond what a median needs: 8 GiB at 1 GB/s are two
 * repeats of one call, not fifteen. */
static void test_repeats(void)
{
    const double seconds = 0.2;
    for (double once_s = 1e-6; once_s < 600; once_s *= 1.3) {
        const CalRepeats repeats = cal_plan_repeats(once_s, seconds);
        g_assert_cmpint(repeats.inner, >=, 1);
        g_assert_cmpint(repeats.count, >=, 2);
        g_assert_cmpint(repeats.count, <=, CAL_MAX_SAMPLES);
        g_assert_cmpfloat(once_s * repeats.inner * repeats.count, <=,
                          fmax(4 * seconds, 2 * once_s) * (1 + 1e-9));
    }
    const CalRepeats slow = cal_plan_repeats(8.6, seconds);
    g_assert_cmpint(slow.inner * slow.count, ==, 2);
    const CalRepeats fast = cal_plan_repeats(20e-6, seconds);
    g_assert_cmpint(fast.inner, ==, 20);
    g_assert_cmpint(fast.count, ==, CAL_MAX_SAMPLES);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/sweep/points", test_points);
    g_test_add_func("/sweep/probes", test_probes);
    g_test_add_func("/sweep/estimate", test_estimate);
    g_test_add_func("/sweep/repeats", test_repeats);
    g_test_add_func("/sweep/beside", test_beside);
    return g_test_run();
}
