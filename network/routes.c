/* network/routes.c - shortest ways by weight, and who picks among equal ones. */
#include "network/routes.h"

#include <string.h>

#include "base/text.h"

typedef struct CachedRoute {
    int hops;
    int32_t links[];
} CachedRoute;

struct NetRoutes {
    const NetTopology *topology;
    NetRouting routing;
    uint64_t seed;
    const int32_t *flows_on;
    int32_t **to;      /* [vertex]: weight of the shortest way of every vertex to it; NULL: not asked yet */
    GHashTable *known; /* key of (from, to, flow) -> CachedRoute */
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

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

static guint key_hash(gconstpointer key)
{
    return (guint)mix(*(const uint64_t *)key);
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
    routes->to = g_new0(int32_t *, topology->vertex_count);
    routes->known = g_hash_table_new_full(key_hash, g_int64_equal, g_free, g_free);
    return routes;
}

void net_routes_free(NetRoutes *routes)
{
    if (routes == NULL)
        return;
    for (int v = 0; v < routes->topology->vertex_count; v++)
        g_free(routes->to[v]);
    g_free(routes->to);
    g_hash_table_destroy(routes->known);
    g_free(routes);
}

/* Weights to `goal`, nearest first: a wheel of buckets, for weights are small. */
static int32_t *weights_to(const NetTopology *t, int goal)
{
    enum { WHEEL = 2 * NET_WEIGHT_ACROSS };
    int32_t *weight = g_new(int32_t, t->vertex_count);
    GArray *wheel[WHEEL];
    for (int i = 0; i < WHEEL; i++)
        wheel[i] = g_array_new(FALSE, FALSE, sizeof(int));
    for (int v = 0; v < t->vertex_count; v++)
        weight[v] = G_MAXINT32;
    weight[goal] = 0;
    g_array_append_val(wheel[0], goal);
    for (int w = 0, empty = 0; empty < WHEEL; w++) {
        GArray *bucket = wheel[w % WHEEL];
        empty = bucket->len > 0 ? 0 : empty + 1;
        for (guint i = 0; i < bucket->len; i++) {
            const int v = g_array_index(bucket, int, i);
            if (weight[v] != w || (v != goal && !t->vertices[v].relays))
                continue;
            for (int e = t->in_of[v]; e < t->in_of[v + 1]; e++) {
                const NetLink *link = &t->links[t->in_links[e]];
                if (link->bytes_per_s > 0 && w + link->weight < weight[link->from]) {
                    weight[link->from] = w + link->weight;
                    g_array_append_val(wheel[(w + link->weight) % WHEEL], link->from);
                }
            }
        }
        g_array_set_size(bucket, 0);
    }
    for (int i = 0; i < WHEEL; i++)
        g_array_free(wheel[i], TRUE);
    return weight;
}

static uint64_t key_of(int from, int to, int flow)
{
    return (uint64_t)from << 40 | (uint64_t)to << 16 | (uint64_t)flow;
}

static bool leads_on(const NetRoutes *routes, const int32_t *weight, int v, int link, int goal)
{
    const NetLink *l = &routes->topology->links[link];
    return l->bytes_per_s > 0 && weight[l->to] < G_MAXINT32 && weight[l->to] + l->weight == weight[v] &&
           (l->to == goal || routes->topology->vertices[l->to].relays);
}

static int least_used(const NetRoutes *routes, const int32_t *weight, int v, int goal)
{
    const NetTopology *t = routes->topology;
    int best = -1;
    for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++) {
        const int link = t->out_links[e];
        if (leads_on(routes, weight, v, link, goal) &&
            (best < 0 || routes->flows_on[link] < routes->flows_on[best]))
            best = link;
    }
    return best;
}

/* Where a receiver is, as tables of fixed routes see it: the switch of its network port, then the port. Receivers that
 * pass messages on (grids) have none: there the first dimension goes first. */
static uint64_t address_of(const NetTopology *t, int goal)
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

