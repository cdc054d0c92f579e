/* cli/report_search.h - what else the scenario's model could run as on its cluster, for the report page. */
#ifndef ORR_CLI_REPORT_SEARCH_H
#define ORR_CLI_REPORT_SEARCH_H

#include "base/error.h"
#include "html/html.h"

typedef struct CliOthers {
    GArray *cells, *front; /* HtmlCell, HtmlPoint */
    char *note;            /* a sentence on how it was searched */
} CliOthers;

/* Searches each pair of tensor and pipeline degrees, and all of them for the front, for about `seconds` in all. What cannot be
 * searched (states off the GPU, layer lists) leaves both empty and says so in the note. */
CliOthers cli_report_search(const char *path, char **sets, const Report *report, double reserve_bytes,
                            double seconds, bool quiet);
void cli_others_clear(CliOthers *others);

#endif
