/* exchange/trace_scan.c - see trace_scan.h. */
#include "exchange/trace_scan.h"

#include <math.h>
#include <string.h>

#define PS_PER_US 1000000

enum { LONGEST_NUMBER = 64 };

static void skip_space(TraceScan *scan)
{
    while (*scan->at == ' ' || *scan->at == '\n' || *scan->at == '\t' || *scan->at == '\r')
        scan->at++;
}

char trace_scan_peek(TraceScan *scan)
{
    skip_space(scan);
    return *scan->at;
}

bool trace_scan_char(TraceScan *scan, char expected)
{
    skip_space(scan);
    if (*scan->at != expected)
        return false;
    scan->at++;
    return true;
}

/* Behind the closing quote of a string whose inside begins at `at`. */
static const char *string_end(const TraceScan *scan, const char *at)
{
    for (const char *from = at;;) {
        const char *quote = memchr(from, '"', (gsize)(scan->end - from)), *slash = quote;
        if (quote == NULL)
            return NULL;
        while (slash > at && slash[-1] == '\\')
            slash--;
        if ((quote - slash) % 2 == 0)
            return quote + 1;
        from = quote + 1;
    }
}

bool trace_scan_string(TraceScan *scan, TraceSlice *ret_text)
{
    if (!trace_scan_char(scan, '"'))
        return false;
    const char *end = string_end(scan, scan->at);
    if (end == NULL) {
        scan->at = scan->end;
        return false;
    }
    *ret_text = (TraceSlice){scan->at, (gsize)(end - 1 - scan->at)};
    scan->at = end;
    return true;
}

static bool is_scalar(char c)
{
    return g_ascii_isalnum(c) || c == '-' || c == '+' || c == '.';
}

static bool skip_scalar(TraceScan *scan)
{
    const char *from = scan->at;
    while (is_scalar(*scan->at))
        scan->at++;
    return scan->at > from && scan->at < scan->end; /* at the window's end it may go on */
}

static bool skip_nested(TraceScan *scan)
{
    int64_t depth = 0;
    do {
        const char c = *scan->at;
        if (c == '"') {
            const char *end = string_end(scan, scan->at + 1);
            scan->at = end != NULL ? end : scan->end;
            continue;
        }
        depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        scan->at++;
    } while (depth > 0 && scan->at < scan->end);
    return depth == 0;
}

bool trace_scan_skip(TraceScan *scan)
{
    TraceSlice text;
    const char first = trace_scan_peek(scan);
    if (first == '"')
        return trace_scan_string(scan, &text);
    return first == '{' || first == '[' ? skip_nested(scan) : skip_scalar(scan);
}

bool trace_scan_value(TraceScan *scan, TraceSlice *ret_text)
{
    if (trace_scan_peek(scan) == '"')
        return trace_scan_string(scan, ret_text);
    const char *from = scan->at;
    if (!trace_scan_skip(scan))
        return false;
    *ret_text = (TraceSlice){from, (gsize)(scan->at - from)};
    return true;
}

bool trace_scan_members(TraceScan *scan, TraceTake take, void *data)
{
    TraceSlice key;
    if (!trace_scan_char(scan, '{'))
        return false;
    if (trace_scan_char(scan, '}'))
        return true;
    for (;;) {
        if (!trace_scan_string(scan, &key) || !trace_scan_char(scan, ':') || !take(scan, &key, data))
            return false;
        if (trace_scan_char(scan, '}'))
            return true;
        if (!trace_scan_char(scan, ','))
            return false;
    }
}

bool trace_slice_is(const TraceSlice *slice, const char *text)
{
    const gsize length = strlen(text);
    return slice->text != NULL && slice->length == length && memcmp(slice->text, text, length) == 0;
}

bool trace_slice_has(const TraceSlice *slice, const char *text)
{
    const gsize length = strlen(text);
    for (gsize i = 0; slice->text != NULL && i + length <= slice->length; i++)
        if (g_ascii_strncasecmp(slice->text + i, text, length) == 0)
            return true;
    return false;
}

static bool is_number_text(const TraceSlice *slice, char text[LONGEST_NUMBER])
{
    if (slice->text == NULL || slice->length == 0 || slice->length >= LONGEST_NUMBER)
        return false;
    memcpy(text, slice->text, slice->length);
    text[slice->length] = '\0';
    return true;
}

double trace_slice_number(const TraceSlice *slice, double absent)
{
    char text[LONGEST_NUMBER], *end = NULL;
    if (!is_number_text(slice, text))
        return absent;
    const double value = g_ascii_strtod(text, &end);
    return *end == '\0' && isfinite(value) ? value : absent;
}

int64_t trace_slice_int(const TraceSlice *slice, int64_t absent)
{
    char text[LONGEST_NUMBER], *end = NULL;
    if (!is_number_text(slice, text))
        return absent;
    const int64_t value = g_ascii_strtoll(text, &end, 10);
    if (*end == '\0')
        return value;
    const double real = trace_slice_number(slice, NAN);
    return fabs(real) < 9e15 ? (int64_t)real : absent;
}

bool trace_slice_us(const TraceSlice *slice, int64_t *ret_us, int64_t *ret_ps)
{
    int64_t us = 0, ps = 0, unit = PS_PER_US;
    if (slice->text == NULL || slice->length == 0 || slice->length > LONGEST_NUMBER)
        return false;
    const char *at = slice->text, *end = at + slice->length;
    const bool negative = *at == '-';
    at += negative;
    for (; at < end && g_ascii_isdigit(*at) && us < (int64_t)9e14; at++)
        us = 10 * us + (*at - '0');
    if (at < end && *at == '.')
        for (at++; at < end && g_ascii_isdigit(*at); at++, unit /= 10)
            ps += unit > 1 ? (*at - '0') * (unit / 10) : 0;
    if (at < end) { /* 1.5e+06 */
        const double real = trace_slice_number(slice, NAN);
        if (!(fabs(real) < 9e15))
            return false;
        us = (int64_t)floor(real);
        ps = (int64_t)((real - floor(real)) * PS_PER_US);
    } else if (negative) {
        us = -us;
        ps = -ps;
    }
    *ret_us = us;
    *ret_ps = ps;
    return true;
}

char *trace_slice_text(const TraceSlice *slice)
{
    GString *out = g_string_sized_new(slice->length);
    for (gsize i = 0; i < slice->length; i++) {
        char c = slice->text[i];
        if (c == '\\' && i + 1 < slice->length) {
            c = slice->text[++i];
            if (c == 'u' && i + 4 < slice->length) {
                g_autofree char *digits = g_strndup(slice->text + i + 1, 4);
                const gunichar point = (gunichar)g_ascii_strtoull(digits, NULL, 16);
                g_string_append_unichar(out, g_unichar_validate(point) && point >= ' ' ? point : ' ');
                i += 4;
                continue;
            }
            c = strchr("ntrbf", c) != NULL ? ' ' : c;
        }
        g_string_append_c(out, (guchar)c < ' ' || c == 127 ? ' ' : c);
    }
    g_autofree char *raw = g_string_free(out, FALSE);
    return g_utf8_make_valid(raw, -1);
}
