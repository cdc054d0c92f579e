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

/* A crowded link that changed or is on the way of a member, while settling: what those that are settled leave of it and
 * how many members share that; of the flows that stand, the highest rate, and the least of those that this link holds.
 * Few and side by side, so that filling stays in the nearest cache. */
typedef struct Concerned {
    double capacity, left, other_most, other_held;
    int32_t loose, link;
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
    bool *eased;              /* [dirty] it was crowded and is not any more */
    int32_t *dirty, *members; /* links changed; flows concerned */
    int dirty_count, member_count, concerned_count, unseen_count;
    Concerned *concerned; /* crowded links that matter */
    double *next_level;   /* [concerned] rate at which something happens on a link; INFINITY: nothing does */
    int32_t *unseen;      /* places of those that are to be read */
    int32_t *ways,
        *next_way;      /* [members x hops] places of a member's crowded links; others on the same link */
    uint8_t *way_count; /* [members] */
    int64_t least_cap;  /* of all members that are not frozen */
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
    f->eased = ORR_ARENA_NEW(arena, bool, topology->link_count);
    f->concerned = ORR_ARENA_NEW(arena, Concerned, topology->link_count);
    f->next_level = ORR_ARENA_NEW(arena, double, topology->link_count);
    f->unseen = ORR_ARENA_NEW(arena, int32_t, topology->link_count);
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

/* --- settling: newcomers are filled beside the others, whose rates stand, from the lowest rate up. At each rate two
 * things may happen on a crowded link. It is full: its members get no more, and others that get more than that join them
 * first. Or it has more left than others have whom it holds: these join. Whoever joins had at least the rate that filling
 * is at, so that what is settled below stands, and every flow joins and is frozen once at most. In the end every flow is
 * held by a link that is full and gives no flow more, which is what max-min fair means. --- */

#define SAME 1e-9 /* rates that differ by less are one */

/* The place of a crowded link among those concerned, to be read (again). */
static int32_t place_of(NetFlows *f, int32_t l)
{
    Link *link = &f->links[l];
    if (link->mark != f->round) {
        link->mark = f->round;
        link->place = f->concerned_count++;
        f->concerned[link->place] =
            (Concerned){.capacity = (double)link->capacity, .link = l, .head = -1, .seen = true};
    }
    Concerned *c = &f->concerned[link->place];
    if (c->seen)
        f->unseen[f->unseen_count++] = link->place;
    c->seen = false;
    return link->place;
}

/* A flow becomes a member, not frozen. */
static void join(NetFlows *f, int32_t slot)
{
    Flow *flow = &f->flows[slot];
    if (flow->mark == f->round)
        return;
    const int32_t *path = f->path + ((size_t)slot << f->shift), member = f->member_count++;
    const int32_t first = (int32_t)((size_t)member << f->shift);
    int32_t way = first;
    flow->mark = f->round;
    flow->frozen = false;
    f->members[member] = slot;
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

/* Flows of a link that changed: newcomers, and whom it held where it can no longer hold anyone. */
static void begin_at(NetFlows *f, int32_t l, bool eased)
{
    Link *link = &f->links[l];
    link->dirty = false;
    for (int32_t entry = link->head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->rate <= 0 || (eased && flow->held_by == l))
            join(f, entry >> f->shift);
    }
    if (f->crowded[l])
        place_of(f, l);
}

static void begin(NetFlows *f)
{
    f->round++;
    f->member_count = f->concerned_count = f->unseen_count = 0;
    f->least_cap = INT64_MAX;
    for (int i = 0; i < f->dirty_count; i++) {
        const Link *link = &f->links[f->dirty[i]];
        f->eased[i] = f->crowded[f->dirty[i]] && link->demand <= link->capacity;
        f->crowded[f->dirty[i]] = link->demand > link->capacity;
    }
    for (int i = 0; i < f->dirty_count; i++)
        begin_at(f, f->dirty[i], f->eased[i]);
    f->dirty_count = 0;
}

/* The rate at which something happens on a link: it is full, or others that it holds may have more. */
static double level_of(const Concerned *c)
{
    double full = INFINITY;
    if (c->loose > 0)
        full = MAX(c->left, 0) / c->loose;
    else if (c->left <= c->capacity * SAME)
        return INFINITY;
    return full > c->other_held * (1 + SAME) ? c->other_held : full;
}

static void look(const NetFlows *f, Concerned *c)
{
    double taken = 0;
    c->seen = true;
    c->loose = 0;
    c->other_most = 0;
    c->other_held = INFINITY;
    for (int32_t entry = f->links[c->link].head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->mark == f->round) {
            c->loose += !flow->frozen;
            taken += flow->frozen ? flow->fresh : 0;
            continue;
        }
        taken += flow->rate;
        c->other_most = MAX(c->other_most, flow->rate);
        if (flow->held_by == c->link)
            c->other_held = MIN(c->other_held, flow->rate);
    }
    c->left = c->capacity - taken;
}

