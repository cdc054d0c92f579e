/* search/walk.h - bounding the points of a group, and running points; used by search.c alone. */
#ifndef ORR_SEARCH_WALK_H
#define ORR_SEARCH_WALK_H

#include "search/search.h"

/* A point that its bounds do not rule out, or that misses the memory. */
typedef struct SearchCandidate {
    int64_t least_ps;
    double short_bytes; /* at least */
    SearchId id;
    SearchBoundKind kind; /* the bound that `least_ps` comes from */
} SearchCandidate;

/* Points at or above it cannot be among the best. */
typedef struct SearchLimit {
    int64_t step_ps;
    SearchId id;
} SearchLimit;

typedef enum {
    SEARCH_WALK_ALL,       /* every point */
    SEARCH_WALK_FIRST,     /* only `first` is wanted: loops come before other schedules */
    SEARCH_WALK_UNSHARDED, /* the same without ZeRO-3 */
    SEARCH_WALK_REPLAYED,  /* the same after replays */
} SearchWalkMode;

typedef struct SearchWalk {
    SearchWalkMode mode;
    unsigned schedules; /* not 0: bits of schedules, of each of which the first is wanted, in `survivors` */
    bool skipped;       /* the time was over */
    int64_t points, evaluated, pruned[SEARCH_BOUND_COUNT];
    GArray *survivors;     /* SearchCandidate; of SEARCH_WALK_ALL, or a schedule each */
    GArray *misses;        /* SearchCandidate, the nearest */
    SearchCandidate first; /* the most promising one; least_ps INT64_MAX: none */
} SearchWalk;

#define SEARCH_MISSES 8 /* kept of each group */

void search_walk_group(SearchWorker *worker, int group, const SearchLimit *limit, double capacity_bytes,
                       SearchWalk *walk);
int search_candidate_compare(const void *a, const void *b);
int search_miss_compare(const void *a, const void *b);
/* Whether a point of at least `least_ps` is ruled out. */
bool search_beyond(const SearchLimit *limit, int64_t least_ps, SearchId id);

/* Simulates a point; false when the simulator refuses it. */
bool search_simulate(SearchSpace *space, SearchId id, double capacity_bytes, SearchRun *ret_run);
/* The whole scenario at a point, with layers and micro-batches that are "auto" dealt out (search/mixed.h); false where that
 * cannot be simulated. */
bool search_point_dealt(SearchSpace *space, SearchId id, Spec *ret_spec);
bool search_simulate_spec(const Spec *spec, double capacity_bytes, SearchRun *ret_run);

#endif
