/* tests/unit/pass_program.h - passes over one piece of the model as a program: what the host launches, the kernels, and the
 * collectives beside them are streams of one GPU, and the engine says how long it takes. The oracle of the closed forms of
 * costmodel/pass.h, which a step is made of: they are never above it, and the same where nothing overlaps. */
#ifndef ORR_TESTS_PASS_PROGRAM_H
#define ORR_TESTS_PASS_PROGRAM_H

#include "base/arena.h"
#include "costmodel/pass.h"

typedef struct SimPassRun {
    const CostPassSteps *steps;
    bool meets; /* the host waits for the GPU before it */
} SimPassRun;

/* The passes `runs` one after the other, `rounds` times: `ret_ps[i]` is how much later than the one before it the GPU ends
 * run i of the last round. False where the clock cannot hold it. Exchanges that hide beside another micro-batch
 * (CostPassSteps.hidden) run alone here. */
bool sim_pass_program_run(const SimPassRun *runs, int count, int rounds, OrrArena *arena, int64_t *ret_ps,
                          GError **error);

#endif
