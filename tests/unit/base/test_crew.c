/* tests/unit/base/test_crew.c - everything is done once, on any number of threads, and a stop leaves a whole beginning. */
#include <glib.h>
#include <string.h>

#include "base/crew.h"

enum { COUNT = 1000 };

typedef struct Counts {
    gint done[COUNT], all, stop_after; /* atomic */
} Counts;

static void count_up(int index, void *data)
{
    Counts *counts = data;
    g_atomic_int_inc(&counts->done[index]);
    g_atomic_int_inc(&counts->all);
}

static void test_once(void)
{
    for (int threads = 0; threads <= 8; threads++)
        for (int count = 0; count <= COUNT; count += count < 10 ? 1 : 330) {
            Counts counts = {.all = 0};
            g_assert_cmpint(orr_crew(count, threads, NULL, count_up, &counts), ==, count);
            for (int i = 0; i < COUNT; i++)
                g_assert_cmpint(counts.done[i], ==, i < count);
        }
}

static bool enough(void *data)
{
    Counts *counts = data;
    return g_atomic_int_get(&counts->all) >= counts->stop_after;
}

/* All below what is returned are done, nothing above. A thread may be at one more when the stop comes. */
static void test_stop(void)
{
    for (int threads = 1; threads <= 4; threads++)
        for (int after = 0; after < 100; after += 9) {
            Counts counts = {.stop_after = after};
            const OrrStop stop = {enough, &counts};
            const int begun = orr_crew(COUNT, threads, &stop, count_up, &counts);
            g_assert_cmpint(begun, >=, MAX(after, 1));
            g_assert_cmpint(begun, <=, after + threads);
            for (int i = 0; i < COUNT; i++)
                g_assert_cmpint(counts.done[i], ==, i < begun);
        }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/crew/once", test_once);
    g_test_add_func("/crew/stop", test_stop);
    return g_test_run();
}
