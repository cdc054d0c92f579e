/* costmodel/placement.c - see placement.h. Members are counted domain by domain for every place in a domain where an
 * instance of the group can begin; groups that divide a domain evenly, or are divided by it, need no counting. */
#include "costmodel/placement.h"

#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "base/memo.h"
#include "costmodel/fabric.h"
#include "costmodel/uplinks.h"
#include "spec/placement.h"

#define MAX_DIMENSIONS 4

/* Members are the sums of digits x strides of `own`, innermost first; instances begin at those of `others`. */
typedef struct Layout {
    SpecDimension own[MAX_DIMENSIONS], others[MAX_DIMENSIONS];
    int own_count, other_count;
} Layout;

static int by_stride(const void *a, const void *b)
{
    const SpecDimension *x = a, *y = b;
    return (x->stride > y->stride) - (x->stride < y->stride);
}

static void add(SpecDimension *list, int *count, SpecDimension dimension)
{
    if (dimension.size > 1)
        list[(*count)++] = dimension;
}

/* Neighbouring dimensions without a gap are one. */
static void merge(Layout *layout)
{
    int kept = 0;
    qsort(layout->own, (size_t)layout->own_count, sizeof layout->own[0], by_stride);
    for (int i = 1; i < layout->own_count; i++) {
        SpecDimension *last = &layout->own[kept];
        if (layout->own[i].stride == last->stride * last->size)
            last->size *= layout->own[i].size;
        else
            layout->own[++kept] = layout->own[i];
    }
    layout->own_count = layout->own_count > 0 ? kept + 1 : 0;
}

static Layout layout_of(const Spec *spec, CostRanks ranks)
{
    Layout layout = {.own_count = 0};
    SpecPlacement p;
    if (ranks == COST_RANKS_ALL) {
        add(layout.own, &layout.own_count, (SpecDimension){.size = spec_gpus(spec), .stride = 1});
        return layout;
    }
    spec_placement(spec, &p);
    const bool experts = ranks == COST_RANKS_EXPERT || ranks == COST_RANKS_EXPERT_TENSOR ||
                         ranks == COST_RANKS_EXPERT_REPLICAS;
    const SpecDimension dense[] = {p.tensor, p.context, p.data, p.pipeline};
    const SpecDimension expert[] = {p.expert_tensor, p.expert, p.expert_data, p.expert_pipeline};
    const bool replicas = ranks == COST_RANKS_REPLICAS;
    const bool own[] = {experts ? ranks == COST_RANKS_EXPERT_TENSOR : ranks == COST_RANKS_TENSOR,
                        experts ? ranks == COST_RANKS_EXPERT : ranks == COST_RANKS_CONTEXT || replicas,
                        experts ? ranks == COST_RANKS_EXPERT_REPLICAS : replicas, false};
    for (int i = 0; i < MAX_DIMENSIONS; i++) {
        const SpecDimension dimension = experts ? expert[i] : dense[i];
        add(own[i] ? layout.own : layout.others, own[i] ? &layout.own_count : &layout.other_count, dimension);
    }
    merge(&layout);
    return layout;
}

static int64_t size_of(const Layout *layout)
{
    int64_t size = 1;
    for (int i = 0; i < layout->own_count; i++)
        size *= layout->own[i].size;
    return size;
}

/* Distance of member `index` from the first. */
static int64_t offset_of(const Layout *layout, int64_t index)
{
    int64_t offset = 0;
    for (int i = 0; i < layout->own_count; i++) {
        offset += index % layout->own[i].size * layout->own[i].stride;
        index /= layout->own[i].size;
    }
    return offset;
}

/* Marks where in a domain instances begin. */
static void mark_starts(const Layout *layout, int domain, bool *starts)
{
    g_autofree bool *before = g_new(bool, domain);
    starts[0] = true;
    for (int i = 0; i < layout->other_count; i++) {
        const SpecDimension *dimension = &layout->others[i];
        memcpy(before, starts, (size_t)domain * sizeof *before);
        for (int from = 0; from < domain; from++) {
            for (int64_t j = 1; before[from] && j < MIN(dimension->size, domain); j++)
                starts[(from + j * dimension->stride) % domain] = true;
        }
    }
}

