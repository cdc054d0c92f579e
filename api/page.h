/* api/page.h - all that the report page needs, gathered: the run, what explains it, what else there is. */
#ifndef ORR_API_PAGE_H
#define ORR_API_PAGE_H

#include "api/others.h"
#include "api/simulate.h"

typedef struct ApiPageAsk {
    ApiInput input;
    char **sets;
    const char *compare; /* file of a second scenario; NULL: none */
    const char *command; /* that makes the page */
    LedgerReserveAsk reserve;
    bool ideal; /* without what fails */
    bool search;
    double seconds; /* of that search, about */
    ApiProgress progress;
    void *progress_data; /* may be NULL */
} ApiPageAsk;

/* Appends the HTML document. */
bool api_page(const ApiPageAsk *ask, GString *out, GError **error);

#endif
