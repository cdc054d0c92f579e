/* step/list.c - the one stage of a network that is a list of layers. */
#include <math.h>

#include "costmodel/layer_list.h"
#include "costmodel/spread.h"
#include "step/fill.h"

/* Weights and a bias or the two vectors of a norm. */
#define TENSORS 2

/* Over the mean: the slowest chip, with the samples that take longest where they differ. Both wait for each other at the
 * gradients' reduction. Source: as cost_slowest_chip() */
static double slowest(const Spec *spec)
{
    const double chip = spec->cluster.accelerator.speed_spread_frac;
    const double samples =
        spec->model.sample_spread_frac / sqrt((double)spec->training.global_batch / spec->parallel.data);
    return cost_slowest_chip(hypot(chip, samples), spec_gpus(spec));
}

static void fill_layer(const Spec *spec, double slowest, const SpecLayer *layer, SimSegment *segment,
                       StepParams *params)
{
    CostListLayer cost = cost_list_layer(spec, layer);
    cost.forward_s *= slowest;
    cost.backward_input_s *= slowest;
    cost.backward_weight_s *= slowest;
    segment->forward.part_ps[SIM_PART_COMPUTE] = sim_ps(cost.forward_s);
    segment->backward_input.part_ps[SIM_PART_COMPUTE] = sim_ps(cost.backward_input_s);
    segment->backward_weight.part_ps[SIM_PART_COMPUTE] = sim_ps(cost.backward_weight_s);
    segment->activation_bytes = llround(layer->activation_bytes * spec->training.micro_batch);
    *params =
        (StepParams){.weights = {.dense = layer->parameters, .tensors = layer->parameters > 0 ? TENSORS : 0}};
}

void step_fill_list(Step *step)
{
    const Spec *spec = step->spec;
    SimStage *out = &step->plan->stages[0];
    const char *at = spec->model.list.text;
    const double late = slowest(spec);
    SpecLayer layer;
    out->segment_count = out->layers = spec->model.layers;
    out->segments = ORR_ARENA_NEW(step->arena, SimSegment, out->segment_count);
    step->params[0] = ORR_ARENA_NEW(step->arena, StepParams, out->segment_count);
    for (int i = 0; spec_layer_list_next(&at, &layer); i++) {
        fill_layer(spec, late, &layer, &out->segments[i], &step->params[0][i]);
    }
    const int64_t overhead_ps = sim_ps(spec->execution.framework.host.microbatch_overhead_s);
    sim_work_spend(&out->segments[0].forward, SIM_PART_OTHER, overhead_ps);
    sim_work_spend(&out->segments[0].backward_input, SIM_PART_OTHER, overhead_ps);
}
