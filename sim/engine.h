/* sim/engine.h - the clockwork: ranks, streams, ops, collectives, resources, and the time that they take.
 *
 * CUDA's model. A rank has streams; a stream is a program counter walking an instruction list in order; an
 * instruction is an op of some duration or a collective that starts when its whole group has arrived, behind a
 * wait for a point in another stream (of this rank or another) or without one. Ranks of one class (replicas of a pipeline
 * stage) share one list, so memory grows with ranks x streams. Time is int64_t picoseconds.
 *
 * Rates. An op holds shares of resources: rows of a table, each with a capacity and with instances that one rank,
 * some ranks or all of them share. A reserved share is held in full while the op runs; a fair share is what the op could
 * use at full rate, and where the fair shares of a resource exceed what is left of it, its ops slow down: max-min
 * fair over everything that is connected by resources which cannot serve all. A collective is one op that holds the
 * shares of all its members. Rates are integers in 1/SIM_FULL_RATE; the engine moves the ends. Everything that
 * happens at one instant is processed in the order it was pushed, then rates are settled once.
 *
 * Streams, memory kinds and tiers are rows too: a program brings its own tables or uses the standard ones. A rank may
 * have its own speed, and a resource another capacity from some instant on: both are inputs of a program.
 *
 * The engine knows nothing of models, costs or schedules (it includes no costmodel, spec or stdio). It
 * allocates only before the first event (but for the rates that it records). Same input, same output, to the byte.
 */
#ifndef ORR_SIM_ENGINE_H
#define ORR_SIM_ENGINE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "sim/picoseconds.h"

/* Rows of sim_standard_streams(). A program with more streams appends rows behind them. The compute stream is the one
 * whose time is accounted for. */
typedef enum {
    SIM_STREAM_COMPUTE,
    SIM_STREAM_REDUCE,    /* reductions that have a queue apart from gathers */
    SIM_STREAM_DATA,      /* gradient reductions, parameter gathers */
    SIM_STREAM_SEND_NEXT, /* activations to the next stage */
    SIM_STREAM_SEND_PREV, /* gradients to the previous stage */
    SIM_STREAM_H2D,
    SIM_STREAM_D2H,
    SIM_STREAM_HOST,
    SIM_STREAM_NVME_READ,
    SIM_STREAM_NVME_WRITE,
    SIM_STREAM_COUNT
} SimStream;

#define SIM_MAX_STREAMS 16

typedef enum {
    SIM_RUNS_KERNELS, /* the only kind that a rank's speed scales */
    SIM_RUNS_COLLECTIVES,
    SIM_RUNS_MESSAGES,
    SIM_RUNS_COPIES,
    SIM_RUNS_HOST,
    SIM_RUNS_STORAGE
} SimStreamKind;

typedef struct SimStreamRow {
    const char *name; /* "data comm": in traces and messages */
    SimStreamKind kind;
} SimStreamRow;

/* What a stretch of time was spent on: the report's `time` keys. */
typedef enum {
    SIM_PART_COMPUTE,
    SIM_PART_RECOMPUTE,
    SIM_PART_TENSOR_COMM,
    SIM_PART_CONTEXT_COMM,
    SIM_PART_EXPERT_COMM,
    SIM_PART_PIPELINE_COMM,
    SIM_PART_DATA_COMM,
    SIM_PART_OFFLOAD,
    SIM_PART_OPTIMIZER,
    SIM_PART_OTHER,
    SIM_PART_COUNT
} SimPart;

/* What an op is, for traces and checks. */
typedef enum {
    SIM_TAG_FORWARD,
    SIM_TAG_BACKWARD,
    SIM_TAG_BACKWARD_INPUT,
    SIM_TAG_BACKWARD_WEIGHT,
    SIM_TAG_FORWARD_BACKWARD, /* DualPipe's overlapped pair */
    SIM_TAG_SEND_FORWARD,
    SIM_TAG_SEND_BACKWARD,
    SIM_TAG_GRAD_REDUCE,
    SIM_TAG_PARAM_GATHER,
    SIM_TAG_EMBEDDING_REDUCE,
    SIM_TAG_GRAD_NORM,
    SIM_TAG_OPTIMIZER,
    SIM_TAG_OVERHEAD,
    SIM_TAG_OFFLOAD,
    SIM_TAG_COUNT
} SimTag;

/* --- resources --- */

#define SIM_FULL_RATE ((int32_t)1 << 20)

