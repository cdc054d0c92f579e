/* costmodel/offload.h - the host as one GPU's process finds it: rates of copies, of its optimizer and of its share of the disks.
 *
 * Rates are those of one process with its resources to itself; what all processes of a node do at once is the engine's to
 * share.
 */
#ifndef ORR_COSTMODEL_OFFLOAD_H
#define ORR_COSTMODEL_OFFLOAD_H

#include "spec/spec.h"

typedef struct CostHost {
    double copy_bytes_per_s;       /* between this GPU and the host's memory, one way */
    double duplex_frac;            /* of it each way when both are busy */
    double optimizer_bytes_per_s;  /* that the optimizer streams */
    double nvme_read_bytes_per_s, nvme_write_bytes_per_s;
} CostHost;

/* What a process gets when all `gpus_per_node` of them do the same at once.
 *
 *   copy       pinned_frac min(link, root / gpus_per_pcie_root)
 *   optimizer  min(dram_stream_frac x dram of a socket, core_bytes_per_s x cores of a socket) / processes of the socket
 *   disks      rates of the node / gpus_per_node
 *
 * A process runs on one socket and its memory lies there; `offload.pinned` false takes pageable_frac. Ignored: what copies
 * take of the memory that the optimizer streams through (the engine shares that where both run at once). */
CostHost cost_host(const Spec *spec);

/* Bytes that the optimizer streams through the host's memory a parameter, 28 for Adam: master and moments read and written
 * (24), gradient read and weight written in 16 bits, or the gradient alone in 32.   Source: [Ren2021] table 4 */
double cost_host_optimizer_bytes_per_parameter(const Spec *spec);
/* Seconds in which the host updates `parameters` of one process. */
double cost_host_optimizer_s(const Spec *spec, double parameters);

/* Bytes a parameter of gradients on their way out, of weights on their way back, and of master copy and moments. */
double cost_offload_gradient_bytes(const Spec *spec);
double cost_offload_weight_bytes(const Spec *spec);
double cost_offload_state_bytes(const Spec *spec);


#endif
