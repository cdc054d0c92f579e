/* search/walk.h - bounding the points of a group, and running points; used by search.c alone. */
#ifndef ORR_SEARCH_WALK_H
#define ORR_SEARCH_WALK_H

#include "search/search.h"

/* A point that its bounds do not rule out, or that misses the memory. */
typedef struct SearchCandidate {
    int64_t least_ps;
    double short_bytes; /* at least */
    double least_bytes; /* that it needs; 0: not known */
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
    const GArray
        *front;   /* SearchRun, see search_front_bytes(): points that it beats are ruled out, as by memory */
    bool skipped; /* the time was over */
    int64_t points, evaluated, pruned[SEARCH_BOUND_COUNT];
    GArray *survivors;     /* SearchCandidate; of SEARCH_WALK_ALL, or a schedule each */
    GArray *misses;        /* SearchCandidate, the nearest */
    SearchCandidate first; /* the most promising one; least_ps INT64_MAX: none */
} SearchWalk;

#define SEARCH_MISSES 8 /* kept of each group */

/* The least memory of a run on the front (fastest first, each smaller than the one before it) that takes no longer than
 * `least_ps`: a point that takes so long and needs as much is not on the front. */
static inline double search_front_bytes(const GArray *front, int64_t least_ps)
{
    double least_bytes = G_MAXDOUBLE;
    for (guint i = 0; i < front->len && g_array_index(front, SearchRun, i).step_ps <= least_ps; i++)
        least_bytes = g_array_index(front, SearchRun, i).reserved_bytes;
    return least_bytes;
}

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
