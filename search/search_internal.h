/* search/search_internal.h - a search under way; shared by search.c, batch.c, seeds.c and answer.c. */
#ifndef ORR_SEARCH_SEARCH_INTERNAL_H
#define ORR_SEARCH_SEARCH_INTERNAL_H

#include "search/team.h"

typedef struct Search {
    const SearchOptions *options;
    SearchResult *result;
    SearchSpace *space;
    SearchTables *tables;
    int jobs, top;
    double capacity_bytes;
    int64_t *group_ps; /* [groups]: least time without pairs of a forward and a backward ... */
    int64_t *pairs_ps; /* ... and with them */
    int *order;        /* groups, most promising first */
    SearchLimit limit;
    SearchGoal goal;
    double most;       /* figure of the last of the best: points of more are left out; INFINITY: none yet */
    int64_t *busy_ps;  /* [groups]: least time in which GPUs work; NULL: not known yet, or the step decides */
    bool found;        /* one of `runs` fits */
    GArray *runs;      /* SearchRun: all that were simulated, fastest that fit first */
    GHashTable *known; /* ids simulated */
    GArray *misses;    /* SearchCandidate */
    GTimer *timer;
    GMutex mutex;
    GPtrArray *workers; /* idle ones */
    /* The batch at hand. */
    SearchWalk *walks;
    SearchRun *batch;
    const SearchId *ids;
    bool *ran;
    const int *walked;     /* groups */
    bool shared;           /* between processes */
    unsigned schedules;    /* wanted of walks one by one; 0: walks are of all together */
    const GArray *front;   /* of walks for it; NULL: walks are for the fastest */
    int64_t least_open_ps; /* of what a time limit left; INT64_MAX: nothing */
} Search;

/* --- batch.c --- */

/* The time that was given is over and something fits, or the user has had enough; the same for all processes. */
bool search_over(const Search *search);
/* Simulates `count` points (none twice) and lowers the limit. */
void search_simulate_batch(Search *search, const SearchId *ids, int count);
/* The first `most` of sorted candidates from `at` on that were not simulated and are not ruled out. */
int search_choose_next(const Search *search, const GArray *candidates, guint *at, SearchId *ret_ids,
                       int most);
/* Walks `groups` [count] into search->walks. `shared`: between processes; otherwise each walks all. */
void search_walk_batch(Search *search, const int *groups, int count, SearchWalkMode mode, bool shared);
void search_clear_walks(Search *search, int count);
guint search_id_hash(gconstpointer id);
gboolean search_id_equal(gconstpointer a, gconstpointer b);
/* Points that stay undecided, of at least `least_ps`. */
void search_leave_open(Search *search, int64_t points, int64_t least_ps);

/* Whether a point of at least `least_ps` cannot be among the best. */
bool search_ruled_out(const Search *search, const SearchCandidate *candidate);
/* Figure of a run, which `run` prints for its point. */
double search_run_figure(const Search *search, const SearchRun *run);

/* --- seeds.c --- */

/* Simulates good points of a few groups, before anything is known of the others. */
void search_seed(Search *search);

/* --- answer.c --- */

/* The certificate's account of what the bounds let through, of which the first `until` were looked at. */
void search_judge_survivors(Search *search, const GArray *survivors, guint until);
/* Of `runs` that fit, which are sorted, those that no other is both faster and smaller than. */
void search_keep_front(GArray *runs, GArray *front);
/* Best, misses, sensitivity and proof. */
void search_answer(Search *search);

#endif
