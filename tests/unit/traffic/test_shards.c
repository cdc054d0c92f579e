/* tests/unit/traffic/test_shards.c - replicas in shard groups on the links of a fabric: what stays in a group and what crosses. */
#include <string.h>

#include "report/report.h"
#include "spec/load.h"

/* A GPU a node, so that everything leaves it; two aggregation switches' uplinks are half of what hangs below. */
#define BASE                                                                                                 \
    "{ \"model\": \"llama3.2-1b\","                                                                          \
    "  \"cluster\": { \"preset\": \"gh200\", \"nodes\": 64, \"oversubscription\": 2, \"network\": {"         \
    "    \"fidelity\": \"flow\" } },"                                                                        \
    "  \"training\": { \"sequence_length\": 512, \"global_batch\": 32, \"micro_batch\": 1 },"                \
    "  \"parallel\": { \"tensor\": 2, \"data\": 32, \"zero\": 1 },"                                          \
    "  \"execution\": { \"framework\": \"megatron-core\", \"overlap\": [\"grad_reduce\", \"param_gather\"] " \
    "} }"

typedef struct Ran {
    int64_t step_ps;
    double core_bytes; /* over the links to the core, of data parallelism */
} Ran;

static Ran run(const char *zero, int group)
{
    const ReportOptions options = {.check = true, .links = true};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *set = g_strdup_printf("parallel.zero_group_gpus=%d", group);
    const char *const sets[] = {zero, group > 0 ? set : NULL, NULL};
    GError *error = NULL;
    Report report;
    OrrArena *arena = orr_arena_new();
    OrrJsonDoc *doc = orr_json_parse(BASE, strlen(BASE), "base", NULL);
    spec_load_json(orr_json_root(doc), "base", sets, false, spec, NULL, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report,
               &error); /* fails where a link carries more than it can */
    g_assert_no_error(error);
    Ran ran = {.step_ps = report.step_ps};
    for (int i = 0; i < report.network.link_count; i++)
        if (strstr(report.network.links[i].to, "core") != NULL)
            ran.core_bytes += report.network.links[i].by_dimension[TRAFFIC_DATA];
    orr_json_free(doc);
    orr_arena_free(arena);
    return ran;
}

static void links_carry_what_they_can(void)
{
    static const char *const zero[] = {"parallel.zero=1", "parallel.zero=3"};
    for (gsize z = 0; z < G_N_ELEMENTS(zero); z++) {
        const Ran whole = run(zero[z], 0), same = run(zero[z], 32);
        g_assert_cmpint(same.step_ps, ==, whole.step_ps);
        g_assert_cmpfloat(same.core_bytes, ==, whole.core_bytes);
        for (int group = 2; group <= 16; group *= 2) {
            const Ran ran = run(zero[z], group);
            g_test_message("%s in groups of %d: %.3f s, %.3g GB to the core", zero[z], group,
                           (double)ran.step_ps * 1e-12, ran.core_bytes * 1e-9);
            g_assert_cmpfloat(ran.core_bytes, >, 0);
        }
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/traffic/shards/links-carry-what-they-can", links_carry_what_they_can);
    return g_test_run();
}
