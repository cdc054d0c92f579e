/* tests/unit/search/test_search_front.c - searches of several machines: the common front against every point of all
 * of them. */
#include <math.h>
#include <string.h>

#include "search/pareto.h"
#include "tests/unit/search_fixture.h"

static Spec *scenario(const char *cluster, const char *search)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"name\":\"m\",\"layers\":6,\"hidden\":2048,\"heads\":16,\"ffn_hidden\":8192,"
        "\"vocab\":32000},\"cluster\":%s,"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":24,\"micro_batch\":\"auto\","
        "\"recompute\":\"auto\",\"tokens\":1000000000},"
        "\"parallel\":{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"data\":\"auto\",\"zero\":1,"
        "\"schedule\":\"1f1b\",\"virtual_stages\":1},\"search\":{%s}}",
        cluster, search);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "front", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "front", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

#define A100 "{\"preset\":\"dgx-a100-80gb\",\"gpus_per_node\":4,\"nodes\":1,\"usd_per_gpu_hour\":1}"
#define H100 "{\"preset\":\"dgx-h100\",\"gpus_per_node\":4,\"nodes\":1,\"usd_per_gpu_hour\":2.5}"

typedef struct Point {
    int machine;
    int64_t step_ps;
    double bytes, cost;
} Point;

/* Every point that fits, of every machine, on its own search. */
static GArray *every_point(const Spec *const *kinds, const int *nodes, int count)
{
    GArray *points = g_array_new(FALSE, FALSE, sizeof(Point));
    const SearchOptions options = {.exhaustive = true, .jobs = 2, .top = 100000, .best_only = true};
    for (int i = 0; i < count; i++) {
        g_autofree Spec *spec = g_memdup2(kinds[i], sizeof *spec);
        SearchResult result;
        GError *error = NULL;
        spec->cluster.nodes = nodes[i];
        search_run(spec, &options, &result, &error);
        g_assert_no_error(error);
        for (guint k = 0; k < result.best->len; k++) {
            const SearchRun *run = &g_array_index(result.best, SearchRun, k);
            const Point point = {i, run->step_ps, run->reserved_bytes,
                                 (double)run->step_ps * 1e-12 / 3600 * spec_gpus(spec) *
                                     spec->cluster.usd_per_gpu_hour};
            g_array_append_val(points, point);
        }
        search_result_clear(&result);
    }
    return points;
}

static bool as_good(const Point *a, const Point *b)
{
    return a->step_ps <= b->step_ps && a->bytes <= b->bytes && a->cost <= b->cost * (1 + 1e-12);
}

static void test_front(void)
{
    static const int nodes[] = {1, 2, 3, 1, 2, 3};
    g_autofree Spec *a = scenario(A100, "\"nodes\":[1,2,3]"), *h = scenario(H100, "\"nodes\":[1,2,3]");
    const Spec *kinds[] = {a, h}, *each[] = {a, a, a, h, h, h};
    const SearchOptions options = {.exhaustive = true, .jobs = 2};
    g_autoptr(GArray) points = every_point(each, nodes, 6);
    SearchPareto front;
    GError *error = NULL;
    bool seen[6] = {false};
    search_pareto_run(kinds, 2, &options, &front, &error);
    g_assert_no_error(error);
    g_assert_true(front.priced);
    g_assert_cmpint(front.count, ==, 6);
    for (guint i = 0; i < front.front->len; i++) { /* nothing beats what is on it */
        const SearchParetoPoint *on = &g_array_index(front.front, SearchParetoPoint, i);
        const Point mine = {on->machine, on->run->step_ps, on->run->reserved_bytes, on->cost};
        seen[on->machine] = true;
        for (guint k = 0; k < points->len; k++) {
            const Point *other = &g_array_index(points, Point, k);
            const bool less = other->step_ps < mine.step_ps || other->bytes < mine.bytes ||
                              other->cost < mine.cost * (1 - 1e-12);
            g_assert_false(less && as_good(other, &mine));
        }
    }
    for (guint k = 0; k < points->len; k++) { /* and something on it is as good as every point */
        const Point *point = &g_array_index(points, Point, k);
        bool covered = false;
        for (guint i = 0; i < front.front->len && !covered; i++) {
            const SearchParetoPoint *on = &g_array_index(front.front, SearchParetoPoint, i);
            const Point mine = {on->machine, on->run->step_ps, on->run->reserved_bytes, on->cost};
            covered = as_good(&mine, point);
        }
        g_assert_true(covered);
    }
    g_assert_cmpint(seen[0] + seen[1] + seen[2] + seen[3] + seen[4] + seen[5], >, 1);
    search_pareto_clear(&front);
}

