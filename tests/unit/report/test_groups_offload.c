/* tests/unit/report/test_groups_offload.c - offloading on several kinds of nodes: kinds that are alike are the plain cluster to the
 * picosecond, in every scheme; a kind whose hosts are worse in all is the step's pace; each host's own room; what is refused. */
#include <math.h>
#include <string.h>

#include "report/report.h"
#include "spec/load.h"

static bool try_load(const char *cluster, const char *parallel, const char *offload, const char *more,
                     Spec *spec, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"name\":\"m\",\"layers\":8,\"hidden\":1024,\"heads\":16,\"kv_heads\":16,"
        "\"ffn_hidden\":4096,\"vocab\":32000},\"cluster\":%s,\"parallel\":%s,\"offload\":%s,"
        "\"training\":{\"sequence_length\":1024,\"global_batch\":64,\"micro_batch\":1,\"recompute\":\"full\"}"
        ","
        "\"execution\":{\"framework\":{\"preset\":\"deepspeed\",\"optimizer\":{\"offload_schemes\":["
        "\"zero-offload\",\"zero-offload-dpu\",\"twin-flow\",\"superoffload\",\"stronghold\",\"memferry\","
        "\"zero3-offload\",\"zero-infinity\"]}}}%s}",
        cluster, parallel, offload, more);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "mixed", error);
    g_assert_nonnull(doc);
    const bool ok = spec_load_json(orr_json_root(doc), "mixed", NULL, false, spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

static Report run(const char *cluster, const char *parallel, const char *offload, bool unfold, Spec *spec,
                  OrrArena *arena)
{
    const ReportOptions options = {.unfold = unfold, .check = true};
    Report report;
    GError *error = NULL;
    try_load(cluster, parallel, offload, "", spec, &error);
    g_assert_no_error(error);
    report_run(spec, NULL, &options, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

static int64_t step_of(const char *cluster, const char *parallel, const char *offload)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    const int64_t step_ps = run(cluster, parallel, offload, false, spec, arena).step_ps;
    orr_arena_free(arena);
    return step_ps;
}

typedef struct Shape {
    const char *parallel, *offload;
} Shape;

#define PIPE  "{\"tensor\":4,\"pipeline\":4,\"data\":2,\"zero\":1}"
#define ALONE "{\"tensor\":8,\"pipeline\":4,\"data\":1}"

static const Shape shapes[] = {
    {"{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":2}", "{\"scheme\":\"zero-offload\"}"},
    {"{\"tensor\":2,\"pipeline\":1,\"data\":16,\"zero\":1}", "{\"scheme\":\"zero-offload-dpu\"}"},
    {"{\"tensor\":8,\"pipeline\":1,\"data\":4,\"zero\":2}", "{\"scheme\":\"superoffload\"}"},
    {"{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":3}", "{\"scheme\":\"zero3-offload\"}"},
    {"{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":3}", "{\"scheme\":\"zero-infinity\"}"},
    {"{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":3}", "{\"scheme\":\"twin-flow\"}"},
    {PIPE, "{\"scheme\":\"zero-offload\"}"},
    {PIPE, "{\"activation_layers\":1}"},
    {PIPE, "{\"activation_layers\":1,\"activations\":{\"tier\":\"nvme\"}}"},
    {ALONE, "{\"scheme\":\"stronghold\"}"},
    {ALONE, "{\"scheme\":\"memferry\"}"},
};

static void test_alike(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(shapes); i++)
        for (int unfold = 0; unfold < 2; unfold++) {
            g_autofree Spec *plain = g_new0(Spec, 1), *groups = g_new0(Spec, 1);
            OrrArena *arena = orr_arena_new();
            const Report a = run("{\"preset\":\"dgx-h100\",\"nodes\":4}", shapes[i].parallel,
                                 shapes[i].offload, false, plain, arena);
            const Report b = run("{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":1},"
                                 "{\"preset\":\"dgx-h100\",\"nodes\":3}]}",
                                 shapes[i].parallel, shapes[i].offload, unfold, groups, arena);
            g_assert_cmpint(groups->cluster.group_count, ==, 2);
            g_assert_cmpint(a.step_ps, ==, b.step_ps);
            g_assert_true(a.fits == b.fits && a.offload.on == b.offload.on);
            g_assert_true(a.offload.host_bytes == b.offload.host_bytes);
            g_assert_true(a.offload.nvme_bytes == b.offload.nvme_bytes);
            g_assert_cmpint(a.offload.window_layers, ==, b.offload.window_layers);
            g_assert_cmpfloat(fabs(a.reserved_bytes - b.reserved_bytes), <, 1);
            orr_arena_free(arena);
        }
}

