/* plan/counts.c - see counts.h. Tested: unit/plan/test_planner.c */
#include "plan/counts.h"

#include <math.h>
#include <stdlib.h>

#include "report/groups.h"
#include "spec/groups.h"
#include "spec/pairs.h"

#define MAX_GPUS 131072 /* of the counts that are tried without being asked for */

bool plan_degrees_known(const Spec *spec)
{
    return spec->parallel.tensor > 0 && spec->parallel.context > 0 && spec->parallel.pipeline > 0;
}

static int64_t split_of(const Spec *asked)
{
    const SpecParallel *parallel = &asked->parallel;
    return plan_degrees_known(asked) ? (int64_t)parallel->tensor * parallel->context * parallel->pipeline : 1;
}

static int compare_ints(const void *a, const void *b)
{
    const int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* GPUs that a cluster grows by: a node, or nodes of each kind in their proportions. */
static int64_t unit_of(const SpecCluster *cluster)
{
    return (int64_t)cluster->gpus_per_node * spec_groups_unit(cluster);
}

static bool whole_nodes(const SpecCluster *cluster, int64_t gpus)
{
    if (cluster->group_count > 0)
        return gpus <= MAX_GPUS && gpus % unit_of(cluster) == 0;
    return gpus <= MAX_GPUS && (gpus < cluster->gpus_per_node || gpus % cluster->gpus_per_node == 0);
}

/* --- batches --- */

/* The multiple of `step` in the range that is nearest to the scenario's batch; 0: there is none. */
static int nearest_batch(const Spec *asked, const PlanOptions *options, int64_t step)
{
    const int64_t batch = asked->training.global_batch;
    if (options->batch_high <= 0)
        return batch % step == 0 ? (int)batch : 0;
    const int64_t first = (options->batch_low + step - 1) / step * step,
                  last = options->batch_high / step * step;
    if (first > last || first <= 0)
        return 0;
    const int64_t below = CLAMP(batch / step * step, first, last), above = MIN(below + step, last);
    return (int)(above - batch < batch - below ? above : below);
}

/* Degrees left to a search: what as many data-parallel ranks as possible can share, at least the nodes, which tensor and
 * pipeline degrees multiply up to. A multiple of fewer would leave the search only layouts that split each layer. */
static int batch_to_search(const Spec *asked, const PlanOptions *options, int gpus)
{
    const int per_node = asked->cluster.gpus_per_node;
    for (int split = 1; options->batch_high > 0 && split <= per_node; split++) {
        const bool whole = per_node % split == 0 && gpus % split == 0;
        const int batch = whole ? nearest_batch(asked, options, gpus / split) : 0;
        if (batch > 0)
            return batch;
    }
    return asked->training.global_batch;
}

/* What the replicas can share: with whole micro-batches, in groups that interleaving likes, if the range allows. */
static int batch_for(const Spec *asked, const PlanOptions *options, int gpus)
{
    const int micro = MAX(1, asked->training.micro_batch);
    if (!plan_degrees_known(asked))
        return batch_to_search(asked, options, gpus);
    const int64_t data = gpus / split_of(asked);
    const int groups =
        asked->parallel.virtual_stages > 1 ? asked->parallel.pipeline : 1; /* of interleaved passes */
    const int64_t steps[] = {data * micro * groups, data * micro, data};
    for (gsize i = options->batch_high > 0 ? 0 : 2; i < G_N_ELEMENTS(steps); i++) {
        const int batch = nearest_batch(asked, options, steps[i]);
        if (batch > 0)
            return batch;
    }
    return 0;
}

/* --- counts --- */

static bool possible(const Spec *asked, const PlanOptions *options, int64_t gpus)
{
    return gpus > 0 && whole_nodes(&asked->cluster, gpus) && gpus % split_of(asked) == 0 &&
           (!plan_degrees_known(asked) || batch_for(asked, options, (int)gpus) > 0);
}

static void add_known(const Spec *asked, const PlanOptions *options, GArray *counts)
{
    const int64_t split = split_of(asked), own = spec_gpus(asked);
    const int64_t most = options->batch_high > 0 ? options->batch_high : asked->training.global_batch;
    int64_t last = 0;
    for (int64_t data = 1; data <= most && split * data <= MAX_GPUS; data++) {
        const bool apart = options->batch_high <= 0 || split * data * 8 >= last * 9;
        const int gpus = (int)(split * data);
        if (!apart || !possible(asked, options, gpus))
            continue;
        g_array_append_val(counts, gpus);
        last = gpus;
    }
    const int own_gpus = (int)own;
    if (split > 0 && own % split == 0)
        g_array_append_val(counts, own_gpus);
}

GArray *plan_counts(const Spec *asked, const PlanOptions *options)
{
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    const int own = spec_gpus(asked);
    if (options->gpus != NULL) {
        g_array_append_vals(counts, options->gpus, (guint)options->gpus_count);
    } else if (plan_degrees_known(asked)) {
        add_known(asked, options, counts);
    } else {
        for (int64_t gpus = unit_of(&asked->cluster); gpus <= MAX_GPUS && gpus <= 16 * (int64_t)own;
             gpus *= 2) {
            const int count = (int)gpus;
            g_array_append_val(counts, count);
        }
        g_array_append_val(counts, own);
    }
    g_array_sort(counts, compare_ints);
    for (guint i = counts->len; i > 1; i--)
        if (g_array_index(counts, int, i - 1) == g_array_index(counts, int, i - 2))
            g_array_remove_index(counts, i - 1);
    return counts;
}

/* With degrees left to a search, counts of many divisors: a prime number of nodes leaves few layouts. */
static int stride_of(const Spec *asked, int low, int high)
{
    const int64_t node = unit_of(&asked->cluster), split = split_of(asked);
    int64_t stride = split;
    while (stride % node != 0 && stride < MAX_GPUS)
        stride += split;
    while (!plan_degrees_known(asked) && stride * 2 <= (high - low) / 8)
        stride *= 2;
    return (int)stride;
}

int plan_count_between(const Spec *asked, const PlanOptions *options, int low, int high)
{
    const int stride = stride_of(asked, low, high);
    const int middle = (int)(lround(sqrt((double)low * high) / stride) * stride);
    for (int away = 0; away <= high - low; away += stride)
        for (int side = -1; side <= 1; side += 2) {
            const int gpus = middle + side * away;
            if (gpus > low && gpus < high && possible(asked, options, gpus))
                return gpus;
        }
    return 0;
}

static bool would_do(const Spec *asked, const PlanOptions *options, int gpus)
{
    g_autofree char *refused = plan_refuse_count(asked, gpus, options);
    return refused == NULL;
}

void plan_nearest_counts(const Plan *plan, const PlanOptions *options, int gpus, int *ret_below,
                         int *ret_above)
{
    *ret_below = *ret_above = 0;
    for (int below = MIN(gpus, MAX_GPUS) - 1; below > 0 && *ret_below == 0; below--)
        *ret_below = would_do(plan->asked, options, below) ? below : 0;
    for (int above = gpus + 1; above <= MIN(MAX_GPUS, 4 * (int64_t)gpus) && *ret_above == 0; above++)
        *ret_above = would_do(plan->asked, options, above) ? above : 0;
}

char *plan_refuse_count(const Spec *asked, int gpus, const PlanOptions *options)
{
    const SpecParallel *parallel = &asked->parallel;
    const int per_node = asked->cluster.gpus_per_node;
    if (asked->cluster.group_count > 0 && gpus % unit_of(&asked->cluster) != 0)
        return g_strdup_printf(
            "%d GPUs do not keep the proportions of cluster.groups, which are those of %d nodes", gpus,
            spec_groups_unit(&asked->cluster));
    const int paid = plan_paid_gpus(asked, gpus, options->whole_racks);
    if (options->power_w > 0 && plan_power_w(asked, paid) > options->power_w)
        return g_strdup_printf("%d GPUs%s draw %.4g MW, over the limit of %.4g", gpus,
                               paid > gpus ? " in whole racks" : "", plan_power_w(asked, paid) * 1e-6,
                               options->power_w * 1e-6);
    if (gpus > per_node && gpus % per_node != 0)
        return g_strdup_printf("%d GPUs are not whole nodes of %d", gpus, per_node);
    if (gpus % split_of(asked) != 0)
        return g_strdup_printf("tensor %d x context %d x pipeline %d does not divide %d GPUs",
                               parallel->tensor, parallel->context, parallel->pipeline, gpus);
    if (batch_for(asked, options, gpus) > 0)
        return NULL;
    const int data = (int)(gpus / split_of(asked));
    if (options->batch_high > 0)
        return g_strdup_printf("no batch from %d to %d is a multiple of %d data-parallel ranks",
                               options->batch_low, options->batch_high, data);
    return g_strdup_printf(
        "training.global_batch %d is not a multiple of %d data-parallel ranks (--batch-range lets it "
        "move)",
        asked->training.global_batch, data);
}

/* --- the scenario on a count --- */

/* The largest micro-batch up to the scenario's that divides the sequences of one replica. */
static int fitting_micro_batch(const Spec *spec, int data)
{
    const int micro = spec->training.micro_batch, share = spec->training.global_batch / data;
    if (micro <= 0 || spec->training.global_batch % data != 0)
        return micro;
    const int together = spec_sequences_together(spec->training.task);
    for (int size = MIN(micro, share); size > together; size--)
        if (share % size == 0 && size % together == 0)
            return size;
    return together;
}

void plan_spread(const Spec *asked, int gpus, const PlanOptions *options, Spec *ret_spec)
{
    SpecCluster *cluster = &ret_spec->cluster;
    *ret_spec = *asked;
    if (gpus < cluster->gpus_per_node) {
        cluster->scale_up_domain_gpus = MIN(cluster->scale_up_domain_gpus, gpus);
        cluster->gpus_per_node = gpus;
    }
    const bool scaled = spec_set_nodes(cluster, gpus / cluster->gpus_per_node);
    g_assert(scaled); /* plan_refuse_count() */
    ret_spec->training.global_batch = batch_for(asked, options, gpus);
    if (!plan_degrees_known(asked)) {
        ret_spec->parallel.data = SPEC_AUTO;
        return;
    }
    ret_spec->parallel.data = (int)(gpus / split_of(asked));
    ret_spec->training.micro_batch = fitting_micro_batch(ret_spec, ret_spec->parallel.data);
}
