/* Presets are kept between calls, and read anew when their files have changed. */
#include <glib/gstdio.h>

#include "base/file.h"
#include "spec/resolve.h"
#include "spec/texts.h"

typedef struct Folder {
    char *root, *faults, *path;
} Folder;

static void write_preset(const Folder *folder, const char *text)
{
    GError *error = NULL;
    g_file_set_contents(folder->path, text, -1, &error);
    g_assert_no_error(error);
}

/* Until the file counts as one that a next version would differ from. */
static void wait_until_settled(const char *path)
{
    for (int i = 0; i < 100; i++) {
        const OrrFileStamp stamp = orr_file_stamp(path);
        if (orr_file_stamp_settled(&stamp))
            return;
        g_usleep(50000);
    }
    g_assert_not_reached();
}

static void set_up(Folder *folder, gconstpointer unused)
{
    (void)unused;
    folder->root = g_dir_make_tmp("orrery-kept-XXXXXX", NULL);
    folder->faults = g_build_filename(folder->root, "faults", NULL);
    folder->path = g_build_filename(folder->faults, "mine.json", NULL);
    g_assert_cmpint(g_mkdir(folder->faults, 0755), ==, 0);
    g_setenv("ORRERY_SCENARIOS", folder->root, TRUE);
}

static void tear_down(Folder *folder, gconstpointer unused)
{
    (void)unused;
    g_unlink(folder->path);
    g_rmdir(folder->faults);
    g_rmdir(folder->root);
    g_free(folder->root);
    g_free(folder->faults);
    g_free(folder->path);
}

/* The preset's mtbf, and the line of its stamp. */
static double resolve(char **ret_line)
{
    GError *error = NULL;
    g_autoptr(GPtrArray) profiles = g_ptr_array_new_with_free_func(g_free);
    OrrJsonDoc *doc = spec_resolve_preset("faults", "mine", "test", "faults", NULL, profiles, &error);
    g_assert_no_error(error);
    g_assert_cmpuint(profiles->len, ==, 1);
    if (ret_line != NULL)
        *ret_line = g_strdup(g_ptr_array_index(profiles, 0));
    const double value = orr_json_number_of(orr_json_root(doc), "node_mtbf_s", -1);
    orr_json_free(doc);
    return value;
}

static void test_changes_are_seen(Folder *folder, gconstpointer unused)
{
    (void)unused;
    g_autofree char *first = NULL, *again = NULL, *other = NULL;
    write_preset(folder, "{\"node_mtbf_s\": 1000}");
    g_assert_cmpfloat(resolve(NULL), ==, 1000);
    write_preset(folder, "{\"node_mtbf_s\": 2000}"); /* in the same second, of the same size */
    g_assert_cmpfloat(resolve(NULL), ==, 2000);
    wait_until_settled(folder->path);
    g_assert_cmpfloat(resolve(&first), ==, 2000);
    g_assert_cmpfloat(resolve(&again), ==, 2000);
    g_assert_cmpstr(first, ==, again);
    write_preset(folder, "{\"node_mtbf_s\": 3000}");
    g_assert_cmpfloat(resolve(&other), ==, 3000);
    g_assert_cmpstr(first, !=, other);
    g_unlink(folder->path);
    GError *error = NULL;
    g_assert_null(spec_resolve_preset("faults", "mine", "test", "faults", NULL, NULL, &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_error_free(error);
}

static gpointer resolve_often(gpointer unused)
{
    (void)unused;
    double sum = 0;
    for (int i = 0; i < 500; i++) {
        const double value = resolve(NULL);
        g_assert_true(value >= 1000 && value <= 9000);
        sum += value;
    }
    return GINT_TO_POINTER(sum > 0);
}

/* Readers on four threads while the file is replaced under them: each sees one version whole. */
static void test_threads(Folder *folder, gconstpointer unused)
{
    (void)unused;
    GThread *threads[4];
    write_preset(folder, "{\"node_mtbf_s\": 1000}");
    wait_until_settled(folder->path);
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        threads[i] = g_thread_new("reader", resolve_often, NULL);
    for (int version = 2; version <= 9; version++) {
        g_autofree char *text = g_strdup_printf("{\"node_mtbf_s\": %d000}", version);
        write_preset(folder, text);
        g_usleep(5000);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(threads); i++)
        g_assert_nonnull(g_thread_join(threads[i]));
    g_assert_cmpfloat(resolve(NULL), ==, 9000);
}

/* A stamp tells versions apart, and a file that is not there from one that is. */
static void test_stamps(Folder *folder, gconstpointer unused)
{
    (void)unused;
    const OrrFileStamp none = orr_file_stamp(folder->path);
    write_preset(folder, "{}");
    const OrrFileStamp fresh = orr_file_stamp(folder->path);
    g_usleep(20000);
    write_preset(folder, "[]");
    const OrrFileStamp next = orr_file_stamp(folder->path), again = orr_file_stamp(folder->path);
    g_assert_false(orr_file_stamp_same(&none, &fresh));
    g_assert_false(orr_file_stamp_same(&fresh, &next));
    g_assert_true(orr_file_stamp_same(&next, &again));
    g_assert_false(orr_file_stamp_settled(&none));
    g_assert_false(orr_file_stamp_settled(&fresh));
}

/* Texts of a scenario live as long as its source, at one address while two hold them. */
static void test_texts(Folder *folder, gconstpointer unused)
{
    (void)folder;
    (void)unused;
    GPtrArray *one = spec_texts_new(), *two = spec_texts_new();
    const char *text = spec_keep_text(one, "a fabric of this test alone");
    g_assert_true(spec_keep_text(two, "a fabric of this test alone") == text);
    g_assert_true(spec_keep_text(one, "another") != text);
    g_ptr_array_unref(one);
    g_assert_cmpstr(g_ptr_array_index(two, 0), ==, "a fabric of this test alone");
    g_ptr_array_unref(two);
    g_assert_cmpstr(spec_keep_text(NULL, "a fabric of this test alone"), ==, "a fabric of this test alone");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/spec/preset_kept/changes", Folder, NULL, set_up, test_changes_are_seen, tear_down);
    g_test_add("/spec/preset_kept/threads", Folder, NULL, set_up, test_threads, tear_down);
    g_test_add("/spec/preset_kept/stamps", Folder, NULL, set_up, test_stamps, tear_down);
    g_test_add("/spec/texts", Folder, NULL, set_up, test_texts, tear_down);
    return g_test_run();
}
