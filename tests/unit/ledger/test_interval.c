/* tests/unit/ledger/test_interval.c - the interval around a prediction: by hand, on made-up ledgers, and its file. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "ledger/interval.h"

static void add(LedgerResiduals *residuals, const char *source, LedgerClass kind, double log_ratio)
{
    const LedgerResidual row = {.source = ledger_residuals_source(residuals, source),
                                .kind = kind,
                                .id = "run",
                                .accelerator = "fast",
                                .precision = "bf16",
                                .framework = "megatron-core",
                                .schedule = "1f1b",
                                .gpus = 64,
                                .sequence_length = 2048,
                                .parameters = 7e9,
                                .log_ratio = log_ratio};
    ledger_residuals_add(residuals, &row);
}

static void close_to(double value, double expected)
{
    g_assert_cmpfloat(fabs(value - expected), <, 1e-12);
}

static LedgerResiduals *three_sources(void)
{
    LedgerResiduals *residuals = ledger_residuals_new();
    add(residuals, "a", LEDGER_CLASS_DENSE, 0.1);
    add(residuals, "a", LEDGER_CLASS_DENSE, -0.1);
    add(residuals, "b", LEDGER_CLASS_DENSE, 0.2);
    add(residuals, "c", LEDGER_CLASS_EXPERTS, -0.3);
    return residuals;
}

/* Mean squares: a 0.01, b 0.04, c 0.09. Analysis of variance: 0.06375 between sources, 0.02 within, 1.25 runs a source, so
 * two runs of one are alike by 7/11 and a's count for 11/9. */
static void test_spread_by_hand(void)
{
    LedgerResiduals *residuals = three_sources();
    const LedgerSpread spread = ledger_spread(residuals, -1);
    const double a = 11.0 / 9, pool = (a * 0.01 + 0.13) / 3, more = (a + 2) / 3;
    close_to(spread.spread[LEDGER_CLASS_DENSE], sqrt((a * 0.01 + 0.04 + pool) / (a + 1 + more)));
    close_to(spread.spread[LEDGER_CLASS_EXPERTS], sqrt((0.09 + pool) / (1 + more)));
    close_to(spread.spread[LEDGER_CLASS_SHARDED], sqrt(pool / more));
    g_assert_cmpint(spread.runs[LEDGER_CLASS_DENSE], ==, 3);
    g_assert_cmpint(spread.runs[LEDGER_CLASS_SHARDED], ==, 0);
    /* Scores, each with its source left out; nine tenths of the weight need the worst, c's, judged by a and b alone. */
    close_to(spread.z, 0.3 / sqrt((a * 0.01 + 0.04) / (a + 1)));
    ledger_residuals_free(residuals);
}

/* Without c: 0.08 / 3 between sources, 0.02 within, 4/3 runs a source, so two runs of one are alike by a fifth. */
static void test_left_out(void)
{
    LedgerResiduals *residuals = three_sources();
    const LedgerSpread without = ledger_spread(residuals, 2);
    const double a = 2 / 1.2;
    close_to(without.spread[LEDGER_CLASS_EXPERTS], sqrt((a * 0.01 + 0.04) / (a + 1)));
    close_to(without.spread[LEDGER_CLASS_DENSE], without.spread[LEDGER_CLASS_EXPERTS]);
    g_assert_cmpint(without.runs[LEDGER_CLASS_EXPERTS], ==, 0);
    g_assert_true(isnan(without.z)); /* two sources say nothing about a third */
    close_to(ledger_bias(residuals, LEDGER_CLASS_DENSE, -1), 0.1);
    close_to(ledger_bias(residuals, LEDGER_CLASS_DENSE, 1), 0);
    close_to(ledger_bias(residuals, LEDGER_CLASS_EXPERTS, 2), 0.1); /* none of its class left: all */
    ledger_residuals_free(residuals);
}

/* Where all runs of a source err by as much, it says no more by listing them ten times. */
static void test_sources_weigh_the_same(void)
{
    static const double means[] = {0.1, -0.2, 0.05, 0.15};
    LedgerSpread spread[2];
    for (int round = 0; round < 2; round++) {
        LedgerResiduals *residuals = ledger_residuals_new();
        for (int source = 0; source < 4; source++)
            for (int i = 0; i < (round == 1 && source == 1 ? 20 : 2); i++)
                add(residuals, (const char *[]){"a", "b", "c", "d"}[source], LEDGER_CLASS_DENSE,
                    means[source]);
        spread[round] = ledger_spread(residuals, -1);
        ledger_residuals_free(residuals);
    }
    close_to(spread[0].z, spread[1].z);
    close_to(spread[0].spread[LEDGER_CLASS_DENSE], spread[1].spread[LEDGER_CLASS_DENSE]);
    close_to(spread[0].spread[LEDGER_CLASS_DENSE], sqrt((0.01 + 0.04 + 0.0025 + 0.0225) / 4));
}