/* Capacities and amounts of a row are in one unit a second, whatever it is (bytes/s, cores, 1/1024 of the SMs); rows
 * that messages cross one after the other (port, NIC, uplink) are in the same one. */
#define SIM_MAX_CAPACITY ((int64_t)1 << 42)

typedef struct SimResource {
    const char *name; /* "scale-out port", "PCIe root" ... */
    int64_t capacity; /* of one instance */
    /* [ranks] which instance a rank's ops use; SIM_NO_INSTANCE: it has none. NULL: each rank has its own. */
    const int32_t *instance_of_rank;
    int32_t instances; /* with instance_of_rank */
} SimResource;

#define SIM_NO_INSTANCE (-1)

typedef enum {
    SIM_SHARE_FAIR,     /* used in proportion to the op's rate: slows down where there is too little */
    SIM_SHARE_RESERVED, /* held in full while the op runs, whatever its rate: the others get what is left */
} SimShareMode;

/* A work that holds fair shares of several resources is treated fairly in what its first one counts. */
typedef struct SimShare {
    int64_t amount;   /* at full rate; 0: the share is not there, nor are those behind it */
    int16_t resource; /* row of SimProgram.resources */
    uint8_t mode;     /* SimShareMode */
    int32_t instance; /* 0: that of the rank which runs the op; n > 0: instance n - 1, whoever runs it */
} SimShare;

#define SIM_WORK_SHARES 4

/* How long and on what: shared by all instructions that do the same. */
typedef struct SimWork {
    int64_t part_ps[SIM_PART_COUNT];         /* the duration at full rate is their sum */
    int64_t scale_up_bytes, scale_out_bytes; /* sent by this rank: for byte accounting */
    int64_t second_bytes; /* of both: behind the others, among the ranks of another group */
    SimShare shares[SIM_WORK_SHARES];
    const SimShare *more_shares; /* behind those; NULL: none */
    int32_t more_share_count;
} SimWork;

/* From time_ps on an instance (SIM_NO_INSTANCE: every one; of a row without a map the rank's number) has another
 * capacity; 0: what needs it stands still. */
typedef struct SimCapacityEvent {
    int64_t time_ps;
    int16_t resource;
    int32_t instance;
    int64_t capacity;
} SimCapacityEvent;

/* --- memory --- */

/* Where memory is. Rows of sim_standard_tiers(). The level and peak of a rank are those of row 0. */
typedef enum { SIM_TIER_GPU, SIM_TIER_HOST, SIM_TIER_NVME, SIM_TIER_COUNT } SimTierRow;

typedef struct SimTier {
    const char *name;
    int64_t capacity_bytes;          /* of one instance; 0: not known, sim_run_check() leaves it alone */
    const int32_t *instance_of_rank; /* as of a SimResource */
    int32_t instances;
} SimTier;

/* Memory kinds that move during a step. Rows of sim_standard_mem_kinds(); a program may have more behind them. */
typedef enum {
    SIM_MEM_ACTIVATIONS,
    SIM_MEM_WORKSPACE,
    SIM_MEM_WEIGHTS,
    SIM_MEM_GRADIENTS,
    SIM_MEM_OPTIMIZER,
    SIM_MEM_HOST, /* in the host's memory: no part of the GPU's level or peak */
    SIM_MEM_NVME, /* on the node's disks: likewise */
    SIM_MEM_COUNT,
    SIM_MEM_GPU_COUNT = SIM_MEM_HOST
} SimMem;

#define SIM_MAX_MEMS  8
#define SIM_MAX_TIERS 4

typedef struct SimMemKind {
    const char *name;
    int tier; /* row of the program's tiers */
} SimMemKind;

/* Bytes taken (or given back, negative) when an op starts and when it ends. */
typedef struct SimMemDelta {
    int64_t start_bytes[SIM_MAX_MEMS], end_bytes[SIM_MAX_MEMS];
} SimMemDelta;

/* --- the program --- */

typedef enum { SIM_OP, SIM_COLLECTIVE } SimOpKind;

/* What instructions do: one row for all micro-batches of a pass or a message. */
typedef struct SimOp {
    uint8_t kind;  /* SimOpKind */
    uint8_t tag;   /* SimTag */
    uint8_t group; /* SIM_COLLECTIVE: index of SimGroups */
    int32_t work;  /* index into SimProgram.works */
    int32_t mem;   /* index into SimProgram.mems; -1: none */
    int32_t stage; /* for traces; -1: none */
} SimOp;

