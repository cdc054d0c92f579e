/* step/direct_mix.h - which pieces of a forward are read where they lie while the others are copied. */
#ifndef ORR_STEP_DIRECT_MIX_H
#define ORR_STEP_DIRECT_MIX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

typedef struct SimDirectPiece {
    int64_t forward_ps, copy_ps;
    int64_t read_ps;  /* of a forward that reads the weights itself */
    int64_t there_ps; /* from then on the host has the weights */
} SimDirectPiece;

/* The mix whose forward is shortest, [count] into `ret_direct`; returns when the forward ends. Scratch comes from `arena`. */
int64_t sim_direct_mix(const SimDirectPiece *pieces, int count, OrrArena *arena, bool *ret_direct);

#endif
