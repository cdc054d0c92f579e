/* tests/unit/base/test_draws.c - draws are those of their published generators, and evenly spread. */
#include <glib.h>
#include <math.h>

#include "base/draws.h"

/* The reference's first outputs from state 0: state grows by the golden ratio before each.   Source: Vigna, splitmix64.c */
static void test_mix(void)
{
    const uint64_t golden = UINT64_C(0x9E3779B97F4A7C15);
    g_assert_cmphex(orr_mix(0), ==, UINT64_C(0xE220A8397B1DCDAF));
    g_assert_cmphex(orr_mix(golden), ==, UINT64_C(0x6E789E6AA1B965F4));
    g_assert_cmphex(orr_mix(2 * golden), ==, UINT64_C(0x06C45D188009454F));
}

static void test_streams(void)
{
    OrrDraws a = orr_draws(1, 2), again = orr_draws(1, 2), other = orr_draws(1, 3);
    for (int i = 0; i < 100; i++) {
        const double x = orr_draw(&a), same = orr_draw(&again), unlike = orr_draw(&other);
        g_assert_true(x > 0 && x < 1 && x >= same && x <= same);
        g_assert_true(x < unlike || x > unlike);
    }
}

/* Mean 1/2 and variance 1/12 of any stream, within six deviations; likewise over streams. */
static void test_draw_at(void)
{
    enum { DRAWS = 40000 };
    for (int across = 0; across < 2; across++) {
        double sum = 0, squares = 0;
        for (uint64_t i = 0; i < DRAWS; i++) {
            const double x = across ? orr_draw_at(7, i, 3) : orr_draw_at(7, 3, i);
            g_assert_true(x > 0 && x < 1);
            sum += x;
            squares += (x - .5) * (x - .5);
        }
        g_assert_cmpfloat_with_epsilon(sum / DRAWS, .5, 6 * sqrt(1.0 / 12 / DRAWS));
        g_assert_cmpfloat_with_epsilon(squares / DRAWS, 1.0 / 12, 6 * sqrt(1.0 / 180 / DRAWS));
    }
}

/* From state 0 the constant itself comes first. */
static void test_lcg(void)
{
    OrrLcg lcg = {0};
    int seen[6] = {0};
    g_assert_cmpint(orr_lcg_below(&lcg, 1 << 30), ==,
                    (int)((UINT64_C(1442695040888963407) >> 33) % (UINT64_C(1) << 30)));
    for (int i = 0; i < 6000; i++)
        seen[orr_lcg_below(&lcg, 6)]++;
    for (int i = 0; i < 6; i++)
        g_assert_true(seen[i] > 800 && seen[i] < 1200);
    g_assert_cmpint(orr_lcg_below(&lcg, 1), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/draws/mix", test_mix);
    g_test_add_func("/draws/streams", test_streams);
    g_test_add_func("/draws/at", test_draw_at);
    g_test_add_func("/draws/lcg", test_lcg);
    return g_test_run();
}
