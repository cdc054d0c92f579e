/* tests/unit/plots/test_errors.c - sources stand in the order of their middle errors, each in one row. */
#include "plots/plots.h"

static void test_rows(void)
{
    static const PlotError given[] = {{2, "c", "1", 0.3, true},  {0, "a", "1", 0.1, true},
                                      {1, "b", "1", -0.2, true}, {0, "a", "2", -0.9, false},
                                      {2, "c", "2", 0.2, true},  {0, "a", "3", 0.0, true}};
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(PlotError));
    g_array_append_vals(errors, given, G_N_ELEMENTS(given));
    g_autoptr(GArray) rows = plot_error_rows(errors);
    g_assert_cmpuint(rows->len, ==, G_N_ELEMENTS(given));
    static const int row_of[] = {1, 0, 2}; /* b: -0.2, a: 0.0 (middle of three), c: 0.3 */
    for (guint i = 0; i < rows->len; i++)
        g_assert_cmpint(g_array_index(rows, int, i), ==, row_of[g_array_index(errors, PlotError, i).source]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/errors", test_rows);
    return g_test_run();
}
