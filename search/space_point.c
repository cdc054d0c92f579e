/* search/space_point.c - a point of a space as a scenario. */
#include <string.h>

#include "search/axes.h"
#include "search/space_parts.h"
#include "spec/recipes.h"

const Spec *search_at_precision(const SearchSpace *space, int precision)
{
    const Spec *other = space->at_precision[precision];
    return other != NULL ? other : space->spec;
}

/* What the software's recipes and derived fields are at another precision; what the search was told about batches and
 * recomputation stays. */
static void take_precision(const SearchSpace *space, int precision, Spec *spec)
{
    const Spec *from = search_at_precision(space, precision);
    const SpecTraining own = spec->training;
    if ((int)own.precision == precision)
        return;
    spec->model = from->model;
    spec->execution = from->execution;
    spec->training = from->training;
    spec->training.global_batch = own.global_batch;
    spec->training.recompute = own.recompute;
    spec->training.precision = (SpecPrecision)precision;
}

/* Where "auto" tries every overlap, a point has those that it names and no others that recipes switch on. */
void search_apply_group(const SearchSpace *space, const SearchGroup *group, Spec *spec)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    take_precision(space, group->precision, spec);
    g_strlcpy(spec->parallel.order, space->rank_orders[group->order], sizeof spec->parallel.order);
    spec->offload = space->offloads[group->scheme];
    for (int i = 0; i < count; i++)
        if (axes[i].grouped && !axes[i].indexed)
            search_axis_apply(&axes[i], group, spec);
    if (search_varies_overlap(space))
        spec->execution.framework.defaults.recipe_overlap = 0;
}

void search_apply_partition(const SearchPartition *partition, Spec *spec)
{
    spec->parallel.virtual_stages = partition->virtual_stages;
    spec->parallel.schedule = partition->schedule;
    spec->parallel.embedding_as_layer = (partition->as_layer & SEARCH_LAYER_EMBEDDING) != 0;
    spec->parallel.loss_as_layer = (partition->as_layer & SEARCH_LAYER_LOSS) != 0;
    if (spec->parallel.recipe_splits != NULL &&
        !(partition->by_recipe && spec_recipes_take_split(&spec->parallel)))
        spec->parallel.stage_layers_count = 0;
}

void search_apply_policy(const SearchGroup *group, const SearchPolicy *policy, Spec *spec)
{
    spec->parallel.zero = policy->zero;
    spec->parallel.zero_group_gpus = policy->zero_group_gpus;
    spec->execution.overlap = group->overlap | policy->overlap;
}

void search_point_spec(SearchSpace *space, SearchId id, Spec *ret_spec)
{
    const SearchGroup *group = &space->groups[id.group];
    const SearchPartition *partition = &group->partitions->partition[id.partition];
    g_autofree SpecRecompute *recomputes = g_new(SpecRecompute, (gsize)space->spec->model.layers + 16);
    int policies;
    g_autofree SearchPolicy *policy = search_policies(space, group, &policies);
    const int recompute_count = search_recomputes(space, partition, recomputes);
    g_assert(id.policy < policies && id.recompute < recompute_count);
    *ret_spec = *space->spec;
    search_apply_group(space, group, ret_spec);
    search_apply_partition(partition, ret_spec);
    search_apply_policy(group, &policy[id.policy], ret_spec);
    ret_spec->training.recompute = recomputes[id.recompute];
}

int search_id_compare(const SearchId *a, const SearchId *b)
{
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    if (a->recompute != b->recompute)
        return a->recompute < b->recompute ? -1 : 1;
    return (a->policy > b->policy) - (a->policy < b->policy);
}
