/* report/page.h - laying out a page of text for a person: wrapped lines, grouped digits, shares that add up. */
#ifndef ORR_REPORT_PAGE_H
#define ORR_REPORT_PAGE_H

#include <stdint.h>

#include "base/text.h"
#include "base/units.h"

#define REPORT_PAGE_WIDTH 100

/* Columns of the terminal that standard output is, 40 to 140 ($COLUMNS before what it says itself); 100 where it is none. */
int report_page_width(void);

/* Prints a table as orr_table_print() does, in parts where the terminal is too narrow; on anything else as wide as it is. */
void report_page_table(const OrrTable *table, GString *out, int indent);

/* Columns of the terminal that standard output is, $COLUMNS before what it says itself; 0 where it is none. */
int report_page_columns(void);

/* "  label     text ...": breaks between words at the page width, continues under the text. Control
 * characters become '?'. `column` is where the text begins. */
void report_page_entry(GString *out, const char *label, int column, const char *text);
/* The same within `width` columns. */
void report_page_entry_within(GString *out, const char *label, int column, const char *text, int width);
/* Text alone, from `column` on. */
void report_page_say(GString *out, int column, const char *format, ...) G_GNUC_PRINTF(3, 4);

/* "1,536": a whole number with grouped digits, in a buffer of ORR_TEXT_SIZE. */
const char *report_page_whole(char *text, double value);
/* "1 GPU", "1,536 GPUs"; likewise. */
const char *report_page_gpus(char *text, double gpus);

/* Rounds `values` (not negative, sum `total`) to whole units of total / `units` so that they still add up:
 * largest remainder. `ret_units` sums to `units`. total 0: all zero. */
void report_page_apportion(const int64_t *values, int count, int64_t total, int64_t units,
                           int64_t *ret_units);

/* A unit in which a duration has at least three digits before rounding. */
typedef struct ReportScale {
    const char *unit;   /* "s", "ms", "us" */
    int64_t quantum_ps; /* of the last decimal */
    int decimals;
} ReportScale;
ReportScale report_page_scale(int64_t ps);

#endif
