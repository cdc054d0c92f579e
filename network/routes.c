/* network/routes.c - who picks among equally short ways (network/ways.h), hop by hop for a sender and a receiver. */
#include "network/routes.h"

#include <string.h>

#include "base/draws.h"
#include "base/text.h"
#include "network/ways.h"

/* Ways that are asked again and again, of the same few peers: the last one of each slot. */
enum { KNOWN_HOPS = 12, KNOWN_A_GPU = 8, LEAST_KNOWN = 1024, MOST_KNOWN = 1 << 18 };

typedef struct KnownRoute {
    int hops;
    int32_t links[KNOWN_HOPS];
} KnownRoute;

struct NetRoutes {
    const NetTopology *topology;
    NetRouting routing;
    uint64_t seed;
    const int32_t *flows_on;
    NetWays ways;
    int32_t *picks;    /* links that lead on from the vertex at hand */
    int64_t *address;  /* [vertices] of a receiver; -1: not asked yet */
    KnownRoute *known; /* [known_count], a power of two */
    uint64_t *key;     /* [known_count] 1 + key_of(); 0: empty. Beside the routes: most looks end here */
    uint64_t known_count;
    int64_t found; /* routes that were not known */
    int32_t links[NET_MAX_HOPS];
};

static const char *const names[NET_ROUTING_COUNT] = {"shortest", "ecmp", "e-ecmp", "adaptive", "rail"};

const char *net_routing_name(NetRouting routing)
{
    return names[routing];
}

bool net_routing_find(const char *word, NetRouting *ret_routing, GError **error)
{
    for (int i = 0; i < NET_ROUTING_COUNT; i++) {
        if (strcmp(names[i], word) == 0) {
            *ret_routing = (NetRouting)i;
            return true;
        }
    }
    return orr_fail(error, ORR_ERROR_INPUT,
                    "no routing is called \"%s\"; it can be shortest, ecmp, e-ecmp, adaptive or rail", word);
}

NetRoutes *net_routes_new(const NetTopology *topology, NetRouting routing, uint64_t seed,
                          const int32_t *flows_on)
{
    g_assert(routing != NET_ROUTE_ADAPTIVE || flows_on != NULL);
    NetRoutes *routes = g_new0(NetRoutes, 1);
    routes->topology = topology;
    routes->routing = routing;
    routes->seed = seed;
    routes->flows_on = flows_on;
    net_ways_init(&routes->ways, topology, NET_MOST_TABLED);
    routes->picks = g_new(int32_t, routes->ways.most);
    routes->address = g_new(int64_t, topology->vertex_count);
    for (int v = 0; v < topology->vertex_count; v++)
        routes->address[v] = -1;
    routes->known_count = LEAST_KNOWN;
    while (routes->known_count < MOST_KNOWN && routes->known_count < KNOWN_A_GPU * (uint64_t)topology->gpus)
        routes->known_count *= 2;
    routes->known = g_new0(KnownRoute, routes->known_count);
    routes->key = g_new0(uint64_t, routes->known_count);
    return routes;
}

void net_routes_free(NetRoutes *routes)
{
    if (routes == NULL)
        return;
    net_ways_clear(&routes->ways);
    g_free(routes->picks);
    g_free(routes->address);
    g_free(routes->known);
    g_free(routes->key);
    g_free(routes);
}

/* Links from v straight to the receiver of this weight, appended to the picks. */
static int pick_last(const NetRoutes *routes, int v, int goal, int32_t weight, int count)
{
    const NetTopology *t = routes->topology;
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->from == v && link->bytes_per_s > 0 && link->weight == weight)
            routes->picks[count++] = t->in_links[e];
    }
    return count;
}

/* Fills the picks for a sender that passes nothing on. */
static int pick_first(NetRoutes *routes, int v, int goal)
{
    NetWays *ways = &routes->ways;
    int32_t least = net_weight_straight(ways, v, goal);
    int count = 0;
    for (int i = ways->way_of[v]; i < ways->way_of[v + 1]; i++) {
        const NetWay *way = &ways->ways[i];
        const int next = routes->topology->links[way->link].to;
        const int32_t rest = next == goal ? 0 : (int32_t)net_hop_of(ways, next, goal)->weight;
        if (rest == G_MAXINT32 || rest + way->weight > least)
            continue;
        if (rest + way->weight < least)
            count = 0;
        least = rest + way->weight;
        routes->picks[count++] = way->link;
    }
    return least < G_MAXINT32 && ways->relay[goal] < 0 ? pick_last(routes, v, goal, least, count) : count;
}

/* The links over which v is nearest to the receiver, how many and in their order: those to relays, then straight ones. */
static int pick_all(NetRoutes *routes, int v, int goal, const int32_t **ret_links)
{
    NetWays *ways = &routes->ways;
    *ret_links = routes->picks;
    if (ways->relay[v] < 0)
        return pick_first(routes, v, goal);
    const NetHop hop = *net_hop_of(ways, v, goal);
    const int32_t *list = hop.list < 0 ? NULL : &g_array_index(ways->lists, int32_t, hop.list + 1);
    const int count = list == NULL ? 1 : list[-1];
    const int straight = hop.straight ? pick_last(routes, v, goal, (int32_t)hop.weight, count) - count : 0;
    if (list == NULL)
        routes->picks[0] = -1 - hop.list;
    else if (straight == 0)
        *ret_links = list;
    else
        memcpy(routes->picks, list, sizeof(int32_t) * (gsize)count);
    return count + straight;
}

