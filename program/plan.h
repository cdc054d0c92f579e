/* program/plan.h - one training step as durations and bytes: what step/step.c computes from a Spec and what
 * program/program.c lowers to instruction lists. Tests fill it by hand.
 *
 * A pipeline of `shape.ranks` ranks holds ranks x chunks model stages. A stage is a list of segments (layers,
 * buckets of layers, sharded units): the pieces inside a pass that something else can wait for. A pass over
 * a stage is one op of summed work unless data-parallel communication has to start or arrive inside it:
 * then it is one op a segment. Expanded and collapsed agree to the picosecond.
 */
#ifndef ORR_PROGRAM_PLAN_H
#define ORR_PROGRAM_PLAN_H

#include "sim/engine.h"
#include "schedule/schedule.h"
#include "program/servers.h"

/* Rows of sim_standard_resources(), which each rank has for itself. Their amounts are parts of the whole. */
typedef enum {
    SIM_RESOURCE_SM,        /* kernels want all of it; communication beside them reserves a part */
    SIM_RESOURCE_SCALE_UP,  /* port into the scale-up domain */
    SIM_RESOURCE_SCALE_OUT, /* NIC */
    SIM_RESOURCE_COUNT
} SimResourceRow;

#define SIM_WHOLE_RESOURCE 1024

/* A resource of a plan: `sharers` ranks that are neighbours in their numbers share an instance; 0: all of them. */
typedef struct SimPlanResource {
    const char *name;
    int64_t capacity; /* of an instance, as of a SimResource */
    int sharers;
} SimPlanResource;

/* What a piece of the model moves between the GPU and the levels below it. A zero duration: nothing. */
typedef struct SimOffload {
    SimWork check;       /* on the GPU, before the last micro-batch's gradient leaves */
    SimWork grad_ahead;  /* reduced gradient to the host: what passes wait for ... */
    SimWork grad_out;    /* ... and what they may go on beside */
    SimWork sum_in;      /* of earlier micro-batches, back to the GPU; zero: the host adds */
    SimWork sum_out;     /* of a micro-batch that is not the last, to the host; zero: as the last one's */
    SimWork scale;       /* on the host: all pieces, before the first update */
    SimWork accumulate;  /* on the host: added to those of earlier micro-batches */
    SimWork update;      /* on the host: master copy, moments and weights */
    SimWork state_in;    /* from the disks before the update ... */
    SimWork state_out;   /* ... and back behind it */
    SimWork weight_in;   /* updated weights to the GPU */
    SimWork read, fetch; /* weights from the disks to the host and on to the GPU, before each use ... */
    SimWork backward_read, backward_fetch; /* ... by a backward */
    SimWork
        direct; /* the first forward where it reads weights in the host's memory; zero: it waits for a copy */
    int64_t grad_bytes; /* on the GPU until they have left */
    int64_t
        weight_bytes; /* on the GPU from the fetch until the next piece takes the place, or the gather has run */
} SimOffload;

/* In which order. */
typedef enum {
    SIM_UPDATE_BARRIER,
    SIM_UPDATE_LAYERWISE,
    SIM_UPDATE_DELAYED,
    SIM_UPDATE_FIRST
} SimUpdateOrder;

typedef struct SimOffloadOrder {
    bool on;                    /* some segment has a SimOffload */
    SimUpdateOrder update;      /* docs/MODEL.md "Offload" */
    bool each_microbatch;       /* gradients leave on every micro-batch, else behind the last */
    bool passes_wait;           /* ... and passes for all of them */
    bool gradients_at_step;     /* gradients leave behind the last reduction of all */
    bool update_beside_copies;  /* behind the norm a piece is updated once its own gradient has left */
    bool one_at_a_time;         /* the host waits for a piece's copy before it updates the next */
    bool reads_beside;          /* the next piece's states come from the disks beside an update ... */
    bool writes_beside;         /* ... and the last one's go back; else one after the other */
    int window;                 /* layers of weights on the GPU at once; 0: all, or ZeRO-3 gathers them */
    int copy_ahead, read_ahead; /* uses by which fetches and reads may run before the gather */
} SimOffloadOrder;

