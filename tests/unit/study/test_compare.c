/* tests/unit/study/test_compare.c - two runs side by side: every difference is found, and the sums add up. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "study/compare.h"

typedef struct Run {
    Spec *spec;
    OrrArena *arena;
    Report report;
} Run;

#define LAYOUT                                                                                               \
    "parallel={\"tensor\":1,\"pipeline\":1,\"expert\":1}", "cluster={\"preset\":\"dgx-h100\",\"nodes\":1}",  \
        "training.global_batch=8"

static Run run_of(const char *example, const char *const *sets)
{
    const ReportOptions options = {.unfold = false};
    GError *error = NULL;
    Run run = {.spec = g_new0(Spec, 1), .arena = orr_arena_new()};
    g_autofree char *path = g_build_filename(ORRERY_SOURCE_SCENARIOS, "examples", example, NULL);
    spec_load_file(path, sets, false, run.spec, NULL, &error);
    g_assert_no_error(error);
    report_run(run.spec, NULL, &options, run.arena, &run.report, &error);
    g_assert_no_error(error);
    return run;
}

static void run_clear(Run *run)
{
    orr_arena_free(run->arena);
    g_free(run->spec);
}

static const CompareField *find(const GArray *fields, const char *key)
{
    for (guint i = 0; i < fields->len; i++)
        if (strcmp(g_array_index(fields, CompareField, i).key, key) == 0)
            return &g_array_index(fields, CompareField, i);
    return NULL;
}

/* One --set, one difference, with both values. */
static void test_fields(void)
{
    const struct {
        const char *set, *key, *a, *b;
    } rows[] = {
        {"training.micro_batch=2", "training.micro_batch", "1", "2"},
        {"training.recompute=full", "training.recompute.mode", "selective", "full"},
        {"parallel.sequence_parallel=false", "parallel.sequence_parallel", "true", "false"},
        {"execution.overlap=[]", "execution.overlap", "grad_reduce+param_gather", "none"},
        {"model.dropout_frac=0.25", "model.dropout_frac", "0.1", "0.25"},
        {"execution.framework.loss.kernel=chunked", "execution.framework.loss.kernel", "fused", "chunked"},
        {"parallel.stage_layers=[13,12,12,12,12,12,12,11]", "parallel.stage_layers", "even",
         "13,12,12,12,12,12,12,11"},
        {"parallel.zero=0", "parallel.zero", "1", "0"},
    };
    Run a = run_of("gpt3-175b.json", NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const char *const sets[] = {rows[i].set, NULL};
        Run b = run_of("gpt3-175b.json", sets);
        g_autoptr(GArray) fields = report_compare_specs(a.spec, b.spec);
        g_assert_cmpuint(fields->len, ==, 1);
        const CompareField *field = find(fields, rows[i].key);
        g_assert_nonnull(field);
        g_assert_cmpstr(field->a, ==, rows[i].a);
        g_assert_cmpstr(field->b, ==, rows[i].b);
        run_clear(&b);
    }
    g_autoptr(GArray) none = report_compare_specs(a.spec, a.spec);
    g_assert_cmpuint(none->len, ==, 0);
    run_clear(&a);
}

/* Frameworks of different makers: some say what others leave open, and overlap what they were not asked to. */
static void test_frameworks(void)
{
    static const char *const recipes[] = {"execution.framework=megatron-core", "cluster=dgx-h100",
                                          "cluster.nodes=128", NULL},
                             *const older[] = {"execution.framework=megatron-lm-2023", "cluster=dgx-h100",
                                               "cluster.nodes=128", NULL};
    static const char *const names[2] = {"a", "b"};
    Run a = run_of("gpt3-175b.json", older), b = run_of("gpt3-175b.json", recipes);
    Comparison comparison = report_compare(&a.report, &b.report, names, true);
    const CompareField *attention =
                           find(comparison.fields, "execution.framework.defaults.attention_since_hopper"),
                       *overlap = find(comparison.fields, "execution.overlap");
    g_assert_nonnull(attention);
    g_assert_cmpstr(attention->a, ==, "not given");
    g_assert_cmpstr(attention->b, ==, "cudnn");
    g_assert_nonnull(overlap);
    g_assert_cmpstr(overlap->b, ==, "grad_reduce+param_gather+tensor");
    g_assert_true(overlap->tried);
    g_assert_cmpfloat(overlap->step_s, !=, (double)a.report.step_ps * 1e-12);
    report_compare_clear(&comparison);
    run_clear(&b);
    run_clear(&a);
}

/* Where one field differs, it alone makes A into B. */
static void test_alone(void)
{
    static const char *const sets[] = {"training.micro_batch=2", NULL};
    static const char *const names[2] = {"a", "b"};
    Run a = run_of("gpt3-175b.json", NULL), b = run_of("gpt3-175b.json", sets);
    Comparison comparison = report_compare(&a.report, &b.report, names, true);
    const CompareField *field = find(comparison.fields, "training.micro_batch");
    g_assert_true(field->tried);
    g_assert_cmpfloat(fabs(field->step_s - (double)b.report.step_ps * 1e-12), <, 1e-12);
    report_compare_clear(&comparison);
    run_clear(&b);
    run_clear(&a);
}

