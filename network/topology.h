/* network/topology.h - fabrics as vertices and links: GPUs, switches, and what each link carries one way.
 *
 * GPUs are the vertices 0 .. gpus - 1. A cable is two links. Rates are bytes/s, whole numbers, so that sums of them are
 * exact. Generators are rows of net_topologies(); a list of nodes and links in JSON makes one too.
 */
#ifndef ORR_NETWORK_TOPOLOGY_H
#define ORR_NETWORK_TOPOLOGY_H

#include "base/json.h"
#include "network/algorithm.h"

typedef struct NetVertex {
    char name[24];
    bool gpu;
    bool relays; /* messages of others may pass */
} NetVertex;

typedef struct NetLink {
    int32_t from, to;
    int64_t bytes_per_s; /* 0: failed */
    int64_t latency_ps;
    int32_t weight; /* of shortest paths: 1 inside a node, NET_WEIGHT_ACROSS between nodes */
} NetLink;

#define NET_WEIGHT_ACROSS 4

/* Of a link: sums over all flows of one stay within 63 bits. */
#define NET_MAX_BYTES_PER_S ((int64_t)4000000000000)

typedef struct NetTopology {
    char name[64];
    NetVertex *vertices;
    int vertex_count, vertex_capacity;
    NetLink *links;
    int link_count, link_capacity;
    int gpus, gpus_per_node;
    int dims[NET_MAX_DIMS]; /* of a grid; else GPUs a node and nodes */
    int dim_count;
    int32_t *out_of, *out_links; /* links of vertex v: out_links[out_of[v]] .. [out_of[v + 1]] */
    int32_t *in_of, *in_links;
} NetTopology;

/* What a generator is asked for. 0 or an empty list: its own default. */
typedef struct NetFabric {
    int gpus, gpus_per_node;
    int64_t up_bytes_per_s;  /* scale-up links of one GPU together, one way */
    int64_t out_bytes_per_s; /* NIC of one GPU, one way */
    int64_t
        host_bytes_per_s; /* without GPUDirect: one GPU's copies to or from host memory, one way; 0: with it */
    int64_t up_latency_ps, out_latency_ps;
    double oversubscription; /* of the top tier; 1: none */
    int leaf_gpus, pod_leaves;
    int dims[NET_MAX_DIMS];
    int dim_count;
    enum { NET_INSIDE_SWITCH, NET_INSIDE_PAIRS, NET_INSIDE_PCIE } inside; /* what joins the GPUs of a node */
} NetFabric;

typedef struct NetTopologyRow {
    const char *name, *help, *bisection; /* one way, for n GPUs of rate B (NIC rate across nodes) */
    bool (*build)(const NetFabric *fabric, NetTopology *topology, GError **error);
    bool grid; /* has sizes: NetFabric.dims */
} NetTopologyRow;

const NetTopologyRow *net_topologies(int *ret_count);

/* Builds row `name`. Free with net_topology_clear(), which also takes a zeroed struct. */
bool net_topology_build(const char *name, const NetFabric *fabric, NetTopology *ret_topology, GError **error);
void net_topology_clear(NetTopology *topology);

/* { "name", "nodes": [ "gpu0", { "name": "sw0", "switch": true } ... ], "links": [ { "from", "to", "bytes_per_s",
 *   "latency_s", "count", "one_way" } ... ], "gpus_per_node" }: GPUs are the nodes that are no switches, in order. `name` is for messages. */
bool net_topology_read(const OrrJson *root, const char *name, NetTopology *ret_topology, GError **error);

/* Every link between the vertices `from` and `to` (names), both ways, runs at `frac` of its rate; 0: it failed. */
bool net_topology_degrade(NetTopology *topology, const char *from, const char *to, double frac,
                          GError **error);

/* Bytes/s that the GPUs of the lower half can send to those of the upper half, all together: maximum flow. */
double net_bisection_bytes_per_s(const NetTopology *topology);

/* --- for generators --- */
int net_add_vertex(NetTopology *topology, bool gpu, bool relays, const char *format, ...) G_GNUC_PRINTF(4, 5);
void net_add_link(NetTopology *topology, int from, int to, double bytes_per_s, int64_t latency_ps,
                  int weight);
/* Both ways. */
void net_add_cable(NetTopology *topology, int a, int b, double bytes_per_s, int64_t latency_ps, int weight);
void net_topology_index(NetTopology *topology);

#endif
