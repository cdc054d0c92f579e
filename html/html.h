/* html/html.h - one page that shows a scenario: no network, no files beside it, readable without scripts.
 *
 * The figures are SVG drawn from the CSVs of plots/data.h. Scripts only zoom and name what the pointer is on.
 */
#ifndef ORR_HTML_HTML_H
#define ORR_HTML_HTML_H

#include "study/compare.h"
#include "study/explain.h"
#include "report/report.h"

/* The best configuration with this tensor and pipeline degree. */
typedef struct HtmlCell {
    int tensor, pipeline;
    bool found, fits; /* found: at least one configuration is valid */
    bool proved;      /* nothing else of the two degrees is faster */
    bool skipped;     /* no time was left for it */
    double mfu, step_s, reserved_bytes;
    char *words; /* the configuration, or why there is none */
} HtmlCell;

/* A configuration that none is both faster and smaller than. */
typedef struct HtmlPoint {
    double step_s, reserved_bytes, mfu;
    char *words;
} HtmlPoint;

/* A profile that the answer rests on. */
typedef struct HtmlProfile {
    char *name, *hash, *source; /* source: what the file says of where its numbers come from */
} HtmlProfile;

/* A line of what the whole run takes beside compute. */
typedef struct HtmlFact {
    char *label, *value, *note;
} HtmlFact;

typedef struct HtmlInput {
    const Report *report; /* with spans and levels */
    const char *command;  /* that made the page */
    const Explanation *explanation;
    const ExplainLoss *largest;
    const Comparison *comparison; /* NULL: none */
    const GArray *cells;          /* HtmlCell; NULL: not asked for */
    const GArray *front;          /* HtmlPoint; NULL likewise */
    const char *search_note;      /* how the search went; may be NULL */
    const GArray *profiles;       /* HtmlProfile */
    const GArray *life;           /* HtmlFact: failures, checkpoints; NULL: not asked for */
} HtmlInput;

/* Appends the whole document. */
void html_write(const HtmlInput *input, GString *out);

#endif
