/* base/json_parse.c - the strict parser (RFC 8259): UTF-8, no duplicate keys, no trailing bytes, finite
 * numbers, bounded depth; every message says name:line:column. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json_internal.h"

typedef struct JsonParser {
    OrrArena *arena, *nodes,
        *row; /* of the document; of what is read now: the same, or that of a row that does not stay */
    const JsonRows *rows; /* may be NULL */
    char *start, *at, *end;
    const char *name;
    int depth;
    const char *text; /* what parse_text() read: in the source, or in the arena where it was unescaped */
    GError **error;
} JsonParser;

static bool parse_value(JsonParser *parser, OrrJson *item);

static bool fail_at(JsonParser *parser, const char *at, const char *message)
{
    int line = 1, column = 1;
    for (const char *c = parser->start; c < at; c++) {
        if (*c == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)*c & 0xc0u) != 0x80u) {
            column++;
        }
    }
    orr_fail(parser->error, ORR_ERROR_INPUT, "%s:%d:%d: %s", parser->name, line, column, message);
    return false;
}

static void skip_space(JsonParser *parser)
{
    while (parser->at < parser->end &&
           (*parser->at == ' ' || *parser->at == '\t' || *parser->at == '\n' || *parser->at == '\r'))
        parser->at++;
}

static bool at_char(const JsonParser *parser, char c)
{
    return parser->at < parser->end && *parser->at == c;
}

/* "found X" for messages: the character, a control byte or the end. */
static bool fail_expected(JsonParser *parser, const char *expected)
{
    char found[48];
    if (parser->at >= parser->end) {
        g_strlcpy(found, "the end of the text", sizeof found);
    } else if ((unsigned char)*parser->at < 0x20u || *parser->at == 0x7f) {
        g_snprintf(found, sizeof found, "control byte 0x%02x", (unsigned)(unsigned char)*parser->at);
    } else {
        const int size = (int)(g_utf8_next_char(parser->at) - parser->at);
        g_snprintf(found, sizeof found, "'%.*s'", size, parser->at);
    }
    g_autofree char *message = g_strdup_printf("expected %s, found %s", expected, found);
    return fail_at(parser, parser->at, message);
}

/* Four hex digits after \u; -1 when they are not. */
static int hex4(const JsonParser *parser, const char *at)
{
    int value = 0;
    if (parser->end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        const int digit = g_ascii_xdigit_value(at[i]);
        if (digit < 0)
            return -1;
        value = value * 16 + digit;
    }
    return value;
}

