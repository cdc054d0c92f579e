/* traffic/groups.c - which streams the groups of one kind are, and how long they take together. */
#include "traffic/groups.h"

#include <math.h>
#include <string.h>

#include "network/paced.h"
#include "spec/placement.h"
#include "traffic/exchange.h"

/* Routes of one kind at once. */
#define MOST_ROUTES 4000000

#define DIMENSIONS 4

typedef struct Layout {
    SpecDimension own[DIMENSIONS], others[DIMENSIONS];
    int own_count, other_count;
    int64_t pipeline_stride;
} Layout;

/* Streams of a kind while they are gathered: those between domains, or those inside. */
typedef struct Gathering {
    Traffic *traffic;
    NetPaced *paced;
    NetRoutes *routes;
    bool inside, pairs;
    int64_t route_count;
    int *vertex;            /* [members] of an instance */
    int *domain, *first_of; /* [members] domains in order, where their members begin */
    int phase;
    TrafficExchange exchange;
} Gathering;

static int by_stride(const void *a, const void *b)
{
    const SpecDimension *x = a, *y = b;
    return (x->stride > y->stride) - (x->stride < y->stride);
}

static Layout layout_of(const Spec *spec, const TrafficKind *kind)
{
    Layout layout = {.own_count = 0};
    SpecPlacement p;
    spec_placement(spec, &p);
    const CostRanks ranks = kind->ranks;
    const bool experts = !kind->pair && (ranks == COST_RANKS_EXPERT || ranks == COST_RANKS_EXPERT_TENSOR ||
                                         ranks == COST_RANKS_EXPERT_REPLICAS);
    const SpecDimension dense[] = {p.tensor, p.context, p.data},
                        expert[] = {p.expert_tensor, p.expert, p.expert_data};
    const bool own_dense[] = {ranks == COST_RANKS_TENSOR,
                              ranks == COST_RANKS_CONTEXT || ranks == COST_RANKS_REPLICAS,
                              ranks == COST_RANKS_REPLICAS};
    const bool own_expert[] = {ranks == COST_RANKS_EXPERT_TENSOR, ranks == COST_RANKS_EXPERT,
                               ranks == COST_RANKS_EXPERT_REPLICAS};
    for (int i = 0; i < 3; i++) {
        const bool own = !kind->pair && (experts ? own_expert[i] : own_dense[i]);
        const SpecDimension dimension = experts ? expert[i] : dense[i];
        if (dimension.size > 1 && own)
            layout.own[layout.own_count++] = dimension;
        else if (dimension.size > 1)
            layout.others[layout.other_count++] = dimension;
    }
    qsort(layout.own, (size_t)layout.own_count, sizeof layout.own[0], by_stride);
    layout.pipeline_stride = experts ? p.expert_pipeline.stride : p.pipeline.stride;
    return layout;
}

static int64_t volume(const SpecDimension *list, int count)
{
    int64_t size = 1;
    for (int i = 0; i < count; i++)
        size *= list[i].size;
    return size;
}

static int64_t offset_of(const SpecDimension *list, int count, int64_t index)
{
    int64_t offset = 0;
    for (int i = 0; i < count; i++) {
        offset += index % list[i].size * list[i].stride;
        index /= list[i].size;
    }
    return offset;
}

TrafficKind traffic_whole_group(const Spec *spec, CostRanks ranks, int pipeline)
{
    TrafficKind kind = {.ranks = ranks, .step = 1, .from = pipeline};
    const Layout layout = layout_of(spec, &kind);
    kind.count = (int)volume(layout.own, layout.own_count);
    return kind;
}

/* --- routes --- */

