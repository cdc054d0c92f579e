/* network/near.c - shortest ways between two relays by a search from both ends.
 *
 * Each side is Dijkstra's with a wheel of buckets, for weights are small; the side whose next bucket has fewer links goes
 * on. Both are done when what is not looked at on either side weighs as much as the best way found. Then every shortest
 * way has a vertex that both sides have reached: the one after the last that was looked at ahead, since links weigh 1 or
 * more, so that the one after it was looked at behind.
 * Source: [Pohl1971]     Tested: unit/network/test_network_near.c
 */
#include "network/near.h"

#include <stdlib.h>
#include <string.h>

#include "base/draws.h"

enum { WHEEL = 2 * NET_WEIGHT_ACROSS, MOST_KNOWN = 1 << 20 };

typedef struct Label {
    uint32_t round; /* of the search that set it */
    int32_t weight;
    bool leads; /* ahead: some shortest way goes over it */
} Label;

typedef struct Edge {
    int32_t from, to, weight, link; /* relays */
} Edge;

typedef struct Side {
    Label *labels;                /* [relays] */
    GArray *wheel[WHEEL], *edges; /* int32_t; Edge, in the order in which they were looked at */
    int32_t at;                   /* least weight that is not looked at; G_MAXINT32: nothing is left */
    int queued;
    const int32_t *way_of; /* [vertices + 1] */
    const NetWay *ways;    /* links out of a vertex ahead, into it behind */
} Side;

typedef struct Known {
    uint64_t key; /* 1 + the two relays; 0: empty */
    NetHop hop;
} Known;

struct NetNear {
    NetWays *ways;
    int32_t *vertex; /* [relays] */
    Side ahead, behind;
    uint32_t round;
    int32_t best;
    Known *known; /* [known_count], a power of two */
    uint64_t known_count;
};

static void new_side(Side *side, int relays, const int32_t *way_of, const NetWay *ways)
{
    side->labels = g_new0(Label, MAX(relays, 1));
    for (int i = 0; i < WHEEL; i++)
        side->wheel[i] = g_array_new(FALSE, FALSE, sizeof(int32_t));
    side->edges = g_array_new(FALSE, FALSE, sizeof(Edge));
    side->way_of = way_of;
    side->ways = ways;
}

static void clear_side(Side *side)
{
    g_free(side->labels);
    for (int i = 0; i < WHEEL; i++)
        g_array_free(side->wheel[i], TRUE);
    g_array_free(side->edges, TRUE);
}

NetNear *net_near_new(NetWays *ways)
{
    const NetTopology *t = ways->topology;
    NetNear *near = g_new0(NetNear, 1);
    near->ways = ways;
    near->vertex = g_new(int32_t, MAX(ways->relay_count, 1));
    for (int v = 0; v < t->vertex_count; v++)
        if (ways->relay[v] >= 0)
            near->vertex[ways->relay[v]] = v;
    new_side(&near->ahead, ways->relay_count, ways->way_of, ways->ways);
    new_side(&near->behind, ways->relay_count, ways->into_of, ways->into);
    near->known_count = 1024;
    while (near->known_count < MOST_KNOWN && near->known_count < 8 * (uint64_t)ways->relay_count)
        near->known_count *= 2;
    near->known = g_new0(Known, near->known_count);
    return near;
}

void net_near_free(NetNear *near)
{
    if (near == NULL)
        return;
    clear_side(&near->ahead);
    clear_side(&near->behind);
    g_free(near->vertex);
    g_free(near->known);
    g_free(near);
}

static void reach(NetNear *near, Side *side, const Side *other, int32_t relay, int32_t weight)
{
    Label *label = &side->labels[relay];
    if (label->round == near->round && label->weight <= weight)
        return;
    *label = (Label){.round = near->round, .weight = weight};
    g_array_append_val(side->wheel[weight % WHEEL], relay);
    side->queued++;
    if (other->labels[relay].round == near->round)
        near->best = MIN(near->best, weight + other->labels[relay].weight);
}

static void begin(Side *side)
{
    for (int i = 0; i < WHEEL; i++)
        g_array_set_size(side->wheel[i], 0);
    g_array_set_size(side->edges, 0);
    side->at = side->queued = 0;
}

static void go_on(Side *side)
{
    if (side->queued == 0)
        side->at = G_MAXINT32;
    while (side->queued > 0 && side->wheel[side->at % WHEEL]->len == 0)
        side->at++;
}

static int64_t links_of(const NetNear *near, const Side *side)
{
    const GArray *bucket = side->wheel[side->at % WHEEL];
    int64_t links = 0;
    for (guint i = 0; i < bucket->len; i++) {
        const int v = near->vertex[g_array_index(bucket, int32_t, i)];
        links += side->way_of[v + 1] - side->way_of[v];
    }
    return links;
}

/* Looks at all that is as near as the nearest. */
static void widen(NetNear *near, Side *side, const Side *other)
{
    GArray *bucket = side->wheel[side->at % WHEEL];
    for (guint i = 0; i < bucket->len; i++) {
        const int32_t relay = g_array_index(bucket, int32_t, i);
        const int v = near->vertex[relay];
        if (side->labels[relay].weight != side->at)
            continue;
        for (int32_t k = side->way_of[v]; k < side->way_of[v + 1]; k++) {
            const NetWay *way = &side->ways[k];
            const Edge edge = {relay, way->relay, way->weight, way->link};
            g_array_append_val(side->edges, edge);
            reach(near, side, other, way->relay, side->at + way->weight);
        }
    }
    side->queued -= (int)bucket->len;
    g_array_set_size(bucket, 0);
}

