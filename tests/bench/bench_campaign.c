/* tests/bench/bench_campaign.c - 1,000 campaigns of 60 days on 100,000 GPUs, on two threads. Exit 1 when the goal is missed. */
#include <glib.h>
#include <stdio.h>

#include "campaign/replicas.h"

enum { REPLICAS = 1000, THREADS = 2 };

#define GOAL_S 20.0

int main(void)
{
    /* Tf of 54 days, 419 failures and 16,384 GPUs; checkpoints of 3 s, restarts of 270 s */
    const CampaignRun run = {.rates = {54 * 86400.0 / 419 * 16384 / 100000, 3, 0, 270, true},
                             .interval_s = 100,
                             .segments = 60 * 864,
                             .causes = {{.85, 1, 0}, {1, 0, 0}}, /* hardware takes a node, software none */
                             .cause_count = 2,
                             .repair_s = 86400,
                             .spares = 50};
    g_autofree CampaignLife *lives = g_new(CampaignLife, REPLICAS);
    const gint64 start = g_get_monotonic_time();
    double failures = 0;
    campaign_live_all(&run, 1, REPLICAS, THREADS, lives);
    const double seconds = (double)(g_get_monotonic_time() - start) * 1e-6;
    for (int i = 0; i < REPLICAS; i++)
        failures += (double)lives[i].interruptions;
    printf("%d campaigns of 60 days on 100,000 GPUs, %.0f failures each: %.3f s on %d threads (goal %g s)\n",
           REPLICAS, failures / REPLICAS, seconds, THREADS, GOAL_S);
    return seconds <= GOAL_S ? 0 : 1;
}
