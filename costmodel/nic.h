/* costmodel/nic.h - rate of a GPU's network card, as a group of GPUs finds it. */
#ifndef ORR_COSTMODEL_NIC_H
#define ORR_COSTMODEL_NIC_H

#include "costmodel/collective.h"

/* Bytes a second of one GPU's share of its NIC: plateau and sharing in both, what grows with the group's nodes in the
 * second alone. */
typedef struct CostNic {
    double alone_bytes_per_s, bytes_per_s;
} CostNic;

/* Of a group that spans `nodes` domains, `sharers` of which use one NIC and whose bytes take `crowding` (0: 1) times as long,
 * by the fitted half `across` of the collectives' parameters.
 * Source: [SpectrumX], [Gangidi2024] for Ethernet whose switches hash      Tested: unit/costmodel/test_collective.c */
CostNic cost_nic(const SpecCluster *cluster, const SpecCollectiveModel *across, int sharers, double crowding,
                 int nodes);

/* Without GPUDirect: what one GPU's messages reach through pinned host memory, bytes a second, shared by the GPUs of a PCIe
 * root. */
double cost_host_copy_bytes_per_s(const SpecCluster *cluster);

#endif
