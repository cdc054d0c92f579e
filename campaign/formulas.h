/* campaign/formulas.h - what checkpoints and failures cost, in closed form.
 *
 * Failures come at random, exponentially distributed with mean `mtbf_s`. A campaign is a chain of segments: work of Tc,
 * then a stall of Ts while the checkpoint is taken. It counts once it is written, `write_s` of uptime later (0 where the
 * stall is the whole write). A failure throws the run back to the last checkpoint that counts, after Tr.
 */
#ifndef ORR_CAMPAIGN_FORMULAS_H
#define ORR_CAMPAIGN_FORMULAS_H

#include <stdbool.h>

typedef struct CampaignRates {
    double mtbf_s;         /* of the job; INFINITY: nothing fails */
    double stall_s;        /* Ts */
    double write_s;        /* behind the stall, beside training */
    double restart_s;      /* Tr */
    bool fails_in_restart; /* restarts are hit by failures too, and begin again */
} CampaignRates;

/* sqrt(2 Ts Tf).   Source: [Young1974] */
double campaign_young_s(double stall_s, double mtbf_s);
/* sqrt(2 Ts Tf) [1 + sqrt(Ts / 2 Tf) / 3 + Ts / (18 Tf)] - Ts; for Ts >= 2 Tf it is Tf.   Source: [Daly2006] */
double campaign_daly_s(double stall_s, double mtbf_s);
/* Ts + sqrt(2 (Tf + Tr) Ts + Ts^2).   Source: [arXiv2410.18124] */
double campaign_availability_s(double stall_s, double mtbf_s, double restart_s);

/* Share of time that is training, to first order: 1 - Ts / Tc - (Tc / 2 + Tr) / Tf. May be below 0. */
double campaign_first_order(const CampaignRates *rates, double interval_s);
/* Exact mean time from one checkpoint that counts to the next, intervals of Tc. With nothing written beside training
 * (Tf + Tr') (e^((Tc + Ts) / Tf) - 1), where Tr' is Tr, or Tf (e^(Tr / Tf) - 1) with failures in restarts. With it the
 * run is ahead by write_s of uptime when a checkpoint counts, and behind by as much when it comes back to it. */
double campaign_cycle_s(const CampaignRates *rates, double interval_s);
/* Exact mean time of `segments` intervals, the last checkpoint written too. */
double campaign_total_s(const CampaignRates *rates, double interval_s, double segments);

/* Where the mean time of campaign_total_s() goes, exactly; the parts and interval x segments add up to total_s. */
typedef struct CampaignMeans {
    double total_s, checkpoint_s, lost_work_s, restart_s, loading_s;
    double interruptions; /* those in restarts too */
    double waiting_s;     /* for a person */
} CampaignMeans;

/* Of a restart, load_s from load_from_s on read the checkpoint back. By Wald's identity a run that is up for U meets U / Tf
 * failures outside restarts, and each brings one mean restart. */
CampaignMeans campaign_means(const CampaignRates *rates, double interval_s, double segments,
                             double load_from_s, double load_s);
/* Tc of the least cycle over Tc, between what the writes leave free and `longest_s`. */
double campaign_best_interval_s(const CampaignRates *rates, double longest_s);

#endif
