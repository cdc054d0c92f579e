/* calibrate/fit/fit_network.h - the across half of the collective model from rows that cross nodes. */
#ifndef ORR_CALIBRATE_FIT_NETWORK_H
#define ORR_CALIBRATE_FIT_NETWORK_H

#include "base/json.h"
#include "calibrate/fit/residual.h"
#include "spec/spec.h"

typedef struct CalNetwork {
    int rows;                        /* that were fitted to; 0: none */
    int nodes;                       /* most that a row spans */
    double nic_bytes_per_s;          /* of one GPU, line rate */
    char from[192];                  /* where that was taken from */
    double step_s;                   /* one small message between nodes, NCCL's part included */
    double cluster_step_s;           /* scale_out_latency_s of the cluster that was fitted against */
    SpecCollectiveModel collectives; /* the across half */
    CalErrors errors;
} CalNetwork;

/* Fits to the rows of "collective_measurements" of `accelerator`, whose inside half stays. The NICs' rate is that of
 * `cluster` (a preset's name), else what the sweep's stamp holds ("nics"). Without either: an error where `required` or a
 * sweep says which machine it is of, else a line in `log` and no fit. `residuals` (may be NULL) gets every row. */
bool cal_fit_network(const OrrJson *table, const SpecAccelerator *accelerator, const char *cluster,
                     bool required, CalNetwork *ret_network, GArray *residuals, GString *log, GError **error);

void cal_network_print(const CalNetwork *network, GString *log);
/* Members "collectives" (it goes before the cluster preset's own) and "network"; nothing when there were no rows. */
void cal_network_write(const CalNetwork *network, OrrJsonWriter *w);

#endif
