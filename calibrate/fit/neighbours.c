/* calibrate/fit/neighbours.c - inverse-distance interpolation of products. Source: [Shepard1968] */
#include "calibrate/fit/neighbours.h"

#include <math.h>
#include <string.h>

static double flops_of(const CalRow *row)
{
    return 2 * row->gemm.m * row->gemm.n * row->gemm.k * row->gemm.groups;
}

static bool comparable(const CalRow *a, const CalRow *b)
{
    return b->kind == CAL_GEMM && a->gemm.dtype == b->gemm.dtype && a->gemm.layout == b->gemm.layout &&
           a->gemm.grouped == b->gemm.grouped && a->gemm.accumulate_fp32 == b->gemm.accumulate_fp32 &&
           strcmp(a->source, b->source) == 0 && strcmp(a->accelerator, b->accelerator) == 0;
}

static double distance(const CalRow *a, const CalRow *b)
{
    const double d[4] = {log(a->gemm.m / b->gemm.m), log(a->gemm.n / b->gemm.n), log(a->gemm.k / b->gemm.k),
                         log(a->gemm.groups / b->gemm.groups)};
    return sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3]);
}

double cal_neighbours_s(const GArray *rows, guint index)
{
    const CalRow *row = &g_array_index(rows, CalRow, index);
    const CalRow *near[CAL_NEIGHBOURS] = {NULL};
    double far[CAL_NEIGHBOURS];
    if (row->kind != CAL_GEMM)
        return 0;
    for (guint i = 0; i < rows->len; i++) {
        const CalRow *other = &g_array_index(rows, CalRow, i);
        const double d = i != index && comparable(row, other) ? distance(row, other) : INFINITY;
        int at = CAL_NEIGHBOURS;
        for (; at > 0 && isfinite(d) && (near[at - 1] == NULL || d < far[at - 1]); at--)
            if (at < CAL_NEIGHBOURS) {
                near[at] = near[at - 1];
                far[at] = far[at - 1];
            }
        if (at < CAL_NEIGHBOURS) {
            near[at] = other;
            far[at] = d;
        }
    }
    double sum = 0, weights = 0;
    for (int i = 0; i < CAL_NEIGHBOURS; i++) {
        if (near[i] == NULL)
            return 0;
        const double weight = 1 / (far[i] * far[i] + 1e-6);
        sum += weight * log(flops_of(near[i]) / near[i]->measured_s);
        weights += weight;
    }
    return flops_of(row) / exp(sum / weights);
}
