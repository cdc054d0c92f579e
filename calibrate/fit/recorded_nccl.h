/* calibrate/fit/recorded_nccl.h - output of nccl-tests as rows of collectives. Internal to calibrate/.
 *
 * The times out of place are taken, as every published table does. Which collective ran is read off the program's name,
 * which newer versions print; for older ones the file's name must hold it ("all_reduce_perf", "alltoall").
 * Source: [NcclTests]
 */
#ifndef ORR_CALIBRATE_RECORDED_NCCL_H
#define ORR_CALIBRATE_RECORDED_NCCL_H

#include "base/json.h"

bool cal_nccl_is_text(const char *text);
bool cal_nccl_is_json(const OrrJson *root);

/* Appends the member "collective_measurements" to the open object. */
bool cal_nccl_text(const char *text, const char *name, OrrJsonWriter *w, GError **error);
/* Writes the whole object; `text` is what `doc` was read from. */
bool cal_nccl_json(const OrrJsonDoc *doc, const char *text, OrrJsonWriter *w, GError **error);

#endif
