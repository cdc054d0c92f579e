/* tests/bench/bench_costs.c - prices that a search asks for a hundred thousand times, beside the goals. */
#include "costmodel/flops.h"
#include "costmodel/gemm.h"
#include "spec/load.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int row(const char *name, double seconds, double goal_s)
{
    printf("%-34s %10.2f us %10.2f us  %s\n", name, seconds * 1e6, goal_s * 1e6,
           seconds <= goal_s ? "met" : "MISSED");
    return seconds <= goal_s ? 0 : 1;
}

static double since_s(gint64 begun_us)
{
    return (double)(g_get_monotonic_time() - begun_us) * 1e-6;
}

int main(void)
{
    enum { GEMMS = 20000 };
    const char *folder = g_getenv("ORRERY_SCENARIOS");
    SpecAccelerator b200 = {0};
    g_autofree Spec *spec = g_new0(Spec, 1);
    g_autofree char *path =
        g_strconcat(folder != NULL ? folder : "scenarios", "/examples/gpt3-175b.json", NULL);
    if (!spec_load_accelerator("b200-sxm-180gb", &b200, NULL) ||
        !spec_load_file(path, NULL, false, spec, NULL, NULL)) {
        fprintf(stderr, "bench_costs: %s or the preset b200-sxm-180gb cannot be read\n", path);
        return 2;
    }
    double sum = 0;
    gint64 begun_us = g_get_monotonic_time();
    for (int i = 0; i < GEMMS; i++) {
        const CostGemm gemm = {.m = 1000 + i, .n = 4096, .k = 8192, .groups = 1, .dtype = SPEC_BF16};
        sum += cost_gemm_s(&b200, &gemm);
    }
    int missed = row("a GEMM of its own", since_s(begun_us) / GEMMS, 5e-6);
    /* Layers of one kind have one graph: a million take no longer than a few. */
    spec->model.layers = 1000000;
    begun_us = g_get_monotonic_time();
    sum += cost_flops(spec, NULL, 0).model;
    missed |= row("FLOPs of a million layers", since_s(begun_us), 0.1);
    return sum > 0 ? missed : 2;
}
