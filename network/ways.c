/* network/ways.c - weights of shortest ways, and how switches pass on.
 *
 * Weights are tabulated between relays alone (switches; the GPUs of a grid), from those that somebody asked for. Receivers
 * that hang on the same relays are of one kind, for which each relay keeps the links that lead on. Where there are too
 * many relays for tables, network/near.h finds the same links.
 */
#include "network/ways.h"

#include <string.h>

#include "network/near.h"

/* A switch that passes on to the receiver: weights of all relays to it, and of the link from it. */
struct NetEntry {
    const int32_t *weights;
    int32_t last;
};

enum { MOST_HOPS = 1 << 23 }; /* that are kept; others are found again */

/* Links that work from each vertex to relays, or from relays to each vertex, in their order. Returns the most of one. */
static int index_ways(const NetWays *ways, bool out, int32_t **ret_of, NetWay **ret_ways)
{
    const NetTopology *t = ways->topology;
    const int32_t *first_of = out ? t->out_of : t->in_of, *links = out ? t->out_links : t->in_links;
    int32_t *of = g_new(int32_t, t->vertex_count + 1), most = 1, count = 0;
    NetWay *list = g_new(NetWay, MAX(t->link_count, 1));
    for (int v = 0; v < t->vertex_count; v++) {
        of[v] = count;
        most = MAX(most, first_of[v + 1] - first_of[v]);
        for (int e = first_of[v]; e < first_of[v + 1]; e++) {
            const NetLink *link = &t->links[links[e]];
            const int32_t relay = ways->relay[out ? link->to : link->from];
            if (relay >= 0 && link->bytes_per_s > 0)
                list[count++] = (NetWay){links[e], relay, link->weight};
        }
    }
    of[t->vertex_count] = count;
    *ret_of = of;
    *ret_ways = g_renew(NetWay, list, MAX(count, 1));
    return most;
}

void net_ways_init(NetWays *ways, const NetTopology *topology, int most_tabled)
{
    const int vertices = topology->vertex_count;
    *ways = (NetWays){.topology = topology};
    ways->relay = g_new(int32_t, vertices);
    ways->kind = g_new(int32_t, vertices);
    for (int v = 0; v < vertices; v++) {
        ways->relay[v] = topology->vertices[v].relays ? ways->relay_count++ : -1;
        ways->kind[v] = -1;
    }
    ways->to = g_new0(int32_t *, MAX(ways->relay_count, 1));
    ways->last_list = g_new(int32_t, MAX(ways->relay_count, 1));
    for (int r = 0; r < ways->relay_count; r++)
        ways->last_list[r] = -1;
    ways->kinds = g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
    ways->hops = g_new0(NetHop *, vertices);
    ways->lists = g_array_new(FALSE, FALSE, sizeof(int32_t));
    const int32_t none[2] = {-1, 0};
    g_array_append_vals(ways->lists, none, 2);
    ways->most = index_ways(ways, true, &ways->way_of, &ways->ways);
    ways->picks = g_new(int32_t, 2 * ways->most);
    if (ways->relay_count > most_tabled) {
        index_ways(ways, false, &ways->into_of, &ways->into);
        ways->near = net_near_new(ways);
    }
}

void net_ways_clear(NetWays *ways)
{
    for (int r = 0; r < ways->relay_count; r++)
        g_free(ways->to[r]);
    for (int v = 0; v < ways->topology->vertex_count; v++)
        g_free(ways->hops[v]);
    g_free(ways->to);
    g_free(ways->relay);
    g_free(ways->kind);
    g_hash_table_destroy(ways->kinds);
    g_free(ways->hops);
    g_array_free(ways->lists, TRUE);
    g_free(ways->last_list);
    g_free(ways->entries);
    g_free(ways->way_of);
    g_free(ways->ways);
    g_free(ways->into_of);
    g_free(ways->into);
    g_free(ways->picks);
    net_near_free(ways->near);
}

/* Weights of all relays to one of them, nearest first: a wheel of buckets, for weights are small. GPUs that pass nothing
 * on need no tables: they are a link away from a relay. */
