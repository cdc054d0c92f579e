/* sim/engine_fair.h - max-min fair rates; only sim/engine*.c include it. */
#ifndef ORR_SIM_ENGINE_FAIR_H
#define ORR_SIM_ENGINE_FAIR_H

#include "sim/engine_state.h"

/* Max-min fair rates of everything that overfull instances connect to the dirty ones. */
Fair *sim_fair_new(const Engine *engine);
/* After the last event of an instant: new rates, moved ends. */
void sim_rate_settle(Engine *engine);

#endif
