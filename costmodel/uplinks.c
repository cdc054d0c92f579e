/* costmodel/uplinks.c - see uplinks.h. */
#include "costmodel/uplinks.h"

#include <glib.h>
#include <string.h>

#include "spec/placement.h"

#define LEAF_GPUS   32
#define POD_LEAVES  8
#define RACK_GPUS   16  /* [Llama3] */
#define POD_RACKS   192 /* [Llama3] */
#define LLAMA_RATIO 7   /* [Llama3] */

static const char *topology_of(const SpecCluster *cluster)
{
    if (cluster->network.topology != NULL)
        return cluster->network.topology;
    switch (cluster->topology) {
    case SPEC_TOPOLOGY_PCIE:
        return "leaf-spine";
    case SPEC_TOPOLOGY_MESH:
    case SPEC_TOPOLOGY_TORUS2D:
        return "rail";
    default:
        return "fat-tree";
    }
}

/* Of a topology with pods; 0: it has none. */
static int64_t pod_gpus(const Spec *spec, const char *topology, bool llama)
{
    const SpecNetwork *network = &spec->cluster.network;
    const int64_t domain = spec_domain_gpus(spec);
    const int64_t gpus = MAX(spec_gpus(spec), (int64_t)network->machine_nodes * domain);
    int64_t leaf = network->leaf_gpus;
    if (strcmp(topology, "rail") == 0)
        return (leaf > 0 ? leaf : LEAF_GPUS) * domain;
    if (strcmp(topology, "nvl72") == 0)
        return leaf > 0 ? leaf : 72;
    if (leaf == 0)
        leaf = llama ? RACK_GPUS : MIN(LEAF_GPUS, MAX(gpus / 2, 1));
    if (strcmp(topology, "leaf-spine") == 0)
        return leaf;
    if (!llama && strcmp(topology, "fat-tree") != 0)
        return 0;
    const int64_t leaves = (gpus + leaf - 1) / leaf;
    const int64_t own = llama ? POD_RACKS : CLAMP(leaves / 2, 1, POD_LEAVES);
    return leaf * (network->pod_leaves > 0 ? network->pod_leaves : own);
}

CostUplinks cost_uplinks(const Spec *spec)
{
    const char *topology = topology_of(&spec->cluster);
    const bool llama = strcmp(topology, "llama3-pods") == 0;
    const double ratio = spec->cluster.oversubscription;
    CostUplinks uplinks = {.ratio = llama && !(ratio > 1) ? LLAMA_RATIO : ratio};
    if (uplinks.ratio > 1) {
        uplinks.pod_gpus = pod_gpus(spec, topology, llama);
        uplinks.rails = strcmp(topology, "rail") == 0;
    }
    return uplinks;
}

double cost_uplink_crowding(double ratio, double crossing_frac)
{
    return MAX(1, ratio * crossing_frac);
}
