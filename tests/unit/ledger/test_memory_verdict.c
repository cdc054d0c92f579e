/* tests/unit/ledger/test_memory_verdict.c - the memory reserve, odds and verdict, by hand on made-up ledgers and on
 * the shipped one. */
#include <glib/gstdio.h>
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "ledger/memory.h"

static void add_kind(LedgerResiduals *residuals, const char *framework, const char *kind, double beyond_frac)
{
    const LedgerMemoryResidual row = {.source = ledger_residuals_source(residuals, framework),
                                      .id = "run",
                                      .accelerator = "fast",
                                      .framework = framework,
                                      .kind = kind,
                                      .beyond_frac = beyond_frac};
    ledger_residuals_add_memory(residuals, &row);
}

static void add(LedgerResiduals *residuals, const char *framework, double beyond_frac)
{
    add_kind(residuals, framework, "allocated", beyond_frac);
}

/* 60 runs of one framework, 0.01 to 0.60, and 5 of another, 0.9 and below. */
static LedgerResiduals *made_up(void)
{
    LedgerResiduals *residuals = ledger_residuals_new();
    for (int i = 60; i >= 1; i--)
        add(residuals, i % 2 == 0 ? "alpha-2024" : "alpha", i / 100.0);
    for (int i = 1; i <= 5; i++)
        add(residuals, "beta", i == 5 ? 0.9 : -0.1);
    return residuals;
}

static void close_to(double value, double expected)
{
    g_assert_cmpfloat(fabs(value - expected), <, 1e-12);
}

/* ceil(0.98 x 61) = 60th of alpha's 60; of all 65 the ceil(0.98 x 66) = 65th. A framework of five runs takes all. */
static void test_reserve_by_hand(void)
{
    LedgerResiduals *residuals = made_up();
    const LedgerReserve alpha = ledger_reserve(residuals, "alpha", -1);
    const LedgerReserve later = ledger_reserve(residuals, "alpha-2025", -1);
    const LedgerReserve beta = ledger_reserve(residuals, "beta", -1);
    close_to(alpha.frac, 0.60);
    g_assert_true(alpha.own);
    g_assert_cmpint(alpha.runs, ==, 60);
    close_to(later.frac, alpha.frac); /* generations of one software */
    close_to(beta.frac, 0.9);
    g_assert_false(beta.own);
    g_assert_cmpint(beta.runs, ==, 65);
    close_to(ledger_reserve(residuals, "beta", ledger_residuals_source(residuals, "beta")).frac,
             1); /* 2 x 0.6 */
    close_to(ledger_reserve(NULL, "beta", -1).frac, 0);
    close_to(ledger_memory_odds(residuals, "alpha", 0.30), 0.5);
    g_assert_true(isnan(ledger_memory_odds(NULL, "alpha", 0.30)));
    ledger_residuals_free(residuals);
}

/* Ten tensors' peaks and thirty readings of allocators that grew: the first are the need, the second what was seen. A
 * blind set's and an assumed configuration's peaks are seen and no need. A framework without a run: twice. */
static void test_growth_is_no_need(void)
{
    LedgerResiduals *residuals = ledger_residuals_new();
    for (int i = 1; i <= 10; i++)
        add_kind(residuals, "alpha", "allocated", i / 200.0);
    for (int i = 1; i <= 30; i++)
        add_kind(residuals, "alpha", i % 2 == 0 ? "device" : "reserved", i / 100.0);
    add_kind(residuals, "beta", "assumed", 0.7);
    add_kind(residuals, "blind", "allocated", 0.8);
    g_hash_table_add(residuals->judging, GINT_TO_POINTER(ledger_residuals_source(residuals, "blind")));
    const LedgerReserve alpha = ledger_reserve(residuals, "alpha", -1);
    close_to(alpha.frac, 0.05);
    close_to(alpha.seen_frac, 0.30);
    g_assert_true(alpha.own && !alpha.doubled);
    const LedgerReserve beta = ledger_reserve(residuals, "beta", -1),
                        gamma = ledger_reserve(residuals, "gamma", -1),
                        blind = ledger_reserve(residuals, "blind", -1);
    close_to(beta.frac, 0.05);
    close_to(gamma.frac, 0.10);
    close_to(blind.frac, 0.10);
    g_assert_true(!beta.own && !beta.doubled && gamma.doubled && blind.doubled);
    close_to(gamma.seen_frac, 0.8);
    close_to(ledger_memory_odds(residuals, "alpha", 0.02), 0.4);
    ledger_residuals_free(residuals);
}

static void test_never_negative(void)
{
    LedgerResiduals *residuals = ledger_residuals_new();
    for (int i = 0; i < 30; i++)
        add(residuals, "cautious", -0.2);
    close_to(ledger_reserve(residuals, "cautious", -1).frac, 0);
    ledger_residuals_free(residuals);
}

static void test_asked(void)
{
    static const struct {
        const char *text;
        double frac, bytes;
    } good[] = {{"0", 0, 0}, {"0.1", 0.1, 0}, {"8 GiB", 0, 8.0 * 1073741824}, {"2e9", 0, 2e9}};
    static const char *const bad[] = {"-0.1", "much", "", "nan", "-3 GiB", "1", "8", "1e30"};
    LedgerReserveAsk ask;
    for (gsize i = 0; i < G_N_ELEMENTS(good); i++) {
        GError *error = NULL;
        g_assert_true(ledger_reserve_parse(good[i].text, &ask, &error));
        g_assert_no_error(error);
        g_assert_true(ask.given);
        close_to(ask.frac, good[i].frac);
        close_to(ask.bytes, good[i].bytes);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autoptr(GError) error = NULL;
        g_assert_false(ledger_reserve_parse(bad[i], &ask, &error));
        g_assert_nonnull(strstr(error->message, "--memory-reserve"));
    }
    g_assert_true(ledger_reserve_parse(NULL, &ask, NULL));
    g_assert_false(ask.given);
}