static void add_route(Gathering *g, int from, int to, double weight)
{
    Traffic *traffic = g->traffic;
    const int split = net_route_flows(g->routes, from, to);
    for (int flow = 0; traffic->error == NULL && flow < split; flow++) {
        const int32_t *links;
        const int hops = net_route(g->routes, from, to, flow, &links);
        if (hops < 0) {
            orr_fail(&traffic->error, ORR_ERROR_INPUT,
                     "cluster.network: no way of at most %d links leads from %s to %s", NET_MAX_HOPS,
                     traffic->topology->vertices[from].name, traffic->topology->vertices[to].name);
            return;
        }
        net_paced_route(g->paced, links, hops, weight / split);
        for (int h = 0; h < hops; h++)
            traffic->flows_on[links[h]]++;
        if (++g->route_count > MOST_ROUTES)
            orr_fail(&traffic->error, ORR_ERROR_INPUT,
                     "cluster.network.fidelity: flow, but the step has more than %d messages at once between "
                     "one kind "
                     "of ranks, too many to place; use \"analytic\", or fewer ranks",
                     MOST_ROUTES);
    }
}

/* Members are in rank order, so those of a domain are neighbours. */
static int split_domains(Gathering *g, int count)
{
    const int pitch = g->traffic->place.pitch;
    int domains = 0;
    for (int i = 0; i < count; i++) {
        if (i == 0 || g->vertex[i] / pitch != g->domain[domains - 1]) {
            g->domain[domains] = g->vertex[i] / pitch;
            g->first_of[domains++] = i;
        }
    }
    g->first_of[domains] = count;
    return domains;
}

static int rails_of(const Gathering *g, int domains)
{
    int rails = G_MAXINT;
    for (int d = 0; d < domains; d++)
        rails = MIN(rails, g->first_of[d + 1] - g->first_of[d]);
    return rails;
}

/* Between domains, along every rail, the messages of a phase of an algorithm. */
static void add_exchanges(Gathering *g, int domains, int rails)
{
    const TrafficExchange *exchange = &g->exchange;
    const SpecNetworkAlgorithm algorithm = g->traffic->spec->cluster.network.algorithm;
    if (g->phase >= traffic_exchange_phases(algorithm, domains))
        return;
    traffic_exchange_fill(&g->exchange, algorithm, domains, g->phase);
    for (int rail = 0; rail < rails; rail++) {
        for (int i = 0; i < exchange->count; i++) {
            const NetMessage *message = &exchange->messages[i];
            if (i == 0 || !exchange->together)
                net_paced_stream(g->paced);
            add_route(g, g->vertex[g->first_of[message->from] + rail],
                      g->vertex[g->first_of[message->to] + rail], (double)message->bytes / exchange->largest);
        }
    }
}

/* Between domains: rank x of each to rank x of the next, a ring a rail. Inside: around the members of each. */
static void add_rings(Gathering *g, int count)
{
    const int domains = split_domains(g, count), rails = rails_of(g, domains);
    const bool ring = g->traffic->spec->cluster.network.algorithm == SPEC_NETWORK_RING || domains < 3;
    if (!g->inside && !ring)
        add_exchanges(g, domains, rails);
    for (int rail = 0; !g->inside && ring && domains > 1 && rail < rails; rail++) {
        net_paced_stream(g->paced);
        for (int d = 0; d < domains; d++)
            add_route(g, g->vertex[g->first_of[d] + rail], g->vertex[g->first_of[(d + 1) % domains] + rail],
                      1);
    }
    for (int d = 0; g->inside && d < domains; d++) {
        const int first = g->first_of[d], members = g->first_of[d + 1] - first;
        if (members > 1)
            net_paced_stream(g->paced);
        for (int i = 0; members > 1 && i < members; i++)
            add_route(g, g->vertex[first + i], g->vertex[first + (i + 1) % members], 1);
    }
}

/* Everyone to everyone: what one sends keeps one pace. */
static void add_pairs(Gathering *g, int count)
{
    const int pitch = g->traffic->place.pitch;
    for (int i = 0; i < count; i++) {
        int peers = 0;
        for (int j = 0; j < count; j++)
            peers += j != i && (g->vertex[i] / pitch == g->vertex[j] / pitch) == g->inside;
        if (peers > 0)
            net_paced_stream(g->paced);
        for (int j = 0; peers > 0 && j < count; j++)
            if (j != i && (g->vertex[i] / pitch == g->vertex[j] / pitch) == g->inside)
                add_route(g, g->vertex[i], g->vertex[j], 1.0 / peers);
    }
}

