/* spec/jitter.h - GPUs and links that are not as fast as the others, always or from step to step. */
#ifndef ORR_SPEC_JITTER_H
#define ORR_SPEC_JITTER_H

#include <stdbool.h>

#include "spec/names.h"

enum { SPEC_MOST_SLOW = 32 };

/* frac: of the speed that is lost. A node: the speed of its GPUs. */
typedef struct SpecSlow {
    SpecSlowPart part;
    int index; /* of the node, else of the rank */
    double frac;
} SpecSlow;

typedef struct SpecJitter {
    bool given; /* the scenario has `jitter` */
    char name[SPEC_NAME_SIZE];
    double rank_spread_frac,
        step_noise_frac;       /* of a GPU for good, and anew each step: deviation of the speed lost */
    double thermal_swing_frac; /* most that all GPUs lose in a day's heat */
    double slow_nodes_frac, slow_nodes_by_frac; /* share of the nodes, drawn, and what they lose */
    SpecSlow slow[SPEC_MOST_SLOW];
    int slow_count;
    int seed, steps; /* steps drawn where they differ */
} SpecJitter;

#endif
