/* campaign/levels.c - how fast the job goes on with fewer nodes.
 *
 * Nodes that a layout leaves out are counted by kind: in a mixed cluster each way to leave them out of its groups is a layout of
 * its own. Replicas keep the micro-batches of their kind, scaled to the batch; stages keep their layers where they stay on
 * the same kinds, else they have as many each.
 */
#include <math.h>
#include <string.h>

#include "campaign/campaign.h"
#include "step/kinds.h"
#include "spec/groups.h"
#include "spec/load.h"

enum { COUNTS = 8, PARTS = 8, TRIES = 64 };

typedef struct Levels {
    const Report *report;
    CampaignRun *run;
    Spec *fewer, *kept; /* room for a layout, and for what it is on some of the nodes */
    int tries;          /* simulated of the groups' */
} Levels;

/* --- who is good enough to be kept --- */

static bool at_least(const int *a, const int *b)
{
    for (int k = 0; k < CAMPAIGN_KINDS; k++)
        if (a[k] < b[k])
            return false;
    return true;
}

static int sum(const int *missing)
{
    int all = 0;
    for (int k = 0; k < CAMPAIGN_KINDS; k++)
        all += missing[k];
    return all;
}

/* By rising sum of what is missing; a level that is no faster than one that misses as many or more of each goes. Where they
 * are too many the last but one goes. */
static void put_level(CampaignRun *run, const CampaignLevel *level)
{
    CampaignLevel kept[CAMPAIGN_LEVELS + 1];
    const int most = run->kinds > 1 ? CAMPAIGN_LEVELS : COUNTS;
    int count = 0, first = 0;
    for (int i = 0; i < run->level_count; i++) {
        const CampaignLevel *other = &run->levels[i];
        if (at_least(other->missing, level->missing) && other->rate >= level->rate)
            return;
        if (!at_least(level->missing, other->missing) || other->rate > level->rate)
            kept[count++] = *other;
    }
    while (first < count && sum(kept[first].missing) < sum(level->missing))
        first++;
    memmove(&kept[first + 1], &kept[first], sizeof *kept * (size_t)(count - first));
    kept[first] = *level;
    if (++count > most) {
        kept[most - 1] = kept[most];
        count = most;
    }
    memcpy(run->levels, kept, sizeof *kept * (size_t)count);
    run->level_count = count;
}

/* --- a layout on some of the nodes --- */

static void add_level(Levels *l, const Spec *fewer, const int *missing)
{
    static const ReportOptions ideal = {.ideal = true};
    const Report *report = l->report;
    Report simulated;
    OrrArena *arena = orr_arena_new();
    if (spec_check(fewer, "faults.elastic", NULL) &&
        report_run(fewer, NULL, &ideal, arena, &simulated, NULL) && simulated.fits) {
        CampaignLevel level = {.rate = MIN(1, (double)report_even_ps(report) / (double)simulated.step_ps)};
        memcpy(level.missing, missing, sizeof level.missing);
        put_level(l->run, &level);
    }
    orr_arena_free(arena);
}

/* Which of the first spec's kinds a replica is of: the number of the first one whose stages are on the same groups. `name` has
 * the first spec's numbers of the groups. -1: none. */
static int like(const int *from, int from_data, const int *to, int to_data, int replica, int ranks,
                const int *name)
{
    for (int d = 0; d < from_data; d++) {
        bool same = true;
        for (int p = 0; same && p < ranks; p++)
            same = from[p * from_data + d] == name[to[p * to_data + replica]];
        if (same)
            return d;
    }
    return -1;
}

