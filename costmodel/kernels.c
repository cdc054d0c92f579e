/* costmodel/kernels.c - what the kernel-time models share. */
#include "costmodel/kernels.h"

#include <math.h>

/* Where a dtype's products run, and whose block applies, when it has none of its own. */
static const SpecDtype nearest[SPEC_DTYPE_COUNT][4] = {
    [SPEC_FP32] = {SPEC_FP32, SPEC_TF32, SPEC_BF16, SPEC_FP16},
    [SPEC_TF32] = {SPEC_TF32, SPEC_FP32, SPEC_BF16, SPEC_FP16},
    [SPEC_FP16] = {SPEC_FP16, SPEC_BF16, SPEC_FP32, SPEC_TF32},
    [SPEC_BF16] = {SPEC_BF16, SPEC_FP16, SPEC_FP32, SPEC_TF32},
    [SPEC_FP8] = {SPEC_FP8, SPEC_BF16, SPEC_FP16, SPEC_FP32},
    [SPEC_FP4] = {SPEC_FP4, SPEC_FP8, SPEC_BF16, SPEC_FP16},
    [SPEC_INT8] = {SPEC_INT8, SPEC_FP8, SPEC_BF16, SPEC_FP16},
    [SPEC_INT4] = {SPEC_INT4, SPEC_INT8, SPEC_BF16, SPEC_FP16},
};

double cost_dense_peak_flops_per_s(const SpecAccelerator *accelerator, SpecDtype dtype)
{
    for (int i = 0; i < 4; i++)
        if (accelerator->peak_flops_per_s[nearest[dtype][i]] > 0)
            return accelerator->peak_flops_per_s[nearest[dtype][i]];
    return 0;
}

const SpecGemmShared *cost_gemm_shared(const SpecAccelerator *accelerator)
{
    const SpecGemmShared *shared = &accelerator->model.gemm_shared;
    return shared->memory_frac > 0 ? shared : &spec_gemm_shared_default;
}

const SpecGemmModel *cost_gemm_model(const SpecAccelerator *accelerator, SpecDtype dtype)
{
    for (int i = 0; i < 4; i++)
        if (accelerator->model.gemm[nearest[dtype][i]].peak_frac > 0)
            return &accelerator->model.gemm[nearest[dtype][i]];
    return &spec_gemm_model_default;
}

const SpecMemoryBoundModel *cost_memory_bound_model(const SpecAccelerator *accelerator)
{
    const SpecMemoryBoundModel *model = &accelerator->model.memory_bound;
    return model->elementwise_frac > 0 ? model : &spec_memory_bound_model_default;
}

double cost_power_demand(const SpecAccelerator *accelerator)
{
    const double fixed = cost_gemm_shared(accelerator)->static_frac;
    if (!(accelerator->power_cap_w > 0))
        return 1;
    return (1 - fixed) / (accelerator->power_cap_w / accelerator->power_w - fixed);
}

double cost_throttled_s(double t_s, double demand, double throttle_s)
{
    if (demand <= 1)
        return t_s;
    return t_s * (1 + t_s / (t_s + throttle_s) * (sqrt(demand) - 1));
}
