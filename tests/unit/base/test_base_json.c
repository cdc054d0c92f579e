/* The JSON door: what is read exactly, what is refused and how it is said, what is written. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "tests/unit/draws.h"

static OrrJsonDoc *parse(const char *text)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "t.json", &error);
    g_assert_no_error(error);
    g_assert_nonnull(doc);
    return doc;
}

static void test_refused(void)
{
    static const struct {
        const char *text, *message;
    } cases[] = {
        {"", "t.json:1:1: expected a value, found the end of the text"},
        {"{\"a\":1,\n \"a\":2}", "t.json:2:2: key \"a\" occurs twice in one object"},
        {"{\"a\":1, \"\\u0061\":2}", "t.json:1:9: key \"a\" occurs twice"},
        {"{\"a\":1} x", "t.json:1:9: expected nothing after the value, found 'x'"},
        {"[1,]", "t.json:1:3: a comma with nothing after it but ']'; remove it"},
        {"{\"a\":1,}", "t.json:1:7: a comma with nothing after it but '}'; remove it"},
        {"{a:1}", "expected a key in quotes, found 'a'"},
        {"{\"a\" 1}", "expected ':' after a key, found '1'"},
        {"[1 2]", "expected ',' or ']' in a list, found '2'"},
        {"[\n\n  NaN]", "t.json:3:3: expected a value, found 'N'"},
        {"[Infinity]", "expected a value, found 'I'"},
        {"[nullx]", "expected a value, found 'n'"},
        {"[1e400]", "t.json:1:2: the number is too large"},
        {"[-1e999]", "the number is too large"},
        {"[01]", "no leading zeros"},
        {"[-]", "a number needs digits"},
        {"[1.]", "digits after its point"},
        {"[1e]", "digits in its exponent"},
        {"[.5]", "expected a value, found '.'"},
        {"[+1]", "expected a value, found '+'"},
        {"[0x10]", "found 'x'"},
        {"[\"a\nb\"]", "t.json:1:4: control byte in text"},
        {"[\"a]", "t.json:1:2: text without a closing quote"},
        {"[\"a\\", "text without a closing quote"},
        {"[\"\\x\"]", "unknown escape"},
        {"[\"\\u12g4\"]", "four hex digits"},
        {"[\"\\u0000\"]", "\\u0000"},
        {"[\"\\ud800\"]", "half of a surrogate pair"},
        {"[\"\\ud800\\u0041\"]", "half of a surrogate pair"},
        {"[\"\\udc00\"]", "half of a surrogate pair"},
        {"[\"\xff\"]", "t.json:1:3: not UTF-8 text"},
        {"[\"\xc0\x80\"]", "not UTF-8 text"},
        {"\xef\xbb\xbf{\"a\":}", "t.json:1:6"},
        {"\xef\xbb\xbf\xef\xbb\xbf{}", "t.json:1:1: expected a value"},
        {"{\"a\":{\"b\":[{\"c\":1,\"c\":1}]}}", "key \"c\" occurs twice"},
        {"[\"\u00e9\u00e9\", x]", "t.json:1:8: expected a value, found 'x'"},
        {"// no\n{}", "expected a value, found '/'"},
        {"['a']", "expected a value, found '''"},
        {"[tru]", "expected a value"},
        {"{", "expected a key in quotes, found the end of the text"},
        {"[", "expected a value, found the end of the text"},
        {"[\v1]", "control byte 0x0b"},
    };
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        GError *error = NULL;
        g_test_message("%s", cases[i].text);
        g_assert_null(orr_json_parse(cases[i].text, strlen(cases[i].text), "t.json", &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        g_assert_nonnull(strstr(error->message, cases[i].message));
        g_assert_true(g_str_has_prefix(error->message, "t.json:"));
        g_assert_null(strchr(error->message, '\n'));
        g_error_free(error);
    }
    GError *error = NULL;
    g_assert_null(orr_json_parse("[1]\0 ", 5, "t.json", &error)); /* a NUL is no end */
    g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
    g_error_free(error);
}

