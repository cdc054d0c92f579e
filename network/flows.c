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
    int32_t place;            /* of it in concerned[], where mark is the round */
    uint32_t mark;
    bool dirty;
} Link;

/* A crowded link on the way of a member, while settling: of the flows that stand, what they take together, the highest
 * rate, and the least of those that this link holds; of the members, how many, how many are not frozen, and what the
 * others got. Few and side by side, so that filling stays in the nearest cache. */
typedef struct Concerned {
    double capacity, taken, other_most, other_held;
    double left, level; /* for those not frozen; the least at which one was frozen */
    double given, most;
    int32_t members, loose, link;
    int32_t head; /* first way of a member over it (member x hops + way), -1 */
    bool seen;    /* the first line of these is read */
} Concerned;

struct NetFlows {
    const NetTopology *topology;
    SimEventq *queue;
    Flow *flows;
    Link *links;
    int32_t *path, *next, *previous; /* [slots x hops] */
    int32_t *on;
    int64_t *carried;
    bool *crowded;            /* [links] its flows could take more than it has */
    int32_t *dirty, *members; /* links changed; flows concerned */
    int dirty_count, member_count, ready_count, loose_count, concerned_count;
    Concerned *concerned; /* crowded links of members */
    double *
        share; /* [concerned] what a link gives each of its members that are not frozen; INFINITY: it has none */
    int32_t *ways,
        *next_way;      /* [members x hops] places of a member's crowded links; others on the same link */
    uint8_t *way_count; /* [members] */
    int64_t least_cap;  /* of all members */
    int hops, shift;    /* entries of a slot: 1 << shift */
    uint32_t round;
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
    f->crowded = ORR_ARENA_NEW(arena, bool, topology->link_count);
    f->concerned = ORR_ARENA_NEW(arena, Concerned, topology->link_count);
    f->share = ORR_ARENA_NEW(arena, double, topology->link_count);
    f->members = ORR_ARENA_NEW(arena, int32_t, slots);
    f->ways = ORR_ARENA_NEW(arena, int32_t, entries);
    f->next_way = ORR_ARENA_NEW(arena, int32_t, entries);
    f->way_count = ORR_ARENA_NEW(arena, uint8_t, slots);
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
    const bool was = f->crowded[l], crowded = link->demand > link->capacity;
    bool newcomer = false;
    link->dirty = false;
    f->crowded[l] = crowded;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry])
        newcomer = newcomer || f->flows[entry >> f->shift].rate <= 0;
    if (!was && !crowded && !newcomer)
        return;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->rate <= 0 || (crowded && newcomer) || flow->held_by == l)
            join(f, entry >> f->shift);
    }
}

static void begin(NetFlows *f)
{
    f->round++;
    f->member_count = f->ready_count = f->concerned_count = 0;
    f->least_cap = INT64_MAX;
    for (int i = 0; i < f->dirty_count; i++)
        begin_at(f, f->dirty[i]);
    f->dirty_count = 0;
}

static void look(const NetFlows *f, Concerned *c)
{
    c->seen = true;
    c->members = 0;
    c->taken = c->other_most = 0;
    c->other_held = INFINITY;
    for (int32_t entry = f->links[c->link].head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->mark == f->round) {
            c->members++;
            continue;
        }
        c->taken += flow->rate;
        c->other_most = MAX(c->other_most, flow->rate);
        if (flow->held_by == c->link)
            c->other_held = MIN(c->other_held, flow->rate);
    }
}

/* The place of a crowded link among those concerned; whoever asks is a new member on it. */
static int32_t place_of(NetFlows *f, int32_t l)
{
    Link *link = &f->links[l];
    if (link->mark != f->round) {
        link->mark = f->round;
        link->place = f->concerned_count++;
        f->concerned[link->place] = (Concerned){.capacity = (double)link->capacity, .link = l, .head = -1};
    }
    f->concerned[link->place].seen = false;
    return link->place;
}

