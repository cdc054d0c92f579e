/* costmodel/layer_list.c - see layer_list.h. */
#include "costmodel/layer_list.h"

#include <glib.h>
#include <math.h>

#include "costmodel/gemm.h"
#include "costmodel/memory_bound.h"

/* Of this tensor rank: a share of the outputs, so of the columns of the weights. */
static double product_s(const Spec *spec, const SpecLayer *layer, CostLayout layout)
{
    const double flops = layer->flops * spec->training.micro_batch / spec->parallel.tensor;
    if (!(flops > 0)) {
        return 0;
    }
    if (!(layer->parameters > 0)) { /* nothing says its shape: its FLOPs at the peak */
        return flops / spec->cluster.accelerator.peak_flops_per_s[spec_gemm_dtype(spec->training.precision)];
    }
    const double whole = layer->parameters / spec->parallel.tensor; /* of this rank */
    const double side = sqrt(layer->parameters), part = side / spec->parallel.tensor,
                 rows = fmax(1, flops / (2 * whole));
    const bool weight = layout == COST_LAYOUT_BACKWARD_WEIGHT, input = layout == COST_LAYOUT_BACKWARD_INPUT;
    return cost_gemm_s(&spec->cluster.accelerator,
                       &(CostGemm){.m = ceil(weight ? part : rows),
                                   .n = ceil(weight || input ? side : part),
                                   .k = ceil(weight  ? rows
                                             : input ? part
                                                     : side),
                                   .groups = 1,
                                   .dtype = spec_gemm_dtype(spec->training.precision),
                                   .layout = layout});
}

static double moves_s(const Spec *spec, double bytes, int kernels)
{
    const SpecAccelerator *accelerator = &spec->cluster.accelerator;
    return bytes > 0 && kernels > 0
               ? kernels * cost_memory_bound_s(accelerator, COST_MEMORY_ELEMENTWISE, bytes / kernels)
               : 0;
}

static double pass_s(const Spec *spec, const SpecLayer *layer, double product, double bytes)
{
    const int beside = layer->kernels - 1;
    return beside > 0 || !(product > 0) ? product + moves_s(spec, bytes, MAX(beside, 1))
                                        : fmax(product, moves_s(spec, bytes, 1));
}

CostListLayer cost_list_layer(const Spec *spec, const SpecLayer *layer)
{
    const double samples = (double)spec->training.micro_batch / spec->parallel.tensor;
    const double kept = layer->activation_bytes * samples, scale = spec->model.time_frac;
    if (layer->seconds > 0) {
        const double third = layer->seconds * samples * scale / 3;
        return (CostListLayer){third, third, third};
    }
    const double input = product_s(spec, layer, COST_LAYOUT_BACKWARD_INPUT);
    const double gap = spec->execution.framework.host.kernel_gap_s;
    const bool product = layer->flops > 0;
    const int beside = product ? layer->kernels - 1 : layer->kernels;
    return (CostListLayer){
        .forward_s = layer->kernels * gap +
                     scale * pass_s(spec, layer, product_s(spec, layer, COST_LAYOUT_FORWARD), 2 * kept),
        .backward_input_s = (beside + product) * gap + scale * pass_s(spec, layer, input, 3 * kept),
        .backward_weight_s = product * gap + scale * product_s(spec, layer, COST_LAYOUT_BACKWARD_WEIGHT)};
}

/* Layers without weights work on each channel by itself. */
bool cost_list_gathers(const Spec *spec, const SpecLayer *layer)
{
    const int tensor = spec->parallel.tensor;
    return tensor > 1 && layer->parameters > 0 && layer->groups % tensor != 0;
}

double cost_list_parameters(const SpecModel *model)
{
    const char *at = model->list.text;
    SpecLayer layer;
    double sum = 0;
    while (spec_layer_list_next(&at, &layer)) {
        sum += layer.parameters;
    }
    return sum;
}

double cost_list_flops(const SpecModel *model)
{
    const char *at = model->list.text;
    SpecLayer layer;
    double sum = 0;
    while (spec_layer_list_next(&at, &layer)) {
        sum += 3 * layer.flops;
    }
    return sum;
}