static const int32_t *weights_to(NetWays *ways, int goal)
{
    enum { WHEEL = 2 * NET_WEIGHT_ACROSS };
    const NetTopology *t = ways->topology;
    int32_t **table = &ways->to[ways->relay[goal]];
    if (*table != NULL)
        return *table;
    int32_t *weight = *table = g_new(int32_t, ways->relay_count);
    GArray *wheel[WHEEL];
    for (int i = 0; i < WHEEL; i++)
        wheel[i] = g_array_new(FALSE, FALSE, sizeof(int));
    for (int r = 0; r < ways->relay_count; r++)
        weight[r] = G_MAXINT32;
    weight[ways->relay[goal]] = 0;
    g_array_append_val(wheel[0], goal);
    for (int w = 0, empty = 0; empty < WHEEL; w++) {
        GArray *bucket = wheel[w % WHEEL];
        empty = bucket->len > 0 ? 0 : empty + 1;
        for (guint i = 0; i < bucket->len; i++) {
            const int v = g_array_index(bucket, int, i);
            if (weight[ways->relay[v]] != w)
                continue;
            for (int e = t->in_of[v]; e < t->in_of[v + 1]; e++) {
                const NetLink *link = &t->links[t->in_links[e]];
                const int32_t from = ways->relay[link->from];
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

static void add_entry(NetWays *ways, const int32_t *weights, int32_t last)
{
    if (ways->entry_count == ways->entry_capacity) {
        ways->entry_capacity = MAX(8, 2 * ways->entry_capacity);
        ways->entries = g_renew(NetEntry, ways->entries, ways->entry_capacity);
    }
    ways->entries[ways->entry_count++] = (NetEntry){weights, last};
}

/* Who passes on to the receiver, itself where it is a relay. */
static void look_at(NetWays *ways, int goal)
{
    const NetTopology *t = ways->topology;
    ways->entry_count = 0;
    if (ways->relay[goal] >= 0) {
        add_entry(ways, weights_to(ways, goal), 0);
        return;
    }
    for (int e = t->in_of[goal]; e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->bytes_per_s > 0 && ways->relay[link->from] >= 0)
            add_entry(ways, weights_to(ways, link->from), link->weight);
    }
}

/* From a relay to the receiver at hand; G_MAXINT32: there is no way. */
static int32_t weight_of(const NetWays *ways, int32_t relay)
{
    int32_t least = G_MAXINT32;
    for (int i = 0; i < ways->entry_count; i++) {
        const int32_t weight = ways->entries[i].weights[relay];
        if (weight < G_MAXINT32)
            least = MIN(least, weight + ways->entries[i].last);
    }
    return least;
}

/* Receivers that hang on the same relays by the same weights: who leads where is the same for all of them. */
static int32_t kind_of(NetWays *ways, int goal)
{
    if (ways->kind[goal] >= 0)
        return ways->kind[goal];
    const NetTopology *t = ways->topology;
    GArray *hangs = g_array_new(FALSE, FALSE, sizeof(int32_t));
    if (ways->relay[goal] >= 0)
        g_array_append_val(hangs, goal);
    for (int e = t->in_of[goal]; ways->relay[goal] < 0 && e < t->in_of[goal + 1]; e++) {
        const NetLink *link = &t->links[t->in_links[e]];
        if (link->bytes_per_s == 0 || ways->relay[link->from] < 0)
            continue;
        g_array_append_val(hangs, link->from);
        g_array_append_val(hangs, link->weight);
    }
    GBytes *key = g_bytes_new(hangs->data, hangs->len * sizeof(int32_t));
    g_array_free(hangs, TRUE);
    const int first = GPOINTER_TO_INT(g_hash_table_lookup(ways->kinds, key));
    if (first == 0)
        g_hash_table_insert(ways->kinds, key, GINT_TO_POINTER(goal + 1));
    else
        g_bytes_unref(key);
    return ways->kind[goal] = first == 0 ? goal : first - 1;
}

/* Fills the picks with the links of a relay to relays that begin shortest ways, in their order. */
static NetHop find_hop(NetWays *ways, int v, int goal)
{
    const int32_t straight = net_weight_straight(ways, v, goal);
    int32_t weight = straight;
    int count = 0;
    look_at(ways, goal);
    for (const NetWay *way = ways->ways + ways->way_of[v]; way < ways->ways + ways->way_of[v + 1]; way++) {
        const int32_t rest = weight_of(ways, way->relay);
        if (rest == G_MAXINT32 || rest + way->weight > weight)
            continue;
        if (rest + way->weight < weight)
            count = 0;
        weight = rest + way->weight;
        ways->picks[count++] = way->link;
    }
    return (NetHop){.weight = (uint32_t)weight & G_MAXINT32,
                    .straight = straight == weight && ways->relay[goal] < 0,
                    .list = net_ways_list(ways, ways->relay[v], count)};
}

const NetHop *net_hop_find(NetWays *ways, int v, int goal)
{
    if (ways->near != NULL) {
        ways->straying = net_near_hop(ways->near, v, goal);
        return &ways->straying;
    }
    const int32_t kind = kind_of(ways, goal), relay = ways->relay[v];
    if (ways->hops[kind] == NULL && ways->hop_count + ways->relay_count <= MOST_HOPS) {
        ways->hops[kind] = g_new0(NetHop, ways->relay_count);
        ways->hop_count += ways->relay_count;
    }
    if (ways->hops[kind] == NULL) {
        ways->straying = find_hop(ways, v, goal);
        return &ways->straying;
    }
    NetHop *hop = &ways->hops[kind][relay];
    if (hop->list == 0)
        *hop = find_hop(ways, v, goal);
    return hop;
}
