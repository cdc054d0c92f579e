/* search/search.h - the best configuration of a space, with proof.
 *
 * Branch and bound: points whose least time (search/bound.h) is above the time of configurations already simulated,
 * or whose least memory is above the GPU's, are left out; all others run in the engine, most promising first. The
 * answer does not depend on the number of threads: work is done in batches of fixed size whose results are merged in
 * order, and equal times go to the point that comes first in the space.
 */
#ifndef ORR_SEARCH_SEARCH_H
#define ORR_SEARCH_SEARCH_H

#include "base/stop.h"
#include "base/team.h"
#include "campaign/effective.h"
#include "ledger/own.h"
#include "ledger/residuals.h"
#include "report/report.h"
#include "search/bound.h"
#include "search/goal.h"

/* One simulated point. */
typedef struct SearchRun {
    SearchId id;
    bool skipped;             /* the time was over */
    bool short_of_tier;       /* the node's own memory or disks lack more than the GPU's */
    bool fits, short_of_host; /* the host's memory is further beyond its limit than the GPU's */
    int64_t step_ps;
    double short_bytes, peak_bytes, reserved_bytes;
    double host_bytes; /* activations in the host's memory, of the fullest GPU */
    double tokens_per_s_per_gpu, mfu, bubble_frac;
    int64_t part_ps[SIM_PART_COUNT], bubble_ps; /* of the critical rank */
    int64_t late_ps[REPORT_LATE_COUNT];         /* of step_ps, in what a search reports: search/late.h */
    double figure; /* that the search goes by (search/goal.h); 0: it goes by the step */
} SearchRun;

/* How far a search is. */
typedef struct SearchNews {
    double done_frac, elapsed_s;
    const struct SearchResult *result; /* whose space names points, and nothing else yet */
    const SearchRun *best;             /* so far; NULL: none fits */
} SearchNews;

typedef struct SearchOptions {
    int top;  /* how many of the best are proved and reported; 0: the scenario's search.top, or 5 */
    int jobs; /* threads; 0: all cores */
    bool exhaustive;
    SearchFor
        by; /* what is best: the least step, days, cost or energy; search_goal_check() has said that they are known */
    const CampaignAssumed
        *assumed;       /* costs of several machines are those of effective days; NULL: of compute days */
    bool best_only;     /* no sensitivity, and no misses when something fits */
    bool front;         /* time and memory of all points: the front is proved however large the space is */
    bool ideal;         /* only which is best is asked: steps stay those that are simulated (search/late.h) */
    double max_seconds; /* stops with what is known by then, as soon as anything that fits is; 0: no limit */
    OrrStop stop;       /* stops with what is known, whatever that is */
    const OrrTeam *team; /* that searches together (search/team.h); NULL: this process alone */
    void (*progress)(const SearchNews *news,
                     void *data); /* called now and then from one thread; may be NULL */
    void *progress_data;
} SearchOptions;

typedef struct SearchSensitivity {
    const char *what; /* "NVLink" */
    int64_t step_ps;  /* of the best configuration on a machine with 10 % more of it */
} SearchSensitivity;

#define SEARCH_SENSITIVITIES 4

/* A configuration that fits and was the fastest so far. */
typedef struct SearchImprovement {
    double seconds; /* wall clock, since the search began */
    int64_t step_ps, simulated;
    double figure; /* as in SearchRun */
} SearchImprovement;

/* Points that a bound let through: it was the largest of their bounds, and not large enough. */
typedef struct SearchSlack {
    int64_t survivors, simulated;
    double below_frac; /* sum over the simulated ones of 1 - bound / simulated time */
} SearchSlack;

typedef struct SearchResult {
    SearchSpace *space;
    SearchFor by;
    const LedgerResiduals *residuals; /* for the intervals of what is written; NULL: none */
    const CampaignAssumed *assumed;   /* for effective days of what is written; NULL: compute days alone */
    const LedgerOwnRun *own;          /* one's own measured runs, which correct what is written */
    int own_count;
    int64_t points;                     /* valid assignments */
    int64_t pruned[SEARCH_BOUND_COUNT]; /* left out, by the bound that decided */
    int64_t evaluated;                  /* bounded one by one, not as part of a group */
    int64_t survivors;                  /* needed more than the bounds at hand when they were listed */
    int64_t seeds; /* simulated for a first limit, and counted under the bound that rules them out */
    int64_t simulated, refused; /* refused: the simulator would not run it */
    double seconds;             /* wall clock */
    int jobs, processes;
    bool proved;
    double gap_frac;       /* (best - least possible) / best; 0 when proved; NAN: nothing fits so far */
    int64_t open;          /* points that a time limit left undecided */
    int64_t least_open_ps; /* least bound of them; 0: none */
    SearchSlack loose[SEARCH_BOUND_COUNT]; /* what the bounds let through */
    GArray *improvements;                  /* SearchImprovement, to the best; depends on the machine */
    GArray *best;                          /* SearchRun that fit, best first, at most `top` */
    GArray *pareto;     /* SearchRun that fit, fastest first: no other simulated one is faster and smaller */
    bool pareto_proved; /* no other of all points either */
    int64_t pareto_simulated; /* for that proof, beside `simulated` */
    GArray *misses;           /* SearchRun that did not fit and would not be slower than the best, by bytes */
    GArray *
        families; /* SearchRun that fit: the fastest simulated one of each layout, fastest first, at most `top` */
    int families_proved; /* so many of them, from the first, are the fastest of their layouts, simulated or not */
    SearchSensitivity sensitivity[SEARCH_SENSITIVITIES]; /* of the best; step_ps 0: not known */
    struct SearchPlain
        *plain; /* what needs no extra options (search/plain.h); NULL: best has it, or not looked for */
} SearchResult;

/* Fails when no assignment is valid. `spec` must outlive the result. */
bool search_run(const Spec *spec, const SearchOptions *options, SearchResult *ret_result, GError **error);
void search_result_clear(SearchResult *result);

/* search/write.c. `source` may be NULL. */
void search_write_text(const SearchResult *result, GString *out);
bool search_write_json(const SearchResult *result, const SpecSource *source, GString *out, GError **error);
void search_write_csv(const SearchResult *result, GString *out);

/* "tp8 sp pp35 dp8 zero1 1f1b mb1 recompute full"; g_free. */
char *search_describe(const SearchResult *result, SearchId id);

#endif
