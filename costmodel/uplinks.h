/* costmodel/uplinks.h - oversubscribed uplinks without a fabric link by link: what of a group's traffic crosses them. */
#ifndef ORR_COSTMODEL_UPLINKS_H
#define ORR_COSTMODEL_UPLINKS_H

#include "spec/spec.h"

/* `pod_gpus` neighbours lie below uplinks that are oversubscribed: a pod of a fat tree, a leaf of a leaf-spine; 0: the topology
 * has no such tier, and all traffic between nodes shares the ratio. */
typedef struct CostUplinks {
    double ratio; /* the rate below over that of the uplinks; 1 or less: nothing is oversubscribed */
    int64_t pod_gpus;
    bool rails; /* a pod has a leaf for each GPU of a node: what goes to another rail climbs as well */
} CostUplinks;

/* Sizes that nobody gives are those of network/topologies.c.      Tested: unit/traffic/test_oversubscription.c */
CostUplinks cost_uplinks(const Spec *spec);

/* Times as long for bytes of which `crossing_frac` go over uplinks of that ratio. */
double cost_uplink_crowding(double ratio, double crossing_frac);

#endif