static uint64_t key_of(int from, int to, int flow)
{
    return (uint64_t)from << 40 | (uint64_t)to << 16 | (uint64_t)flow;
}

static int least_used(const NetRoutes *routes, const int32_t *links, int ways)
{
    int best = links[0];
    for (int i = 1; i < ways; i++)
        if (routes->flows_on[links[i]] < routes->flows_on[best])
            best = links[i];
    return best;
}

/* Where a receiver is, as tables of fixed routes see it: the switch of its network port, then the port. Receivers that
 * pass messages on (grids) have none: there the first dimension goes first. */
static uint64_t find_address(const NetTopology *t, int goal)
{
    int port = -1;
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++)
        if (port < 0 || t->links[t->in_links[e]].weight > t->links[port].weight)
            port = t->in_links[e];
    if (port < 0 || t->vertices[goal].relays || t->links[port].from < t->gpus)
        return 0;
    const int leaf = t->links[port].from;
    int before = 0, all = 0;
    for (int e = t->out_of[leaf]; e < t->out_of[leaf + 1]; e++) {
        const int l = t->out_links[e];
        all += t->vertices[t->links[l].to].gpu;
        before += t->vertices[t->links[l].to].gpu && l < port;
    }
    return (uint64_t)(leaf - t->gpus) * (uint64_t)all + (uint64_t)before;
}

static uint64_t address_of(NetRoutes *routes, int goal)
{
    if (routes->address[goal] < 0)
        routes->address[goal] = (int64_t)find_address(routes->topology, goal);
    return (uint64_t)routes->address[goal];
}

/* Modulo; mostly of a power of two, which takes no division. */
static uint64_t rest_of(uint64_t value, uint64_t ways)
{
    return (ways & (ways - 1)) == 0 ? value & (ways - 1) : value % ways;
}

/* A link that leads on; -1: none does. Of fixed routes *address chooses, and the next switch has the rest of it. */
static int pick(NetRoutes *routes, int v, int goal, uint64_t hash, uint64_t *address)
{
    const int32_t *links = NULL;
    const int count = pick_all(routes, v, goal, &links);
    const uint64_t ways = (uint64_t)count;
    if (count == 0)
        return -1;
    if (routes->routing == NET_ROUTE_ADAPTIVE)
        return least_used(routes, links, count);
    if (count == 1)
        return links[0];
    if (routes->routing == NET_ROUTE_ECMP || routes->routing == NET_ROUTE_E_ECMP)
        return links[rest_of(orr_mix(hash + (uint64_t)v), ways)];
    const uint64_t index = *address % ways;
    *address /= ways;
    return links[index];
}

/* Appends the way from v to goal; false: there is none, or it is too long. */
static bool walk(NetRoutes *routes, int v, int goal, uint64_t key, int *hops)
{
    const uint64_t hash = orr_mix(routes->seed ^ orr_mix(key));
    uint64_t address = v == goal ? 0 : address_of(routes, goal);
    while (v != goal) {
        const int link = pick(routes, v, goal, hash, &address);
        if (link < 0 || *hops == NET_MAX_HOPS)
            return false;
        routes->links[(*hops)++] = link;
        v = routes->topology->links[link].to;
    }
    return true;
}

/* The GPU beside the sender that is on the receiver's rail; the sender where there is no such. */
static int relay_of(const NetRoutes *routes, int from, int to)
{
    const NetTopology *t = routes->topology;
    if (routes->routing != NET_ROUTE_RAIL || from >= t->gpus || to >= t->gpus)
        return from;
    const int g = t->gpus_per_node;
    return from / g == to / g ? from : from / g * g + to % g;
}

int net_route(NetRoutes *routes, int from, int to, int flow, const int32_t **ret_links)
{
    const uint64_t key = key_of(from, to, flow);
    const uint64_t place = orr_mix(key) & (routes->known_count - 1);
    KnownRoute *known = &routes->known[place];
    if (routes->key[place] == key + 1) {
        *ret_links = known->links;
        return known->hops;
    }
    const int relay = relay_of(routes, from, to);
    int hops = 0;
    routes->found++;
    const bool found = walk(routes, from, relay, key, &hops) && walk(routes, relay, to, key, &hops);
    *ret_links = routes->links;
    if (found && hops <= KNOWN_HOPS && routes->routing != NET_ROUTE_ADAPTIVE) {
        routes->key[place] = key + 1;
        known->hops = hops;
        memcpy(known->links, routes->links, sizeof(int32_t) * (gsize)hops);
    }
    return found ? hops : -1;
}

int net_route_flows(const NetRoutes *routes, int from, int to)
{
    const int g = routes->topology->gpus_per_node;
    return routes->routing == NET_ROUTE_E_ECMP && from / g != to / g ? NET_E_ECMP_FLOWS : 1;
}

int64_t net_routes_found(const NetRoutes *routes)
{
    return routes->found;
}
