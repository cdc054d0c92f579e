/* search/write_internal.h - shared by the writers of a search's answer. */
#ifndef ORR_SEARCH_WRITE_INTERNAL_H
#define ORR_SEARCH_WRITE_INTERNAL_H

#include "search/search.h"

/* "compute": the bound as a key and as words. */
const char *search_bound_key(SearchBoundKind kind);
const char *search_bound_words(SearchBoundKind kind);

/* "full on 3 layers"; g_free. */
char *search_recompute_words(const SpecRecompute *recompute);

#endif
