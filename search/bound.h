/* search/bound.h - what a point takes at least, in time and memory, without running it.
 *
 * Every bound is proved never to be above what the engine finds (docs/SEARCH.md derives them): durations are the
 * plan's own at full rate, and the engine can only add waiting and slower rates to them.
 */
#ifndef ORR_SEARCH_BOUND_H
#define ORR_SEARCH_BOUND_H

#include "schedule/facts.h"
#include "search/costs.h"
#include "step/policy.h"

#define SEARCH_SAMPLES 3 /* pipeline ranks whose memory and data parallelism are looked at */

/* Which bound decides a point. */
typedef enum {
    SEARCH_BOUND_MEMORY,
    SEARCH_BOUND_COMPUTE,  /* work of the whole model over the pipeline ranks */
    SEARCH_BOUND_PIPELINE, /* fill, the slowest rank's micro-batches, drain */
    SEARCH_BOUND_DATA,     /* and gradient reduction, gathers, optimizer behind them */
    SEARCH_BOUND_REPLAY,   /* the longest path through the schedule's own order */
    SEARCH_BOUND_COUNT
} SearchBoundKind;

/* What data parallelism adds on the sampled ranks, by policy; independent of the micro-batch. */
typedef struct SearchDataCosts {
    int64_t reduce_ps, last_reduce_ps, near_reduce_ps; /* all; the last bucket; those of chunk 0 */
    int64_t gather_ps, first_gather_ps;
    int64_t wait_ps;   /* the first forward of chunk 0 takes longer by, if its gathers begin with it */
    int64_t stream_ps; /* ZeRO-3: gathers of one micro-batch, or of all where a chunk keeps its weights */
    int64_t link_ps;   /* ZeRO-3: gathers and reductions of one micro-batch on the link that they share */
    /* Likewise what they take of the SMs, in time of all of them. */
    int64_t reduce_sms_ps, last_reduce_sms_ps, gather_sms_ps, stream_sms_ps;
    double most_sms_frac; /* that one of them reserves */
    int64_t optimizer_ps;
    double static_bytes;
    double whole_bytes;    /* ZeRO-3: unsharded gradients, and weights where they stay gathered */
    double gathered_bytes; /* ZeRO-3: weights that stay gathered from the forward to the backward */
} SearchDataCosts;

/* When compute is over at the earliest. */
typedef struct SearchEnds {
    int64_t first_ps;                   /* rank 0's */
    int64_t own_ps[SEARCH_SAMPLES];     /* the sampled ranks' */
    int64_t latest_ps;                  /* any rank's */
    int64_t reduced_ps[SEARCH_SAMPLES]; /* and reductions beside it, where a replay ran these */
    int64_t latest_reduced_ps;
} SearchEnds;

/* What a pass of a stage waits for and leaves to data parallelism. */
typedef struct SearchStageData {
    int64_t gather_ps;
    int64_t wait_ps;                           /* a forward that begins with the gathers is longer by */
    int64_t reduce_ps, last_reduce_ps;         /* all; what is behind the pass for certain */
    int64_t reduce_sms_ps, last_reduce_sms_ps; /* what they take of the SMs, in time of all of them */
    double gather_sms_frac;                    /* that every gather reserves */
} SearchStageData;

/* How points of a recomputation run its schedule. */
typedef struct SearchWay {
    bool blocking;                 /* compute waits for its messages */
    bool sharded;                  /* ZeRO-3 */
    StepGathers gathers;           /* NONE also where they are not looked at */
    StepReduces reduces;           /* LATE also where they are not looked at */
    const SearchStageData *stages; /* [ranks][stages of a rank]; NULL where neither is looked at */
} SearchWay;

