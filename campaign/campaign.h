/* campaign/campaign.h - from one step's report to weeks of training with what fails in them.
 *
 * A second, slower clock above the step: work is the days that the report counts, failures come from the scenario's
 * `faults`. Formulas and replicas stand beside each other. Not here: input that binds.
 */
#ifndef ORR_CAMPAIGN_CAMPAIGN_H
#define ORR_CAMPAIGN_CAMPAIGN_H

#include "base/stats.h"
#include "campaign/replicas.h"
#include "report/report.h"

typedef struct CampaignOptions {
    int64_t replicas; /* at least 1 */
    uint64_t seed;
    CampaignCrew crew; /* ends with the replicas that are done, where it is stopped */
    bool timeline;     /* text has the first interruptions of one campaign */
    bool curve;        /* also days over the number of spare nodes */
    double ideal_days; /* of training, in place of those that the scenario's tokens take; 0: those */
} CampaignOptions;

typedef struct CampaignCause {
    const char *key, *label;
    double mtbf_s;      /* of the whole job; INFINITY: none */
    double per_replica; /* mean interruptions, by its share of the rates */
} CampaignCause;

/* Days with a number of spare nodes. */
typedef struct CampaignSpares {
    int spares;
    double days, days_p90;
} CampaignSpares;

enum { CAMPAIGN_SPARES = 9, CAMPAIGN_EVENTS = 200 };

typedef struct Campaign {
    const Report *report;
    CampaignOptions options; /* replicas: those that were lived */
    int64_t asked_replicas;  /* more than were lived: stopped */
    CampaignRun run;
    double ideal_s;
    double slow_s, input_s, eval_s,
        skipped_s;       /* that stragglers, input, evaluation, skipped steps add to it */
    double work_s;       /* all of these */
    CampaignMeans means; /* by formula: as if nobody waited for a spare node */
    double checkpoint_bytes, checkpoint_write_s; /* 0: no checkpoints */
    double peer_s;                               /* a GPU's share to another node */
    double interval_s; /* asked for or best; run.interval_s cuts the campaign evenly */
    double young_s, daly_s, availability_s, best_interval_s; /* 0: no failures or no checkpoints */
    double first_order_frac, exact_frac, exact_s;            /* goodput by formula; mean total time */
    OrrSpread days, goodput, interruptions, spare_nodes;     /* over replicas */
    double days_error;                                       /* standard error of days.mean */
    double checkpoint_s, lost_work_s, restart_s, loading_s, waiting_s, degraded_s; /* means of a replica */
    CampaignCause causes[CAMPAIGN_CAUSES];
    bool
        by_formula; /* the exact mean is of this campaign: nobody waits, no copies are lost, nothing is scripted */
    CampaignSpares spares_curve[CAMPAIGN_SPARES];
    int spares_count;
    CampaignEvent events[CAMPAIGN_EVENTS]; /* the first of replica 0 */
    int event_count;
} Campaign;

/* "rack" */
const char *campaign_cause_label(int cause);
/* campaign/levels.c: paces of the job on fewer nodes, into run->levels: the model's degrees stay, replicas of it go; each is
 * simulated. Leaves out what does not fit or divide the batch. */
bool campaign_levels_fill(const Report *report, CampaignRun *run, GError **error);
/* Bytes of one checkpoint: weights, master copy and moments of `parameters`, each once, whatever the sharding. Copies of
 * gradients that a recipe counts to its master are left out. */
double campaign_checkpoint_bytes(const Spec *spec, double parameters);
/* Mean time between failures of the whole job; INFINITY: nothing fails. */
double campaign_mtbf_s(const Spec *spec);
/* Bytes over the rate that `nodes` nodes get. */
double campaign_storage_s(double bytes, double bytes_per_s, const SpecStorage *storage, int nodes);

/* What campaign_run() finds without a replica: checkpoints, intervals, formulas. `where` names the scenario in errors.
 * `report` must outlive the result. */
bool campaign_prepare(const Report *report, const char *where, const CampaignOptions *options,
                      Campaign *ret_campaign, GError **error);
/* Likewise, with its replicas. */
bool campaign_run(const Report *report, const char *where, const CampaignOptions *options,
                  Campaign *ret_campaign, GError **error);

void campaign_write_json(const Campaign *campaign, GString *out);
void campaign_write_text(const Campaign *campaign, GString *out);

#endif
