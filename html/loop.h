/* html/loop.h - one page that shows a loop over several models: its step, who works when, and how else it could be dealt. */
#ifndef ORR_HTML_LOOP_H
#define ORR_HTML_LOOP_H

#include "html/html.h"
#include "workload/explain.h"
#include "workload/split.h"

typedef struct HtmlLoop {
    const Workload *workload;
    const SpecSource *source;
    const WorkloadExplanation *explanation;
    const Splits *splits;   /* NULL: not asked for, or none runs */
    const GArray *profiles; /* HtmlProfile */
    const char *command;    /* that made the page */
} HtmlLoop;

/* Appends the whole document. */
void html_loop_write(const HtmlLoop *loop, GString *out);

#endif
