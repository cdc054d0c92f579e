/* tests/published/test_finetuning.c - published fine-tuning runs replayed: holds the errors that docs/accuracy/finetuning.md
 * states of them, and that no row is passed over. */
#include "base/file.h"
#include "ledger/validate.h"
#include "search/choose.h"

/* Mean |error| of time and of memory; 0: none published, or no bound stated. */
static const struct {
    const char *file;
    int rows;
    double most_mape, most_memory_mape;
} sources[] = {
    {"mlperf_lora.json", 73, 0.08, 0},  {"megatron_finetune.json", 19, 0.12, 0},
    {"qwen_peft.json", 27, 0.12, 0.08}, {"qwen_wide.json", 18, 0.12, 0.08},
    {"torchtune.json", 6, 0.12, 0.08},  {"ms_swift.json", 48, 0, 0.13},
    {"habana.json", 6, 0.5, 0},
};

static Ledger ledger;

static void replay_all(void)
{
    g_autofree char *folder = orr_scenarios_dir(NULL);
    g_autoptr(GPtrArray) paths = g_ptr_array_new_with_free_func(g_free);
    g_assert_nonnull(folder);
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++)
        g_ptr_array_add(paths, g_build_filename(folder, "finetuning", sources[i].file, NULL));
    GError *error = NULL;
    const bool ok = ledger_replay((const char *const *)(void *)paths->pdata, (int)paths->len, NULL,
                                  search_choose, NULL, NULL, &ledger, &error);
    g_assert_no_error(error);
    g_assert_true(ok);
}

static void each_source(void)
{
    for (gsize i = 0; i < G_N_ELEMENTS(sources); i++) {
        const LedgerSource *source = ledger.sources->pdata[i];
        g_test_message("%s: time %.4f, memory %.4f", source->file, source->all.mape, source->all.memory_mape);
        g_assert_cmpint(source->all.rows, ==, sources[i].rows);
        g_assert_cmpint(source->all.skipped, ==, 0);
        if (sources[i].most_mape > 0)
            g_assert_cmpfloat(source->all.mape, <=, sources[i].most_mape);
        if (sources[i].most_memory_mape > 0)
            g_assert_cmpfloat(source->all.memory_mape, <=, sources[i].most_memory_mape);
    }
}

/* Rows that train adapters are counted from what each says, and only there. */
static void adapters(void)
{
    g_assert_cmpint(ledger.overall_adapters.rows, ==, 167);
    g_assert_cmpint(ledger.overall_adapters.memory_rows, ==, 80);
    g_assert_cmpfloat(ledger.overall_adapters.memory_mape, <=, 0.08);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    replay_all();
    g_test_add_func("/published/finetuning/sources", each_source);
    g_test_add_func("/published/finetuning/adapters", adapters);
    const int failed = g_test_run();
    ledger_clear(&ledger);
    return failed;
}
