/* tests/unit/plots/test_roofline.c - points lie below the roof, and with the memory-bound kernels they are all of compute. */
#include <math.h>

#include "plots/plots.h"
#include "spec/load.h"

static void test_points(void)
{
    static const char *const names[] = {"gpt3-175b", "moe-by-layer", "gpt2-xl-1gpu"};
    for (gsize i = 0; i < G_N_ELEMENTS(names); i++) {
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
        Report report;
        g_autofree char *file = g_strconcat(names[i], ".json", NULL);
        g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", file, NULL);
        const ReportOptions options = {.unfold = false};
        spec_load_file(path, NULL, false, spec, NULL, &error);
        g_assert_no_error(error);
        report_run(spec, NULL, &options, arena, &report, &error);
        g_assert_no_error(error);
        PlotRoofline roofline = plot_roofline_of(&report);
        double shares = roofline.memory_s / roofline.seconds, last = 1;
        g_assert_cmpuint(roofline.points->len, >, 3);
        for (guint k = 0; k < roofline.points->len; k++) {
            const PlotRoofPoint *point = &g_array_index(roofline.points, PlotRoofPoint, k);
            g_assert_cmpfloat(point->flops_per_s, <, roofline.peak_flops_per_s);
            g_assert_cmpfloat(point->flops_per_s, <, point->flops_per_byte * roofline.bytes_per_s);
            g_assert_cmpfloat(point->share, <=, last);
            last = point->share;
            shares += point->share;
        }
        g_assert_cmpfloat_with_epsilon(shares, 1, 1e-6);
        g_assert_cmpfloat(roofline.memory_bytes / roofline.memory_s, <, roofline.bytes_per_s);
        g_array_free(roofline.points, TRUE);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/roofline", test_points);
    return g_test_run();
}