#define SIM_ONLY_WAITS (-1)

/* First it waits, if it waits for anything; then it is an op, a collective, or nothing more. A program may have hundreds
 * of millions of them: four to a cache line. */
typedef struct SimInstr {
    int32_t op;         /* index into SimProgram.ops; SIM_ONLY_WAITS: nothing more */
    int32_t wait_on;    /* sim_wait_on() */
    int32_t wait_count; /* until that stream has completed so many instructions; 0: no wait */
    int32_t microbatch; /* for traces; -1: none */
} SimInstr;

/* A stream of a class (same replica index); class -1: of this rank. */
static inline int32_t sim_wait_on(int cls, int stream)
{
    return cls * SIM_MAX_STREAMS + stream;
}
static inline int sim_wait_stream(const SimInstr *instr)
{
    return instr->wait_on & (SIM_MAX_STREAMS - 1);
}
/* `own` where it waits for its own rank. */
static inline int sim_wait_class(const SimInstr *instr, int own)
{
    return instr->wait_on < 0 ? own : instr->wait_on / SIM_MAX_STREAMS;
}

typedef struct SimList {
    const SimInstr *instrs;
    int64_t count;
} SimList;

/* Instruction lists of one class. */
typedef struct SimClass {
    SimList streams[SIM_MAX_STREAMS];
    int64_t static_bytes[SIM_MAX_MEMS]; /* present before the first instruction */
} SimClass;

/* One communicator kind: which instance each rank belongs to. Rank = class x replicas + replica. */
typedef struct SimGroups {
    const int32_t *instance_of_rank; /* -1: not a member; NULL: one instance per rank of size 1 (folded) */
    int32_t instances;
} SimGroups;

#define SIM_MAX_GROUPS 16

typedef struct SimProgram {
    int classes, replicas; /* ranks simulated = classes x replicas */
    const SimClass *class_list;
    const SimOp *ops;
    int32_t op_count;
    const SimWork *works;
    int64_t work_count;
    const SimMemDelta *mems;
    int64_t mem_count;
    SimGroups groups[SIM_MAX_GROUPS];
    int group_count;
    const SimStreamRow
        *streams; /* with stream_count 0: the standard ones; the same holds for the next tables */
    int stream_count;
    const SimMemKind *mem_kinds;
    int mem_kind_count;
    const SimTier *tiers;
    int tier_count;
    const SimResource *resources; /* there are no standard ones */
    int resource_count;
    const SimCapacityEvent *capacity_events; /* by time */
    int64_t capacity_event_count;
    /* [ranks] how fast a rank computes, in 1/SIM_FULL_RATE of what the works say: the compute, recompute and optimizer
     * parts of its ops on streams that run kernels take SIM_FULL_RATE / speed times as long. NULL: all are at full. */
    const int32_t *rank_speed;
    /* Rates of contended ops are multiples of this, rounded down; 0: SIM_FULL_RATE / 1024, which is fine enough for
     * collectives in closed form; 1: as fine as it goes, for messages by the thousand on one link. */
    int32_t rate_grain;
    /* Nothing joins all ranks at the end of the step: each goes on with its next one when it is done, later ranks later
     * by as much as they began later. The step is then the longest time from a rank's first op to its end. */
    bool skewed;
} SimProgram;

/* One executed op: recorded when asked. */
typedef struct SimSpan {
    int64_t start_ps, end_ps;
    int32_t rank;
    uint8_t stream, tag;
    int32_t stage, microbatch;
    int32_t work;
} SimSpan;

/* From time_ps on the running op of a stream has another rate than before, which was the full one unless recorded. */
typedef struct SimRateChange {
    int64_t time_ps;
    int32_t rank, rate;
    uint8_t stream;
} SimRateChange;

/* Memory of a rank after a change: recorded when asked. */
typedef struct SimLevel {
    int64_t time_ps;
    int32_t rank;
    int64_t bytes[SIM_MAX_MEMS];
} SimLevel;

