/* api/loops.h - loops over several models in the place of one step, for what asks either. */
#ifndef ORR_API_LOOPS_H
#define ORR_API_LOOPS_H

#include "api/simulate.h"

/* What a campaign lives through: the step, or the loop that it is part of, on all its GPUs (`whole`). Where a step's scenario
 * says nothing that fails it is what run assumes, unless `ideal`. `ideal_days` 0: those of all tokens or steps. */
bool api_simulation_lived(const ApiSimulation *simulation, const char *where, double ideal_days, bool ideal,
                          Spec *whole, Report *ret_report, GError **error);

/* False where words that ask for other machines or goals are given for a loop. `names` of them, `given`: one of them is. */
bool api_loop_alone(const char *where, const char *names, bool given, GError **error);

#endif
