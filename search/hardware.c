/* search/hardware.c - see hardware.h. */
#include "search/hardware.h"

#include <math.h>

#include "step/kinds.h"
#include "spec/groups.h"
#include "spec/placement.h"

void search_hardware_spec(const Spec *spec, int kind, Spec *ret_spec)
{
    if (spec->cluster.group_count > 0)
        spec_group_alone(spec, kind, ret_spec);
    else
        *ret_spec = *spec;
}

int search_hardware_domain_gpus(const Spec *spec, int kind)
{
    if (spec->cluster.group_count == 0)
        return spec_domain_gpus(spec);
    g_autofree Spec *own = g_new(Spec, 1);
    spec_group_alone(spec, kind, own);
    return spec_domain_gpus(own);
}

static const SpecAccelerator *accelerator_of(const Spec *spec, int kind)
{
    return spec->cluster.group_count > 0 ? &spec->cluster.groups[kind].accelerator
                                         : &spec->cluster.accelerator;
}

bool search_hardware_has(const Spec *spec, SpecDtype dtype)
{
    for (int kind = 0; kind < search_hardware_count(spec); kind++)
        if (!(accelerator_of(spec, kind)->peak_flops_per_s[dtype] > 0))
            return false;
    return true;
}

bool search_hardware_fitted(const Spec *spec, SpecAttention kernel)
{
    const bool usual = spec->cluster.group_count > 0 && kernel == spec_default_attention(spec);
    for (int kind = 0; kind < (usual ? 1 : search_hardware_count(spec)); kind++)
        if (!(accelerator_of(spec, kind)->model.attention[kernel].peak_frac > 0))
            return false;
    return true;
}

static double bytes_of(const Spec *spec, int kind)
{
    return accelerator_of(spec, kind)->memory_bytes;
}

double search_hardware_most_bytes(const Spec *spec)
{
    double most = 0;
    for (int kind = 0; kind < search_hardware_count(spec); kind++)
        most = MAX(most, bytes_of(spec, kind));
    return most;
}

double search_hardware_lacks_bytes(const Spec *spec, int kind)
{
    return search_hardware_most_bytes(spec) - bytes_of(spec, kind);
}

bool search_hardware_dealt(const Spec *spec)
{
    return spec->cluster.group_count > 0 &&
           (spec->parallel.stage_layers_count == SPEC_AUTO || spec->parallel.replica_microbatches_count != 0);
}

/* [pipeline x data], or NULL where a tensor and context group would lie on two kinds; g_free. */
static int *kinds_of(const SearchSpace *space, const SearchGroup *group)
{
    g_autofree Spec *spec = g_memdup2(space->spec, sizeof *space->spec);
    g_autofree int *kinds = g_new(int, (gsize)group->pipeline *(gsize)group->data);
    search_apply_group(space, group, spec);
    return sim_kinds_places(spec, kinds, NULL) ? g_steal_pointer(&kinds) : NULL;
}

bool search_hardware_allows(const SearchSpace *space, const SearchGroup *group)
{
    if (space->spec->cluster.group_count == 0)
        return true;
    g_autofree int *kinds = kinds_of(space, group);
    return kinds != NULL;
}

static int slowest_replica(const SearchTables *tables, const SearchGroup *group, const int *kinds)
{
    const double *slowness = search_hardware_slowness(tables, group->costs);
    double most = -1;
    int slowest = 0;
    for (int d = 0; d < group->data; d++) {
        double sum = 0;
        for (int p = 0; p < group->pipeline; p++)
            sum += slowness[kinds[p * group->data + d]];
        if (sum > most) {
            most = sum;
            slowest = d;
        }
    }
    return slowest;
}

void search_hardware_slowest(const SearchTables *tables, const SearchGroup *group, int *ret_kinds)
{
    for (int p = 0; p < group->pipeline; p++)
        ret_kinds[p] = 0;
    if (tables->space->spec->cluster.group_count == 0)
        return;
    g_autofree int *kinds = kinds_of(tables->space, group);
    g_assert(kinds != NULL); /* the space has no other groups */
    const int replica = slowest_replica(tables, group, kinds);
    for (int p = 0; p < group->pipeline; p++)
        ret_kinds[p] = kinds[p * group->data + replica];
}

