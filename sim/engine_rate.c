/* sim/engine_rate.c - how fast running ops progress when they share SMs or a link. */
#include "sim/engine_internal.h"

/* Communication that runs takes SMs from these: compute-stream ops that are not on a link themselves. */
static bool slows_beside_comm(const Slot *slot, const WorkInfo *work)
{
    return slot->stream == SIM_STREAM_COMPUTE && work->link == SIM_LINK_NONE;
}

static void mark_rank(Engine *e, Rank *rank)
{
    if (rank->dirty)
        return;
    rank->dirty = true;
    e->dirty_ranks[e->dirty_rank_count++] = (int32_t)(rank - e->ranks);
}

static void mark_collective(Engine *e, int32_t index)
{
    if (e->collectives[index].dirty)
        return;
    e->collectives[index].dirty = true;
    e->dirty_collectives[e->dirty_collective_count++] = index;
}

bool sim_rate_enter(Engine *e, Slot *slot, const WorkInfo *work)
{
    Rank *rank = &e->ranks[slot->rank];
    bool unsettled = false;
    if (slows_beside_comm(slot, work)) {
        rank->computing = true;
        unsettled = rank->sm_share > 0;
    } else if (work->sm_share > 0 && slot->stream != SIM_STREAM_COMPUTE) {
        rank->sm_share += work->sm_share;
        if (rank->computing)
            mark_rank(e, rank);
    }
    if (work->link != SIM_LINK_NONE) {
        rank->demand[work->link] += work->link_demand;
        unsettled |= rank->demand[work->link] > SIM_FULL_RATE;
    }
    if (unsettled)
        mark_rank(e, rank);
    return unsettled;
}

void sim_rate_leave(Engine *e, Slot *slot, const WorkInfo *work)
{
    Rank *rank = &e->ranks[slot->rank];
    slot->charged = false;
    if (slows_beside_comm(slot, work)) {
        rank->computing = false;
    } else if (work->sm_share > 0 && slot->stream != SIM_STREAM_COMPUTE) {
        rank->sm_share -= work->sm_share;
        if (rank->computing)
            mark_rank(e, rank);
    }
    if (work->link != SIM_LINK_NONE) {
        if (rank->demand[work->link] > SIM_FULL_RATE)
            mark_rank(e, rank);
        rank->demand[work->link] -= work->link_demand;
    }
}

/* Max-min fair: the link's capacity is dealt out in equal parts; who needs less than a part leaves the
 * rest to the others. Gives the rate of an op of demand `own` among `count` demands.
 *
 *   level = the least L with sum(min(demand_i, L)) = capacity;   rate = min(1, L / own)
 */
static int fair_rate(const uint32_t *demands, int count, uint32_t own)
{
    uint32_t capacity = SIM_FULL_RATE;
    bool dealt[SIM_STREAM_COUNT] = {false};
    int left = count;
    for (bool changed = true; changed && left > 0;) {
        changed = false;
        uint32_t capacity_before = capacity;
        int left_before = left;
        for (int i = 0; i < count; i++) {
            if (!dealt[i] && demands[i] * (uint32_t)left_before <= capacity_before) {
                dealt[i] = changed = true;
                capacity -= demands[i];
                left--;
            }
        }
    }
    if (left == 0 || own * (uint32_t)left <= capacity)
        return SIM_FULL_RATE;
    int rate = (int)(capacity * SIM_FULL_RATE / ((uint32_t)left * own));
    return MAX(rate, 1);
}

static int rate_of(const Engine *e, const Rank *rank, const Slot *slot)
{
    const WorkInfo *work = sim_slot_work(e, slot);
    if (slows_beside_comm(slot, work))
        return rank->sm_share < SIM_FULL_RATE ? SIM_FULL_RATE - (int)rank->sm_share : 1;
    if (work->link == SIM_LINK_NONE || rank->demand[work->link] <= SIM_FULL_RATE)
        return SIM_FULL_RATE;
    uint32_t demands[SIM_STREAM_COUNT];
    int count = 0;
    for (int i = 0; i < rank->slot_count; i++) {
        const Slot *other = &e->slots[rank->first_slot + i];
        if (other->state == SLOT_RUNNING && other->charged && sim_slot_work(e, other)->link == work->link)
            demands[count++] = sim_slot_work(e, other)->link_demand;
    }
    return fair_rate(demands, count, work->link_demand);
}

void sim_push_end(Engine *e, int32_t event, int64_t remaining, int rate)
{
    int64_t wait_ps = remaining / rate + (remaining % rate != 0);
    if (wait_ps > INT64_MAX - e->now_ps)
        e->clock_full = true;
    else
        sim_eventq_push(e->queue, event, e->now_ps + wait_ps);
}

static void change_rate(Engine *e, int32_t event, int rate, uint16_t *old_rate, int64_t *remaining,
                        int64_t *update_ps)
{
    if (rate == *old_rate)
        return;
    *remaining -= (e->now_ps - *update_ps) * *old_rate;
    *update_ps = e->now_ps;
    *old_rate = (uint16_t)rate;
    sim_eventq_remove(e->queue, event);
    sim_push_end(e, event, *remaining, rate);
}

static void settle_rank(Engine *e, Rank *rank)
{
    for (int i = 0; i < rank->slot_count; i++) {
        int32_t index = rank->first_slot + i;
        Slot *slot = &e->slots[index];
        if (slot->state != SLOT_RUNNING || !slot->charged)
            continue;
        int rate = rate_of(e, rank, slot);
        if (slot->collective == SIM_NONE) {
            change_rate(e, index, rate, &slot->rate, &slot->remaining, &slot->update_ps);
        } else if (rate != slot->rate || e->collectives[slot->collective].rate == 0) {
            slot->rate = (uint16_t)rate;
            mark_collective(e, slot->collective);
        }
    }
}

/* A collective is as slow as its slowest member. */
static void settle_collective(Engine *e, int32_t index)
{
    Collective *collective = &e->collectives[index];
    int rate = SIM_FULL_RATE;
    for (int32_t i = 0; i < collective->member_count; i++)
        rate = MIN(rate, e->slots[e->members[collective->first_member + i]].rate);
    change_rate(e, e->slot_count + index, rate, &collective->rate, &collective->remaining,
                &collective->update_ps);
}

void sim_rate_settle(Engine *e)
{
    for (int32_t i = 0; i < e->dirty_rank_count; i++) {
        Rank *rank = &e->ranks[e->dirty_ranks[i]];
        settle_rank(e, rank);
        rank->dirty = false;
    }
    e->dirty_rank_count = 0;
    for (int32_t i = 0; i < e->dirty_collective_count; i++) {
        settle_collective(e, e->dirty_collectives[i]);
        e->collectives[e->dirty_collectives[i]].dirty = false;
    }
    e->dirty_collective_count = 0;
}