static bool both(const NetNear *near, int32_t relay)
{
    const Label *ahead = &near->ahead.labels[relay], *behind = &near->behind.labels[relay];
    return behind->round == near->round && ahead->weight + behind->weight == near->best;
}

/* Links of `from` that begin shortest ways, where the side ahead has looked at it: back from where the sides met. */
static int picks_ahead(NetNear *near, int32_t from, int32_t *picks)
{
    Label *labels = near->ahead.labels;
    int count = 0;
    for (guint i = near->ahead.edges->len; i-- > 0;) {
        const Edge *edge = &g_array_index(near->ahead.edges, Edge, i);
        if (labels[edge->from].weight + edge->weight != labels[edge->to].weight ||
            !(labels[edge->to].leads || both(near, edge->to)))
            continue;
        labels[edge->from].leads = true;
        if (edge->from == from)
            picks[count++] = edge->link;
    }
    return count;
}

/* ... and where only the side behind has come to it. */
static int picks_behind(const NetNear *near, int32_t from, int32_t *picks)
{
    int count = 0;
    for (guint i = 0; i < near->behind.edges->len; i++) {
        const Edge *edge = &g_array_index(near->behind.edges, Edge, i);
        if (edge->to == from && near->behind.labels[edge->from].weight + edge->weight == near->best)
            picks[count++] = edge->link;
    }
    return count;
}

static int by_number(const void *a, const void *b)
{
    return *(const int32_t *)a - *(const int32_t *)b;
}

static NetHop search(NetNear *near, int32_t from, int32_t to)
{
    Side *ahead = &near->ahead, *behind = &near->behind;
    near->round++;
    near->best = G_MAXINT32;
    begin(ahead);
    begin(behind);
    reach(near, ahead, behind, from, 0);
    reach(near, behind, ahead, to, 0);
    for (;;) {
        go_on(ahead);
        go_on(behind);
        if (ahead->at == G_MAXINT32 || behind->at == G_MAXINT32 || near->best <= ahead->at + behind->at)
            break;
        if (links_of(near, ahead) <= links_of(near, behind))
            widen(near, ahead, behind);
        else
            widen(near, behind, ahead);
    }
    if (near->best == G_MAXINT32)
        return (NetHop){.weight = G_MAXINT32, .list = NET_NO_LINKS};
    int32_t *picks = near->ways->picks;
    const int count = ahead->at > 0 ? picks_ahead(near, from, picks) : picks_behind(near, from, picks);
    qsort(picks, (size_t)count, sizeof *picks, by_number);
    return (NetHop){.weight = (uint32_t)near->best & G_MAXINT32,
                    .list = net_ways_list(near->ways, from, count)};
}

static NetHop between(NetNear *near, int32_t from, int32_t to)
{
    const uint64_t key = ((uint64_t)from << 32 | (uint64_t)to) + 1;
    Known *known = &near->known[orr_mix(key) & (near->known_count - 1)];
    if (known->key != key)
        *known = (Known){key, search(near, from, to)};
    return known->hop;
}

static int append(NetWays *ways, int32_t list, int count)
{
    if (list < 0) {
        ways->picks[count] = -1 - list;
        return count + 1;
    }
    const int32_t *links = &g_array_index(ways->lists, int32_t, list);
    memcpy(ways->picks + count, links + 1, sizeof *links * (size_t)links[0]);
    return count + links[0];
}

/* Two lists of links of a relay as one. */
static int32_t merge(NetWays *ways, int32_t relay, int32_t a, int32_t b)
{
    const int count = append(ways, b, append(ways, a, 0));
    int kept = 0;
    qsort(ways->picks, (size_t)count, sizeof *ways->picks, by_number);
    for (int i = 0; i < count; i++)
        if (kept == 0 || ways->picks[i] != ways->picks[kept - 1])
            ways->picks[kept++] = ways->picks[i];
    return net_ways_list(ways, relay, kept);
}

/* Switches inside nodes have no links to other relays. */
static bool is_joined(const NetWays *ways, int from, int to)
{
    return ways->way_of[from] < ways->way_of[from + 1] && ways->into_of[to] < ways->into_of[to + 1];
}

NetHop net_near_hop(NetNear *near, int v, int goal)
{
    NetWays *ways = near->ways;
    const int32_t from = ways->relay[v];
    if (ways->relay[goal] >= 0)
        return between(near, from, ways->relay[goal]);
    const int32_t straight = net_weight_straight(ways, v, goal);
    NetHop hop = {.weight = (uint32_t)straight & G_MAXINT32, .list = NET_NO_LINKS};
    for (int32_t k = ways->into_of[goal]; k < ways->into_of[goal + 1]; k++) {
        const NetWay *last = &ways->into[k];
        const int door = near->vertex[last->relay];
        if (last->relay == from || last->weight + 1 > (int32_t)hop.weight || !is_joined(ways, v, door))
            continue;
        const NetHop way = between(near, from, last->relay);
        const int64_t weight = (int64_t)way.weight + last->weight;
        if (way.weight == G_MAXINT32 || weight > hop.weight)
            continue;
        hop.list = weight < hop.weight || hop.list == NET_NO_LINKS ? way.list
                                                                   : merge(ways, from, hop.list, way.list);
        hop.weight = (uint32_t)weight & G_MAXINT32;
    }
    hop.straight = straight == (int32_t)hop.weight && straight < G_MAXINT32;
    return hop;
}
