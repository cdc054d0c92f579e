/* traffic/fabric.h - the fabric of a scenario's cluster, and the vertex of each rank on it. */
#ifndef ORR_TRAFFIC_FABRIC_H
#define ORR_TRAFFIC_FABRIC_H

#include "network/topology.h"
#include "spec/spec.h"

/* Rates and latencies of a cluster for a generator of fabrics, for `gpus` GPUs: links at their line rate; a step inside as
 * fitted, across as the cluster says. Returns the generator that suits the cluster; NULL: none is known. */
const char *traffic_cluster_fabric(const SpecCluster *cluster, int gpus, NetFabric *ret_fabric);

/* A job's place on a fabric. */
typedef struct TrafficPlace {
    int domain;                  /* GPUs of a scale-up domain that the job takes */
    int pitch;                   /* GPUs of a domain on the fabric */
    int first_node, node_stride; /* domains of the fabric that are the job's */
} TrafficPlace;

static inline int traffic_vertex(const TrafficPlace *place, int64_t rank)
{
    return (place->first_node + (int)(rank / place->domain) * place->node_stride) * place->pitch +
           (int)(rank % place->domain);
}

/* The fabric that cluster.network of `spec` describes, its failed links applied. Fails, with a sentence, on a topology that
 * does not suit the cluster, a link that is not there, domains beyond the machine, GPUs that cannot reach each other. */
bool traffic_topology(const Spec *spec, bool failures, NetTopology *ret_topology, GError **error);

/* Whether there is such a topology at all, and dims are given to one that has some: what can be said without building it,
 * where steps are analytic and nobody builds it. */
bool traffic_names_topology(const Spec *spec, GError **error);

/* Where the ranks of `spec` are on it; fails where that is beyond it. */
bool traffic_place(const Spec *spec, const NetTopology *topology, TrafficPlace *ret_place, GError **error);

#endif
