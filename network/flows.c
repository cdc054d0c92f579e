/* network/flows.c - flows in time: they begin, keep the rates that filling gives them, and end. */
#include "base/prefetch.h"
#include "network/flows.h"

#include <math.h>
#include <string.h>

#include "network/flows_state.h"

/* Whole lines of the cache. */
static void *lines(OrrArena *arena, size_t line, size_t count)
{
    const uintptr_t start = (uintptr_t)orr_arena_alloc(arena, line * (count + 1));
    return (void *)((start + line - 1) / line * line);
}

static void new_slots(NetFlows *f, int32_t slots)
{
    OrrArena *arena = f->arena;
    const size_t entries = (size_t)slots << f->shift;
    f->flows = lines(arena, sizeof(NetFlow), (size_t)slots);
    f->shares = lines(arena, sizeof(NetShare), (size_t)slots);
    f->hop_count = ORR_ARENA_NEW(arena, uint8_t, slots);
    f->path = ORR_ARENA_NEW(arena, int32_t, entries);
    f->position = ORR_ARENA_NEW(arena, int32_t, entries);
    f->newcomers = ORR_ARENA_NEW(arena, int32_t, slots);
    f->members = ORR_ARENA_NEW(arena, int32_t, slots);
    f->loose = ORR_ARENA_NEW(arena, int32_t, slots);
    f->above = ORR_ARENA_NEW(arena, int32_t, slots);
    f->ways = ORR_ARENA_NEW(arena, int32_t, entries);
    f->way_count = ORR_ARENA_NEW(arena, uint8_t, slots);
}

static void new_links(NetFlows *f)
{
    const int links = f->topology->link_count;
    int64_t most = 1;
    f->links = lines(f->arena, sizeof(NetFlowLink), (size_t)links);
    f->given = lines(f->arena, sizeof(NetGiven), (size_t)links);
    f->dirty = ORR_ARENA_NEW(f->arena, int32_t, links);
    f->eased = ORR_ARENA_NEW(f->arena, bool, links);
    f->capacity = ORR_ARENA_NEW(f->arena, double, links);
    f->crowded = ORR_ARENA_NEW(f->arena, uint64_t, links / 64 + 1);
    const int blocks = links / NET_BLOCK + 1;
    f->concerned = ORR_ARENA_NEW(f->arena, int32_t, links + 1);
    f->next_level = ORR_ARENA_NEW(f->arena, double, blocks *NET_BLOCK);
    f->least = ORR_ARENA_NEW(f->arena, double, blocks);
    for (int l = 0; l < links; l++) {
        const int64_t capacity = f->topology->links[l].bytes_per_s;
        f->capacity[l] = (double)capacity;
        f->links[l] = (NetFlowLink){.spare = capacity, .room = 1};
        f->given[l] = (NetGiven){.held = INFINITY, .full = (float)((double)capacity * NET_SAME)};
        most = MAX(most, capacity);
    }
    f->quantum = ldexp(1, ilogb((double)most) + 1 - 52);
}

NetFlows *net_flows_new(const NetTopology *topology, int32_t slots, int hops, OrrArena *arena)
{
    NetFlows *f = ORR_ARENA_NEW(arena, NetFlows, 1);
    while (1 << f->shift < hops)
        f->shift++;
    f->topology = topology;
    f->arena = arena;
    f->hops = hops;
    f->queue = sim_eventq_new(arena, slots);
    new_slots(f, slots);
    new_links(f);
    return f;
}

const int32_t *net_flows_on(NetFlows *f)
{
    if (f->on == NULL)
        f->on = ORR_ARENA_NEW(f->arena, int32_t, f->topology->link_count);
    return f->on;
}

int64_t net_flows_carried(const NetFlows *flows, int32_t link)
{
    return flows->links[link].carried;
}

void net_flows_carry(NetFlows *flows, const int32_t *links, int hops, int64_t bytes)
{
    for (int h = 0; h < hops; h++)
        flows->links[links[h]].carried += bytes;
}

int64_t net_flows_shared(const NetFlows *flows)
{
    return flows->shared;
}

int64_t net_transfer_ps(double bytes, double bytes_per_s)
{
    const double exact = MIN(bytes / bytes_per_s * 1e12, (double)NET_LONGEST_PS);
    const int64_t below = (int64_t)exact; /* not negative */
    return below + (exact - (double)below >= 0.5);
}

void net_flows_start(NetFlows *f, int32_t slot, const int32_t *links, int hops, int64_t bytes,
                     int64_t latency_ps)
{
    NetFlow *flow = &f->flows[slot];
    int32_t *path = f->path + ((size_t)slot << f->shift);
    g_assert(flow->state == NET_FREE && hops <= f->hops);
    flow->state = NET_WAITING;
    flow->bytes = bytes;
    f->hop_count[slot] = (uint8_t)(bytes > 0 ? hops : 0);
    for (int h = 0; h < f->hop_count[slot]; h++) {
        path[h] = links[h];
        if (f->on != NULL)
            f->on[links[h]]++;
    }
    sim_eventq_push(f->queue, slot, f->now_ps + latency_ps);
}

/* A link on which nobody is in anybody's way, neither before nor now, changes no rate. */
static void soil(NetFlows *f, int32_t l)
{
    NetFlowLink *link = &f->links[l];
    if (!link->dirty && (link->spare < 0 || net_flows_crowded(f, l))) {
        link->dirty = true;
        f->dirty[f->dirty_count++] = l;
    }
}