typedef struct SimRankResult {
    int64_t start_ps;                /* its step begins: 0; of a skewed program its first op of any stream */
    int64_t end_ps;                  /* last op of any stream */
    int64_t part_ps[SIM_PART_COUNT]; /* compute stream: compute parts, and communication it waited for */
    int64_t idle_ps;                 /* step - sum(part_ps): bubble, between start and start + step */
    int64_t first_start_ps, last_end_ps; /* compute stream */
    int64_t busy_ps;                     /* compute stream */
    int64_t peak_bytes;                  /* all kinds of the GPU together */
    int64_t host_peak_bytes;             /* SIM_TIER_HOST */
    int64_t peak_time_ps;
    int64_t at_peak_bytes[SIM_MAX_MEMS];
    int64_t final_bytes[SIM_MAX_MEMS];       /* must equal the static bytes */
    int64_t scale_up_bytes, scale_out_bytes; /* sent */
} SimRankResult;

typedef struct SimResult {
    int64_t step_ps; /* longest end - start over ranks */
    int64_t end_ps;  /* last end over ranks; the step, unless the program is skewed */
    int ranks;
    int critical_rank;   /* takes longest; the lowest number on a tie */
    SimRankResult *rank; /* [ranks] */
    int64_t ops;         /* ops and collectives completed */
    SimSpan *spans;      /* NULL unless recorded; by end time, then order of completion */
    int64_t span_count;
    SimLevel *levels;
    int64_t level_count;
    SimRateChange *rates; /* NULL unless spans are recorded; by time */
    int64_t rate_count;
    /* [instances] of tiers with a map, which several ranks share; NULL: the tier has none */
    int64_t *tier_peak_bytes[SIM_MAX_TIERS];
} SimResult;

typedef enum { SIM_RECORD_SPANS = 1, SIM_RECORD_LEVELS = 2 } SimRecord;

/* Runs to the end. Fails (ORR_ERROR_INPUT) on a deadlock, naming the cycle, on an op that stands still for ever, and on
 * times that the clock cannot hold (9,223,372 s). All results live in `arena`. */
bool sim_engine_run(const SimProgram *program, unsigned record, OrrArena *arena, SimResult *ret_result,
                    GError **error);

/* Invariants of any run (docs/MODEL.md "What must hold"): every instruction ran once, no two ops overlap on
 * a stream, dependencies hold, busy + idle = step, parts add up, bytes sent are those of the ops, memory ends where it
 * began, peak = maximum of the levels, no resource is over its capacity at any instant, every op does all of its work
 * at the rates it had, no tier is above its capacity. Needs spans and levels recorded. The message names the first
 * violation. */
bool sim_run_check(const SimProgram *program, const SimResult *result, GError **error);
/* Whether a tier holds more than its capacity at some instant: "does not fit", which is a result. Needs levels recorded. */
bool sim_run_overfills(const SimProgram *program, const SimResult *result);
/* The program with tiers of any size, for the check of such a run. */
void sim_program_unbounded(SimProgram *program, OrrArena *arena);

/* The standard tables, and those of a program. */
const SimStreamRow *sim_standard_streams(int *ret_count);
const SimTier *sim_standard_tiers(int *ret_count);
const SimMemKind *sim_standard_mem_kinds(int *ret_count);
const SimStreamRow *sim_program_streams(const SimProgram *program, int *ret_count);
const SimTier *sim_program_tiers(const SimProgram *program, int *ret_count);
const SimMemKind *sim_program_mem_kinds(const SimProgram *program, int *ret_count);

/* Sum of the parts, INT64_MAX where that is more. */
int64_t sim_work_duration_ps(const SimWork *work);
/* Of it: the parts that a rank's speed scales. */
int64_t sim_work_compute_ps(const SimWork *work);
/* What it takes when `compute_ps` of `duration_ps` run at `speed` / SIM_FULL_RATE, rounded up; at most INT64_MAX. */
int64_t sim_duration_at_speed_ps(int64_t duration_ps, int64_t compute_ps, int32_t speed);
/* More time in a part; so many times the times and bytes; times and bytes of another work, shares stay those of `sum`.
 * All stop at INT64_MAX. */
void sim_work_spend(SimWork *work, SimPart part, int64_t ps);
void sim_work_repeat(SimWork *work, int64_t times);
void sim_work_add(SimWork *sum, const SimWork *term);
/* Puts a share behind those that the work has, of which there must be fewer than SIM_WORK_SHARES. */
void sim_work_hold(SimWork *work, int resource, SimShareMode mode, int64_t amount);
/* Share `index` of a work, NULL behind the last: for (int i = 0; (share = sim_work_share(work, i)) != NULL; i++) */
const SimShare *sim_work_share(const SimWork *work, int index);

/* "forward", "send gradient" ...: for people. */
const char *sim_tag_label(SimTag tag);

#endif
