/* tests/bench/bench_passes.c - the layers of all published rows, timed by the closed forms that a step is made of and by
 * the program of streams that they stand for: how far apart they are.
 *
 * Prints program / closed - 1 by where host and GPU meet.
 */
#include "tests/unit/pass_fixture.h"

#include <stdio.h>

static const char *const MEETS[] = {[COST_HOST_SYNC_NONE] = "never",
                                    [COST_HOST_SYNC_FORWARD] = "before forwards",
                                    [COST_HOST_SYNC_PASSES] = "before passes"};

static void note(const Spec *spec, const PassFigure *figure, void *data)
{
    GArray **apart = data;
    const double frac = figure->program_s / figure->closed_s - 1;
    (void)spec;
    if (!figure->hidden)
        g_array_append_val(apart[figure->meet], frac);
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double at(const GArray *sorted, double frac)
{
    return sorted->len == 0 ? 0 : 100 * g_array_index(sorted, double, (guint)(frac * (sorted->len - 1)));
}

int main(void)
{
    GArray *apart[G_N_ELEMENTS(MEETS)];
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    if (scenarios == NULL)
        return 1;
    for (size_t i = 0; i < G_N_ELEMENTS(MEETS); i++)
        apart[i] = g_array_new(FALSE, FALSE, sizeof(double));
    const int rows = fixture_time_rows(scenarios, "measurements", NULL, note, apart) +
                     fixture_time_rows(scenarios, "blind", NULL, note, apart);
    printf("%d published rows; a layer as a program over its closed form, in %% more\n", rows);
    printf("%-18s %7s %9s %9s %9s %9s\n", "host waits", "layers", "median", "P90", "P99", "most");
    for (size_t i = 0; i < G_N_ELEMENTS(MEETS); i++) {
        qsort(apart[i]->data, apart[i]->len, sizeof(double), compare);
        printf("%-18s %7u %9.4f %9.4f %9.4f %9.4f\n", MEETS[i], apart[i]->len, at(apart[i], .5),
               at(apart[i], .9), at(apart[i], .99), at(apart[i], 1));
        g_array_free(apart[i], TRUE);
    }
    return 0;
}
