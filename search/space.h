/* search/space.h - the configurations that a scenario's "auto" fields allow.
 *
 * A point is one valid assignment of all auto fields; fields that are not auto keep the scenario's value. Two
 * assignments that cannot differ are one point (docs/SEARCH.md lists the rules). The space is a list of groups
 * (degrees, kernels, micro-batch); inside a group a partition (schedule, virtual stages, how layers are dealt out), an
 * choice of recomputation and a data-parallel policy vary independently, so groups are counted without being
 * walked. The order of groups, partitions, recomputes and policies is fixed and breaks ties.
 */
#ifndef ORR_SEARCH_SPACE_H
#define ORR_SEARCH_SPACE_H

#include "schedule/schedule.h"
#include "spec/spec.h"

typedef enum {
    SEARCH_LAYER_EMBEDDING = 1,
    SEARCH_LAYER_LOSS = 2
} SearchCountedAsLayer; /* counted as layers: bits */

/* Schedule, virtual stages, and layers of each stage. */
typedef struct SearchPartition {
    SpecSchedule schedule;
    const SimSchedule *order;
    int virtual_stages;
    unsigned as_layer; /* SearchCountedAsLayer */
    bool by_recipe;    /* layers that a recipe of the software has for the number of stages */
    int stages;        /* of one copy of the model */
    int most_layers;
    int *first; /* [stages + 1]: first layer of each stage */
} SearchPartition;

typedef struct SearchPartitions {
    int pipeline, count;
    SearchPartition *partition;
} SearchPartitions;

/* What the user limits beside memory; a group that breaks several counts with the first. */
typedef enum {
    SEARCH_USER_TENSOR_NODES,
    SEARCH_USER_MICRO_BATCH_TOKENS,
    SEARCH_USER_BATCH_TOKENS,
    SEARCH_USER_LIMITS
} SearchUserLimit;

typedef struct SearchPolicy { /* data parallelism and messages */
    int zero, zero_group_gpus;
    unsigned overlap; /* of grad_reduce, param_gather, pipeline */
} SearchPolicy;

typedef struct SearchGroup {
    int tensor, sequence_parallel, context, pipeline, data, expert, expert_tensor, micro_batch, microbatches,
        microbatch_group;
    int attention, precision, dispatcher;
    int order;        /* of the ranks: index of the space's orders */
    int scheme;       /* what leaves the GPU besides: index of the space's offloads */
    int offloaded;    /* first layers of each stage whose activations wait on the host */
    unsigned overlap; /* of tensor, expert */
    const SearchPartitions *partitions;
    int costs; /* index of its shared tables (search/costs.h) */
} SearchGroup;

/* Names one point: ties are broken by these numbers, in this order. */
typedef struct SearchId {
    int32_t group;
    int16_t partition, recompute;
    int32_t policy;
} SearchId;

typedef struct SearchSpace {
    const Spec *spec;
    OrrArena *arena;
    SearchGroup *groups;
    int group_count;
    char rank_orders[SPEC_SEARCH_ORDERS][SPEC_NAME_SIZE]; /* of the ranks */
    int rank_order_count;
    SpecOffload *offloads; /* that may be tried; the scenario's own where it names a scheme */
    int offload_count;
    SearchPartitions *partitions; /* a pipeline degree each */
    int partitions_count;
    Spec *at_precision[SPEC_PRECISION_COUNT]; /* the scenario at each other precision; NULL: as it is */
    int64_t beyond[SEARCH_USER_LIMITS]; /* points that the user's limits leave out; not part of the space */
    unsigned recompute;                 /* modes that may be tried; 0: the scenario's own */
    GHashTable *locks;                  /* schedule checks done so far */
    GHashTable *orders;                 /* of schedules, and what they say (search/orders.c) */
    size_t orders_bytes;
    GHashTable *counts; /* of schedules with their recomputation */
    GMutex mutex;
    OrrArena *facts_arena; /* what orders say */
    GMutex facts_mutex;
} SearchSpace;

/* Lists the groups. Never fails: a space may be empty. Free with search_space_free. */
SearchSpace *search_space_new(const Spec *spec);
void search_space_free(SearchSpace *space);

/* What a schedule is asked for: pipeline ranks, stages a rank (one of each copy), micro-batches. */
SimScheduleShape search_partition_shape(const SearchGroup *group, const SearchPartition *partition);
/* Whether the schedule takes this many micro-batches; thread-safe. */
bool search_partition_valid(SearchSpace *space, const SearchGroup *group, const SearchPartition *partition);

/* Choices of recomputation of a partition, least first; `ret_recomputes` has room for most_layers + 8. */
int search_recomputes(const SearchSpace *space, const SearchPartition *partition,
                      SpecRecompute *ret_recomputes);

/* Policies of a group; an array from g_malloc that the caller frees. */
SearchPolicy *search_policies(const SearchSpace *space, const SearchGroup *group, int *ret_count);

/* Parts of a point, set in a scenario that began as the space's: degrees, kernels and micro-batch; schedule and layers;
 * data parallelism and messages. */
void search_apply_group(const SearchSpace *space, const SearchGroup *group, Spec *spec);
void search_apply_partition(const SearchPartition *partition, Spec *spec);
void search_apply_policy(const SearchGroup *group, const SearchPolicy *policy, Spec *spec);
/* The whole scenario at a point. */
void search_point_spec(SearchSpace *space, SearchId id, Spec *ret_spec);
/* Of all policies that a group may have, the one that overlaps most and shards least. */
SearchPolicy search_widest_policy(const SearchSpace *space);

/* Points of a group, and of the whole space. */
int64_t search_group_count(SearchSpace *space, const SearchGroup *group);
int64_t search_space_count(SearchSpace *space);

/* Orders that run a forward of one stage beside a backward of another: DualPipe always, in V shape where experts exchange
 * tokens. */
bool search_partition_pairs(const SearchPartition *partition);

int search_id_compare(const SearchId *a, const SearchId *b);

#endif