static void test_depth(void)
{
    for (int depth = 63; depth <= 65; depth++) {
        g_autofree char *open = g_strnfill((gsize)depth, '['), *close = g_strnfill((gsize)depth, ']');
        g_autofree char *text = g_strconcat(open, close, NULL);
        GError *error = NULL;
        OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "t.json", &error);
        if (depth <= 64) {
            g_assert_no_error(error);
        } else {
            g_assert_null(doc);
            g_assert_nonnull(strstr(error->message, "64 levels"));
            g_clear_error(&error);
        }
        orr_json_free(doc);
    }
}

static void test_read(void)
{
    OrrJsonDoc *doc = parse(" {\"n\": 9007199254740993, \"d\": 0.1, \"t\": \"a\\u00e9\\ud83d\\ude00\\n\", "
                            "\"l\": [true, null, -0.5e-3], \"o\": {}} \n");
    const OrrJson *root = orr_json_root(doc);
    g_assert_cmpint(orr_json_type(root), ==, ORR_JSON_OBJECT);
    g_assert_cmpint(orr_json_count(root), ==, 5);
    g_assert_true(orr_json_number(orr_json_member(root, "n")) == 9007199254740992.0);
    g_assert_true(orr_json_number(orr_json_member(root, "d")) == 0.1);
    g_assert_cmpstr(orr_json_text(orr_json_member(root, "t")), ==, "a\u00e9\U0001f600\n");
    const OrrJson *list = orr_json_member(root, "l");
    g_assert_true(orr_json_bool(orr_json_first(list)));
    g_assert_null(orr_json_key(orr_json_first(list)));
    g_assert_cmpstr(orr_json_type_name(orr_json_next(orr_json_first(list))), ==, "null");
    g_assert_null(orr_json_member(root, "N"));
    g_assert_cmpstr(orr_json_key(orr_json_first(root)), ==, "n");
    g_assert_null(orr_json_member(list, "n"));
    g_autofree char *dump = orr_json_dump(root);
    g_assert_cmpstr(dump, ==,
                    "{\"n\":9007199254740992,\"d\":0.1,\"t\":\"a\u00e9\U0001f600\\n\","
                    "\"l\":[true,null,-0.0005],\"o\":{}}");
    g_autofree char *shown = orr_json_show(root);
    g_assert_cmpint(g_utf8_strlen(shown, -1), ==, 60);
    g_assert_true(g_str_has_suffix(shown, "..."));
    orr_json_free(doc);
}

