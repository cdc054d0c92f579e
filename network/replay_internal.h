/* network/replay_internal.h - what the two ways to time a collective share. Internal. */
#ifndef ORR_NETWORK_REPLAY_INTERNAL_H
#define ORR_NETWORK_REPLAY_INTERNAL_H

#include "network/replay.h"

typedef struct NetRoute {
    const int32_t *links;
    int hops;
    int64_t latency_ps, cap; /* cap: bytes/s of the slowest link */
} NetRoute;

typedef struct NetGround {
    const NetRun *run;
    NetResult *result;
    NetRoutes *routes;
    int ranks;          /* switches included */
    int32_t *vertex;    /* [ranks] */
    int64_t *sent;      /* [ranks] bytes */
    int *most_messages; /* [ranks] in one step */
    int longest;        /* hops of the longest route so far */
} NetGround;

bool net_ground_route(NetGround *ground, int from, int to, int flow, NetRoute *ret_route, GError **error);

/* Latency sits on ports: what a switch sends takes as long as what was sent to it. */
bool net_ground_from_switch(NetGround *ground, int from, int to, NetRoute *ret_route, GError **error);

/* Whether rank `from` is a switch that sends on what is still coming in. */
static inline bool net_ground_streams(const NetGround *ground, int from)
{
    return ground->run->algorithm->streamed && from >= ground->run->shape.ranks;
}

/* Sets the error that says so. */
bool net_ground_too_long(const NetGround *ground, GError **error);

bool net_analytic(NetGround *ground, GError **error);
bool net_replay_flows(NetGround *ground, GError **error);

#endif
