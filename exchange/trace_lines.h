/* exchange/trace_lines.h - lines and whole documents of a streamed text, for exchange/trace_*.c alone. */
#ifndef ORR_EXCHANGE_TRACE_LINES_H
#define ORR_EXCHANGE_TRACE_LINES_H

#include "exchange/trace_bytes.h"
#include "exchange/trace_scan.h"

/* The next line without its end, in the window until the next call; `ret_line.text` NULL: there is none. */
bool trace_line(TraceBytes *bytes, TraceSlice *ret_line, GError **error);
/* All that is left, in the window. */
bool trace_whole(TraceBytes *bytes, GError **error);
/* Cuts a comma-separated line in place, quotes taken off; returns how many cells there are, of which `most` are kept. */
int trace_cells(const TraceSlice *line, TraceSlice *ret_cells, int most);

#endif
