/* sim/engine_account.h - what time was spent on, and memory; only sim/engine*.c include it. What each op's end needs is
 * here, the rest in engine_account.c. */
#ifndef ORR_SIM_ENGINE_ACCOUNT_H
#define ORR_SIM_ENGINE_ACCOUNT_H

#include "sim/engine_state.h"

/* Up to `until_ps` nothing accounts for the compute stream's time: idle. */
static inline void sim_account_idle(Rank *rank, int64_t until_ps)
{
    if (until_ps > rank->accounted_ps) {
        rank->idle_ps += until_ps - rank->accounted_ps;
        rank->accounted_ps = until_ps;
    }
}

/* Idle until an op started, then that op's part until now. */
static inline void sim_account_exposed(Engine *e, int32_t index, int64_t start_ps, int part)
{
    Rank *rank = &e->ranks[index];
    sim_account_idle(rank, start_ps);
    e->result.rank[index].part_ps[part] += e->now_ps - rank->accounted_ps;
    rank->accounted_ps = e->now_ps;
}

/* An op of a compute stream ended now. */
static inline void sim_account_compute(Engine *e, const Slot *slot, const OpInfo *op)
{
    Rank *rank = &e->ranks[slot->rank];
    if (!rank->computed) {
        rank->computed = true;
        e->result.rank[slot->rank].first_start_ps = slot->since_ps;
    }
    sim_account_idle(rank, slot->since_ps);
    const int64_t stretch_ps = e->now_ps - slot->since_ps - op->duration_ps;
    if (stretch_ps != 0) {
        e->result.rank[slot->rank].part_ps[op->stretch_part] += stretch_ps;
        e->result.rank[slot->rank].busy_ps += stretch_ps;
    }
    rank->accounted_ps = e->now_ps;
}

static inline bool sim_is_communication(int part)
{
    return part == SIM_PART_TENSOR_COMM || part == SIM_PART_CONTEXT_COMM || part == SIM_PART_EXPERT_COMM ||
           part == SIM_PART_PIPELINE_COMM || part == SIM_PART_DATA_COMM;
}

/* The compute stream of `waiter`'s rank waited while `producer` ran an op until now. Another rank's work is no cost of this
 * rank, only its messages are. */
static inline void sim_account_wait(Engine *e, const Slot *waiter, const Slot *producer, const OpInfo *op)
{
    if (waiter->rank == producer->rank || sim_is_communication(op->main_part))
        sim_account_exposed(e, waiter->rank, producer->since_ps, op->main_part);
}

/* An op of a rank starts in a skewed program; only its first one counts. */
void sim_account_start(Engine *engine, int32_t rank);
/* An op of another stream ended after the rank's compute stream did. */
void sim_account_behind_compute(Engine *engine, const Slot *slot, const OpInfo *op);
/* What an op takes at its start or gives back at its end. */
void sim_account_change(Engine *engine, int32_t rank, int32_t mem, bool end);
void sim_account_span(Engine *engine, const Slot *slot, const SimInstr *instr);
void sim_account_finish(Engine *engine);

#endif
