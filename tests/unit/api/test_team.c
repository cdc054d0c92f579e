/* tests/unit/api/test_team.c - a sweep and a plan of several processes give the bytes of one; threads stand for processes. */
#include <string.h>

#include "api/sweep.h"
#include "plan/plan.h"
#include "tests/unit/team_fixture.h"

static char *scenario(const char *name)
{
    return g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", name, NULL);
}

static GArray *fields(void)
{
    static const char *const texts[] = {"training.micro_batch=1,2,3,4", "parallel.virtual_stages=1,2,3"};
    GArray *list = api_vary_fields();
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        ApiVary vary;
        g_assert_true(api_vary_parse(texts[i], &vary, NULL));
        g_array_append_val(list, vary);
    }
    return list;
}

static GArray *rows_of(const GArray *list, const OrrTeam *team, const char *journal, GError **error)
{
    g_autofree char *path = scenario("gpt3-175b.json");
    const ApiSweepAsk ask = {
        .input = {.path = path}, .fields = list, .threads = 1, .team = team, .journal = journal};
    return api_sweep(&ask, error);
}

static void *sweep_share(void *data)
{
    FixtureSeat *seat = data;
    GError *error = NULL;
    g_autoptr(GArray) list = fields(), rows = rows_of(list, &seat->team, seat->given, &error);
    g_assert_no_error(error);
    api_sweep_csv(list, rows, seat->result);
    return NULL;
}

static void test_sweep(void)
{
    GError *error = NULL;
    g_autoptr(GString) alone = g_string_new(NULL);
    g_autoptr(GArray) list = fields(), rows = rows_of(list, NULL, NULL, &error);
    g_autofree char *folder = g_dir_make_tmp("journal-XXXXXX", NULL);
    g_assert_no_error(error);
    api_sweep_csv(list, rows, alone);
    for (int ranks = 1; ranks <= FIXTURE_RANKS; ranks++) {
        GString *each[FIXTURE_RANKS];
        for (int r = 0; r < FIXTURE_RANKS; r++)
            each[r] = g_string_new(NULL);
        fixture_team(ranks, sweep_share, ranks > 2 ? folder : NULL,
                     (void *const *)each); /* the last finds all done */
        for (int r = 0; r < FIXTURE_RANKS; r++) {
            if (r < ranks)
                g_assert_cmpstr(each[r]->str, ==, alone->str);
            g_string_free(each[r], TRUE);
        }
    }
}

/* A process that cannot write its journal: all of them fail, with its sentence. */
static void *sweep_fails(void *data)
{
    FixtureSeat *seat = data;
    g_autoptr(GError) error = NULL;
    g_autoptr(GArray) list = fields();
    GArray *rows = rows_of(list, &seat->team, seat->team.rank == 1 ? seat->given : NULL, &error);
    g_assert_null(rows);
    g_assert_nonnull(strstr(error->message, "cannot be made"));
    return NULL;
}

static void test_sweep_fails(void)
{
    void *none[FIXTURE_RANKS] = {NULL};
    fixture_team(3, sweep_fails, "/proc/version/journal", none);
}

static Plan plan(const OrrTeam *team)
{
    static const int gpus[] = {64, 128};
    GError *error = NULL;
    Plan result;
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *path = scenario("plan-sc21-175b.json");
    const char *const sets[] = {"model=gpt3-6.7b",
                                "parallel.tensor=auto",
                                "parallel.pipeline=auto",
                                "parallel.data=auto",
                                "training.micro_batch=auto",
                                "cluster.nodes=8",
                                NULL};
    const PlanOptions options = {.gpus = gpus, .gpus_count = 2, .team = team, .jobs = 1};
    spec_load_file(path, sets, true, spec, NULL, &error);
    g_assert_no_error(error);
    plan_run(spec, &options, &result, &error);
    g_assert_no_error(error);
    return result;
}

static void write(Plan *result, GString *out)
{
    const PlanPage page = {.plans = result, .count = 1};
    plan_write_csv(&page, out);
    plan_clear(result);
}

static void *plan_share(void *data)
{
    FixtureSeat *seat = data;
    Plan result = plan(&seat->team);
    write(&result, seat->result);
    return NULL;
}

static void test_plan(void)
{
    g_autoptr(GString) alone = g_string_new(NULL);
    Plan result = plan(NULL);
    write(&result, alone);
    for (int ranks = 1; ranks <= 3; ranks++) {
        GString *each[FIXTURE_RANKS] = {g_string_new(NULL), g_string_new(NULL), g_string_new(NULL), NULL};
        fixture_team(ranks, plan_share, NULL, (void *const *)each);
        for (int r = 0; r < 3; r++) {
            if (r < ranks)
                g_assert_cmpstr(each[r]->str, ==, alone->str);
            g_string_free(each[r], TRUE);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/team/sweep", test_sweep);
    g_test_add_func("/team/sweep-fails", test_sweep_fails);
    g_test_add_func("/team/plan", test_plan);
    return g_test_run();
}