/* Where sources have nothing of their own, runs weigh the same, whoever published them. */
static void test_runs_weigh_the_same(void)
{
    LedgerResiduals *residuals = ledger_residuals_new();
    for (int i = 0; i < 10; i++)
        add(residuals, "many", LEDGER_CLASS_DENSE, i % 2 == 0 ? 0.1 : -0.1);
    for (int i = 0; i < 2; i++)
        add(residuals, "few", LEDGER_CLASS_DENSE, i % 2 == 0 ? 0.3 : -0.3);
    close_to(ledger_spread(residuals, -1).spread[LEDGER_CLASS_DENSE], sqrt((10 * 0.01 + 2 * 0.09) / 12));
    ledger_residuals_free(residuals);
}

static double normal(GRand *random)
{
    return sqrt(-2 * log(1 - g_rand_double(random))) * cos(2 * G_PI * g_rand_double(random));
}

static void add_source(LedgerResiduals *residuals, GRand *random, int index)
{
    char *name = g_strdup_printf("source %d", index);
    const int runs = g_rand_int_range(random, 3, 60);
    const double mean = 0.08 * normal(random);
    for (int i = 0; i < runs; i++) {
        const LedgerClass kind = g_rand_boolean(random) ? LEDGER_CLASS_DENSE : LEDGER_CLASS_EXPERTS;
        add(residuals, name, kind, mean + (kind == LEDGER_CLASS_DENSE ? 0.06 : 0.15) * normal(random));
    }
    g_free(name);
}

/* Made-up ledgers of 15 sources with biases of their own; a sixteenth, unseen, falls inside the intervals
 * about as often as they say, and the wider class has the wider interval. */
static void test_covers_unseen_source(void)
{
    GRand *random = g_rand_new_with_seed(7);
    double covered = 0;
    const int rounds = 300;
    for (int round = 0; round < rounds; round++) {
        LedgerResiduals *residuals = ledger_residuals_new();
        int inside = 0, runs = 0;
        for (int source = 0; source <= 15; source++) {
            add_source(residuals, random, source);
        }
        const LedgerSpread spread = ledger_spread(residuals, 15);
        g_assert_cmpfloat(spread.spread[LEDGER_CLASS_EXPERTS], >, spread.spread[LEDGER_CLASS_DENSE]);
        for (guint i = 0; i < residuals->rows->len; i++) {
            const LedgerResidual *row = ledger_residual(residuals, i);
            if (row->source == 15) {
                inside += fabs(row->log_ratio) <= spread.z * spread.spread[row->kind];
                runs += 1;
            }
        }
        covered += (double)inside / runs;
        ledger_residuals_free(residuals);
    }
    g_rand_free(random);
    g_test_message("unseen sources: %.1f %% covered", 100 * covered / rounds);
    g_assert_cmpfloat(covered / rounds, >, 0.87);
    g_assert_cmpfloat(covered / rounds, <, 0.93);
}

/* --- what a report says --- */

static Spec *some_spec(void)
{
    Spec *spec = g_new0(Spec, 1);
    g_strlcpy(spec->cluster.accelerator.name, "fast", SPEC_NAME_SIZE);
    g_strlcpy(spec->execution.framework.name, "megatron-core", SPEC_NAME_SIZE);
    spec->training.precision = SPEC_PRECISION_BF16;
    spec->training.sequence_length = 2048;
    spec->parallel.context = 1;
    spec->parallel.pipeline = 4;
    spec->parallel.schedule = sim_schedule_index("1f1b");
    return spec;
}

static void test_class(void)
{
    Spec *spec = some_spec();
    g_assert_cmpint(ledger_class(spec), ==, LEDGER_CLASS_DENSE);
    spec->parallel.zero = 2;
    g_assert_cmpint(ledger_class(spec), ==, LEDGER_CLASS_DENSE);
    spec->parallel.zero = 3;
    g_assert_cmpint(ledger_class(spec), ==, LEDGER_CLASS_SHARDED);
    spec->parallel.context = 2;
    g_assert_cmpint(ledger_class(spec), ==, LEDGER_CLASS_CONTEXT);
    spec->model.moe.experts = 8;
    g_assert_cmpint(ledger_class(spec), ==, LEDGER_CLASS_EXPERTS);
    g_free(spec);
}

