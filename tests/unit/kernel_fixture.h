/* tests/unit/kernel_fixture.h - accelerators for the tests of kernel times. */
#ifndef ORR_TEST_KERNEL_FIXTURE_H
#define ORR_TEST_KERNEL_FIXTURE_H

#include <glib.h>
#include <math.h>

#include "spec/load.h"

static inline SpecAccelerator fixture_preset(const char *name)
{
    SpecAccelerator accelerator = {0};
    GError *error = NULL;
    spec_load_accelerator(name, &accelerator, &error);
    g_assert_no_error(error);
    return accelerator;
}

/* 100 SMs of 1 TFLOP/s, 1 TB/s, no fitted block. */
static inline SpecAccelerator fixture_round(void)
{
    SpecAccelerator accelerator = {.memory_bytes_per_s = 1e12,
                                   .sm_count = 100,
                                   .l2_bytes = 32e6,
                                   .power_w = 400,
                                   .generation = *spec_generation("ampere")};
    accelerator.peak_flops_per_s[SPEC_BF16] = 1e14;
    return accelerator;
}

static inline void fixture_within(double got, double want, double tolerance_frac)
{
    if (!(fabs(got - want) <= tolerance_frac * fabs(want)))
        g_error("got %.9g, want %.9g within %.3g", got, want, tolerance_frac);
}

static const char *const fixture_presets[] = {"a100-sxm4-80gb", "h100-sxm5-80gb", "h200-sxm5-141gb",
                                              "b200-sxm-180gb", "gb200-nvl72",    "v100-sxm2-32gb",
                                              "mi300x-192gb",   "tpu-v4"};

#endif