/* The ways of a new member. */
static void ready(NetFlows *f, int32_t member)
{
    const int32_t slot = f->members[member], *path = f->path + ((size_t)slot << f->shift);
    const Flow *flow = &f->flows[slot];
    int32_t way = (int32_t)((size_t)member << f->shift);
    const int32_t first = way;
    f->least_cap = MIN(f->least_cap, flow->cap);
    for (int h = 0; h < flow->hops; h++) {
        if (!f->crowded[path[h]])
            continue;
        const int32_t place = place_of(f, path[h]);
        f->ways[way] = place;
        f->next_way[way] = f->concerned[place].head;
        f->concerned[place].head = way++;
    }
    f->way_count[member] = (uint8_t)(way - first);
}

static void prepare(NetFlows *f)
{
    for (; f->ready_count < f->member_count; f->ready_count++)
        ready(f, f->ready_count);
    f->loose_count = f->member_count;
    for (int i = 0; i < f->member_count; i++)
        f->flows[f->members[i]].frozen = false;
    for (int i = 0; i < f->concerned_count; i++) {
        Concerned *c = &f->concerned[i];
        if (!c->seen)
            look(f, c);
        c->loose = c->members;
        c->level = INFINITY;
        c->given = c->most = 0;
        c->left = c->capacity - c->taken;
        f->share[i] = MAX(c->left, 0) / c->loose;
    }
}

static void freeze(NetFlows *f, int32_t member, double rate, int32_t held_by)
{
    Flow *flow = &f->flows[f->members[member]];
    const int32_t *way = f->ways + ((size_t)member << f->shift);
    f->loose_count--;
    flow->frozen = true;
    flow->fresh = rate;
    flow->held_by = held_by;
    for (int w = 0; w < f->way_count[member]; w++) {
        Concerned *c = &f->concerned[way[w]];
        c->left -= rate;
        c->given += rate;
        c->most = MAX(c->most, rate);
        f->share[way[w]] = --c->loose > 0 ? MAX(c->left, 0) / c->loose : INFINITY;
    }
}

/* The least that a link gives each of its members that are not frozen. */
static double least_share(const NetFlows *f)
{
    double least[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    int i = 0;
    for (; i + 4 <= f->concerned_count; i += 4)
        for (int k = 0; k < 4; k++)
            least[k] = f->share[i + k] < least[k] ? f->share[i + k] : least[k];
    for (; i < f->concerned_count; i++)
        least[0] = MIN(least[0], f->share[i]);
    return MIN(MIN(least[0], least[1]), MIN(least[2], least[3]));
}

/* Members whose own slowest link gives them no more than `share`. */
static bool freeze_capped(NetFlows *f, double share)
{
    const int before = f->loose_count;
    for (int i = 0; (double)f->least_cap <= share && i < f->member_count; i++) {
        const Flow *flow = &f->flows[f->members[i]];
        if (!flow->frozen && (double)flow->cap <= share)
            freeze(f, i, (double)flow->cap, -1);
    }
    return f->loose_count < before;
}

/* Members of all links that give no more than `share` each; ties are one level. */
static void freeze_tightest(NetFlows *f, double share)
{
    const double level = share * (1 + 1e-12), rate = MAX(share, 1e-3);
    for (int i = 0; i < f->concerned_count; i++) {
        if (!(f->share[i] <= level))
            continue;
        Concerned *c = &f->concerned[i];
        c->level = MIN(c->level, rate);
        for (int32_t way = c->head; way >= 0; way = f->next_way[way]) {
            const int32_t member = way >> f->shift;
            if (!f->flows[f->members[member]].frozen)
                freeze(f, member, rate, c->link);
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

/* Others on a link of theirs that now get more than a member that it holds back, or are held by it though it has room or
 * gives a member more. */
static void grow_at(NetFlows *f, const Concerned *c)
{
    const bool full = c->taken + c->given >= c->capacity * (1 - SAME);
    const double above = c->level * (1 + SAME), most = full ? c->most : INFINITY;
    if (c->other_most <= above && !(most > c->other_held * (1 + SAME)))
        return;
    for (int32_t entry = f->links[c->link].head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->mark != f->round &&
            (flow->rate > above || (flow->held_by == c->link && most > flow->rate * (1 + SAME))))
            join(f, entry >> f->shift);
    }
}

static bool grow(NetFlows *f)
{
    const int before = f->member_count;
    for (int i = 0; i < f->concerned_count; i++)
        grow_at(f, &f->concerned[i]);
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
