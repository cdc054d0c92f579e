/* base/json_write.c - deterministic JSON out: keys in the order written, numbers independent of the locale. */
#include <math.h>

#include "base/json.h"
#include "base/shown.h"

void orr_jw_init(OrrJsonWriter *w, GString *text, bool compact)
{
    *w = (OrrJsonWriter){.text = text, .depth = 0, .first = true, .compact = compact};
}

static void new_line(OrrJsonWriter *w)
{
    if (w->compact)
        return;
    g_string_append_c(w->text, '\n');
    for (int i = 0; i < w->depth; i++)
        g_string_append(w->text, "  ");
}

/* Written as it is; nearly all text is printable ASCII. */
static bool plain(const char *at)
{
    const unsigned char c = (unsigned char)*at;
    return c < 0x80 ? c >= 0x20 && c < 0x7f && c != '"' && c != '\\' : !orr_is_obeyed(g_utf8_get_char(at));
}

/* Of printable ASCII that needs no mark before it: the length of the whole text, else 0. */
static gsize plain_length(const char *value)
{
    gsize length = 0;
    for (; value[length] != '\0'; length++) {
        const unsigned char c = (unsigned char)value[length];
        if (c < 0x20 || c >= 0x7f || c == '"' || c == '\\')
            return 0;
    }
    return length;
}

static void append_quoted(GString *out, const char *value)
{
    const gsize length = plain_length(value);
    if (length > 0) {
        g_string_append_c(out, '"');
        g_string_append_len(out, value, (gssize)length);
        g_string_append_c(out, '"');
        return;
    }
    g_autofree char *mended = g_utf8_validate(value, -1, NULL) ? NULL : g_utf8_make_valid(value, -1);
    g_string_append_c(out, '"');
    for (const char *at = mended != NULL ? mended : value; *at != '\0'; at++) {
        const char *start = at;
        while (plain(at))
            at = g_utf8_next_char(at);
        g_string_append_len(out, start, at - start);
        if (*at == '\0')
            break;
        const unsigned char c = (unsigned char)*at;
        if (c == '"' || c == '\\') {
            g_string_append_c(out, '\\');
            g_string_append_c(out, *at);
        } else if (c == '\n') {
            g_string_append(out, "\\n");
        } else if (c == '\t') {
            g_string_append(out, "\\t");
        } else {
            g_string_append_printf(out, "\\u%04x", (unsigned)g_utf8_get_char(at));
            at = g_utf8_next_char(at) - 1;
        }
    }
    g_string_append_c(out, '"');
}

/* Comma, line break and key before a value. */
static void before_value(OrrJsonWriter *w, const char *key)
{
    if (!w->first)
        g_string_append_c(w->text, ',');
    if (w->depth > 0)
        new_line(w);
    w->first = false;
    if (key == NULL)
        return;
    append_quoted(w->text, key);
    g_string_append(w->text, w->compact ? ":" : ": ");
}

void orr_jw_begin(OrrJsonWriter *w, const char *key, char bracket)
{
    g_assert(bracket == '{' || bracket == '[');
    before_value(w, key);
    g_string_append_c(w->text, bracket);
    w->depth++;
    w->first = true;
}

void orr_jw_end(OrrJsonWriter *w, char bracket)
{
    g_assert((bracket == '}' || bracket == ']') && w->depth > 0);
    w->depth--;
    if (!w->first)
        new_line(w);
    w->first = false;
    g_string_append_c(w->text, bracket);
}

void orr_jw_text(OrrJsonWriter *w, const char *key, const char *value)
{
    if (value == NULL) {
        orr_jw_null(w, key);
        return;
    }
    before_value(w, key);
    append_quoted(w->text, value);
}

/* A decimal of few digits behind its point, as %.15g writes it: an exact integer over an exact power of ten rounds once, as
 * reading it back does (see number_value() of json_parse.c). False: none. */
static bool append_decimal(GString *out, double value)
{
    enum { MOST_BEHIND = 9 };
    const double size = fabs(value);
    if (!(size >= 1e-4 && size < 1e6))
        return false;
    double power = 1;
    for (int behind = 1; behind <= MOST_BEHIND; behind++) {
        power *= 10;
        const double scaled = round(size * power);
        if (!(scaled / power < size) && !(scaled / power > size)) {
            const uint64_t all = (uint64_t)scaled, one = (uint64_t)power;
            g_string_append_printf(out, "%s%" G_GUINT64_FORMAT ".%0*" G_GUINT64_FORMAT, value < 0 ? "-" : "",
                                   (guint64)(all / one), behind, (guint64)(all % one));
            return true;
        }
    }
    return false;
}