static void more_room(NetFlows *f, NetFlowLink *link)
{
    int32_t *more = ORR_ARENA_NEW(f->arena, int32_t, 2 << link->room);
    memcpy(more, net_flows_entries(link), sizeof(int32_t) * (size_t)link->count);
    link->of.many = more;
    link->room++;
}

static void add_entry(NetFlows *f, NetFlowLink *link, int32_t entry)
{
    if (link->count == 1 << link->room)
        more_room(f, link);
    f->position[entry] = link->count;
    net_flows_entries(link)[link->count++] = entry;
}

static void drop_entry(NetFlows *f, NetFlowLink *link, int32_t entry)
{
    int32_t *entries = net_flows_entries(link);
    const int32_t last = entries[--link->count], place = f->position[entry];
    entries[place] = last;
    f->position[last] = place;
}

static void enter(NetFlows *f, int32_t slot)
{
    NetFlow *flow = &f->flows[slot];
    const size_t base = (size_t)slot << f->shift;
    const int hops = f->hop_count[slot];
    double cap = INFINITY;
    for (int h = 0; h < hops; h++)
        cap = MIN(cap, f->capacity[f->path[base + (size_t)h]]);
    flow->state = NET_MOVING;
    flow->left_bytes = (double)flow->bytes;
    flow->since_ps = f->now_ps;
    f->shares[slot] = (NetShare){.cap = cap, .held_by = -1};
    f->newcomers[f->newcomer_count++] = slot;
    for (int h = 0; h < hops; h++) {
        const int32_t entry = (int32_t)(base + (size_t)h), l = f->path[entry];
        NetFlowLink *link = &f->links[l];
        add_entry(f, link, entry);
        link->spare -= (int64_t)cap;
        link->carried += flow->bytes;
        soil(f, l);
    }
}

static void leave(NetFlows *f, int32_t slot)
{
    const NetShare *share = &f->shares[slot];
    const size_t base = (size_t)slot << f->shift;
    const int hops = f->hop_count[slot];
    net_flows_let_go(f, share);
    for (int h = 0; h < hops; h++) {
        const int32_t entry = (int32_t)(base + (size_t)h), l = f->path[entry];
        NetFlowLink *link = &f->links[l];
        drop_entry(f, link, entry);
        link->spare += (int64_t)share->cap;
        if (net_flows_crowded(f, l))
            f->given[l].left += share->rate;
        if (f->on != NULL)
            f->on[l]--;
        soil(f, l);
    }
}

static void queue(NetFlows *f, int32_t slot)
{
    f->flows[slot].queued_ps = f->flows[slot].end_ps;
    sim_eventq_push(f->queue, slot, f->flows[slot].end_ps);
}

/* A flow that will end later than its event keeps that: it is queued anew when the event comes. */
static void set_rate(NetFlows *f, int32_t slot)
{
    NetFlow *flow = &f->flows[slot];
    NetShare *share = &f->shares[slot];
    const bool first = share->rate <= 0;
    if (fabs(share->fresh - share->rate) <= 1e-12 * share->fresh) {
        share->fresh = share->rate;
        return;
    }
    flow->left_bytes -= share->rate * ((double)(f->now_ps - flow->since_ps) * 1e-12);
    flow->left_bytes = MAX(flow->left_bytes, 0);
    flow->since_ps = f->now_ps;
    share->rate = share->fresh;
    flow->end_ps = f->now_ps + net_transfer_ps(flow->left_bytes, share->rate);
    if (!first && flow->end_ps >= flow->queued_ps)
        return;
    if (!first)
        sim_eventq_remove(f->queue, slot);
    queue(f, slot);
}

static void settle(NetFlows *f)
{
    net_flows_fill(f);
    f->shared += f->concerned_count > 0;
    for (int i = 0; i < f->member_count; i++)
        set_rate(f, f->members[i]);
}

/* An event of this instant; true: a flow ended. */
static bool happen(NetFlows *f, int32_t slot)
{
    NetFlow *flow = &f->flows[slot];
    if (flow->state == NET_WAITING && f->hop_count[slot] > 0) {
        enter(f, slot);
        return false;
    }
    if (flow->state == NET_MOVING && flow->end_ps > f->now_ps) {
        queue(f, slot);
        return false;
    }
    if (flow->state == NET_MOVING)
        leave(f, slot);
    flow->state = NET_FREE;
    return true;
}

/* What the next events will read. */
static void fetch_ahead(const NetFlows *f)
{
    const int32_t later = sim_eventq_ahead(f->queue, 3), next = sim_eventq_ahead(f->queue, 1);
    if (later >= 0) {
        orr_prefetch(&f->flows[later]);
        orr_prefetch(&f->path[(size_t)later << f->shift]);
    }
    for (int h = 0; next >= 0 && h < f->hop_count[next]; h++)
        orr_prefetch(&f->links[f->path[((size_t)next << f->shift) + (size_t)h]]);
}

bool net_flows_next(NetFlows *f, int64_t *ret_time_ps, int32_t *ret_slot)
{
    int32_t slot = 0;
    for (;;) {
        if (!sim_eventq_pop_at(f->queue, f->now_ps, &slot)) {
            if (f->dirty_count + f->newcomer_count > 0)
                settle(f);
            if (!sim_eventq_pop(f->queue, &f->now_ps, &slot))
                return false;
            fetch_ahead(f);
        }
        if (happen(f, slot)) {
            *ret_time_ps = f->now_ps;
            *ret_slot = slot;
            return true;
        }
    }
}
