/* step/list.c - the stages of a network that is a list of layers. */
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

static SimWork over_tensor_ranks(const Step *step, CostCollectiveOp op, double bytes)
{
    return step_collective(step->spec,
                           &(CostCollective){.op = op, .bytes = bytes, .group = step->shape.tensor_group},
                           SIM_PART_TENSOR_COMM);
}

/* What the layer reads, of `before`, comes from all tensor ranks and stays whole for the weights' gradient. The network's
 * own input is on each of them. */
static void exchange_input(const Step *step, const SpecLayer *before, SimSegment *segment)
{
    const int tensor = step->spec->parallel.tensor;
    const double bytes = before->output_bytes * step->spec->training.micro_batch;
    const SimWork gather = over_tensor_ranks(step, COST_ALL_GATHER, bytes),
                  scatter = over_tensor_ranks(step, COST_REDUCE_SCATTER, bytes);
    step_add_work(&segment->forward, &gather);
    step_add_work(&segment->backward_input, &scatter);
    segment->activation_bytes = sim_sum(segment->activation_bytes, step_bytes(bytes));
    segment->backward_temp_bytes = step_bytes(bytes * (1 - 1.0 / tensor));
}

/* Full recomputation: every layer is a checkpoint of its own, which keeps what the layer before put out and runs forward
 * again, exchanges and all, before its backward. The network's input is the loader's. Source: [Chen2016] */
static void run_again(const Step *step, const SpecLayer *before, SimSegment *segment)
{
    const Spec *spec = step->spec;
    const double input_bytes =
        before != NULL ? before->output_bytes * spec->training.micro_batch / spec->parallel.tensor : 0;
    segment->recompute = segment->forward;
    segment->recompute.part_ps[SIM_PART_RECOMPUTE] = segment->forward.part_ps[SIM_PART_COMPUTE];
    segment->recompute.part_ps[SIM_PART_COMPUTE] = 0;
    segment->backward_temp_bytes = sim_sum(segment->backward_temp_bytes, segment->activation_bytes);
    segment->activation_bytes = step_bytes(input_bytes);
}

static void fill_layer(const Step *step, double slowest, const SpecLayer *before, const SpecLayer *layer,
                       SimSegment *segment, StepParams *params)
{
    const Spec *spec = step->spec;
    CostListLayer cost = cost_list_layer(spec, layer);
    cost.forward_s *= slowest;
    cost.backward_input_s *= slowest;
    cost.backward_weight_s *= slowest;
    segment->forward.part_ps[SIM_PART_COMPUTE] = sim_ps(cost.forward_s);
    segment->backward_input.part_ps[SIM_PART_COMPUTE] = sim_ps(cost.backward_input_s);
    segment->backward_weight.part_ps[SIM_PART_COMPUTE] = sim_ps(cost.backward_weight_s);
    segment->activation_bytes =
        llround(layer->activation_bytes * spec->training.micro_batch / spec->parallel.tensor);
    if (before != NULL && cost_list_gathers(spec, layer))
        exchange_input(step, before, segment);
    if (spec->training.recompute.mode == SPEC_RECOMPUTE_FULL)
        run_again(step, before, segment);
    *params = (StepParams){.weights = {.dense = layer->parameters / spec->parallel.tensor,
                                       .tensors = layer->parameters > 0 ? TENSORS : 0}};
}

/* The loss wants all classes: the last layer's outputs are gathered. */
static void gather_result(const Step *step, const SpecLayer *last, SimSegment *segment)
{
    const double bytes = last->output_bytes * step->spec->training.micro_batch;
    if (step->spec->parallel.tensor == 1)
        return;
    const SimWork gather = over_tensor_ranks(step, COST_ALL_GATHER, bytes);
    step_add_work(&segment->forward, &gather);
}

void step_fill_list(Step *step, int stage, int first_layer)
{
    const Spec *spec = step->spec;
    SimStage *out = &step->plan->stages[stage];
    const char *at = spec->model.list.text;
    const double late = slowest(spec);
    const int end = first_layer + step->layers[stage];
    SpecLayer before, layer;
    out->segment_count = out->layers = step->layers[stage];
    out->segments = ORR_ARENA_NEW(step->arena, SimSegment, out->segment_count);
    step->params[stage] = ORR_ARENA_NEW(step->arena, StepParams, out->segment_count);
    for (int i = 0; i < end && spec_layer_list_next(&at, &layer); i++) {
        const int own = i - first_layer;
        if (own >= 0)
            fill_layer(step, late, i > 0 ? &before : NULL, &layer, &out->segments[own],
                       &step->params[stage][own]);
        before = layer;
    }
    if (out->segment_count == 0)
        return;
    if (end == spec->model.layers)
        gather_result(step, &before, &out->segments[out->segment_count - 1]);
    const int64_t overhead_ps = sim_ps(spec->execution.framework.host.microbatch_overhead_s);
    sim_work_spend(&out->segments[0].forward, SIM_PART_OTHER, overhead_ps);
    sim_work_spend(&out->segments[0].backward_input, SIM_PART_OTHER, overhead_ps);
}

double step_list_boundary_bytes(const Step *step, int stage)
{
    const Spec *spec = step->spec;
    const char *at = spec->model.list.text;
    SpecLayer layer = {.output_bytes = 0};
    int count = 0;
    for (int i = 0; i <= stage % step->stages; i++)
        count += step->layers[i];
    while (count-- > 0 && spec_layer_list_next(&at, &layer)) {
    }
    return layer.output_bytes * spec->training.micro_batch / spec->parallel.tensor;
}
