/* html/csv.h - a CSV with a row of column names, as plots/ writes them, by name. */
#ifndef ORR_HTML_CSV_H
#define ORR_HTML_CSV_H

#include <glib.h>

typedef struct HtmlCsv {
    GPtrArray *cells; /* char*: all rows one after the other */
    int columns, rows;
    char **names;
} HtmlCsv;

/* Cells may be quoted; quoted cells hold no line ends. */
HtmlCsv html_csv_read(const GString *text);
void html_csv_clear(HtmlCsv *csv);

/* The column must be there. */
int html_csv_column(const HtmlCsv *csv, const char *name);
const char *html_csv_text(const HtmlCsv *csv, int row, int column);
double html_csv_number(const HtmlCsv *csv, int row, int column);

#endif
