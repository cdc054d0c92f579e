/* exchange/trace_foreign.h - files that are given for a trace and are none: what each is, and what to give. */
#ifndef ORR_EXCHANGE_TRACE_FOREIGN_H
#define ORR_EXCHANGE_TRACE_FOREIGN_H

#include "exchange/trace_bytes.h"
#include "exchange/trace_scan.h"

/* A sentence without its subject; NULL: nothing known. By how the text begins, by a member of the file's object, by the
 * category of an event. */
const char *trace_foreign_text(const TraceBytes *bytes);
const char *trace_foreign_key(const TraceSlice *key);
const char *trace_foreign_category(const TraceSlice *category);

#endif