static void test_edit(void)
{
    OrrJsonDoc *doc = parse("{\"a\":{\"b\":1},\"c\":2}");
    GError *error = NULL;
    g_assert_true(orr_json_set(doc, "a.b", "1f1b", &error));
    g_assert_true(orr_json_set(doc, "a.x.y", "[1,2]", &error));
    g_assert_true(orr_json_set(doc, "d", "300e9", &error));
    g_assert_no_error(error);
    g_autofree char *dump = orr_json_dump(orr_json_root(doc));
    g_assert_cmpstr(dump, ==, "{\"a\":{\"b\":\"1f1b\",\"x\":{\"y\":[1,2]}},\"c\":2,\"d\":300000000000}");
    g_assert_true(orr_json_set(doc, "l", "[{\"k\":1},2]", &error));
    g_assert_true(orr_json_set(doc, "l.0.k", "3", &error));
    g_assert_true(orr_json_set(doc, "l.0.new.deep", "4", &error));
    g_assert_true(orr_json_set(doc, "l.1", "five", &error));
    g_assert_no_error(error);
    g_autofree char *list = orr_json_dump(orr_json_member(orr_json_root(doc), "l"));
    g_assert_cmpstr(list, ==, "[{\"k\":3,\"new\":{\"deep\":4}},\"five\"]");
    static const struct {
        const char *path, *value, *message;
    } bad[] = {{"l.2", "1", "\"2\" is not an entry of the list; give a number from 0 to 1"},
               {"l.-1", "1", "is not an entry"},
               {"l.0x.k", "1", "is not an entry"},
               {"l.1.k", "1", "can only be set in an object"},
               {"c.z", "1", "can only be set in an object"},
               {"a..b", "1", "key path"},
               {"", "1", "key path"},
               {"c", "{\"a\":1", "t.json: c:1:"}};
    for (guint i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_assert_false(orr_json_set(doc, bad[i].path, bad[i].value, &error));
        g_assert_nonnull(strstr(error->message, bad[i].message));
        g_clear_error(&error);
    }
    orr_json_remove(doc, "l");
    OrrJsonDoc *over = parse("{\"a\":{\"b\":{\"k\":true}},\"e\":null}");
    OrrJsonDoc *merged = orr_json_merge(orr_json_root(doc), orr_json_root(over), "m");
    orr_json_remove(merged, "d");
    orr_json_remove(merged, "absent");
    g_autofree char *text = orr_json_dump(orr_json_root(merged));
    g_assert_cmpstr(text, ==, "{\"a\":{\"b\":{\"k\":true},\"x\":{\"y\":[1,2]}},\"c\":2,\"e\":null}");
    g_assert_cmpstr(orr_json_name(merged), ==, "m");
    orr_json_free(merged);
    orr_json_free(over);
    orr_json_free(doc);
}

static void test_write(void)
{
    GString *text = g_string_new(NULL);
    OrrJsonWriter w;
    orr_jw_init(&w, text, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_text(&w, "t", "q\"\\\x01\n\xff");
    orr_jw_begin(&w, "l", '[');
    orr_jw_int(&w, NULL, G_MININT64);
    orr_jw_bool(&w, NULL, false);
    orr_jw_end(&w, ']');
    orr_jw_begin(&w, "e", '[');
    orr_jw_end(&w, ']');
    orr_jw_ps(&w, "p", 13750000000001);
    orr_jw_ps(&w, "q", -1);
    orr_jw_number(&w, "n", NAN);
    orr_jw_text(&w, "z", NULL);
    orr_jw_end(&w, '}');
    g_assert_cmpstr(
        text->str, ==,
        "{\n  \"t\": \"q\\\"\\\\\\u0001\\n\uFFFD\",\n  \"l\": [\n    -9223372036854775808,\n    false\n  ],\n"
        "  \"e\": [],\n  \"p\": 13.750000000001,\n  \"q\": -0.000000000001,\n  \"n\": null,\n  \"z\": "
        "null\n}");
    g_string_free(text, TRUE);
}

static void test_numbers_read_back(void)
{
    GRand *rand = g_rand_new_with_seed(7);
    GString *text = g_string_new(NULL);
    OrrJsonWriter w;
    for (int i = 0; i < 20000; i++) {
        const guint64 bits = (guint64)g_rand_int(rand) << 32 | g_rand_int(rand);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value))
            continue;
        g_string_truncate(text, 0);
        orr_jw_init(&w, text, true);
        orr_jw_number(&w, NULL, value);
        OrrJsonDoc *doc = parse(text->str);
        g_assert_true(orr_json_number(orr_json_root(doc)) == value);
        orr_json_free(doc);
    }
    static const struct {
        double value;
        const char *text;
    } cases[] = {{0.1, "0.1"},
                 {1.0 / 3, "0.3333333333333333"},
                 {5e-324, "4.94065645841247e-324"},
                 {DBL_MAX, "1.7976931348623157e+308"},
                 {312e12, "312000000000000"},
                 {-0.0, "-0"},
                 {2.5e-6, "2.5e-06"}};
    for (guint i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_string_truncate(text, 0);
        orr_jw_init(&w, text, true);
        orr_jw_number(&w, NULL, cases[i].value);
        g_assert_cmpstr(text->str, ==, cases[i].text);
    }
    g_string_free(text, TRUE);
    g_rand_free(rand);
}

