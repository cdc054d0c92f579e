/* traffic/fabric.c - from a cluster to vertices and links. */
#include "traffic/fabric.h"

#include <math.h>
#include <string.h>

#include "costmodel/collective.h"
#include "costmodel/nic.h"
#include "sim/picoseconds.h"
#include "spec/placement.h"

static int torus_dims(const SpecCluster *cluster)
{
    return cluster->topology == SPEC_TOPOLOGY_TORUS3D ? 3
                                                      : (cluster->topology == SPEC_TOPOLOGY_TORUS2D ? 2 : 0);
}

/* Sides whose product is the GPUs, each the largest that is not longer than the root of what is left. */
static void set_sides(NetFabric *fabric, int dims)
{
    int left = fabric->gpus;
    for (int d = dims - 1; d >= 0; d--) {
        int side = (int)floor(pow(left, 1.0 / (d + 1)) + 1e-9);
        while (left % side != 0)
            side--;
        fabric->dims[d] = side;
        left /= side;
    }
    fabric->dim_count = dims;
}

static const char *generator_of(const SpecCluster *cluster, bool one)
{
    switch (cluster->topology) {
    case SPEC_TOPOLOGY_CUBE_MESH:
        return one ? "cube-mesh" : NULL;
    case SPEC_TOPOLOGY_TORUS3D:
        return "torus";
    case SPEC_TOPOLOGY_TORUS2D:
        if (!one)
            return "rail";
        return cluster->scale_up_domain_gpus < cluster->accelerator.reference_scale_up_domain_gpus ? "mesh-2d"
                                                                                                   : "torus";
    case SPEC_TOPOLOGY_MESH:
        return one ? "pairs" : "rail";
    case SPEC_TOPOLOGY_PCIE:
        return one ? "pcie-tree" : "leaf-spine";
    default:
        return one ? "nvswitch" : (cluster->oversubscription > 1 ? "fat-tree" : "rail");
    }
}

const char *traffic_cluster_fabric(const SpecCluster *cluster, int gpus, NetFabric *fabric)
{
    const SpecAccelerator *gpu = &cluster->accelerator;
    const SpecCollectiveModel *model =
        gpu->model.collectives.fitted > 0 ? &gpu->model.collectives : &spec_collective_model_default;
    const int domain =
        cluster->scale_up_domain_gpus > 0 ? cluster->scale_up_domain_gpus : cluster->gpus_per_node;
    const bool one = gpus <= domain;
    double up = cluster->scale_up_bytes_per_s > 0 ? cluster->scale_up_bytes_per_s : gpu->scale_up_bytes_per_s;
    double out = cluster->scale_out_bytes_per_s_per_gpu > 0 ? cluster->scale_out_bytes_per_s_per_gpu
                                                            : gpu->reference_scale_out_bytes_per_s_per_gpu;
    if (!(up > 0) || cluster->topology == SPEC_TOPOLOGY_PCIE)
        up = gpu->host_link_bytes_per_s;
    fabric->gpus_per_node = domain;
    fabric->gpus = one ? domain : (gpus + domain - 1) / domain * domain;
    if (cluster->topology == SPEC_TOPOLOGY_TORUS3D)
        fabric->gpus = gpus;
    if (fabric->dim_count == 0 && torus_dims(cluster) > 0 && fabric->gpus > 0)
        set_sides(fabric, torus_dims(cluster));
    fabric->up_bytes_per_s = (int64_t)up;
    fabric->out_bytes_per_s = (int64_t)(out > 0 ? out : up);
    if (cluster->network.host_copies)
        fabric->host_bytes_per_s = (int64_t)cost_host_copy_bytes_per_s(cluster);
    fabric->up_latency_ps = sim_ps(model->simple_hop_s);
    fabric->out_latency_ps = sim_ps(cluster->scale_out_latency_s);
    fabric->oversubscription = cluster->oversubscription;
    if (cluster->topology == SPEC_TOPOLOGY_MESH)
        fabric->inside = NET_INSIDE_PAIRS;
    else if (cluster->topology == SPEC_TOPOLOGY_PCIE)
        fabric->inside = NET_INSIDE_PCIE;
    return generator_of(cluster, one);
}

