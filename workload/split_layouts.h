/* workload/split_layouts.h - the best layouts of the roles of one split, and what a search of splits keeps for them. Inside
 * workload/split*.c.
 *
 * Phases of a role depend on its own layout and nodes, so that each role is asked alone in every layout. A layout for each is
 * then chosen in turn, the fastest first: what generation and the phases chosen so far add up to bounds the step.
 */
#ifndef ORR_WORKLOAD_SPLIT_LAYOUTS_H
#define ORR_WORKLOAD_SPLIT_LAYOUTS_H

#include "workload/rollout.h"
#include "workload/split.h"

/* Each degree of tensor ranks where answers are written is loaded once, and so is each layout of those that have the
 * scenario's: what a layout leaves open follows from it. */
typedef struct SplitDegree {
    int tensor;
    const Spec *role;       /* NULL: the layout cannot be */
    RolloutAnswer *answers; /* [nodes], by those of its own, 0: all; 0 s: no room */
} SplitDegree;

typedef struct SplitLayout {
    SpecRanks ranks;
    const Spec *roles[SPEC_MOST_ROLES]; /* NULL: the role's layout cannot be */
} SplitLayout;

/* A layout of one role on some nodes. */
typedef struct SplitChoice {
    int layout;
    int64_t ps; /* of all its phases */
    WorkloadKept kept;
} SplitChoice;

typedef struct SplitChoices {
    bool asked;
    int count;
    SplitChoice *choice; /* the fastest first; of those that can run */
} SplitChoices;

enum { MOST_DEGREES = 16, MOST_LAYOUTS = 128, MOST_CONTEXT = 8 };

typedef struct SplitSearch {
    const Spec *spec;
    const SpecSource *source;
    int nodes, generator;
    const Spec *const *roles; /* as the scenario has them */
    Sequences sequences;
    double flops; /* of the phases that do not generate */
    SplitDegree degree[MOST_DEGREES];
    int degree_count;
    SplitLayout layout[MOST_LAYOUTS];
    int layout_count;
    int computing[SPEC_MOST_ROLES], computing_count; /* roles that forward or train on the scenario's nodes */
    SplitChoices *choices[SPEC_MOST_ROLES]; /* [2 nodes] of each: on so many nodes, apart and colocated */
    OrrArena *arena;                        /* of the roles */
    GError **first;                         /* why the first split is refused */
} SplitSearch;

/* Where the first refusal goes; NULL: it is known. */
GError **splits_why(const SplitSearch *search);

/* No step is shorter, where the roles of the scenario's nodes work for so long. */
int64_t splits_bound_ps(const SplitSearch *search, const SplitRow *row, int64_t training_ps);

/* The best layouts of a split, if its step is shorter than `limit_ps`; *ret_cut: others might run that are not. */
bool splits_ask_layouts(const SplitSearch *search, int64_t limit_ps, OrrArena *arena, SplitRow *row,
                        bool *ret_cut);

#endif