static bool parse_unicode_escape(JsonParser *parser, GString *out)
{
    char *escape = parser->at; /* at the backslash */
    int code = hex4(parser, escape + 2);
    if (code < 0)
        return fail_at(parser, escape, "\\u takes four hex digits");
    parser->at = escape + 6;
    if (code == 0)
        return fail_at(parser, escape, "\\u0000 in text is not supported");
    if (code >= 0xdc00 && code <= 0xdfff)
        return fail_at(parser, escape, "half of a surrogate pair; write both halves or the character itself");
    if (code >= 0xd800 && code <= 0xdbff) {
        const bool second = parser->end - parser->at >= 6 && parser->at[0] == '\\' && parser->at[1] == 'u';
        const int low = second ? hex4(parser, parser->at + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return fail_at(parser, escape,
                           "half of a surrogate pair; write both halves or the character itself");
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
        parser->at += 6;
    }
    g_string_append_unichar(out, (gunichar)code);
    return true;
}

static bool parse_escape(JsonParser *parser, GString *out)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (parser->end - parser->at < 2)
        return fail_at(parser, parser->at, "text without a closing quote");
    const char kind = parser->at[1];
    if (kind == 'u')
        return parse_unicode_escape(parser, out);
    const char *found = kind != '\0' ? strchr(names, kind) : NULL;
    if (found == NULL)
        return fail_at(parser, parser->at,
                       "unknown escape in text; JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    g_string_append_c(out, meanings[found - names]);
    parser->at += 2;
    return true;
}

/* From `at` on, the bytes that text holds as they are written. */
static gsize run_length(const char *at, const char *end)
{
    const uint64_t ones = UINT64_C(0x0101010101010101), high = ones << 7;
    const char *run = at;
    for (uint64_t word; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        const uint64_t quote = word ^ (ones * '"'), backslash = word ^ (ones * '\\');
        /* a byte of zero in either, or one below 0x20; where a borrow cries wolf, single bytes are looked at */
        if ((((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | ((word - ones * 0x20) & ~word)) &
            high)
            break;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20u)
        at++;
    return (gsize)(at - run);
}

/* Text with an escape, whose first `length` bytes are passed: unescaped in the arena. */
static bool parse_escaped(JsonParser *parser, const char *opening, gsize length)
{
    g_autoptr(GString) out = g_string_new_len(opening + 1, (gssize)length);
    while (parser->at < parser->end && *parser->at != '"') {
        if (*parser->at != '\\')
            return fail_at(parser, parser->at, "control byte in text; write it as \\n, \\t or \\uXXXX");
        if (!parse_escape(parser, out))
            return false;
        length = run_length(parser->at, parser->end);
        g_string_append_len(out, parser->at, (gssize)length);
        parser->at += length;
    }
    if (parser->at >= parser->end)
        return fail_at(parser, opening, "text without a closing quote");
    parser->at++;
    parser->text = orr_arena_strdup(parser->arena, out->str);
    return true;
}

/* Leaves the text in parser->text. Most texts have no escape and stay where they are: a zero takes the place of the quote. */
static bool parse_text(JsonParser *parser)
{
    char *opening = parser->at++;
    const gsize length = run_length(parser->at, parser->end);
    parser->at += length;
    if (!at_char(parser, '"'))
        return parse_escaped(parser, opening, length);
    *parser->at++ = '\0';
    parser->text = opening + 1;
    return true;
}

/* A number that the grammar took. Up to 15 digits and 22 powers of ten are exact doubles, so that one product or
 * quotient rounds as strtod does (Clinger, "How to read floating point numbers accurately", PLDI 1990). */
static double number_value(const char *first, const char *end)
{
    static const double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                    1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    enum { DIGITS = 15, POWERS = G_N_ELEMENTS(powers) };
    const char *at = first + (*first == '-' ? 1 : 0);
    int64_t mantissa = 0;
    int digits = 0, behind = 0;
    for (bool point = false; at < end && (*at == '.' || g_ascii_isdigit(*at)) && digits <= DIGITS; at++) {
        if (*at == '.') {
            point = true;
            continue;
        }
        mantissa = mantissa * 10 + (*at - '0');
        digits += mantissa > 0 ? 1 : 0;
        behind += point ? 1 : 0;
    }
    if (at < end || digits > DIGITS || behind >= POWERS) {              /* an exponent, or too long */
        g_autofree char *copy = g_strndup(first, (gsize)(end - first)); /* strtod needs an end */
        return g_ascii_strtod(copy, NULL);
    }
    const double value = (double)mantissa / powers[behind];
    return *first == '-' ? -value : value;
}

static bool parse_number(JsonParser *parser, OrrJson *item)
{
    char *first = parser->at, *at = first;
    const char *end = parser->end;
    if (at < end && *at == '-')
        at++;
    const char *digits = at;
    while (at < end && g_ascii_isdigit(*at))
        at++;
    if (at == digits || (*digits == '0' && at - digits > 1))
        return fail_at(parser, first,
                       at == digits ? "a number needs digits" : "a number has no leading zeros");
    if (at < end && *at == '.') {
        const char *fraction = ++at;
        while (at < end && g_ascii_isdigit(*at))
            at++;
        if (at == fraction)
            return fail_at(parser, first, "a number needs digits after its point");
    }
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        if (at < end && (*at == '+' || *at == '-'))
            at++;
        const char *exponent = at;
        while (at < end && g_ascii_isdigit(*at))
            at++;
        if (at == exponent)
            return fail_at(parser, first, "a number needs digits in its exponent");
    }
    const double value = number_value(first, at);
    if (!isfinite(value))
        return fail_at(parser, first, "the number is too large");
    parser->at = at;
    item->type = ORR_JSON_NUMBER;
    item->number = value;
    return true;
}

/* A comma, with something behind it: the habit of other formats to end a list with one is told by name. */
static bool pass_comma(JsonParser *parser, char end)
{
    char *comma = parser->at++;
    skip_space(parser);
    if (!at_char(parser, end))
        return true;
    g_autofree char *message = g_strdup_printf("a comma with nothing behind it but '%c'; take it out", end);
    return fail_at(parser, comma, message);
}

/* An entry of a list, which goes to who takes the rows or into the tree. */
static bool parse_entry(JsonParser *parser, OrrJson *list, int *index)
{
    enum { MEMBER_OF_ROOT = 2 };
    const bool row = parser->rows != NULL && parser->rows->each != NULL && parser->depth == MEMBER_OF_ROOT;
    if (!row) {
        OrrJson *item = ORR_ARENA_NEW(parser->nodes, OrrJson, 1);
        json_append(list, item);
        return parse_value(parser, item);
    }
    if (parser->row == NULL)
        parser->row = orr_arena_new();
    OrrJson item = {0};
    parser->nodes = parser->row;
    const bool ok = parse_value(parser, &item) &&
                    parser->rows->each(parser->rows->data, list->key, (*index)++, &item, parser->error);
    orr_arena_clear(parser->row);
    parser->nodes = parser->arena;
    return ok;
}

static bool parse_list(JsonParser *parser, OrrJson *list)
{
    int index = 0;
    parser->at++;
    skip_space(parser);
    if (at_char(parser, ']')) {
        parser->at++;
        return true;
    }
    for (;;) {
        if (!parse_entry(parser, list, &index))
            return false;
        skip_space(parser);
        if (at_char(parser, ']')) {
            parser->at++;
            return true;
        }
        if (!at_char(parser, ','))
            return fail_expected(parser, "',' or ']' in a list");
        if (!pass_comma(parser, ']'))
            return false;
    }
}

/* Whether `key` is new in `object`, which it has yet to join: few are compared one by one, many have a table. */
static bool key_is_new(GHashTable **table, const OrrJson *object, const char *key)
{
    enum { FEW = 16 };
    if (object->count < FEW)
        return orr_json_member(object, key) == NULL;
    if (*table == NULL) {
        *table = g_hash_table_new(g_str_hash, g_str_equal);
        for (const OrrJson *member = object->first; member != NULL; member = member->next)
            g_hash_table_add(*table, (gpointer)member->key);
    }
    return g_hash_table_add(*table, (gpointer)key);
}

static bool parse_member(JsonParser *parser, OrrJson *object, GHashTable **seen)
{
    skip_space(parser);
    if (!at_char(parser, '"'))
        return fail_expected(parser, "a key in quotes");
    const char *where = parser->at;
    if (!parse_text(parser))
        return false;
    OrrJson *item = ORR_ARENA_NEW(parser->nodes, OrrJson, 1);
    item->key = parser->text;
    if (!key_is_new(seen, object, item->key)) {
        g_autofree char *message =
            g_strdup_printf("key \"%s\" occurs twice in one object; keep one", item->key);
        return fail_at(parser, where, message);
    }
    skip_space(parser);
    if (!at_char(parser, ':'))
        return fail_expected(parser, "':' after a key");
    parser->at++;
    if (!parse_value(parser, item))
        return false;
    json_append(object, item);
    return true;
}

static bool parse_members(JsonParser *parser, OrrJson *object, GHashTable **seen)
{
    for (;;) {
        if (!parse_member(parser, object, seen))
            return false;
        skip_space(parser);
        if (at_char(parser, '}')) {
            parser->at++;
            return true;
        }
        if (!at_char(parser, ','))
            return fail_expected(parser, "',' or '}' in an object");
        if (!pass_comma(parser, '}'))
            return false;
    }
}

static bool parse_object(JsonParser *parser, OrrJson *object)
{
    parser->at++;
    skip_space(parser);
    if (at_char(parser, '}')) {
        parser->at++;
        return true;
    }
    GHashTable *seen = NULL;
    const bool ok = parse_members(parser, object, &seen);
    g_clear_pointer(&seen, g_hash_table_destroy);
    return ok;
}

static bool parse_container(JsonParser *parser, OrrJson *item)
{
    if (parser->depth >= JSON_MAX_DEPTH)
        return fail_at(parser, parser->at, "nested deeper than 64 levels");
    item->type = *parser->at == '[' ? ORR_JSON_LIST : ORR_JSON_OBJECT;
    parser->depth++;
    const bool ok = item->type == ORR_JSON_LIST ? parse_list(parser, item) : parse_object(parser, item);
    parser->depth--;
    return ok;
}

static bool parse_word(JsonParser *parser, OrrJson *item)
{
    char *first = parser->at, *last = first;
    while (last < parser->end && g_ascii_isalnum(*last))
        last++;
    const size_t length = (size_t)(last - first);
    item->truth = length == 4 && memcmp(first, "true", 4) == 0;
    if (item->truth || (length == 5 && memcmp(first, "false", 5) == 0))
        item->type = ORR_JSON_BOOL;
    else if (length != 4 || memcmp(first, "null", 4) != 0)
        return fail_expected(parser, "a value");
    parser->at = last;
    return true;
}

static bool parse_value(JsonParser *parser, OrrJson *item)
{
    skip_space(parser);
    if (parser->at >= parser->end)
        return fail_expected(parser, "a value");
    switch (*parser->at) {
    case '{':
    case '[':
        return parse_container(parser, item);
    case '"':
        if (!parse_text(parser))
            return false;
        item->type = ORR_JSON_TEXT;
        item->text = parser->text;
        return true;
    default:
        break;
    }
    if (*parser->at == '-' || g_ascii_isdigit(*parser->at))
        return parse_number(parser, item);
    return parse_word(parser, item);
}

/* Past the words of eight bytes that are ASCII without a zero. */
static const char *past_ascii(const char *at, const char *end)
{
    const uint64_t high = UINT64_C(0x8080808080808080), ones = UINT64_C(0x0101010101010101);
    for (uint64_t word; end - at >= (ptrdiff_t)sizeof word; at += sizeof word) {
        memcpy(&word, at, sizeof word);
        if (((word | (word - ones)) & high) != 0)
            break;
    }
    return at;
}

static bool parse_root(JsonParser *parser, OrrJson **ret_root)
{
    const gchar *invalid = NULL;
    const char *mixed = past_ascii(parser->start, parser->end);
    if (!g_utf8_validate_len(mixed, (gsize)(parser->end - mixed), &invalid))
        return fail_at(parser, invalid, "not UTF-8 text; save the file as UTF-8");
    *ret_root = ORR_ARENA_NEW(parser->nodes, OrrJson, 1);
    if (!parse_value(parser, *ret_root))
        return false;
    skip_space(parser);
    return parser->at == parser->end || fail_expected(parser, "nothing after the value");
}

OrrJson *json_parse_strict(OrrArena *arena, char *text, size_t length, const char *name, const JsonRows *rows,
                           GError **error)
{
    if (length > JSON_MAX_BYTES) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: larger than 256 MiB; split the file", name);
        return NULL;
    }
    const size_t mark = strlen(ORR_BYTE_ORDER_MARK);
    char *start = text + (length >= mark && memcmp(text, ORR_BYTE_ORDER_MARK, mark) == 0 ? mark : 0);
    JsonParser parser = {.arena = arena,
                         .nodes = arena,
                         .rows = rows,
                         .start = start,
                         .at = start,
                         .end = text + length,
                         .name = name,
                         .error = error};
    OrrJson *root = NULL;
    const bool ok = parse_root(&parser, &root);
    orr_arena_free(parser.row);
    return ok ? root : NULL;
}

static OrrJsonDoc *doc_of(OrrJsonDoc *doc, char *text, size_t length, const JsonRows *rows, GError **error)
{
    doc->root = json_parse_strict(doc->arena, text, length, doc->name, rows, error);
    if (doc->root != NULL)
        return doc;
    orr_json_free(doc);
    return NULL;
}

OrrJsonDoc *orr_json_parse(const char *text, size_t length, const char *name, GError **error)
{
    OrrJsonDoc *doc = json_doc_new(name);
    char *copy = orr_arena_alloc(doc->arena, length + 1);
    memcpy(copy, text, length);
    return doc_of(doc, copy, length, NULL, error);
}

OrrJsonDoc *orr_json_read_rows(const char *path, OrrJsonEach each, void *data, GError **error)
{
    GString *text = orr_file_read(path, JSON_MAX_BYTES, error);
    if (text == NULL)
        return NULL;
    OrrJsonDoc *doc = json_doc_new(strcmp(path, "-") == 0 ? "standard input" : path);
    const size_t length = text->len;
    const JsonRows rows = {each, data};
    doc->read = g_slist_prepend(NULL, g_string_free(text, FALSE));
    return doc_of(doc, doc->read->data, length, &rows, error);
}

OrrJsonDoc *orr_json_read_file(const char *path, GError **error)
{
    return orr_json_read_rows(path, NULL, NULL, error);
}