/* --- instances --- */

static bool everyone_to_everyone(const Spec *spec, CostRanks ranks)
{
    return ranks == COST_RANKS_EXPERT ||
           (ranks == COST_RANKS_CONTEXT && spec->parallel.context_mode == SPEC_CONTEXT_ULYSSES);
}

static void gather_groups(Gathering *g, const TrafficKind *kind)
{
    const Layout layout = layout_of(g->traffic->spec, kind);
    const int64_t others = volume(layout.others, layout.other_count),
                  size = volume(layout.own, layout.own_count);
    const int64_t base = kind->from * layout.pipeline_stride;
    for (int64_t o = 0; o < others; o++) {
        for (int64_t part = 0; g->traffic->error == NULL && part < size / kind->count; part++) {
            const int64_t first = part / kind->step * kind->step * kind->count + part % kind->step;
            for (int i = 0; i < kind->count; i++)
                g->vertex[i] = traffic_vertex(
                    &g->traffic->place,
                    base + offset_of(layout.others, layout.other_count, o) +
                        offset_of(layout.own, layout.own_count, first + (int64_t)i * kind->step));
            if (everyone_to_everyone(g->traffic->spec, kind->ranks))
                add_pairs(g, kind->count);
            else
                add_rings(g, kind->count);
        }
    }
}

static void gather_messages(Gathering *g, const TrafficKind *kind)
{
    const Layout layout = layout_of(g->traffic->spec, kind);
    const int64_t others = volume(layout.others, layout.other_count);
    for (int64_t o = 0; g->traffic->error == NULL && o < others; o++) {
        const int64_t rank = offset_of(layout.others, layout.other_count, o);
        const int from = traffic_vertex(&g->traffic->place, rank + kind->from * layout.pipeline_stride),
                  to = traffic_vertex(&g->traffic->place, rank + kind->to * layout.pipeline_stride);
        if ((from / g->traffic->place.pitch == to / g->traffic->place.pitch) != g->inside)
            continue;
        net_paced_stream(g->paced);
        add_route(g, from, to, 1);
    }
}

/* Everything of a kind on a fabric, solved; net_paced_free(). */
static NetPaced *gather(Traffic *traffic, const TrafficKind *kind, bool inside, bool healthy, int phase,
                        double *ret_largest)
{
    const NetTopology *topology = healthy ? &traffic->healthy : traffic->topology;
    Gathering g = {.traffic = traffic,
                   .inside = inside,
                   .phase = phase,
                   .routes = healthy ? traffic->healthy_routes : traffic->routes};
    g.paced = net_paced_new(topology, inside ? traffic->up_bytes_per_s : traffic->out_bytes_per_s,
                            traffic->spec->cluster.network.lossless);
    memset(traffic->flows_on, 0, sizeof(int32_t) * (size_t)topology->link_count);
    g.vertex = g_new(int, MAX(kind->count, 1));
    g.domain = g_new(int, MAX(kind->count, 1) + 1);
    g.first_of = g_new(int, MAX(kind->count, 1) + 1);
    if (kind->pair)
        gather_messages(&g, kind);
    else
        gather_groups(&g, kind);
    net_paced_solve(g.paced);
    g_free(g.vertex);
    g_free(g.domain);
    g_free(g.first_of);
    *ret_largest = g.exchange.largest > 0 ? g.exchange.largest : 1;
    traffic_exchange_clear(&g.exchange);
    return g.paced;
}

/* --- what they do to each other --- */

/* Solvers count in doubles: what is 1 but for the last bits is 1. */
static double times(double time)
{
    return time < 1 + 1e-9 ? 1 : time;
}