typedef struct SimSegment {
    SimWork forward, backward_input, backward_weight; /* backward in one op: the two in a row */
    SimWork recompute; /* before the backward; part_ps all in recompute (and its communication) */
    /* Data parallelism. A zero duration means: none. */
    SimWork param_gather;        /* ZeRO-1/2: once a step, before the first forward; ZeRO-3: every pass */
    SimWork backward_gather;     /* ZeRO-3: the backward's gather where it is another one ... */
    bool backward_gathers_apart; /* ... which this says */
    bool
        root; /* ZeRO-3: gathered and reduced with the stage's last segment, there from forward to backward */
    bool stops;          /* no gradient reaches it: it has no backward, for which nothing is gathered */
    SimWork grad_reduce; /* after the last backward; ZeRO-2/3 may do it on every micro-batch */
    SimWork copy_out, copy_back;        /* of its activations to the host and back; zero: they stay */
    int64_t leaving_bytes;              /* of its activations, those that leave */
    const SimOffload *offload;          /* states that are not on the GPU; NULL: all are */
    double dense_params, expert_params; /* trained, on this rank, before ZeRO */
    double frozen_bytes,
        reference_bytes; /* of weights that this rank holds beside them, and of a second model's */
    /* Memory of one micro-batch. */
    int64_t activation_bytes; /* taken at the start of the forward */
    int64_t
        activation_input_only_bytes; /* of them given back after backward_input (the rest after backward_weight) */
    int64_t forward_temp_bytes, backward_temp_bytes; /* workspace alive during the pass */
    int64_t gathered_param_bytes;                    /* ZeRO-3: unsharded weights while alive */
    int64_t unsharded_grad_bytes;                    /* ZeRO-2/3: unreduced gradient while alive */
} SimSegment;

typedef struct SimStage {
    int segment_count; /* at least 1 */
    SimSegment *segments;
    int first_layer, layers; /* the segments that are transformer layers */
    int offloaded;           /* the first of them, whose activations wait on the host ... */
    bool offloaded_to_disks; /* ... or on its disks */
    bool copies_wait;        /* what leaves is copied on the stream of the passes */
    int64_t passed_bytes;    /* of the first segment's activations, what came in for all layers */
    SimWork send_next;       /* activation to the next stage (its rank's NIC or scale-up link) */
    SimWork send_prev;       /* gradient to the previous stage */
    SimWork
        overlapped_pair; /* DualPipe: a forward beside a backward of the rank's other chunk; zero: no overlap */
    /* Of the first segment's forward and the last one's backward: behind a message the GPU idles for the host. */
    int64_t forward_check_ps, backward_check_ps;
} SimStage;

typedef struct SimRankPlan { /* one pipeline rank */
    SimWork begin, end;      /* before the first pass and behind the last one; zero: nothing */
    SimWork optimizer;
    SimWork embedding_reduce; /* tied embeddings: first and last rank only, else zero */
    int64_t static_bytes[SIM_MAX_MEMS];
    int64_t moments_bytes;               /* of the optimizer's states */
    int64_t end_workspace_bytes;         /* of the workspace: without its layers' part ... */
    int64_t least_layer_workspace_bytes; /* ... and what a layer of the kind that takes least adds */
    int64_t stranded_bytes;              /* reserved by the allocator at the peak, of use to no tensor */
    int64_t limit_bytes;                 /* activations that a schedule which asks may hold; 0: no limit */
} SimRankPlan;

/* Compression of all gradients of a rank at once, against the dense all-reduce. */
typedef struct SimCompression {
    double dense_bytes, payload_bytes; /* what a rank has to send */
    double residual_bytes;             /* kept for error feedback */
    double select_s, restore_s;        /* on the GPU, before and behind the wire */
    double dense_s, compressed_s;
    double break_even_frac;        /* topk: takes as long as the dense one; 0: none does */
    double volume_break_even_frac; /* topk: sends as much */
} SimCompression;

/* What passes and messages of each micro-batch take whatever their works say: [stages x micro-batches], -1: what those say;
 * NULL: all of them. A backward in two halves splits it as its works do. */
typedef struct SimMeasured {
    const int64_t *forward_ps, *backward_ps, *send_next_ps, *send_prev_ps;
} SimMeasured;

