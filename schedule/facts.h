/* schedule/facts.h - what the order of a schedule says about time and memory, read off it once: which micro-batches are
 * alive at which moments, what is left behind the last gradient, how often a micro-batch goes there and back before the
 * next. Bounds of a search are made of these; they hold for any order, so a schedule needs no formula.
 */
#ifndef ORR_SCHEDULE_FACTS_H
#define ORR_SCHEDULE_FACTS_H

#include "schedule/schedule.h"

/* A rank at the start of one of its passes: micro-batches alive on each of its chunks. */
typedef struct SimMoment {
    int32_t *whole; /* [chunks]: between forward and input gradient, what the pass itself takes included */
    int32_t *late;  /* [chunks]: between input and weight gradient */
    int chunk;      /* of the pass */
    bool backward;  /* the pass is a gradient */
} SimMoment;

typedef struct SimRankFacts {
    int moment_count;
    SimMoment *moments; /* fullest ones of every part of the order */
    /* Fullest moment after every chunk has begun to sum its gradient; the same before any of them is complete. NULL: none. */
    SimMoment *summing, *incomplete;
    SimMoment *first_backward; /* NULL: a chunk has had no forward by then */
    int32_t *weights_left;     /* [chunks]: weight gradients behind the last gradient that is passed on */
    int32_t *pairs;            /* [chunks]: overlapped pairs, by the chunk of their forward */
} SimRankFacts;

typedef struct SimOrderFacts {
    SimRankFacts *ranks; /* [ranks] */
    /* Of the model's first stage: gradients in a row, each of a micro-batch whose forward came after the one before. */
    int64_t round_trips;
} SimOrderFacts;

/* Of a schedule that does not follow times, and a shape that it takes; lives in `arena`. */
const SimOrderFacts *sim_order_facts(const SimSchedule *schedule, const SimScheduleShape *shape,
                                     OrrArena *arena);

#endif
