/* report/page.c - laying out a page of text for a person. */
#include "report/page.h"
#include "base/shown.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { LEAST = 40, MOST = 140 }; /* columns of a page on a terminal */

int report_page_columns(void)
{
    struct winsize size = {0};
    gint64 columns = 0;
    if (isatty(STDOUT_FILENO) == 0)
        return 0;
    const char *given = g_getenv("COLUMNS");
    if (given == NULL || !g_ascii_string_to_signed(given, 10, 1, 100000, &columns, NULL))
        columns =
            ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : REPORT_PAGE_WIDTH;
    return (int)MAX(columns, LEAST);
}

int report_page_width(void)
{
    const int columns = report_page_columns();
    return columns > 0 ? MIN(columns, MOST) : REPORT_PAGE_WIDTH;
}

void report_page_table(const OrrTable *table, GString *out, int indent)
{
    orr_table_print_within(table, out, indent, report_page_columns());
}

static void append_spaces(GString *out, int count)
{
    for (int i = 0; i < count; i++)
        g_string_append_c(out, ' ');
}

/* Appends one word, cut where it is longer than a line; returns the column reached. */
static int append_word(GString *out, const char *word, int column, int at, int width)
{
    for (const char *c = word; *c != '\0'; c = g_utf8_next_char(c)) {
        if (at >= width) {
            g_string_append_c(out, '\n');
            append_spaces(out, column);
            at = column;
        }
        const gunichar point = g_utf8_get_char(c);
        g_string_append_unichar(out, orr_is_obeyed(point) ? '?' : point);
        at += g_unichar_iszerowidth(point) ? 0 : g_unichar_iswide(point) ? 2 : 1;
    }
    return at;
}

static int word_width(const char *word)
{
    int width = 0;
    for (const char *c = word; *c != '\0'; c = g_utf8_next_char(c))
        width += g_unichar_iswide(g_utf8_get_char(c)) ? 2 : 1;
    return width;
}

void report_page_entry(GString *out, const char *label, int column, const char *text)
{
    report_page_entry_within(out, label, column, text, report_page_width());
}

void report_page_entry_within(GString *out, const char *label, int column, const char *text, int width)
{
    const gsize start = out->len;
    g_string_append(out, label);
    const int label_width = (int)g_utf8_strlen(out->str + start, -1);
    if (label_width > 0 && label_width >= column) { /* a long label has a line of its own */
        g_string_append_c(out, '\n');
        append_spaces(out, column);
    } else {
        append_spaces(out, column - label_width);
    }
    g_autofree char *valid = g_utf8_make_valid(text, -1);
    g_auto(GStrv) words = g_strsplit(valid, " ", -1);
    int at = column;
    for (char **word = words; *word != NULL; word++) {
        if ((*word)[0] == '\0')
            continue;
        if (at > column && at + 1 + word_width(*word) > width) {
            g_string_append_c(out, '\n');
            append_spaces(out, column);
            at = column;
        } else if (at > column) {
            g_string_append_c(out, ' ');
            at++;
        }
        at = append_word(out, *word, column, at, width);
    }
    g_string_append_c(out, '\n');
}

void report_page_say(GString *out, int column, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_autofree char *text = g_strdup_vprintf(format, values);
    va_end(values);
    report_page_entry(out, "", column, text);
}

const char *report_page_whole(char *text, double value)
{
    char digits[ORR_TEXT_SIZE];
    if (!isfinite(value) || fabs(value) >= 1e18) {
        g_snprintf(text, ORR_TEXT_SIZE, "%g", value);
        return text;
    }
    const int count = g_snprintf(digits, sizeof digits, "%.0f", fabs(value));
    int to = 0;
    if (value <= -0.5)
        text[to++] = '-';
    for (int i = 0; i < count; i++) {
        if (i > 0 && (count - i) % 3 == 0)
            text[to++] = ',';
        text[to++] = digits[i];
    }
    text[to] = '\0';
    return text;
}

const char *report_page_gpus(char *text, double gpus)
{
    report_page_whole(text, gpus);
    g_strlcat(text, gpus == 1 ? " GPU" : " GPUs", ORR_TEXT_SIZE);
    return text;
}

void report_page_apportion(const int64_t *values, int count, int64_t total, int64_t units, int64_t *ret_units)
{
    g_autofree double *rest = g_new0(double, (gsize)count + 1);
    int64_t left = units;
    for (int i = 0; i < count; i++) {
        const double share = total > 0 ? (double)values[i] / (double)total * (double)units : 0.0;
        ret_units[i] = (int64_t)floor(share);
        rest[i] = share - floor(share);
        left -= ret_units[i];
    }
    for (; total > 0 && left > 0; left--) {
        int best = 0;
        for (int i = 1; i < count; i++) {
            if (rest[i] > rest[best])
                best = i;
        }
        ret_units[best]++;
        rest[best] = -1.0;
    }
}

ReportScale report_page_scale(int64_t ps)
{
    static const ReportScale scales[] = {
        {"s", 10000000000, 2}, {"s", 1000000000, 3}, {"ms", 100000000, 1},
        {"ms", 10000000, 2},   {"us", 100000, 1},
    };
    static const int64_t from_ps[] = {10000000000000, 1000000000000, 100000000000, 1000000000, 0};
    int row = 0;
    while (ps < from_ps[row])
        row++;
    return scales[row];
}
