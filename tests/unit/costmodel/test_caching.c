/* unit/costmodel/test_caching.c - the caching allocator: segments and blocks by hand, and what must hold of any requests. */
#include "costmodel/caching.h"

#include "base/draws.h"

#define MIB ((int64_t)1 << 20)

/* Below 10 MiB a segment of 20, then whole units of 2; up to 1 MiB none. */
static void test_segments(void)
{
    CostCaching caching;
    cost_caching_init(&caching);
    g_assert_cmpint(cost_caching_take(&caching, MIB), ==, -1);
    g_assert_cmpint((int)caching.reserved_bytes, ==, 0);
    const int small = cost_caching_take(&caching, 3 * MIB);
    g_assert_cmpint(caching.reserved_bytes, ==, 20 * MIB);
    const int next = cost_caching_take(&caching, 9 * MIB); /* from what is left of it */
    g_assert_cmpint(caching.reserved_bytes, ==, 20 * MIB);
    const int large = cost_caching_take(&caching, 11 * MIB);
    g_assert_cmpint(caching.reserved_bytes, ==, 32 * MIB);
    g_assert_cmpint(caching.used_bytes, ==,
                    (3 + 9 + 12) * MIB); /* 1 MiB is too little to be a block of its own */
    cost_caching_give(&caching, -1);
    cost_caching_give(&caching, small);
    cost_caching_give(&caching, large);
    cost_caching_give(&caching, next);
    g_assert_cmpint(caching.used_bytes, ==, 0);
    g_assert_cmpint(caching.reserved_bytes, ==, 32 * MIB);
    g_assert_cmpuint(caching.free_list->len, ==, 2); /* neighbours have joined */
    cost_caching_clear(&caching);
}

/* The smallest block that holds it; one that is a little larger than all of them asks the GPU. */
static void test_best_fit(void)
{
    CostCaching caching;
    cost_caching_init(&caching);
    const int wide = cost_caching_take(&caching, 40 * MIB), close = cost_caching_take(&caching, 30 * MIB);
    cost_caching_give(&caching, wide);
    cost_caching_give(&caching, close);
    g_assert_cmpint(cost_caching_take(&caching, 29 * MIB), ==, close);
    g_assert_cmpint(caching.reserved_bytes, ==, 70 * MIB);
    g_assert_cmpint(cost_caching_take(&caching, 42 * MIB), !=, wide);
    g_assert_cmpint(caching.reserved_bytes, ==, 112 * MIB);
    g_assert_cmpint(caching.peak_reserved_bytes, ==, 112 * MIB);
    cost_caching_clear(&caching);
}

/* Random requests: used and free bytes are all that is reserved; handed back, all blocks are whole segments again; the same
 * requests once more need nothing new. */
static void test_random(void)
{
    enum { LIVE = 24, ROUNDS = 3000 };
    for (uint64_t seed = 1; seed <= 20; seed++) {
        CostCaching caching;
        int live[LIVE];
        OrrDraws draws = orr_draws(seed, 0);
        guint segments = 0;
        cost_caching_init(&caching);
        for (int i = 0; i < LIVE; i++)
            live[i] = -1;
        for (int i = 0; i < ROUNDS; i++) {
            const int at = (int)(orr_draw(&draws) * LIVE);
            cost_caching_give(&caching, live[at]);
            const int64_t bytes = (int64_t)(orr_draw(&draws) * 64 * (double)MIB);
            const int64_t before = caching.used_bytes, reserved = caching.reserved_bytes;
            live[at] = cost_caching_take(&caching, bytes);
            g_assert_cmpint(caching.used_bytes - before, >=, live[at] >= 0 ? bytes : 0);
            g_assert_cmpint(caching.used_bytes - before, <=, live[at] >= 0 ? bytes + MIB + 512 : 0);
            segments += caching.reserved_bytes > reserved;
            int64_t idle = 0;
            for (guint k = 0; k < caching.free_list->len; k++) {
                const int block = g_array_index(caching.free_list, int, k);
                idle +=
                    *(const int64_t *)(const void *)(caching.blocks->data +
                                                     (gsize)block * g_array_get_element_size(caching.blocks));
            }
            g_assert_cmpint(caching.used_bytes + idle, ==, caching.reserved_bytes);
        }
        for (int i = 0; i < LIVE; i++)
            cost_caching_give(&caching, live[i]);
        g_assert_cmpint(caching.used_bytes, ==, 0);
        g_assert_cmpuint(caching.free_list->len, ==, segments);
        const int64_t reserved = caching.reserved_bytes;
        const int whole = cost_caching_take(&caching, 2 * MIB);
        cost_caching_give(&caching, whole);
        g_assert_cmpuint(caching.free_list->len, ==, segments);
        g_assert_cmpint(caching.reserved_bytes, ==, reserved);
        cost_caching_clear(&caching);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/caching/segments", test_segments);
    g_test_add_func("/caching/best-fit", test_best_fit);
    g_test_add_func("/caching/random", test_random);
    return g_test_run();
}
