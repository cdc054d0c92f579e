/* search/space_internal.h - what the files that list a space share. */
#ifndef ORR_SEARCH_SPACE_INTERNAL_H
#define ORR_SEARCH_SPACE_INTERNAL_H

#include "search/space.h"

/* Whether the choices of the scenario's search block hold the value; all do where it says nothing. */
bool search_allowed(const SpecChoices *choices, int value);

/* Deals of a pipeline degree, in the space's arena. */
void search_list_deals(SearchSpace *space, int pipeline, SearchDeals *ret_deals);

#endif
