/* base/json_parse.c - the strict parser (RFC 8259): UTF-8, no duplicate keys, no trailing bytes, finite
 * numbers, bounded depth; every message says name:line:column. */
#include <math.h>
#include <string.h>

#include "base/file.h"
#include "base/json_internal.h"

typedef struct JsonParser {
    const char *start, *at, *end;
    const char *name;
    int depth;
    const char *text; /* what parse_text() read, without an end of its own: in the source or in scratch */
    gsize text_length;
    GString *scratch; /* text being unescaped */
    GError **error;
} JsonParser;

static bool parse_value(JsonParser *parser, cJSON **ret_item);

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

static bool parse_unicode_escape(JsonParser *parser)
{
    const char *escape = parser->at; /* at the backslash */
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
    g_string_append_unichar(parser->scratch, (gunichar)code);
    return true;
}

static bool parse_escape(JsonParser *parser)
{
    static const char names[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
    if (parser->end - parser->at < 2)
        return fail_at(parser, parser->at, "text without a closing quote");
    const char kind = parser->at[1];
    if (kind == 'u')
        return parse_unicode_escape(parser);
    const char *found = kind != '\0' ? strchr(names, kind) : NULL;
    if (found == NULL)
        return fail_at(parser, parser->at,
                       "unknown escape in text; JSON knows \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    g_string_append_c(parser->scratch, meanings[found - names]);
    parser->at += 2;
    return true;
}

/* From parser->at on, the bytes that text holds as they are written. */
static gsize pass_run(JsonParser *parser)
{
    const char *run = parser->at, *at = run, *end = parser->end;
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20u)
        at++;
    parser->at = at;
    return (gsize)(at - run);
}

/* Text with an escape, whose first `length` bytes from `run` on are passed: unescaped in parser->scratch. */
static bool parse_escaped(JsonParser *parser, const char *opening, const char *run, gsize length)
{
    g_string_truncate(parser->scratch, 0);
    for (;;) {
        g_string_append_len(parser->scratch, run, (gssize)length);
        if (parser->at >= parser->end)
            return fail_at(parser, opening, "text without a closing quote");
        if (*parser->at == '"')
            break;
        if (*parser->at != '\\')
            return fail_at(parser, parser->at, "control byte in text; write it as \\n, \\t or \\uXXXX");
        if (!parse_escape(parser))
            return false;
        run = parser->at;
        length = pass_run(parser);
    }
    parser->at++;
    parser->text = parser->scratch->str;
    parser->text_length = parser->scratch->len;
    return true;
}

/* Leaves the text in parser->text until the next one is read. Most texts have no escape and stay where they are. */
static bool parse_text(JsonParser *parser)
{
    const char *opening = parser->at++, *run = parser->at;
    const gsize length = pass_run(parser);
    if (!at_char(parser, '"'))
        return parse_escaped(parser, opening, run, length);
    parser->at++;
    parser->text = run;
    parser->text_length = length;
    return true;
}

/* The text that was read last, for a cJSON item to own. */
static char *text_to_own(const JsonParser *parser)
{
    char *copy = cJSON_malloc(parser->text_length + 1);
    if (copy == NULL)
        g_error("no memory for a text of %" G_GSIZE_FORMAT " bytes", parser->text_length);
    memcpy(copy, parser->text, parser->text_length);
    copy[parser->text_length] = '\0';
    return copy;
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

static bool parse_number(JsonParser *parser, cJSON **ret_item)
{
    const char *first = parser->at, *at = first, *end = parser->end;
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
    *ret_item = cJSON_CreateNumber(value);
    return true;
}

/* A comma, with something behind it: the habit of other formats to end a list with one is told by name. */
static bool pass_comma(JsonParser *parser, char end)
{
    const char *comma = parser->at++;
    skip_space(parser);
    if (!at_char(parser, end))
        return true;
    g_autofree char *message = g_strdup_printf("a comma with nothing after it but '%c'; remove it", end);
    return fail_at(parser, comma, message);
}

static bool parse_list(JsonParser *parser, cJSON *list)
{
    parser->at++;
    skip_space(parser);
    if (at_char(parser, ']')) {
        parser->at++;
        return true;
    }
    for (;;) {
        cJSON *item = NULL;
        if (!parse_value(parser, &item))
            return false;
        cJSON_AddItemToArray(list, item);
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

/* The keys of an object so far: few are compared one by one, many have a table of what the items own. */
typedef struct KeysSeen {
    GHashTable *table;
    int count;
} KeysSeen;

/* Whether `key` is new in `object`. It joins the others when its item does. */
static bool key_is_new(KeysSeen *seen, const cJSON *object, char *key)
{
    enum { FEW = 16 };
    if (seen->count++ < FEW) {
        const cJSON *member = object->child;
        while (member != NULL && strcmp(member->string, key) != 0)
            member = member->next;
        return member == NULL;
    }
    if (seen->table == NULL) {
        seen->table = g_hash_table_new(g_str_hash, g_str_equal);
        for (const cJSON *member = object->child; member != NULL; member = member->next)
            g_hash_table_add(seen->table, member->string);
    }
    return g_hash_table_add(seen->table, key);
}

static bool parse_member(JsonParser *parser, cJSON *object, KeysSeen *seen)
{
    skip_space(parser);
    if (!at_char(parser, '"'))
        return fail_expected(parser, "a key in quotes");
    const char *where = parser->at;
    if (!parse_text(parser))
        return false;
    char *key = text_to_own(parser);
    cJSON *item = NULL;
    bool ok = key_is_new(seen, object, key);
    if (!ok) {
        g_autofree char *message = g_strdup_printf("key \"%s\" occurs twice in one object; keep one", key);
        fail_at(parser, where, message);
    } else {
        skip_space(parser);
        ok = at_char(parser, ':') || fail_expected(parser, "':' after a key");
    }
    if (ok) {
        parser->at++;
        ok = parse_value(parser, &item);
    }
    if (!ok) {
        cJSON_free(key);
        return false;
    }
    cJSON_AddItemToObjectCS(object, key, item); /* takes the key as it is ... */
    item->type &= ~cJSON_StringIsConst;         /* ... and the item owns it */
    return true;
}

static bool parse_members(JsonParser *parser, cJSON *object, KeysSeen *seen)
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

static bool parse_object(JsonParser *parser, cJSON *object)
{
    parser->at++;
    skip_space(parser);
    if (at_char(parser, '}')) {
        parser->at++;
        return true;
    }
    KeysSeen seen = {NULL, 0};
    const bool ok = parse_members(parser, object, &seen);
    g_clear_pointer(&seen.table, g_hash_table_destroy);
    return ok;
}

static bool parse_container(JsonParser *parser, cJSON **ret_item)
{
    if (parser->depth >= JSON_MAX_DEPTH)
        return fail_at(parser, parser->at, "nested deeper than 64 levels");
    const bool is_list = *parser->at == '[';
    cJSON *container = is_list ? cJSON_CreateArray() : cJSON_CreateObject();
    parser->depth++;
    const bool ok = is_list ? parse_list(parser, container) : parse_object(parser, container);
    parser->depth--;
    if (!ok) {
        cJSON_Delete(container);
        return false;
    }
    *ret_item = container;
    return true;
}

static bool parse_word(JsonParser *parser, cJSON **ret_item)
{
    const char *first = parser->at;
    const char *last = first;
    while (last < parser->end && g_ascii_isalnum(*last))
        last++;
    const size_t length = (size_t)(last - first);
    if (length == 4 && memcmp(first, "true", 4) == 0)
        *ret_item = cJSON_CreateTrue();
    else if (length == 5 && memcmp(first, "false", 5) == 0)
        *ret_item = cJSON_CreateFalse();
    else if (length == 4 && memcmp(first, "null", 4) == 0)
        *ret_item = cJSON_CreateNull();
    else
        return fail_expected(parser, "a value");
    parser->at = last;
    return true;
}

static bool parse_value(JsonParser *parser, cJSON **ret_item)
{
    skip_space(parser);
    if (parser->at >= parser->end)
        return fail_expected(parser, "a value");
    switch (*parser->at) {
    case '{':
    case '[':
        return parse_container(parser, ret_item);
    case '"':
        if (!parse_text(parser))
            return false;
        *ret_item = cJSON_CreateNull();
        (*ret_item)->type = cJSON_String;
        (*ret_item)->valuestring = text_to_own(parser);
        return true;
    default:
        break;
    }
    if (*parser->at == '-' || g_ascii_isdigit(*parser->at))
        return parse_number(parser, ret_item);
    return parse_word(parser, ret_item);
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

static bool parse_root(JsonParser *parser, cJSON **ret_root)
{
    const gchar *invalid = NULL;
    const char *mixed = past_ascii(parser->start, parser->end);
    if (!g_utf8_validate_len(mixed, (gsize)(parser->end - mixed), &invalid))
        return fail_at(parser, invalid, "not UTF-8 text; save the file as UTF-8");
    if (!parse_value(parser, ret_root))
        return false;
    skip_space(parser);
    return parser->at == parser->end || fail_expected(parser, "nothing after the value");
}

cJSON *json_parse_strict(const char *text, size_t length, const char *name, GError **error)
{
    if (length > JSON_MAX_BYTES) {
        orr_fail(error, ORR_ERROR_INPUT, "%s: larger than 256 MiB; split the file", name);
        return NULL;
    }
    const size_t mark = strlen(ORR_BYTE_ORDER_MARK);
    const char *start = text + (length >= mark && memcmp(text, ORR_BYTE_ORDER_MARK, mark) == 0 ? mark : 0);
    JsonParser parser = {.start = start,
                         .at = start,
                         .end = text + length,
                         .name = name,
                         .scratch = g_string_new(NULL),
                         .error = error};
    cJSON *root = NULL;
    if (!parse_root(&parser, &root)) {
        cJSON_Delete(root);
        root = NULL;
    }
    g_string_free(parser.scratch, TRUE);
    return root;
}
