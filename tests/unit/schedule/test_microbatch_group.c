/* tests/unit/schedule/test_microbatch_group.c - how many micro-batches a model chunk runs before the next one: as many as
 * pipeline ranks is the usual interleaving, more hold the activations of Megatron-LM's order; refused where nothing runs in
 * groups; and Megatron's own words for it. */
#include "base/file.h"
#include "exchange/exchange.h"
#include "report/report.h"
#include "tests/unit/test_spec_support.h"

enum { RANKS = 4, CHUNKS = 2, MICROBATCHES = 32 };

/* 4 pipeline ranks on 4 GPUs, micro-batches of one sequence; false with the message (g_free). */
static bool load(const char *schedule, int group, int microbatches, Spec *spec, char **ret_message)
{
    g_autofree char *parallel = g_strdup_printf(
        "parallel={\"pipeline\":%d,\"schedule\":\"%s\",\"virtual_stages\":%d,\"microbatch_group\":%d}", RANKS,
        schedule, strcmp(schedule, "interleaved") == 0 ? CHUNKS : 1, group);
    g_autofree char *batch = g_strdup_printf("training.global_batch=%d", microbatches);
    const char *const sets[] = {
        parallel, batch, "training.micro_batch=1",
        "cluster={\"accelerator\":" TEST_ACCELERATOR ",\"gpus_per_node\":4,\"nodes\":1}", NULL};
    return test_load(sets, false, spec, NULL, ret_message);
}

static Report run(int group, int microbatches, OrrArena *arena)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    char *message = NULL;
    GError *error = NULL;
    Report report;
    g_assert_true(load("interleaved", group, microbatches, spec, &message));
    report_run(spec, NULL, &(ReportOptions){.check = true}, arena, &report, &error);
    g_assert_no_error(error);
    return report;
}

/* Activations of the first rank: (v - 1) more chunks live for each micro-batch more in a group; the chunk with the embedding
 * holds a few bytes else than the other. */
static void test_memory(void)
{
    OrrArena *arena = orr_arena_new();
    const Report usual = run(0, MICROBATCHES, arena), same = run(RANKS, MICROBATCHES, arena),
                 wide = run(2 * RANKS, MICROBATCHES, arena), widest = run(3 * RANKS, MICROBATCHES, arena);
    g_assert_cmpint(same.step_ps, ==, usual.step_ps);
    g_assert_cmpfloat(same.peak_bytes, ==, usual.peak_bytes);
    const double more_bytes = wide.peak_bytes - usual.peak_bytes;
    g_assert_cmpfloat(more_bytes, >, 0);
    g_assert_cmpfloat(ABS(widest.peak_bytes - wide.peak_bytes - more_bytes), <, 1e-4 * more_bytes);
    orr_arena_free(arena);
}

/* Whatever group is accepted runs and holds what must hold; what is not says which key. */
static void test_any_group(void)
{
    int runs = 0, refusals = 0;
    for (int round = 0; round < 60; round++) {
        const int group = g_test_rand_int_range(1, 24), microbatches = g_test_rand_int_range(1, 48);
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autofree char *message = NULL;
        if (!load("interleaved", group, microbatches, spec, &message)) {
            g_assert_cmpint(group, <, RANKS);
            g_assert_nonnull(strstr(message, "parallel.microbatch_group"));
            refusals++;
            continue;
        }
        OrrArena *arena = orr_arena_new();
        GError *error = NULL;
        Report report;
        if (!report_run(spec, NULL, &(ReportOptions){.check = true}, arena, &report, &error)) {
            g_assert_nonnull(strstr(error->message, "locks up"));
            g_assert_cmpint(microbatches % group % RANKS, !=, 0);
            g_error_free(error);
        } else {
            runs++;
        }
        orr_arena_free(arena);
    }
    g_assert_cmpint(runs, >, 10);
    g_assert_cmpint(refusals, >, 0);
}

static void test_refused(void)
{
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *message = NULL;
    g_assert_false(load("1f1b", RANKS, MICROBATCHES, spec, &message));
    g_assert_nonnull(strstr(message, "parallel.microbatch_group: 4, but schedule \"1f1b\""));
}

/* Both of Megatron's formats say it and come back with it. */
static void test_megatron(void)
{
    static const struct {
        ExchangeFormat format;
        const char *says;
    } cases[] = {{EXCHANGE_FORMAT_MEGATRON, "--microbatch-group-size-per-virtual-pipeline-stage 8"},
                 {EXCHANGE_FORMAT_MEGATRON_BRIDGE, "model.microbatch_group_size_per_vp_stage=8"}};
    GError *error = NULL;
    g_autofree char *folder = orr_scenarios_dir(&error);
    g_autofree char *path = g_build_filename(folder, "examples", "gpt3-175b-interleaved.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        OrrJsonDoc *scenario = orr_json_read_file(path, &error);
        g_assert_no_error(error);
        g_assert_true(orr_json_set(scenario, "parallel.microbatch_group", "8", NULL));
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GString) text = g_string_new(NULL);
        g_auto(ExchangeLoss) loss;
        exchange_loss_init(&loss);
        spec_load_json(orr_json_root(scenario), "scenario", NULL, false, spec, NULL, &error);
        g_assert_no_error(error);
        exchange_export(spec, orr_json_root(scenario), cases[i].format, text, NULL, &error);
        g_assert_no_error(error);
        g_assert_nonnull(strstr(text->str, cases[i].says));
        OrrJsonDoc *back =
            exchange_import(text->str, text->len, "file", (int)cases[i].format, NULL, &loss, &error);
        g_assert_no_error(error);
        const OrrJson *parallel = orr_json_member(orr_json_root(back), "parallel");
        g_assert_cmpfloat(orr_json_number(orr_json_member(parallel, "microbatch_group")), ==, 8);
        orr_json_free(back);
        orr_json_free(scenario);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/microbatch-group/memory", test_memory);
    g_test_add_func("/microbatch-group/any-group", test_any_group);
    g_test_add_func("/microbatch-group/refused", test_refused);
    g_test_add_func("/microbatch-group/megatron", test_megatron);
    return g_test_run();
}
