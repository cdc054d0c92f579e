/* calibrate/fit/ceilings.h - the best that was measured, as shares of the data sheet: no training step does better. */
#ifndef ORR_CALIBRATE_CEILINGS_H
#define ORR_CALIBRATE_CEILINGS_H

#include "calibrate/fit/table.h"

typedef struct CalCeilings {            /* 0: no row */
    double gemm_frac[SPEC_DTYPE_COUNT]; /* best product, of its dtype's dense peak */
    double attention_frac;   /* best attention kernel, of the bf16 peak; a masked half not counted */
    double layer_frac;       /* best whole layer, forward and backward: what MFU could be at most */
    double layer_parts_frac; /* sum of that layer's parts timed alone, over the whole; 1: nothing between */
    double stream_frac;      /* best copy or triad, of the memory bandwidth */
} CalCeilings;

CalCeilings cal_ceilings(const OrrJson *table, const GArray *rows, const SpecAccelerator *accelerator);
void cal_ceilings_print(const CalCeilings *ceilings, GString *log);
/* Member "ceilings"; nothing when there is none. */
void cal_ceilings_write(const CalCeilings *ceilings, OrrJsonWriter *w);

#endif
