/* cli/listing.h - a listing: named rows with typed columns, printed as text, JSON or CSV.
 *
 * Columns are declared once; cells are filled in column order. Numbers keep base SI in JSON and CSV and
 * get a unit for people in text.
 */
#ifndef ORR_CLI_LISTING_H
#define ORR_CLI_LISTING_H

#include "base/json.h"
#include "cli/commands.h"

typedef enum {
    CLI_SHOW_TEXT,
    CLI_SHOW_WHOLE, /* 8 */
    CLI_SHOW_COUNT, /* 175.2 B */
    CLI_SHOW_BYTES,
    CLI_SHOW_BYTES_PER_S,
    CLI_SHOW_FLOPS_PER_S,
    CLI_SHOW_SECONDS,
    CLI_SHOW_WATTS,
} CliShow;

typedef struct CliColumn {
    const char *key;    /* JSON key and CSV column; in presets the path of the member */
    const char *header; /* of the text table */
    CliShow show;
} CliColumn;

typedef struct CliListing CliListing;
CliListing *cli_listing_new(const CliColumn *columns, int count);
void cli_listing_text(CliListing *listing, const char *text); /* NULL: not given */
void cli_listing_number(CliListing *listing, double value);   /* NaN: not given */
/* The last cell of every row: the profile's "source" as it stands (text or an object of texts). In text it is
 * cut to its citation keys and how many figures are unverified. */
void cli_listing_source(CliListing *listing, const OrrJson *source);
void cli_listing_write(const CliListing *listing, CliFormat format, GString *out);
void cli_listing_free(CliListing *listing);

#endif