static void test_report(void)
{
    LedgerResiduals *residuals = three_sources();
    Spec *spec = some_spec();
    OrrArena *arena = orr_arena_new();
    Report report = {.spec = spec, .gpus = 64, .parameters = 7e9, .step_ps = 10 * (int64_t)1000000000000};
    ledger_interval_fill(NULL, arena, &report);
    g_assert_cmpfloat(report.interval_coverage, ==, 0);
    ledger_interval_fill(residuals, arena, &report);
    const LedgerSpread spread = ledger_spread(residuals, -1);
    const double reach = exp(spread.z * spread.spread[LEDGER_CLASS_DENSE]);
    g_assert_cmpfloat(report.interval_coverage, ==, LEDGER_COVERAGE);
    close_to(report.interval_high_s, 10 * pow(reach, 1.5));
    g_assert_cmpfloat(fabs(report.interval_low_s * reach - 10), <, 1e-9);
    g_assert_cmpint(report.interval_runs, ==, 3);
    g_assert_cmpstr(report.interval_class, ==, "dense");
    g_assert_cmpint(report.outside_count, ==, 0);
    orr_arena_free(arena);
    g_free(spec);
    ledger_residuals_free(residuals);
}

typedef struct OutsideCase {
    const char *accelerator, *framework;
    SpecPrecision precision;
    const char *schedule;
    int gpus, sequence_length, pipeline, experts;
    double parameters;
    const char *expected; /* in the only note; NULL: no note */
    double low, high;     /* how far the interval reaches */
    const char *software; /* words of its profile */
} OutsideCase;

/* Each departs in one thing from what three_sources() holds. */
static void test_outside(void)
{
    static const OutsideCase cases[] = {
        {"slow", "megatron-core", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 0, 7e9, "accelerator slow", 2, 4,
         NULL},
        {"fast", "other", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 0, 7e9, "framework other", 1.5, 2, NULL},
        {"fast", "other", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 8, 7e9, "framework other", 2, 4, NULL},
        {"fast", "other", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 0, 7e9, "framework other", 1, 2, "Other"},
        {"fast", "", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 0, 7e9, NULL, 1, 1.5, NULL},
        {"fast", "megatron-core", SPEC_PRECISION_FP8, "1f1b", 64, 2048, 4, 0, 7e9, "precision fp8 on fast", 2,
         4, NULL},
        {"fast", "megatron-core", SPEC_PRECISION_BF16, "gpipe", 64, 2048, 4, 0, 7e9, "schedule gpipe", 1, 1.5,
         NULL},
        {"fast", "megatron-core", SPEC_PRECISION_BF16, "gpipe", 64, 2048, 1, 0, 7e9, NULL, 1, 1.5, NULL},
        {"fast", "megatron-core", SPEC_PRECISION_BF16, "1f1b", 65, 2048, 4, 0, 7e9, "65 GPUs", 1, 1.5, NULL},
        {"fast", "megatron-core", SPEC_PRECISION_BF16, "1f1b", 64, 4096, 4, 0, 7e9, "4,096 tokens", 1, 1.5,
         NULL},
        {"fast", "megatron-core", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 0, 8e9, "parameters", 1, 1.5,
         NULL},
        {"fast", "megatron-core", SPEC_PRECISION_BF16, "1f1b", 64, 2048, 4, 8, 7e9, NULL, 1, 1.5, NULL},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        const OutsideCase *given = &cases[i];
        LedgerResiduals *residuals = three_sources();
        Spec *spec = some_spec();
        OrrArena *arena = orr_arena_new();
        Report report = {.spec = spec, .gpus = given->gpus, .parameters = given->parameters, .step_ps = 1000};
        g_strlcpy(spec->cluster.accelerator.name, given->accelerator, SPEC_NAME_SIZE);
        g_strlcpy(spec->execution.framework.name, given->framework, SPEC_NAME_SIZE);
        if (given->software != NULL)
            g_strlcpy(spec->execution.framework.software, given->software, SPEC_NAME_SIZE);
        spec->training.precision = given->precision;
        spec->training.sequence_length = given->sequence_length;
        spec->parallel.schedule = sim_schedule_index(given->schedule);
        spec->parallel.pipeline = given->pipeline;
        spec->model.moe.experts = given->experts;
        ledger_interval_fill(residuals, arena, &report);
        g_assert_cmpint(report.outside_count, ==, given->expected != NULL ? 1 : 0);
        if (given->expected != NULL) {
            g_assert_nonnull(strstr(report.outside[0], given->expected));
        }
        const LedgerSpread spread = ledger_spread(residuals, -1);
        const double log_reach = spread.z * spread.spread[ledger_class(spec)];
        close_to(log(report.interval_high_s / 1e-9) / log_reach, given->high);
        close_to(log(1e-9 / report.interval_low_s) / log_reach, given->low);
        close_to(report.interval_widening, (given->low + given->high) / 2.5);
        orr_arena_free(arena);
        g_free(spec);
        ledger_residuals_free(residuals);
    }
}