/* "parallel.schedule={...}" of GPipe on 4 ranks, 16 micro-batches. */
static char *gpipe_orders(void)
{
    GString *text = g_string_new("parallel.schedule={\"file\":\"other\",\"orders\":[");
    for (int r = 0; r < 4; r++) {
        g_string_append(text, r > 0 ? ",\"" : "\"");
        for (int i = 0; i < 32; i++)
            g_string_append_printf(text, "%d%c%d ", r, i < 16 ? 'F' : 'B', i % 16);
        g_string_append_c(text, '"');
    }
    g_string_append(text, "]}");
    return g_string_free(text, FALSE);
}

/* A schedule from a file goes over with its orders, and back; two files differ as one field. */
static void test_orders_alone(void)
{
    static const char *const names[2] = {"a", "b"};
    g_autofree char *other = gpipe_orders();
    const char *const own[] = {NULL}, *const named[] = {"parallel.schedule=zb-h1", NULL};
    const char *const file[] = {other, NULL}, *const *const sets[] = {own, named, file};
    for (int i = 0; i < 9; i++) {
        Run a = run_of("own-schedule.json", sets[i / 3]), b = run_of("own-schedule.json", sets[i % 3]);
        Comparison comparison = report_compare(&a.report, &b.report, names, true);
        if (i / 3 == i % 3) {
            g_assert_cmpuint(comparison.fields->len, ==, 0);
        } else {
            const CompareField *field = find(comparison.fields, "parallel.schedule");
            g_assert_true(field->tried);
            g_assert_cmpfloat(fabs(field->step_s - (double)b.report.step_ps * 1e-12), <, 1e-12);
        }
        report_compare_clear(&comparison);
        run_clear(&b);
        run_clear(&a);
    }
}

/* The parts of the JSON add up to the steps, the kinds to the reserved memory. */
static void test_sums(void)
{
    static const char *const names[2] = {"a", "b"};
    Run a = run_of("gpt3-175b.json", NULL), b = run_of("gpt3-175b-interleaved.json", NULL);
    g_autoptr(GString) text = g_string_new(NULL);
    GError *error = NULL;
    Comparison comparison = report_compare(&a.report, &b.report, names, true);
    report_compare_json(&comparison, text);
    OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "compare", &error);
    g_assert_no_error(error);
    double time_a = 0, time_b = 0, difference = 0;
    const OrrJson *time = orr_json_member(orr_json_root(doc), "time");
    for (const OrrJson *part = orr_json_first(time); part != NULL; part = orr_json_next(part)) {
        time_a += orr_json_number(orr_json_member(part, "a"));
        time_b += orr_json_number(orr_json_member(part, "b"));
        difference += orr_json_number(orr_json_member(part, "difference"));
    }
    g_assert_cmpfloat(fabs(time_a - (double)a.report.step_ps * 1e-12), <, 1e-9);
    g_assert_cmpfloat(fabs(time_b - (double)b.report.step_ps * 1e-12), <, 1e-9);
    g_assert_cmpfloat(fabs(difference - (time_b - time_a)), <, 1e-9);
    const CompareField *schedule = find(comparison.fields, "parallel.schedule");
    g_assert_true(schedule->tried); /* with its virtual stages, A is B */
    g_assert_cmpfloat(fabs(schedule->step_s - time_b), <, 1e-9);
    orr_json_free(doc);
    report_compare_clear(&comparison);
    run_clear(&b);
    run_clear(&a);
}

/* Models with experts and latent attention beside one without: each part is tried whole, both ways. */
static void test_parts_of_models(void)
{
    static const char *const names[2] = {"a", "b"};
    static const char *const keys[] = {"model.moe.experts", "model.mla.kv_lora_rank"};
    static const char *const parts[] = {"model.moe.top_k", "model.mla.qk_nope_head_dim"};
    for (int way = 0; way < 2; way++) {
        const char *const latent[] = {LAYOUT, "model=deepseek-v2-lite", NULL};
        const char *const dense[] = {LAYOUT, "model=llama2-7b", NULL};
        Run a = run_of("gpt3-175b.json", way == 0 ? dense : latent),
            b = run_of("gpt3-175b.json", way == 0 ? latent : dense);
        Comparison comparison = report_compare(&a.report, &b.report, names, true);
        for (gsize i = 0; i < G_N_ELEMENTS(keys); i++) {
            g_assert_true(find(comparison.fields, keys[i])->tried);
            const CompareField *part = find(comparison.fields, parts[i]);
            g_assert_false(part->tried);
            g_assert_true(g_str_has_suffix(part->reason, keys[i]));
        }
        report_compare_clear(&comparison);
        run_clear(&b);
        run_clear(&a);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/compare/fields", test_fields);
    g_test_add_func("/compare/frameworks", test_frameworks);
    g_test_add_func("/compare/alone", test_alone);
    g_test_add_func("/compare/orders-alone", test_orders_alone);
    g_test_add_func("/compare/sums", test_sums);
    g_test_add_func("/compare/parts-of-models", test_parts_of_models);
    return g_test_run();
}
