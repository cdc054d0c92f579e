/* calibrate/measure/checks.h - kernels at small size against the CPU, before anything is timed. */
#ifndef ORR_CALIBRATE_CHECKS_H
#define ORR_CALIBRATE_CHECKS_H

#include "calibrate/measure/meter.cuh"

/* Every kernel of the points, a line each; returns how many are wrong. */
int meter_check_kernels(Meter *meter, const GArray *points);

/* Which of Transformer Engine's kernels work on GPU 0, each tried in a process of its own; fills `te_kernels` and
 * `transformer_engine` of the stamp, both empty where there is none. Says on standard error what is missing. */
void cal_try_library(CalStamp *stamp, bool quiet);

/* That process: `orrery-calibrate --try`. Returns its exit status. */
int cal_try_kernels(void);

#endif
