/* search/limits.h - the user's limits on what a search may answer: the scenario's search.max_... fields. */
#ifndef ORR_SEARCH_LIMITS_H
#define ORR_SEARCH_LIMITS_H

#include "base/error.h"
#include "search/search.h"

/* Bytes of a GPU that a configuration may take, the framework's context included: the least of the fields that say
 * something. `ret_field` (may be NULL): the field that it comes from. */
double search_limits_capacity_bytes(const Spec *spec, const char **ret_field);

/* The limit that assignments of a group break, or -1. */
int search_limits_broken(const SearchSpace *space, const SearchGroup *group);

/* Takes the groups (SearchGroup) that break a limit out of the list and counts their points in space->beyond. */
void search_limits_apply(SearchSpace *space, GArray *groups);

/* Field of a limit on degrees: "search.max_tensor_nodes". */
const char *search_limit_field(SearchUserLimit limit);

/* Fills in host_bytes, fits, short_bytes and short_of_host of a run that needs these bytes of a GPU (all that its allocator
 * reserves, and its context) and of its share of the host. */
void search_limits_judge(const Spec *spec, double capacity_bytes, double needed_bytes, double host_bytes,
                         SearchRun *run);

/* What lies below the GPUs lacks `short_bytes` of a node: the run does not fit. */
void search_limits_tiers(double short_bytes, SearchRun *run);
/* Field that a run which does not fit is short of. */
const char *search_limits_short_of(const Spec *spec, const SearchRun *run);

/* What keeps a space without points empty, and what would work; g_free. */
char *search_why_empty(const Spec *spec);

/* "; search.max_tensor_nodes leaves out 120 points" for each limit that left some out; empty otherwise; g_free. */
char *search_limits_words(const SearchSpace *space);

/* Refuses batches of which every point would take too long to simulate, before any table is filled. */
bool search_limits_affordable(const Spec *spec, GError **error);
/* False, with one sentence, for what can be run but has no bounds to search by: orders from a file, states off the GPU. */
bool search_supports(const Spec *spec, GError **error);

#endif
