/* program/builder.h - what a program is made from while it is built; only program/ includes it.
 *
 * A Builder lives for one sim_program_build(). Instruction lists are written where they stay, in the arena; a wait for a
 * rank that is not written yet is filled in once all ranks are.
 */
#ifndef ORR_PROGRAM_BUILDER_H
#define ORR_PROGRAM_BUILDER_H

#include "program/plan.h"

#define SIM_NONE (-1)

/* Communicators. Each is used on one stream. */
typedef enum {
    GROUP_MODEL,     /* tensor x context: whole passes, compute stream */
    GROUP_GATHER,    /* data x context: parameter gathers */
    GROUP_REDUCE,    /* data x context: gradient reductions */
    GROUP_EMBEDDING, /* the ranks that hold a copy of tied embeddings */
    GROUP_WORLD,
    GROUP_STAGE, /* the ranks of one pipeline rank */
    GROUP_COUNT
} Group;

/* Completion of an instruction. */
typedef struct {
    int32_t index;
    int32_t wait_on; /* its stream: sim_wait_on() */
} Point;

/* Results pass along the model in forwards and against it in backwards. */
typedef enum { ALONG_MODEL, AGAINST_MODEL, DIRECTIONS } Direction;

typedef struct
{ /* of whole passes, the ops of those that take the same bytes each time; SIM_NONE: not made yet */
    int32_t work[SIM_PASS_FORWARD_BACKWARD + 1], mem[SIM_PASS_FORWARD_BACKWARD],
        op[SIM_PASS_FORWARD_BACKWARD];
} StageCache;

/* What leaves a stage for its neighbour in one direction, and what it waits for from there. */
typedef struct {
    int32_t *
        ready; /* [microbatches] instruction with whose end the stage's result is there; SIM_NONE: not written yet */
    int32_t ready_on; /* the stream of these: sim_wait_on() */
    int32_t
        unresolved; /* up to which instruction its compute stream waits for what was not written yet; 0: none */
} StageEnd;

typedef struct {
    SimInstr *instrs; /* in the arena */
    int32_t count, capacity;
} InstrList;

typedef struct {
    const SimPlan *plan;
    OrrArena *arena;
    int ranks, chunks, microbatches, stages;
    const SimOrder *orders;                  /* [ranks]; NULL: each is generated when its rank is written */
    int32_t *rank_of_stage, *chunk_of_stage; /* [stages] */
    InstrList *lists;                        /* [rank][stream] */
    GArray *ops, *works, *mems;
    GHashTable *op_index, *work_index, *mem_index;
    StageCache *caches;         /* [stages] */
    StageEnd *ends[DIRECTIONS]; /* [stages] */
    int64_t *left_bytes;        /* [ranks] gradients that a step leaves on the GPU for the next one to copy */
    bool post_validation;       /* the plan's, where it applies */
    Point norm;                 /* of the rank before: where its part of the norm is sent */
} Builder;

/* A chunk of the rank being written. */
typedef struct {
    const SimStage *stage;
    int stage_index;
    int producer[DIRECTIONS];         /* stage of another rank whose results its passes wait for; SIM_NONE */
    int32_t send_op[DIRECTIONS];      /* the message to a stage of another rank; SIM_NONE: there is none */
    int64_t first_forward, last_grad; /* positions in the rank's order */
    bool reduces;                     /* something to reduce */
    bool sharded;                     /* ZeRO-3 gathers around every use */
    bool gathered_at_start;           /* ZeRO-1/2, beside the first forward */
    bool plain;                       /* passes between first_forward and last_grad are one op each */
    int32_t *start_gather;            /* [segments] instruction on the data stream */
    bool *grad_alive;                 /* [segments] unsharded gradient present */
    int32_t *copied, *fetched;        /* [segments] last copy to the host and back */
    int32_t *grad_left, *weight_in;   /* [segments] last copies of gradient and updated weights */
    int32_t *states_read, *updated, *states_written; /* [segments] disks, the host's update, disks */
    int spilled; /* first segments whose gradients leave in the next step */
} Chunk;

/* ZeRO-3: one use of a segment's weights by a pass. */
typedef struct {
    int16_t chunk;
    int32_t segment;
    bool gather, give_back;
    int64_t run;                         /* uses whose weights are gathered together */
    int32_t compute_index, gather_index; /* instructions, once written */
} Use;

/* One use of a layer's weights where only a window of them is on the GPU. */
typedef struct {
    int16_t chunk;
    int32_t segment;
    bool fetch, give_back;
    int64_t after;         /* the use that leaves the place; SIM_NONE: it is there from the start */
    int32_t compute_index; /* once written */
} WindowUse;

