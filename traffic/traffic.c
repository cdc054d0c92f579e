/* traffic/traffic.c - a fabric with a job on it, as the cost model asks it. */
#include "traffic/traffic.h"

#include <math.h>
#include <string.h>

#include "traffic/groups.h"

static CostCrowding crowding_of(const TrafficMeeting *meeting)
{
    return (CostCrowding){.up = meeting->up, .out = meeting->out};
}

static CostCrowding contended_group(struct CostFabric *fabric, CostRanks ranks, int step, int count,
                                    int pipeline)
{
    Traffic *traffic = (Traffic *)(void *)((char *)fabric - offsetof(Traffic, contended));
    const int stages = traffic->spec->parallel.pipeline;
    CostCrowding worst = {1, 1};
    if (ranks == COST_RANKS_ALL) /* a few bytes */
        return worst;
    for (int r = pipeline < 0 ? 0 : pipeline; r <= (pipeline < 0 ? stages - 1 : pipeline); r++) {
        const TrafficKind kind = {.ranks = ranks, .step = step, .count = count, .from = r};
        const CostCrowding own = crowding_of(traffic_meeting(traffic, &kind));
        worst.up = MAX(worst.up, own.up);
        worst.out = MAX(worst.out, own.out);
    }
    return worst;
}

static CostCrowding contended_hop(struct CostFabric *fabric, int from, int to)
{
    Traffic *traffic = (Traffic *)(void *)((char *)fabric - offsetof(Traffic, contended));
    const TrafficKind kind = {.pair = true, .from = from, .to = to};
    return crowding_of(traffic_meeting(traffic, &kind));
}

static CostCrowding alone_group(struct CostFabric *fabric, CostRanks ranks, int step, int count, int pipeline)
{
    (void)fabric;
    (void)ranks;
    (void)step;
    (void)count;
    (void)pipeline;
    return (CostCrowding){1, 1};
}

static CostCrowding alone_hop(struct CostFabric *fabric, int from, int to)
{
    (void)fabric;
    (void)from;
    (void)to;
    return (CostCrowding){1, 1};
}

static void free_meeting(gpointer data)
{
    TrafficMeeting *meeting = data;
    g_free(meeting->links);
    g_free(meeting->loads);
    g_free(meeting);
}

/* Links between a GPU and its neighbours or their switch that run below their rate. */
static bool inside_failed(const NetTopology *now, const NetTopology *before)
{
    for (int l = 0; l < now->link_count; l++)
        if (now->links[l].bytes_per_s < before->links[l].bytes_per_s && now->links[l].weight == 1)
            return true;
    return false;
}

static bool find_failures(Traffic *traffic, GError **error)
{
    if (traffic->spec->cluster.network.failed_link_count == 0 || traffic->topology != &traffic->own)
        return true;
    if (!traffic_topology(traffic->spec, false, &traffic->healthy, error))
        return false;
    if (!inside_failed(traffic->topology, &traffic->healthy))
        net_topology_clear(&traffic->healthy);
    return true;
}

static void make_routes(Traffic *traffic)
{
    const SpecNetwork *network = &traffic->spec->cluster.network;
    traffic->flows_on = g_new0(int32_t, MAX(traffic->topology->link_count, 1));
    traffic->routes = net_routes_new(traffic->topology, (NetRouting)network->routing, (uint64_t)network->seed,
                                     traffic->flows_on);
    if (traffic->healthy.link_count > 0)
        traffic->healthy_routes = net_routes_new(&traffic->healthy, (NetRouting)network->routing,
                                                 (uint64_t)network->seed, traffic->flows_on);
}

Traffic *traffic_new(const Spec *spec, const NetTopology *on, GError **error)
{
    Traffic *traffic = g_new0(Traffic, 1);
    traffic->spec = spec;
    traffic->contended = (struct CostFabric){contended_group, contended_hop};
    traffic->alone = (struct CostFabric){alone_group, alone_hop};
    traffic->known = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, free_meeting);
    traffic->topology = on != NULL ? on : &traffic->own;
    if ((on == NULL && !traffic_topology(spec, true, &traffic->own, error)) ||
        !traffic_place(spec, traffic->topology, &traffic->place, error) || !find_failures(traffic, error)) {
        traffic_free(traffic);
        return NULL;
    }
    NetFabric fabric = {0};
    (void)traffic_cluster_fabric(&spec->cluster, spec_gpus(spec), &fabric);
    traffic->up_bytes_per_s = (double)MAX(fabric.up_bytes_per_s, 1);
    traffic->out_bytes_per_s = (double)MAX(fabric.out_bytes_per_s, 1);
    make_routes(traffic);
    return traffic;
}

void traffic_free(Traffic *traffic)
{
    if (traffic == NULL)
        return;
    net_routes_free(traffic->routes);
    net_routes_free(traffic->healthy_routes);
    net_topology_clear(&traffic->own);
    net_topology_clear(&traffic->healthy);
    g_hash_table_destroy(traffic->known);
    g_free(traffic->flows_on);
    g_clear_error(&traffic->error);
    g_free(traffic);
}

const NetTopology *traffic_links(const Traffic *traffic)
{
    return traffic->topology;
}

void traffic_on(Traffic *traffic, const Spec *spec, bool contended, Spec *ret_spec)
{
    *ret_spec = *spec;
    ret_spec->cluster.network.fabric = contended ? &traffic->contended : &traffic->alone;
    ret_spec->cluster.network.fabric_rank = -1;
}

bool traffic_went_well(const Traffic *traffic, GError **error)
{
    if (traffic->error == NULL)
        return true;
    g_propagate_error(error, g_error_copy(traffic->error));
    return false;
}

const char *traffic_dimension_name(TrafficDimension dimension)
{
    static const char *const names[TRAFFIC_DIMENSIONS] = {"tensor",   "context", "expert",
                                                          "pipeline", "data",    "beside"};
    return names[dimension];
}