/* Micro-batches by weight, one at least, those left over to whoever is furthest below its share. */
static void deal_microbatches(const double *weights, int all, SpecParallel *parallel)
{
    double weight = 0;
    for (int d = 0; d < parallel->data; d++)
        weight += weights[d];
    int left = all;
    for (int d = 0; d < parallel->data; d++) {
        parallel->replica_microbatches[d] = (uint16_t)MAX(1, floor(all * weights[d] / weight));
        left -= parallel->replica_microbatches[d];
    }
    for (; left > 0; left--) {
        int most = 0;
        for (int d = 1; d < parallel->data; d++)
            if (all * weights[d] / weight - parallel->replica_microbatches[d] >
                all * weights[most] / weight - parallel->replica_microbatches[most])
                most = d;
        parallel->replica_microbatches[most]++;
    }
    parallel->replica_microbatches_count = parallel->data;
}

/* Work that the first spec dealt out unevenly, on the groups that `to` has. */
static bool deal_again(const Spec *from, const int *name, Spec *to)
{
    const int ranks = to->parallel.pipeline, own = from->parallel.data, data = to->parallel.data;
    const bool same_ranks = ranks == from->parallel.pipeline;
    g_autofree int *was = g_new(int, (gsize)from->parallel.pipeline *(gsize)own),
                   *is = g_new(int, (gsize)ranks *(gsize)data);
    g_autofree double *weights = g_new(double, (gsize)data);
    if (!sim_kinds_places(from, was, NULL) || !sim_kinds_places(to, is, NULL))
        return false;
    bool known = same_ranks;
    for (int d = 0; d < data; d++) {
        const int kind = same_ranks ? like(was, own, is, data, d, ranks, name) : -1;
        known = known && kind >= 0;
        weights[d] = kind >= 0 && from->parallel.replica_microbatches_count > 0
                         ? from->parallel.replica_microbatches[kind]
                         : 1;
    }
    if (!known) {
        to->parallel.stage_layers_count = 0;
        for (int d = 0; d < data; d++)
            weights[d] = 1;
    }
    if (from->parallel.replica_microbatches_count > 0)
        deal_microbatches(weights, to->training.global_batch / to->training.micro_batch, &to->parallel);
    return true;
}

/* The layout of `fewer` without missing[k] nodes of group k. */
static void try_kinds(Levels *l, const int *missing)
{
    const Spec *spec = l->report->spec;
    int nodes[CAMPAIGN_KINDS], name[CAMPAIGN_KINDS], kept = 0;
    for (int g = 0; g < spec->cluster.group_count; g++) {
        nodes[g] = spec->cluster.groups[g].nodes - missing[g];
        if (nodes[g] > 0)
            name[kept++] = g;
    }
    if (kept == 0 || l->tries++ >= TRIES)
        return;
    *l->kept = *l->fewer;
    spec_groups_keep(l->kept, nodes);
    if (deal_again(spec, name, l->kept))
        add_level(l, l->kept, missing);
}

/* The next way to leave nodes out of the groups but the last, `step` by `step`; false: that was all. */
static bool next_way(const SpecCluster *cluster, int step, int *missing)
{
    for (int g = 0; g < MIN(cluster->group_count, CAMPAIGN_KINDS) - 1; g++) {
        missing[g] += step;
        if (missing[g] <= cluster->groups[g].nodes)
            return true;
        missing[g] = 0;
    }
    return false;
}

/* `out` nodes, in every way in which the groups have them. */
static void leave_out(Levels *l, int out)
{
    const SpecCluster *cluster = &l->report->spec->cluster;
    const int last = MIN(cluster->group_count, CAMPAIGN_KINDS) - 1, step = MAX(1, (out + PARTS - 1) / PARTS);
    int missing[CAMPAIGN_KINDS] = {0};
    do {
        missing[last] = 0;
        missing[last] = out - sum(missing);
        if (missing[last] >= 0 && missing[last] <= cluster->groups[last].nodes)
            try_kinds(l, missing);
    } while (next_way(cluster, step, missing));
}

