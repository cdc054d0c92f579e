/* api/others.h - what else the scenario's model could run as on its cluster, for the report page. */
#ifndef ORR_API_OTHERS_H
#define ORR_API_OTHERS_H

#include "api/input.h"
#include "html/html.h"

/* Called now and then with the share of the work done; false stops with what is known. */
typedef bool (*ApiProgress)(double done_frac, void *data);

typedef struct ApiOthers {
    GArray *cells, *front; /* HtmlCell, HtmlPoint */
    char *note;            /* a sentence on how it was searched */
} ApiOthers;

/* Searches each pair of tensor and pipeline degrees, and all of them for the front, for about `seconds` in all. What cannot be
 * searched (states off the GPU, layer lists) leaves both empty and says so in the note. */
ApiOthers api_others_search(const ApiInput *input, char **sets, const Report *report, double reserve_bytes,
                            double seconds, ApiProgress progress, void *data);
void api_others_clear(ApiOthers *others);

#endif
