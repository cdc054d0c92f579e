/* search/plain.h - what of a search's answer a person takes: layouts that differ, and what runs without extra options.
 *
 * A layout family is one tensor, context, pipeline, expert and ZeRO degree. A plain configuration needs none of: a ZeRO
 * stage that is another engine of the framework (`plain_zero`), sharding within groups, another order of ranks, another
 * dispatcher of experts, or activations on the host, unless the scenario asks for it.
 */
#ifndef ORR_SEARCH_PLAIN_H
#define ORR_SEARCH_PLAIN_H

#include "search/search.h"

/* How much slower than the best a plain configuration may be and still be the one to take. */
#define SEARCH_PLAIN_FRAC 0.01

typedef struct SearchPlain {
    Spec *spec; /* of `result`'s space */
    SearchResult result;
} SearchPlain;

bool search_same_family(const SpecParallel *a, const SpecParallel *b);

/* Index in result->best of the row to take; -1: it is the best of result->plain. 0 where none is plain and near. */
int search_recommended(const SearchResult *result);
/* Looks for a plain configuration near the best where result->best has none: a search of the plain ones alone. */
void search_find_plain(SearchResult *result, const SearchOptions *options);
void search_plain_free(SearchPlain *plain); /* NULL: nothing */

/* A search with the spec's memory reserve; where nothing fits and `spare`, again without it (then spec's is 0). */
bool search_run_reserved(Spec *spec, const SearchOptions *options, bool spare, SearchResult *ret_result,
                         GError **error);

#endif
