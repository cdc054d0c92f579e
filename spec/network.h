/* spec/network.h - the fabric under a step: its links, who takes which, and what else is on them. */
#ifndef ORR_SPEC_NETWORK_H
#define ORR_SPEC_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "spec/names.h"

#define SPEC_VERTEX_SIZE      24
#define SPEC_MAX_FAILED_LINKS 32
#define SPEC_MAX_TRAFFIC      8
#define SPEC_MAX_JOBS         8
#define SPEC_MAX_DIMS         8

typedef struct SpecFailedLink {
    char from[SPEC_VERTEX_SIZE], to[SPEC_VERTEX_SIZE];
    double frac; /* of its rate that is left; 0: it failed */
} SpecFailedLink;

/* Every GPU of the job sends as many bytes out of its node, beginning with the step. */
typedef struct SpecTraffic {
    char name[SPEC_VERTEX_SIZE];
    SpecTrafficLinks links;
    double bytes_per_gpu;
    double bytes_per_s_per_gpu; /* at most; 0: the NIC's rate, or the front end's part */
    char to[SPEC_VERTEX_SIZE];  /* fabric: the vertex where storage is; "": behind each GPU's own leaf */
} SpecTraffic;

struct CostFabric;

typedef struct SpecNetwork {
    SpecFidelity fidelity;
    const char
        *topology; /* a generator's name, or nodes and links as JSON text, interned; NULL: the cluster's */
    int dims[SPEC_MAX_DIMS];
    int dim_count;
    int leaf_gpus, pod_leaves; /* 0: the generator's own */
    SpecRouting routing;
    int seed;
    SpecNetworkAlgorithm algorithm;
    bool lossless;
    bool host_copies; /* no GPUDirect */
    SpecFailedLink failed_links[SPEC_MAX_FAILED_LINKS];
    int failed_link_count;
    int machine_nodes, first_node,
        node_stride; /* nodes of the fabric (0: the job's), and which of them are the job's */
    SpecTraffic traffic[SPEC_MAX_TRAFFIC];
    int traffic_count;
    double front_end_bytes_per_s;    /* of a node */
    const char *jobs[SPEC_MAX_JOBS]; /* other scenarios on the same fabric, JSON text, interned */
    int job_count;
    /* No field: who says how much a group of this Spec is slowed on the fabric, and of which pipeline rank it is (-1:
     * the worst). NULL: alone on the network. costmodel/collective.h. */
    struct CostFabric *fabric;
    int fabric_rank;
} SpecNetwork;

#endif