/* The layout of `fewer` on `nodes` nodes. */
static void try_nodes(Levels *l, int nodes)
{
    const SpecCluster *cluster = &l->report->spec->cluster;
    const int missing[CAMPAIGN_KINDS] = {cluster->nodes - nodes};
    l->fewer->cluster.nodes = nodes;
    if (cluster->group_count > 0)
        leave_out(l, cluster->nodes - nodes);
    else
        add_level(l, l->fewer, missing);
}

/* --- which layouts --- */

static bool divides(const Spec *spec, int data)
{
    const int microbatches = spec->training.global_batch / spec->training.micro_batch;
    return spec->parallel.replica_microbatches_count > 0
               ? data <= microbatches
               : spec->training.global_batch % (spec->training.micro_batch * data) == 0;
}

static void set_data(const Spec *spec, int data, Spec *out)
{
    out->parallel.data = data;
    out->parallel.zero_group_gpus =
        spec->parallel.zero_group_gpus <= data ? spec->parallel.zero_group_gpus : 0;
}

/* With `data` replicas of the model on the nodes that these need. */
static void shrink(Levels *l, int data)
{
    const Spec *spec = l->report->spec;
    const int gpus = spec_gpus(spec) / spec->parallel.data * data;
    if (!divides(spec, data) || gpus % spec->cluster.gpus_per_node != 0)
        return;
    *l->fewer = *spec;
    set_data(spec, data, l->fewer);
    try_nodes(l, gpus / spec->cluster.gpus_per_node);
}

/* The most replicas of the model with these degrees that fewer nodes hold and that divide the batch. */
static void redivide(Levels *l, int tensor, int pipeline)
{
    const Spec *spec = l->report->spec;
    const int split = tensor * pipeline * spec->parallel.context, node = spec->cluster.gpus_per_node;
    *l->fewer = *spec;
    l->fewer->parallel.tensor = tensor;
    l->fewer->parallel.pipeline = pipeline;
    l->fewer->parallel.expert_tensor = MIN(spec->parallel.expert_tensor, tensor);
    for (int data = (spec->cluster.nodes - 1) * node / split; data >= 1; data--) {
        if (split * data % node != 0 || !divides(spec, data))
            continue;
        set_data(spec, data, l->fewer);
        try_nodes(l, split * data / node);
        return;
    }
}

/* Tensor degrees up to a node, pipelines up to the layers, both by doubling. */
static void replan(Levels *l)
{
    const Spec *spec = l->report->spec;
    const int chunks = MAX(1, spec->parallel.virtual_stages);
    l->tries = 0;
    if ((spec->parallel.stage_layers_count > 0 && spec->cluster.group_count == 0) ||
        spec->model.list.text != NULL)
        return; /* a layout of its own belongs to its degrees */
    for (int tensor = 1; tensor <= spec->cluster.gpus_per_node; tensor *= 2)
        for (int pipeline = 1; pipeline * chunks <= spec->model.layers; pipeline *= 2)
            redivide(l, tensor, pipeline);
}

bool campaign_levels_fill(const Report *report, CampaignRun *run, GError **error)
{
    const Spec *spec = report->spec;
    Levels levels = {.report = report, .run = run, .fewer = g_new(Spec, 1), .kept = g_new(Spec, 1)};
    const int most = spec->cluster.group_count > 1 ? CAMPAIGN_LEVELS : COUNTS;
    run->kinds = spec->cluster.group_count;
    for (int g = 0; g < run->kinds; g++)
        run->kind_nodes[g] = spec->cluster.groups[g].nodes;
    for (int data = spec->parallel.data - 1; data >= 1 && run->level_count < most; data--)
        shrink(&levels, data);
    if (spec->faults.replan)
        replan(&levels);
    g_free(levels.fewer);
    g_free(levels.kept);
    if (run->level_count > 0)
        return true;
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "faults.elastic: with fewer than %d replicas of the model nothing fits or divides the batch of %d; "
        "give more replicas, or false",
        spec->parallel.data, spec->training.global_batch);
}
