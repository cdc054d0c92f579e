/* tests/unit/base/test_memo.c - what is kept is what was put there, for every thread on its own. */
#include "base/memo.h"

#include <string.h>

typedef struct Key {
    double a, b;
} Key;

static OrrMemo memo = ORR_MEMO(Key, gint64, 64);

/* The answer to a key is its own number; counts how often it had to be found. */
static gint64 ask(double a, double b, int *asked)
{
    Key key;
    bool known;
    memset(&key, 0, sizeof key);
    key.a = a;
    key.b = b;
    gint64 *answer = orr_memo_place(&memo, &key, &known);
    if (!known) {
        g_assert_cmpint(*answer, ==, 0);
        *answer = (gint64)(1000 * a + b);
        ++*asked;
    }
    return *answer;
}

static gpointer ask_all(gpointer data)
{
    (void)data;
    int asked = 0;
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < 1000; i++)
            g_assert_cmpint(ask(i, 7, &asked), ==, 1000 * i + 7);
    return GINT_TO_POINTER(asked);
}

static void test_kept(void)
{
    int asked = 0;
    g_assert_cmpint(ask(1, 2, &asked), ==, 1002);
    g_assert_cmpint(ask(1, 2, &asked), ==, 1002);
    g_assert_cmpint(asked, ==, 1);
    g_assert_cmpint(ask(2, 1, &asked), ==, 2001);
    g_assert_cmpint(asked, ==, 2);
}

/* More keys than places: some are forgotten, none is mixed up; and no thread sees another's. */
static void test_crowded(void)
{
    GThread *other = g_thread_new("other", ask_all, NULL);
    const int here = GPOINTER_TO_INT(ask_all(NULL));
    const int there = GPOINTER_TO_INT(g_thread_join(other));
    g_assert_cmpint(here, >=, 1000);
    g_assert_cmpint(here, <=, 3000);
    g_assert_cmpint(there, ==, here);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memo/kept", test_kept);
    g_test_add_func("/memo/crowded", test_crowded);
    return g_test_run();
}
