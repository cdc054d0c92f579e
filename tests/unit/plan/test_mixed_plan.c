/* tests/unit/plan/test_mixed_plan.c - plans of clusters of several kinds of nodes: counts keep the proportions, every row is what
 * its own scenario runs to, groups that are alike are the plain cluster. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "plan/plan.h"
#include "spec/load.h"

static Spec *scenario(const char *cluster, const char *more, SpecSource *ret_source)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"gpt3-1.3b\",\"cluster\":%s,\"training\":{\"sequence_length\":2048,\"global_batch\":48,"
        "\"micro_batch\":1,\"tokens\":1e9},\"parallel\":{\"tensor\":2,\"pipeline\":4,\"schedule\":\"1f1b\"%s}"
        ","
        "\"execution\":{\"framework\":\"megatron-core\"}}",
        cluster, more);
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "plan", &error);
    g_assert_no_error(error);
    Spec *spec = g_new0(Spec, 1);
    spec_load_json(orr_json_root(doc), "plan", NULL, true, spec, ret_source, &error);
    g_assert_no_error(error);
    orr_json_free(doc);
    return spec;
}

#define MIXED                                                                                                \
    "{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-a100-80gb\",\"nodes\":1}]}"

static Plan plan(const Spec *spec, const int *gpus, int count)
{
    const PlanOptions options = {.gpus = gpus, .gpus_count = count};
    GError *error = NULL;
    Plan result;
    plan_run(spec, &options, &result, &error);
    g_assert_no_error(error);
    return result;
}

static void test_proportions(void)
{
    static const int gpus[] = {24, 32, 48, 192};
    g_autofree Spec *spec = scenario(MIXED, "", NULL);
    Plan result = plan(spec, gpus, 4);
    for (guint i = 0; i < 4; i++) {
        const PlanPoint *point = &g_array_index(result.points, PlanPoint, i);
        g_assert_true((point->reason == NULL) == (gpus[i] % 24 == 0));
        if (point->reason != NULL) {
            g_assert_nonnull(strstr(point->reason, "proportions"));
            continue;
        }
        const SpecCluster *cluster = &point->spec->cluster;
        g_assert_cmpint(cluster->groups[0].nodes, ==, gpus[i] / 12);
        g_assert_cmpint(cluster->groups[1].nodes, ==, gpus[i] / 24);
    }
    plan_clear(&result);
}

/* JSON rows hold scenarios that run to the same picosecond, dealt out or not. */
static void test_rows(void)
{
    static const int gpus[] = {24, 48};
    static const char *const more[] = {"", ",\"stage_layers\":\"auto\",\"replica_microbatches\":\"auto\""};
    for (gsize m = 0; m < G_N_ELEMENTS(more); m++) {
        SpecSource source;
        g_autofree Spec *spec = scenario(MIXED, more[m], &source), *own = g_new0(Spec, 1);
        Plan result = plan(spec, gpus, 2);
        const PlanOptions options = {.gpus = gpus, .gpus_count = 2};
        const PlanPage page = {
            .spec = spec, .source = &source, .options = &options, .plans = &result, .count = 1};
        g_autoptr(GString) json = g_string_new(NULL);
        GError *error = NULL;
        plan_write_json(&page, json, &error);
        g_assert_no_error(error);
        OrrJsonDoc *doc = orr_json_parse(json->str, json->len, "rows", &error);
        g_assert_no_error(error);
        const OrrJson *row = orr_json_first(orr_json_member(orr_json_root(doc), "rows"));
        for (guint i = 0; i < 2; i++, row = orr_json_next(row)) {
            static const ReportOptions plain;
            OrrArena *arena = orr_arena_new();
            Report report;
            memset(own, 0, sizeof *own);
            spec_load_json(orr_json_member(row, "scenario"), "row", NULL, true, own, NULL, &error);
            g_assert_no_error(error);
            report_run(own, NULL, &plain, arena, &report, &error);
            g_assert_no_error(error);
            g_assert_cmpint(report.step_ps, ==,
                            llround(g_array_index(result.points, PlanPoint, i).step_s * 1e12));
            orr_arena_free(arena);
        }
        orr_json_free(doc);
        plan_clear(&result);
        spec_source_clear(&source);
    }
}

static void test_alike(void)
{
    static const int gpus[] = {16, 48};
    g_autofree Spec *plain = scenario("{\"preset\":\"dgx-h100\",\"nodes\":2}", "", NULL),
                    *alike = scenario("{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},{\"preset\":"
                                      "\"dgx-h100\",\"nodes\":1}]}",
                                      "", NULL);
    Plan a = plan(plain, gpus, 2), b = plan(alike, gpus, 2);
    for (guint i = 0; i < 2; i++) {
        const PlanPoint *x = &g_array_index(a.points, PlanPoint, i),
                        *y = &g_array_index(b.points, PlanPoint, i);
        g_assert_cmpfloat(x->step_s, ==, y->step_s);
        g_assert_cmpfloat(fabs(x->kwh / y->kwh - 1), <, 1e-12);
    }
    plan_clear(&a);
    plan_clear(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/mixed-plan/proportions", test_proportions);
    g_test_add_func("/mixed-plan/rows", test_rows);
    g_test_add_func("/mixed-plan/alike", test_alike);
    return g_test_run();
}
