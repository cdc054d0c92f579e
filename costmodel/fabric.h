/* costmodel/fabric.h - whom a group of ranks meets on the network: asked of whoever knows the fabric.
 *
 * Specs whose cluster.network.fabric is NULL are alone on their network. traffic/ has the one that simulates links.
 */
#ifndef ORR_COSTMODEL_FABRIC_H
#define ORR_COSTMODEL_FABRIC_H

#include "costmodel/placement.h"

/* How many times as long bytes take as on links of the group's own; 1: nobody is in the way. */
typedef struct CostCrowding {
    double up, out; /* scale-up links, NICs and what is behind them */
} CostCrowding;

struct CostFabric {
    /* Of `count` members `step` apart of the groups of `ranks`, while all of their kind run that belong to pipeline rank
     * `pipeline`; -1: the worst of all pipeline ranks. */
    CostCrowding (*group)(struct CostFabric *fabric, CostRanks ranks, int step, int count, int pipeline);
    /* Of messages from all ranks of one pipeline rank to those of another at once. */
    CostCrowding (*hop)(struct CostFabric *fabric, int from, int to);
};

#endif
