/* base/units.h - quantities at the door and on the page.
 *
 * Inside files and structs every quantity is base SI (bytes, seconds, bytes/s, FLOP/s, W). At the JSON
 * door a quantity may be text with a unit: "80 GiB", "400 Gbit/s", "2.5 us", "312 TFLOP/s", "30 days".
 * GB = 1e9 B, GiB = 2^30 B, Gbit = 1e9 bit. On the page numbers get a unit that a person reads.
 */
#ifndef ORR_BASE_UNITS_H
#define ORR_BASE_UNITS_H

#include "base/error.h"

typedef enum {
    ORR_UNIT_NONE, /* a pure number: counts, sizes in sequences, factors */
    ORR_UNIT_TOKENS,
    ORR_UNIT_BYTES,
    ORR_UNIT_BYTES_PER_S,
    ORR_UNIT_SECONDS,
    ORR_UNIT_FLOPS_PER_S,
    ORR_UNIT_WATTS,
    ORR_UNIT_FRAC,
    ORR_UNIT_USD,
} OrrUnit;

/* Symbol of the base unit ("bytes/s"); "" for ORR_UNIT_NONE. */
const char *orr_unit_symbol(OrrUnit unit);

/* Reads "80 GiB", "1e9", "15.6T" (for tokens), "400 Gbit/s" ... into base SI. The message names the
 * text and units that would work; the caller adds file and key. */
bool orr_parse_quantity(const char *text, OrrUnit unit, double *ret_value, GError **error);

/* Text for a person in a caller's buffer of ORR_TEXT_SIZE; returns the buffer. */
#define ORR_TEXT_SIZE 48
const char *orr_text_bytes(char *text, double bytes);                /* 76.29 GiB */
const char *orr_text_seconds(char *text, double seconds);            /* 13.75 s, 4.2 ms, 33.9 days */
const char *orr_text_si(char *text, double value, const char *unit); /* 4.51 EFLOP, 312 TFLOP/s */
const char *orr_text_count(char *text, double value);                /* 175.2 B */

#endif
