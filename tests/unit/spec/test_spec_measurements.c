/* Every published measurement row loads: their scenarios leave some fields "auto". */
#include <string.h>

#include "base/file.h"
#include "spec/load.h"
#include "spec/measurement.h"

static void load_rows(const char *path, int *ret_rows, int *ret_failed)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    g_assert_no_error(error);
    for (const OrrJson *row = orr_json_first(orr_json_root(doc)); row != NULL; row = orr_json_next(row)) {
        g_autofree char *where = g_strdup_printf("%s: %s", path, orr_json_text(orr_json_member(row, "id")));
        g_autofree Spec *spec = g_new0(Spec, 1);
        SpecSource source = {0};
        SpecMeasurement measurement;
        spec_read_measurement(row, where, &measurement, &error);
        g_assert_no_error(error);
        (*ret_rows)++;
        if (!spec_load_json(orr_json_member(row, "scenario"), where, NULL, true, spec, &source, &error)) {
            g_test_message("%s", error->message);
            (*ret_failed)++;
            g_clear_error(&error);
            continue;
        }
        g_assert_cmpint(spec->model.layers, >, 0);
        if (spec->parallel.tensor > 0 && spec->parallel.data > 0)
            g_assert_cmpint(spec->parallel.tensor * spec->parallel.context * spec->parallel.pipeline *
                                spec->parallel.data,
                            ==, spec_gpus(spec));
        spec_source_clear(&source);
    }
    orr_json_free(doc);
}

/* Rows of every file of a folder; 0 when there is no such folder. */
static int load_folder(const char *root)
{
    g_autofree char *folder = root != NULL ? g_build_filename(root, "measurements", NULL) : NULL;
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    int rows = 0, failed = 0;
    const char *file;
    while (dir != NULL && (file = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(file, ".json"))
            continue;
        g_autofree char *path = g_build_filename(folder, file, NULL);
        load_rows(path, &rows, &failed);
    }
    g_test_message("%s: %d rows, %d refused", folder, rows, failed);
    g_assert_cmpint(failed, ==, 0);
    return rows;
}

static void test_own_rows(void)
{
    g_autofree char *scenarios = orr_scenarios_dir(NULL);
    if (load_folder(scenarios) == 0)
        g_test_skip("no scenarios/measurements");
}

static void test_shared_rows(void)
{
    if (load_folder(g_getenv("ORRERY_SHARED")) == 0)
        g_test_skip("not a folder of measurements: set ORRERY_SHARED");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/measurements/own", test_own_rows);
    g_test_add_func("/spec/measurements/shared", test_shared_rows);
    return g_test_run();
}
