/* search/pareto.h - one search over several machines: numbers of nodes and kinds of GPU, and the front of time, memory
 * and cost over all of them.
 *
 * Every machine has its own search (search/search.h), one after the other. On one machine cost follows time, so
 * what is on the front of all is on its machine's front of time and memory. A cost is that of effective days over all steps
 * where failures are modelled (campaign/effective.h): a larger machine pays for failing more often.
 */
#ifndef ORR_SEARCH_PARETO_H
#define ORR_SEARCH_PARETO_H

#include "search/search.h"

typedef struct SearchMachine {
    Spec *spec;          /* the scenario on it */
    char *reason;        /* why it has no answer; NULL: `result` is one */
    SearchResult result; /* of `spec` */
} SearchMachine;

typedef struct SearchParetoPoint {
    int machine; /* index */
    const SearchRun *run;
    double cost; /* of a step, with its share of failures: USD, or GPU-seconds where a machine has no price */
    double effective_frac; /* of that what goes beyond the step itself: effective over compute days, less 1 */
} SearchParetoPoint;

typedef struct SearchPareto {
    SearchMachine *machines;
    int count;
    bool priced;    /* all machines have a price */
    bool effective; /* some cost has failures in it */
    SearchFor by;   /* what the machines' searches and `chosen` go by */
    int chosen;     /* the machine whose best is the best of all; -1: nothing fits on any */
    GArray
        *front; /* SearchParetoPoint that no other beats in step, memory of a GPU and cost; fastest first */
} SearchPareto;

/* Whether the scenario asks for several numbers of nodes. */
bool search_pareto_asked(const Spec *spec);

/* Searches each of `kinds` (the scenario with a cluster) at each number of nodes of search.nodes, or at its own where
 * that is empty. A data-parallel degree follows the GPUs. Fails when no machine has an answer. */
bool search_pareto_run(const Spec *const *kinds, int count, const SearchOptions *options,
                       SearchPareto *ret_front, GError **error);
void search_pareto_clear(SearchPareto *front);

/* search/pareto_write.c */
void search_pareto_write_text(const SearchPareto *front, GString *out);
void search_pareto_write_json(const SearchPareto *front, GString *out);
void search_pareto_write_csv(const SearchPareto *front, GString *out);

#endif
