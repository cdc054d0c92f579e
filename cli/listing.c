/* cli/listing.c - a listing as text, JSON or CSV. */
#include "cli/listing.h"
#include "report/page.h"

#include <math.h>
#include <string.h>

#include "base/text.h"
#include "base/units.h"

typedef struct Cell {
    char *text;      /* NULL: a number, or not given */
    double number;   /* NaN: not given */
    char *for_page;  /* sources only: what the table shows instead of the text */
    OrrJsonDoc *doc; /* sources only: as it stands */
} Cell;

struct CliListing {
    const CliColumn *columns;
    int count;
    GArray *cells; /* Cell, row by row */
};

static void cell_clear(void *data)
{
    Cell *cell = data;
    g_free(cell->text);
    g_free(cell->for_page);
    if (cell->doc != NULL)
        orr_json_free(cell->doc);
}

CliListing *cli_listing_new(const CliColumn *columns, int count)
{
    CliListing *listing = g_new0(CliListing, 1);
    *listing = (CliListing){columns, count, g_array_new(FALSE, TRUE, sizeof(Cell))};
    g_array_set_clear_func(listing->cells, cell_clear);
    return listing;
}

void cli_listing_free(CliListing *listing)
{
    if (listing == NULL)
        return;
    g_array_free(listing->cells, TRUE);
    g_free(listing);
}

void cli_listing_text(CliListing *listing, const char *text)
{
    const Cell cell = {.text = g_strdup(text), .number = NAN};
    g_array_append_val(listing->cells, cell);
}

void cli_listing_number(CliListing *listing, double value)
{
    const Cell cell = {.number = value};
    g_array_append_val(listing->cells, cell);
}

/* Adds each "[Key]" of `text` once. */
static void add_citations(GString *page, const char *text)
{
    for (const char *open = strchr(text, '['); open != NULL; open = strchr(open + 1, '[')) {
        const char *close = strchr(open, ']');
        if (close == NULL)
            return;
        g_autofree char *citation = g_strndup(open, (gsize)(close - open) + 1);
        if (strstr(page->str, citation) == NULL)
            g_string_append_printf(page, "%s%s", page->len > 0 ? " " : "", citation);
    }
}

static char *source_for_page(const OrrJson *source)
{
    enum { SHORT_TEXT = 60 };
    if (source == NULL)
        return g_strdup("unverified");
    g_autoptr(GString) page = g_string_new(NULL);
    int unverified = 0;
    if (orr_json_type(source) == ORR_JSON_TEXT) {
        const char *text = orr_json_text(source);
        add_citations(page, text);
        if (page->len == 0)
            g_string_append_len(
                page, text, g_utf8_offset_to_pointer(text, MIN(g_utf8_strlen(text, -1), SHORT_TEXT)) - text);
        if (strstr(text, "unverified") != NULL && strstr(page->str, "unverified") == NULL)
            g_string_append(page, " unverified");
        return g_strdup(page->str);
    }
    for (const OrrJson *member = orr_json_first(source); member != NULL; member = orr_json_next(member)) {
        if (orr_json_type(member) != ORR_JSON_TEXT)
            continue;
        add_citations(page, orr_json_text(member));
        unverified += strstr(orr_json_text(member), "unverified") != NULL;
    }
    if (unverified > 0)
        g_string_append_printf(page, "%s%d unverified", page->len > 0 ? ", " : "", unverified);
    return g_strdup(page->str);
}

void cli_listing_source(CliListing *listing, const OrrJson *source)
{
    Cell cell = {.number = NAN, .for_page = source_for_page(source)};
    if (source != NULL && orr_json_type(source) == ORR_JSON_TEXT)
        cell.text = g_strdup(orr_json_text(source));
    else if (source != NULL)
        cell.text = orr_json_dump(source);
    else
        cell.text = g_strdup("unverified");
    if (source != NULL)
        cell.doc = orr_json_copy(source, "source");
    g_array_append_val(listing->cells, cell);
}

