/* unit/spec/test_run_length.c - epochs of a data set in place of tokens. */
#include <string.h>

#include "spec/run_length.h"

static SpecTraining training(double epochs, double samples, double tokens)
{
    return (SpecTraining){.sequence_length = 2048, .epochs = epochs, .samples = samples, .tokens = tokens};
}

static void test_given(void)
{
    static const double cases[][4] = {/* epochs, samples, tokens given, tokens of the run */
                                      {0, 0, 0, 0},
                                      {0, 52000, 0, 0},
                                      {0, 52000, 1e9, 1e9},
                                      {3, 52000, 0, 3 * 52000.0 * 2048},
                                      {0.5, 1000, 0, 500 * 2048.0},
                                      {3, 52000, 3 * 52000.0 * 2048, 3 * 52000.0 * 2048}};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        SpecTraining run = training(cases[i][0], cases[i][1], cases[i][2]);
        g_assert_true(spec_complete_run_length(&run, "file", &error));
        g_assert_no_error(error);
        g_assert_cmpfloat(run.tokens, ==, cases[i][3]);
    }
}

static void test_refused(void)
{
    g_autoptr(GError) missing = NULL;
    g_autoptr(GError) other = NULL;
    SpecTraining run = training(3, 0, 0);
    g_assert_false(spec_complete_run_length(&run, "file", &missing));
    g_assert_nonnull(strstr(missing->message, "give its sequences as training.samples"));
    run = training(3, 52000, 1e9);
    g_assert_false(spec_complete_run_length(&run, "file", &other));
    g_assert_nonnull(strstr(other->message, "give one of them"));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/run-length/given", test_given);
    g_test_add_func("/run-length/refused", test_refused);
    return g_test_run();
}