typedef struct SimPlan {
    const SimSchedule *schedule;
    SimScheduleShape shape;
    const SimOrder *orders;      /* [ranks] given ones; NULL: the schedule generates them */
    SimStage *stages;            /* [ranks x chunks] along the model */
    const SimMeasured *measured; /* NULL: nothing was */
    SimRankPlan *ranks;          /* [ranks] */
    /* Data parallelism. */
    int zero;                  /* 0-3 */
    bool overlap_grad_reduce;  /* beside the backward, else after the last one */
    bool overlap_param_gather; /* ZeRO-1/2: beside the forwards of the next step, else after the optimizer */
    bool gathers_on_use;       /* overlap_param_gather: a chunk's wait for its first forward */
    bool reduce_each_microbatch; /* ZeRO-2/3: reduce-scatter on every micro-batch */
    bool reduction_holds_queue;  /* compute launched behind a reduction waits for it */
    bool reshard_after_forward;  /* ZeRO-3 */
    bool whole_chunks; /* ZeRO-2/3: gathers and reductions once a chunk and pass (SIM_TRAIT_WHOLE_CHUNKS) */
    /* ZeRO-3 without reshard_after_forward: true gives the weights back after every backward (FSDP without a
     * pipeline), false after the last one of the step (PyTorch's pipelines keep them). */
    bool reshard_after_backward;
    bool one_data_stream; /* ZeRO-3: gathers and reductions in one queue; false: a queue each */
    int prefetch_units;   /* ZeRO-3: gathers ahead of compute */
    SimOffloadOrder offload;
    /* Pipeline. */
    bool p2p_blocking; /* compute waits for its own send */
    /* The LM head's weight gradient of the first `deferred_heads` micro-batches: their backwards on the last stage take
     * `head_left_out` less, and `head_later` of each runs when the stage's passes are over; `head_held_bytes` of each
     * are kept until then. */
    int deferred_heads;
    SimWork head_left_out, head_later;
    int64_t head_held_bytes;
    /* Once a step. */
    SimWork grad_norm; /* collective over all ranks; zero: none */
    /* Post-validation [Qi2024]: where weight gradients run apart, no collective joins the pipeline ranks. The sum of the
     * squared norms goes from rank to rank, each steps when it has the part of those before it, and the whole comes back
     * during the next step's warm-up, where it hides; a step that it would have clipped is undone, which is rare and not
     * modelled. */
    bool post_validation;
    SimWork stage_norm; /* collective over the ranks of one pipeline rank; zero: none */
    SimWork norm_hop;   /* message from one pipeline rank to the next */
    SimWork overhead;   /* on the compute stream at the end of the step */
    /* Ranks. */
    int tensor, context, data, expert; /* degrees, for the groups of an unfolded run */
    /* What works hold shares of, the standard rows first; resource_count 0: those alone. Streams, memory kinds and tiers,
     * capacity events, speeds: as of a SimProgram, with the ranks of an unfolded one. */
    const SimPlanResource *resources;
    int resource_count;
    const SimStreamRow *streams;
    int stream_count;
    const SimMemKind *mem_kinds;
    int mem_kind_count;
    const SimTier *tiers; /* without maps: see tier_sharers */
    int tier_count;
    int tier_sharers[SIM_MAX_TIERS]; /* ranks that share an instance, as of a SimPlanResource; 1: its own */
    const SimCapacityEvent *capacity_events;
    int64_t capacity_event_count;
    const int32_t *rank_speed;
    int32_t rate_grain;
    const SimServerResult *servers;    /* NULL: no parameter servers */
    const SimCompression *compression; /* NULL: none */
} SimPlan;

const SimPlanResource *sim_standard_resources(int *ret_count);

/* One rank can stand for all replicas of a pipeline rank: none differs in speed or in what happens to its resources, and
 * what several ranks share they share among replicas of one pipeline rank, so that each gets an equal part at any instant. */
bool sim_plan_folds(const SimPlan *plan);

/* Stages of one copy of the model: the first of `stages`. */
int sim_plan_model_stages(const SimPlan *plan);

/* The order of every pipeline rank, [ranks] in `arena`: given or generated. */
SimOrder *sim_plan_orders(const SimPlan *plan, OrrArena *arena);
/* What a schedule that follows times and memory thinks shortest: its `generate_all` for this plan's stages and limits. */
int sim_plan_candidates(const SimPlan *plan, int most, OrrArena *arena, SimOrder **ret_orders);
/* Sets `orders` to the one of them that takes the engine least: what the schedule's own clock leaves out (shares, gathers,
 * single buckets) counts. Of few passes all are run, of many some. No other schedule is touched. */
void sim_plan_choose_orders(SimPlan *plan, OrrArena *arena);

/* Lowers the plan. `unfold` false: one rank for each pipeline rank (replicas 1) where the plan folds; true: all
 * ranks x tensor x context x data of them, with their groups. Everything lives in `arena`. */
bool sim_program_build(const SimPlan *plan, bool unfold, OrrArena *arena, SimProgram *ret_program,
                       GError **error);

#endif
