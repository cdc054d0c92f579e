/* network/ground.c - the routes that a replay stands on. */
#include "network/ground.h"

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

typedef struct Kept {
    int64_t latency_ps;
    int32_t first, hops;
} Kept;

struct NetRouteLog {
    int32_t *links; /* [link_count] of all routes kept */
    Kept *kept;     /* [kept_count] */
    int32_t link_count, link_room, kept_count, kept_room;
    int64_t *first_of;    /* [steps] place of a step's first route; -1: none of its routes is kept */
    int step, messages;   /* the step that is being written, and what it has so far */
    int64_t found_before; /* routes found before it */
};

#define MOST_KEPT_LINKS (1 << 24) /* 64 MB */

NetRouteLog *net_route_log_new(const NetRun *run, int steps)
{
    if (run->routing == NET_ROUTE_ADAPTIVE || run->routing == NET_ROUTE_E_ECMP || run->algorithm->streamed)
        return NULL;
    NetRouteLog *log = g_new0(NetRouteLog, 1);
    log->first_of = g_new(int64_t, MAX(steps, 1));
    for (int s = 0; s < steps; s++)
        log->first_of[s] = -1;
    return log;
}

void net_route_log_free(NetRouteLog *log)
{
    if (log == NULL)
        return;
    g_free(log->links);
    g_free(log->kept);
    g_free(log->first_of);
    g_free(log);
}

static void keep(NetRouteLog *log, const NetRoute *route)
{
    if (log->kept_count == log->kept_room) {
        log->kept_room = MAX(1024, 2 * log->kept_room);
        log->kept = g_renew(Kept, log->kept, log->kept_room);
    }
    if (log->link_count + route->hops >= log->link_room) { /* there even for routes without links */
        log->link_room = MAX(8192, 2 * log->link_room);
        log->links = g_renew(int32_t, log->links, log->link_room);
    }
    log->kept[log->kept_count++] = (Kept){route->latency_ps, log->link_count, route->hops};
    for (int h = 0; h < route->hops; h++)
        log->links[log->link_count++] = route->links[h];
}

void net_route_log_add(NetRouteLog *log, int step, const NetRoute *route, int64_t found)
{
    if (log->step != step) {
        if (8 * (found - log->found_before) > log->messages)
            net_route_log_keep(log, step, found);
        log->step = step;
        log->messages = 0;
        log->found_before = found;
    }
    log->messages++;
    if (log->first_of[step] < 0)
        return;
    keep(log, route);
}

bool net_route_log_again(NetRouteLog *log, int step)
{
    log->first_of[step] = log->first_of[step - 1];
    return log->first_of[step] >= 0;
}

void net_route_log_keep(NetRouteLog *log, int step, int64_t found)
{
    log->found_before = found;
    log->step = step;
    log->messages = 0;
    if (log->link_count <= MOST_KEPT_LINKS)
        log->first_of[step] = log->kept_count;
}

bool net_route_log_find(const NetRouteLog *log, int step, int index, NetRoute *ret_route)
{
    if (log->first_of[step] < 0)
        return false;
    const Kept *kept = &log->kept[log->first_of[step] + index];
    ret_route->latency_ps = kept->latency_ps;
    ret_route->hops = kept->hops;
    ret_route->links = log->links + kept->first;
    return true;
}
