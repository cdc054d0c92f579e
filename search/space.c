/* search/space.c - listing what the "auto" fields allow. */
#include "search/space.h"

#include <string.h>

#include "search/hardware.h"
#include "search/limits.h"
#include "search/orders.h"
#include "search/space_parts.h"
#include "spec/load.h"
#include "spec/moe.h"
#include "spec/notes.h"
#include "spec/placement.h"
#include "spec/pairs.h"

#define MAX_VALUES           512
#define LEAST_CONTEXT_TOKENS 2048
#define MOST_MICRO_BATCH     64

typedef struct Values {
    int count, value[MAX_VALUES];
} Values;

static int compare_ints(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

static void add(Values *values, int value)
{
    if (values->count < MAX_VALUES)
        values->value[values->count++] = value;
}

/* A fixed field's own value, or the divisors of `number` up to `most` (any, where `choices` say something). */
static Values divisors_or(int field, int number, int most, const SpecChoices *choices)
{
    Values values = {0};
    if (field != SPEC_AUTO) {
        add(&values, field);
        return values;
    }
    for (int d = 1; d <= number; d++)
        if (number % d == 0 && search_allowed(choices, d) && (d <= most || search_restricted(choices)))
            add(&values, d);
    return values;
}

/* --- degrees --- */

static bool model_allows_tensor(const SpecModel *model, int tensor)
{
    const bool dense = model->moe.experts == 0 || model->moe.dense_layers > 0 || model->moe.layer_step > 1;
    if (model->heads % tensor != 0)
        return false;
    if (model->mla.kv_lora_rank == 0 && model->kv_heads % tensor != 0 && tensor % model->kv_heads != 0)
        return false;
    return !dense || model->ffn_hidden % tensor == 0;
}

static bool sequence_allows(const Spec *spec, const SearchGroup *group)
{
    const int sequence = spec->training.sequence_length, context = group->context;
    if (context > 1 && !spec_lengths_split(&spec->training.lengths))
        return false;
    if (context > 1 && sequence % (spec->model.causal ? 2 * (int64_t)context : context) != 0)
        return false;
    return group->sequence_parallel != 1 || group->tensor == 1 || (sequence / context) % group->tensor == 0;
}

/* Some policy goes with the scheme. */
static bool allows_scheme(const SearchSpace *space, const SearchGroup *group)
{
    int count = 0;
    if (!spec_offloads_states(&space->offloads[group->scheme]))
        return true;
    g_free(search_policies(space, group, &count));
    return count > 0;
}

/* More layers on the host than a stage has are the same as all. */
static void add_offloads(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const int asked = spec->offload.activation_layers;
    const bool varies = asked == SPEC_AUTO && spec->cluster.accelerator.host_link_bytes_per_s > 0;
    int most = MAX(0, asked);
    for (int d = 0; varies && d < group.partitions->count; d++)
        most = MAX(most, group.partitions->partition[d].most_layers);
    for (group.offloaded = MAX(0, asked); group.offloaded <= most; group.offloaded++)
        for (group.scheme = 0; group.scheme < space->offload_count; group.scheme++)
            if (asked != SPEC_AUTO || search_allowed(&spec->search.activation_layers, group.offloaded))
                if (allows_scheme(space, &group))
                    g_array_append_val(groups, group);
}

static void add_batches(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const bool dealt = spec->parallel.replica_microbatches_count != 0; /* unevenly, if need be */
    const int share = spec->training.global_batch / (dealt ? 1 : group.data);
    const Values sizes =
        divisors_or(spec->training.micro_batch, share, MOST_MICRO_BATCH, &spec->search.micro_batch);
    for (int i = 0; i < sizes.count; i++) {
        group.micro_batch = sizes.value[i];
        group.microbatches = share / group.micro_batch / (dealt ? group.data : 1);
        if (share % group.micro_batch != 0 || group.microbatches == 0 ||
            group.micro_batch % spec_sequences_together(spec->training.task) != 0)
            continue;
        group.microbatch_group = spec->parallel.microbatch_group;
        add_offloads(space, groups, group);
    }
}

/* Which dimensions of more than one rank follow which: two orders with the same words place every rank alike. */
static void order_words(const SearchSpace *space, const SearchGroup *group, int order, char *ret_words)
{
    const int64_t ranks = (int64_t)group->data * group->context * group->tensor;
    const bool experts = space->spec->model.moe.experts > 0;
    int count = 0;
    for (int expert = 0; expert <= (experts ? 1 : 0); expert++) {
        for (const char *at = space->rank_orders[order]; *at != '\0'; at += at[2] == '-' ? 3 : 2) {
            const int64_t size =
                *at == 't'   ? (expert ? group->expert_tensor : group->tensor)
                : *at == 'c' ? (expert ? 1 : group->context)
                : *at == 'e' ? (expert ? group->expert : 1)
                : *at == 'd'
                    ? (expert ? ranks / ((int64_t)group->expert_tensor * group->expert) : group->data)
                    : group->pipeline;
            if (size > 1)
                ret_words[count++] = *at;
        }
        ret_words[count++] = '|';
    }
    ret_words[count] = '\0';
}

static bool order_is_new(const SearchSpace *space, const SearchGroup *group)
{
    char own[SPEC_NAME_SIZE], other[SPEC_NAME_SIZE];
    order_words(space, group, group->order, own);
    for (int i = 0; i < group->order; i++) {
        order_words(space, group, i, other);
        if (strcmp(own, other) == 0)
            return false;
    }
    return true;
}

/* Where the pipeline is not the outermost dimension, dense and expert layers must agree on it. */
static bool order_allows(const SearchSpace *space, const SearchGroup *group)
{
    const Spec *spec = space->spec;
    const char *order = space->rank_orders[group->order];
    if (spec->model.moe.experts == 0 || group->pipeline == 1 || g_str_has_suffix(order, "pp"))
        return true;
    g_autofree Spec *own = g_memdup2(spec, sizeof *spec);
    search_apply_group(space, group, own);
    return spec_check_order(own, NULL);
}

/* Adds one rank order for each placement: the first of those that place all ranks alike. */
static void add_orders(SearchSpace *space, GArray *groups, SearchGroup group)
{
    for (group.order = 0; group.order < space->rank_order_count; group.order++)
        if (order_allows(space, &group) && order_is_new(space, &group) &&
            search_hardware_allows(space, &group))
            add_batches(space, groups, group);
}

/* The scenario's dispatcher, or what carries tokens to experts on other ranks. */
static void add_dispatchers(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const int own = (int)search_at_precision(space, group.precision)->parallel.moe_dispatcher;
    const unsigned asked =
        spec->search.moe_dispatcher != 0 ? spec->search.moe_dispatcher
        : spec->execution.framework.experts.dispatchers != 0
            ? spec->execution.framework.experts.dispatchers
            : 1u << SPEC_DISPATCHER_ALLTOALL | 1u << SPEC_DISPATCHER_DEEPEP | 1u << SPEC_DISPATCHER_HYBRIDEP;
    if (own != SPEC_AUTO) {
        group.dispatcher = own;
        add_orders(space, groups, group);
        return;
    }
    for (group.dispatcher = 0; group.dispatcher < spec_words_dispatcher.count; group.dispatcher++)
        if ((asked & 1u << group.dispatcher) != 0) {
            add_orders(space, groups, group);
            if (group.expert == 1)
                return; /* nothing is carried: one stands for all */
        }
}

static void add_experts(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const SpecMoe *moe = &spec->model.moe;
    const int64_t ranks = (int64_t)group.data * group.context * group.tensor;
    const Values experts = divisors_or(moe->experts == 0 ? 1 : spec->parallel.expert, MAX(1, moe->experts),
                                       G_MAXINT, &spec->search.expert);
    for (int i = 0; i < experts.count; i++) {
        group.expert = experts.value[i];
        const int asked = moe->experts == 0 ? 0 : spec->parallel.expert_tensor;
        const int whole = ranks % ((int64_t)group.expert * group.tensor) == 0 ? group.tensor : 1;
        const Values slices =
            divisors_or(asked == 0 ? whole : asked, group.tensor, G_MAXINT, &spec->search.expert_tensor);
        for (int j = 0; j < slices.count; j++) {
            group.expert_tensor = slices.value[j];
            const int64_t used = (int64_t)group.expert * group.expert_tensor;
            const bool idle = (group.overlap & SPEC_OVERLAP_EXPERT) != 0 && group.expert == 1;
            if (idle && (spec->execution.overlap & SPEC_OVERLAP_AUTO) != 0)
                continue; /* nothing is exchanged */
            if (moe->experts > 0 &&
                (ranks % used != 0 || !spec_moe_divides(moe, group.expert, group.expert_tensor)))
                continue;
            add_dispatchers(space, groups, group);
        }
    }
}

/* The scenario's precision, or those that the search may try and the accelerator has. */
static void add_precisions(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const unsigned asked = spec->search.precision;
    for (int precision = 0; precision < spec_words_precision.count; precision++) {
        const SpecDtype dtype = spec_gemm_dtype((SpecPrecision)precision);
        if (asked == 0 ? (int)spec->training.precision != precision
                       : (asked & 1u << precision) == 0 || !search_hardware_has(spec, dtype))
            continue;
        if (asked != 0 && spec->search.at_precision[precision] != NULL &&
            space->at_precision[precision] == NULL)
            continue; /* refused */
        group.precision = precision;
        add_experts(space, groups, group);
    }
}

/* Bits of the attention kernels: the scenario's, those asked for, or those of the software that were fitted for the
 * accelerator; of all software where it has none of these. */
static unsigned attention_choices(const Spec *spec)
{
    const SpecExecution *execution = &spec->execution;
    unsigned fitted = 1u << SPEC_ATTENTION_UNFUSED, has = 0;
    if ((int)execution->attention != SPEC_AUTO)
        return 1u << execution->attention;
    if (spec->search.attention != 0)
        return spec->search.attention;
    for (int kernel = 0; kernel < SPEC_ATTENTION_COUNT; kernel++) {
        if (search_hardware_fitted(spec, (SpecAttention)kernel))
            fitted |= 1u << kernel;
        if (spec_has_attention(spec, (SpecAttention)kernel))
            has |= 1u << kernel;
    }
    return (fitted & has) != 0 ? fitted & has : fitted;
}

/* Overlap flags inside a pass, and kernels. */
static void add_kernels(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const SpecExecution *execution = &spec->execution;
    unsigned bits = 0;
    if (group.sequence_parallel == 1)
        bits |= SPEC_OVERLAP_TENSOR;
    if (spec->model.moe.experts > 0 && spec->parallel.expert != 1)
        bits |= SPEC_OVERLAP_EXPERT;
    bits &= spec->search.overlap != 0 ? spec->search.overlap : spec_framework_overlaps(&execution->framework);
    const unsigned own = SPEC_OVERLAP_TENSOR | SPEC_OVERLAP_EXPERT;
    const bool flags_auto = (execution->overlap & SPEC_OVERLAP_AUTO) != 0;
    const unsigned kernels = attention_choices(spec);
    for (int kernel = 0; kernel < SPEC_ATTENTION_COUNT; kernel++) {
        if ((kernels & 1u << kernel) == 0)
            continue;
        group.attention = kernel;
        for (unsigned subset = 0; subset <= own; subset++) {
            if (flags_auto ? (subset & ~bits) != 0 : subset != (execution->overlap & own))
                continue;
            group.overlap = subset;
            add_precisions(space, groups, group);
        }
    }
}

static void add_pipelines(SearchSpace *space, GArray *groups, SearchGroup group)
{
    const Spec *spec = space->spec;
    const int split = group.tensor * group.context, gpus = spec_gpus(spec);
    for (int i = 0; i < space->partitions_count; i++) {
        group.pipeline = space->partitions[i].pipeline;
        group.partitions = &space->partitions[i];
        if ((int64_t)split * group.pipeline > gpus || gpus % (split * group.pipeline) != 0)
            continue;
        group.data = gpus / (split * group.pipeline);
        const bool data_ok = spec->parallel.data > 0 ? spec->parallel.data == group.data
                                                     : search_allowed(&spec->search.data, group.data);
        const bool even = spec->training.global_batch % group.data == 0;
        if (data_ok && (even || spec->parallel.replica_microbatches_count != 0) &&
            group.partitions->count > 0)
            add_kernels(space, groups, group);
    }
}

static void list_groups(SearchSpace *space)
{
    const Spec *spec = space->spec;
    const SpecParallel *parallel = &spec->parallel;
    GArray *groups = g_array_new(FALSE, FALSE, sizeof(SearchGroup));
    const int gpus = spec_gpus(spec);
    const int widest = spec->search.max_tensor > 0 ? spec->search.max_tensor : spec->cluster.gpus_per_node;
    const Values tensors = divisors_or(parallel->tensor, gpus, widest, &spec->search.tensor);
    const Values contexts =
        divisors_or(parallel->context, gpus, MAX(1, spec->training.sequence_length / LEAST_CONTEXT_TOKENS),
                    &spec->search.context);
    for (int i = 0; i < tensors.count; i++) {
        for (int sp = 0; sp <= 1; sp++) {
            SearchGroup group = {.tensor = tensors.value[i], .sequence_parallel = sp};
            const bool wanted = parallel->sequence_parallel == SPEC_AUTO ? sp == 0 || group.tensor > 1
                                                                         : parallel->sequence_parallel == sp;
            if (!wanted || !model_allows_tensor(&spec->model, group.tensor) ||
                !spec_makes_grid(parallel, group.tensor))
                continue;
            for (int j = 0; j < contexts.count; j++) {
                group.context = contexts.value[j];
                if (sequence_allows(spec, &group))
                    add_pipelines(space, groups, group);
            }
        }
    }
    search_limits_apply(space, groups);
    space->group_count = (int)groups->len;
    space->groups = (SearchGroup *)(void *)g_array_free(groups, FALSE);
}

static unsigned modes_of(const Spec *spec)
{
    const unsigned known =
        1u << SPEC_RECOMPUTE_NONE | 1u << SPEC_RECOMPUTE_SELECTIVE | 1u << SPEC_RECOMPUTE_FULL;
    if ((int)spec->training.recompute.mode != SPEC_AUTO)
        return 0;
    const unsigned all = known | 1u << SPEC_RECOMPUTE_SELECTIVE_OP | 1u << SPEC_RECOMPUTE_SELECTIVE_LAYER;
    const unsigned asked = spec->search.recompute & all;
    const unsigned has = spec->execution.framework.kernels.recompute_modes & all;
    return asked != 0 ? asked : has != 0 ? has : known;
}

/* The scenario's order, or those that are tried, the first of equal ones for all. */
static void fill_orders(SearchSpace *space)
{
    static const char *const usual[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
    const Spec *spec = space->spec;
    const bool vary = spec_order_is_auto(spec);
    space->rank_order_count = !vary                          ? 1
                              : spec->search.order_count > 0 ? spec->search.order_count
                                                             : (int)G_N_ELEMENTS(usual);
    for (int i = 0; i < space->rank_order_count; i++)
        g_strlcpy(space->rank_orders[i],
                  !vary                          ? spec->parallel.order
                  : spec->search.order_count > 0 ? spec->search.order[i]
                                                 : usual[i],
                  sizeof space->rank_orders[i]);
}

static void add_offload(SearchSpace *space, Spec *trial, SpecOffloadScheme scheme, double ratio)
{
    trial->offload = spec_offload_with(&space->spec->offload, scheme, ratio, space->spec->model.layers);
    if (spec_offload_available(trial))
        space->offloads[space->offload_count++] = trial->offload;
}

/* The scenario's scheme, or each that the software has and the nodes have tiers for; where the host's share of the update
 * is a choice, in fifths. */
static void list_offloads(SearchSpace *space)
{
    enum { FIFTHS = 5 };
    const Spec *spec = space->spec;
    const unsigned asked = spec->search.offload;
    space->offloads = ORR_ARENA_NEW(space->arena, SpecOffload, SPEC_OFFLOAD_SCHEME_COUNT * FIFTHS);
    if ((int)spec->offload.scheme != SPEC_AUTO) {
        space->offloads[space->offload_count++] = spec->offload;
        return;
    }
    g_autofree Spec *trial = g_memdup2(spec, sizeof *spec);
    for (int i = 0; i < SPEC_OFFLOAD_SCHEME_COUNT; i++) {
        const SpecOffloadRow *row = spec_offload_row((SpecOffloadScheme)i);
        const bool shares = row->ratio > 0 && row->ratio < 1 && spec->offload.ratio < 0;
        if (asked != 0 && (asked & 1u << i) == 0)
            continue;
        for (int fifth = 1; shares && fifth < FIFTHS; fifth++)
            add_offload(space, trial, (SpecOffloadScheme)i, fifth / (double)FIFTHS);
        if (!shares)
            add_offload(space, trial, (SpecOffloadScheme)i, -1);
    }
}

static void load_precisions(SearchSpace *space)
{
    for (int i = 0; i < SPEC_PRECISION_COUNT; i++) {
        if (space->spec->search.at_precision[i] == NULL)
            continue;
        Spec *other = g_new(Spec, 1);
        if (spec_load_at_precision(space->spec, (SpecPrecision)i, other))
            space->at_precision[i] = other;
        else
            g_free(other);
    }
}

SearchSpace *search_space_new(const Spec *spec)
{
    SearchSpace *space = g_new0(SearchSpace, 1);
    space->spec = spec;
    space->arena = orr_arena_new();
    space->recompute = modes_of(spec);
    load_precisions(space);
    fill_orders(space);
    list_offloads(space);
    space->locks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL);
    space->orders = search_shelf_new();
    space->counts = search_counts_new();
    g_mutex_init(&space->mutex);
    space->facts_arena = orr_arena_new();
    g_mutex_init(&space->facts_mutex);
    Values pipelines =
        divisors_or(spec->parallel.pipeline, spec_gpus(spec), spec->model.layers + 2, &spec->search.pipeline);
    qsort(pipelines.value, (size_t)pipelines.count, sizeof(int), compare_ints);
    space->partitions = ORR_ARENA_NEW(space->arena, SearchPartitions, pipelines.count);
    for (int i = 0; i < pipelines.count; i++)
        search_list_partitions(space, pipelines.value[i], &space->partitions[space->partitions_count++]);
    list_groups(space);
    return space;
}

void search_space_free(SearchSpace *space)
{
    if (space == NULL)
        return;
    for (int i = 0; i < SPEC_PRECISION_COUNT; i++)
        g_free(space->at_precision[i]);
    g_free(space->groups);
    g_hash_table_destroy(space->orders);
    g_hash_table_destroy(space->counts);
    g_hash_table_destroy(space->locks);
    g_mutex_clear(&space->mutex);
    orr_arena_free(space->facts_arena);
    g_mutex_clear(&space->facts_mutex);
    orr_arena_free(space->arena);
    g_free(space);
}

bool search_partition_pairs(const SearchPartition *partition)
{
    return sim_schedule_has(partition->order, SIM_TRAIT_PAIRS);
}
