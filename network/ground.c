/* network/ground.c - the routes that a replay stands on. */
#include "network/replay_internal.h"

bool net_ground_route(NetGround *g, int from, int to, int flow, NetRoute *ret_route, GError **error)
{
    const NetTopology *t = g->run->topology;
    ret_route->hops = net_route(g->routes, g->vertex[from], g->vertex[to], flow, &ret_route->links);
    if (ret_route->hops < 0)
        return orr_fail(error, ORR_ERROR_INPUT, "%s: rank %d (%s) cannot reach rank %d (%s)", t->name, from,
                        t->vertices[g->vertex[from]].name, to, t->vertices[g->vertex[to]].name);
    ret_route->latency_ps = 0;
    ret_route->cap = INT64_MAX;
    for (int h = 0; h < ret_route->hops; h++) {
        const NetLink *link = &t->links[ret_route->links[h]];
        ret_route->latency_ps += link->latency_ps;
        ret_route->cap = MIN(ret_route->cap, link->bytes_per_s);
    }
    g->longest = MAX(g->longest, ret_route->hops);
    return true;
}

bool net_ground_too_long(const NetGround *g, GError **error)
{
    return orr_fail(error, ORR_ERROR_INPUT,
                    "%s over %s: takes longer than 46 days; fewer bytes or faster links would do",
                    g->run->algorithm->name, g->run->topology->name);
}

bool net_ground_from_switch(NetGround *g, int from, int to, NetRoute *ret_route, GError **error)
{
    NetRoute up;
    if (!net_ground_route(g, to, from, 0, &up, error) || !net_ground_route(g, from, to, 0, ret_route, error))
        return false;
    ret_route->latency_ps = up.latency_ps;
    return true;
}
