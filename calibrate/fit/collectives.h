/* calibrate/fit/collectives.h - collective time model against measured rows: fit and check. No CUDA here.
 *
 * A table is a list of rows { gpu, nodes, gpus, op, bytes, time_us or busbw_gbps, source, nccl?, algo? } as
 * nccl-tests prints them: `bytes` is its "size" (the whole buffer for all-gather and reduce-scatter), busbw counts
 * 2 (n-1)/n for all-reduce and (n-1)/n for the others. An object with such a list under "collective_measurements" or
 * "collectives" will do as well.
 */
#ifndef ORR_CALIBRATE_COLLECTIVES_H
#define ORR_CALIBRATE_COLLECTIVES_H

#include "base/json.h"
#include "calibrate/fit/residual.h"
#include "spec/spec.h"

/* Parameters of the inside half for `accelerator` (a preset's name) from the rows of its own scale-up domain. The
 * graph and the across half stay as in the preset. `log` gets one line. Fails when there are no rows. */
bool cal_fit_collectives(const OrrJson *table, const char *accelerator, SpecCollectiveModel *ret_model,
                         GString *log, GError **error);

/* The same against a cluster at hand: for tools that have no preset. */
bool cal_fit_collectives_on(const OrrJson *table, const SpecCluster *cluster, SpecCollectiveModel *ret_model,
                            GString *log, GError **error);

/* How many rows of its own scale-up domain there are. */
bool cal_collectives_inside(const OrrJson *table, const SpecCluster *cluster, int *ret_count, GError **error);

typedef struct CalCollectiveErrors {
    int rows, skipped; /* skipped: measured where the host's launch rate was the limit */
    double median_frac, p90_frac, bias_frac;
} CalCollectiveErrors;

/* Prints rows, median, 90th percentile and bias of predicted/measured - 1 by op and by source. `accelerator` NULL:
 * every accelerator of the table that has a preset. `ret_errors` (of all rows printed) may be NULL. */
bool cal_check_collectives(const OrrJson *table, const char *accelerator, GString *log,
                           CalCollectiveErrors *ret_errors, GError **error);
bool cal_check_collectives_on(const OrrJson *table, const SpecCluster *cluster, GString *log,
                              CalCollectiveErrors *ret_errors, GError **error);

/* Rows that a fit uses beside what `cluster` predicts (CalResidual, appended). */
bool cal_collective_residuals(const OrrJson *table, const SpecCluster *cluster, GArray *residuals,
                              GError **error);

/* The model as a JSON object, keys in the field table's order, zeros left out. */
void cal_write_collectives(OrrJsonWriter *w, const char *key, const SpecCollectiveModel *model);

#endif