/* What shares the micro-batches: all replicas, or one where each has its own number of them. */
typedef struct Sharing {
    double microbatches, replicas, speed, most_slowness; /* M, D, S, R */
} Sharing;

static Sharing sharing_of(const SearchTables *tables, const SearchGroup *group, bool even)
{
    const Spec *spec = tables->space->spec;
    const double *slowness = search_hardware_slowness(tables, group->costs);
    const bool all = spec->parallel.replica_microbatches_count != 0 && !even;
    g_autofree int *kinds = kinds_of(tables->space, group);
    g_assert(kinds != NULL);
    const int one = slowest_replica(tables, group, kinds);
    Sharing sharing = {.microbatches = all ? (double)(spec->training.global_batch / group->micro_batch)
                                           : group->microbatches,
                       .replicas = all ? group->data : 1};
    for (int d = all ? 0 : one; d < (all ? group->data : one + 1); d++)
        for (int p = 0; p < group->pipeline; p++) {
            const double own = slowness[kinds[p * group->data + d]];
            sharing.speed += 1 / own;
            sharing.most_slowness = MAX(sharing.most_slowness, own);
        }
    return sharing;
}

/* A little less than the sums in floating point say. */
static int64_t rounded(double ps)
{
    return (int64_t)(ps * (1 - 1e-9));
}

int64_t search_hardware_bound(const SearchTables *tables, const SearchGroup *group)
{
    if (tables->space->spec->cluster.group_count == 0)
        return 0;
    const Sharing sharing = sharing_of(tables, group, false);
    return rounded(sharing.microbatches * tables->totals[group->costs].shared_ps / sharing.speed);
}

int64_t search_hardware_fill_bound(const SearchTables *tables, const SearchGroup *group, int64_t again_ps,
                                   bool even)
{
    const Sharing sharing = sharing_of(tables, group, even);
    const SearchTotals *totals = &tables->totals[group->costs];
    const double again = (double)again_ps,
                 each_ps = (totals->shared_ps + again / sharing.most_slowness) / sharing.speed;
    return rounded((double)(totals->chain_ps + totals->weight_ps) + again +
                   (sharing.microbatches - sharing.replicas) * each_ps);
}

/* Whole layers, one by one to the rank that is done with one more first: no other way keeps the slowest rank shorter. */
static double least_slowest_ps(int layers, int ranks, const int *kinds, int stride, const int64_t *layer_ps)
{
    g_autofree int *own = g_new0(int, (gsize)ranks);
    double slowest_ps = 0;
    for (int i = 0; i < layers; i++) {
        int least = 0;
        double least_ps = G_MAXDOUBLE;
        for (int p = 0; p < ranks; p++) {
            const double ps = (own[p] + 1) * (double)layer_ps[kinds[p * stride]];
            if (ps < least_ps) {
                least = p;
                least_ps = ps;
            }
        }
        own[least]++;
        slowest_ps = fmax(slowest_ps, least_ps);
    }
    return slowest_ps;
}

int64_t search_hardware_deal_bound(const SearchTables *tables, const SearchGroup *group,
                                   const int64_t *layer_ps, bool even)
{
    const Spec *spec = tables->space->spec;
    if (spec->cluster.group_count == 0 || spec->parallel.stage_layers_count != SPEC_AUTO)
        return 0;
    const bool all = spec->parallel.replica_microbatches_count != 0 && !even;
    g_autofree int *kinds = kinds_of(tables->space, group);
    g_assert(kinds != NULL);
    double rate = 0, most_ps = 0, ps = 0;
    for (int d = 0; d < group->data; d++) {
        bool same = d > 0; /* as the one before */
        for (int p = 0; same && p < group->pipeline; p++)
            same = kinds[p * group->data + d] == kinds[p * group->data + d - 1];
        if (!same)
            ps = least_slowest_ps(spec->model.layers, group->pipeline, &kinds[d], group->data, layer_ps);
        most_ps = fmax(most_ps, ps);
        rate += ps > 0 ? 1 / ps : INFINITY;
    }
    return all ? rounded(spec->training.global_batch / group->micro_batch / rate)
               : rounded(group->microbatches * most_ps);
}
