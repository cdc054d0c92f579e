/* base/text.c - tables, bars and near words. */
#include "base/text.h"
#include "base/shown.h"

#include <stdbool.h>
#include <string.h>

struct OrrTable {
    int columns;
    bool has_header;
    GPtrArray *cells; /* char*, row by row */
};

static void table_append(OrrTable *table, const char *const *cells)
{
    for (int column = 0; column < table->columns; column++)
        g_ptr_array_add(table->cells, g_utf8_make_valid(cells[column] != NULL ? cells[column] : "", -1));
}

OrrTable *orr_table_new(const char *const *headers, int columns)
{
    g_assert(columns > 0);
    OrrTable *table = g_new0(OrrTable, 1);
    table->columns = columns;
    table->cells = g_ptr_array_new_with_free_func(g_free);
    table->has_header = headers != NULL;
    if (headers != NULL)
        table_append(table, headers);
    return table;
}

void orr_table_row(OrrTable *table, const char *const *cells)
{
    table_append(table, cells);
}

void orr_table_free(OrrTable *table)
{
    if (table == NULL)
        return;
    g_ptr_array_free(table->cells, TRUE);
    g_free(table);
}

static int text_width(const char *text)
{
    int width = 0;
    for (const char *at = text; *at != '\0'; at = g_utf8_next_char(at)) {
        gunichar c = g_utf8_get_char(at);
        if (!g_unichar_iszerowidth(c))
            width += g_unichar_iswide(c) ? 2 : 1;
    }
    return width;
}

bool orr_text_numeric(const char *text)
{
    if (strcmp(text, "-") == 0)
        return true;
    const char *at = text;
    if (*at == '+' || *at == '-')
        at++;
    if (*at == '$' || *at == '~' || *at == '<')
        at++;
    if (!g_ascii_isdigit(*at))
        return false;
    while (g_ascii_isdigit(*at) || *at == '.' || *at == ',')
        at++;
    if ((*at == 'e' || *at == 'E') && (at[1] == '+' || at[1] == '-' || g_ascii_isdigit(at[1]))) {
        at += 2;
        while (g_ascii_isdigit(*at))
            at++;
    }
    return *at == '\0' || *at == ' ' || *at == '%' || (*at == 'x' && at[1] == '\0');
}

const char *orr_table_cell(const OrrTable *table, int row, int column)
{
    return g_ptr_array_index(table->cells, (guint)(row * table->columns + column));
}

int orr_table_rows(const OrrTable *table)
{
    return (int)table->cells->len / table->columns;
}

static void append_repeated(GString *out, const char *text, int count)
{
    for (int i = 0; i < count; i++)
        g_string_append(out, text);
}

static void append_cell(GString *out, const char *cell)
{
    g_autofree char *shown = orr_shown(cell, '?', "");
    g_string_append(out, shown);
}

/* How a table is laid out: widths of its columns, which of them are of numbers, and room for the last, which wraps. */
typedef struct Layout {
    int *widths;
    bool *right;
    int last_width; /* 0: as wide as it is */
} Layout;

static bool aligns_right(const OrrTable *table, int row, int column, const bool *right)
{
    return table->has_header && row == 0 ? right[column]
                                         : orr_text_numeric(orr_table_cell(table, row, column));
}

static void end_line(GString *out)
{
    while (out->len > 0 && out->str[out->len - 1] == ' ')
        g_string_truncate(out, out->len - 1);
    g_string_append_c(out, '\n');
}

/* A cell's words in lines of at most `width`, the next ones `column` cells from the left; a longer word stays whole. */
static void append_wrapped(GString *out, const char *cell, int width, int column)
{
    g_auto(GStrv) words = g_strsplit(cell, " ", -1);
    int at = 0;
    for (char **word = words; *word != NULL; word++) {
        const int wide = text_width(*word);
        if (at > 0 && at + 1 + wide > width) {
            end_line(out);
            append_repeated(out, " ", column);
            at = 0;
        } else if (at > 0) {
            g_string_append_c(out, ' ');
            at++;
        }
        append_cell(out, *word);
        at += wide;
    }
}

/* The columns of `columns`, numbers of the table's. */
static void print_row(const OrrTable *table, GString *out, int indent, int row, const Layout *layout,
                      const int *columns, int count)
{
    int at = indent;
    append_repeated(out, " ", indent);
    for (int i = 0; i < count; i++) {
        const int column = columns[i];
        const char *cell = orr_table_cell(table, row, column);
        const bool right = aligns_right(table, row, column, layout->right);
        const int pad = layout->widths[column] - text_width(cell);
        if (column + 1 == table->columns && layout->last_width > 0) {
            append_wrapped(out, cell, layout->last_width, at);
            break;
        }
        if (right)
            append_repeated(out, " ", pad);
        append_cell(out, cell);
        if (i + 1 == count)
            break;
        if (!right)
            append_repeated(out, " ", pad);
        g_string_append(out, "  ");
        at += layout->widths[column] + 2;
    }
    end_line(out);
}

