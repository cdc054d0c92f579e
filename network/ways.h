/* network/ways.h - which links lead on from a vertex to a receiver over shortest ways, before anybody picks among them.
 * Internal to the routes.
 */
#ifndef ORR_NETWORK_WAYS_H
#define ORR_NETWORK_WAYS_H

#include "network/topology.h"

/* A link from a vertex to a relay. */
typedef struct NetWay {
    int32_t link, relay, weight;
} NetWay;

/* How a relay passes on to receivers of one kind, which hang on the same relays by the same weights. */
typedef struct NetHop {
    uint32_t weight : 31;  /* of the shortest ways; G_MAXINT32: there is none */
    uint32_t straight : 1; /* some of them end with the next link */
    int32_t
        list; /* of links to relays that begin them: 1 + place in lists, -1 - link where it is one; 0: not asked yet */
} NetHop;

#define NET_NO_LINKS 1 /* NetHop.list of none: the first of all lists */

typedef struct NetEntry NetEntry;
typedef struct NetNear NetNear;

typedef struct NetWays {
    const NetTopology *topology;
    int32_t *relay; /* [vertices] number among those that pass messages on; -1: it does not */
    int relay_count;
    int32_t *way_of; /* [vertices + 1] links that work from each vertex to relays: ways[way_of[v]] .. */
    NetWay *ways;
    int32_t *into_of; /* [vertices + 1] links that work from relays to each vertex; with `near` only */
    NetWay *into;
    NetNear *near;     /* NULL: weights are tabulated */
    int most;          /* links from one vertex */
    int32_t *picks;    /* [most] */
    int32_t *kind;     /* [vertices] of a receiver: the first vertex of its kind; -1: not asked yet */
    GHashTable *kinds; /* what receivers hang on -> 1 + the first of them */
    NetHop **hops;     /* [vertices] of a kind: [relays]; NULL: none is kept */
    int64_t hop_count;
    GArray *lists;      /* int32_t: place of another list of the relay or -1, links, then they */
    int32_t *last_list; /* [relays] place of its newest list; -1 */
    NetHop straying;    /* the hop that was asked last where none is kept */
    int32_t **to;       /* [relays]: weight of the shortest way of every relay to it; NULL: not asked yet */
    NetEntry *entries;  /* of the receiver at hand */
    int entry_count, entry_capacity;
} NetWays;

/* Tables of weights take 4 bytes for two relays: more of these are searched one by one. */
#define NET_MOST_TABLED 8192

/* Borrows the topology, which is searched from `most_tabled` relays on. Free with net_ways_clear(). */
void net_ways_init(NetWays *ways, const NetTopology *topology, int most_tabled);
void net_ways_clear(NetWays *ways);

/* How relay v passes on to receivers like this one; valid until the next call. */
const NetHop *net_hop_find(NetWays *ways, int v, int goal);
static inline const NetHop *net_hop_of(NetWays *ways, int v, int goal)
{
    const int32_t kind = ways->kind[goal];
    const NetHop *hop = kind < 0 || ways->hops[kind] == NULL ? NULL : &ways->hops[kind][ways->relay[v]];
    return hop != NULL && hop->list != 0 ? hop : net_hop_find(ways, v, goal);
}

/* The first `count` picks as a list of a relay. */
int32_t net_ways_list(NetWays *ways, int32_t relay, int count);

/* The least weight of a link from v straight to the receiver; G_MAXINT32: there is none. */
int32_t net_weight_straight(const NetWays *ways, int v, int goal);

#endif