static const Cell *cell_at(const CliListing *listing, guint row, int column)
{
    return &g_array_index(listing->cells, Cell, row * (guint)listing->count + (guint)column);
}

static void show_number(char *text, double value, CliShow show)
{
    switch (show) {
    case CLI_SHOW_COUNT:
        orr_text_count(text, value);
        return;
    case CLI_SHOW_BYTES:
        orr_text_bytes(text, value);
        return;
    case CLI_SHOW_BYTES_PER_S:
        orr_text_si(text, value, "B/s");
        return;
    case CLI_SHOW_FLOPS_PER_S:
        orr_text_si(text, value, "FLOP/s");
        return;
    case CLI_SHOW_SECONDS:
        orr_text_seconds(text, value);
        return;
    case CLI_SHOW_WATTS:
        g_snprintf(text, ORR_TEXT_SIZE, "%g W", value);
        return;
    case CLI_SHOW_TEXT:
    case CLI_SHOW_WHOLE:
        g_snprintf(text, ORR_TEXT_SIZE, "%.15g", value);
        return;
    }
    g_assert_not_reached();
}

static char *cell_text(const Cell *cell, CliShow show, bool page)
{
    if (cell->text != NULL)
        return g_strdup(page && cell->for_page != NULL ? cell->for_page : cell->text);
    if (isnan(cell->number))
        return g_strdup("");
    char *text = g_malloc(ORR_TEXT_SIZE);
    show_number(text, cell->number, page ? show : CLI_SHOW_WHOLE);
    return text;
}

static void write_table(const CliListing *listing, bool page, GString *out)
{
    const guint rows = listing->cells->len / (guint)listing->count;
    g_autofree const char **cells = g_new0(const char *, (gsize)listing->count + 1);
    for (int column = 0; column < listing->count; column++)
        cells[column] = page ? listing->columns[column].header : listing->columns[column].key;
    OrrTable *table = orr_table_new(cells, listing->count);
    for (guint row = 0; row < rows; row++) {
        g_auto(GStrv) texts = g_new0(char *, (gsize)listing->count + 1);
        for (int column = 0; column < listing->count; column++)
            texts[column] = cell_text(cell_at(listing, row, column), listing->columns[column].show, page);
        orr_table_row(table, (const char *const *)texts);
    }
    if (page)
        report_page_table(table, out, 0);
    else
        orr_table_csv(table, out);
    orr_table_free(table);
}

static void write_source(OrrJsonWriter *w, const char *key, const OrrJson *source)
{
    if (orr_json_type(source) != ORR_JSON_OBJECT) {
        orr_jw_text(w, key, orr_json_type(source) == ORR_JSON_TEXT ? orr_json_text(source) : NULL);
        return;
    }
    orr_jw_begin(w, key, '{');
    for (const OrrJson *member = orr_json_first(source); member != NULL; member = orr_json_next(member))
        write_source(w, orr_json_key(member), member);
    orr_jw_end(w, '}');
}

static void write_json(const CliListing *listing, GString *out)
{
    OrrJsonWriter w;
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '[');
    const guint rows = listing->cells->len / (guint)listing->count;
    for (guint row = 0; row < rows; row++) {
        orr_jw_begin(&w, NULL, '{');
        for (int column = 0; column < listing->count; column++) {
            const Cell *cell = cell_at(listing, row, column);
            const char *key = listing->columns[column].key;
            if (cell->doc != NULL)
                write_source(&w, key, orr_json_root(cell->doc));
            else if (cell->text != NULL)
                orr_jw_text(&w, key, cell->text);
            else
                orr_jw_number(&w, key, cell->number);
        }
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    g_string_append_c(out, '\n');
}

void cli_listing_write(const CliListing *listing, CliFormat format, GString *out)
{
    g_assert(listing->cells->len % (guint)listing->count == 0);
    if (format == CLI_FORMAT_JSON)
        write_json(listing, out);
    else
        write_table(listing, format == CLI_FORMAT_TEXT, out);
}