/* Scratch of one thread. */
typedef struct SearchWorker {
    SearchSpace *space;
    SearchTables *tables;
    const SearchGroup *group;
    const SearchCosts *costs;                /* of the first kind of GPUs: what does not depend on it */
    SearchCosts own_costs[SPEC_MOST_GROUPS]; /* of table `unpacked`, by kind of GPUs (search/hardware.h) */
    int kinds, kind_of_rank[SPEC_MAX_STAGES];
    Spec *own_spec;   /* scratch: `spec` on one kind of GPUs; NULL where all are alike */
    StepPolicy rules; /* of `spec` under the policy at hand */
    int unpacked;
    OrrArena *arena;
    const SearchPartition *partition;
    SimScheduleShape shape;
    const SimOrderFacts
        *facts; /* of the partition's order; NULL: nothing is known of it before its times are */
    Spec spec;  /* of the group; zero and zero_group_gpus change */
    GHashTable *buckets;
    int stages, ranks, chunks;
    int64_t head_left_out_ps; /* by a backward that leaves the LM head's weight gradient for the end */
    int deferred_heads;       /* micro-batches whose LM head's weight gradient may wait, of any policy */
    int sample[SEARCH_SAMPLES];
    int64_t forward_ps[SPEC_MAX_STAGES], input_ps[SPEC_MAX_STAGES], weight_ps[SPEC_MAX_STAGES];
    int64_t recompute_ps[SPEC_MAX_STAGES];
    bool exchanges[SPEC_MAX_STAGES];  /* tokens between experts */
    int64_t pair_ps[SPEC_MAX_STAGES]; /* a forward of the stage beside a backward, of schedules with pairs */
    int64_t hop_ps[SPEC_MAX_STAGES];  /* from rank r to r + 1, the last to 0 */
    int64_t fill_ps[SPEC_MAX_STAGES]; /* before a rank's first op */
    struct SearchReplay *replay;
    int64_t give_up_ps; /* a replay may stop once it is known to take longer */
    /* Of the recomputation at hand; [1]: compute waits for its messages. */
    int64_t rank_end_ps[2][SPEC_MAX_STAGES]; /* a rank's compute is over, by fill and work */
    int64_t back_end_ps[2][SPEC_MAX_STAGES]; /* rank 0's, by those of each rank and the way back from there */
    int64_t trips_ps;                        /* rank 0's, by micro-batches in a row */
    SearchEnds ends[2], replayed[2];         /* of all of these; by a replay, 0: none */
    SearchEnds with_data;                    /* by one that ran gathers or reductions as well */
    int64_t work_end_ps[SEARCH_SAMPLES];     /* the sampled ranks' by fill and work alone */
    int64_t use_end_ps[SEARCH_SAMPLES];      /* by fill and the passes that use weights */
    double rank_live_bytes[SPEC_MAX_STAGES]; /* of every rank, after a replay */
    double live_bytes[SEARCH_SAMPLES];       /* activations and workspace at some moment */
    double first_bytes[SEARCH_SAMPLES]; /* activations at the first backward; below 0: no moment is known when
                                                every chunk had a forward and none a backward */
    double beside_bytes
        [2][SEARCH_SAMPLES]; /* activations at some moment when all gradients are there; [1]: they may
                                               be reduced as soon as a chunk's last one is added; below 0: never */
} SearchWorker;

SearchWorker *search_worker_new(SearchSpace *space, SearchTables *tables);
void search_worker_free(SearchWorker *worker);

/* Of a partition whose layers or micro-batches are dealt out anew at every point (search/hardware.h): by what runs again,
 * and the pipeline's fill where it is known. Of the worker's group. */
int64_t search_bound_loose(SearchWorker *worker, const SearchPartition *partition,
                           const SpecRecompute *recompute, const SearchPolicy *policy);

/* Least time of any point of the group whose schedule runs no pairs: its compute spread evenly over the pipeline, or one
 * micro-batch's way through the model and back. */
int64_t search_bound_group(const SearchTables *tables, const SearchGroup *group);
/* Of those that run forwards beside backwards: each rank takes the longer side of all its passes at least. */
int64_t search_bound_group_pairs(const SearchTables *tables, const SearchGroup *group);
/* Least time of any point of the group in which its GPUs work, the mean of all; of GPUs of one kind. */
int64_t search_bound_busy(const SearchTables *tables, const SearchGroup *group);

void search_worker_group(SearchWorker *worker, const SearchGroup *group);
void search_worker_partition(SearchWorker *worker, const SearchPartition *partition);
/* After the recomputation: its bounds are also those of a replay of the schedule from now on. False when the order locks up.
 * Also fills in rank_live_bytes. */
bool search_worker_replay(SearchWorker *worker, const SpecRecompute *recompute, const SearchWay *way);
/* After a replay: like search_bound_bytes, over all ranks. */
double search_replay_bytes(SearchWorker *worker, const SearchPolicy *policy);
/* After the partition. Gives the least time of any policy. */
int64_t search_worker_recompute(SearchWorker *worker, const SpecRecompute *recompute);
/* After the recomputation: its memory. */
void search_worker_activations(SearchWorker *worker, const SpecRecompute *recompute);
/* After the partition; `ret_data` has SEARCH_SAMPLES places. The first fills in bytes alone, the second everything. */
void search_worker_states(SearchWorker *worker, const SearchPolicy *policy, SearchDataCosts *ret_data);
void search_worker_data(SearchWorker *worker, const SearchPolicy *policy, SearchDataCosts *ret_data);
/* After the partition: how points of the policy run, `stages` left out, and these: [ranks][stages of a rank]. */
SearchWay search_way(SearchWorker *worker, const SearchPolicy *policy);
void search_worker_stages(SearchWorker *worker, const SearchPolicy *policy, SearchStageData *ret_stages);
/* After the recomputation; `way` with the stages at least where gathers begin with forwards. */
int64_t search_bound_time(SearchWorker *worker, const SearchPolicy *policy, const SearchDataCosts *data,
                          const SearchWay *way);
/* Both bounds of one point, worked out from nothing. */
void search_bound_point(SearchWorker *worker, SearchId id, int64_t *ret_least_ps, double *ret_least_bytes);
/* The same with a replay. */
void search_replay_point(SearchWorker *worker, SearchId id, int64_t *ret_least_ps, double *ret_least_bytes);
/* Bytes that the fullest sampled rank needs at least, context included; of states and workspace alone. */
double search_static_bytes(const SearchWorker *worker, const SearchDataCosts *data);
/* The same with what is alive beside them. */
double search_bound_bytes(SearchWorker *worker, const SearchPolicy *policy, const SearchDataCosts *data);

#endif
