/* tests/unit/plots/test_tornado.c - a row a field, with the value that shortens the step most and the one that lengthens it most. */
#include <string.h>

#include "plots/plots.h"

static void add(GArray *changes, const char *set, double gain_frac, bool fits)
{
    const ExplainChange change = {.set = {(char *)(gsize)set}, .gain_frac = gain_frac, .fits = fits};
    g_array_append_val(changes, change);
}

static void test_swings(void)
{
    GArray *changes = g_array_new(FALSE, FALSE, sizeof(ExplainChange));
    const Explanation explanation = {.changes = changes};
    add(changes, "parallel.tensor=4", 0.04, true);
    add(changes, "parallel.tensor=16", -0.11, true);
    add(changes, "parallel.tensor=32", -0.40, true);
    add(changes, "parallel.tensor=2", 0.02, true);
    add(changes, "parallel.tensor=1", 0.30, false); /* what fits is better than what does not */
    add(changes, "parallel.tensor_like=2", -0.01, true);
    add(changes, "training.micro_batch=2", 0.10, true);
    add(changes, "parallel.zero=0", 0.0001, true); /* moves nothing */
    g_autoptr(GArray) swings = plot_swings(&explanation);
    static const struct {
        const char *key, *best, *worst;
    } rows[] = {{"training.micro_batch", "training.micro_batch=2", NULL},
                {"parallel.tensor", "parallel.tensor=4", "parallel.tensor=32"},
                {"parallel.tensor_like", NULL, "parallel.tensor_like=2"}};
    g_assert_cmpuint(swings->len, ==, G_N_ELEMENTS(rows));
    for (guint i = 0; i < swings->len; i++) {
        const PlotSwing *swing = &g_array_index(swings, PlotSwing, i);
        g_assert_cmpstr(swing->key, ==, rows[i].key);
        g_assert_cmpstr(swing->best != NULL ? swing->best->set[0] : NULL, ==, rows[i].best);
        g_assert_cmpstr(swing->worst != NULL ? swing->worst->set[0] : NULL, ==, rows[i].worst);
    }
    g_array_free(changes, TRUE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/swings", test_swings);
    return g_test_run();
}
