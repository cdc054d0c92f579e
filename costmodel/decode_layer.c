/* costmodel/decode_layer.c - see decode_layer.h. Tested: unit/costmodel/test_generate.c */
#include "costmodel/decode_layer.h"

#include <math.h>

#include "costmodel/decode_memory.h"

void cost_decode_gap(CostDecodeLayer *layer, int kernels)
{
    layer->time.kernels += kernels;
    layer->time.part_s[COST_DECODE_HOST] +=
        kernels * layer->shape->spec->execution.framework.host.kernel_gap_s;
}

/* Matrices that are stored narrower come in fewer bytes; they are widened on the way, and multiplied as fast as wide ones. */
void cost_decode_product(CostDecodeLayer *layer, double m, double n, double k, double groups, SpecDtype dtype)
{
    const SpecAccelerator *accelerator = &layer->shape->accelerator;
    const CostGemm gemm = {.m = m, .n = n, .k = k, .groups = groups, .dtype = dtype};
    const double whole_s = cost_gemm_s(accelerator, &gemm), peak = accelerator->peak_flops_per_s[dtype],
                 fewer =
                     dtype == layer->shape->linear_dtype
                         ? n * k * groups *
                               (spec_dtype_bytes(dtype) - cost_decode_stored_bytes(layer->shape->spec, dtype))
                         : 0;
    const double saved_s = fewer / accelerator->memory_bytes_per_s;
    layer->time.part_s[COST_DECODE_PRODUCTS] +=
        fmax(whole_s - saved_s, fmin(whole_s, peak > 0 ? 2 * m * n * k * groups / peak : 0));
    cost_decode_gap(layer, 1);
}

void cost_decode_moves(CostDecodeLayer *layer, CostMemoryKernel kernel, double bytes)
{
    layer->time.part_s[COST_DECODE_SMALL] += cost_memory_bound_s(&layer->shape->accelerator, kernel, bytes);
    cost_decode_gap(layer, 1);
}

void cost_decode_mlp(CostDecodeLayer *layer, double rows, double wide, double groups)
{
    const CostShape *shape = layer->shape;
    const double h = shape->spec->model.hidden, in = shape->spec->model.gated_mlp ? 2 * wide : wide;
    cost_decode_product(layer, rows, in, h, groups, shape->linear_dtype);
    cost_decode_moves(layer, COST_MEMORY_ELEMENTWISE, shape->element_bytes * rows * groups * (in + wide));
    cost_decode_product(layer, rows, h, wide, groups, shape->linear_dtype);
}
