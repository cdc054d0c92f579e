/* tests/unit/base/test_shown.c - what a terminal or browser would obey is never shown: by tables, CSV, errors and JSON. */
#include <string.h>

#include "base/error.h"
#include "base/json.h"
#include "base/shown.h"
#include "base/text.h"

/* C0, DEL, C1, then every mark that turns the direction of writing. */
#define OBEYED                                                                                               \
    "\x1b\x07\x7f\xc2\x9b"                                                                                   \
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
enum { OBEYED_COUNT = 16 };

static void assert_none(const char *text)
{
    g_assert_true(g_utf8_validate(text, -1, NULL));
    for (const char *c = text; *c != '\0'; c = g_utf8_next_char(c))
        g_assert_true(*c == '\n' || !orr_is_obeyed(g_utf8_get_char(c)));
}

static void test_shown(void)
{
    g_autofree char *shown = orr_shown("a" OBEYED "b", '?', "");
    g_assert_cmpuint(strlen(shown), ==, 2 + OBEYED_COUNT);
    assert_none(shown);
    g_autofree char *kept = orr_shown("a\n\tb", '?', "\n");
    g_assert_cmpstr(kept, ==, "a\n?b");
    g_autofree char *same = orr_shown("Größe \u2014 模型 \U0001f600", '?', "");
    g_assert_cmpstr(same, ==, "Größe \u2014 模型 \U0001f600");
    g_autofree char *broken = orr_shown("a\xff", '?', "");
    g_assert_true(g_utf8_validate(broken, -1, NULL));
}

static void test_doors(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    OrrTable *table = orr_table_new(NULL, 2);
    orr_table_row(table, (const char *[]){"name", OBEYED});
    orr_table_print(table, out, 0);
    orr_table_csv(table, out);
    orr_table_free(table);
    assert_none(out->str);
    GError *error = NULL;
    orr_fail(&error, ORR_ERROR_INPUT, "%s", OBEYED);
    assert_none(error->message);
    g_clear_error(&error);
}

/* JSON holds such a text as escapes and gives it back. */
static void test_json(void)
{
    g_autoptr(GString) out = g_string_new(NULL);
    OrrJsonWriter writer;
    GError *error = NULL;
    orr_jw_init(&writer, out, true);
    orr_jw_text(&writer, NULL, "ä" OBEYED "\"\\\n");
    assert_none(out->str);
    OrrJsonDoc *doc = orr_json_parse(out->str, out->len, "written", &error);
    g_assert_no_error(error);
    g_assert_cmpstr(orr_json_text(orr_json_root(doc)), ==, "ä" OBEYED "\"\\\n");
    orr_json_free(doc);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/shown/text", test_shown);
    g_test_add_func("/base/shown/doors", test_doors);
    g_test_add_func("/base/shown/json", test_json);
    return g_test_run();
}
