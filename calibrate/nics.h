/* calibrate/nics.h - the network cards of a node and their line rates, as Linux tells them. */
#ifndef ORR_CALIBRATE_NICS_H
#define ORR_CALIBRATE_NICS_H

#include <stdbool.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CAL_MAX_NICS 64

typedef struct CalNic {
    char name[32];
    bool infiniband;    /* or RoCE, EFA: what has a verbs device */
    double bytes_per_s; /* of all its active ports, one way */
} CalNic;

typedef struct CalNics {
    CalNic nic[CAL_MAX_NICS];
    int count;
} CalNics;

/* Active cards in alphabetical order: class/infiniband/NAME/ports/N/rate ("400 Gb/sec (4X NDR)") and
 * class/net/NAME/speed (Mb/s) of cards that are devices and up. `folder` is /sys. `chosen` are the verbs devices that the
 * user lets NCCL use, written as NCCL_IB_HCA is ("mlx5_0,mlx5_3", "=mlx5_1", "^mlx5_4"); NULL: all. */
void cal_nics_read(const char *folder, const char *chosen, CalNics *ret_nics);

/* What one of `ranks` GPUs of the node has of them. Verbs devices go before plain Ethernet, and of either only the
 * fastest count: slower ones are storage and management. NCCL gives each GPU whole cards where there are enough
 * (10 cards, 8 GPUs: one each); else GPUs share. 0: no card. */
double cal_nics_per_gpu(const CalNics *nics, int ranks);

#ifdef __cplusplus
}
#endif

#endif