/* Short decimals are read by a way of their own: to the bit what strtod reads, at every length, point and exponent. */
static void test_numbers_as_strtod(void)
{
    static const char *const shapes[] = {"%.*f", "-%.*f", "%.*e", "0.000%.*f"};
    static const char *const edges[] = {"-0",
                                        "0.0",
                                        "-0.0000000000000000000000000",
                                        "999999999999999",
                                        "9007199254740993",
                                        "9.007199254740993",
                                        "0.1234567890123456789",
                                        "0.0000000000000000000001",
                                        "0.00000000000000000000001",
                                        "0.000000000000000000000000000000000000123456789012345",
                                        "123456789012345678901234567890"};
    GRand *rand = g_rand_new_with_seed(11);
    for (int i = 0; i < DRAWS(40000) + (int)G_N_ELEMENTS(edges); i++) {
        const double size = pow(10, g_rand_double_range(rand, -4, 18));
        char drawn[128];
        g_snprintf(drawn, sizeof drawn, shapes[i % 4], g_rand_int_range(rand, 0, 20),
                   g_rand_double(rand) * size);
        /* "0.0001.5": the point of what was drawn is no second one */
        char *second = i % 4 == 3 ? strrchr(drawn, '.') : NULL;
        if (second != NULL && second != drawn + 1)
            memmove(second, second + 1, strlen(second));
        const char *text = i < (int)G_N_ELEMENTS(edges) ? edges[i] : drawn;
        OrrJsonDoc *doc = parse(text);
        const double read = orr_json_number(orr_json_root(doc)), meant = g_ascii_strtod(text, NULL);
        g_test_message("%s", text);
        g_assert_cmpmem(&read, sizeof read, &meant, sizeof meant);
        orr_json_free(doc);
    }
    g_rand_free(rand);
}

/* Whatever the size of an object and the place of the first, a second key is found; all others are kept, in order. */
static void test_keys_twice(void)
{
    enum { MOST = 40 };
    for (int count = 1; count <= MOST; count++) {
        for (int twice = -1; twice < count; twice++) {
            GString *text = g_string_new("{");
            for (int i = 0; i < count; i++)
                g_string_append_printf(text, "%s\"k%d\": {\"k%d\": %d}", i > 0 ? ", " : "", i, i, i);
            if (twice >= 0)
                g_string_append_printf(text, ", \"\\u006b%d\": 0", twice);
            g_string_append_c(text, '}');
            GError *error = NULL;
            OrrJsonDoc *doc = orr_json_parse(text->str, text->len, "t.json", &error);
            g_autofree char *said = g_strdup_printf("key \"k%d\" occurs twice", twice);
            g_assert_true((doc == NULL) == (twice >= 0));
            g_assert_true(error == NULL || strstr(error->message, said) != NULL);
            int place = 0;
            for (const OrrJson *node = doc != NULL ? orr_json_first(orr_json_root(doc)) : NULL; node != NULL;
                 node = orr_json_next(node), place++) {
                g_assert_cmpint(atoi(orr_json_key(node) + 1), ==, place);
                g_assert_true(orr_json_number_of(node, orr_json_key(node), -1) == place);
            }
            g_assert_cmpint(place, ==, doc != NULL ? count : 0);
            g_clear_error(&error);
            orr_json_free(doc);
            g_string_free(text, TRUE);
        }
    }
}

