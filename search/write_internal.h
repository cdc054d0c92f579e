/* search/write_internal.h - shared by the writers of a search's answer. */
#ifndef ORR_SEARCH_WRITE_INTERNAL_H
#define ORR_SEARCH_WRITE_INTERNAL_H

#include "base/json.h"
#include "search/search.h"

/* "compute": the bound as a key and as words. */
const char *search_bound_key(SearchBoundKind kind);
const char *search_bound_words(SearchBoundKind kind);

/* Members of an open object: what "auto" became; a run's figures; the certificate. */
void search_write_choice(OrrJsonWriter *w, const Spec *asked, const Spec *chosen);
void search_write_figures(OrrJsonWriter *w, const SearchResult *result, const SearchRun *run);
/* Of the scenario's tokens; all 0 without them. */
typedef struct SearchCampaign {
    double days;                /* of computing */
    double effective_days;      /* with what fails in them; NAN: not asked for, or not known */
    double gpu_hours, usd, kwh; /* of the effective days where they are known */
    bool endless;               /* what fails keeps it from its end */
} SearchCampaign;

SearchCampaign search_campaign(const SearchResult *result, const SearchRun *run);
void search_write_certificate(OrrJsonWriter *w, const SearchResult *result);

#endif
