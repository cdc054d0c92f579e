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
    double fresh;    /* rate that it will have when all is settled */
    int32_t held_by; /* link that gives it no more; -1: its own slowest link */
    uint32_t mark;   /* round in which it became a member */
    uint8_t state;
    uint8_t hops;
    bool frozen;
} Flow;

typedef struct Link {
    int64_t capacity, demand; /* demand: sum of its flows' caps */
    int32_t head;             /* first entry (slot x hops + hop), -1 */
    uint32_t mark;
    bool crowded, dirty;
    /* While settling: of the flows that stand, what they take together, the highest rate, and the least of those that
     * this link holds; of the members, how many, how many are not frozen, and what the others got. */
    uint32_t seen; /* round in which the first three were read; 0: a flow has joined since */
    double taken, other_most, other_held;
    int32_t members, loose;
    double left, level; /* for those not frozen; the least at which one was frozen */
    int32_t place;      /* of it in touched[] */
    double given, most;
} Link;

struct NetFlows {
    const NetTopology *topology;
    SimEventq *queue;
    Flow *flows;
    Link *links;
    int32_t *path, *next, *previous; /* [slots x hops] */
    int32_t *on;
    int64_t *carried;
    int32_t *dirty, *members, *touched; /* links changed; flows concerned, their links */
    int dirty_count, member_count, loose_count, touched_count;
    double *
        share; /* [touched] what a link gives each of its members that are not frozen; INFINITY: it has none */
    int64_t least_cap; /* of all members */
    int hops, shift;   /* entries of a slot: 1 << shift */
    uint32_t round, pass;
    int64_t now_ps;
};

NetFlows *net_flows_new(const NetTopology *topology, int32_t slots, int hops, OrrArena *arena)
{
    NetFlows *f = ORR_ARENA_NEW(arena, NetFlows, 1);
    while (1 << f->shift < hops)
        f->shift++;
    const size_t entries = (size_t)slots << f->shift;
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
    f->share = ORR_ARENA_NEW(arena, double, topology->link_count);
    f->members = ORR_ARENA_NEW(arena, int32_t, slots);
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
    memcpy(f->path + ((size_t)slot << f->shift), links, sizeof(int32_t) * flow->hops);
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
    const size_t base = (size_t)slot << f->shift;
    flow->state = MOVING;
    flow->left_bytes = (double)flow->bytes;
    flow->rate = 0;
    flow->held_by = -1;
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
    const size_t base = (size_t)slot << f->shift;
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

/* --- settling: the flows concerned are filled beside the others, whose rates stand; those that this makes unfair join
 * them, until there are none. Then every flow is held by a link that is full and gives no flow more, which is what
 * max-min fair means. --- */

#define SAME 1e-9 /* rates that differ by less are one */

static void join(NetFlows *f, int32_t slot)
{
    Flow *flow = &f->flows[slot];
    if (flow->mark == f->round)
        return;
    flow->mark = f->round;
    flow->frozen = false; /* until it is filled it counts as one of the others */
    f->members[f->member_count++] = slot;
}

/* Flows of a link that changed: newcomers and, where it is crowded, who shares it with them or is held by it. */
static void begin_at(NetFlows *f, int32_t l)
{
    Link *link = &f->links[l];
    const bool was = link->crowded;
    bool newcomer = false;
    link->dirty = false;
    link->crowded = link->demand > link->capacity;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry])
        newcomer = newcomer || f->flows[entry >> f->shift].rate <= 0;
    if (!was && !link->crowded && !newcomer)
        return;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->rate <= 0 || (link->crowded && newcomer) || flow->held_by == l)
            join(f, entry >> f->shift);
    }
}

static void begin(NetFlows *f)
{
    f->round++;
    f->member_count = 0;
    for (int i = 0; i < f->dirty_count; i++)
        begin_at(f, f->dirty[i]);
    f->dirty_count = 0;
}

static void look(NetFlows *f, Link *link, int32_t l)
{
    link->seen = f->round;
    link->members = 0;
    link->taken = link->other_most = 0;
    link->other_held = INFINITY;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->mark == f->round) {
            link->members++;
            continue;
        }
        link->taken += flow->rate;
        link->other_most = MAX(link->other_most, flow->rate);
        if (flow->held_by == l)
            link->other_held = MIN(link->other_held, flow->rate);
    }
}

/* What the others leave of a link. */
static void touch(NetFlows *f, int32_t l)
{
    Link *link = &f->links[l];
    if (link->mark == f->pass)
        return;
    link->mark = f->pass;
    if (link->seen != f->round)
        look(f, link, l);
    link->loose = link->members;
    link->level = INFINITY;
    link->given = link->most = 0;
    link->left = (double)link->capacity - link->taken;
    link->place = f->touched_count;
    f->share[f->touched_count] = MAX(link->left, 0) / link->loose;
    f->touched[f->touched_count++] = l;
}

