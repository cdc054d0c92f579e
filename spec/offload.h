/* spec/offload.h - what leaves the GPU's memory, where to, and in which order it moves; and the host that it moves to.
 *
 * A scheme is a row of a table (spec/offload.c): tiers, order of the update, window, prefetch. A scenario names the row, overrides
 * what it likes, or gives tiers alone. Nothing below asks a scheme's name.
 */
#ifndef ORR_SPEC_OFFLOAD_H
#define ORR_SPEC_OFFLOAD_H

#include <glib.h>
#include <stdbool.h>

/* One node's memory levels below the GPUs', and the ways to them. 0: not known, or not there. */
typedef struct SpecHost {
    int sockets, cores;           /* of a node */
    double dram_bytes;            /* of a node */
    double dram_bytes_per_s;      /* of a socket, data sheet */
    double dram_stream_frac;      /* of it that streams of reads and writes reach */
    double core_bytes_per_s;      /* that one core keeps moving */
    double launch_frac;           /* speed at launches and Python, over that of the hosts of recipes */
    int gpus_per_pcie_root;       /* GPUs behind one port of the processor */
    double pcie_root_bytes_per_s; /* of the port, one way; 0: as one GPU's link */
    double pinned_frac,
        pageable_frac;  /* of the link that copies from page-locked and ordinary memory reach */
    double duplex_frac; /* of that, each way, when both ways are busy */
    double direct_frac; /* of the copies' rate that kernels reach which read the memory themselves */
    double nvme_bytes, nvme_read_bytes_per_s, nvme_write_bytes_per_s; /* of a node */
    double nvme_latency_s;                                            /* of one request */
} SpecHost;

typedef enum { SPEC_TIER_GPU, SPEC_TIER_HOST, SPEC_TIER_NVME, SPEC_TIER_COUNT } SpecTier;

typedef enum {
    SPEC_OFFLOAD_NONE,
    SPEC_OFFLOAD_ZERO_OFFLOAD,
    SPEC_OFFLOAD_ZERO_OFFLOAD_DPU,
    SPEC_OFFLOAD_TWIN_FLOW,
    SPEC_OFFLOAD_SUPEROFFLOAD,
    SPEC_OFFLOAD_STRONGHOLD,
    SPEC_OFFLOAD_MEMFERRY,
    SPEC_OFFLOAD_ZERO3_OFFLOAD,
    SPEC_OFFLOAD_ZERO_INFINITY,
    SPEC_OFFLOAD_SCHEME_COUNT
} SpecOffloadScheme;

/* When the host updates a piece of the weights. */
typedef enum {
    SPEC_UPDATE_BARRIER,   /* behind the last backward and the global norm, tile by tile */
    SPEC_UPDATE_LAYERWISE, /* as soon as the piece's gradient is there, before the norm is known */
    SPEC_UPDATE_DELAYED,   /* beside the next step, which still runs on the weights before */
    SPEC_UPDATE_FIRST,     /* as BARRIER, and forwards go on with the pieces that have arrived */
} SpecUpdateOrder;

typedef struct SpecOffloadPart {
    SpecTier tier;    /* SPEC_UNSET while loading */
    double fraction;  /* of its bytes; SPEC_UNSET while loading */
    unsigned modules; /* activations: bits of SpecRecomputeModule whose tensors leave; 0: all */
    bool evicts;      /* activations: down to resident_bytes of a micro-batch in a stage */
    double resident_bytes;
} SpecOffloadPart;

/* How a process asks the disks: requests of block_bytes, queue_depth at a time in each of `threads`. */
typedef struct SpecAio {
    double block_bytes; /* 0: as many bytes on their way as the disks' rate needs */
    int queue_depth, threads;
    bool
        overlap_events; /* a request that is done makes room for the next; else all of a queue are waited for */
    bool pipeline_read, pipeline_write; /* states of the next tile come, of the last go, beside an update */
} SpecAio;

#define SPEC_OFFLOAD_ALL 100000 /* until the model is known: all of its layers */

typedef struct SpecOffload {
    int activation_layers; /* of each model stage, the first ones; 0: none; or SPEC_AUTO */
    SpecOffloadScheme scheme;
    SpecOffloadPart optimizer, gradients, weights, activations;
    SpecUpdateOrder update;
    bool direct; /* kernels may read weights where they lie, in the host's memory; the best mix is chosen */
    bool fp32_transfer;  /* gradients and weights cross in fp32: the GPU casts */
    int delayed_update;  /* 0, 1; SPEC_UNSET: the scheme's */
    double ratio;        /* of the optimizer's parameters that the host updates; the GPU the rest */
    int window_layers;   /* layers of weights on the GPU at once; 0: the fewest that hide the copies */
    int prefetch_depth;  /* ZeRO-3: levels that run ahead: gather 1, copy 2, disks 3 */
    bool pinned;         /* the host's buffers are page-locked */
    bool overlap_update; /* behind the norm the host updates a piece once its own gradient has left */
    int threads;         /* of a process's optimizer on the host; 0: the cores of its part of the socket */
    double subgroup_parameters; /* parameters of one tile that goes to the disks and back */
    SpecAio aio;
} SpecOffload;

typedef struct SpecOffloadRow {
    const char *help; /* with its source */
    SpecTier optimizer, gradients, weights;
    SpecUpdateOrder update;
    bool windowed; /* whole layers of weights come and go: one GPU's or a tensor rank's own */
    bool direct, fp32_transfer;
    double ratio;
    int prefetch_depth;
    int least_zero; /* with several data-parallel ranks */
} SpecOffloadRow;

const SpecOffloadRow *spec_offload_row(SpecOffloadScheme scheme);

/* Weights, gradients or optimizer states leave the GPU; activations alone do not count. */
/* What recipes say of an x86 host, on this one. */
static inline double spec_host_s(const SpecHost *host, double seconds)
{
    return host->launch_frac > 0 ? seconds / host->launch_frac : seconds;
}

static inline bool spec_offloads_states(const SpecOffload *offload)
{
    return (int)offload->scheme > SPEC_OFFLOAD_NONE; /* "auto" is none yet */
}

/* Anything leaves the GPU, or may. */
static inline bool spec_offloads(const SpecOffload *offload)
{
    return (int)offload->scheme != SPEC_OFFLOAD_NONE || offload->activation_layers != 0;
}

/* What the scheme's row says of all that the scenario leaves open; `layers` of the model. */
void spec_offload_complete(SpecOffload *offload, int layers);

/* Whether the ranks of a data-parallel group may run it: `alone` of one, ZeRO stage `zero`. */
bool spec_offload_allows(const SpecOffload *offload, int zero, bool alone);

/* Another scheme, completed, with what a scenario says beside "auto"; of one that names a scheme its activations alone.
 * ratio below 0: the scheme's own or the scenario's. */
SpecOffload spec_offload_with(const SpecOffload *asked, SpecOffloadScheme scheme, double ratio, int layers);

struct Spec;
/* Whether the software has the scheme and the nodes its tiers. */
bool spec_offload_available(const struct Spec *spec);
/* Tiers that the node lacks, software that cannot, degrees that do not go together. One sentence; GError without a file. */
bool spec_offload_check(const struct Spec *spec, GError **error);

#endif