static void print_columns(const OrrTable *table, GString *out, int indent, const Layout *layout,
                          const int *columns, int count)
{
    for (int row = 0; row < orr_table_rows(table); row++) {
        print_row(table, out, indent, row, layout, columns, count);
        if (row > 0 || !table->has_header)
            continue;
        append_repeated(out, " ", indent);
        for (int i = 0; i < count; i++) {
            const bool wrapped = columns[i] + 1 == table->columns && layout->last_width > 0;
            append_repeated(out, "-", wrapped ? layout->last_width : layout->widths[columns[i]]);
            g_string_append(out, i + 1 < count ? "  " : "\n");
        }
    }
}

static void measure(const OrrTable *table, Layout *layout)
{
    const int rows = orr_table_rows(table), first = table->has_header ? 1 : 0;
    for (int column = 0; column < table->columns; column++) {
        int numeric = 0, filled = 0;
        for (int row = 0; row < rows; row++) {
            const char *cell = orr_table_cell(table, row, column);
            layout->widths[column] = MAX(layout->widths[column], text_width(cell));
            if (row >= first && cell[0] != '\0') {
                filled++;
                numeric += orr_text_numeric(cell);
            }
        }
        layout->right[column] = filled > 0 && numeric == filled;
    }
}

/* A column that has no room even beside the keys: in each row below them. */
static void print_below(const OrrTable *table, GString *out, int indent, int width, int keys, int column)
{
    for (int row = 0; row < orr_table_rows(table); row++) {
        append_repeated(out, " ", indent);
        for (int key = 0; key < keys; key++) {
            if (key > 0)
                g_string_append_c(out, ' ');
            append_wrapped(out, orr_table_cell(table, row, key), width - indent, indent);
        }
        end_line(out);
        append_repeated(out, " ", indent + 2);
        append_wrapped(out, orr_table_cell(table, row, column), width - indent - 2, indent + 2);
        end_line(out);
        if (row == 0 && table->has_header) {
            append_repeated(out, " ", indent);
            append_repeated(out, "-", width - indent);
            g_string_append_c(out, '\n');
        }
    }
}

/* Parts one below the other, each beginning with the columns that say what a row is. */
static void print_parts(const OrrTable *table, GString *out, int indent, int width, Layout *layout)
{
    enum { LEAST = 16 }; /* of a last column that wraps */
    const int last = table->columns - 1,
              keys = layout->widths[0] <= 2 && last > 1 ? 2 : 1; /* a mark before */
    const bool wraps = table->has_header && orr_table_cell(table, 0, last)[0] != '\0' && !layout->right[last];
    g_autofree int *columns = g_new(int, (gsize)table->columns);
    int next = keys;
    do {
        int count = 0, at = indent;
        for (; count < keys; count++) {
            columns[count] = count;
            at += layout->widths[count] + 2;
        }
        if (next > keys)
            g_string_append_c(out, '\n');
        if (at + layout->widths[next] > width && !(next == last && wraps && at + LEAST <= width)) {
            print_below(table, out, indent, width, keys, next++);
            continue;
        }
        for (; next <= last; next++) {
            const bool fits = at + layout->widths[next] <= width;
            if (!fits && next == last && wraps && at + LEAST <= width)
                layout->last_width = width - at;
            else if (!fits && count > keys)
                break;
            columns[count++] = next;
            at += layout->widths[next] + 2;
        }
        print_columns(table, out, indent, layout, columns, count);
    } while (next <= last);
}

void orr_table_print_within(const OrrTable *table, GString *out, int indent, int width)
{
    g_autofree int *widths = g_new0(int, (gsize)table->columns);
    g_autofree bool *right = g_new0(bool, (gsize)table->columns);
    Layout layout = {.widths = widths, .right = right};
    int total = indent - 2;
    measure(table, &layout);
    for (int column = 0; column < table->columns; column++)
        total += widths[column] + 2;
    print_parts(table, out, indent, width > 0 && table->columns > 1 ? width : MAX(total, 1), &layout);
}

void orr_table_print(const OrrTable *table, GString *out, int indent)
{
    orr_table_print_within(table, out, indent, 0);
}

int orr_table_columns(const OrrTable *table)
{
    return table->columns;
}

