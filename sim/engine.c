/* sim/engine.c - the loop: streams advance, wait, join; events end ops. */
#include "sim/engine_account.h"
#include "sim/engine_fair.h"
#include "sim/engine_rate.h"

#define FETCH_AHEAD 8 /* instructions: lists of many streams are more than the hardware looks ahead in */
/* instants ahead */
#define FETCH_LISTS  10
#define FETCH_INSTRS 6
#define FETCH_WORKS  3

static inline void push_ready(Engine *e, int32_t slot)
{
    e->slots[slot].state = SLOT_READY;
    e->slots[slot].link_next = SIM_NONE;
    if (e->ready_first == SIM_NONE)
        e->ready_first = slot;
    else
        e->slots[e->ready_last].link_next = slot;
    e->ready_last = slot;
}

static inline void wait_for(Engine *e, int32_t index, Slot *target)
{
    e->slots[index].state = SLOT_WAITING;
    e->slots[index].link_next = SIM_NONE;
    int32_t *link = &target->first_waiter;
    while (*link != SIM_NONE)
        link = &e->slots[*link].link_next;
    *link = index;
}

/* One more instruction of `slot` is complete: those that waited for it may go on. `exposed` is the op that did it where
 * compute streams which wait for the slot may have to account for it; NULL: they need not. */
