/* sim/engine.c - the loop: streams advance, wait, join; events end ops. */
#include "sim/engine_internal.h"

static void push_ready(Engine *e, int32_t slot)
{
    e->slots[slot].state = SLOT_READY;
    e->slots[slot].link_next = SIM_NONE;
    if (e->ready_first == SIM_NONE)
        e->ready_first = slot;
    else
        e->slots[e->ready_last].link_next = slot;
    e->ready_last = slot;
}

static void wait_for(Engine *e, Slot *slot, Slot *target)
{
    slot->state = SLOT_WAITING;
    slot->link_next = SIM_NONE;
    int32_t *link = &target->first_waiter;
    while (*link != SIM_NONE)
        link = &e->slots[*link].link_next;
    *link = (int32_t)(slot - e->slots);
}

/* One more instruction of `slot` is complete: those that waited for it may go on. */
static void complete_instr(Engine *e, Slot *slot)
{
    slot->pc++;
    int32_t *link = &slot->first_waiter;
    while (*link != SIM_NONE) {
        int32_t index = *link;
        Slot *waiter = &e->slots[index];
        if (waiter->instrs[waiter->pc].wait_index < slot->pc) {
            *link = waiter->link_next;
            push_ready(e, index);
        } else {
            link = &waiter->link_next;
        }
    }
}

/* The op of `slot` starts now; true when its end depends on rates that are not settled yet. */
static bool begin(Engine *e, Slot *slot, const SimInstr *instr, int64_t duration_ps)
{
    slot->state = SLOT_RUNNING;
    slot->start_ps = e->now_ps;
    slot->rate = SIM_FULL_RATE;
    if (!e->ranks[slot->rank].started)
        sim_account_start(e, slot->rank);
    if (instr->mem >= 0)
        sim_account_memory(e, slot->rank, e->program->mems[instr->mem].start_bytes);
    slot->charged = duration_ps > 0;
    return slot->charged && sim_rate_enter(e, slot, &e->works[instr->work]);
}

static void start_op(Engine *e, Slot *slot, const SimInstr *instr)
{
    int64_t duration_ps = e->works[instr->work].duration_ps;
    slot->collective = SIM_NONE;
    slot->update_ps = e->now_ps;
    slot->remaining = duration_ps * SIM_FULL_RATE;
    if (begin(e, slot, instr, duration_ps))
        slot->rate = 0;
    else if (duration_ps <= INT64_MAX - e->now_ps)
        sim_eventq_push(e->queue, (int32_t)(slot - e->slots), e->now_ps + duration_ps);
    else
        e->clock_full = true;
}

static void start_collective(Engine *e, Collective *collective)
{
    collective->arrived = 0;
    collective->start_ps = collective->update_ps = e->now_ps;
    collective->rate = SIM_FULL_RATE;
    bool unsettled = false;
    for (int32_t i = 0; i < collective->member_count; i++) {
        Slot *slot = &e->slots[e->members[collective->first_member + i]];
        unsettled |= begin(e, slot, &slot->instrs[slot->pc], collective->remaining);
    }
    if (unsettled)
        collective->rate = 0;
    else
        sim_push_end(e, e->slot_count + (int32_t)(collective - e->collectives), collective->remaining,
                     SIM_FULL_RATE);
}

/* A collective lasts as long as the longest of its members' works. */
static void join_collective(Engine *e, Slot *slot, const SimInstr *instr)
{
    int32_t first = e->first_collective[instr->group];
    if (first == SIM_NONE) {
        start_op(e, slot, instr);
        return;
    }
    int32_t instance = e->program->groups[instr->group].instance_of_rank[slot->rank];
    g_assert(instance >= 0);
    Collective *collective = &e->collectives[first + instance];
    int64_t remaining = e->works[instr->work].duration_ps * SIM_FULL_RATE;
    if (collective->arrived == 0 || remaining > collective->remaining)
        collective->remaining = remaining;
    slot->state = SLOT_ARRIVED;
    slot->collective = first + instance;
    if (++collective->arrived == collective->member_count)
        start_collective(e, collective);
}

