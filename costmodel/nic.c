/* costmodel/nic.c - see nic.h. */
#include "costmodel/nic.h"

#include <glib.h>
#include <math.h>
#include <string.h>

/* What NCCL's kernels reach over PCIe where they load and store pinned host memory instead of copying: 16 GB/s of the 31.5
 * of x16 in generation 4, where a card behind the GPU's own switch gets 24. Source: [NcclHostNic] */
#define HOST_STAGED_FRAC (16.0 / 31.5)

/* GPUs of a leaf where nobody says: half of a switch's 64 ports, as network/topologies.c. */
#define LEAF_GPUS 32

/* Flows that a hash puts on spines collide: 60 % of the line at scale where what balances them gets 95 % [SpectrumX];
 * all-reduce of Meta's gained up to 40 % by more flows [Gangidi2024]. */
#define HASHED_FRAC (0.60 / 0.95)

double cost_host_copy_bytes_per_s(const SpecCluster *cluster)
{
    return HOST_STAGED_FRAC * cluster->accelerator.host_link_bytes_per_s /
           MAX(cluster->host.gpus_per_pcie_root, 1);
}

/* Nodes behind one leaf: rails, the fabric that nobody named, have one GPU of each on a leaf, others all of them. */
static double leaf_nodes(const SpecCluster *cluster)
{
    const SpecNetwork *network = &cluster->network;
    const double gpus = network->leaf_gpus > 0 ? network->leaf_gpus : LEAF_GPUS;
    const bool rails = network->topology == NULL || strcmp(network->topology, "rail") == 0;
    return rails ? gpus : fmax(1, floor(gpus / MAX(cluster->scale_up_domain_gpus, 1)));
}

/* A group's rings cross spines by a hash; on a fabric that is simulated link by link flows meet there instead. */
static bool crosses_hashed(const SpecCluster *cluster, int nodes)
{
    const SpecNetwork *network = &cluster->network;
    return network->fabric == NULL && network->fidelity == SPEC_FIDELITY_ANALYTIC &&
           network->routing == SPEC_ROUTING_ECMP && nodes > leaf_nodes(cluster);
}

CostNic cost_nic(const SpecCluster *cluster, const SpecCollectiveModel *across, int sharers, double crowding,
                 int nodes)
{
    const SpecAccelerator *gpu = &cluster->accelerator;
    double nic = cluster->scale_out_bytes_per_s_per_gpu > 0 ? cluster->scale_out_bytes_per_s_per_gpu
                                                            : gpu->reference_scale_out_bytes_per_s_per_gpu;
    const double line = nic > 0 ? nic : gpu->host_link_bytes_per_s;
    double alone = line * across->nic_frac, crowd = crowding > 0 ? crowding : 1;
    if (cluster->network
            .host_copies) { /* crowds are of the line, and part of them wait for the host anyway */
        const double host = cost_host_copy_bytes_per_s(cluster);
        alone = MIN(alone, host);
        crowd = fmax(1, crowd / fmax(1, line / host));
    }
    alone /= MAX(sharers, 1) * crowd;
    const double grown = alone / (1 + across->net_congestion_frac * log2(MAX(nodes / 2.0, 1)));
    return (CostNic){alone, crosses_hashed(cluster, nodes) ? MIN(grown, HASHED_FRAC * alone) : grown};
}
