/* html/csv.c - reads the CSVs that plots/ writes. */
#include "html/csv.h"

/* The cell at `*at`, which goes on to the next one or to the line's end. */
static char *take_cell(const char **at)
{
    GString *cell = g_string_new(NULL);
    const char *c = *at;
    const gboolean quoted = *c == '"';
    if (quoted)
        c++;
    for (; *c != '\0' && *c != '\n' && (quoted ? *c != '"' : *c != ','); c++)
        g_string_append_c(cell, *c);
    if (quoted && *c == '"')
        c++;
    if (*c == ',')
        c++;
    *at = c;
    return g_string_free(cell, FALSE);
}

HtmlCsv html_csv_read(const GString *text)
{
    HtmlCsv csv = {.cells = g_ptr_array_new_with_free_func(g_free)};
    const char *at = text->str;
    g_autoptr(GPtrArray) names = g_ptr_array_new();
    while (*at != '\0' && *at != '\n')
        g_ptr_array_add(names, take_cell(&at));
    csv.columns = (int)names->len;
    g_ptr_array_add(names, NULL);
    csv.names = (char **)g_ptr_array_steal(names, NULL);
    while (*at == '\n') {
        at++;
        if (*at == '\0' || *at == '\n')
            continue;
        for (int i = 0; i < csv.columns; i++)
            g_ptr_array_add(csv.cells, take_cell(&at));
        csv.rows++;
    }
    return csv;
}

void html_csv_clear(HtmlCsv *csv)
{
    g_ptr_array_free(csv->cells, TRUE);
    g_strfreev(csv->names);
}

int html_csv_column(const HtmlCsv *csv, const char *name)
{
    for (int i = 0; i < csv->columns; i++)
        if (g_str_equal(csv->names[i], name))
            return i;
    g_error("no column %s", name);
}

const char *html_csv_text(const HtmlCsv *csv, int row, int column)
{
    return g_ptr_array_index(csv->cells, (guint)(row * csv->columns + column));
}

double html_csv_number(const HtmlCsv *csv, int row, int column)
{
    return g_ascii_strtod(html_csv_text(csv, row, column), NULL);
}