/* A link that leads on. Of fixed routes *address chooses, and the next switch has the rest of it. */
static int pick(const NetRoutes *routes, const int32_t *weight, int v, int goal, uint64_t key,
                uint64_t *address)
{
    const NetTopology *t = routes->topology;
    if (routes->routing == NET_ROUTE_ADAPTIVE)
        return least_used(routes, weight, v, goal);
    uint64_t ways = 0;
    int only = -1;
    for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++)
        if (leads_on(routes, weight, v, t->out_links[e], goal)) {
            ways++;
            only = t->out_links[e];
        }
    if (ways < 2)
        return only;
    const bool hashed = routes->routing == NET_ROUTE_ECMP || routes->routing == NET_ROUTE_E_ECMP;
    uint64_t index = (hashed ? mix(mix(routes->seed ^ mix(key)) + (uint64_t)v) : *address) % ways;
    *address /= ways;
    for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++)
        if (leads_on(routes, weight, v, t->out_links[e], goal) && index-- == 0)
            return t->out_links[e];
    g_assert_not_reached();
}

/* Who comes to vertex v are GPUs of one node, which pass nothing on. */
static bool is_inside(const NetTopology *t, int v, int node)
{
    for (int e = t->in_of[v]; e < t->in_of[v + 1]; e++) {
        const int from = t->links[t->in_links[e]].from;
        if (from >= t->gpus || t->vertices[from].relays || from / t->gpus_per_node != node)
            return false;
    }
    return true;
}

/* The one link over which GPU `goal` is reached from other nodes; -1: there are several, or it is not known. Weights to
 * its switch serve all GPUs there. */
static int port_from_outside(const NetTopology *t, int from, int goal)
{
    const int node = goal / t->gpus_per_node;
    int port = -1;
    if (goal >= t->gpus || t->vertices[goal].relays || (from < t->gpus && from / t->gpus_per_node == node))
        return -1;
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->from == from || (link->from < t->gpus && link->from / t->gpus_per_node != node))
            return -1;
        if (link->from < t->gpus || is_inside(t, link->from, node))
            continue;
        if (port >= 0 || link->bytes_per_s == 0 || !t->vertices[link->from].relays)
            return -1;
        port = t->in_links[e];
    }
    return port;
}

/* Appends the way from v to goal; false: there is none, or it is too long. */
static bool walk(NetRoutes *routes, int v, int goal, uint64_t key, int *hops)
{
    const NetTopology *t = routes->topology;
    if (v == goal)
        return true;
    const int port = port_from_outside(t, v, goal), aim = port >= 0 ? t->links[port].from : goal;
    if (routes->to[aim] == NULL)
        routes->to[aim] = weights_to(t, aim);
    const int32_t *weight = routes->to[aim];
    uint64_t address = address_of(t, goal);
    while (v != goal) {
        int link = port;
        if (v != aim)
            link = weight[v] < G_MAXINT32 ? pick(routes, weight, v, aim, key, &address) : -1;
        if (link < 0 || *hops == NET_MAX_HOPS)
            return false;
        routes->links[(*hops)++] = link;
        v = t->links[link].to;
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
    const CachedRoute *known = g_hash_table_lookup(routes->known, &key);
    if (known != NULL) {
        *ret_links = known->links;
        return known->hops;
    }
    const int relay = relay_of(routes, from, to);
    int hops = 0;
    const bool found = walk(routes, from, relay, key, &hops) && walk(routes, relay, to, key, &hops);
    *ret_links = routes->links;
    if (found && routes->routing != NET_ROUTE_ADAPTIVE) {
        CachedRoute *route = g_malloc(sizeof *route + sizeof(int32_t) * (gsize)hops);
        route->hops = hops;
        memcpy(route->links, routes->links, sizeof(int32_t) * (gsize)hops);
        g_hash_table_insert(routes->known, g_memdup2(&key, sizeof key), route);
    }
    return found ? hops : -1;
}

int net_route_flows(const NetRoutes *routes, int from, int to)
{
    const int g = routes->topology->gpus_per_node;
    return routes->routing == NET_ROUTE_E_ECMP && from / g != to / g ? NET_E_ECMP_FLOWS : 1;
}
