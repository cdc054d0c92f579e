/* tests/unit/search/test_search_goal.c - searches by days, cost and energy: pruned against every point asked on its own, the
 * bound below every figure, and no failures against the search by the step. */
#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "search/bound.h"
#include "search/pareto.h"
#include "search/walk.h"
#include "tests/unit/search_fixture.h"

#define H100 "{\"preset\":\"dgx-h100\",\"gpus_per_node\":4,\"nodes\":%d,\"usd_per_gpu_hour\":2.5,\"pue\":1.2}"

/* Restarts, failures and checkpoints by formula; by replicas; no failures. */
#define FORMULA                                                                                              \
    "\"faults\":{\"gpu_mtbf_s\":2e6,\"init_s\":600,\"detection_s\":60,\"checkpoint\":{\"interval_s\":1800,"  \
    "\"write_s\":20,\"load_s\":60}},"
#define BEST_INTERVAL                                                                                        \
    "\"faults\":{\"gpu_mtbf_s\":4e5,\"init_s\":300,\"fails_in_restart\":true,\"manual_frac\":0.1,"           \
    "\"response_s\":3600,\"checkpoint\":{\"mode\":\"async\",\"write_s\":90,\"load_s\":60}},"
#define SPARES                                                                                               \
    "\"faults\":{\"node_mtbf_s\":5e5,\"init_s\":300,\"spares\":0,\"repair_s\":3600,\"checkpoint\":"          \
    "{\"write_s\":20,\"load_s\":60}},"
#define ELASTIC                                                                                              \
    "\"faults\":{\"node_mtbf_s\":1e5,\"init_s\":300,\"spares\":0,\"elastic\":true,\"repair_s\":36000,"       \
    "\"checkpoint\":{\"write_s\":20,\"load_s\":60}},"
#define JITTER "\"jitter\":{\"step_noise_frac\":0.05,\"rank_spread_frac\":0.02},"

static Spec *scenario(const char *extra, const char *search, int nodes, const char *tokens)
{
    g_autofree char *cluster = g_strdup_printf(H100, nodes);
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"name\":\"m\",\"layers\":6,\"hidden\":2048,\"heads\":16,\"ffn_hidden\":8192,"
        "\"vocab\":32000},\"cluster\":%s,%s"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":24,\"micro_batch\":2,"
        "\"recompute\":\"auto\",\"tokens\":%s},"
        "\"parallel\":{\"tensor\":\"auto\",\"pipeline\":\"auto\",\"data\":\"auto\",\"zero\":1,"
        "\"schedule\":\"auto\",\"virtual_stages\":1},\"search\":{\"schedule\":[\"1f1b\",\"gpipe\"]%s}}",
        cluster, extra, tokens, search);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "goal", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "goal", NULL, true, spec, NULL, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

static CampaignAssumed assumed(void)
{
    CampaignAssumed out;
    GError *error = NULL;
    campaign_assumed_load(&out, &error);
    g_assert_no_error(error);
    return out;
}

/* What `run` says of a whole scenario; INFINITY where it refuses it, as a job that no node may leave is by faults.elastic. */
static double asked_figure(const Spec *spec, SearchFor by, const CampaignAssumed *live)
{
    const AnswerAsk ask = {.run = {.analytic = true}, .assumed = live, .where = "goal"};
    OrrArena *arena = orr_arena_new();
    Report report;
    double figure = INFINITY;
    if (answer_ask(spec, NULL, &ask, arena, &report, NULL)) {
        const double days = report.effective.told ? report.effective.days : report.days;
        figure = by == SEARCH_FOR_DAYS ? days : by == SEARCH_FOR_COST ? report.usd : report.kwh;
    }
    orr_arena_free(arena);
    return figure;
}

static SearchResult find(const Spec *spec, SearchFor by, const CampaignAssumed *live, int top, bool all)
{
    const SearchOptions options = {
        .by = by, .assumed = live, .top = top, .exhaustive = all, .jobs = 2, .best_only = true};
    SearchResult result;
    GError *error = NULL;
    search_run(spec, &options, &result, &error);
    g_assert_no_error(error);
    return result;
}