void orr_jw_number(OrrJsonWriter *w, const char *key, double value)
{
    static const char *const formats[] = {"%.15g", "%.16g", "%.17g"};
    if (!isfinite(value)) {
        orr_jw_null(w, key);
        return;
    }
    const bool whole = !(value < trunc(value)) && !(value > trunc(value));
    if (whole && fabs(value) < 1e15 && (value < 0 || !signbit(value))) { /* as %.15g writes it */
        orr_jw_int(w, key, (int64_t)value);
        return;
    }
    before_value(w, key);
    if (append_decimal(w->text, value))
        return;
    char number[40];
    for (guint i = 0; i < G_N_ELEMENTS(formats); i++) {
        g_ascii_formatd(number, sizeof number, formats[i], value);
        const double back = g_ascii_strtod(number, NULL);
        if (!(back < value) && !(back > value))
            break;
    }
    g_string_append(w->text, number);
}

void orr_jw_int(OrrJsonWriter *w, const char *key, int64_t value)
{
    char digits[24];
    int at = (int)sizeof digits;
    uint64_t left = value < 0 ? 0u - (uint64_t)value : (uint64_t)value;
    do
        digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) > 0);
    if (value < 0)
        digits[--at] = '-';
    before_value(w, key);
    g_string_append_len(w->text, digits + at, (gssize)sizeof digits - at);
}

void orr_jw_bool(OrrJsonWriter *w, const char *key, bool value)
{
    before_value(w, key);
    g_string_append(w->text, value ? "true" : "false");
}

void orr_jw_ps(OrrJsonWriter *w, const char *key, int64_t ps)
{
    const uint64_t size = ps < 0 ? 0u - (uint64_t)ps : (uint64_t)ps;
    const uint64_t one_s = UINT64_C(1000000000000);
    before_value(w, key);
    g_string_append_printf(w->text, "%s%" G_GUINT64_FORMAT ".%012" G_GUINT64_FORMAT, ps < 0 ? "-" : "",
                           (guint64)(size / one_s), (guint64)(size % one_s));
}

void orr_jw_null(OrrJsonWriter *w, const char *key)
{
    before_value(w, key);
    g_string_append(w->text, "null");
}

void orr_jw_node(OrrJsonWriter *w, const char *key, const OrrJson *node)
{
    switch (orr_json_type(node)) {
    case ORR_JSON_NULL:
        orr_jw_null(w, key);
        break;
    case ORR_JSON_BOOL:
        orr_jw_bool(w, key, orr_json_bool(node));
        break;
    case ORR_JSON_NUMBER:
        orr_jw_number(w, key, orr_json_number(node));
        break;
    case ORR_JSON_TEXT:
        orr_jw_text(w, key, orr_json_text(node));
        break;
    case ORR_JSON_LIST:
    case ORR_JSON_OBJECT: {
        const bool is_list = orr_json_type(node) == ORR_JSON_LIST;
        orr_jw_begin(w, key, is_list ? '[' : '{');
        for (const OrrJson *child = orr_json_first(node); child != NULL; child = orr_json_next(child))
            orr_jw_node(w, is_list ? NULL : orr_json_key(child), child);
        orr_jw_end(w, is_list ? ']' : '}');
        break;
    }
    }
}

char *orr_json_dump(const OrrJson *node)
{
    enum { USUAL = 4096 };
    GString *text = g_string_sized_new(USUAL);
    OrrJsonWriter writer;
    orr_jw_init(&writer, text, true);
    orr_jw_node(&writer, NULL, node);
    return g_string_free(text, FALSE);
}

char *orr_json_show(const OrrJson *node)
{
    enum { LONGEST = 60 };
    char *text = orr_json_dump(node);
    if (g_utf8_strlen(text, -1) <= LONGEST)
        return text;
    g_autofree char *cut = g_utf8_substring(text, 0, LONGEST - 3);
    g_free(text);
    return g_strconcat(cut, "...", NULL);
}