static void look_at_unseen(NetFlows *f)
{
    for (int i = 0; i < f->unseen_count; i++) {
        Concerned *c = &f->concerned[f->unseen[i]];
        look(f, c);
        f->next_level[f->unseen[i]] = level_of(c);
    }
    f->unseen_count = 0;
}

static void freeze(NetFlows *f, int32_t member, double rate, int32_t held_by)
{
    Flow *flow = &f->flows[f->members[member]];
    const int32_t *way = f->ways + ((size_t)member << f->shift);
    flow->frozen = true;
    flow->fresh = rate;
    flow->held_by = held_by;
    for (int w = 0; w < f->way_count[member]; w++) {
        Concerned *c = &f->concerned[way[w]];
        c->left -= rate;
        c->loose--;
        f->next_level[way[w]] = level_of(c);
    }
}

static double least_level(const NetFlows *f)
{
    double least[4] = {INFINITY, INFINITY, INFINITY, INFINITY};
    int i = 0;
    for (; i + 4 <= f->concerned_count; i += 4)
        for (int k = 0; k < 4; k++)
            least[k] = least[k] < f->next_level[i + k] ? least[k] : f->next_level[i + k];
    for (; i < f->concerned_count; i++)
        least[0] = MIN(least[0], f->next_level[i]);
    return MIN(MIN(least[0], least[1]), MIN(least[2], least[3]));
}

/* Members whose own slowest link gives them no more than `level`. */
static bool freeze_capped(NetFlows *f, double level)
{
    if (f->least_cap == INT64_MAX || (double)f->least_cap > level)
        return false;
    f->least_cap = INT64_MAX;
    bool any = false;
    for (int i = 0; i < f->member_count; i++) {
        const Flow *flow = &f->flows[f->members[i]];
        if (flow->frozen)
            continue;
        if ((double)flow->cap <= level)
            any = true, freeze(f, i, (double)flow->cap, -1);
        else
            f->least_cap = MIN(f->least_cap, flow->cap);
    }
    return any;
}

/* What a link gives each of its members and of those others that get more than that. */
static double fair_level(const NetFlows *f, const Concerned *c)
{
    double level = MAX(c->left, 0) / c->loose, before = -1;
    while (level > before * (1 + SAME)) {
        double left = MAX(c->left, 0);
        int loose = c->loose;
        for (int32_t entry = f->links[c->link].head; entry >= 0; entry = f->next[entry]) {
            const Flow *flow = &f->flows[entry >> f->shift];
            if (flow->mark != f->round && flow->rate > level)
                left += flow->rate, loose++;
        }
        before = level;
        level = left / loose;
    }
    return level;
}

/* Others on a link that get at least so much join; of those only whom it holds, if so. */
static void join_above(NetFlows *f, int32_t l, double least, double most, bool held)
{
    for (int32_t entry = f->links[l].head; entry >= 0; entry = f->next[entry]) {
        const Flow *flow = &f->flows[entry >> f->shift];
        if (flow->mark != f->round && flow->rate >= least && flow->rate <= most &&
            (!held || flow->held_by == l))
            join(f, entry >> f->shift);
    }
}

/* What happens on a link at this level. */
static void happen_on(NetFlows *f, Concerned *c, double level)
{
    if (c->loose == 0 || MAX(c->left, 0) / c->loose > c->other_held * (1 + SAME)) {
        join_above(f, c->link, 0, c->other_held * (1 + SAME), true);
        return;
    }
    if (c->other_most > level * (1 + SAME)) {
        join_above(f, c->link, MIN(fair_level(f, c) * (1 + SAME), c->other_most), INFINITY, false);
        return;
    }
    for (int32_t way = c->head; way >= 0; way = f->next_way[way]) {
        const int32_t member = way >> f->shift;
        if (!f->flows[f->members[member]].frozen)
            freeze(f, member, MAX(level, 1e-3), c->link);
    }
}

/* Links at which something happens at the least rate; ties are one level. */
static void fill(NetFlows *f)
{
    for (;;) {
        look_at_unseen(f);
        const double level = least_level(f);
        if (freeze_capped(f, level))
            continue;
        if (level == INFINITY)
            return;
        for (int i = 0; i < f->concerned_count; i++)
            if (f->next_level[i] <= level * (1 + 1e-12) && f->concerned[i].seen)
                happen_on(f, &f->concerned[i], level);
    }
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
    fill(f);
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