/* --- the file --- */

static char *scratch_file(const char *text)
{
    char *path = NULL;
    const int fd = g_file_open_tmp("orrery-residuals-XXXXXX", &path, NULL);
    g_assert_cmpint(fd, >=, 0);
    g_close(fd, NULL);
    g_assert_true(orr_file_write(path, text, strlen(text), NULL));
    return path;
}

/* What is read and written again is the same to the byte: nothing is rounded twice. */
static void test_rewritten(void)
{
    g_autofree char *folder = orr_scenarios_dir(NULL);
    g_autofree char *path = g_build_filename(folder, "residuals.json", NULL), *text = NULL;
    LedgerResiduals *residuals = NULL;
    GError *error = NULL;
    g_autoptr(GString) out = g_string_new(NULL);
    g_assert_true(g_file_get_contents(path, &text, NULL, &error));
    ledger_residuals_read(path, &residuals, &error);
    g_assert_no_error(error);
    ledger_residuals_write(residuals, out);
    g_assert_true(g_str_equal(out->str, text)); /* too long to print */
    ledger_residuals_free(residuals);
}

static void test_round_trip(void)
{
    LedgerResiduals *residuals = three_sources(), *read = NULL;
    GString *text = g_string_new(NULL), *again = g_string_new(NULL);
    GError *error = NULL;
    ledger_residuals_write(residuals, text);
    char *path = scratch_file(text->str);
    ledger_residuals_read(path, &read, &error);
    g_assert_no_error(error);
    ledger_residuals_write(read, again);
    g_assert_cmpstr(again->str, ==, text->str);
    const LedgerSpread one = ledger_spread(residuals, -1), other = ledger_spread(read, -1);
    close_to(one.z, other.z);
    g_unlink(path);
    g_free(path);
    g_string_free(text, TRUE);
    g_string_free(again, TRUE);
    ledger_residuals_free(read);
    ledger_residuals_free(residuals);
}

#define COLUMNS                                                                                              \
    "\"columns\":[\"source\",\"id\",\"class\",\"accelerator\",\"precision\",\"framework\",\"schedule\","     \
    "\"gpus\",\"sequence_length\",\"parameters\",\"log_ratio\"]"

static void test_bad_files(void)
{
    static const char *const cases[][2] = {
        {"[]", "is not a file of residuals"},
        {"{\"columns\":[\"id\"],\"rows\":[]}", "is not a file of residuals"},
        {"{" COLUMNS ",\"rows\":7}", "is not a file of residuals"},
        {"{" COLUMNS ",\"rows\":[1]}", "rows[0]: is not a list"},
        {"{" COLUMNS ",\"rows\":[[\"a\"]]}", "as many cells"},
        {"{" COLUMNS ",\"rows\":[[\"a\",\"b\",\"odd\",\"c\",\"d\",\"e\",\"f\",1,2,3,4]]}", "rows[0]: class"},
        {"{" COLUMNS ",\"rows\":[[\"a\",\"b\",\"dense\",\"c\",\"d\",\"e\",\"f\",0,2,3,4]]}", "rows[0]: gpus"},
        {"{" COLUMNS ",\"rows\":[[\"a\",\"b\",\"dense\",\"c\",\"d\",\"e\",\"f\",1,2,3,\"x\"]]}", "log_ratio"},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        LedgerResiduals *read = NULL;
        GError *error = NULL;
        char *path = scratch_file(cases[i][0]);
        g_assert_false(ledger_residuals_read(path, &read, &error));
        g_assert_null(read);
        g_assert_nonnull(strstr(error->message, cases[i][1]));
        g_clear_error(&error);
        g_unlink(path);
        g_free(path);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/interval/spread-by-hand", test_spread_by_hand);
    g_test_add_func("/interval/left-out", test_left_out);
    g_test_add_func("/interval/sources-weigh-the-same", test_sources_weigh_the_same);
    g_test_add_func("/interval/runs-weigh-the-same", test_runs_weigh_the_same);
    g_test_add_func("/interval/covers-unseen-source", test_covers_unseen_source);
    g_test_add_func("/interval/class", test_class);
    g_test_add_func("/interval/report", test_report);
    g_test_add_func("/interval/outside", test_outside);
    g_test_add_func("/interval/file/rewritten", test_rewritten);
    g_test_add_func("/interval/file/round-trip", test_round_trip);
    g_test_add_func("/interval/file/bad", test_bad_files);
    return g_test_run();
}
