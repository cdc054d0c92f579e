/* spec/kernel_model.h - fitted parameters of kernels and collectives: the "model" block of accelerator
 * profiles and the "collectives" block of clusters and calibrations.
 *
 * These structs are only numbers; costmodel/ says what they mean as time, calibrate/ fits them.
 */
#ifndef ORR_SPEC_KERNEL_MODEL_H
#define ORR_SPEC_KERNEL_MODEL_H

#include "spec/names.h"

/* One dtype's GEMM model. Filled in by the owner of costmodel/gemm.c. */
typedef struct SpecGemmModel {
    double fitted; /* 0: block absent, the generation's default applies */
} SpecGemmModel;

typedef struct SpecAttentionModel {
    double fitted;
} SpecAttentionModel;

typedef struct SpecMemoryBoundModel {
    double fitted;
} SpecMemoryBoundModel;

typedef struct SpecKernelModel {
    SpecGemmModel gemm[SPEC_DTYPE_COUNT];
    SpecAttentionModel attention[SPEC_ATTENTION_COUNT];
    SpecMemoryBoundModel memory_bound;
} SpecKernelModel;

typedef struct SpecCollectiveModel {
    double fitted;
} SpecCollectiveModel;

#endif