static int compare_figures(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef struct Row {
    const char *extra;
    SearchFor by;
    bool differs; /* in what is best, or in what follows it, from the step */
} Row;

/* Whether the best `top` by the figure are others than by the step, or stand otherwise. */
static bool order_differs(const SearchResult *steps, const SearchResult *result)
{
    for (guint i = 0; i < result->best->len; i++)
        if (search_id_compare(&g_array_index(steps->best, SearchRun, i).id,
                              &g_array_index(result->best, SearchRun, i).id) != 0)
            return true;
    return false;
}

static void test_against_every_point(void)
{
    enum { TOP = 8 };
    static const Row rows[] = {
        {FORMULA, SEARCH_FOR_DAYS, false},        {BEST_INTERVAL, SEARCH_FOR_COST, false},
        {BEST_INTERVAL, SEARCH_FOR_ENERGY, true}, {SPARES, SEARCH_FOR_DAYS, false},
        {ELASTIC, SEARCH_FOR_DAYS, true},         {JITTER FORMULA, SEARCH_FOR_DAYS, true},
        {JITTER, SEARCH_FOR_COST, true},          {"", SEARCH_FOR_ENERGY, true}};
    const CampaignAssumed live = assumed();
    for (gsize r = 0; r < G_N_ELEMENTS(rows); r++) {
        g_autofree Spec *spec = scenario(rows[r].extra, "", 4, "1e12"), *point = g_new(Spec, 1);
        SearchResult every = find(spec, SEARCH_FOR_STEP, NULL, 100000, true),
                     result = find(spec, rows[r].by, &live, TOP, false);
        g_autofree double *figures = g_new(double, every.best->len);
        g_assert_cmpint(every.best->len, >, 40);
        for (guint i = 0; i < every.best->len; i++) {
            search_point_dealt(every.space, g_array_index(every.best, SearchRun, i).id, point);
            figures[i] = asked_figure(point, rows[r].by, &live);
        }
        g_assert_true(result.proved);
        g_assert_cmpint(result.best->len, ==, TOP);
        g_assert_cmpint(order_differs(&every, &result), ==, rows[r].differs);
        qsort(figures, every.best->len, sizeof *figures, compare_figures);
        for (guint i = 0; i < TOP; i++) {
            const SearchRun *run = &g_array_index(result.best, SearchRun, i);
            search_point_dealt(result.space, run->id, point);
            g_assert_cmpfloat(run->figure, ==, asked_figure(point, rows[r].by, &live));
            g_assert_cmpfloat(run->figure, ==, figures[i]);
        }
        search_result_clear(&every);
        search_result_clear(&result);
    }
}

/* No figure is below the least of its step, nor of a bound of it; and the longest step of a figure is not shorter. */
static void test_least(void)
{
    static const char *const extras[] = {FORMULA, BEST_INTERVAL, "", SPARES, JITTER};
    enum { QUICK = 3 }; /* the others take replicas, or draws, of each point */
    const CampaignAssumed live = assumed();
    for (gsize e = 0; e < G_N_ELEMENTS(extras); e++)
        for (int by = SEARCH_FOR_DAYS; by < (e < QUICK ? SEARCH_FOR_COUNT : SEARCH_FOR_COST); by++) {
            g_autofree Spec *spec = scenario(extras[e], "", 4, "1e12");
            SearchResult every = find(spec, (SearchFor)by, &live, 100000, true);
            const SearchGoal goal = search_goal_of((SearchFor)by, every.space, &live);
            SearchTables *tables = search_tables_new(every.space);
            search_tables_fill(tables, 0, tables->count, 1, 0, 1);
            double nearest = INFINITY;
            for (guint i = 0; i < every.best->len; i++) {
                const SearchRun *run = &g_array_index(every.best, SearchRun, i);
                const int64_t busy_ps = search_bound_busy(tables, &every.space->groups[run->id.group]);
                const double least = search_goal_least(&goal, run->step_ps, busy_ps);
                g_assert_cmpfloat(least, <=, run->figure);
                g_assert_cmpint(search_goal_longest_ps(&goal, run->figure, busy_ps), >=, run->step_ps);
                nearest = fmin(nearest, run->figure / least);
            }
            g_assert_cmpfloat(nearest, <, 1.5); /* it says something */
            search_tables_free(tables);
            search_result_clear(&every);
        }
}

/* Where nothing fails and nothing is saved, days and cost are the step's. */
static void test_nothing_fails(void)
{
    static const char *const never = "\"faults\":{\"gpu_mtbf_s\":0,\"checkpoint\":{\"mode\":\"none\"}},";
    const CampaignAssumed live = assumed();
    g_autofree Spec *spec = scenario(never, "", 4, "1e12");
    SearchResult steps = find(spec, SEARCH_FOR_STEP, NULL, 20, false);
    for (int by = SEARCH_FOR_DAYS; by <= SEARCH_FOR_COST; by++) {
        SearchResult result = find(spec, (SearchFor)by, &live, 20, false);
        g_assert_false(order_differs(&steps, &result));
        g_assert_cmpint(result.simulated, ==, steps.simulated);
        search_result_clear(&result);
    }
    search_result_clear(&steps);
}

/* The fastest machine is not the cheapest: it fails more often, and its GPUs wait for each other. */
static void test_machines(void)
{
    g_autofree Spec *spec = scenario(FORMULA, ",\"nodes\":[1,2,4]", 1, "1e12");
    const Spec *kinds[] = {spec};
    const CampaignAssumed live = assumed();
    int chosen[SEARCH_FOR_COUNT];
    for (int by = SEARCH_FOR_STEP; by < SEARCH_FOR_COUNT; by++) {
        const SearchOptions options = {.by = (SearchFor)by, .assumed = &live, .jobs = 2};
        SearchPareto front;
        GError *error = NULL;
        search_pareto_run(kinds, 1, &options, &front, &error);
        g_assert_no_error(error);
        chosen[by] = front.chosen;
        for (int m = 0; by != SEARCH_FOR_STEP && m < front.count; m++)
            g_assert_cmpfloat(g_array_index(front.machines[m].result.best, SearchRun, 0).figure, >=,
                              g_array_index(front.machines[front.chosen].result.best, SearchRun, 0).figure);
        search_pareto_clear(&front);
    }
    g_assert_cmpint(chosen[SEARCH_FOR_STEP], ==, 2);
    g_assert_cmpint(chosen[SEARCH_FOR_DAYS], ==, 2);
    g_assert_cmpint(chosen[SEARCH_FOR_COST], ==, 0);
    g_assert_cmpint(chosen[SEARCH_FOR_ENERGY], ==, 0);
}

static void test_refused(void)
{
    g_autofree Spec *endless = scenario("", "", 1, "0"), *free = scenario("", "", 1, "1e12"),
                    *cold = scenario("", "", 1, "1e12");
    free->cluster.usd_per_gpu_hour = 0;
    cold->cluster.accelerator.power_w = cold->cluster.host_power_w_per_gpu = 0;
    const struct {
        const Spec *spec;
        SearchFor by;
        int own;
        const char *says;
    } rows[] = {{endless, SEARCH_FOR_DAYS, 0, "training.tokens"},
                {free, SEARCH_FOR_COST, 0, "usd_per_gpu_hour"},
                {cold, SEARCH_FOR_ENERGY, 0, "power_w"},
                {free, SEARCH_FOR_DAYS, 1, "own runs"}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        GError *error = NULL;
        g_assert_false(search_goal_check(rows[i].by, rows[i].spec, rows[i].own, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, rows[i].says));
        g_error_free(error);
    }
    SearchFor by = SEARCH_FOR_DAYS;
    GError *error = NULL;
    g_assert_true(search_goal_parse("--for", NULL, &by, NULL));
    g_assert_cmpint(by, ==, SEARCH_FOR_STEP);
    g_assert_false(search_goal_parse("--for", "fun", &by, &error));
    g_assert_nonnull(strstr(error->message, "step, days, cost or energy"));
    g_error_free(error);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/search-goal/against-every-point", test_against_every_point);
    g_test_add_func("/search-goal/least", test_least);
    g_test_add_func("/search-goal/nothing-fails", test_nothing_fails);
    g_test_add_func("/search-goal/machines", test_machines);
    g_test_add_func("/search-goal/refused", test_refused);
    return g_test_run();
}
