/* exchange/trace_bytes.h - the text of a trace as it streams by: a file, packed or not, or a text in memory. */
#ifndef ORR_EXCHANGE_TRACE_BYTES_H
#define ORR_EXCHANGE_TRACE_BYTES_H

#include "base/error.h"

/* A window over the text: [at, at + left) is there, and a byte of 0 behind it. */
typedef struct TraceBytes TraceBytes;
struct TraceBytes {
    char *at;
    gsize left;
    bool ended; /* nothing follows what is there */
};

TraceBytes *trace_bytes_open(const char *path, GError **error);
/* Copies `text`. */
TraceBytes *trace_bytes_of(const char *text, gsize length, const char *name);
void trace_bytes_close(TraceBytes *bytes); /* NULL: nothing */
/* Keeps what is left and adds to it; more each time it is called without progress. False with an error, also where one value
 * of the text is too large. */
bool trace_bytes_more(TraceBytes *bytes, GError **error);

#endif
