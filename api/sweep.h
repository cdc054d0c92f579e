/* api/sweep.h - a run for every combination of the values of some fields, on several threads. */
#ifndef ORR_API_SWEEP_H
#define ORR_API_SWEEP_H

#include "api/simulate.h"
#include "api/vary.h"
#include "base/team.h"
#include "report/parts.h"

enum { API_SWEEP_MOST = 1000000 }; /* combinations */

/* One run, as values: what a table shows once the simulation is gone. NAN: a loop has none. */
typedef struct ApiSweepRow {
    char **values; /* of the varied fields, in their order; g_strfreev */
    char *reason;  /* why it could not run; NULL: it did */
    char *chosen;  /* "training.micro_batch=2;...", what "auto" became */
    const char *verdict;
    bool fits;
    double step_s, low_s, high_s; /* low, high: of the interval; 0: it has none */
    double tokens_per_s, tokens_per_s_per_gpu, mfu, hfu, bubble_frac;
    double peak_bytes, reserved_bytes, short_bytes;
    double occupied_bytes;            /* as print has it (report_occupied_bytes) */
    double days, effective_days, usd; /* usd: of the effective days where they are told */
    double time_s[REPORT_TIME_COUNT];
    int gpus;
} ApiSweepRow;

typedef struct ApiSweepAsk {
    ApiInput input;
    char **sets;          /* of every run; may be NULL */
    const GArray *fields; /* ApiVary; the last one varies fastest */
    bool ideal;           /* days and costs without failures */
    int threads;          /* 0: a core each */
    const char *journal;  /* folder that keeps the rows that are done (journal.h); NULL: none */
    int part, parts;      /* only every parts-th run, from `part` on; parts 0: all */
    const OrrTeam
        *team; /* processes that do a part each and have all rows in the end; NULL: this one alone */
    /* Told after every run, by one thread at a time, which need not be the caller's; false: no more. May be NULL. */
    bool (*progress)(double done_frac, void *data);
    void *progress_data;
    OrrStop stop; /* ends with the rows that are done */
    bool
        alone; /* every run is loaded and simulated by itself: the oracle of those that share a step (after.h) */
    gint *steps; /* counts scenarios that were loaded and simulated; may be NULL */
} ApiSweepAsk;

/* ApiSweepRow, one for every combination, in order and whatever the threads; one that is refused has its reason. Fewer
 * than api_sweep_count() where `stop` ended it, or other parts are missing. NULL with an error when there are too many, the file is no JSON, or
 * `progress` ended it. */
GArray *api_sweep(const ApiSweepAsk *ask, GError **error);
/* Combinations of `fields`. */
guint64 api_sweep_count(const GArray *fields);

/* Fields that are varied twice or contain one another are an error; `fields` as above. */
bool api_sweep_fields_check(const GArray *fields, GError **error);

/* The report of `orrery sweep`: JSON with "rows", and a CSV with a column for each key. */
void api_sweep_json(const GArray *fields, const GArray *rows, GString *out);
void api_sweep_csv(const GArray *fields, const GArray *rows, GString *out);

#endif
