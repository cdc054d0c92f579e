/* network/routes.c - shortest ways by weight, and who picks among equal ones.
 *
 * Weights are tabulated between relays alone (switches; the GPUs of a grid), from those that somebody asked for; a way is
 * then found hop by hop for a sender and a receiver.
 */
#include "network/routes.h"

#include <string.h>

#include "base/text.h"

/* Ways that are asked again and again, of the same few peers: the last one of each slot. */
enum { KNOWN_HOPS = 12, KNOWN_A_GPU = 8, LEAST_KNOWN = 1024, MOST_KNOWN = 1 << 18 };

typedef struct KnownRoute {
    int hops;
    int32_t links[KNOWN_HOPS];
} KnownRoute;

/* A switch that passes on to the receiver: weights of all relays to it, and of the link from it. */
typedef struct Entry {
    const int32_t *weights;
    int32_t last;
} Entry;

/* A link from a vertex to a relay. */
typedef struct Way {
    int32_t link, relay, weight;
} Way;

struct NetRoutes {
    const NetTopology *topology;
    NetRouting routing;
    uint64_t seed;
    const int32_t *flows_on;
    int32_t *relay; /* [vertices] number among those that pass messages on; -1: it does not */
    int relay_count;
    int32_t *way_of; /* [vertices + 1] links that work from each vertex to relays: ways[way_of[v]] .. */
    Way *ways;
    int32_t *picks;    /* links that lead on from the vertex at hand */
    int32_t **to;      /* [relays]: weight of the shortest way of every relay to it; NULL: not asked yet */
    int64_t *address;  /* [vertices] of a receiver; -1: not asked yet */
    KnownRoute *known; /* [known_count], a power of two */
    uint64_t *key;     /* [known_count] 1 + key_of(); 0: empty. Beside the routes: most looks end here */
    uint64_t known_count;
    Entry *entries; /* of the receiver at hand */
    int entry_count, entry_capacity;
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

static void index_ways(NetRoutes *routes)
{
    const NetTopology *t = routes->topology;
    int most = 1, count = 0;
    routes->way_of = g_new(int32_t, t->vertex_count + 1);
    routes->ways = g_new(Way, MAX(t->link_count, 1));
    for (int v = 0; v < t->vertex_count; v++) {
        routes->way_of[v] = count;
        most = MAX(most, t->out_of[v + 1] - t->out_of[v]);
        for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++) {
            const NetLink *link = &t->links[t->out_links[e]];
            const int32_t relay = routes->relay[link->to];
            if (relay >= 0 && link->bytes_per_s > 0)
                routes->ways[count++] = (Way){t->out_links[e], relay, link->weight};
        }
    }
    routes->way_of[t->vertex_count] = count;
    routes->picks = g_new(int32_t, most);
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
    routes->relay = g_new(int32_t, topology->vertex_count);
    routes->address = g_new(int64_t, topology->vertex_count);
    for (int v = 0; v < topology->vertex_count; v++) {
        routes->relay[v] = topology->vertices[v].relays ? routes->relay_count++ : -1;
        routes->address[v] = -1;
    }
    routes->to = g_new0(int32_t *, MAX(routes->relay_count, 1));
    index_ways(routes);
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
    for (int r = 0; r < routes->relay_count; r++)
        g_free(routes->to[r]);
    g_free(routes->to);
    g_free(routes->relay);
    g_free(routes->address);
    g_free(routes->known);
    g_free(routes->key);
    g_free(routes->entries);
    g_free(routes->way_of);
    g_free(routes->ways);
    g_free(routes->picks);
    g_free(routes);
}

/* Weights of all relays to one of them, nearest first: a wheel of buckets, for weights are small. GPUs that pass nothing
 * on need no tables: they are a link away from a relay. */
