/* tests/fuzz/fuzz_tables.c - bytes as a file of measurements, of published runs and of kernels and collectives: rows, or a
 * message. No row is simulated here; fuzz_scenario.c does that.
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "calibrate/fit/collective_rows.h"
#include "calibrate/fit/merge.h"
#include "calibrate/fit/table.h"
#include "cli/sweep_page.h"
#include "ledger/validate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool choose_nothing(const Spec *spec, Spec *ret_spec, GError **error)
{
    (void)spec;
    (void)ret_spec;
    g_set_error_literal(error, ORR_ERROR, ORR_ERROR_INPUT, "not simulated");
    return false;
}

static void read_published(const char *path)
{
    Ledger ledger;
    GError *error = NULL;
    if (ledger_replay(&path, 1, NULL, choose_nothing, NULL, NULL, &ledger, &error)) {
        GString *out = g_string_new(NULL);
        ledger_write_text(&ledger, true, out);
        ledger_write_json(&ledger, out);
        ledger_write_csv(&ledger, out);
        g_string_free(out, TRUE);
        ledger_clear(&ledger);
    } else {
        g_assert(error != NULL);
        g_error_free(error);
    }
}

static void read_kernels(const char *path)
{
    GString *log = g_string_new(NULL);
    GArray *rows = NULL;
    GError *error = NULL;
    if (cal_table_read(path, &rows, log, &error)) {
        g_array_unref(rows);
    } else {
        g_assert(error != NULL);
        g_error_free(error);
    }
    g_string_free(log, TRUE);
}

/* Beside a sweep that is whole: what becomes one table is a table again, with as many stamps as sweeps. */
static void merge_with(const char *path)
{
    static const char sweep[] =
        "{\"stamp\": {\"device\": \"NVIDIA H200\", \"uuid\": \"u\", \"date\": \"d\", \"host\": \"h\"}, "
        "\"gemm_measurements\": [{\"gpu\": \"NVIDIA H200\", \"m\": 1, \"n\": 1, \"k\": 1, "
        "\"dtype\": \"bf16\", \"time_us\": 1}]}";
    g_autofree char *other = g_strconcat(path, ".other", NULL);
    char *paths[] = {other, (char *)path, NULL};
    g_autoptr(GString) out = g_string_new(NULL);
    GError *error = NULL;
    if (!g_file_set_contents(other, sweep, -1, NULL))
        g_error("cannot write %s", other);
    if (cal_merge_tables(paths, out, &error)) {
        OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "merged", &error);
        g_assert_no_error(error);
        g_assert(orr_json_count(orr_json_member(orr_json_root(doc), "stamps")) == 2);
        g_assert(orr_json_count(orr_json_member(orr_json_root(doc), "gemm_measurements")) >= 1);
        orr_json_free(doc);
    } else {
        g_assert(error != NULL && error->message[0] != '\0');
        g_error_free(error);
    }
    unlink(other);
}

/* What is shown of a table, whatever its numbers, are whole figures. */
static void show(const char *path)
{
    g_autofree char *page = g_strconcat(path, ".html", NULL), *text = NULL;
    GError *error = NULL;
    if (cli_sweep_page(path, NULL, "", page, &error)) {
        g_assert_true(g_file_get_contents(page, &text, NULL, NULL));
        g_assert_null(strstr(text, "nan\""));
        g_assert_null(strstr(text, "inf\""));
        g_assert_null(strstr(text, "<script"));
        unlink(page);
    } else {
        g_assert(error != NULL);
        g_error_free(error);
    }
}

static void read_collectives(const char *path)
{
    SpecCluster *cluster = g_new0(SpecCluster, 1);
    GArray *rows = NULL;
    GError *error = NULL;
    if (!spec_load_accelerator("h100-sxm5-80gb", &cluster->accelerator, &error))
        g_error("%s", error->message);
    cal_reference_cluster(&cluster->accelerator, cluster);
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    if (doc != NULL && cal_collective_rows(orr_json_root(doc), cluster, &rows, &error))
        g_array_unref(rows);
    else
        g_assert(error != NULL);
    g_clear_error(&error);
    if (doc != NULL)
        orr_json_free(doc);
    g_free(cluster);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *path = g_strdup_printf("%s/orrery-fuzz-%d.json", g_get_tmp_dir(), (int)getpid());
    if (!g_file_set_contents_full(path, (const char *)data, (gssize)size, G_FILE_SET_CONTENTS_NONE, 0600,
                                  NULL))
        g_error("cannot write %s", path);
    read_published(path);
    read_kernels(path);
    read_collectives(path);
    merge_with(path);
    show(path);
    unlink(path);
    g_free(path);
    return 0;
}
