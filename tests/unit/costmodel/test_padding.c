/* unit/costmodel/test_padding.c - texts of many lengths: positions, tokens, who waits, and what does not change where all are
 * equally long. */
#include <math.h>
#include <string.h>

#include "costmodel/lengths.h"
#include "report/report.h"
#include "spec/load.h"
#include "spec/run_length.h"

static bool load(const char *training, const char *parallel, Spec *spec, GError **error)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":\"llama2-7b\",\"cluster\":{\"preset\":\"dgx-h100\",\"nodes\":1},\"training\":{\"sequence_"
        "length\":1024,"
        "\"global_batch\":32%s},\"parallel\":{%s},\"execution\":{\"framework\":\"pytorch-fsdp2\"}}",
        training, parallel);
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", error);
    const bool ok = doc != NULL && spec_load_json(orr_json_root(doc), "test", NULL, false, spec, NULL, error);
    orr_json_free(doc);
    return ok;
}

static Spec *take(const char *training, const char *parallel)
{
    GError *error = NULL;
    Spec *spec = g_new0(Spec, 1);
    load(training, parallel, spec, &error);
    g_assert_no_error(error);
    return spec;
}

static Report run(const char *training, const char *parallel, OrrArena *arena)
{
    static const ReportOptions checked = {.check = true};
    g_autofree Spec *spec = take(training, parallel);
    GError *error = NULL;
    Report report;
    report_run(spec, NULL, &checked, arena, &report, &error);
    g_assert_no_error(error);
    report.spec = NULL;
    return report;
}

#define PAIR(more) ",\"lengths\":{\"histogram\":[[100,5],[300,5]]" more "}"
#define PADDED     ",\"packed\":false"
#define DDP        "\"data\":8,\"zero\":0"
#define FSDP       "\"data\":8,\"zero\":3"

static void near(double value, double want)
{
    g_assert_cmpfloat_with_epsilon(value, want, 1e-6 * fabs(want));
}

/* 100 or 300 tokens, as likely: the longer of two has 250, of eight 300 but for one in 256. */
static void test_by_hand(void)
{
    g_autofree Spec *one = take(PAIR(PADDED) ",\"micro_batch\":4", FSDP);
    g_autofree Spec *two = take(PAIR(PADDED) ",\"micro_batch\":2", DDP);
    g_autofree Spec *packed = take(PAIR(""), FSDP);
    near(cost_positions(one), 300 - 200.0 / 16);
    near(cost_positions(two), 250);
    near(cost_longest_over_mean(two), 300 / 250.0);
    near(cost_trained_tokens(two), 32 * 200);
    near(cost_lengths_wait_frac(one), (300 - 200 / pow(2, 32)) / (300 - 200.0 / 16) - 1);
    g_assert_cmpfloat(cost_lengths_wait_frac(two), >, 0);
    g_assert_cmpfloat(cost_lengths_wait_frac(two), <, 0.2); /* two micro-batches make up for each other */
    g_assert_cmpfloat(cost_lengths_wait_frac(packed), ==, 0);
    near(cost_positions(packed), 1024);
    /* pairs of a causal row: E[l^2] / (2 E[l]) a token */
    near(cost_packed_pairs(packed), 50000 / 400.0 * 1024 * packed->training.lengths.packed_frac);
    near(cost_trained_tokens(packed), 32 * 1024 * packed->training.lengths.packed_frac);
    near(spec_text_tokens(&packed->training), 200);
}

/* Texts that all fill the sequence are the step without lengths, to the picosecond and the byte. */
static void test_equal(void)
{
    static const char *const equal[] = {",\"lengths\":{\"mean\":1024,\"log_sd\":0,\"packed\":false}",
                                        ",\"lengths\":{\"mean\":1024,\"log_sd\":0}",
                                        ",\"lengths\":{\"mean\":9000,\"log_sd\":0,\"packed\":false}"};
    static const char *const layouts[] = {DDP, FSDP, "\"tensor\":4,\"data\":2,\"zero\":1"};
    for (gsize k = 0; k < G_N_ELEMENTS(layouts); k++) {
        OrrArena *arena = orr_arena_new();
        const Report plain = run("", layouts[k], arena);
        for (gsize i = 0; i < G_N_ELEMENTS(equal); i++) {
            const Report report = run(equal[i], layouts[k], arena);
            g_assert_cmpint(report.step_ps, ==, plain.step_ps);
            g_assert_cmpfloat(report.peak_bytes, ==, plain.peak_bytes);
            g_assert_cmpfloat(report.tokens_per_s, ==, plain.tokens_per_s);
        }
        orr_arena_free(arena);
    }
}

/* A wider spread is never faster padded, nor does it need less; packing trains more tokens a second. */
static void test_spread(void)
{
    OrrArena *arena = orr_arena_new();
    int64_t before = 0;
    for (int i = 0; i < 4; i++) {
        g_autofree char *padded = g_strdup_printf(
            ",\"micro_batch\":2,\"lengths\":{\"mean\":300,\"log_sd\":%g,\"packed\":false}", 0.2 * i);
        g_autofree char *packed =
            g_strdup_printf(",\"micro_batch\":2,\"lengths\":{\"mean\":300,\"log_sd\":%g}", 0.2 * i);
        const Report wide = run(padded, FSDP, arena), rows = run(packed, FSDP, arena);
        g_assert_cmpint(wide.step_ps, >, before);
        g_assert_cmpfloat(rows.tokens_per_s, >, wide.tokens_per_s);
        g_assert_cmpint(wide.late_ps[REPORT_LATE_LENGTHS] > 0, ==, i > 0);
        before = wide.step_ps;
    }
    orr_arena_free(arena);
}

static void test_refused(void)
{
    static const char *const cases[][3] = {
        {",\"lengths\":{}", DDP, "says no length"},
        {",\"lengths\":7", DDP, "give an object"},
        {",\"lengths\":{\"histogram\":[[5,1],[4,1]]}", DDP, "rising"},
        {",\"lengths\":{\"histogram\":[[5,0]]}", DDP, "counts no text"},
        {",\"lengths\":{\"histogram\":[5]}", DDP, "entry 1"},
        {",\"lengths\":{\"mean\":300},\"document_tokens\":100", DDP, "leave one of them out"},
        {",\"lengths\":{\"mean\":3000,\"log_sd\":0.1,\"drop_longer\":true}", DDP,
         "no text is as short as 1024"},
        {",\"lengths\":{\"histogram\":[[2000,3]],\"drop_longer\":true}", DDP, "no text is as short as 1024"},
        {",\"lengths\":{\"mean\":300,\"packed\":false}", "\"context\":2,\"data\":4", "packed false"},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree Spec *spec = g_new0(Spec, 1);
        g_autoptr(GError) error = NULL;
        g_assert_false(load(cases[i][0], cases[i][1], spec, &error));
        g_assert_nonnull(strstr(error->message, cases[i][2]));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/padding/by-hand", test_by_hand);
    g_test_add_func("/padding/equal", test_equal);
    g_test_add_func("/padding/spread", test_spread);
    g_test_add_func("/padding/refused", test_refused);
    return g_test_run();
}
