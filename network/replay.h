/* network/replay.h - one collective on one fabric: by its steps alone, and by flows that share links.
 *
 * A rank begins a step when all it sent and all it got in the steps before is through. A message takes the latency of
 * its route and its bytes at the rate that it gets. Analytic: nobody is in its way but the other messages that the same rank
 * sends or receives in that step over the same port; never more than the flows, and the same picoseconds where nothing
 * is shared. Flow: network/flows.h.
 */
#ifndef ORR_NETWORK_REPLAY_H
#define ORR_NETWORK_REPLAY_H

#include "network/routes.h"

typedef struct NetRun {
    const NetAlgorithm *algorithm;
    NetShape shape;
    int64_t bytes;
    const NetTopology *topology;
    const int32_t *place; /* [ranks] the GPU of each rank; NULL: its number */
    NetRouting routing;
    uint64_t seed;
    NetRoutes *routes;  /* of this topology, routing and seed, kept between runs; NULL: own ones */
    int64_t most_flows; /* that are worked out before it is given up; 0: any */
    bool every_step;    /* none stands for others that go as it went; the same picoseconds, for tests */
} NetRun;

typedef struct NetStepTrace {
    int64_t end_ps; /* when the last rank was through with it */
    int64_t bytes;  /* sent in it */
    int messages;
    int64_t largest_bytes; /* message */
} NetStepTrace;

typedef struct NetResult {
    int64_t analytic_ps;
    int64_t flow_ps; /* -1: not asked for */
    int step_count;
    NetStepTrace *steps;           /* of the flows where they ran; g_free by net_result_clear() */
    int64_t sent_least, sent_most; /* bytes a rank */
    int64_t messages, flows;
    int64_t
        repeated_flows; /* of these: in steps that went as the one before, which was not worked out again */
    int64_t fullest_link_bytes; /* carried by the link that carried the most a unit of its rate; flows only */
    int fullest_link;           /* -1 */
} NetResult;

/* Routes for NetRun's `routes`: of the topology as it is now; adaptive routing begins with the shortest. */
NetRoutes *net_routes_plain(const NetTopology *topology, NetRouting routing, uint64_t seed);

/* Fails on a rank that cannot reach another one, naming both. */
bool net_run(const NetRun *run, bool flows, NetResult *ret_result, GError **error);
void net_result_clear(NetResult *result);

#endif
