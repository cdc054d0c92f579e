/* exchange/trace_scan.h - JSON met value by value in a window of text, without a tree. Lenient where profilers are: bare NaN and
 * Infinity, backslashes that escape nothing. A byte of 0 stands behind the window. */
#ifndef ORR_EXCHANGE_TRACE_SCAN_H
#define ORR_EXCHANGE_TRACE_SCAN_H

#include <stdint.h>

#include "base/error.h"

typedef struct TraceScan {
    const char *at, *end;
} TraceScan;

/* Of the window; text NULL: absent. Strings without their quotes, escapes as they are. */
typedef struct TraceSlice {
    const char *text;
    gsize length;
} TraceSlice;

/* All of these: false where the text is not so, or the window ends first (then trace_scan_is_short()). */
bool trace_scan_char(TraceScan *scan, char expected); /* behind white space */
bool trace_scan_string(TraceScan *scan, TraceSlice *ret_text);
bool trace_scan_skip(TraceScan *scan); /* one value of any kind */
/* A value as text: a string's inside, else all of the value. */
bool trace_scan_value(TraceScan *scan, TraceSlice *ret_text);
/* The first byte of the next value, 0 where the window ends. */
char trace_scan_peek(TraceScan *scan);

/* The members of an object, one by one: `take` has to consume the value. */
typedef bool (*TraceTake)(TraceScan *scan, const TraceSlice *key, void *data);
bool trace_scan_members(TraceScan *scan, TraceTake take, void *data);

static inline bool trace_scan_is_short(const TraceScan *scan)
{
    return scan->at >= scan->end;
}

bool trace_slice_is(const TraceSlice *slice, const char *text);
/* With small letters for capital ones. */
bool trace_slice_has(const TraceSlice *slice, const char *text);
/* A whole number, in quotes or not; `absent` where there is none. */
int64_t trace_slice_int(const TraceSlice *slice, int64_t absent);
double trace_slice_number(const TraceSlice *slice, double absent);
/* Microseconds: whole ones, and the picoseconds beyond. False: no number, or one of more than 9e15. */
bool trace_slice_us(const TraceSlice *slice, int64_t *ret_us, int64_t *ret_ps);
/* As UTF-8 with escapes resolved and control characters as spaces; g_free. */
char *trace_slice_text(const TraceSlice *slice);

#endif
