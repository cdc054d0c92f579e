/* tests/published/test_few_shot.c - what own runs are worth on the published ones, and published steps of one change:
 * prints both tables and holds what docs/accuracy/own-runs.md states, rounded up. */
#include <stdio.h>

#include "base/file.h"
#include "ledger/ablation.h"
#include "ledger/few_shot.h"
#include "search/choose.h"

/* Sets of software and accelerators without a run in the ledger: one run of its sources says little. */
static const char *const FAR_FROM_HOME[] = {"sixth.json", "seventh.json", "eighth.json", NULL};

static Ledger replay_all(void)
{
    static const char *const FOLDERS[] = {"measurements", "blind"};
    char *scenarios = orr_scenarios_dir(NULL);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    for (size_t i = 0; i < G_N_ELEMENTS(FOLDERS); i++) {
        g_autofree char *folder = g_build_filename(scenarios, FOLDERS[i], NULL);
        GDir *dir = g_dir_open(folder, 0, NULL);
        g_assert_nonnull(dir);
        for (const char *name = g_dir_read_name(dir); name != NULL; name = g_dir_read_name(dir))
            if (g_str_has_suffix(name, ".json") && !g_strv_contains(FAR_FROM_HOME, name))
                g_ptr_array_add(paths, g_build_filename(folder, name, NULL));
        g_dir_close(dir);
    }
    Ledger ledger;
    GError *error = NULL;
    const bool ok = ledger_replay((const char *const *)paths->pdata, (int)paths->len, NULL, search_choose,
                                  NULL, NULL, &ledger, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
    g_free(scenarios);
    return ledger;
}

/* Other orders of files draw other runs: the bounds leave 0.2 points for that. */
static void own_runs(const Ledger *ledger)
{
    static const double MOST_ALIKE[][2] = {{1, 0.043}, {2, 0.042}, {5, 0.039}};
    g_autoptr(GString) table = g_string_new(NULL);
    ledger_write_few_shot_text(ledger, table);
    printf("%s\n", table->str);
    const LedgerFewShot none = ledger_few_shot(ledger, 0);
    g_assert_cmpfloat(none.plain, ==, none.nearest);
    g_assert_cmpfloat_with_epsilon(none.plain, none.drawn, 1e-9);
    for (size_t i = 0; i < G_N_ELEMENTS(MOST_ALIKE); i++) {
        const LedgerFewShot shot = ledger_few_shot(ledger, (int)MOST_ALIKE[i][0]);
        g_assert_cmpfloat(shot.nearest, <=, MOST_ALIKE[i][1]);
        g_assert_cmpfloat(shot.drawn, <, shot.plain);
        g_assert_cmpfloat(shot.nearest, <, shot.drawn);
    }
}

static void ablations(const Ledger *ledger)
{
    g_autoptr(GString) table = g_string_new(NULL);
    ledger_write_ablations_text(ledger, false, table);
    printf("%s\n", table->str);
    LedgerAblations found = ledger_ablations(ledger);
    g_assert_cmpuint(found.steps->len, >=, 60);
    g_assert_cmpint(found.directed - found.right, <=, 1);
    g_assert_cmpfloat(found.gap, <=, 0.040);
    ledger_ablations_clear(&found);
}

static void published(void)
{
    Ledger ledger = replay_all();
    own_runs(&ledger);
    ablations(&ledger);
    ledger_clear(&ledger);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/few-shot/published", published);
    return g_test_run();
}