/* Walks on until the stream runs, waits or ends. */
static void advance(Engine *e, Slot *slot)
{
    while (slot->pc < slot->count) {
        const SimInstr *instr = &slot->instrs[slot->pc];
        if (instr->kind == SIM_OP) {
            start_op(e, slot, instr);
            return;
        }
        if (instr->kind == SIM_COLLECTIVE) {
            join_collective(e, slot, instr);
            return;
        }
        int32_t target = sim_wait_target(e, slot, instr);
        g_assert(target != SIM_NONE);
        if (e->slots[target].pc <= instr->wait_index) {
            wait_for(e, slot, &e->slots[target]);
            return;
        }
        complete_instr(e, slot);
    }
    slot->state = SLOT_DONE;
}

static void advance_ready(Engine *e)
{
    while (e->ready_first != SIM_NONE) {
        Slot *slot = &e->slots[e->ready_first];
        e->ready_first = slot->link_next;
        advance(e, slot);
    }
}

/* The op of `slot` ends now. */
static void end_op(Engine *e, Slot *slot)
{
    const SimInstr *instr = &slot->instrs[slot->pc];
    const Rank *rank = &e->ranks[slot->rank];
    SimRankResult *result = &e->result.rank[slot->rank];
    const SimWork *work = &e->program->works[instr->work];
    if (slot->charged)
        sim_rate_leave(e, slot, &e->works[instr->work]);
    if (instr->mem >= 0)
        sim_account_memory(e, slot->rank, e->program->mems[instr->mem].end_bytes);
    result->end_ps = e->now_ps;
    result->scale_up_bytes += work->scale_up_bytes;
    result->scale_out_bytes += work->scale_out_bytes;
    e->result.ops++;
    if (e->record & SIM_RECORD_SPANS)
        sim_account_span(e, slot, instr);
    if (slot->stream == SIM_STREAM_COMPUTE) {
        sim_account_compute(e, slot, instr);
    } else {
        const Slot *first = &e->slots[rank->first_slot];
        if (first->stream != SIM_STREAM_COMPUTE || first->state == SLOT_DONE)
            sim_account_tail(e, slot, instr);
        for (int32_t w = slot->first_waiter; w != SIM_NONE; w = e->slots[w].link_next) {
            if (e->slots[w].stream == SIM_STREAM_COMPUTE)
                sim_account_wait(e, &e->slots[w], slot, instr);
        }
    }
    complete_instr(e, slot);
    advance(e, slot);
}

static void end_event(Engine *e, int32_t event)
{
    if (event < e->slot_count) {
        end_op(e, &e->slots[event]);
    } else {
        const Collective *collective = &e->collectives[event - e->slot_count];
        int32_t first = collective->first_member, count = collective->member_count;
        for (int32_t i = 0; i < count; i++)
            end_op(e, &e->slots[e->members[first + i]]);
    }
    advance_ready(e);
}

static bool all_done(const Engine *e)
{
    for (int32_t i = 0; i < e->slot_count; i++) {
        if (e->slots[i].state != SLOT_DONE)
            return false;
    }
    return true;
}

static bool run(Engine *e, GError **error)
{
    int32_t event;
    for (int32_t i = 0; i < e->slot_count; i++)
        push_ready(e, i);
    advance_ready(e);
    sim_rate_settle(e);
    while (!e->clock_full && sim_eventq_pop(e->queue, &e->now_ps, &event)) {
        do {
            end_event(e, event);
        } while (sim_eventq_pop_at(e->queue, e->now_ps, &event));
        sim_rate_settle(e);
    }
    if (e->clock_full) {
        g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                    "the step lasts longer than the clock can hold (%.0f s)", (double)INT64_MAX * 1e-12);
        return false;
    }
    if (!all_done(e)) {
        sim_engine_explain_deadlock(e, error);
        return false;
    }
    return true;
}

bool sim_engine_run(const SimProgram *program, unsigned record, OrrArena *arena, SimResult *ret_result,
                    GError **error)
{
    Engine engine = {.program = program, .record = record, .arena = arena};
    if (!sim_engine_setup(&engine, error) || !run(&engine, error))
        return false;
    sim_account_finish(&engine);
    *ret_result = engine.result;
    return true;
}
