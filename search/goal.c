/* search/goal.c - see goal.h. */
#include "search/goal.h"

#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "campaign/campaign.h"
#include "costmodel/adapter.h"
#include "costmodel/lengths.h"
#include "report/groups.h"

#define SHAVED     (1 - 1e-9) /* sums in floating point are that exact, and so is the least of a cycle */
#define DAY_S      86400.0
#define KWH_JOULES 3.6e6

static const char *const words[SEARCH_FOR_COUNT] = {[SEARCH_FOR_STEP] = "step",
                                                    [SEARCH_FOR_DAYS] = "days",
                                                    [SEARCH_FOR_COST] = "cost",
                                                    [SEARCH_FOR_ENERGY] = "energy"};

const char *search_goal_word(SearchFor kind)
{
    return words[kind];
}

bool search_goal_parse(const char *where, const char *word, SearchFor *ret_kind, GError **error)
{
    for (int kind = 0; word != NULL && kind < SEARCH_FOR_COUNT; kind++)
        if (strcmp(word, words[kind]) == 0) {
            *ret_kind = (SearchFor)kind;
            return true;
        }
    *ret_kind = SEARCH_FOR_STEP;
    return word == NULL ||
           orr_fail(error, ORR_ERROR_INPUT,
                    "%s: \"%.40s\" is nothing to decide by; give step, days, cost or energy", where, word);
}

bool search_goal_check(SearchFor kind, const Spec *spec, int own_count, GError **error)
{
    const char *word = words[kind];
    if (kind == SEARCH_FOR_STEP)
        return true;
    if (own_count > 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "for %s: own runs correct each layout by a factor of its own, so that no bound holds; "
            "leave them out, or decide by step",
            word);
    if (spec->training.batches_count > 0)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "for %s: training.batch_schedule has steps of other sizes, for which no bound holds; decide by "
            "step, whose answer tells its days",
            word);
    if (!(spec->training.tokens > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "for %s: training.tokens is not given, so that the training has no end; give it, as "
                        "in 15e12",
                        word);
    if (kind == SEARCH_FOR_COST && !(report_groups_mean(spec, REPORT_MEAN_USD_PER_HOUR) > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "for cost: cluster.usd_per_gpu_hour of %s is not given; give it, or NAME@USD",
                        spec->cluster.name[0] != '\0' ? spec->cluster.name : spec->cluster.accelerator.name);
    if (kind == SEARCH_FOR_ENERGY && !(report_groups_mean_w(spec, 0) > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "for energy: cluster.accelerator.power_w of %s is not given; give its watts",
                        spec->cluster.accelerator.name);
    return true;
}

/* --- the least --- */

/* The report of a step of one second, as far as a campaign reads it. */
static Report report_of_a_second(const Spec *spec)
{
    Report report = {.spec = spec,
                     .gpus = (int)spec_gpus(spec),
                     .step_ps = 1000000000000,
                     .parameters = cost_parameters(&spec->model, 0, false),
                     .trained_parameters = cost_trained_parameters(spec),
                     .tokens_per_s = cost_trained_tokens(spec)};
    report_costs_fill(&report);
    return report;
}

/* c: days over days of computing, at least. */
static double least_stretch(const CampaignAssumed *assumed, const Spec *spec)
{
    const bool lives = spec->faults.given || spec_gpus(spec) >= CAMPAIGN_ASSUMED_GPUS;
    if (assumed == NULL || !lives || spec->faults.elastic) /* on fewer nodes it is a replica's */
        return 1;
    g_autofree Spec *lived = g_memdup2(spec, sizeof *spec);
    const CampaignOptions options = {.replicas = 1, .seed = 1};
    Campaign campaign;
    campaign_assume(assumed, lived, NULL);
    const Report report = report_of_a_second(lived);
    if (!campaign_prepare(&report, "search", &options, &campaign, NULL) || !campaign.by_formula)
        return 1;
    const CampaignRun *run = &campaign.run;
    CampaignRates free = run->rates; /* the best interval, however long a write is */
    free.write_s = 0;
    if (isinf(free.mtbf_s))
        return 1;
    const double interval_s = campaign_best_interval_s(&free, campaign.work_s);
    const double stretch = campaign_cycle_s(&run->rates, interval_s) / interval_s;
    const CampaignMeans means = campaign_means(&run->rates, interval_s, 1000, run->load_from_s, run->load_s);
    const double waits_s = run->manual_frac * run->response_s / (1 - run->repeat_frac);
    return fmax(1, stretch * (1 + waits_s * means.interruptions / means.total_s));
}

SearchGoal search_goal_of(SearchFor kind, const SearchSpace *space, const CampaignAssumed *assumed)
{
    const Spec *spec = space->spec;
    SearchGoal goal = {.kind = kind};
    if (kind == SEARCH_FOR_STEP)
        return goal;
    double stretch = least_stretch(assumed, spec);
    for (int i = 0; i < SPEC_PRECISION_COUNT; i++) /* checkpoints of each are as large as they are */
        if (space->at_precision[i] != NULL)
            stretch = fmin(stretch, least_stretch(assumed, space->at_precision[i]));
    const double steps = spec->training.tokens / cost_trained_tokens(spec), gpus = (double)spec_gpus(spec);
    const double pue = spec->cluster.pue > 0 ? spec->cluster.pue : 1;
    const double waiting_w = report_groups_mean(spec, REPORT_MEAN_WAITING_W) * pue * gpus,
                 most_w = report_groups_mean_w(spec, 0) * pue * gpus;
    const double seconds = steps * stretch * SHAVED;
    if (kind == SEARCH_FOR_DAYS)
        goal.held = seconds / DAY_S;
    else
        goal.held = seconds * waiting_w / KWH_JOULES;
    if (kind != SEARCH_FOR_DAYS && spec->cluster.group_count == 0)
        goal.working = fmax(0, most_w - waiting_w) * steps / KWH_JOULES * SHAVED;
    if (kind == SEARCH_FOR_COST) {
        const double usd_per_kwh = spec->cluster.usd_per_kwh;
        goal.held = seconds / 3600 * gpus * report_groups_mean(spec, REPORT_MEAN_USD_PER_HOUR) +
                    goal.held * usd_per_kwh;
        goal.working *= usd_per_kwh;
    }
    return goal;
}

double search_goal_least(const SearchGoal *goal, int64_t step_ps, int64_t busy_ps)
{
    return (goal->held * (double)step_ps + goal->working * (double)busy_ps) * 1e-12;
}

int64_t search_goal_longest_ps(const SearchGoal *goal, double value, int64_t busy_ps)
{
    const double ps = (value * 1e12 - goal->working * (double)busy_ps) / goal->held;
    return !(ps < 9e18) ? INT64_MAX : ps < 0 ? -1 : (int64_t)ps + 1;
}
