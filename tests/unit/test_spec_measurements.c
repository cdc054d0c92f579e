/* Every published measurement row loads: their scenarios leave some fields "auto". */
#include <string.h>

#include "spec/load.h"

static void load_rows(const char *path, int *ret_rows, int *ret_failed)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_read_file(path, &error);
    g_assert_no_error(error);
    for (const OrrJson *row = orr_json_first(orr_json_root(doc)); row != NULL; row = orr_json_next(row)) {
        g_autofree char *where = g_strdup_printf("%s: %s", path, orr_json_text(orr_json_member(row, "id")));
        g_autofree Spec *spec = g_new0(Spec, 1);
        SpecSource source = {0};
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

static void test_rows(void)
{
    const char *shared = g_getenv("ORRERY_SHARED");
    g_autofree char *folder = shared != NULL ? g_build_filename(shared, "measurements", NULL) : NULL;
    g_autoptr(GDir) dir = folder != NULL ? g_dir_open(folder, 0, NULL) : NULL;
    if (dir == NULL) {
        g_test_skip("no folder of measurements: set ORRERY_SHARED");
        return;
    }
    int rows = 0, failed = 0;
    const char *file;
    while ((file = g_dir_read_name(dir)) != NULL) {
        if (!g_str_has_suffix(file, ".json"))
            continue;
        g_autofree char *path = g_build_filename(folder, file, NULL);
        load_rows(path, &rows, &failed);
    }
    g_test_message("%d rows, %d refused", rows, failed);
    g_assert_cmpint(rows, >, 0);
    g_assert_cmpint(failed, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/spec/measurements", test_rows);
    return g_test_run();
}
