/* spec/calibration.h - what a file must hold that a cluster names as its calibration. */
#ifndef ORR_SPEC_CALIBRATION_H
#define ORR_SPEC_CALIBRATION_H

#include "base/json.h"

/* Fails with what `calibration` (read from `path`) holds that no profile does, or when it is of another GPU than the one
 * that `cluster` names. */
bool spec_calibration_check(const OrrJson *calibration, const char *path, const OrrJson *cluster,
                            GError **error);

#endif
