/* calibrate/fit/fit.h - measured tables to fitted "model" blocks of accelerators: GEMM, attention, memory-bound
 * kernels. No CUDA here. docs/MODEL-kernels.md says what the parameters mean. Deterministic.
 */
#ifndef ORR_CALIBRATE_FIT_H
#define ORR_CALIBRATE_FIT_H

#include "base/error.h"
#include "calibrate/fit/residual.h"

/* Fits `accelerator` (a preset's name) to its rows of the table (calibrate/fit/table.h) and appends a profile for
 * scenarios/calibrations: { schema, name, accelerator, source, model, collectives, network, ceilings, interference, fits }.
 * `cluster` (may be NULL) is the preset whose NICs the rows over nodes used (calibrate/fit/fit_network.h). `log` gets a line
 * a block; `residuals` (may be NULL) every row beside its prediction. */
bool cal_fit_table(const char *path, const char *accelerator, const char *cluster, GArray *residuals,
                   GString *out_json, GString *log, GError **error);

/* Fits or derives every accelerator of `folder` (scenarios/accelerators) and rewrites the "gemm", "attention"
 * and "memory_bound" members of its "model", nothing else. `only` NULL: all; else one and its donors are
 * fitted and that one is written. */
bool cal_fit_presets(const char *path, const char *folder, const char *only, GString *log, GError **error);

/* k-fold cross-validation: each row predicted by a fit that has not seen it. Appends a table of errors. */
bool cal_cross_validate(const char *path, const char *accelerator, int folds, GString *out, GError **error);

#endif
