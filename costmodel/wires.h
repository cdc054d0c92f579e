/* costmodel/wires.h - what the wiring of scale-up links leaves of a GPU's rate, where no switch joins all of them. */
#ifndef ORR_COSTMODEL_WIRES_H
#define ORR_COSTMODEL_WIRES_H

#include "spec/spec.h"

/* Share of a GPU's scale-up rate that rings over `ranks` GPUs of one domain can use. */
double cost_wires_share(const SpecCluster *cluster, const SpecCollectiveModel *model, double ranks);

/* Seconds that the narrowest cut of `ranks` GPUs needs when each sends a byte to each other, at a scale-up rate of 1 byte
 * a second; 0 where no cut is narrower than the GPUs' own links. */
double cost_wires_cut_s(const SpecCluster *cluster, double ranks);

#endif