static const int32_t *weights_to(NetRoutes *routes, int goal)
{
    enum { WHEEL = 2 * NET_WEIGHT_ACROSS };
    const NetTopology *t = routes->topology;
    int32_t **table = &routes->to[routes->relay[goal]];
    if (*table != NULL)
        return *table;
    int32_t *weight = *table = g_new(int32_t, routes->relay_count);
    GArray *wheel[WHEEL];
    for (int i = 0; i < WHEEL; i++)
        wheel[i] = g_array_new(FALSE, FALSE, sizeof(int));
    for (int r = 0; r < routes->relay_count; r++)
        weight[r] = G_MAXINT32;
    weight[routes->relay[goal]] = 0;
    g_array_append_val(wheel[0], goal);
    for (int w = 0, empty = 0; empty < WHEEL; w++) {
        GArray *bucket = wheel[w % WHEEL];
        empty = bucket->len > 0 ? 0 : empty + 1;
        for (guint i = 0; i < bucket->len; i++) {
            const int v = g_array_index(bucket, int, i);
            if (weight[routes->relay[v]] != w)
                continue;
            for (int e = t->in_of[v]; e < t->in_of[v + 1]; e++) {
                const NetLink *link = &t->links[t->in_links[e]];
                const int32_t from = routes->relay[link->from];
                if (link->bytes_per_s > 0 && from >= 0 && w + link->weight < weight[from]) {
                    weight[from] = w + link->weight;
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

static void add_entry(NetRoutes *routes, const int32_t *weights, int32_t last)
{
    if (routes->entry_count == routes->entry_capacity) {
        routes->entry_capacity = MAX(8, 2 * routes->entry_capacity);
        routes->entries = g_renew(Entry, routes->entries, routes->entry_capacity);
    }
    routes->entries[routes->entry_count++] = (Entry){weights, last};
}

/* Who passes on to the receiver, itself where it is a relay. */
static void look_at(NetRoutes *routes, int goal)
{
    const NetTopology *t = routes->topology;
    routes->entry_count = 0;
    if (routes->relay[goal] >= 0) {
        add_entry(routes, weights_to(routes, goal), 0);
        return;
    }
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->bytes_per_s > 0 && routes->relay[link->from] >= 0)
            add_entry(routes, weights_to(routes, link->from), link->weight);
    }
}

/* From a relay to the receiver at hand; G_MAXINT32: there is no way. */
static int32_t weight_of(const NetRoutes *routes, int32_t relay)
{
    int32_t least = G_MAXINT32;
    for (int i = 0; i < routes->entry_count; i++) {
        const int32_t weight = routes->entries[i].weights[relay];
        if (weight < G_MAXINT32)
            least = MIN(least, weight + routes->entries[i].last);
    }
    return least;
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

/* The least weight from v, of any vertex. */
static int32_t weight_from(const NetRoutes *routes, int v, int goal)
{
    const NetTopology *t = routes->topology;
    int32_t least = G_MAXINT32;
    for (int i = routes->way_of[v]; i < routes->way_of[v + 1]; i++) {
        const int32_t rest = weight_of(routes, routes->ways[i].relay);
        if (rest < G_MAXINT32)
            least = MIN(least, rest + routes->ways[i].weight);
    }
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->from == v && link->bytes_per_s > 0)
            least = MIN(least, link->weight);
    }
    return least;
}

/* Those who pass on at the end of a shortest way from this relay: who is farther here is farther all along it. */
static void keep_nearest(NetRoutes *routes, int32_t relay, int32_t weight)
{
    int kept = 0;
    for (int i = 0; i < routes->entry_count; i++)
        if (routes->entries[i].weights[relay] < G_MAXINT32 &&
            routes->entries[i].weights[relay] + routes->entries[i].last == weight)
            routes->entries[kept++] = routes->entries[i];
    routes->entry_count = kept;
}

/* Fills the picks with the links over which v is `weight` away from the receiver, in their order. */
static int pick_all(NetRoutes *routes, int v, int goal, int32_t weight)
{
    int count = 0;
    if (routes->relay[v] >= 0)
        keep_nearest(routes, routes->relay[v], weight);
    const bool relays = routes->relay[goal] >= 0;
    const Way *way = routes->ways + routes->way_of[v], *end = routes->ways + routes->way_of[v + 1];
    if (routes->entry_count == 1) { /* no branch: which ways are shortest, nobody can foresee */
        const int32_t *weights = routes->entries[0].weights;
        weight -= routes->entries[0].last;
        for (; way < end; way++) {
            routes->picks[count] = way->link;
            count += weights[way->relay] == weight - way->weight;
        }
        weight += routes->entries[0].last;
    }
    for (; way < end; way++)
        if (weight_of(routes, way->relay) == weight - way->weight)
            routes->picks[count++] = way->link;
    return relays ? count : pick_last(routes, v, goal, weight, count);
}

static uint64_t key_of(int from, int to, int flow)
{
    return (uint64_t)from << 40 | (uint64_t)to << 16 | (uint64_t)flow;
}

static int least_used(const NetRoutes *routes, int ways)
{
    int best = routes->picks[0];
    for (int i = 1; i < ways; i++)
        if (routes->flows_on[routes->picks[i]] < routes->flows_on[best])
            best = routes->picks[i];
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

/* A link that leads on over `weight`. Of fixed routes *address chooses, and the next switch has the rest of it. */
static int pick(NetRoutes *routes, int32_t weight, int v, int goal, uint64_t key, uint64_t *address)
{
    const int count = pick_all(routes, v, goal, weight);
    const uint64_t ways = (uint64_t)count;
    if (count == 0)
        return -1;
    if (routes->routing == NET_ROUTE_ADAPTIVE)
        return least_used(routes, count);
    if (count == 1)
        return routes->picks[0];
    const bool hashed = routes->routing == NET_ROUTE_ECMP || routes->routing == NET_ROUTE_E_ECMP;
    const uint64_t index = (hashed ? mix(mix(routes->seed ^ mix(key)) + (uint64_t)v) : *address) % ways;
    *address /= ways;
    return routes->picks[index];
}

/* Appends the way from v to goal; false: there is none, or it is too long. */
static bool walk(NetRoutes *routes, int v, int goal, uint64_t key, int *hops)
{
    if (v == goal)
        return true;
    look_at(routes, goal);
    int32_t weight = weight_from(routes, v, goal);
    uint64_t address = address_of(routes, goal);
    while (v != goal) {
        const int link = weight < G_MAXINT32 ? pick(routes, weight, v, goal, key, &address) : -1;
        if (link < 0 || *hops == NET_MAX_HOPS)
            return false;
        routes->links[(*hops)++] = link;
        v = routes->topology->links[link].to;
        weight -= routes->topology->links[link].weight;
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
    const uint64_t place = mix(key) & (routes->known_count - 1);
    KnownRoute *known = &routes->known[place];
    if (routes->key[place] == key + 1) {
        *ret_links = known->links;
        return known->hops;
    }
    const int relay = relay_of(routes, from, to);
    int hops = 0;
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
