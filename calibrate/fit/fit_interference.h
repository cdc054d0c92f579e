/* calibrate/fit/fit_interference.h - what a product and a copy or collective beside it take from each other. No CUDA here. */
#ifndef ORR_CALIBRATE_FIT_INTERFERENCE_H
#define ORR_CALIBRATE_FIT_INTERFERENCE_H

#include "base/json.h"
#include "spec/spec.h"

#define CAL_MAX_INTERFERENCE 16

/* Rows of one kind, their median. */
typedef struct CalInterference {
    char op[48];       /* "all_reduce", "d2h" */
    const char *field; /* the parameter that it became ("ring_sm_frac"); NULL: the simulator has none */
    int rows;
    double compute_frac;  /* of its rate, what the product loses while the other runs */
    double slowdown_frac; /* of its time, what the other takes longer beside the product */
} CalInterference;

typedef struct CalInterferences {
    CalInterference kind[CAL_MAX_INTERFERENCE];
    int count;
} CalInterferences;

/* Rows { gpu, op: "gemm_beside_...", gpus, bytes, gemm_slowdown_frac, other_slowdown_frac } of
 * "interference_measurements". A product that takes x longer runs at 1/(1+x): the collective took x/(1+x), which is what
 * ring_sm_frac, nvls_sm_frac and alltoall_sm_frac mean (docs/MODEL-collectives.md). Which of them a collective of that
 * size speaks of is the cost model's choice of algorithm for `cluster`; `model` gets the medians. */
CalInterferences cal_fit_interference(const OrrJson *table, const SpecCluster *cluster,
                                      SpecCollectiveModel *model);

void cal_interference_print(const CalInterferences *found, GString *log);
/* Member "interference"; nothing when there is none. */
void cal_interference_write(const CalInterferences *found, OrrJsonWriter *w);

#endif