/* Whose word counts: the command line's, the scenario's, the ledger's. */
static void test_precedence(void)
{
    LedgerResiduals *residuals = made_up();
    g_autofree Spec *spec = g_new0(Spec, 1);
    const LedgerReserveAsk tenth = {.given = true, .frac = 0.1}, none = {.given = true};
    spec->cluster.accelerator.memory_bytes = 100;
    g_strlcpy(spec->execution.framework.name, "alpha", sizeof spec->execution.framework.name);
    close_to(ledger_reserve_bytes(residuals, NULL, spec), 60);
    close_to(ledger_reserve_bytes(residuals, &tenth, spec), 10);
    close_to(ledger_reserve_bytes(residuals, &none, spec), 0);
    const LedgerReserveAsk most = {.given = true, .bytes = 99}, all = {.given = true, .bytes = 100};
    GError *error = NULL;
    g_assert_true(ledger_reserve_check(&most, spec, &error) && ledger_reserve_check(NULL, spec, &error));
    g_assert_false(ledger_reserve_check(&all, spec, &error));
    g_assert_nonnull(strstr(error->message, "--memory-reserve"));
    g_clear_error(&error);
    spec->search.reserve_memory_bytes = 7;
    close_to(ledger_reserve_bytes(residuals, NULL, spec), 7);
    close_to(ledger_reserve_bytes(residuals, &tenth, spec), 10);
    spec->search.reserve_memory_bytes = 0;
    spec->search.max_memory_frac = 0.9; /* a limit of the user's own */
    close_to(ledger_reserve_bytes(residuals, NULL, spec), 0);
    ledger_residuals_free(residuals);
}

static void test_verdict(void)
{
    static const struct {
        double needed, reserved;
        bool fits;
        ReportMemory verdict;
        double odds;
    } cases[] = {{101, 101, false, REPORT_MEMORY_NONE, 0},
                 {100, 100, true, REPORT_MEMORY_EDGE, 0},
                 {70, 70, true, REPORT_MEMORY_EDGE, 0.5},
                 {39, 41, true, REPORT_MEMORY_FITS, 1},
                 {39, 101, true, REPORT_MEMORY_EDGE, 1}}; /* the allocator must give blocks back */
    LedgerResiduals *residuals = made_up();
    g_autofree Spec *spec = g_new0(Spec, 1);
    spec->cluster.accelerator.memory_bytes = 100;
    g_strlcpy(spec->execution.framework.name, "alpha", sizeof spec->execution.framework.name);
    for (gsize i = 0; i < G_N_ELEMENTS(cases); i++) {
        Report report = {.spec = spec,
                         .capacity_bytes = 100,
                         .needed_bytes = cases[i].needed,
                         .reserved_bytes = cases[i].reserved,
                         .fits = cases[i].fits};
        ledger_memory_fill(residuals, NULL, &report);
        g_assert_cmpint(report.memory_verdict, ==, cases[i].verdict);
        close_to(report.memory_odds, cases[i].odds);
        close_to(report.reserve_bytes, 60);
    }
    ledger_residuals_free(residuals);
}

/* Memory rows survive their file, never with less than was taken. */
static void test_file(void)
{
    LedgerResiduals *residuals = made_up(), *read = NULL;
    GError *error = NULL;
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree char *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "residuals.json", NULL);
    add(residuals, "gamma", 0.123401);
    ledger_residuals_write(residuals, text);
    g_assert_true(orr_file_write(path, text->str, text->len, &error));
    ledger_residuals_read(path, &read, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(read->memory->len, ==, residuals->memory->len);
    for (guint i = 0; i < read->memory->len; i++) {
        const LedgerMemoryResidual *was = ledger_memory_residual(residuals, i),
                                   *is = ledger_memory_residual(read, i);
        g_assert_cmpstr(is->framework, ==, was->framework);
        g_assert_cmpfloat(is->beyond_frac, >=, was->beyond_frac - 1e-12);
        g_assert_cmpfloat(is->beyond_frac, <=, was->beyond_frac + 1.001e-4);
    }
    ledger_residuals_free(residuals);
    ledger_residuals_free(read);
    g_remove(path);
    g_rmdir(folder);
}

/* Every accelerator that we ship says how much its driver gives, and where that is from. */
static void test_capacities(void)
{
    static const struct {
        const char *name;
        double gib;
    } known[] = {{"b200-sxm-180gb", 178.35},
                 {"h100-sxm5-80gb", 79.18},
                 {"h200-sxm5-141gb", 139.80},
                 {"gb200-nvl72", 184.31},
                 {"mi300x-192gb", 191.98}};
    for (gsize i = 0; i < G_N_ELEMENTS(known); i++) {
        SpecAccelerator accelerator;
        GError *error = NULL;
        spec_load_accelerator(known[i].name, &accelerator, &error);
        g_assert_no_error(error);
        g_assert_cmpfloat(fabs(accelerator.memory_bytes / 1073741824.0 - known[i].gib), <, 0.002);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/memory-verdict/reserve-by-hand", test_reserve_by_hand);
    g_test_add_func("/memory-verdict/growth-is-no-need", test_growth_is_no_need);
    g_test_add_func("/memory-verdict/never-negative", test_never_negative);
    g_test_add_func("/memory-verdict/asked", test_asked);
    g_test_add_func("/memory-verdict/precedence", test_precedence);
    g_test_add_func("/memory-verdict/verdict", test_verdict);
    g_test_add_func("/memory-verdict/file", test_file);
    g_test_add_func("/memory-verdict/capacities", test_capacities);
    return g_test_run();
}
