/* schedule/schedule.h - pipeline schedules: in which order each pipeline rank works.
 *
 * A schedule is one table row and one generator. The generator writes, for one rank, the ops of one step
 * in order; it knows micro-batches and chunks, not time. Stages are numbered along the model; placement
 * says which rank and chunk holds a stage. The row says the schedule's traits: scenarios are checked and
 * completed by them, searches bounded, programs built. Nobody asks which schedule it is.
 * program/program.c turns the orders into streams and waits.
 */
#ifndef ORR_SCHEDULE_SCHEDULE_H
#define ORR_SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/words.h"

typedef enum {
    SIM_PASS_FORWARD,
    SIM_PASS_BACKWARD, /* input and weight gradient in one op */
    SIM_PASS_BACKWARD_INPUT,
    SIM_PASS_BACKWARD_WEIGHT,
    SIM_PASS_FORWARD_BACKWARD /* overlapped pair: forward of (chunk, microbatch), backward of (chunk2, microbatch2) */
} SimPass;

typedef struct SimPassOp {
    uint8_t pass;  /* SimPass */
    int16_t chunk; /* local chunk on the rank */
    int32_t microbatch;
    int16_t chunk2; /* overlapped pair only */
    int32_t microbatch2;
} SimPassOp;

typedef struct SimOrder {
    SimPassOp *ops;
    int64_t count;
} SimOrder;

typedef enum {
    SIM_PLACE_LOOP,          /* stage s on rank s mod p, chunk s / p */
    SIM_PLACE_V,             /* s < p on rank s, else rank 2p-1-s */
    SIM_PLACE_BIDIRECTIONAL, /* two copies of the model, the second from the last rank to the first: stages p to
                                2p-1 are the second copy; it runs the second half of the micro-batches */
} SimPlacement;

typedef struct SimScheduleShape {
    int ranks;        /* p */
    int chunks;       /* v, stages a rank */
    int microbatches; /* m */
    int group;        /* micro-batches a group of the interleaved schedule; 0: p */
} SimScheduleShape;

/* Of one micro-batch on a stage, without a pass in pieces. */
typedef struct SimStageCosts {
    int64_t forward_ps, input_ps, weight_ps; /* input gradient with recomputation */
    int64_t next_hop_ps, previous_hop_ps;    /* messages to the neighbours */
    int64_t reduce_ps;                       /* of its weights' gradients, over replicas ... */
    int pieces;                              /* ... each as soon as it is there; 0: one */
    int64_t taken_bytes;                     /* activations from the forward on ... */
    int64_t late_bytes; /* ... of them until the weight gradient, the rest until the input's */
} SimStageCosts;

typedef struct SimScheduleCosts {
    SimStageCosts *stages; /* [ranks x chunks] along the model */
    int64_t *limit_bytes;  /* [ranks] activations that the rank may hold */
    bool skewed;           /* a rank's own span counts, not the last end (SimProgram) */
    bool blocking;         /* compute waits for its own messages */
    bool reduces_each;     /* gradients are reduced behind every weight gradient, else behind the last ... */
    bool reduces_alone;    /* ... and compute waits for each piece ... */
    bool reduces_in_turn;  /* ... or for the one before the last, so that no more than two wait */
} SimScheduleCosts;

/* What is true of a schedule whatever its shape; bits. */
typedef enum {
    SIM_TRAIT_SPLITS_BACKWARD = 1, /* some input and weight gradients are ops apart */
    /* Overlapped pairs: two stages a rank, a forward of one beside a backward of the other. The first micro-batch that a
       rank runs goes through the ranks before it alone. */
    SIM_TRAIT_PAIRS = 2,
    SIM_TRAIT_FORWARDS_FIRST = 4, /* every forward of a rank before its first backward */
    SIM_TRAIT_NEEDS_CHUNKS =
        8, /* with one stage a rank it is another schedule, which scenarios name instead */
    /* 1F1B and its interleaving: what a scenario means that names no schedule, and what the overlap of messages and the
       waiting head gradients of frameworks' recipes are written for. */
    SIM_TRAIT_USUAL = 16,
    SIM_TRAIT_COMMON = 32,   /* most software has it */
    SIM_TRAIT_BASELINE = 64, /* to compare with: chosen where it is asked for alone */
    /* All micro-batches pass a chunk, forward or back, before the rank turns to another: sharded weights are gathered and
       gradients reduced once a chunk and pass, not once a micro-batch. */
    SIM_TRAIT_WHOLE_CHUNKS = 128,
    SIM_TRAIT_GROUPS =
        256, /* turns to the next chunk after a group of micro-batches (SimScheduleShape.group) */
} SimTrait;

