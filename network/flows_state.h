/* network/flows_state.h - tables of the flow solver, for its two halves: time (flows.c) and rates (flows_fill.c). Internal.
 *
 * What filling reads lies close: a flow's rates in half a line of the cache, a link's flows side by side.
 */
#ifndef ORR_NETWORK_FLOWS_STATE_H
#define ORR_NETWORK_FLOWS_STATE_H

#include <math.h>

#include "network/flows.h"
#include "sim/eventq.h"

#define NET_BLOCK 8    /* levels that are compared at once */
#define NET_SAME  1e-9 /* rates that differ by less are one */
#define NET_FEW   2    /* flows that a link holds itself: log2 of them is the least room */

/* What a flow gets; half a line. */
typedef struct NetShare {
    double rate;     /* 0: not settled yet */
    double fresh;    /* what it will have when all is settled; 0: a member that is not frozen */
    double cap;      /* bytes/s of its slowest link */
    int32_t held_by; /* link that gives it no more; -1: its own slowest link */
    uint32_t mark;   /* round in which it became a member */
} NetShare;

/* How far a flow is; a line of the cache. */
typedef struct NetFlow {
    int64_t bytes;
    double left_bytes; /* as of since_ps */
    int64_t since_ps;
    int64_t queued_ps, end_ps; /* its event, which may come early; when it is through at this rate */
    enum { NET_FREE, NET_WAITING, NET_MOVING } state;
    int64_t unused[2];
} NetFlow;

/* Who is on a link; half a line. */
typedef struct NetFlowLink {
    int64_t spare; /* capacity less the caps of its flows */
    int64_t carried;
    union {
        int32_t few[NET_FEW]; /* where there is no more room */
        int32_t *many;
    } of; /* [count] its flows: slot << shift | hop */
    int32_t count;
    int8_t room; /* log2, of entries */
    bool dirty;
} NetFlowLink;

/* What a link gives, kept while it is crowded; half a line. */
typedef struct NetGiven {
    double left; /* by flows that are settled */
    double held; /* no more than the least rate of those that it holds; INFINITY: it holds none */
    int32_t holds;
    int32_t loose; /* members that are not frozen, while it is concerned */
    int32_t place; /* where it is in concerned[], if it is */
    float full;    /* what is left then is nothing */
} NetGiven;

struct NetFlows {
    const NetTopology *topology;
    OrrArena *arena;
    SimEventq *queue;
    NetFlow *flows;               /* [slots] */
    NetShare *shares;             /* [slots] */
    uint8_t *hop_count;           /* [slots] */
    NetFlowLink *links;           /* [links] */
    NetGiven *given;              /* [links] */
    double *capacity;             /* [links] */
    uint64_t *crowded;            /* a bit a link: its flows could take more than it has */
    int32_t *path;                /* [slots << shift] */
    int32_t *position;            /* [slots << shift] of an entry in its link's list */
    int32_t *on;                  /* [links]; NULL: nobody asked */
    int32_t *dirty;               /* links that were or are crowded and changed */
    bool *eased;                  /* [dirty] it was crowded and is not any more */
    int32_t *newcomers, *members; /* flows that began at this instant; flows concerned */
    int dirty_count, newcomer_count, member_count, concerned_count;
    int level_count;    /* concerned_count in whole blocks */
    int32_t *concerned; /* crowded links on the way of members, and those that hold others and changed */
    double *next_level; /* [level_count] rate at which something happens on a link; INFINITY: nothing does */
    double *least;      /* [concerned / NET_BLOCK] least next level of a block */
    int32_t *loose,
        *above;         /* [slots] of a link at hand: members that are not frozen, others above its level */
    int32_t *ways;      /* [slots << shift] a member's crowded links */
    uint8_t *way_count; /* [slots] */
    double least_cap;   /* of all members that are not frozen */
    double quantum;     /* rates are multiples of it: sums of those of a link are exact */
    int hops, shift;    /* entries of a slot: 1 << shift */
    uint32_t round;
    int64_t now_ps, shared;
};

static inline bool net_flows_crowded(const NetFlows *flows, int32_t link)
{
    return flows->crowded[link >> 6] >> (link & 63) & 1;
}

static inline int32_t *net_flows_entries(NetFlowLink *link)
{
    return link->room == 1 ? link->of.few : link->of.many;
}

/* The link that held a flow no longer does. */
static inline void net_flows_let_go(NetFlows *flows, const NetShare *share)
{
    if (share->held_by < 0)
        return;
    NetGiven *given = &flows->given[share->held_by];
    if (--given->holds == 0)
        given->held = INFINITY;
}

/* Rates anew after links and newcomers have changed: `fresh` of all members. */
void net_flows_fill(NetFlows *flows);

#endif
