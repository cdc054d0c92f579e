/* search/goal.h - what a search goes by: the step, or the days, the cost or the energy of all tokens.
 *
 * A figure is the one that `run` prints for the point: campaign and costs of its step (search/campaign.c). A step of at least T
 * makes days of at least
 *
 *   tokens / (tokens of a step) T c,   c = least over intervals i of cycle(i) / i
 *
 * cycle(i): mean time from one checkpoint to the next (campaign/formulas.h), waits for people added; c is 1 where replicas
 * stand for the formula, for no campaign is shorter than its work. Energy is at least that time at the power of GPUs that wait,
 * and the passes of the step at what a limit draws beyond. Points whose least figure is above the best so far are left out.
 * Tested: unit/search/test_search_goal.c
 */
#ifndef ORR_SEARCH_GOAL_H
#define ORR_SEARCH_GOAL_H

#include "base/error.h"
#include "campaign/effective.h"
#include "search/space.h"

typedef enum {
    SEARCH_FOR_STEP,
    SEARCH_FOR_DAYS,
    SEARCH_FOR_COST,
    SEARCH_FOR_ENERGY,
    SEARCH_FOR_COUNT
} SearchFor;

typedef struct SearchGoal {
    SearchFor kind;
    double held;    /* least figure of a second of the step: days, USD, kWh */
    double working; /* kWh beyond that of a second in which all GPUs work */
} SearchGoal;

/* NULL: the step. Fails, with one sentence that begins with `where` ("--for"), for other words. */
bool search_goal_parse(const char *where, const char *word, SearchFor *ret_kind, GError **error);
/* "days" */
const char *search_goal_word(SearchFor kind);
/* What the scenario lacks for the figure: its tokens, a price, watts. `own_count`: one's own runs, which correct each layout's
 * days by another factor, so that no bound holds. */
bool search_goal_check(SearchFor kind, const Spec *spec, int own_count, GError **error);

/* `assumed` NULL: days of computing. */
SearchGoal search_goal_of(SearchFor kind, const SearchSpace *space, const CampaignAssumed *assumed);
/* The least figure of a step that takes `step_ps` or more, in which GPUs work for `busy_ps` or more. */
double search_goal_least(const SearchGoal *goal, int64_t step_ps, int64_t busy_ps);
/* The longest step whose least figure is not above `value`. */
int64_t search_goal_longest_ps(const SearchGoal *goal, double value, int64_t busy_ps);

#endif