static int64_t common_divisor(int64_t a, int64_t b)
{
    while (b != 0) {
        const int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

typedef struct Span {
    int64_t block; /* neighbours that never lie apart */
    int domains, rails;
} Span;

/* Counts one instance: members first, first + step ... of the group that begins at `start` in a domain. */
static Span count_instance(const Layout *layout, int64_t start, int domain, int64_t first, int step,
                           int count)
{
    Span span = {.block = count, .domains = 1, .rails = count};
    int64_t place = -1;
    int since = 0;
    for (int i = 0; i < count; i++) {
        const int64_t here = (start + offset_of(layout, first + (int64_t)i * step)) / domain;
        if (i > 0 && here != place) {
            span.block = common_divisor(span.block, i);
            span.rails = MIN(span.rails, i - since);
            span.domains++;
            since = i;
        }
        place = here;
    }
    span.rails = MIN(span.rails, count - since);
    return span;
}

static bool lies_worse(const Span *span, const Span *than)
{
    if (span->domains == 1 || than->domains == 1)
        return span->domains > than->domains;
    return span->rails < than->rails || (span->rails == than->rails && span->domains > than->domains);
}

/* Every instance alike: each inside a domain, each member in a domain of its own, or the same number in each. */
static bool lies_evenly(const SpecDimension *run, int domain, int step, int count, CostGroup *ret_group)
{
    const int64_t stride = run->stride * step, all = run->stride * run->size;
    if (all <= domain && domain % all == 0) {
        ret_group->per_domain = count;
    } else if (stride % domain == 0) {
        ret_group->per_domain = 1;
    } else if (domain % stride == 0 && all % domain == 0 && stride * count % domain == 0) {
        ret_group->per_domain = (int)(domain / stride);
    } else if (domain % (stride * count) == 0 && all % domain == 0) {
        ret_group->per_domain = count;
    } else {
        return false;
    }
    return true;
}

/* What counting goes by; a multiple of 8 bytes. */
typedef struct Counted {
    Layout layout;
    int64_t domain, step, count;
} Counted;

/* Members of all instances, domain by domain. */
static void count_all(const Counted *asked, int64_t size, CostGroup *group)
{
    const int domain = (int)asked->domain, step = (int)asked->step, count = (int)asked->count;
    g_autofree bool *starts = g_new0(bool, domain);
    mark_starts(&asked->layout, domain, starts);
    Span worst = {.block = count, .domains = 1, .rails = count};
    int64_t block = count;
    for (int64_t i = 0; i < domain * (size / count); i++) { /* start in a domain x part of the group */
        const int64_t start = i % domain, part = i / domain;
        if (!starts[start])
            continue;
        const Span span = count_instance(&asked->layout, start, domain,
                                         part / step * step * count + part % step, step, count);
        block = common_divisor(block, span.block);
        if (lies_worse(&span, &worst))
            worst = span;
    }
    group->per_domain = (int)block;
    group->domains = worst.domains;
    group->rails = worst.rails;
}

static CostGroup lie(const Spec *spec, CostRanks ranks, int step, int count)
{
    CostGroup group = {.ranks = count, .per_domain = count, .nic_sharers = 1};
    const int domain = spec_domain_gpus(spec);
    const Layout layout = layout_of(spec, ranks);
    const int64_t size = size_of(&layout);
    g_assert(step >= 1 && count >= 1 && size % ((int64_t)step * count) == 0);
    if (count == 1 || (layout.own_count == 1 && lies_evenly(&layout.own[0], domain, step, count, &group)))
        return group;
    static OrrMemo memo = ORR_MEMO(Counted, CostGroup, 512);
    const Counted counted = {layout, domain, step, count};
    bool known = false;
    CostGroup *kept = orr_memo_place(&memo, &counted, &known);
    if (!known) {
        count_all(&counted, size, &group);
        *kept = group;
    }
    return *kept;
}

static void crowd(const CostCrowding *crowding, CostGroup *group)
{
    group->up_crowding = crowding->up;
    group->out_crowding = crowding->out;
}

/* Pods that the first group of its kind lies in, and pairs of its members in one of them. */
static int count_pods(const Layout *layout, int step, int count, int64_t pod, double *ret_pairs)
{
    int64_t here = -1;
    int pods = 0;
    double members = 0;
    *ret_pairs = 0;
    for (int i = 0; i < count; i++) {
        const int64_t at = offset_of(layout, (int64_t)i * step) / pod;
        if (at != here) {
            *ret_pairs += members * members;
            members = 0;
            pods++;
        }
        here = at;
        members++;
    }
    *ret_pairs += members * members;
    return pods;
}

/* Where nobody knows the fabric link by link. Of a ring that goes through the pods one after the other one hop leaves each,
 * beside those that stay; of an all-to-all what goes to other pods, and to other rails where these have leaves apart. */
static void climb(const Spec *spec, CostRanks ranks, int step, CostGroup *group)
{
    const CostUplinks uplinks = cost_uplinks(spec);
    const int domains = cost_group_domains(group);
    if (!(uplinks.ratio > 1) || domains < 2)
        return;
    double ring_frac = 1, all_frac = 1;
    if (uplinks.pod_gpus > 0) {
        const Layout layout = layout_of(spec, ranks);
        const double n = group->ranks, inside = n / domains;
        double pairs = 0;
        const int pods = count_pods(&layout, step, group->ranks, uplinks.pod_gpus, &pairs);
        if (uplinks.rails && inside > 1)
            pairs = n * inside + MAX(0, pairs - n * inside) / inside;
        ring_frac = pods > 1 ? MIN(1, (double)pods / domains) : 0;
        all_frac = CLAMP((n - pairs / n) / (n - inside), 0, 1);
    }
    group->out_crowding = cost_uplink_crowding(uplinks.ratio, ring_frac);
    group->all_to_all_crowding = cost_uplink_crowding(uplinks.ratio, all_frac);
}

/* Of the ranks of a pod those that send to another one at once: all of one pipeline rank. */
static double leaving_frac(const Spec *spec, int from, int to, int64_t pod)
{
    SpecPlacement p;
    spec_placement(spec, &p);
    const int64_t low = from * p.pipeline.stride, far = (to - from) * p.pipeline.stride;
    const SpecDimension others[] = {p.tensor, p.context, p.data};
    Layout layout = {.own_count = 0};
    for (int i = 0; i < 3; i++)
        add(layout.own, &layout.own_count, others[i]);
    merge(&layout);
    const int64_t count = size_of(&layout);
    int64_t senders = 0, most = 0, here = -1;
    for (int64_t i = 0; i < count; i++) {
        const int64_t at = low + offset_of(&layout, i);
        if (at / pod != here)
            senders = 0;
        here = at / pod;
        senders += (at + far) / pod != here;
        most = MAX(most, senders);
    }
    return (double)most / (double)pod;
}

CostGroup cost_group_part(const Spec *spec, CostRanks ranks, int step, int count)
{
    CostGroup group = lie(spec, ranks, step, count);
    struct CostFabric *fabric = spec->cluster.network.fabric;
    if (fabric != NULL && count > 1) {
        const CostCrowding crowding =
            fabric->group(fabric, ranks, step, count, spec->cluster.network.fabric_rank);
        crowd(&crowding, &group);
    } else if (count > 1) {
        climb(spec, ranks, step, &group);
    }
    return group;
}

CostGroup cost_pipeline_pair(const Spec *spec, int from, int to)
{
    CostGroup group = {
        .ranks = 2, .per_domain = cost_pipeline_inside(spec, from, to) ? 2 : 1, .nic_sharers = 1};
    struct CostFabric *fabric = spec->cluster.network.fabric;
    if (fabric != NULL) {
        const CostCrowding crowding = fabric->hop(fabric, from, to);
        crowd(&crowding, &group);
    } else if (group.per_domain == 1) {
        const CostUplinks uplinks = cost_uplinks(spec);
        if (uplinks.ratio > 1)
            group.out_crowding = cost_uplink_crowding(
                uplinks.ratio, uplinks.pod_gpus > 0 ? leaving_frac(spec, from, to, uplinks.pod_gpus) : 1);
    }
    return group;
}

int cost_group_ranks(const Spec *spec, CostRanks ranks)
{
    const Layout layout = layout_of(spec, ranks);
    return (int)size_of(&layout);
}

CostGroup cost_group(const Spec *spec, CostRanks ranks)
{
    return cost_group_part(spec, ranks, 1, cost_group_ranks(spec, ranks));
}

bool cost_pipeline_inside(const Spec *spec, int rank, int other)
{
    const int domain = spec_domain_gpus(spec);
    SpecPlacement p;
    spec_placement(spec, &p);
    Layout layout = {.own_count = 0};
    const SpecDimension others[] = {p.tensor, p.context, p.data};
    for (int i = 0; i < 3; i++)
        add(layout.others, &layout.other_count, others[i]);
    g_autofree bool *starts = g_new0(bool, domain);
    mark_starts(&layout, domain, starts);
    const int64_t low = MIN(rank, other) * p.pipeline.stride, far = ABS(rank - other) * p.pipeline.stride;
    for (int start = 0; start < domain && far < domain; start++)
        if (starts[start] && (start + low) % domain + far >= domain)
            return false;
    return far < domain;
}
