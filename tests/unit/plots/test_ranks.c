/* tests/unit/plots/test_ranks.c - every GPU has one place in the grid of ranks, and neighbours share what the order says. */
#include "report/ranks.h"
#include "spec/load.h"

static void test_grid(void)
{
    OrrArena *arena = orr_arena_new();
    GError *error = NULL;
    Spec *spec = ORR_ARENA_NEW(arena, Spec, 1);
    SpecPlacement placement;
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", "gpt3-175b.json", NULL);
    spec_load_file(path, NULL, false, spec, NULL, &error);
    g_assert_no_error(error);
    spec_placement(spec, &placement);
    g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
    for (int gpu = 0; gpu < 1024; gpu++) {
        const ReportRank rank = report_rank(&placement, gpu);
        g_assert_true(rank.tensor < 8 && rank.data < 16 && rank.pipeline < 8 && rank.context == 0);
        g_assert_true(
            g_hash_table_add(seen, GINT_TO_POINTER(1 + rank.tensor + 8 * (rank.data + 16 * rank.pipeline))));
        g_assert_cmpint(rank.tensor, ==, gpu % 8); /* a tensor group is a node */
        g_assert_cmpint(rank.pipeline, ==, gpu / 128);
    }
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/plots/ranks", test_grid);
    return g_test_run();
}