typedef struct {
    Builder *builder;
    int rank;
    const SimOrder *order;
    InstrList *lists; /* [streams] of the rank */
    bool together;    /* tensor and context ranks meet in each pass */
    Chunk *chunks;
    Chunk **first_used,
        **last_graded;            /* by first_forward, the earliest first; by last_grad, the latest first */
    int used_count, graded_count; /* chunks without passes are in neither */
    Use *uses;
    int64_t use_count, next_use, next_gather;
    int64_t *run_first, run_count; /* [run_count + 1] first use of each run */
    int32_t last_compute;          /* last op on the compute stream */
    int32_t reduced[2];            /* the last two reductions, or the last of two chunks in a row; SIM_NONE */
    int reduced_stage;             /* of the last */
    int32_t left[2];               /* the last two copies of gradients to the host */
    int32_t hosts[2], writes[2];   /* the last two updates on the host; their states' ways to the disks */
    int32_t last_in, direct;       /* last copy of weights; last forward that read directly */
    bool directs;                  /* the op being written does */
    WindowUse *window_uses;
    int64_t window_count, next_window;
    int32_t waited[SIM_STREAM_COUNT][SIM_STREAM_COUNT]; /* up to where a stream has waited for another */
} RankBuilder;

/* One pass over one chunk. */
typedef struct {
    SimPass pass; /* not SIM_PASS_FORWARD_BACKWARD */
    int64_t position;
    int chunk;
    int32_t microbatch;
} Pass;

/* program_order.c: every pass of each stage of the rank and each micro-batch once, producers first. */
bool sim_order_check(const Builder *builder, int rank, const SimOrder *order, OrrArena *scratch,
                     GError **error);

/* program_reduce.c */
/* A collective of `group`, alone on its rank where it has one member; returns its index. */
int32_t sim_emit_comm(RankBuilder *rb, SimStream stream, SimTag tag, Group group, const SimWork *work,
                      int32_t mem, int stage, int32_t microbatch);
/* Reduces a segment's gradient once the compute written so far has run. */
void sim_emit_reduce(RankBuilder *rb, Chunk *chunk, int segment, int32_t microbatch);
/* Whether a reduction starts inside or right after the pass. */
bool sim_reduces_after(const RankBuilder *rb, const Chunk *chunk, const Pass *pass);
/* ZeRO-1/2, beside the forwards: at the start of the step ... */
void sim_emit_start_gathers(RankBuilder *rb);
/* ... or before the pass at `position`, behind the wait for its input: the chunk's gathers where they begin with its use. */
void sim_emit_gathers_on_use(RankBuilder *rb, Chunk *chunk, int64_t position);

/* program_pass.c */
void sim_emit_passes(RankBuilder *rb); /* in the rank's order */
/* The LM head's weight gradients that its backwards left out, and the reduction that had to wait for them. */
void sim_emit_deferred_head(RankBuilder *rb);

/* program_data.c: an op of the compute stream, where it takes any time. */
void sim_emit_once(RankBuilder *rb, SimTag tag, const SimWork *work);
/* ... and the end of the step. */
void sim_emit_step_end(RankBuilder *rb);

/* program_sharded.c: ZeRO-3. */
void sim_plan_uses(RankBuilder *rb);
/* Before a segment's op: gathers that may start by now, and the wait for its own. */
Use *sim_emit_use(RankBuilder *rb);
bool sim_pass_uses_weights(SimPass pass);
bool sim_segment_uses_weights(const SimSegment *segment, SimPass pass);

/* program_offload.c: before and after a segment's op; what leaves the GPU or comes back with its start. */
void sim_offload_before(RankBuilder *rb, Chunk *chunk, int segment, const Pass *pass, SimMemDelta *mem);
void sim_offload_after(RankBuilder *rb, Chunk *chunk, int segment, const Pass *pass, int32_t compute_index);

/* program_update.c: gradients to the host, its update, weights back. */
void sim_update_init(const Builder *builder, Chunk *chunk);
/* At the start of the step: what the order of the update puts there. */
void sim_update_start(RankBuilder *rb);
/* Around a segment's op: waits for weights, room for gradients, and gradients on their way. */
void sim_update_before(RankBuilder *rb, Chunk *chunk, int segment, const Pass *pass, SimMemDelta *mem,
                       SimWork *work);
void sim_update_after(RankBuilder *rb, int32_t compute_index);
void sim_update_gradient(RankBuilder *rb, Chunk *chunk, int segment, int64_t position, int32_t microbatch);
/* Before and behind the norm and the GPU's own optimizer. */
void sim_update_gradients_gone(RankBuilder *rb);
void sim_update_barrier(RankBuilder *rb);
void sim_update_end(RankBuilder *rb);
/* A pass has to be written segment by segment. */
bool sim_update_splits(const RankBuilder *rb, const Chunk *chunk, const Pass *pass);
/* The copies and reads before the gather of use `u`, which starts behind the compute of use `after` (below 0: of none);
 * SIM_NONE: its weights are on the GPU. */
int32_t sim_update_fetch(RankBuilder *rb, int64_t use, int64_t after, bool backward);

/* program_window.c: whole layers of weights come and go. */
void sim_window_plan(RankBuilder *rb);
WindowUse *sim_window_use(RankBuilder *rb, const Chunk *chunk, int segment, SimPass pass, SimMemDelta *mem);

/* program_groups.c */
void sim_program_groups(const Builder *builder, SimProgram *program);

/* program_resources.c: rows with the instances of the ranks that are simulated. */
void sim_program_resources(const SimPlan *plan, OrrArena *arena, SimProgram *program);

#endif
