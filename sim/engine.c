/* sim/engine.c - the loop: streams advance, wait, join; events end ops. */
#include "sim/engine_internal.h"

#define FETCH_AHEAD    12 /* instructions: lists of many streams are more than the hardware looks ahead in */
#define FETCH_INSTANTS 8

static inline void push_ready(Engine *e, int32_t slot)
{
    e->slots[slot].op.state = SLOT_READY;
    e->slots[slot].link_next = SIM_NONE;
    if (e->ready_first == SIM_NONE)
        e->ready_first = slot;
    else
        e->slots[e->ready_last].link_next = slot;
    e->ready_last = slot;
}

static inline void wait_for(Engine *e, int32_t index, Slot *target)
{
    e->slots[index].op.state = SLOT_WAITING;
    e->slots[index].link_next = SIM_NONE;
    int32_t *link = &target->first_waiter;
    while (*link != SIM_NONE)
        link = &e->slots[*link].link_next;
    *link = index;
}

/* One more instruction of `slot` is complete: those that waited for it may go on. */
static inline void complete_instr(Engine *e, Slot *slot)
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

/* Puts the end of an op that runs at full rate into the queue. */
static inline void push_full(Engine *e, int32_t event, int64_t duration_ps)
{
    if (duration_ps <= INT64_MAX - e->now_ps)
        sim_eventq_push(e->queue, event, e->now_ps + duration_ps);
    else
        e->clock_full = true;
}

/* The op of `slot` starts now; true when its end depends on rates that are not settled yet. */
static inline bool begin(Engine *e, int32_t index, Slot *slot, const SimInstr *instr, const WorkInfo *work,
                         int64_t duration_ps)
{
    slot->op.state = SLOT_RUNNING;
    slot->op.start_ps = e->now_ps;
    slot->work = instr->work;
    slot->mem = instr->mem;
    Rank *rank = &e->ranks[slot->rank];
    if (!rank->started)
        sim_account_start(e, slot->rank);
    if (slot->op.stream == SIM_STREAM_COMPUTE && !rank->computed) {
        rank->computed = true;
        e->result.rank[slot->rank].first_start_ps = e->now_ps;
    }
    if (instr->mem >= 0)
        sim_account_memory(e, slot->rank, instr->mem, false);
    slot->op.holds = duration_ps > 0 && work->share_count > 0;
    return slot->op.holds && sim_rate_enter(e, index, slot->rank, work);
}

/* How long the op of `slot` takes at full rate on its rank. */
static inline int64_t own_duration_ps(const Engine *e, const Slot *slot, const WorkInfo *work)
{
    if (e->program->rank_speed == NULL || !e->runs_kernels[slot->op.stream])
        return work->duration_ps;
    return sim_duration_at_speed_ps(work->duration_ps, work->compute_ps, e->program->rank_speed[slot->rank]);
}

/* Rates of the op wait for the instant to be over. */
static inline void leave_unsettled(Engine *e, int32_t event, Op *op)
{
    op->rate = 0;
    op->rated = true;
    e->progress[event] = (Progress){.update_ps = e->now_ps, .left_ps = op->duration_ps};
}

static inline void start_op(Engine *e, int32_t index, Slot *slot, const SimInstr *instr)
{
    const WorkInfo *work = &e->works[instr->work];
    const int64_t duration_ps = own_duration_ps(e, slot, work);
    slot->collective = SIM_NONE;
    slot->op.duration_ps = duration_ps;
    slot->op.rate = SIM_FULL_RATE;
    slot->op.rated = false;
    if (begin(e, index, slot, instr, work, duration_ps))
        leave_unsettled(e, index, &slot->op);
    else
        push_full(e, index, duration_ps);
}

static void start_collective(Engine *e, Collective *collective)
{
    const int32_t event = e->slot_count + (int32_t)(collective - e->collectives);
    Op *op = &collective->op;
    collective->arrived = 0;
    op->start_ps = e->now_ps;
    op->rate = SIM_FULL_RATE;
    op->rated = false;
    bool unsettled = false;
    for (int32_t i = 0; i < collective->member_count; i++) {
        const int32_t index = e->members[collective->first_member + i];
        Slot *slot = &e->slots[index];
        const SimInstr *instr = &slot->instrs[slot->pc];
        const WorkInfo *work = &e->works[instr->work];
        slot->op.duration_ps = work->duration_ps;
        unsettled |= begin(e, index, slot, instr, work, op->duration_ps);
    }
    if (unsettled)
        leave_unsettled(e, event, op);
    else
        push_full(e, event, op->duration_ps);
}

/* A collective lasts as long as the longest of its members' works. */
static void join_collective(Engine *e, int32_t index, Slot *slot, const SimInstr *instr)
{
    int32_t first = e->first_collective[instr->group];
    if (first == SIM_NONE) {
        start_op(e, index, slot, instr);
        return;
    }
    int32_t instance = e->program->groups[instr->group].instance_of_rank[slot->rank];
    g_assert(instance >= 0);
    Collective *collective = &e->collectives[first + instance];
    const int64_t duration_ps = own_duration_ps(e, slot, &e->works[instr->work]);
    if (collective->arrived == 0 || duration_ps > collective->op.duration_ps)
        collective->op.duration_ps = duration_ps;
    slot->op.state = SLOT_ARRIVED;
    slot->collective = first + instance;
    if (++collective->arrived == collective->member_count)
        start_collective(e, collective);
}

