/* calibrate/fit/collective_rows.h - measured collectives of one accelerator, ready to compare. Internal to calibrate/. */
#ifndef ORR_CALIBRATE_COLLECTIVE_ROWS_H
#define ORR_CALIBRATE_COLLECTIVE_ROWS_H

#include "base/json.h"
#include "costmodel/nccl.h"

#define CAL_SOURCE_SIZE 48

typedef struct CalCollectiveRow {
    CostCollective collective;
    double seconds;
    bool across;      /* crosses scale-up domains */
    bool one_process; /* "ranks_per_process" above 1: one thread starts all GPUs' calls */
    bool named;       /* "algo" says by which algorithm it was measured */
    CostNcclAlgorithm algorithm;
    bool coarse;                  /* only a rate is given, and its last digit stands for over 2 % of it */
    bool launch_bound;            /* the host's launch rate was the limit: see cal_collective_rows */
    char source[CAL_SOURCE_SIZE]; /* with the NCCL version: "aic-nccl 2.29.2" */
} CalCollectiveRow;

/* Rows of cluster->accelerator.name. A row counts as launch-bound when the fastest row of its source and op takes
 * over 1.5 times the fastest of any source, and it takes less than 2.5 times its source's fastest: such a series was
 * timed without CUDA graphs or with an eager framework around it, and shows the host. So does a series by one process for all
 * GPUs, whose thread starts their calls one after another: it needs no other source to be known. */
bool cal_collective_rows(const OrrJson *table, const SpecCluster *cluster, GArray **ret_rows, GError **error);

/* One reference node of an accelerator. Pascal and Volta stand for DGX-1, CDNA for a mesh of direct links, no
 * scale-up link for PCIe, the rest for switches. */
void cal_reference_cluster(const SpecAccelerator *accelerator, SpecCluster *ret_cluster);

/* Predicted over measured, minus 1. */
double cal_collective_error(const SpecCluster *cluster, const CalCollectiveRow *row);

/* `q`-quantile of |values|, q in 0..1; 0 when empty. */
double cal_abs_quantile(const double *values, int count, double q);

#endif
