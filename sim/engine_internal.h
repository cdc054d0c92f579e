/* sim/engine_internal.h - the engine's own state; only sim/engine*.c include it.
 *
 * A slot is a stream of a rank whose list is not empty. Slots of a rank are neighbours; ranks of a class are
 * neighbours. Everything lives in the run's arena and has its final size before the first event.
 */
#ifndef ORR_SIM_ENGINE_INTERNAL_H
#define ORR_SIM_ENGINE_INTERNAL_H

#include "sim/engine.h"
#include "sim/eventq.h"

#define SIM_NONE      (-1)
#define SIM_FULL_RATE 1024

typedef enum { SLOT_READY, SLOT_RUNNING, SLOT_WAITING, SLOT_ARRIVED, SLOT_DONE } SlotState;

typedef struct {
    const SimInstr *instrs;
    int32_t count;
    int32_t pc; /* instructions completed */
    int32_t rank;
    int32_t link_next;    /* next in the list of waiters, or of slots ready to go on */
    int32_t first_waiter; /* slots waiting for this one */
    int32_t collective;   /* that it has joined; SIM_NONE: the current op is its own */
    int64_t start_ps;     /* of the current op */
    int64_t update_ps;    /* when `remaining` was true */
    int64_t remaining;    /* ps x 1024 at full rate */
    uint16_t rate;        /* in 1/1024; of a collective: what this rank would allow */
    uint8_t stream, state;
    bool charged; /* its shares are counted in its rank */
} Slot;

typedef struct {
    int32_t first_member, member_count; /* in Engine.members */
    int32_t arrived;
    int64_t start_ps, update_ps, remaining;
    uint16_t rate;
    bool dirty;
} Collective;

typedef struct {
    int32_t first_slot, slot_count;
    int32_t cls;
    uint32_t sm_share;               /* taken by running communication */
    uint32_t demand[SIM_LINK_COUNT]; /* by running ops */
    bool computing;                  /* an op that slows beside communication runs */
    bool dirty, started;
    int64_t accounted_ps;          /* parts and idle time cover the compute stream up to here */
    int64_t level_ps, level_bytes; /* memory since then, all kinds of the GPU */
    int64_t bytes[SIM_MEM_COUNT];
} Rank;

/* What the loop needs of a SimWork. */
typedef struct {
    int64_t duration_ps;
    uint16_t sm_share, link_demand;
    uint8_t link, main_part, stretch_part; /* SimPart: longest; the one that a slowed op grows */
} WorkInfo;

typedef struct {
    const SimProgram *program;
    unsigned record;
    OrrArena *arena;
    int64_t now_ps;
    SimEventq *queue; /* events: slots, then collectives */
    Slot *slots;
    int32_t slot_count;
    Rank *ranks;
    WorkInfo *works;
    int32_t *class_first_slot; /* slot of the class's first rank */
    int32_t *class_slot_count; /* a rank */
    int8_t *slot_of_stream;    /* [class][stream] -> slot within the rank; SIM_NONE */
    Collective *collectives;
    int32_t collective_count;
    int32_t *members;                         /* slots; SIM_NONE: a member that never joins */
    int32_t first_collective[SIM_MAX_GROUPS]; /* SIM_NONE: groups of one */
    int32_t ready_first, ready_last;          /* slots to go on */
    int32_t *dirty_ranks, *dirty_collectives;
    int32_t dirty_rank_count, dirty_collective_count;
    bool clock_full; /* an end does not fit the clock */
    SimResult result;
} Engine;

/* engine_setup.c: everything that is allocated. False on an op too long for the clock. */
bool sim_engine_setup(Engine *engine, GError **error);

/* engine_rate.c: shares and rates. */
static inline const WorkInfo *sim_slot_work(const Engine *engine, const Slot *slot)
{
    return &engine->works[slot->instrs[slot->pc].work];
}
/* The op of `slot` starts to take its shares; true when rates must be settled before its end is known. */
bool sim_rate_enter(Engine *engine, Slot *slot, const WorkInfo *work);
void sim_rate_leave(Engine *engine, Slot *slot, const WorkInfo *work);
/* After the last event of an instant: new rates, moved ends. */
void sim_rate_settle(Engine *engine);
/* Pushes the end of an event that needs `remaining` at `rate` from now on. */
void sim_push_end(Engine *engine, int32_t event, int64_t remaining, int rate);

/* engine_account.c: what time was spent on, and memory. */
/* The first op of a rank starts. */
void sim_account_start(Engine *engine, int32_t rank);
void sim_account_compute(Engine *engine, const Slot *slot, const SimInstr *instr);
/* The compute stream of `waiter`'s rank waited while `producer` ran an op until now. */
void sim_account_wait(Engine *engine, const Slot *waiter, const Slot *producer, const SimInstr *instr);
/* An op of another stream ended after the rank's compute stream did. */
void sim_account_tail(Engine *engine, const Slot *slot, const SimInstr *instr);
void sim_account_memory(Engine *engine, int32_t rank, const int64_t *delta_bytes);
void sim_account_span(Engine *engine, const Slot *slot, const SimInstr *instr);
void sim_account_finish(Engine *engine);

/* engine_deadlock.c: one sentence naming the cycle. */
void sim_engine_explain_deadlock(const Engine *engine, GError **error);

/* Slot of a stream of the rank that `slot` waits for; SIM_NONE when that rank has no such stream. */
static inline int32_t sim_wait_target(const Engine *engine, const Slot *slot, const SimInstr *instr)
{
    const Rank *rank = &engine->ranks[slot->rank];
    int cls = instr->wait_class < 0 ? rank->cls : instr->wait_class;
    int local = engine->slot_of_stream[cls * SIM_STREAM_COUNT + instr->wait_stream];
    if (local < 0)
        return SIM_NONE;
    if (instr->wait_class < 0)
        return rank->first_slot + local;
    int replica = slot->rank - rank->cls * engine->program->replicas;
    return engine->class_first_slot[cls] + replica * engine->class_slot_count[cls] + local;
}

#endif
