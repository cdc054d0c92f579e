/* serve/facts.h - the numbers of an answer with what they are: measured, predicted, assumed or given, interval and source. */
#ifndef ORR_SERVE_FACTS_H
#define ORR_SERVE_FACTS_H

#include "serve/tools.h"

/* The same for people: a few lines. */
void serve_facts_text(const ServeTool *tool, const OrrJson *answer, GString *out);

/* An answer as a whole, as member `key`: tool, version, the members above, "notes" where there are any, and "answer" itself or `text`. Rows of
 * a list are those whose name contains `name` (NULL: all). */
void serve_whole_write(const ServeTool *tool, const OrrJson *answer, const char *name, const char *text,
                       const char *notes, OrrJsonWriter *w, const char *key);

#endif
