/* sim/engine_account.h - what time was spent on, and memory; only sim/engine*.c include it. */
#ifndef ORR_SIM_ENGINE_ACCOUNT_H
#define ORR_SIM_ENGINE_ACCOUNT_H

#include "sim/engine_state.h"

/* An op of a rank starts in a skewed program; only its first one counts. */
void sim_account_start(Engine *engine, int32_t rank);
/* Its op of this work ended now. */
void sim_account_compute(Engine *engine, const Slot *slot, const OpInfo *op);
/* The compute stream of `waiter`'s rank waited while `producer` ran an op until now. */
void sim_account_wait(Engine *engine, const Slot *waiter, const Slot *producer, const OpInfo *op);
/* An op of another stream ended after the rank's compute stream did. */
void sim_account_behind_compute(Engine *engine, const Slot *slot, const OpInfo *op);
/* What an op takes at its start or gives back at its end. */
void sim_account_change(Engine *engine, int32_t rank, int32_t mem, bool end);
void sim_account_span(Engine *engine, const Slot *slot, const SimInstr *instr);
void sim_account_finish(Engine *engine);

#endif
