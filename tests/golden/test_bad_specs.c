/* Wrong scenarios are refused in one sentence that names the file and the key: tests/cli/bad_scenarios.json lists
 * them. A case changes the good base scenario by overrides ("sets") or is a whole file ("text"). What only building the
 * fabric finds ("built") is the program's to refuse.
 */
#include <glib/gstdio.h>
#include <string.h>

#include "spec/load.h"

static char *table_path(void)
{
    return g_build_filename(ORRERY_SOURCE_SCENARIOS, "..", "tests", "cli", "bad_scenarios.json", NULL);
}

static const char *text_of(const OrrJson *object, const char *key)
{
    const OrrJson *node = orr_json_member(object, key);
    return node != NULL ? orr_json_text(node) : NULL;
}

/* Loads the case; the message of the refusal, or NULL when it was accepted. g_free. */
static char *refusal(const OrrJson *base, const OrrJson *row, const char *path)
{
    g_autofree char *base_text = orr_json_dump(base);
    const char *text = text_of(row, "text");
    g_autoptr(GPtrArray) sets = g_ptr_array_new();
    const OrrJson *list = orr_json_member(row, "sets");
    for (const OrrJson *set = list != NULL ? orr_json_first(list) : NULL; set != NULL;
         set = orr_json_next(set))
        g_ptr_array_add(sets, (char *)orr_json_text(set));
    g_ptr_array_add(sets, NULL);
    g_assert_true(g_file_set_contents(path, text != NULL ? text : base_text, -1, NULL));
    g_autofree Spec *spec = g_new0(Spec, 1);
    SpecSource source = {0};
    GError *error = NULL;
    if (spec_load_file(path, (const char *const *)sets->pdata, false, spec, &source, &error)) {
        spec_source_clear(&source);
        return NULL;
    }
    g_assert_null(source.resolved);
    g_assert_true(error->domain == ORR_ERROR && error->code == ORR_ERROR_INPUT);
    char *message = g_strdup(error->message);
    g_error_free(error);
    return message;
}

static int check_case(const OrrJson *base, const OrrJson *row, const char *path)
{
    const char *name = text_of(row, "name");
    g_autofree char *message = refusal(base, row, path);
    if (message == NULL) {
        g_test_message("%s: accepted", name);
        return 1;
    }
    int wrong = 0;
    g_test_message("%s: %s", name, message);
    if (strchr(message, '\n') != NULL || !g_utf8_validate(message, -1, NULL)) {
        g_test_message("%s: not one line of text", name);
        wrong++;
    }
    if (!g_str_has_prefix(message, path) && !g_str_has_prefix(message, "--set")) {
        g_test_message("%s: the message does not begin with the file", name);
        wrong++;
    }
    const OrrJson *expect = orr_json_member(row, "expect");
    for (const OrrJson *part = orr_json_first(expect); part != NULL; part = orr_json_next(part)) {
        if (strstr(message, orr_json_text(part)) == NULL) {
            g_test_message("%s: the message lacks: %s", name, orr_json_text(part));
            wrong++;
        }
    }
    return wrong > 0 ? 1 : 0;
}

static void test_bad(void)
{
    GError *error = NULL;
    g_autofree char *table = table_path(), *folder = g_dir_make_tmp("orrery-XXXXXX", NULL);
    g_autofree char *path = g_build_filename(folder, "bad.json", NULL);
    OrrJsonDoc *doc = orr_json_read_file(table, &error);
    g_assert_no_error(error);
    const OrrJson *base = orr_json_member(orr_json_root(doc), "base");
    const OrrJson *cases = orr_json_member(orr_json_root(doc), "cases");
    OrrJsonDoc *good = orr_json_parse("{}", 2, "good", NULL);
    g_autofree char *accepted = refusal(base, orr_json_root(good), path);
    g_assert_cmpstr(accepted, ==, NULL); /* the base itself is good */
    orr_json_free(good);
    int wrong = 0;
    for (const OrrJson *row = orr_json_first(cases); row != NULL; row = orr_json_next(row))
        wrong += orr_json_member(row, "built") == NULL && check_case(base, row, path);
    g_test_message("%d cases, %d wrong", orr_json_count(cases), wrong);
    g_assert_cmpint(orr_json_count(cases), >=, 150);
    g_assert_cmpint(wrong, ==, 0);
    orr_json_free(doc);
    g_unlink(path);
    g_rmdir(folder);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/golden/bad-scenarios", test_bad);
    return g_test_run();
}