/* Pruned: the best of every machine, and the ends of the front in time and cost, are those of simulating everything. */
static void test_pruned(void)
{
    g_autofree Spec *a = scenario(A100, "\"nodes\":{\"min\":1,\"max\":2}"),
                    *h = scenario(H100, "\"nodes\":{\"min\":1,\"max\":2}");
    const Spec *kinds[] = {a, h};
    SearchPareto front[2];
    double least[2] = {G_MAXDOUBLE, G_MAXDOUBLE};
    for (int i = 0; i < 2; i++) {
        const SearchOptions options = {.exhaustive = i == 1, .jobs = 2};
        GError *error = NULL;
        search_pareto_run(kinds, 2, &options, &front[i], &error);
        g_assert_no_error(error);
        g_assert_cmpint(front[i].count, ==, 4);
        for (guint k = 0; k < front[i].front->len; k++)
            least[i] = MIN(least[i], g_array_index(front[i].front, SearchParetoPoint, k).cost);
    }
    for (int m = 0; m < 4; m++)
        g_assert_cmpint(g_array_index(front[0].machines[m].result.best, SearchRun, 0).step_ps, ==,
                        g_array_index(front[1].machines[m].result.best, SearchRun, 0).step_ps);
    g_assert_cmpfloat(least[0], ==, least[1]);
    g_assert_cmpint(g_array_index(front[0].front, SearchParetoPoint, 0).run->step_ps, ==,
                    g_array_index(front[1].front, SearchParetoPoint, 0).run->step_ps);
    search_pareto_clear(&front[0]);
    search_pareto_clear(&front[1]);
}

/* A machine without an answer says why and leaves the others alone; without any the search fails. */
static void test_refused(void)
{
    g_autofree Spec *some =
        scenario(A100, "\"nodes\":[5,1],\"data\":{\"min\":1},\"tensor\":[1],\"pipeline\":[1]");
    g_autofree Spec *none = scenario(A100, "\"nodes\":[5],\"tensor\":[1],\"pipeline\":[1]");
    const Spec *kinds[] = {some};
    const SearchOptions options = {.jobs = 1};
    SearchPareto front;
    GError *error = NULL;
    search_pareto_run(kinds, 1, &options, &front, &error);
    g_assert_no_error(error);
    g_assert_nonnull(strstr(front.machines[0].reason, "no assignment"));
    g_assert_null(front.machines[1].reason);
    g_assert_cmpuint(front.front->len, >, 0);
    g_autoptr(GString) json = g_string_new(NULL);
    search_pareto_write_json(&front, json);
    OrrJsonDoc *doc = orr_json_parse(json->str, json->len, "json", &error);
    g_assert_no_error(error);
    const OrrJson *machines = orr_json_member(orr_json_root(doc), "machines"),
                  *pareto = orr_json_member(orr_json_root(doc), "pareto");
    g_assert_nonnull(orr_json_member(orr_json_first(machines), "reason"));
    g_assert_cmpint(orr_json_count(pareto), ==, (int)front.front->len);
    g_assert_cmpfloat(orr_json_number(orr_json_member(orr_json_first(pareto), "machine")), ==, 1);
    g_assert_nonnull(orr_json_member(orr_json_first(pareto), "step_usd"));
    orr_json_free(doc);
    g_autoptr(GString) text = g_string_new(NULL);
    search_pareto_write_text(&front, text);
    g_assert_nonnull(strstr(text->str, "USD of all tokens"));
    search_pareto_clear(&front);
    kinds[0] = none;
    g_assert_false(search_pareto_run(kinds, 1, &options, &front, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_error_free(error);
}

/* Costs are those of effective days: what fails more often on more nodes is paid for, and can turn the order around. */
static void test_effective(void)
{
    g_autofree Spec *spec = scenario(A100, "\"nodes\":[1,8]");
    const Spec *kinds[] = {spec};
    CampaignAssumed assumed;
    GError *error = NULL;
    SearchPareto front[2];
    campaign_assumed_load(&assumed, &error);
    g_assert_no_error(error);
    spec->training.tokens = 1e12;
    spec->faults = assumed.faults;
    spec->storage = assumed.storage;
    spec->faults.node_mtbf_s = 2e6; /* of one node: eight fail every three days */
    for (int i = 0; i < 2; i++) {
        const SearchOptions options = {.jobs = 2, .assumed = i == 1 ? &assumed : NULL};
        search_pareto_run(kinds, 1, &options, &front[i], &error);
        g_assert_no_error(error);
        g_assert_true(front[i].effective == (i == 1));
    }
    double beyond[2] = {0, 0};
    for (guint i = 0; i < front[1].front->len; i++) {
        const SearchParetoPoint *on = &g_array_index(front[1].front, SearchParetoPoint, i);
        const Spec *machine = front[1].machines[on->machine].spec;
        const double plain = (double)on->run->step_ps * 1e-12 / 3600 * spec_gpus(machine);
        g_assert_cmpfloat(on->cost, >, plain);
        g_assert_cmpfloat(fabs(on->cost / plain - 1 - on->effective_frac), <, 1e-9);
        beyond[on->machine] = on->effective_frac;
    }
    g_assert_cmpfloat(beyond[1], >, beyond[0]);
    g_assert_cmpfloat(beyond[0], >, 0);
    for (guint i = 0; i < front[0].front->len; i++)
        g_assert_cmpfloat(g_array_index(front[0].front, SearchParetoPoint, i).effective_frac, ==, 0);
    search_pareto_clear(&front[0]);
    search_pareto_clear(&front[1]);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search-front/every-point", test_front);
    g_test_add_func("/search-front/pruned", test_pruned);
    g_test_add_func("/search-front/refused", test_refused);
    g_test_add_func("/search-front/effective", test_effective);
    return g_test_run();
}