/* Domains that the job is on, the last one perhaps in part. */
static int domains_of(const Spec *spec)
{
    const int domain = spec_domain_gpus(spec);
    return (spec_gpus(spec) + domain - 1) / domain;
}

static bool custom(const Spec *spec, NetTopology *topology, GError **error)
{
    const char *text = spec->cluster.network.topology;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "cluster.network.topology", error);
    const bool ok =
        doc != NULL && net_topology_read(orr_json_root(doc), "cluster.network.topology", topology, error);
    orr_json_free(doc);
    return ok;
}

#define MOST_GPUS (1 << 20) /* of a fabric: some 3 GB of vertices and links */

static const NetTopologyRow *row_of(const char *name)
{
    int count = 0;
    const NetTopologyRow *rows = net_topologies(&count);
    for (int i = 0; i < count; i++)
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    return NULL;
}

/* Sizes that its topology has a use for, and no more GPUs than memory is for. */
static bool sizes_fit(const Spec *spec, const char *name, int64_t nodes, GError **error)
{
    const SpecNetwork *network = &spec->cluster.network;
    const int64_t gpus = nodes * spec_domain_gpus(spec);
    const NetTopologyRow *row = row_of(name);
    if (network->dim_count > 0 && row != NULL && !row->grid)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "cluster.network.dims: %d given, but %s is not a grid and has no sizes of its own; leave them "
            "out, or give torus, mesh-2d or bcube as cluster.network.topology",
            network->dim_count, name);
    if (gpus > MOST_GPUS)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: %" G_GINT64_FORMAT
                        " scale-up domains of %d GPUs make a fabric of %" G_GINT64_FORMAT
                        "; it has at most %d GPUs",
                        network->machine_nodes == nodes ? "cluster.network.machine_nodes" : "cluster.nodes",
                        nodes, spec_domain_gpus(spec), gpus, MOST_GPUS);
    return true;
}

static bool generated(const Spec *spec, NetTopology *topology, GError **error)
{
    const SpecNetwork *network = &spec->cluster.network;
    const int domain = spec_domain_gpus(spec), nodes = MAX(domains_of(spec), network->machine_nodes);
    SpecCluster cluster = spec->cluster;
    cluster.scale_up_domain_gpus = domain; /* what of a domain the job takes is all there is of it */
    NetFabric fabric = {
        .leaf_gpus = network->leaf_gpus, .pod_leaves = network->pod_leaves, .dim_count = network->dim_count};
    memcpy(fabric.dims, network->dims, sizeof fabric.dims);
    const int most = CLAMP(MOST_GPUS / domain, 1, nodes);
    const char *own = traffic_cluster_fabric(&cluster, domain * most, &fabric);
    const char *name = network->topology != NULL ? network->topology : own;
    if (name != NULL && !sizes_fit(spec, name, nodes, error))
        return false;
    if (name == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "cluster.network: how several nodes of %s are joined is not known; give "
                        "cluster.network.topology",
                        spec->cluster.name);
    if (!net_topology_build(name, &fabric, topology, error)) {
        g_prefix_error(error, "cluster.network.topology: ");
        return false;
    }
    return true;
}