/* A byte that is no UTF-8, or a zero, is found wherever it stands among bytes that are. */
static void test_bad_bytes_anywhere(void)
{
    for (int length = 1; length <= 40; length++) {
        for (int at = 0; at < length; at++) {
            g_autofree char *inside = g_strnfill((gsize)length, '~');
            inside[at] = at % 2 == 0 ? '\xff' : '\0';
            g_autoptr(GString) text = g_string_new("\"");
            g_string_append_len(text, inside, length);
            g_string_append_c(text, '"');
            GError *error = NULL;
            g_assert_null(orr_json_parse(text->str, text->len, "t.json", &error));
            g_autofree char *said = g_strdup_printf("t.json:1:%d: not UTF-8", at + 2);
            g_assert_true(g_str_has_prefix(error->message, said));
            g_error_free(error);
        }
    }
}

static void test_file(void)
{
    GError *error = NULL;
    g_assert_null(orr_json_read_file("/nonexistent/x.json", &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_IO);
    g_assert_nonnull(strstr(error->message, "/nonexistent/x.json"));
    g_clear_error(&error);
    g_assert_null(orr_json_read_file("/", &error));
    g_assert_error(error, ORR_ERROR, ORR_ERROR_IO);
    g_clear_error(&error);
}

/* What is taken from another document lives on in this one, also where both grow afterwards. */
static void test_taken(void)
{
    OrrJsonDoc *doc = parse("{\"a\": {\"b\": 1}}");
    for (int i = 0; i < 200; i++) {
        g_autofree char *text = g_strdup_printf("{\"long text of number\": \"%0*d\"}", 20 * i, i);
        g_autofree char *path = g_strdup_printf("a.k%d", i);
        orr_json_take(doc, path, parse(text));
        g_assert_true(orr_json_set(doc, "a.b", text, NULL));
    }
    const OrrJson *a = orr_json_member(orr_json_root(doc), "a");
    g_assert_cmpint(orr_json_count(a), ==, 201);
    const OrrJson *text = orr_json_member(orr_json_member(a, "k150"), "long text of number");
    g_assert_cmpint(atoi(orr_json_text(text)), ==, 150);
    g_assert_cmpuint(strlen(orr_json_text(text)), ==, 3000);
    orr_json_remove(doc, "a");
    g_assert_true(orr_json_set(doc, "c", "2", NULL));
    g_autofree char *left = orr_json_dump(orr_json_root(doc));
    g_assert_cmpstr(left, ==, "{\"c\":2}");
    orr_json_free(doc);
}

/* Decimals are written as the shortest of %.15g to %.17g that reads back. */
static void test_decimals(void)
{
    for (int i = 0; i < 200000; i++) {
        const int behind = g_test_rand_int_range(0, 12);
        const double value = g_test_rand_int_range(-2000000, 2000000) / pow(10, behind) +
                             (i % 3 == 0 ? g_test_rand_double_range(0, 1) : 0);
        char expected[40];
        g_autoptr(GString) out = g_string_new(NULL);
        OrrJsonWriter w;
        for (int digits = 15; digits <= 17; digits++) {
            g_snprintf(expected, sizeof expected, "%.*g", digits, value);
            const double back = g_ascii_strtod(expected, NULL);
            if (!(back < value) && !(back > value))
                break;
        }
        orr_jw_init(&w, out, true);
        orr_jw_number(&w, NULL, value);
        g_assert_cmpstr(out->str, ==, expected);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/base/json/refused", test_refused);
    g_test_add_func("/base/json/depth", test_depth);
    g_test_add_func("/base/json/read", test_read);
    g_test_add_func("/base/json/edit", test_edit);
    g_test_add_func("/base/json/write", test_write);
    g_test_add_func("/base/json/numbers", test_numbers_read_back);
    g_test_add_func("/base/json/as-strtod", test_numbers_as_strtod);
    g_test_add_func("/base/json/keys-twice", test_keys_twice);
    g_test_add_func("/base/json/bad-bytes", test_bad_bytes_anywhere);
    g_test_add_func("/base/json/file", test_file);
    g_test_add_func("/base/json/taken", test_taken);
    g_test_add_func("/base/json/decimals", test_decimals);
    return g_test_run();
}
