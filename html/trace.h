/* html/trace.h - one page that shows what a trace says, beside a prediction or another recording where there is one. */
#ifndef ORR_HTML_TRACE_H
#define ORR_HTML_TRACE_H

#include "study/trace_answer.h"

/* Appends the whole document. `command`: that made the page. */
void html_trace_write(const TraceAnswer *answer, const char *command, GString *out);

#endif
