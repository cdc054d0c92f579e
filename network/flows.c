/* network/flows.c - the flow solver: progressive filling over what changed. */
#include "network/flows.h"

#include <math.h>
#include <string.h>

#include "sim/eventq.h"

enum { FREE, WAITING, MOVING };

typedef struct Flow {
    double left_bytes, rate; /* as of since_ps; rate 0: not settled yet */
    int64_t since_ps, cap;   /* cap: bytes/s of its slowest link */
    int64_t bytes;
    uint32_t mark; /* round in which it was gathered */
    uint8_t state;
    uint8_t hops;
    bool frozen;
} Flow;

typedef struct Link {
    int64_t capacity, demand; /* demand: sum of its flows' caps */
    int32_t head;             /* first entry (slot x hops + hop), -1 */
    uint32_t mark;
    bool crowded, dirty;
    int32_t loose; /* while filling: flows not frozen */
    double left;   /* and what is left for them */
} Link;

struct NetFlows {
    const NetTopology *topology;
    SimEventq *queue;
    Flow *flows;
    Link *links;
    int32_t *path, *next, *previous; /* [slots x hops] */
    int32_t *on;
    int64_t *carried;
    int32_t *dirty, *gathered, *touched; /* links changed; flows and links of this round */
    int dirty_count, gathered_count, touched_count;
    int hops;
    uint32_t round;
    int64_t now_ps;
};

NetFlows *net_flows_new(const NetTopology *topology, int32_t slots, int hops, OrrArena *arena)
{
    NetFlows *f = ORR_ARENA_NEW(arena, NetFlows, 1);
    const size_t entries = (size_t)slots * (size_t)hops;
    f->topology = topology;
    f->hops = hops;
    f->queue = sim_eventq_new(arena, slots);
    f->flows = ORR_ARENA_NEW(arena, Flow, slots);
    f->links = ORR_ARENA_NEW(arena, Link, topology->link_count);
    f->path = ORR_ARENA_NEW(arena, int32_t, entries);
    f->next = ORR_ARENA_NEW(arena, int32_t, entries);
    f->previous = ORR_ARENA_NEW(arena, int32_t, entries);
    f->on = ORR_ARENA_NEW(arena, int32_t, topology->link_count);
    f->carried = ORR_ARENA_NEW(arena, int64_t, topology->link_count);
    f->dirty = ORR_ARENA_NEW(arena, int32_t, topology->link_count);
    f->touched = ORR_ARENA_NEW(arena, int32_t, topology->link_count);
    f->gathered = ORR_ARENA_NEW(arena, int32_t, slots);
    for (int l = 0; l < topology->link_count; l++) {
        f->links[l].capacity = topology->links[l].bytes_per_s;
        f->links[l].head = -1;
    }
    return f;
}

const int32_t *net_flows_on(const NetFlows *flows)
{
    return flows->on;
}

const int64_t *net_flows_carried(const NetFlows *flows)
{
    return flows->carried;
}

int64_t net_transfer_ps(double bytes, double bytes_per_s)
{
    return (int64_t)llround(MIN(bytes / bytes_per_s * 1e12, (double)NET_LONGEST_PS));
}

void net_flows_start(NetFlows *f, int32_t slot, const int32_t *links, int hops, int64_t bytes,
                     int64_t latency_ps)
{
    Flow *flow = &f->flows[slot];
    g_assert(flow->state == FREE && hops <= f->hops);
    flow->state = WAITING;
    flow->bytes = bytes;
    flow->hops = (uint8_t)(bytes > 0 ? hops : 0);
    memcpy(f->path + (size_t)slot * (size_t)f->hops, links, sizeof(int32_t) * flow->hops);
    for (int h = 0; h < flow->hops; h++)
        f->on[links[h]]++;
    sim_eventq_push(f->queue, slot, f->now_ps + latency_ps);
}

static void soil(NetFlows *f, int32_t l)
{
    if (!f->links[l].dirty) {
        f->links[l].dirty = true;
        f->dirty[f->dirty_count++] = l;
    }
}

static void enter(NetFlows *f, int32_t slot)
{
    Flow *flow = &f->flows[slot];
    const size_t base = (size_t)slot * (size_t)f->hops;
    flow->state = MOVING;
    flow->left_bytes = (double)flow->bytes;
    flow->rate = 0;
    flow->since_ps = f->now_ps;
    flow->cap = INT64_MAX;
    for (int h = 0; h < flow->hops; h++)
        flow->cap = MIN(flow->cap, f->links[f->path[base + (size_t)h]].capacity);
    for (int h = 0; h < flow->hops; h++) {
        const int32_t entry = (int32_t)(base + (size_t)h), l = f->path[entry];
        Link *link = &f->links[l];
        f->next[entry] = link->head;
        f->previous[entry] = -1;
        if (link->head >= 0)
            f->previous[link->head] = entry;
        link->head = entry;
        link->demand += flow->cap;
        f->carried[l] += flow->bytes;
        soil(f, l);
    }
}

static void leave(NetFlows *f, int32_t slot)
{
    Flow *flow = &f->flows[slot];
    const size_t base = (size_t)slot * (size_t)f->hops;
    for (int h = 0; h < flow->hops; h++) {
        const int32_t entry = (int32_t)(base + (size_t)h), l = f->path[entry];
        Link *link = &f->links[l];
        if (f->previous[entry] >= 0)
            f->next[f->previous[entry]] = f->next[entry];
        else
            link->head = f->next[entry];
        if (f->next[entry] >= 0)
            f->previous[f->next[entry]] = f->previous[entry];
        link->demand -= flow->cap;
        f->on[l]--;
        soil(f, l);
    }
    flow->state = FREE;
}

