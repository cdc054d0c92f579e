/* base/text.h - tables and bars on a terminal, and "did you mean". */
#ifndef ORR_BASE_TEXT_H
#define ORR_BASE_TEXT_H

#include <glib.h>
#include <stdbool.h>

/* A table: rows of cells, columns sized to the widest cell. Cells that look like numbers align right.
 * UTF-8 aware. The header row is underlined. */
typedef struct OrrTable OrrTable;
OrrTable *orr_table_new(const char *const *headers, int columns); /* headers NULL: none */
void orr_table_row(OrrTable *table, const char *const *cells);    /* copies */
void orr_table_print(const OrrTable *table, GString *out, int indent);
/* The same in lines of at most `width` (0: any): a last column of text wraps, columns that find no room stand in a further
 * part below, which begins with the first column again. */
void orr_table_print_within(const OrrTable *table, GString *out, int indent, int width);
void orr_table_csv(const OrrTable *table, GString *out); /* RFC 4180 quoting */
/* "12", "-3.5e9", "13.75 s", "42 %", "-": a number, alone or before a unit. */
bool orr_text_numeric(const char *text);
int orr_table_rows(const OrrTable *table); /* that of the headers, row 0, is one of them */
int orr_table_columns(const OrrTable *table);
const char *orr_table_cell(const OrrTable *table, int row, int column); /* borrowed */
void orr_table_free(OrrTable *table);

/* A bar of `width` cells filled to `frac` (clamped to 0..1), in block characters. */
void orr_text_bar(GString *out, double frac, int width);

/* The candidate nearest to `word` (edit distance, case ignored), or NULL when none is near. */
const char *orr_nearest(const char *word, const char *const *candidates, int count);

#endif
