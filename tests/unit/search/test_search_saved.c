/* tests/unit/search/test_search_saved.c - what a search found is what `run` of the saved winner says: over random small
 * spaces, every framework, and recipes for a number of stages or a precision. */
#include <string.h>

#include "base/file.h"
#include "report/report.h"
#include "search/scenario.h"
#include "search/search.h"
#include "tests/unit/draws.h"
#include "tests/unit/search_fixture.h"

#define SPACES_A_FRAMEWORK DRAWS(4)

/* Splits of layers for 2 and 4 stages, another dispatcher and overlap for 2, the head in 8 bits where matrices are. */
static char *recipes_of(int layers)
{
    return g_strdup_printf(
        "execution.framework.recipes=["
        "{\"stages\":2,\"layers\":%d,\"scenario\":{\"parallel\":{\"stage_layers\":[%d,1]}}},"
        "{\"stages\":2,\"scenario\":{\"parallel\":{\"moe_dispatcher\":\"hybridep\"},"
        "\"execution\":{\"overlap_besides\":[\"expert\"]}}},"
        "{\"stages\":4,\"layers\":%d,\"scenario\":{\"parallel\":{\"stage_layers\":[1,%d,1,1]}}},"
        "{\"precisions\":[\"fp8\"],\"scenario\":{\"training\":{\"head_8bit\":true}}}]",
        layers, layers - 1, layers, layers - 3);
}

static int64_t step_of(const Spec *spec)
{
    const ReportOptions options = {.analytic = true};
    OrrArena *arena = orr_arena_new();
    Report report;
    g_assert_true(report_run(spec, NULL, &options, arena, &report, NULL));
    const int64_t step_ps = report.step_ps;
    orr_arena_free(arena);
    return step_ps;
}

/* Every one of the best, saved and loaded again. */
static int check_best(const SearchResult *result, const SpecSource *source, const Spec *asked)
{
    g_autofree Spec *chosen = g_new(Spec, 1), *again = g_new0(Spec, 1);
    int split = 0;
    for (guint i = 0; i < result->best->len; i++) {
        const SearchRun *run = &g_array_index(result->best, SearchRun, i);
        GError *error = NULL;
        search_point_spec(result->space, run->id, chosen);
        OrrJsonDoc *doc = search_scenario(source, asked, chosen, NULL, &error);
        g_assert_no_error(error);
        spec_load_json(orr_json_root(doc), "saved", NULL, false, again, NULL, &error);
        g_assert_no_error(error);
        if (step_of(again) != run->step_ps) {
            g_autofree char *text = orr_json_dump(orr_json_root(doc));
            g_test_message("%s", text);
        }
        g_assert_cmpint(step_of(again), ==, run->step_ps);
        split += chosen->parallel.stage_layers_count > 0;
        orr_json_free(doc);
    }
    return split;
}

typedef struct Tally {
    int spaces, winners, split;
} Tally;

static void check_space(GRand *rand, int number, const char *framework, Tally *tally)
{
    static const int layers[] = {5, 6, 8, 9};
    const int own = layers[number % 4];
    g_autoptr(GString) text = fixture_text(rand, number, true, framework);
    g_autofree char *recipes = recipes_of(own), *count = g_strdup_printf("model.layers=%d", own);
    const char *sets[] = {count, recipes, number % 2 == 0 ? "search.precision=[\"bf16\",\"fp8\"]" : NULL,
                          NULL};
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "fixture", NULL);
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source;
    GError *error = NULL;
    SearchResult result;
    if (spec_load_json(orr_json_root(doc), "fixture", sets, true, spec, &source, &error)) {
        fixture_vary(spec, number);
        const SearchOptions options = {.jobs = 1, .best_only = true};
        if (search_run(spec, &options, &result, NULL)) {
            tally->spaces++;
            tally->winners += (int)result.best->len;
            tally->split += check_best(&result, &source, spec);
            search_result_clear(&result);
        }
        spec_source_clear(&source);
    } else {
        g_test_message("%s: %s", framework, error->message);
        g_error_free(error);
    }
    orr_json_free(doc);
}

static int compare_names(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void test_frameworks(void)
{
    g_autofree char *folder = orr_scenarios_dir(NULL);
    g_autofree char *path = g_build_filename(folder, "frameworks", NULL);
    g_autoptr(GDir) files = g_dir_open(path, 0, NULL);
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    GRand *rand = g_rand_new_with_seed(5);
    Tally tally = {0};
    for (const char *name = g_dir_read_name(files); name != NULL; name = g_dir_read_name(files))
        if (g_str_has_suffix(name, ".json"))
            g_ptr_array_add(names, g_strndup(name, strlen(name) - strlen(".json")));
    g_ptr_array_sort(names, compare_names);
    for (guint i = 0; i < names->len; i++)
        for (int k = 0; k < SPACES_A_FRAMEWORK; k++)
            check_space(rand, (int)i * SPACES_A_FRAMEWORK + k, names->pdata[i], &tally);
    g_test_message("%u frameworks, %d spaces, %d winners, %d with a recipe's layers", names->len,
                   tally.spaces, tally.winners, tally.split);
    g_assert_cmpint(4 * tally.spaces, >, (int)names->len * SPACES_A_FRAMEWORK);
    g_assert_cmpint(tally.split, >, DRAWS(20));
    g_rand_free(rand);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search/saved/frameworks", test_frameworks);
    return g_test_run();
}
