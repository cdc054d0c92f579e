/* network/ground.h - what the two ways to time a collective share. Internal. */
#ifndef ORR_NETWORK_GROUND_H
#define ORR_NETWORK_GROUND_H

#include "network/replay.h"

typedef struct NetRoute {
    const int32_t *links;
    int hops;
    int64_t latency_ps, cap; /* cap: bytes/s of the slowest link */
} NetRoute;

/* Routes of messages in the order of steps, for whoever walks through them again. */
typedef struct NetRouteLog NetRouteLog;

typedef struct NetGround {
    const NetRun *run;
    NetResult *result;
    NetRoutes *routes;
    int ranks;          /* switches included */
    int32_t *vertex;    /* [ranks] */
    int64_t *sent;      /* [ranks] bytes */
    int *most_messages; /* [ranks] in one step */
    int longest;        /* hops of the longest route so far */
    NetRouteLog *log;   /* NULL: none is kept */
} NetGround;

/* Routes that stay the same and whose messages are not split can be kept. */
NetRouteLog *net_route_log_new(const NetRun *run, int steps);
void net_route_log_free(NetRouteLog *log);
/* The route of the next message of a step; `found`: net_routes_found() by then. A step is kept where an eighth of those of the one
 * before had to be found: else most are known when they are asked for again. */
void net_route_log_add(NetRouteLog *log, int step, const NetRoute *route, int64_t found);
/* The step goes where the one before went; false: that is not kept. */
bool net_route_log_again(NetRouteLog *log, int step);
/* The routes of a step that is about to be added are kept whatever they cost. */
void net_route_log_keep(NetRouteLog *log, int step, int64_t found);
/* That of message `index` of the step; false: it is not kept. Its cap is not either. */
bool net_route_log_find(const NetRouteLog *log, int step, int index, NetRoute *ret_route);

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

#endif