static void prepare(NetFlows *f)
{
    f->pass++;
    f->touched_count = 0;
    f->loose_count = f->member_count;
    f->least_cap = INT64_MAX;
    for (int i = 0; i < f->member_count; i++) {
        const int32_t slot = f->members[i], *path = f->path + ((size_t)slot << f->shift);
        f->least_cap = MIN(f->least_cap, f->flows[slot].cap);
        f->flows[slot].frozen = false;
        for (int h = 0; h < f->flows[slot].hops; h++)
            if (f->links[path[h]].crowded)
                touch(f, path[h]);
    }
}

static void freeze(NetFlows *f, int32_t slot, double rate, int32_t held_by)
{
    Flow *flow = &f->flows[slot];
    const int32_t *path = f->path + ((size_t)slot << f->shift);
    f->loose_count--;
    flow->frozen = true;
    flow->fresh = rate;
    flow->held_by = held_by;
    for (int h = 0; h < flow->hops; h++) {
        Link *link = &f->links[path[h]];
        if (link->crowded) {
            link->left -= rate;
            link->given += rate;
            link->most = MAX(link->most, rate);
            f->share[link->place] = --link->loose > 0 ? MAX(link->left, 0) / link->loose : INFINITY;
        }
    }
}

/* The least that a link gives each of its members that are not frozen. */
static double least_share(const NetFlows *f)
{
    double least = INFINITY;
    for (int i = 0; i < f->touched_count; i++)
        least = MIN(least, f->share[i]);
    return least;
}

/* Members whose own slowest link gives them no more than `share`. */
static bool freeze_capped(NetFlows *f, double share)
{
    const int before = f->loose_count;
    for (int i = 0; (double)f->least_cap <= share && i < f->member_count; i++) {
        const Flow *flow = &f->flows[f->members[i]];
        if (!flow->frozen && (double)flow->cap <= share)
            freeze(f, f->members[i], (double)flow->cap, -1);
    }
    return f->loose_count < before;
}

/* Members of all links that give no more than `share` each; ties are one level. */
static void freeze_tightest(NetFlows *f, double share)
{
    const double level = share * (1 + 1e-12), rate = MAX(share, 1e-3);
    for (int i = 0; i < f->touched_count; i++) {
        if (!(f->share[i] <= level))
            continue;
        Link *link = &f->links[f->touched[i]];
        link->level = MIN(link->level, rate);
        for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
            const Flow *flow = &f->flows[entry >> f->shift];
            if (flow->mark == f->round && !flow->frozen)
                freeze(f, entry >> f->shift, rate, f->touched[i]);
        }
    }
}

static void fill(NetFlows *f)
{
    while (f->loose_count > 0) {
        const double share = least_share(f);
        if (!freeze_capped(f, share) && f->loose_count > 0)
            freeze_tightest(f, share);
    }
}

static void join_late(NetFlows *f, int32_t slot)
{
    const int32_t *path = f->path + ((size_t)slot << f->shift);
    join(f, slot);
    for (int h = 0; h < f->flows[slot].hops; h++)
        f->links[path[h]].seen = 0;
}

/* Others on a link of theirs that now get more than a member that it holds back, or are held by it though it has room or
 * gives a member more. */
static void grow_at(NetFlows *f, int32_t l)
{
    const Link *link = &f->links[l];
    const bool full = link->taken + link->given >= (double)link->capacity * (1 - SAME);
    const double above = link->level * (1 + SAME), most = full ? link->most : INFINITY;
    if (link->other_most <= above && !(most > link->other_held * (1 + SAME)))
        return;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->mark != f->round &&
            (flow->rate > above || (flow->held_by == l && most > flow->rate * (1 + SAME))))
            join_late(f, entry >> f->shift);
    }
}

static bool grow(NetFlows *f)
{
    const int before = f->member_count;
    for (int i = 0; i < f->touched_count; i++)
        grow_at(f, f->touched[i]);
    return f->member_count > before;
}

static void set_rate(NetFlows *f, int32_t slot, double rate)
{
    Flow *flow = &f->flows[slot];
    if (fabs(rate - flow->rate) <= 1e-12 * rate)
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

static void settle(NetFlows *f)
{
    begin(f);
    do {
        prepare(f);
        fill(f);
    } while (grow(f));
    for (int i = 0; i < f->member_count; i++)
        set_rate(f, f->members[i], f->flows[f->members[i]].fresh);
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
