/* search/space_partitions.c - schedules, and the ways to deal layers out to stages, that the "auto" fields allow. */
#include <string.h>

#include "search/space_parts.h"
#include "spec/load.h"
#include "spec/recipes.h"

static bool may_schedule(const Spec *spec, SpecSchedule schedule)
{
    if ((int)spec->parallel.schedule != SPEC_AUTO)
        return spec->parallel.schedule == schedule;
    const unsigned asked =
        spec->search.schedule != 0 ? spec->search.schedule : spec->execution.framework.pipeline.schedules;
    if (asked == 0) /* one simulation of those tries many orders: where they are asked for */
        return !sim_schedule_needs_times(sim_schedule_at((int)schedule));
    return (asked & 1u << schedule) != 0;
}

typedef struct Divider {
    SearchSpace *space;
    Spec spec; /* scratch */
    GArray *partitions;
    int counts[SPEC_MAX_STAGES];
} Divider;

static bool same_layers(const SearchPartition *a, const SearchPartition *b)
{
    return a->schedule == b->schedule && a->virtual_stages == b->virtual_stages && a->stages == b->stages &&
           memcmp(a->first, b->first, sizeof *a->first * (size_t)(a->stages + 1)) == 0;
}

static void add_partition(Divider *divider, SpecSchedule schedule, int virtual_stages, unsigned as_layer,
                          bool own_way)
{
    const SimSchedule *order = sim_schedule_at((int)schedule);
    SpecParallel *parallel = &divider->spec.parallel;
    parallel->schedule = schedule;
    parallel->virtual_stages = virtual_stages;
    SearchPartition partition = {.schedule = schedule,
                                 .order = order,
                                 .virtual_stages = virtual_stages,
                                 .as_layer = as_layer,
                                 .stages = parallel->pipeline * virtual_stages};
    if (order->placement == SIM_PLACE_BIDIRECTIONAL) {
        parallel->virtual_stages = 1;
        partition.stages = parallel->pipeline;
    }
    partition.by_recipe =
        own_way && parallel->virtual_stages == virtual_stages && spec_recipes_take_split(parallel);
    if (parallel->recipe_splits != NULL && !partition.by_recipe)
        parallel->stage_layers_count = 0;
    if (partition.stages > SPEC_MAX_STAGES || !spec_stage_layers(&divider->spec, divider->counts, NULL))
        return;
    partition.first = ORR_ARENA_NEW(divider->space->arena, int, partition.stages + 1);
    for (int s = 0; s < partition.stages; s++) {
        partition.first[s + 1] = partition.first[s] + divider->counts[s];
        partition.most_layers = MAX(partition.most_layers, divider->counts[s]);
    }
    for (guint i = 0; i < divider->partitions->len; i++)
        if (same_layers(&g_array_index(divider->partitions, SearchPartition, i), &partition))
            return;
    g_array_append_val(divider->partitions, partition);
}

/* The way that `run` would deal layers out first, a recipe's or the scenario's own, then with the embedding or the head counted as layers. */
static void add_partitions(Divider *divider, SpecSchedule schedule, int virtual_stages)
{
    const Spec *spec = divider->space->spec;
    const SpecParallel *own = &spec->parallel;
    const unsigned as_is = (own->embedding_as_layer ? (unsigned)SEARCH_LAYER_EMBEDDING : 0u) |
                           (own->loss_as_layer ? (unsigned)SEARCH_LAYER_LOSS : 0u);
    const bool vary = own->pipeline == SPEC_AUTO && !spec->search.even_only && as_is == 0 &&
                      own->stage_layers_count == 0 && own->first_stage_layers == 0 &&
                      own->last_stage_layers == 0 && divider->spec.parallel.pipeline > 1;
    for (unsigned i = 0; i < (vary ? 4u : 1u); i++) {
        const unsigned as_layer = as_is ^ i;
        divider->spec.parallel.embedding_as_layer = (as_layer & SEARCH_LAYER_EMBEDDING) != 0;
        divider->spec.parallel.loss_as_layer = (as_layer & SEARCH_LAYER_LOSS) != 0;
        add_partition(divider, schedule, virtual_stages, as_layer, i == 0);
    }
}

