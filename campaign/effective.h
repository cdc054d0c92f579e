/* campaign/effective.h - days of the whole run with what fails in it, for reports and plans of single steps.
 *
 * A scenario's own `faults` count always; one without them has those of a preset from CAMPAIGN_ASSUMED_GPUS GPUs on, and
 * checkpoints go to the storage of a preset where the scenario names none. Both are named where the days are told.
 */
#ifndef ORR_CAMPAIGN_EFFECTIVE_H
#define ORR_CAMPAIGN_EFFECTIVE_H

#include "campaign/campaign.h"

#define CAMPAIGN_ASSUMED_GPUS    64 /* fewer meet a failure a month or less */
#define CAMPAIGN_ASSUMED_FAULTS  "llama3-2024"
#define CAMPAIGN_ASSUMED_STORAGE "superpod-lustre"

typedef struct CampaignAssumed {
    SpecFaults faults;
    SpecStorage storage;
} CampaignAssumed;

bool campaign_assumed_load(CampaignAssumed *ret_assumed, GError **error);

/* Faults and storage that `spec` lacks and a campaign of it needs; the storage's part is told apart in *ret_storage (may be
 * NULL). */
void campaign_assume(const CampaignAssumed *assumed, Spec *spec, bool *ret_storage);

/* A campaign of what run tells: `report` and its scenario with what campaign_effective_fill() assumes of them, named in
 * report->effective. Written to *spec and *report; both stay where nothing is assumed. */
bool campaign_assume_shipped(Spec *spec, Report *report, GError **error);

/* Fills report->effective, and GPU-hours, money and energy of its days. Exact means by formula; where spare nodes are
 * numbered, means of replicas. Faults of the scenario that contradict it are an error; assumed ones are told to. */
bool campaign_effective_fill(const CampaignAssumed *assumed, const char *where, OrrArena *arena,
                             Report *report, GError **error);

/* Where the days go, [REPORT_LIFE_COUNT]: means of replicas (`lived`) or by formula. */
void campaign_part_days(const Campaign *campaign, bool lived, double *ret_days);

/* Energy of `days` of which part_days[REPORT_LIFE_COUNT] say what they are: work, done once or again, at what steps draw,
 * waits at the power of GPUs that wait. Powers are the report's. */
double campaign_kwh(const Report *report, const double *part_days, double days, double *ret_waiting);

#endif
