/* campaign/replicas.h - a campaign lived through again and again, from failure to failure.
 *
 * Replica r draws its numbers from (seed, r, how many it has drawn): results are the same on any number of threads.
 */
#ifndef ORR_CAMPAIGN_REPLICAS_H
#define ORR_CAMPAIGN_REPLICAS_H

#include <stdbool.h>
#include <stdint.h>

#include "campaign/formulas.h"

typedef struct CampaignRun {
    CampaignRates rates;
    double interval_s, segments; /* of equal length */
    double load_from_s, load_s;  /* part of a restart that reads the checkpoint back */
    double detection_s;          /* first part of a restart: spare nodes are asked for behind it */
    double node_loss_frac;       /* of failures that take a node away ... */
    double repair_s;             /* ... for so long */
    int spares;                  /* -1: as many as it takes */
} CampaignRun;

/* Of one replica; the parts and interval_s x segments of work add up to total_s. */
typedef struct CampaignLife {
    double total_s;
    double checkpoint_s, lost_work_s, restart_s, loading_s, waiting_s;
    int64_t interruptions, restarts_hit; /* failures; those of them that fell into a restart */
    int64_t nodes_away;                  /* most at one time */
} CampaignLife;

CampaignLife campaign_live(const CampaignRun *run, uint64_t seed, uint64_t replica);
/* Lives 0 to count-1 into `lives`, on `threads` threads (0: all cores). */
void campaign_live_all(const CampaignRun *run, uint64_t seed, int64_t count, int threads,
                       CampaignLife *lives);

#endif
