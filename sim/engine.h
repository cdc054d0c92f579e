/* sim/engine.h - the clockwork: ranks, streams, ops, collectives and the time that they take.
 *
 * CUDA's model. A rank has streams; a stream is a program counter walking an instruction list in order; an
 * instruction is an op of some duration, a collective that starts when its whole group has arrived, or a
 * wait for a point in another stream (of this rank or another). Ranks of one class (replicas of a pipeline
 * stage) share one list, so memory grows with ranks x streams. Time is int64_t picoseconds.
 *
 * Rates. While a communication op with `sm_share` runs on a rank, the rank's compute ops run at
 * (1 - sum of shares). Ops that use the same link of a rank share it max-min fair by their `link_demand`.
 * A collective runs at the slowest rate among its members. Rates are integers in 1/1024; the engine
 * moves the ends. Everything that happens at one instant is processed in the order it was pushed, then
 * rates are settled once.
 *
 * The engine knows nothing of models, costs or schedules (it includes no costmodel, spec or stdio). It
 * allocates only before the first event. Same input, same output, to the byte.
 */
#ifndef ORR_SIM_ENGINE_H
#define ORR_SIM_ENGINE_H

#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

typedef enum {
    SIM_STREAM_COMPUTE,
    SIM_STREAM_TENSOR,    /* tensor, context and expert communication that is not inside a compute op */
    SIM_STREAM_DATA,      /* gradient reduction, parameter gathers */
    SIM_STREAM_SEND_NEXT, /* activations to the next stage */
    SIM_STREAM_SEND_PREV, /* gradients to the previous stage */
    SIM_STREAM_H2D,
    SIM_STREAM_D2H,
    SIM_STREAM_HOST,
    SIM_STREAM_NVME_READ,
    SIM_STREAM_NVME_WRITE,
    SIM_STREAM_COUNT
} SimStream;

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

typedef enum { SIM_LINK_NONE, SIM_LINK_SCALE_UP, SIM_LINK_SCALE_OUT, SIM_LINK_HOST, SIM_LINK_COUNT } SimLink;

/* How long and on what: shared by all instructions that do the same. */
typedef struct SimWork {
    int64_t part_ps[SIM_PART_COUNT];         /* the duration at full rate is their sum */
    int64_t scale_up_bytes, scale_out_bytes; /* sent by this rank: for byte accounting */
    uint16_t sm_share;    /* 1/1024 of the SMs taken from compute ops beside it; 0 for compute */
    uint16_t link_demand; /* 1/1024 of the link's bandwidth when alone */
    uint8_t link;         /* SimLink */
} SimWork;

/* Memory kinds that move during a step. */
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

/* Bytes taken (or given back, negative) when an op starts and when it ends. */
typedef struct SimMemDelta {
    int64_t start_bytes[SIM_MEM_COUNT], end_bytes[SIM_MEM_COUNT];
} SimMemDelta;

typedef enum { SIM_OP, SIM_COLLECTIVE, SIM_WAIT } SimInstrKind;

typedef struct SimInstr {
    uint8_t kind;              /* SimInstrKind */
    uint8_t tag;               /* SimTag */
    uint8_t wait_stream;       /* SIM_WAIT: stream waited for */
    uint8_t group;             /* SIM_COLLECTIVE: index of SimGroups */
    int32_t work;              /* index into SimProgram.works; SIM_WAIT: -1 */
    int32_t mem;               /* index into SimProgram.mems; -1: none */
    int32_t wait_class;        /* SIM_WAIT: class waited for (same replica index); -1: this rank */
    int32_t wait_index;        /* SIM_WAIT: satisfied once that stream has completed instruction wait_index */
    int32_t stage, microbatch; /* for traces; -1: none */
} SimInstr;

typedef struct SimList {
    const SimInstr *instrs;
    int64_t count;
} SimList;

/* Instruction lists of one class. */
typedef struct SimClass {
    SimList streams[SIM_STREAM_COUNT];
    int64_t static_bytes[SIM_MEM_COUNT]; /* present before the first instruction */
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
    const SimWork *works;
    int64_t work_count;
    const SimMemDelta *mems;
    int64_t mem_count;
    SimGroups groups[SIM_MAX_GROUPS];
    int group_count;
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

/* Memory of a rank after a change: recorded when asked. */
typedef struct SimLevel {
    int64_t time_ps;
    int32_t rank;
    int64_t bytes[SIM_MEM_COUNT];
} SimLevel;

typedef struct SimRankResult {
    int64_t start_ps;                /* its step begins: 0; of a skewed program its first op of any stream */
    int64_t end_ps;                  /* last op of any stream */
    int64_t part_ps[SIM_PART_COUNT]; /* compute stream: compute parts, and communication it waited for */
    int64_t idle_ps;                 /* step - sum(part_ps): bubble, between start and start + step */
    int64_t first_start_ps, last_end_ps; /* compute stream */
    int64_t busy_ps;                     /* compute stream */
    int64_t peak_bytes;                  /* all kinds of the GPU together */
    int64_t host_peak_bytes;
    int64_t peak_time_ps;
    int64_t at_peak_bytes[SIM_MEM_COUNT];
    int64_t final_bytes[SIM_MEM_COUNT];      /* must equal the static bytes */
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
} SimResult;

typedef enum { SIM_RECORD_SPANS = 1, SIM_RECORD_LEVELS = 2 } SimRecord;

/* Runs to the end. Fails (ORR_ERROR_INPUT) on a deadlock, naming the cycle, and on an op longer than the
 * clock can rate (9,000,000 s / 1024). All results live in `arena`. */
bool sim_engine_run(const SimProgram *program, unsigned record, OrrArena *arena, SimResult *ret_result,
                    GError **error);

/* Invariants of any run (docs/MODEL.md "What must hold"): every instruction ran once, no two ops overlap on
 * a stream, dependencies hold, busy + idle = step, parts add up, bytes sent are those of the ops, memory ends where it
 * began, peak = maximum of the levels. Needs spans and levels recorded. The message names the first
 * violation. */
bool sim_run_check(const SimProgram *program, const SimResult *result, GError **error);

/* "forward", "send gradient" ...; "compute", "tensor comm" ...: for people. */
const char *sim_tag_label(SimTag tag);
const char *sim_stream_label(SimStream stream);

#endif