#define WORSE                                                                                                \
    "{\"preset\":\"dgx-h100\",\"nodes\":%d,\"host\":{\"dram_bytes_per_s\":7.68e10,\"nvme_read_bytes_per_"    \
    "s\":"                                                                                                   \
    "1.3825e10,"                                                                                             \
    "\"nvme_write_bytes_per_s\":4.2375e9}}"

/* GPUs and links alike, hosts of one kind worse in all, by powers of two that keep amounts whole: nobody waits for the others, so the step is theirs alone, whichever
 * of the two comes first. Data parallel layouts, where a replica's ranks are all of one kind. */
static void test_worse(void)
{
    for (gsize i = 0; i < 6; i++) {
        g_autofree char *bad = g_strdup_printf(WORSE, 4), *half = g_strdup_printf(WORSE, 2);
        g_autofree char *last =
            g_strdup_printf("{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},%s]}", half);
        g_autofree char *first =
            g_strdup_printf("{\"groups\":[%s,{\"preset\":\"dgx-h100\",\"nodes\":2}]}", half);
        const int64_t good_ps =
            step_of("{\"preset\":\"dgx-h100\",\"nodes\":4}", shapes[i].parallel, shapes[i].offload);
        const int64_t bad_ps = step_of(bad, shapes[i].parallel, shapes[i].offload);
        const int64_t mixed_ps = step_of(last, shapes[i].parallel, shapes[i].offload);
        g_assert_cmpint(bad_ps, >, good_ps);
        g_assert_cmpint(step_of(first, shapes[i].parallel, shapes[i].offload), ==, mixed_ps);
        g_assert_cmpint(mixed_ps, ==, bad_ps);
    }
}

/* The room of each kind's own host, and the fullest of them in the report. */
static void test_room(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    OrrArena *arena = orr_arena_new();
    const Report report = run("{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-h100\","
                              "\"nodes\":2,\"host\":{\"dram_bytes\":1e8}}]}",
                              shapes[0].parallel, shapes[0].offload, false, spec, arena);
    g_assert_false(report.fits);
    g_assert_false(report.offload.host_fits);
    g_assert_cmpfloat(report.offload.host_capacity_bytes, ==, 1e8);
    orr_arena_free(arena);
}

static void test_refused(void)
{
    static const struct {
        const char *cluster, *parallel, *offload, *more, *says;
    } cases[] = {
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-h100\",\"nodes\":2,"
         "\"host\":{\"cores\":0,\"dram_bytes\":0}}]}",
         "{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":2}", "{\"scheme\":\"zero-offload\"}", "",
         "is not described"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-a100-80gb\",\"nodes\":2}]}",
         "{\"tensor\":1,\"pipeline\":8,\"data\":4,\"zero\":1}", "{\"scheme\":\"zero-offload\"}", "",
         "that share a host"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-a100-80gb\",\"nodes\":2}]}",
         "{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":1,\"replica_microbatches\":[3,1,2,2,2,2,2,2,2,2,"
         "2,2,2,2,"
         "2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2,2]}",
         "{\"scheme\":\"zero-offload\"}", "", "that share a host"},
        {"{\"groups\":[{\"preset\":\"dgx-h100\",\"nodes\":2},{\"preset\":\"dgx-a100-80gb\",\"nodes\":2}]}",
         "{\"tensor\":1,\"pipeline\":1,\"data\":32,\"zero\":2}", "{\"scheme\":\"zero-offload\"}",
         ",\"jitter\":\"slow-machines\"", "jitter and offload at once"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        const ReportOptions options = {0};
        OrrArena *arena = orr_arena_new();
        Report report;
        GError *error = NULL;
        const bool ok =
            try_load(cases[i].cluster, cases[i].parallel, cases[i].offload, cases[i].more, spec, &error) &&
            report_run(spec, NULL, &options, arena, &report, &error);
        g_assert_false(ok);
        g_assert_nonnull(error);
        if (strstr(error->message, cases[i].says) == NULL)
            g_error("%s", error->message);
        g_clear_error(&error);
        orr_arena_free(arena);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/groups-offload/alike", test_alike);
    g_test_add_func("/groups-offload/worse", test_worse);
    g_test_add_func("/groups-offload/room", test_room);
    g_test_add_func("/groups-offload/refused", test_refused);
    return g_test_run();
}