/* --- settling --- */

static void gather_flow(NetFlows *f, int32_t slot)
{
    Flow *flow = &f->flows[slot];
    if (flow->mark == f->round)
        return;
    flow->mark = f->round;
    flow->frozen = false;
    f->gathered[f->gathered_count++] = slot;
}

static void gather_link(NetFlows *f, int32_t l)
{
    Link *link = &f->links[l];
    if (link->mark == f->round)
        return;
    link->mark = f->round;
    link->loose = 0;
    link->left = (double)link->capacity;
    f->touched[f->touched_count++] = l;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
        link->loose++;
        gather_flow(f, entry / f->hops);
    }
}

/* Flows of links that changed and were or are crowded or hold a newcomer, and all that crowded links join with them. */
static void gather(NetFlows *f)
{
    f->round++;
    f->gathered_count = f->touched_count = 0;
    for (int i = 0; i < f->dirty_count; i++) {
        Link *link = &f->links[f->dirty[i]];
        const bool was = link->crowded;
        link->dirty = false;
        link->crowded = link->demand > link->capacity;
        for (int32_t entry = link->head; entry >= 0; entry = f->next[entry])
            if (was || link->crowded || f->flows[entry / f->hops].rate <= 0)
                gather_flow(f, entry / f->hops);
    }
    f->dirty_count = 0;
    for (int i = 0; i < f->gathered_count; i++) {
        const int32_t *path = f->path + (size_t)f->gathered[i] * (size_t)f->hops;
        for (int h = 0; h < f->flows[f->gathered[i]].hops; h++)
            if (f->links[path[h]].crowded)
                gather_link(f, path[h]);
    }
}

static void set_rate(NetFlows *f, int32_t slot, double rate)
{
    Flow *flow = &f->flows[slot];
    if (rate <= flow->rate && rate >= flow->rate)
        return;
    if (flow->rate > 0) {
        flow->left_bytes -= flow->rate * ((double)(f->now_ps - flow->since_ps) * 1e-12);
        flow->left_bytes = MAX(flow->left_bytes, 0);
        sim_eventq_remove(f->queue, slot);
    }
    flow->since_ps = f->now_ps;
    flow->rate = rate;
    sim_eventq_push(f->queue, slot, f->now_ps + net_transfer_ps(flow->left_bytes, rate));
}

static void freeze(NetFlows *f, int32_t slot, double rate)
{
    Flow *flow = &f->flows[slot];
    const int32_t *path = f->path + (size_t)slot * (size_t)f->hops;
    flow->frozen = true;
    for (int h = 0; h < flow->hops; h++) {
        Link *link = &f->links[path[h]];
        if (link->crowded) {
            link->loose--;
            link->left -= rate;
        }
    }
    set_rate(f, slot, rate);
}

/* The least that a crowded link gives each of its flows that are not frozen. */
static double least_share(NetFlows *f)
{
    double least = INFINITY;
    for (int i = 0; i < f->touched_count;) {
        const Link *link = &f->links[f->touched[i]];
        if (link->loose == 0) {
            f->touched[i] = f->touched[--f->touched_count];
            continue;
        }
        least = MIN(least, MAX(link->left, 0) / link->loose);
        i++;
    }
    return least;
}

/* Flows whose own slowest link gives them no more than `share`; those that cross no crowded link too. */
static bool freeze_capped(NetFlows *f, double share)
{
    int kept = 0;
    for (int i = 0; i < f->gathered_count; i++) {
        const int32_t slot = f->gathered[i];
        if (f->flows[slot].frozen)
            continue;
        if ((double)f->flows[slot].cap <= share)
            freeze(f, slot, (double)f->flows[slot].cap);
        else
            f->gathered[kept++] = slot;
    }
    const bool some = kept < f->gathered_count;
    f->gathered_count = kept;
    return some;
}

/* Flows of all links that give no more than `share` each; ties are one level. */
static void freeze_tightest(NetFlows *f, double share)
{
    const double level = share * (1 + 1e-12);
    for (int i = 0; i < f->touched_count; i++) {
        Link *link = &f->links[f->touched[i]];
        if (link->loose == 0 || MAX(link->left, 0) / link->loose > level)
            continue;
        for (int32_t entry = link->head; entry >= 0; entry = f->next[entry])
            if (!f->flows[entry / f->hops].frozen)
                freeze(f, entry / f->hops, MAX(share, 1e-3));
    }
}

static void settle(NetFlows *f)
{
    gather(f);
    while (f->gathered_count > 0) {
        const double share = least_share(f);
        if (!freeze_capped(f, share) && f->gathered_count > 0)
            freeze_tightest(f, share);
    }
}

/* An event of this instant; true: a flow ended. */
static bool happen(NetFlows *f, int32_t slot)
{
    Flow *flow = &f->flows[slot];
    if (flow->state == WAITING && flow->hops > 0) {
        enter(f, slot);
        return false;
    }
    if (flow->state == MOVING)
        leave(f, slot);
    flow->state = FREE;
    return true;
}

bool net_flows_next(NetFlows *f, int64_t *ret_time_ps, int32_t *ret_slot)
{
    int32_t slot = 0;
    for (;;) {
        if (!sim_eventq_pop_at(f->queue, f->now_ps, &slot)) {
            if (f->dirty_count > 0)
                settle(f);
            if (!sim_eventq_pop(f->queue, &f->now_ps, &slot))
                return false;
        }
        if (happen(f, slot)) {
            *ret_time_ps = f->now_ps;
            *ret_slot = slot;
            return true;
        }
    }
}