typedef struct SimSchedule {
    const char *name; /* "1f1b" */
    const char *help; /* one line with its source */
    SimPlacement placement;
    int fixed_chunks; /* 0: any; 1 for schedules without virtual stages; 2 for V shapes */
    /* What the shape must satisfy; the message says what would work. NULL: nothing. */
    bool (*check)(const SimScheduleShape *shape, GError **error);
    void (*generate)(const SimScheduleShape *shape, int rank, OrrArena *arena, SimOrder *ret_order);
    /* Schedules that depend on times and memory: all ranks at once; instead of `generate` wherever a plan is at hand. The
     * orders that look shortest go into ret_orders[most], each of them [ranks] and no two alike; gives how many there
     * are, at least one. NULL: the shape says all. */
    int (*generate_all)(const SimScheduleShape *shape, const SimScheduleCosts *costs, int most,
                        OrrArena *arena, SimOrder **ret_orders);
    unsigned traits;       /* SimTrait */
    const char *one_chunk; /* the schedule that it is with one stage a rank; NULL: itself */
    /* Where a rank's order follows from the other ranks': all of them at once, the same as `generate`. NULL: it does not. */
    void (*generate_ranks)(const SimScheduleShape *shape, OrrArena *arena, SimOrder *ret_orders);
} SimSchedule;

/* The table, in the order of `orrery list schedules`. */
const SimSchedule *sim_schedules(int *ret_count);
/* NULL when there is none of that name. */
const SimSchedule *sim_schedule_find(const char *name);
/* Row of the table; NULL where `index` is none of it. */
const SimSchedule *sim_schedule_at(int index);
/* -1: not in the table. */
int sim_schedule_index(const char *name);
/* The row that a scenario means with so many stages a rank when it names none. */
int sim_schedule_usual(int chunks);
/* Rows in the order of a search, simple ones first; `ret_rows` has a place for each. */
void sim_schedules_by_simplicity(int *ret_rows);
/* The names, in the table's order. */
extern const OrrWords sim_schedule_words;

static inline bool sim_schedule_has(const SimSchedule *schedule, SimTrait trait)
{
    return schedule != NULL && (schedule->traits & (unsigned)trait) != 0;
}

/* The order follows the times and the memory at hand: without them it is not known. */
static inline bool sim_schedule_needs_times(const SimSchedule *schedule)
{
    return schedule != NULL && schedule->generate_all != NULL;
}

/* What is chosen without being asked for: not what is there to compare with, nor what one simulation tries many orders of. */
static inline bool sim_schedule_is_candidate(const SimSchedule *schedule)
{
    return !sim_schedule_has(schedule, SIM_TRAIT_BASELINE) && !sim_schedule_needs_times(schedule);
}

/* Orders of all ranks of a schedule whose shape says all, into ret_orders [ranks]. */
void sim_schedule_orders(const SimSchedule *schedule, const SimScheduleShape *shape, OrrArena *arena,
                         SimOrder *ret_orders);

/* Stage held by (rank, chunk), and the other way round. */
int sim_stage_of(SimPlacement placement, int ranks, int chunks, int rank, int chunk);
void sim_place_of(SimPlacement placement, int ranks, int chunks, int stage, int *ret_rank, int *ret_chunk);

#endif