/* Walks on until the stream runs, waits or ends. */
static void advance(Engine *e, int32_t index)
{
    Slot *slot = &e->slots[index];
    sim_fetch(slot->instrs + MIN(slot->pc + FETCH_AHEAD, slot->count));
    while (slot->pc < slot->count) {
        const SimInstr *instr = &slot->instrs[slot->pc];
        if (instr->kind == SIM_OP) {
            start_op(e, index, slot, instr);
            return;
        }
        if (instr->kind == SIM_COLLECTIVE) {
            join_collective(e, index, slot, instr);
            return;
        }
        int32_t target = sim_wait_target(e, slot, instr);
        g_assert(target != SIM_NONE);
        if (e->slots[target].pc <= instr->wait_index) {
            wait_for(e, index, &e->slots[target]);
            return;
        }
        complete_instr(e, slot);
    }
    slot->op.state = SLOT_DONE;
}

static inline void advance_ready(Engine *e)
{
    while (e->ready_first != SIM_NONE) {
        const int32_t index = e->ready_first;
        e->ready_first = e->slots[index].link_next;
        advance(e, index);
    }
}

/* The op of a stream beside compute ended: who waited for it, and what it delayed. */
static void account_beside(Engine *e, const Slot *slot)
{
    const Slot *first = &e->slots[e->ranks[slot->rank].first_slot];
    if (first->op.stream != SIM_STREAM_COMPUTE || first->op.state == SLOT_DONE)
        sim_account_behind_compute(e, slot);
    for (int32_t w = slot->first_waiter; w != SIM_NONE; w = e->slots[w].link_next) {
        if (e->slots[w].op.stream == SIM_STREAM_COMPUTE)
            sim_account_wait(e, &e->slots[w], slot);
    }
}

/* The op of a slot ends now. */
static void end_op(Engine *e, int32_t index)
{
    Slot *slot = &e->slots[index];
    if (slot->op.holds) {
        slot->op.holds = false;
        sim_rate_leave(e, index, slot->rank, sim_slot_work(e, slot));
    }
    if (slot->mem >= 0)
        sim_account_memory(e, slot->rank, slot->mem, true);
    e->ranks[slot->rank].end_ps = e->now_ps;
    if (e->record & SIM_RECORD_SPANS)
        sim_account_span(e, slot);
    if (slot->op.stream == SIM_STREAM_COMPUTE)
        sim_account_compute(e, slot);
    else
        account_beside(e, slot);
    complete_instr(e, slot);
    advance(e, index);
}

static inline void end_event(Engine *e, int32_t event)
{
    if (event < e->slot_count) {
        end_op(e, event);
    } else if (event < e->slot_count + e->collective_count) {
        const Collective *collective = &e->collectives[event - e->slot_count];
        const int32_t first = collective->first_member, count = collective->member_count;
        for (int32_t i = 0; i < count; i++) {
            if (i + 2 < count)
                sim_fetch(&e->slots[e->members[first + i + 2]]);
            if (i + 1 < count) {
                const int32_t rank = e->slots[e->members[first + i + 1]].rank;
                sim_fetch(&e->ranks[rank]);
                sim_fetch(&e->memory[rank]);
            }
            end_op(e, e->members[first + i]);
        }
    } else {
        sim_capacity_change(e);
    }
    advance_ready(e);
}

/* The slot of an event some instants ahead; NULL: not known, or a collective's. */
static inline const Slot *slot_ahead(const Engine *e, int32_t instants)
{
    const int32_t event = sim_eventq_ahead(e->queue, instants);
    return event >= 0 && event < e->slot_count ? &e->slots[event] : NULL;
}

/* What the events of the next instants will touch, while this one is worked on: the queue fetched their slots before. */
static inline void fetch_next(const Engine *e)
{
    const Slot *slot = slot_ahead(e, FETCH_INSTANTS);
    if (slot != NULL) {
        sim_fetch(&slot->instrs[slot->pc + 1]);
        sim_fetch(&e->ranks[slot->rank]);
        if (slot->first_waiter != SIM_NONE)
            sim_fetch(&e->slots[slot->first_waiter]);
    }
    slot = slot_ahead(e, FETCH_INSTANTS / 2);
    if (slot != NULL) {
        if (slot->pc + 1 < slot->count && slot->instrs[slot->pc + 1].kind == SIM_OP)
            sim_fetch(&e->works[slot->instrs[slot->pc + 1].work]);
        if (slot->first_waiter != SIM_NONE) {
            const Slot *waiter = &e->slots[slot->first_waiter];
            sim_fetch(&waiter->instrs[waiter->pc + 1]);
        }
    }
}

static bool all_done(const Engine *e)
{
    for (int32_t i = 0; i < e->slot_count; i++) {
        if (e->slots[i].op.state != SLOT_DONE)
            return false;
    }
    return true;
}

static bool run(Engine *e, GError **error)
{
    int32_t event;
    sim_capacity_change(e);
    for (int32_t i = 0; i < e->slot_count; i++)
        push_ready(e, i);
    advance_ready(e);
    sim_rate_settle(e);
    while (!e->clock_full && sim_eventq_pop(e->queue, &e->now_ps, &event)) {
        fetch_next(e);
        do {
            end_event(e, event);
        } while (sim_eventq_pop_at(e->queue, e->now_ps, &event));
        sim_rate_settle(e);
    }
    if (e->clock_full)
        return sim_fail_clock(error);
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
