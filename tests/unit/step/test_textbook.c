/* unit/step/test_textbook.c - the bubbles of the schedules' papers, to the picosecond. */
#include <math.h>
#include <string.h>

#include "report/report.h"
#include "spec/load.h"

static Spec *load(const char *schedule, const char *chunks, const char *set, GError **error)
{
    static const char TEXT[] = "{\"model\":\"gpt-7.5b\",\"cluster\":{\"preset\":\"dgx-a100-80gb\",\"nodes\":"
                               "2},\"training\":{\"sequence_length\":2048,"
                               "\"global_batch\":32,\"micro_batch\":1,\"recompute\":\"full\"},\"parallel\":{"
                               "\"pipeline\":4,\"data\":4,\"zero\":1},"
                               "\"execution\":{\"framework\":\"megatron-core\"}}";
    g_autofree char *schedules = g_strdup_printf("parallel.schedule=%s", schedule),
                    *virtual = g_strdup_printf("parallel.virtual_stages=%s", chunks);
    const char *const sets[] = {schedules, virtual, set, NULL};
    Spec *spec = g_new0(Spec, 1);
    OrrJsonDoc *doc = orr_json_parse(TEXT, strlen(TEXT), "test", NULL);
    spec_load_json(orr_json_root(doc), "test", sets, false, spec, NULL, error);
    orr_json_free(doc);
    return spec;
}

/* Four ranks, eight micro-batches: GPipe and 1F1B wait 3 of 11, interleaving with v chunks a v-th of that, ZB-H1 a third of it,
 * and ZB-H2 does not wait. [Qi2024] table 2 */
static void test_bubbles(void)
{
    static const struct {
        const char *schedule, *chunks;
        double bubble;
    } cases[] = {{"gpipe", "1", 3.0 / 11}, {"1f1b", "1", 3.0 / 11}, {"interleaved", "2", 1.5 / 9.5},
                 {"zb-h1", "1", 1.0 / 9},  {"zb-h2", "1", 0},       {"zb-auto", "1", 0}};
    static const ReportOptions textbook = {.textbook = true, .check = true};
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_autofree Spec *spec = load(cases[i].schedule, cases[i].chunks, NULL, &error);
        g_assert_no_error(error);
        OrrArena *arena = orr_arena_new();
        Report report;
        report_run(spec, NULL, &textbook, arena, &report, &error);
        g_assert_no_error(error);
        g_test_message("%s: %.6f", cases[i].schedule, report.bubble_frac);
        g_assert_cmpfloat_with_epsilon(report.bubble_frac, cases[i].bubble, 1e-6);
        orr_arena_free(arena);
    }
}

/* what a step keeps is the scenario's: sharded weights stay sharded */
static void test_memory(void)
{
    double peak[2];
    for (int textbook = 0; textbook < 2; textbook++) {
        const ReportOptions options = {.textbook = textbook == 1, .check = true};
        GError *error = NULL;
        g_autofree Spec *spec = load("1f1b", "1", "parallel.zero=3", &error);
        g_assert_no_error(error);
        OrrArena *arena = orr_arena_new();
        Report report;
        report_run(spec, NULL, &options, arena, &report, &error);
        g_assert_no_error(error);
        peak[textbook] = report.peak_bytes;
        orr_arena_free(arena);
    }
    g_assert_cmpfloat(peak[1], <=, peak[0]); /* less: nothing is gathered ahead */
}

static void test_refused(void)
{
    GError *error = NULL;
    static const ReportOptions textbook = {.textbook = true};
    g_autofree Spec *spec = load("1f1b", "1", "cluster.network.fidelity=flow", &error);
    g_assert_no_error(error);
    OrrArena *arena = orr_arena_new();
    Report report;
    g_assert_false(report_run(spec, NULL, &textbook, arena, &report, &error));
    g_assert_nonnull(strstr(error->message, "--textbook: cluster.network.fidelity flow"));
    g_clear_error(&error);
    orr_arena_free(arena);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/textbook/bubbles", test_bubbles);
    g_test_add_func("/textbook/memory", test_memory);
    g_test_add_func("/textbook/refused", test_refused);
    return g_test_run();
}
