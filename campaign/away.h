/* campaign/away.h - nodes under repair: how many of each kind the job lacks, what pace that leaves, when it gets better.
 *
 * Nodes come back in the order in which they went, for repairs take all the same time. Spare nodes stand in for those that
 * went first, whatever their kind; the others are missing.
 */
#ifndef ORR_CAMPAIGN_AWAY_H
#define ORR_CAMPAIGN_AWAY_H

#include "base/draws.h"
#include "campaign/replicas.h"

typedef struct CampaignAway {
    GArray *nodes; /* when each is back, and of which kind */
    guint first;   /* of those that are away */
} CampaignAway;

CampaignAway campaign_away_new(void);
void campaign_away_clear(CampaignAway *away);
guint campaign_away_count(const CampaignAway *away);

/* Those whose repair is over by now are back. */
void campaign_away_return(CampaignAway *away, double now_s);
/* `nodes` go until back_s: in a cluster of several kinds beside each other, the first of them any one that is there. */
void campaign_away_lose(CampaignAway *away, const CampaignRun *run, int nodes, double back_s,
                        OrrDraws *draws);

/* When enough nodes are back for the job to go on; 0: they are. */
double campaign_away_until_s(const CampaignAway *away, const CampaignRun *run);
/* Pace of the job with the nodes there are, of its full one, and when enough are back for a faster one (INFINITY: never). */
double campaign_away_pace(const CampaignAway *away, const CampaignRun *run, double *ret_faster_at_s);

#endif