/* Marks what vertex 0 reaches, or what reaches it. */
static int reached(const NetTopology *t, bool forward, bool *seen)
{
    g_autofree int *queue = g_new(int, t->vertex_count);
    int head = 0, tail = 0, gpus = 0;
    memset(seen, 0, sizeof *seen * (size_t)t->vertex_count);
    seen[0] = true;
    queue[tail++] = 0;
    while (head < tail) {
        const int v = queue[head++];
        const int32_t *of = forward ? t->out_of : t->in_of, *links = forward ? t->out_links : t->in_links;
        gpus += v < t->gpus;
        for (int e = of[v]; (v == 0 || t->vertices[v].relays) && e < of[v + 1]; e++) {
            const NetLink *link = &t->links[links[e]];
            const int next = forward ? link->to : link->from;
            if (link->bytes_per_s > 0 && !seen[next]) {
                seen[next] = true;
                queue[tail++] = next;
            }
        }
    }
    return gpus;
}

/* GPUs that pass nothing on are reached over switches, or over GPUs that do: from one all, and from all that one. */
static bool all_reachable(const NetTopology *t, GError **error)
{
    g_autofree bool *seen = g_new(bool, t->vertex_count);
    for (int forward = 0; forward < 2; forward++) {
        if (reached(t, forward != 0, seen) == t->gpus)
            continue;
        int g = 0;
        while (seen[g])
            g++;
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "cluster.network: %s cannot reach %s over the links that are left; give it another way, or "
            "take the link out of failed_links",
            t->vertices[forward ? 0 : g].name, t->vertices[forward ? g : 0].name);
    }
    return true;
}

static bool degrade(const SpecNetwork *network, NetTopology *topology, GError **error)
{
    for (int i = 0; i < network->failed_link_count; i++) {
        const SpecFailedLink *link = &network->failed_links[i];
        if (!net_topology_degrade(topology, link->from, link->to, link->frac, error)) {
            g_prefix_error(error, "cluster.network.failed_links: ");
            return false;
        }
    }
    return all_reachable(topology, error);
}

bool traffic_topology(const Spec *spec, bool failures, NetTopology *ret_topology, GError **error)
{
    NetTopology topology = {0};
    const char *text = spec->cluster.network.topology;
    const bool built =
        text != NULL && text[0] == '{' ? custom(spec, &topology, error) : generated(spec, &topology, error);
    if (!built || (failures && !degrade(&spec->cluster.network, &topology, error))) {
        net_topology_clear(&topology);
        return false;
    }
    *ret_topology = topology;
    return true;
}

bool traffic_names_topology(const Spec *spec, GError **error)
{
    const char *text = spec->cluster.network.topology;
    NetTopology topology = {0};
    if (text == NULL)
        return true;
    if (text[0] != '{' && row_of(text) != NULL)
        return sizes_fit(spec, text, 0, error);
    const bool ok = text[0] == '{' ? custom(spec, &topology, error) : generated(spec, &topology, error);
    net_topology_clear(&topology);
    return ok;
}

bool traffic_place(const Spec *spec, const NetTopology *t, TrafficPlace *ret_place, GError **error)
{
    const SpecNetwork *network = &spec->cluster.network;
    const int domain = spec_domain_gpus(spec), gpus = spec_gpus(spec), nodes = domains_of(spec);
    const bool grid = nodes > 1 && t->gpus_per_node != domain && t->gpus == gpus && t->vertices[0].relays;
    const TrafficPlace place = {.domain = domain,
                                .pitch = grid ? domain : t->gpus_per_node,
                                .first_node = network->first_node,
                                .node_stride = network->node_stride};
    if (place.pitch != domain && nodes > 1)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "cluster.network.topology: %s has %d GPUs a node, but %d GPUs of the cluster share scale-up "
            "links; make them the same",
            t->name, t->gpus_per_node, domain);
    const int64_t last =
        (place.first_node + (int64_t)(nodes - 1) * place.node_stride) * place.pitch + (gpus - 1) % domain;
    if (last >= t->gpus)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "cluster.network: the job's ranks need GPU %" G_GINT64_FORMAT
            " of the fabric, but %s has %d; give a larger machine_nodes or topology, or fewer nodes",
            last, t->name, t->gpus);
    *ret_place = place;
    return true;
}