/* Virtual stages that a schedule may have on `pipeline` ranks. */
static bool may_chunk(const Spec *spec, SpecSchedule schedule, int pipeline, int virtual_stages)
{
    const int own = spec->parallel.virtual_stages;
    if (own != SPEC_AUTO ? own != virtual_stages
                         : !search_allowed(&spec->search.virtual_stages, virtual_stages))
        return false;
    if (virtual_stages > 1 && pipeline == 1)
        return false;
    const SimSchedule *order = sim_schedule_at((int)schedule);
    if (order->placement == SIM_PLACE_BIDIRECTIONAL) /* two copies; the same with 1 and 2 */
        return pipeline > 1 && (virtual_stages == 1 || (own == 2 && virtual_stages == 2));
    if (order->fixed_chunks != 0)
        return order->fixed_chunks == virtual_stages;
    if (virtual_stages > 1 || order->one_chunk == NULL)
        return true;
    return !sim_schedule_has(order, SIM_TRAIT_NEEDS_CHUNKS) &&
           !may_schedule(spec, sim_schedule_index(order->one_chunk));
}

void search_list_partitions(SearchSpace *space, int pipeline, SearchPartitions *ret_partitions)
{
    Divider *divider = g_new0(Divider, 1);
    const Spec *spec = space->spec;
    *divider = (Divider){.space = space, .spec = *spec};
    divider->partitions = g_array_new(FALSE, FALSE, sizeof(SearchPartition));
    divider->spec.parallel.pipeline = pipeline;
    const bool any = (int)spec->parallel.schedule == SPEC_AUTO;
    g_autofree int *schedules = g_new(int, (gsize)sim_schedule_words.count);
    sim_schedules_by_simplicity(schedules); /* simple ones first: they win ties */
    for (int i = 0; i < sim_schedule_words.count; i++) {
        if (!may_schedule(spec, schedules[i]))
            continue;
        for (int v = 1; v <= MAX(2, (spec->model.layers + 2) / pipeline + 1); v++)
            if (may_chunk(spec, schedules[i], pipeline, v))
                add_partitions(divider, schedules[i], v);
        if (any && pipeline == 1 && divider->partitions->len > 0)
            break; /* without a pipeline the first schedule stands for all */
    }
    *ret_partitions = (SearchPartitions){.pipeline = pipeline, .count = (int)divider->partitions->len};
    ret_partitions->partition = ORR_ARENA_NEW(space->arena, SearchPartition, ret_partitions->count);
    if (ret_partitions->count > 0)
        memcpy(ret_partitions->partition, divider->partitions->data,
               sizeof(SearchPartition) * divider->partitions->len);
    g_array_free(divider->partitions, TRUE);
    g_free(divider);
}

SimScheduleShape search_partition_shape(const SearchGroup *group, const SearchPartition *partition)
{
    return (SimScheduleShape){
        .ranks = group->pipeline,
        .chunks = partition->order->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : partition->virtual_stages,
        .microbatches = group->microbatches,
        .group = group->microbatch_group};
}

/* A check may replay the order: done once for each shape. */
static bool check_once(SearchSpace *space, const SearchPartition *partition, const SimScheduleShape *shape)
{
    const guint64 key = (guint64)partition->schedule << 58 | (guint64)shape->ranks << 44 |
                        (guint64)shape->chunks << 32 | (guint64)shape->microbatches;
    gpointer known = NULL;
    g_mutex_lock(&space->mutex);
    const gboolean found = g_hash_table_lookup_extended(space->locks, &key, NULL, &known);
    g_mutex_unlock(&space->mutex);
    if (found)
        return known != NULL;
    const bool ok = partition->order->check(shape, NULL);
    guint64 *copy = g_new(guint64, 1);
    *copy = key;
    g_mutex_lock(&space->mutex);
    g_hash_table_replace(space->locks, copy, GINT_TO_POINTER(ok ? 1 : 0));
    g_mutex_unlock(&space->mutex);
    return ok;
}

bool search_partition_valid(SearchSpace *space, const SearchGroup *group, const SearchPartition *partition)
{
    const SimScheduleShape shape = search_partition_shape(group, partition);
    if (space->spec->offload.activation_layers == SPEC_AUTO && group->offloaded > partition->most_layers)
        return false;
    if (group->microbatch_group > 0 && !sim_schedule_has(partition->order, SIM_TRAIT_GROUPS))
        return false;
    if (partition->order->fixed_chunks != 0 && shape.chunks != partition->order->fixed_chunks)
        return false;
    if (partition->order->check == NULL)
        return true;
    return shape.microbatches % shape.ranks == 0 && shape.group == 0 ? partition->order->check(&shape, NULL)
                                                                     : check_once(space, partition, &shape);
}
