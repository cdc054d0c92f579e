/* sim/engine_rate.h - the shares that ops hold, and their rates; only sim/engine*.c include it. */
#ifndef ORR_SIM_ENGINE_RATE_H
#define ORR_SIM_ENGINE_RATE_H

#include "sim/engine_state.h"

void sim_mark_instance(Engine *engine, int32_t instance);
void sim_list_hold(Engine *engine, int32_t slot, int32_t share, int32_t instance, int *listed);
void sim_unlist_hold(Engine *engine, int32_t slot, int32_t instance, int *listed);

/* The op of a slot starts to hold its shares; true when rates must be settled before its end is known. */
static inline bool sim_rate_enter(Engine *engine, int32_t slot, int32_t rank, const OpInfo *op)
{
    bool unsettled = false;
    int listed = 0;
    for (int32_t i = op->first_share; i < op->first_share + op->share_count; i++) {
        const Share *share = &engine->shares[i];
        const int32_t at = sim_instance_of(engine, share, rank);
        if (at < 0)
            continue;
        Instance *instance = &engine->instances[at];
        if (share->listed)
            sim_list_hold(engine, slot, i, at, &listed);
        instance->free -= share->amount;
        instance->fair_count += share->mode == SIM_SHARE_FAIR;
        if (instance->free < 0) {
            sim_mark_instance(engine, at);
            unsettled |= share->mode == SIM_SHARE_FAIR;
        }
    }
    return unsettled;
}

static inline void sim_rate_leave(Engine *engine, int32_t slot, int32_t rank, const OpInfo *op)
{
    int listed = 0;
    for (int32_t i = op->first_share; i < op->first_share + op->share_count; i++) {
        const Share *share = &engine->shares[i];
        const int32_t at = sim_instance_of(engine, share, rank);
        if (at < 0)
            continue;
        Instance *instance = &engine->instances[at];
        if (share->listed)
            sim_unlist_hold(engine, slot, at, &listed);
        if (instance->free < 0)
            sim_mark_instance(engine, at);
        instance->free += share->amount;
        instance->fair_count -= share->mode == SIM_SHARE_FAIR;
    }
}

/* The op goes on at `rate`; its end moves. */
void sim_rate_change(Engine *engine, int32_t event, int32_t rate);

#endif
