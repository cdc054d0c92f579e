/* sim/engine_rate.c - a change of rate moves an op's end; what is to be settled is noted. */
#include "sim/engine_rate.h"

void sim_mark_instance(Engine *e, int32_t index)
{
    if (e->instances[index].dirty)
        return;
    e->instances[index].dirty = true;
    e->dirty[e->dirty_count++] = index;
}

void sim_list_hold(Engine *e, int32_t slot, int32_t share, int32_t instance, int *listed)
{
    const int32_t at = e->slot_first_hold[slot] + (*listed)++;
    Instance *of = &e->instances[instance];
    e->holds[at] = (Hold){.next = of->first_hold, .prev = SIM_NONE, .slot = slot, .share = share};
    if (of->first_hold != SIM_NONE)
        e->holds[of->first_hold].prev = at;
    of->first_hold = at;
}

void sim_unlist_hold(Engine *e, int32_t slot, int32_t instance, int *listed)
{
    const Hold *hold = &e->holds[e->slot_first_hold[slot] + (*listed)++];
    if (hold->prev == SIM_NONE)
        e->instances[instance].first_hold = hold->next;
    else
        e->holds[hold->prev].next = hold->next;
    if (hold->next != SIM_NONE)
        e->holds[hold->next].prev = hold->prev;
}

/* left -= elapsed x rate, exactly. */
static void progress(Progress *p, int64_t now_ps, int32_t rate)
{
    const int64_t elapsed_ps = now_ps - p->update_ps;
    const int64_t low = (elapsed_ps % SIM_FULL_RATE) * rate;
    p->left_ps -= elapsed_ps / SIM_FULL_RATE * rate + low / SIM_FULL_RATE;
    p->left_frac -= (int32_t)(low % SIM_FULL_RATE);
    if (p->left_frac < 0) {
        p->left_frac += SIM_FULL_RATE;
        p->left_ps--;
    }
    p->update_ps = now_ps;
}

/* Time for what is left at `rate`, rounded up; INT64_MAX: more than the clock holds. */
static int64_t wait_of(const Progress *p, int32_t rate)
{
    const int64_t whole = p->left_ps / rate;
    const int64_t rest =
        p->left_ps % rate * SIM_FULL_RATE + p->left_frac; /* below rate x SIM_FULL_RATE + it */
    if (whole > INT64_MAX / SIM_FULL_RATE - 2)
        return INT64_MAX;
    return whole * SIM_FULL_RATE + rest / rate + (rest % rate != 0);
}

static void record_rate(Engine *e, int32_t slot, int32_t rate)
{
    SimResult *result = &e->result;
    if (result->rate_count == e->rate_capacity) {
        e->rate_capacity = MAX(1024, 2 * e->rate_capacity);
        SimRateChange *more = ORR_ARENA_NEW(e->arena, SimRateChange, e->rate_capacity);
        for (int64_t i = 0; i < result->rate_count; i++)
            more[i] = result->rates[i];
        result->rates = more;
    }
    result->rates[result->rate_count++] = (SimRateChange){
        .time_ps = e->now_ps, .rank = e->slots[slot].rank, .rate = rate, .stream = e->slots[slot].stream};
}

static void record_rates(Engine *e, int32_t event, int32_t rate)
{
    if (event < e->slot_count) {
        record_rate(e, event, rate);
        return;
    }
    const Collective *collective = &e->collectives[event - e->slot_count];
    for (int32_t i = 0; i < collective->member_count; i++)
        record_rate(e, e->members[collective->first_member + i], rate);
}

/* Since when the op has run, and whether its rate was another than full. */
static int64_t start_of(Engine *e, int32_t event, bool **ret_rated)
{
    if (event < e->slot_count) {
        *ret_rated = &e->slots[event].rated;
        return e->slots[event].since_ps;
    }
    Collective *collective = &e->collectives[event - e->slot_count];
    *ret_rated = &collective->rated;
    return collective->start_ps;
}

static int64_t duration_of(const Engine *e, int32_t event)
{
    if (event >= e->slot_count)
        return e->collectives[event - e->slot_count].duration_ps;
    const Slot *slot = &e->slots[event];
    return sim_duration_on_ps(e, slot, sim_slot_op(e, slot));
}

void sim_rate_change(Engine *e, int32_t event, int32_t rate)
{
    bool *rated;
    const int64_t start_ps = start_of(e, event, &rated);
    Progress *p = &e->progress[event];
    const int32_t before = *rated ? p->rate : SIM_FULL_RATE;
    const bool begins = before == 0 && start_ps == e->now_ps;
    if ((e->record & SIM_RECORD_SPANS) && (begins ? rate != SIM_FULL_RATE : rate != before))
        record_rates(e, event, rate);
    if (rate == before)
        return;
    if (*rated)
        progress(p, e->now_ps, before);
    else
        *p = (Progress){.update_ps = e->now_ps, .left_ps = duration_of(e, event) - (e->now_ps - start_ps)};
    p->rate = rate;
    *rated = true;
    sim_eventq_remove(e->queue, event);
    if (rate == 0)
        return;
    const int64_t wait_ps = wait_of(p, rate);
    if (wait_ps > INT64_MAX - e->now_ps)
        e->clock_full = true;
    else
        sim_eventq_push(e->queue, event, e->now_ps + wait_ps);
}