/* `weights` [links]: of what a rank sends, so much goes over each. */
static void note_links(const Traffic *traffic, const double *weights, TrafficMeeting *meeting)
{
    const NetTopology *t = traffic->topology;
    int count = 0;
    for (int l = 0; l < t->link_count; l++)
        count += weights[l] > 0;
    meeting->links = g_new(int32_t, MAX(count, 1));
    meeting->loads = g_new(double, MAX(count, 1));
    for (int l = 0; l < t->link_count; l++) {
        if (weights[l] <= 0)
            continue;
        meeting->links[meeting->link_count] = l;
        meeting->loads[meeting->link_count++] =
            weights[l] * traffic->out_bytes_per_s / (double)t->links[l].bytes_per_s;
    }
}

/* Inside a domain the closed form knows what joins the GPUs; a failed link makes it longer by as much as rings do. */
static double inside_times(Traffic *traffic, const TrafficKind *kind)
{
    if (traffic->healthy.link_count == 0)
        return 1;
    double worst = 1, largest = 1;
    NetPaced *now = gather(traffic, kind, true, false, 0, &largest),
             *before = gather(traffic, kind, true, true, 0, &largest);
    for (int i = 0; traffic->error == NULL && i < net_paced_streams(now); i++)
        worst = MAX(worst, net_paced_time(now, i) / net_paced_time(before, i));
    net_paced_free(now);
    net_paced_free(before);
    return times(worst);
}

/* What a phase adds, by the bytes that it moves: its slowest and fastest stream, weights of links. */
typedef struct Phases {
    double slowest, fastest, bytes;
    double *weights;
    bool across;
} Phases;

static void add_phase(Traffic *traffic, const TrafficKind *kind, int phase, Phases *sum)
{
    double largest = 1, slowest = 1, fastest = INFINITY;
    NetPaced *paced = gather(traffic, kind, false, false, phase, &largest);
    const int streams = net_paced_streams(paced);
    for (int i = 0; i < streams; i++) {
        slowest = MAX(slowest, times(net_paced_time(paced, i)));
        fastest = MIN(fastest, times(net_paced_time(paced, i)));
    }
    sum->across = sum->across || streams > 0;
    sum->slowest += largest * slowest;
    sum->fastest += largest * (streams > 0 ? fastest : 1);
    sum->bytes += largest;
    for (int l = 0; l < traffic->topology->link_count; l++)
        sum->weights[l] += largest * net_paced_weights(paced)[l];
    if (traffic->error == NULL)
        (void)net_paced_check(paced, &traffic->error);
    net_paced_free(paced);
}

static TrafficMeeting *meet(Traffic *traffic, const TrafficKind *kind)
{
    TrafficMeeting *meeting = g_new0(TrafficMeeting, 1);
    Phases sum = {.weights = g_new0(double, MAX(traffic->topology->link_count, 1))};
    const bool one = kind->pair || everyone_to_everyone(traffic->spec, kind->ranks);
    const int phases =
        one ? 1 : traffic_exchange_phases(traffic->spec->cluster.network.algorithm, kind->count);
    for (int phase = 0; phase < phases && traffic->error == NULL; phase++)
        add_phase(traffic, kind, phase, &sum);
    for (int l = 0; l < traffic->topology->link_count; l++)
        sum.weights[l] /= MAX(sum.bytes, 1);
    meeting->out = times(sum.slowest / MAX(sum.bytes, 1));
    meeting->fastest = times(sum.fastest / MAX(sum.bytes, 1));
    meeting->across = sum.across;
    note_links(traffic, sum.weights, meeting);
    g_free(sum.weights);
    meeting->up = inside_times(traffic, kind);
    return meeting;
}

const TrafficMeeting *traffic_meeting(Traffic *traffic, const TrafficKind *kind)
{
    g_autofree char *key =
        kind->pair ? g_strdup_printf("%d>%d", kind->from, kind->to)
                   : g_strdup_printf("%d/%d/%d@%d", (int)kind->ranks, kind->step, kind->count, kind->from);
    TrafficMeeting *meeting = g_hash_table_lookup(traffic->known, key);
    if (meeting == NULL) {
        meeting = meet(traffic, kind);
        g_hash_table_insert(traffic->known, g_steal_pointer(&key), meeting);
    }
    return meeting;
}
