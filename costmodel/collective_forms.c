/* costmodel/collective_forms.c - closed forms of single algorithms on one class of link: textbook costs for tests,
 * named algorithms and comparison. Nothing here is fitted. [PatarasukYuan2009, Thakur2005]
 */
#include <glib.h>
#include <math.h>

#include "costmodel/collective.h"

static double log2_up(int ranks)
{
    return ceil(log2(ranks));
}

double cost_allreduce_ring_s(const CostLink *link, int ranks, double bytes)
{
    return 2 * cost_allgather_ring_s(link, ranks, bytes);
}

double cost_allgather_ring_s(const CostLink *link, int ranks, double bytes)
{
    g_assert(ranks >= 1);
    return (ranks - 1) * (link->latency_s + bytes / ranks / link->bytes_per_s);
}

double cost_allreduce_rabenseifner_s(const CostLink *link, int ranks, double bytes)
{
    g_assert(ranks >= 1);
    return 2 * log2_up(ranks) * link->latency_s + 2.0 * (ranks - 1) / ranks * bytes / link->bytes_per_s;
}

double cost_allreduce_tree_s(const CostLink *link, int ranks, double bytes)
{
    g_assert(ranks >= 1);
    return ranks == 1 ? 0 : 2 * log2(ranks) * link->latency_s + 2 * bytes / link->bytes_per_s;
}

double cost_allreduce_butterfly_s(const CostLink *link, int ranks, double bytes)
{
    g_assert(ranks >= 1);
    return log2(ranks) * (link->latency_s + bytes / link->bytes_per_s);
}

double cost_broadcast_binomial_s(const CostLink *link, int ranks, double bytes)
{
    g_assert(ranks >= 1);
    return log2_up(ranks) * (link->latency_s + bytes / link->bytes_per_s);
}

double cost_alltoall_pairwise_s(const CostLink *link, int ranks, double bytes)
{
    return cost_allgather_ring_s(link, ranks, bytes);
}

double cost_allreduce_hierarchical_s(const CostLink *inside, const CostLink *across, int gpus_per_node,
                                     int nodes, double bytes)
{
    g_assert(gpus_per_node >= 1 && nodes >= 1);
    return cost_allreduce_ring_s(inside, gpus_per_node, bytes) +
           cost_allreduce_ring_s(across, nodes, bytes / gpus_per_node);
}

double cost_allreduce_torus_s(const CostLink *links, const int *sizes, int dimensions, double bytes)
{
    double seconds = 0;
    for (int d = 0; d < dimensions; d++) {
        g_assert(sizes[d] >= 1);
        seconds += cost_allreduce_ring_s(&links[d], sizes[d], bytes);
        bytes /= sizes[d];
    }
    return seconds;
}

double cost_allreduce_mesh_s(const CostLink *links, const int *sizes, int dimensions, double bytes)
{
    double seconds = 0;
    for (int d = 0; d < dimensions; d++)
        seconds += cost_allreduce_ring_s(&links[d], sizes[d], bytes);
    return seconds;
}