void orr_table_csv(const OrrTable *table, GString *out)
{
    for (int row = 0; row < orr_table_rows(table); row++) {
        for (int column = 0; column < table->columns; column++) {
            g_autofree char *cell = orr_shown(orr_table_cell(table, row, column), '?', "\t\r\n");
            if (column > 0)
                g_string_append_c(out, ',');
            if (strpbrk(cell, ",\"\r\n") == NULL) {
                g_string_append(out, cell);
                continue;
            }
            g_string_append_c(out, '"');
            for (const char *at = cell; *at != '\0'; at++) {
                if (*at == '"')
                    g_string_append_c(out, '"');
                g_string_append_c(out, *at);
            }
            g_string_append_c(out, '"');
        }
        g_string_append_c(out, '\n');
    }
}

void orr_text_bar(GString *out, double frac, int width)
{
    static const char *const eighths[] = {"",       "\u258f", "\u258e", "\u258d",
                                          "\u258c", "\u258b", "\u258a", "\u2589"};
    if (!(frac > 0.0))
        frac = 0.0;
    if (frac > 1.0)
        frac = 1.0;
    const int filled = (int)(frac * width * 8.0 + 0.5);
    const int full = filled / 8, part = filled % 8;
    append_repeated(out, "\u2588", full);
    g_string_append(out, eighths[part]);
    append_repeated(out, " ", width - full - (part > 0 ? 1 : 0));
}

/* Edit distance where a swap of neighbours counts one; -1 when a text is too long to be a key. */
enum { LONGEST = 64 };

static void lower(const char *word, int length, char *ret_low)
{
    for (int i = 0; i < length; i++)
        ret_low[i] = g_ascii_tolower(word[i]);
}

/* -1: more than `most`, or too long to say. */
static int edit_distance(const char *first, const char *second, int most)
{
    const int la = (int)strlen(first), lb = (int)strlen(second);
    if (la > LONGEST || lb > LONGEST || ABS(la - lb) > most)
        return -1;
    char a[LONGEST], b[LONGEST];
    lower(first, la, a);
    lower(second, lb, b);
    int rows[3][LONGEST + 1];
    for (int j = 0; j <= lb; j++)
        rows[0][j] = j;
    for (int i = 1; i <= la; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3], *two_above = rows[(i + 1) % 3];
        int least = row[0] = i;
        for (int j = 1; j <= lb; j++) {
            const int change = a[i - 1] != b[j - 1];
            row[j] = MIN(MIN(above[j] + 1, row[j - 1] + 1), above[j - 1] + change);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = MIN(row[j], two_above[j - 2] + 1);
            least = MIN(least, row[j]);
        }
        if (least > most + 1) /* a swap reaches over one row, by one */
            return -1;
    }
    return rows[la % 3][lb] <= most ? rows[la % 3][lb] : -1;
}

/* Edits that make `word` of `candidate`, or one more than those that make it of the candidate's first words, so that
 * "out_bytes_per_s" stands for "out_bytes_per_s_per_gpu" rather than for "up_bytes_per_s"; -1: too many. */
static int name_distance(const char *word, const char *candidate)
{
    const int length = (int)strlen(word), whole = (int)strlen(candidate);
    int best = edit_distance(word, candidate, MAX(1, MIN(length, whole) / 3));
    for (const char *end = strchr(candidate, '_'); end != NULL; end = strchr(end + 1, '_')) {
        const int first = (int)(end - candidate), shorter = MIN(length, first);
        if (shorter < 4)
            continue;
        g_autofree char *words = g_strndup(candidate, (gsize)first);
        const int distance = edit_distance(word, words, strchr(words, '_') != NULL ? shorter / 6 : 0);
        if (distance >= 0 && (best < 0 || distance + 1 < best))
            best = distance + 1;
    }
    return best;
}

const char *orr_nearest(const char *word, const char *const *candidates, int count)
{
    const char *best = NULL;
    int best_distance = 0;
    const int length = (int)strlen(word);
    for (int i = 0; i < count; i++) {
        const int distance = name_distance(word, candidates[i]);
        if (distance >= 0 && (best == NULL || distance < best_distance)) {
            best = candidates[i];
            best_distance = distance;
        }
    }
    if (best != NULL || length < 3)
        return best;
    g_autofree char *low_word = g_ascii_strdown(word, -1);
    for (int i = 0; i < count; i++) { /* "batch" for "global_batch", "zero_stage" for "zero" */
        g_autofree char *low = g_ascii_strdown(candidates[i], -1);
        const int other = (int)strlen(low), difference = ABS(other - length);
        const bool inside = strstr(low, low_word) != NULL || (other >= 3 && strstr(low_word, low) != NULL);
        if (inside && (best == NULL || difference < best_distance)) {
            best = candidates[i];
            best_distance = difference;
        }
    }
    return best;
}
