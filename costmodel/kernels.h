/* costmodel/kernels.h - what the kernel-time models share: dense peaks and the power limit. Not for other rooms. */
#ifndef ORR_COSTMODEL_KERNELS_H
#define ORR_COSTMODEL_KERNELS_H

#include "spec/spec.h"

#define COST_MEMORY_SM_FRAC 0.5 /* share of the SMs that saturates DRAM */

/* The dense peak of `dtype`, or of the type that its products run in where it has no path of its own. */
double cost_dense_peak_flops_per_s(const SpecAccelerator *accelerator, SpecDtype dtype);

/* The fitted block, else the nearest dtype's, else the default. */
const SpecGemmShared *cost_gemm_shared(const SpecAccelerator *accelerator);
const SpecGemmModel *cost_gemm_model(const SpecAccelerator *accelerator, SpecDtype dtype);
const SpecMemoryBoundModel *cost_memory_bound_model(const SpecAccelerator *accelerator);

/* What a power cap leaves of the clock-dependent power, as a factor of what kernels ask of it; 1 without a cap. The static
 * share s of the limit L does not depend on the clock: (1 - s) / (cap / L - s). */
double cost_power_demand(const SpecAccelerator *accelerator);

/* Time of a kernel under the power limit. At the boost clock it would take `t_s` and draw `demand` times what
 * the limit leaves to it; power ~ clock^2 near the limit, and kernels much shorter than throttle_s end before
 * the limiter acts.
 *   t' = t (1 + w (sqrt(max(1, demand)) - 1)),  w = t / (t + throttle_s)
 * Source: fitted to [aiconfigurator]; the exponent is that of P ~ f V^2 with V ~ sqrt(f).  Tested:
 * unit/costmodel/test_gemm.c */
double cost_throttled_s(double t_s, double demand, double throttle_s);

#endif
