/* costmodel/offload.h - the host as one GPU's process finds it: rates of copies, of its optimizer and of the disks.
 *
 * Rates are those of one process with its resources to itself; what several do at once is the engine's to share.
 */
#ifndef ORR_COSTMODEL_OFFLOAD_H
#define ORR_COSTMODEL_OFFLOAD_H

#include "costmodel/activations.h"

/* What one process drives alone, and what those of its port, socket and node share. Bytes/s. */
typedef struct CostHost {
    double copy;                  /* between this GPU and the host's memory, one way */
    double ordinary;              /* the same from memory that is not page-locked */
    double optimizer;             /* that the host's optimizer streams through memory */
    double root;                  /* one port, one way, of `root_gpus` GPUs */
    double both_ways;             /* copies of one GPU in both directions together */
    double dram;                  /* memory of one socket, of `socket_gpus` GPUs' processes */
    double nvme_read, nvme_write; /* disks of a node, of `node_gpus` GPUs */
    double own_read, own_write;   /* what the requests of one process draw from them, alone */
    int root_gpus, socket_gpus, node_gpus;
} CostHost;

/*   copy       pinned_frac min(link, root)
 *   optimizer  min(dram_stream_frac x dram of a socket, core_bytes_per_s x cores of a socket / its processes, or its threads)
 *   both_ways  2 duplex_frac copy
 *   own_read   min(disks, I/latency) for I = threads x queue_depth x block bytes on their way; I/(latency + I/disks)
 *              where a queue is waited for as a whole (Little's law; offload.aio)
 *
 * A process runs on one socket, on its part of the cores, and its memory lies there; `offload.pinned` false takes
 * pageable_frac. */
CostHost cost_host(const Spec *spec);

/* Bytes that the optimizer streams through the host's memory a parameter, 28 for Adam: master and moments read and written
 * (24), gradient read and weight written in 16 bits, or the gradient alone in 32 [Ren2021] table 4. Software that casts
 * weights apart reads and writes those (6). One that clips and scales gradients there moves them before that (host_scaling_bytes).
 * Source: [DeepSpeedOffload] */
double cost_host_optimizer_bytes_per_parameter(const Spec *spec);
/* Seconds in which the host updates, or scales, `parameters` of one process that has the memory of its socket to itself. */
double cost_host_optimizer_s(const Spec *spec, double parameters);
double cost_host_scaling_s(const Spec *spec, double parameters);

/* Whole gradients leave, all of them are scaled, then whole weights come back: ZeRO-Offload, delayed or not, as ZeRO-1 and 2 have it. What a
 * recipe says of that (host_gradients, host_gradient_check_bytes, host_weight_bytes) holds there. */
bool cost_offload_is_staged(const Spec *spec);
/* The host casts updated weights into ordinary memory: the software does, and the scheme does not send them in fp32. */
bool cost_host_casts_weights(const Spec *spec);
/* Bytes a parameter of gradients on their way out (and in again: a round trip before), of weights on their way back, and
 * of master copy and moments. */
double cost_offload_gradient_bytes(const Spec *spec);
double cost_offload_gradient_return_bytes(const Spec *spec);
double cost_offload_weight_bytes(const Spec *spec);
double cost_offload_shard_bytes(const Spec *spec); /* of weights fetched before a gather */
double cost_offload_state_bytes(const Spec *spec);

/* Layers' inputs that wait for recomputation are copied from and to ordinary memory, on the stream of the passes.
 * Source: [DeepSpeedCheckpoints] */
bool cost_checkpoints_wait(const Spec *spec);
/* Bytes that a layer's forward keeps for the backward of `modules` (bits of SpecRecomputeModule; 0: of all), less what
 * recomputation makes again. */
double cost_offload_module_bytes(const CostShape *shape, int layer, int layer_in_stage, unsigned modules);
/* The same of every tensor by itself; room for COST_MAX_TENSORS. Returns their number. */
int cost_offload_tensors(const CostShape *shape, int layer, int layer_in_stage, double *ret_bytes);

#endif