static inline void complete_instr(Engine *e, Slot *slot, const OpInfo *exposed)
{
    const int32_t done = ++slot->pc;
    int32_t *link = &slot->first_waiter;
    while (*link != SIM_NONE) {
        const int32_t index = *link;
        Slot *waiter = &e->slots[index];
        if (exposed != NULL && waiter->stream == SIM_STREAM_COMPUTE)
            sim_account_wait(e, waiter, slot, exposed);
        if (sim_slot_instr(e, waiter)->wait_count <= done) {
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

/* Most ops hold nothing that matters: what the others do stays out of their way. */
static G_GNUC_NO_INLINE bool enter(Engine *e, int32_t index, int32_t rank, const OpInfo *op)
{
    return sim_rate_enter(e, index, rank, op);
}

static G_GNUC_NO_INLINE void leave(Engine *e, int32_t index, int32_t rank, const OpInfo *op)
{
    sim_rate_leave(e, index, rank, op);
}

/* The op of `slot` starts now; true when its end depends on rates that are not settled yet. */
static inline bool begin(Engine *e, int32_t index, Slot *slot, const OpInfo *op, int64_t duration_ps)
{
    slot->state = SLOT_RUNNING;
    slot->since_ps = e->now_ps;
    if (e->program->skewed)
        sim_account_start(e, slot->rank);
    if (op->start_mem != SIM_NONE)
        sim_account_change(e, slot->rank, op->start_mem, false);
    if (op->share_count == 0 || duration_ps == 0)
        return false;
    slot->holds = true;
    return enter(e, index, slot->rank, op);
}

/* Puts the end of an op into the queue, or leaves it until the rates are settled when the instant is over. */
static inline bool go_on(Engine *e, int32_t event, int64_t duration_ps, bool unsettled)
{
    if (unsettled)
        e->progress[event] = (Progress){.update_ps = e->now_ps, .left_ps = duration_ps};
    else
        push_full(e, event, duration_ps);
    return unsettled;
}

static inline void start_op(Engine *e, int32_t index, Slot *slot, const OpInfo *op)
{
    const int64_t duration_ps = sim_duration_on_ps(e, slot, op);
    slot->rated = go_on(e, index, duration_ps, begin(e, index, slot, op, duration_ps));
}

static void start_collective(Engine *e, Collective *collective)
{
    const int32_t event = e->slot_count + (int32_t)(collective - e->collectives);
    collective->arrived = 0;
    collective->start_ps = e->now_ps;
    bool unsettled = false;
    for (int32_t i = 0; i < collective->member_count; i++) {
        const int32_t index = e->members[collective->first_member + i];
        Slot *slot = &e->slots[index];
        unsettled |= begin(e, index, slot, sim_slot_op(e, slot), collective->duration_ps);
    }
    collective->rated = go_on(e, event, collective->duration_ps, unsettled);
}

/* A collective lasts as long as the longest of its members' works. */
static void join_collective(Engine *e, int32_t index, Slot *slot, const OpInfo *op)
{
    const int32_t at = sim_collective_of(e, slot, op);
    if (at == SIM_NONE) {
        start_op(e, index, slot, op);
        return;
    }
    g_assert(at >= e->first_collective[op->group]);
    Collective *collective = &e->collectives[at];
    const int64_t duration_ps = sim_duration_on_ps(e, slot, op);
    if (collective->arrived == 0 || duration_ps > collective->duration_ps)
        collective->duration_ps = duration_ps;
    slot->state = SLOT_ARRIVED;
    if (++collective->arrived == collective->member_count)
        start_collective(e, collective);
}

/* True when the stream of slot `index` has to wait before this instruction. */
static inline bool must_wait(Engine *e, int32_t index, const SimInstr *instr)
{
    if (instr->wait_count == 0)
        return false;
    Slot *target = &e->slots[sim_wait_target(e, index, instr)];
    if (target->pc >= instr->wait_count)
        return false;
    wait_for(e, index, target);
    return true;
}

/* What an instruction does whose wait is over; false: nothing more, the stream goes on. */
static inline bool does_work(Engine *e, int32_t index, Slot *slot, const SimInstr *instr)
{
    if (instr->op == SIM_ONLY_WAITS) {
        complete_instr(e, slot, NULL);
        return false;
    }
    const OpInfo *op = &e->ops[instr->op];
    if (op->kind == SIM_OP)
        start_op(e, index, slot, op);
    else
        join_collective(e, index, slot, op);
    return true;
}

/* Walks on from its next instruction until the stream runs, waits or ends. */
static inline void advance(Engine *e, int32_t index, Slot *slot, const SimInstr *instr)
{
    const List *list = &e->lists[slot->list];
    const SimInstr *end = list->instrs + list->count;
    sim_fetch((const void *)((uintptr_t)instr + FETCH_AHEAD * sizeof *instr));
    for (; instr < end; instr++) {
        if (must_wait(e, index, instr) || does_work(e, index, slot, instr))
            return;
    }
    slot->state = SLOT_DONE;
}

/* Slots whose wait is over go on. */
static inline void advance_ready(Engine *e)
{
    while (e->ready_first != SIM_NONE) {
        const int32_t index = e->ready_first;
        Slot *slot = &e->slots[index];
        const SimInstr *instr = sim_slot_instr(e, slot);
        e->ready_first = slot->link_next;
        if (!does_work(e, index, slot, instr))
            advance(e, index, slot, instr + 1);
    }
}

/* The op of a stream beside compute ended, which its rank may have had nothing to do behind. */
static inline void account_beside(Engine *e, const Slot *slot, const OpInfo *op)
{
    const Slot *first = slot - slot->place;
    if (first->stream != SIM_STREAM_COMPUTE || first->state == SLOT_DONE)
        sim_account_behind_compute(e, slot, op);
}

/* The op of a slot ends now. */
static inline void end_op(Engine *e, int32_t index)
{
    Slot *slot = &e->slots[index];
    const SimInstr *instr = sim_slot_instr(e, slot);
    const OpInfo *op = &e->ops[instr->op];
    if (slot->holds) {
        slot->holds = false;
        leave(e, index, slot->rank, op);
    }
    if (op->end_mem != SIM_NONE)
        sim_account_change(e, slot->rank, op->end_mem, true);
    if (e->record & SIM_RECORD_SPANS)
        sim_account_span(e, slot, instr);
    if (slot->stream == SIM_STREAM_COMPUTE) {
        sim_account_compute(e, slot, op);
        complete_instr(e, slot, NULL);
    } else {
        account_beside(e, slot, op);
        complete_instr(e, slot, op);
    }
    slot->since_ps = e->now_ps;
    advance(e, index, slot, instr + 1);
}

static G_GNUC_NO_INLINE void end_collective(Engine *e, const Collective *collective)
{
    const int32_t *members = &e->members[collective->first_member];
    const int32_t count = collective->member_count;
    for (int32_t i = 0; i < count; i++) {
        if (i + 2 < count)
            sim_fetch(&e->slots[members[i + 2]]);
        if (i + 1 < count) {
            const int32_t rank = e->slots[members[i + 1]].rank;
            sim_fetch(&e->ranks[rank]);
            sim_fetch(&e->memory[rank]);
        }
        end_op(e, members[i]);
    }
}

static inline void end_event(Engine *e, int32_t event)
{
    if (event < e->slot_count)
        end_op(e, event);
    else if (event < e->slot_count + e->collective_count)
        end_collective(e, &e->collectives[event - e->slot_count]);
    else
        sim_capacity_change(e);
    advance_ready(e);
}

/* The slot of an event some instants ahead; NULL: not known, or a collective's. */
static inline const Slot *slot_ahead(const Engine *e, int32_t instants)
{
    const int32_t event = sim_eventq_ahead(e->queue, instants);
    return event >= 0 && event < e->slot_count ? &e->slots[event] : NULL;
}

/* What the events of the next instants will touch, while this one is worked on, each in time for what it leads to: the
 * queue fetched their slots before. */
static inline void fetch_next(const Engine *e)
{
    const Slot *slot = slot_ahead(e, FETCH_LISTS);
    if (slot != NULL) {
        sim_fetch(&e->lists[slot->list]);
        sim_fetch(&e->ranks[slot->rank]);
        if (slot->first_waiter != SIM_NONE)
            sim_fetch(&e->slots[slot->first_waiter]);
    }
    slot = slot_ahead(e, FETCH_INSTRS);
    if (slot != NULL) {
        sim_fetch(sim_slot_instr(e, slot) + 1);
        if (slot->first_waiter != SIM_NONE)
            sim_fetch(sim_slot_instr(e, &e->slots[slot->first_waiter]) + 1);
    }
    slot = slot_ahead(e, FETCH_WORKS);
    if (slot != NULL) {
        const SimInstr *instr = sim_slot_instr(e, slot);
        if (slot->pc + 1 < e->lists[slot->list].count && instr[1].op >= 0)
            sim_fetch(&e->ops[instr[1].op]);
    }
}

/* The next event, after the rates of the instant before it are settled; false: there is none. */
static inline bool next_event(Engine *e, int32_t *ret_event)
{
    if (e->dirty_count > 0) {
        if (sim_eventq_pop_at(e->queue, e->now_ps, ret_event))
            return true;
        sim_rate_settle(e);
    }
    return sim_eventq_pop(e->queue, &e->now_ps, ret_event);
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
    sim_capacity_change(e);
    for (int32_t i = 0; i < e->slot_count; i++)
        advance(e, i, &e->slots[i], sim_slot_instr(e, &e->slots[i]));
    advance_ready(e);
    sim_rate_settle(e);
    const bool small = sim_eventq_is_small(e->slot_count);
    for (int64_t before_ps = 0; !e->clock_full && next_event(e, &event); before_ps = e->now_ps) {
        if (!small && e->now_ps != before_ps)
            fetch_next(e);
        end_event(e, event);
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
