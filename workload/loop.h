/* workload/loop.h - phases in turn on parts of a machine, step after step, until the loop repeats itself.
 *
 * A part does one phase at a time, in the order of the list. Phases up to the last one that generates run `staleness` steps
 * ahead of the others, and begin when the weights of staleness + 1 steps before have arrived. With staleness 0 a loop on one
 * part takes the sum of its phases.
 *
 *   begin(i, k) = max(free(part of k), end(i, j) for each j that k waits for, arrived(i - 1 - s) for what generates)
 *
 * Times are whole picoseconds. Ignores: that a part could do a later phase while it waits for an earlier one.
 * Tested: unit/workload/test_loop.c
 */
#ifndef ORR_WORKLOAD_LOOP_H
#define ORR_WORKLOAD_LOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

enum { LOOP_MOST_PHASES = 32, LOOP_MOST_PARTS = 8, LOOP_MOST_STALENESS = 64 };

typedef struct LoopPhase {
    int part;  /* that it holds; -1: none */
    int other; /* likewise, beside it; -1: none */
    int64_t ps;
    unsigned after; /* bits of phases before it in the list */
    bool generates; /* with the weights of the last sync that it may wait for */
} LoopPhase;

typedef struct LoopResult {
    int64_t step_ps; /* from the end of a step to that of the next, once they are all alike */
    int64_t begin_ps[LOOP_MOST_PHASES];  /* of the phases of one turn, the earliest at 0 */
    int64_t busy_ps[LOOP_MOST_PARTS];    /* of a step */
    int64_t waited_ps[LOOP_MOST_PHASES]; /* since the part was free */
    int64_t ready_ps[LOOP_MOST_PHASES];  /* when what a phase waits for is over, on the clock of begin_ps */
    int weights_age; /* steps by which the weights that generate are older than the newest could be; at most the staleness */
} LoopResult;

/* Whether the clock holds as many steps as a run takes: to be asked before one. */
bool loop_fits_clock(const LoopPhase *phases, int count, int staleness);

/* `count` phases, 1 to LOOP_MOST_PHASES, on `parts` parts; staleness in whole steps, at most LOOP_MOST_STALENESS. */
void loop_run(const LoopPhase *phases, int count, int parts, int staleness, LoopResult *ret_result);

/* Whether a finished run keeps what loops promise: a part does one thing at a time, phases wait for those that they name,
 * nothing is generated with older weights than allowed, and parts are not busier than the step is long. */
bool loop_check(const LoopPhase *phases, int count, int parts, int staleness, GError **error);

#endif
