/* step/segments.c - what a stage's pieces cost and keep: layers, embedding, head. */
#include <math.h>

#include "costmodel/encoder.h"
#include "costmodel/offload.h"
#include "costmodel/states.h"
#include "step/fill.h"

static void set_memory(SimSegment *segment, const CostActivations *activations)
{
    segment->activation_bytes = step_bytes(activations->kept_bytes);
    segment->activation_input_only_bytes = step_bytes(activations->input_only_bytes);
    segment->forward_temp_bytes = step_bytes(activations->forward_temp_bytes);
    segment->backward_temp_bytes = step_bytes(activations->backward_temp_bytes);
}

/* Copies of hot experts are parameters of their own. `layer`: the one whose experts count. */
static StepParams rank_params(const Spec *spec, CostModelPart piece, const CostParams *params, int layer)
{
    const int experts = cost_layer_moe(&spec->model, layer).experts;
    const double copies = experts > 0 ? 1 + (double)spec->parallel.expert_replicas / experts : 1;
    StepParams own = {.weights = cost_rank_weights(params, &spec->parallel),
                      .frozen = cost_frozen_bytes(spec, piece, layer),
                      .reference = cost_reference_bytes(spec, piece, layer)};
    own.weights.expert *= copies;
    own.frozen.expert_bytes *= copies;
    own.reference.expert_bytes *= copies;
    return own;
}

/* Time of a piece that recomputes nothing. */
static void add_passes(const Step *step, const CostGraph *graph, SimSegment *segment)
{
    SimWork *works[COST_PASS_COUNT] = {&segment->forward, &segment->backward_input,
                                       &segment->backward_weight};
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        const CostTime time = cost_time_ops(&step->shape, &graph->pass[pass], (CostPass)pass);
        step_add_time(works[pass], &time, SIM_PART_COMPUTE);
    }
}

/* No backward that the host ran ahead in lies before a forward: it waits for the GPU before each, or all forwards of a
 * pipeline's step come first, as an only one does. A split backward of one micro-batch is an order of its own. A host that
 * reads each message's shape back waits before every pass. */
static CostHostSync host_syncs(const Spec *spec)
{
    if (spec->execution.framework.pipeline.p2p_host_s > 0 && spec->parallel.pipeline > 1) {
        return COST_HOST_SYNC_PASSES;
    }
    const unsigned traits = spec_schedule_traits(spec);
    const bool once = spec->parallel.pipeline > 1 && spec_microbatches(spec) == 1;
    const bool forwards_first = (traits & SIM_TRAIT_FORWARDS_FIRST) != 0 && spec_microbatches(spec) > 1;
    if (once && (traits & SIM_TRAIT_SPLITS_BACKWARD) != 0)
        return COST_HOST_SYNC_IN_ORDER;
    return spec->execution.framework.host.waits != SPEC_HOST_WAITS_NONE || forwards_first || once
               ? COST_HOST_SYNC_FORWARD
               : COST_HOST_SYNC_NONE;
}

/* Read and written on the way into the stack, and again on the way out. */
static void add_stacking(const Step *step, const CostOps *forward, CostRecomputeExtent extent,
                         SimSegment *segment)
{
    const double bytes = 2 * cost_stacked_bytes(&step->shape, forward, extent);
    if (bytes <= 0)
        return;
    const int64_t copy_ps =
        sim_ps(cost_memory_bound_s(&step->spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, bytes));
    sim_work_spend(&segment->forward, SIM_PART_COMPUTE, copy_ps);
    sim_work_spend(&segment->backward_input, SIM_PART_COMPUTE, copy_ps);
}

/* Parts of a layer's input are made whole before it runs again, beside nothing. Source: [DeepSpeedCheckpoints] */
static void add_gather(const Step *step, const CostGraph *graph, CostRecomputeExtent extent,
                       SimSegment *segment)
{
    const int parts = cost_checkpoint_parts(&step->shape, extent);
    const CostOps *forward = &graph->pass[COST_FORWARD];
    double bytes = 0;
    for (int i = 0; i < forward->kept_count; i++)
        bytes +=
            cost_drops_tensor(step->spec, forward, &forward->kept[i], extent) ? 0 : forward->kept[i].bytes;
    if (parts < 2)
        return;
    const SimWork work = step_collective(
        step->spec,
        &(CostCollective){
            .op = COST_ALL_GATHER, .bytes = bytes, .group = cost_group(step->spec, COST_RANKS_TENSOR)},
        SIM_PART_TENSOR_COMM);
    step_add_work(&segment->recompute, &work);
}

/* Forwards beside the micro-batch's own, of which nothing is kept: mismatched completions, and what the reference runs. */
static void add_reference(const Step *step, const CostGraph *graph, SimSegment *segment)
{
    const int mismatched = cost_mismatched_forwards(step->spec), refers = cost_reference_forwards(step->spec);
    const CostOps *forward = &graph->pass[COST_FORWARD];
    if (mismatched > 0) {
        const CostTime time = cost_time_ops(&step->shape, forward, COST_FORWARD);
        step_add_time(&segment->forward, &time, SIM_PART_COMPUTE);
    }
    if (refers == 0)
        return;
    g_autofree CostOps *ops = g_new(CostOps, 1);
    cost_reference_ops(forward, ops);
    const CostTime time = cost_time_ops(&step->shape, ops, COST_FORWARD);
    for (int i = 0; i < refers; i++)
        step_add_time(&segment->forward, &time, SIM_PART_COMPUTE);
}

static void fill_layer_kind(const Step *step, int layer, int layer_in_stage, StepLayerKind *kind)
{
    SimSegment *segment = &kind->segment;
    SimWork *works[COST_PASS_COUNT] = {&segment->forward, &segment->backward_input,
                                       &segment->backward_weight};
    const CostRecomputeExtent extent = cost_layer_extent(step->spec, layer, layer_in_stage);
    CostTime times[COST_PASS_COUNT], again = {0};
    CostGraph graph;
    cost_graph_layer_in(&step->shape, layer, layer_in_stage, &graph);
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        times[pass] = cost_time_ops(&step->shape, &graph.pass[pass], (CostPass)pass);
    }
    if (extent != COST_RECOMPUTE_OP_NONE) {
        again = cost_time_recompute(&step->shape, &graph.pass[COST_FORWARD], extent);
    }
    kind->ahead_layers = times[COST_FORWARD].slack_s / cost_time_total_s(&times[COST_FORWARD]);
    cost_add_weight_shapes(&graph.pass[COST_BACKWARD_WEIGHT], &kind->weights);
    cost_time_run_ahead(times, &again, host_syncs(step->spec));
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        step_add_time(works[pass], &times[pass], SIM_PART_COMPUTE);
    }
    step_add_time(&segment->recompute, &again, SIM_PART_RECOMPUTE);
    add_gather(step, &graph, extent, segment);
    add_reference(step, &graph, segment);
    const CostActivations activations = cost_activations(&step->shape, &graph, extent);
    const CostParams params = cost_trained_params(step->spec, COST_PART_LAYER, layer);
    set_memory(segment, &activations);
    add_stacking(step, &graph.pass[COST_FORWARD], extent, segment);
    segment->stops = cost_part_stops(step->spec, COST_PART_LAYER, layer, layer_in_stage);
    kind->params = rank_params(step->spec, COST_PART_LAYER, &params, layer);
}

static const StepLayerKind *layer_kind(Step *step, int layer, int layer_in_stage)
{
    StepLayerKind **kind = &step->kinds[cost_layer_group(step->spec, layer, layer_in_stage)];
    if (*kind == NULL) {
        *kind = ORR_ARENA_NEW(step->arena, StepLayerKind, 1);
        fill_layer_kind(step, layer, layer_in_stage, *kind);
    }
    return *kind;
}

static void fill_embedding(Step *step, SimSegment *segment, StepParams *params)
{
    const CostParams counts = cost_trained_params(step->spec, COST_PART_EMBEDDING, 0);
    CostGraph graph;
    cost_graph(&step->shape, cost_ops_embedding, &graph);
    const CostActivations activations = cost_activations(&step->shape, &graph, COST_RECOMPUTE_OP_NONE);
    segment->stops = cost_part_stops(step->spec, COST_PART_EMBEDDING, 0, 0);
    add_passes(step, &graph, segment);
    add_reference(step, &graph, segment);
    set_memory(segment, &activations);
    *params = rank_params(step->spec, COST_PART_EMBEDDING, &counts, step->spec->model.layers - 1);
}

/* The last stage of a tied model on several pipeline ranks holds a second copy of the table. */
static void fill_head(Step *step, SimSegment *segment, StepParams *params)
{
    g_autofree Spec *own = g_memdup2(step->spec, sizeof *step->spec);
    own->model.tied_embeddings = own->model.tied_embeddings && own->parallel.pipeline == 1;
    const CostParams counts = cost_trained_params(own, COST_PART_HEAD, 0);
    CostGraph graph;
    cost_graph(&step->shape, cost_ops_head, &graph);
    const CostActivations activations = cost_activations(&step->shape, &graph, COST_RECOMPUTE_OP_NONE);
    add_passes(step, &graph, segment);
    add_reference(step, &graph, segment);
    set_memory(segment, &activations);
    *params = rank_params(own, COST_PART_HEAD, &counts, step->spec->model.layers - 1);
}

/* A module follows the layers of its stage: where only the first of them are recomputed, it is not.
 * Source: [MegatronCore] multi_token_prediction.py, _checkpointed_forward */
static CostActivations add_mtp_module(Step *step, CostRecomputeExtent extent, SimSegment *segment)
{
    CostGraph module;
    cost_graph(&step->shape, cost_ops_mtp, &module);
    add_passes(step, &module, segment);
    if (extent != COST_RECOMPUTE_OP_NONE) {
        const CostTime again = cost_time_recompute(&step->shape, &module.pass[COST_FORWARD], extent);
        step_add_time(&segment->recompute, &again, SIM_PART_RECOMPUTE);
    }
    return cost_activations(&step->shape, &module, extent);
}

static CostActivations add_mtp_head(Step *step, SimSegment *segment)
{
    CostGraph head;
    cost_graph(&step->shape, cost_ops_head, &head);
    add_passes(step, &head, segment);
    return cost_activations(&step->shape, &head, COST_RECOMPUTE_OP_NONE);
}

/* The first module of the last stage brings the copy of the table that all of them and a tied head use. */
static void fill_mtp(Step *step, int stage, bool first, SimSegment *segment, StepParams *params)
{
    const Spec *spec = step->spec;
    const double table =
        first && step_copies_table(step) ? (double)spec->model.vocab * spec->model.hidden : 0;
    const bool frozen = spec->training.freeze.embedding;
    CostParams counts = cost_trained_params(spec, COST_PART_MTP, 0);
    counts.tensor_sharded += frozen ? 0 : table;
    const CostRecomputeExtent extent = cost_recompute_extent(spec, step->layers[stage]);
    CostActivations activations = add_mtp_module(step, extent, segment);
    const CostActivations logits = add_mtp_head(step, segment);
    activations.kept_bytes += logits.kept_bytes;
    activations.input_only_bytes += logits.input_only_bytes;
    set_memory(segment, &activations);
    *params = rank_params(spec, COST_PART_MTP, &counts, spec->model.layers - 1);
    params->frozen.dense_bytes += frozen ? cost_weight_wire_bytes(spec) * table / spec->parallel.tensor : 0;
}

static void add_microbatch_overhead(const Spec *spec, SimSegment *segment)
{
    const int64_t overhead_ps = sim_ps(spec->execution.framework.host.microbatch_overhead_s);
    sim_work_spend(&segment->forward, SIM_PART_OTHER, overhead_ps);
    sim_work_spend(&segment->backward_input, SIM_PART_OTHER, overhead_ps);
}

/* Of a product: maxima of its input, weight and output, or of its output's gradient. Four products a layer. */
#define MAXIMA_BYTES (4 * 3 * 4.0)

/* Delayed scales: behind a pass of a chunk the maxima of its casts are joined, agreed on by the ranks that share them, and made
 * into scales: a reduction that nothing hides, and a kernel before and after. Ignored: that replicas wait for each other.
 * Source: [TransformerEngine] quantization.py, reduce_and_update_fp8_tensors() */
static void add_shared_maxima(const Spec *spec, SimStage *stage)
{
    const SpecSharedMaxima among = spec->execution.framework.tensor.shares_maxima;
    const int ranks = among == SPEC_MAXIMA_ALL
                          ? cost_group_ranks(spec, COST_RANKS_ALL) / spec->parallel.pipeline
                          : spec->parallel.tensor * spec->parallel.context;
    if (among == SPEC_MAXIMA_NONE || spec->training.precision != SPEC_PRECISION_FP8 || ranks < 2 ||
        stage->layers == 0)
        return;
    const SimPart part = spec->parallel.tensor > 1        ? SIM_PART_TENSOR_COMM
                         : ranks > spec->parallel.context ? SIM_PART_DATA_COMM
                                                          : SIM_PART_CONTEXT_COMM;
    SimWork work =
        step_collective(spec,
                        &(CostCollective){.op = COST_ALL_REDUCE,
                                          .bytes = stage->layers * MAXIMA_BYTES,
                                          .group = cost_group_part(spec, COST_RANKS_ALL, 1, ranks)},
                        part);
    sim_work_spend(&work, SIM_PART_COMPUTE,
                   sim_ps(2 * cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE,
                                                  stage->layers * MAXIMA_BYTES)));
    step_add_work(&stage->segments[0].forward, &work);
    step_add_work(&stage->segments[0].backward_input, &work);
}

/* A copy between GPU and host runs at this share of the link's rate: 55.6 of 63 GB/s, PCIe 5 x16, pinned memory.
 * Source: [nvbandwidth] */
#define COPY_FRAC 0.88

/* The first layers of a stage leave for the host. Ignored: what the copies take of the GPU's and the host's memory rate. */
static void offload_layers(const Step *step, int first_layer, SimStage *stage)
{
    const Spec *spec = step->spec;
    const SpecOffloadPart *part = &spec->offload.activations;
    const bool waits = cost_checkpoints_wait(spec);
    const double rate = spec->cluster.accelerator.host_link_bytes_per_s *
                        (waits ? spec->cluster.host.pageable_frac : COPY_FRAC);
    const bool evicts = part->tier != SPEC_TIER_GPU && part->evicts;
    stage->offloaded = evicts ? step_evict(step, first_layer, rate, stage)
                              : MIN(spec->offload.activation_layers, stage->layers);
    stage->copies_wait = waits;
    for (int i = 0; i < stage->offloaded; i++) {
        SimSegment *segment = &stage->segments[stage->first_layer + i];
        if (!evicts)
            segment->leaving_bytes = segment->activation_bytes;
        if (part->modules != 0) {
            const double bytes = cost_offload_module_bytes(&step->shape, first_layer + i, i, part->modules);
            segment->leaving_bytes = MIN(segment->leaving_bytes, step_bytes(bytes));
        }
        if (part->fraction < 1)
            segment->leaving_bytes = step_bytes(part->fraction * (double)segment->leaving_bytes);
        segment->copy_out.part_ps[SIM_PART_OFFLOAD] = sim_ps((double)segment->leaving_bytes / rate);
        segment->copy_back = segment->copy_out;
    }
}

/* Host and GPU meet at each message: in the pass behind it the GPU idles until the first collective of tensor ranks has been
 * checked. Where all of the pass waits for the host its checks are in that. */
static void add_first_checks(const Step *step, int stage, SimStage *out)
{
    const SimSegment *layer = &out->segments[out->first_layer];
    SimSegment *last = &out->segments[out->segment_count - 1];
    const int64_t check_ps = sim_ps(cost_collective_check_s(step->spec, step->spec->parallel.tensor));
    if (out->layers == 0 || host_syncs(step->spec) != COST_HOST_SYNC_PASSES) {
        return;
    }
    const bool forward_waits = layer->forward.part_ps[SIM_PART_OTHER] > 0;
    const bool backward_waits = layer->backward_input.part_ps[SIM_PART_OTHER] > 0;
    out->forward_check_ps = stage > 0 && !forward_waits ? check_ps : 0;
    out->backward_check_ps = stage < step->stages - 1 && !backward_waits ? check_ps : 0;
    sim_work_spend(&out->segments[0].forward, SIM_PART_OTHER, out->forward_check_ps);
    sim_work_spend(&last->backward_input, SIM_PART_OTHER, out->backward_check_ps);
}

void step_fill_stage(Step *step, int stage, int first_layer)
{
    const int last = step->stages - 1;
    const int layers = step->layers[stage], mtp = stage == last ? step->spec->model.mtp_layers : 0;
    const int count = layers + (stage == 0) + (stage == last) + mtp;
    SimStage *out = &step->plan->stages[stage];
    out->segment_count = count > 0 ? count : 1;
    out->segments = ORR_ARENA_NEW(step->arena, SimSegment, out->segment_count);
    step->params[stage] = ORR_ARENA_NEW(step->arena, StepParams, out->segment_count);
    out->first_layer = stage == 0 ? 1 : 0;
    out->layers = layers;
    int next = 0;
    if (stage == 0) {
        fill_embedding(step, &out->segments[next], &step->params[stage][next]);
        next += 1;
    }
    cost_group_layers(step->spec, first_layer, layers, &step->groups[stage]);
    for (int i = 0; i < layers; i++, next++) {
        const StepLayerKind *kind = layer_kind(step, first_layer + i, i);
        out->segments[next] = kind->segment;
        step->params[stage][next] = kind->params;
    }
    for (int i = 0; i < mtp; i++, next++) {
        fill_mtp(step, stage, i == 0, &out->segments[next], &step->params[stage][next]);
    }
    if (stage == last) {
        fill_head(step, &out->segments[next], &step->params[stage][next]);
    }
    for (int i = 0; i < out->segment_count; i++) {
        out->segments[i].dense_params = step->params[stage][i].weights.dense;
        out->segments[i].expert_params = step->params[stage][i].weights.expert;
        out->segments[i].frozen_bytes = cost_held_bytes(step->spec, &step->params[stage][i].frozen);
        out->segments[i].reference_bytes = cost_held_bytes(step->spec, &step->params[stage][i].reference);
    }
    if (stage > 0 &&
        step_keeps_boundaries(step->spec)) { /* its input lies in a buffer that is there anyhow */
        const int64_t input_bytes = step_bytes(cost_boundary_bytes(&step->shape));
        SimSegment *first = &out->segments[0];
        first->activation_bytes -= MIN(first->activation_bytes, input_bytes);
    }
    if (stage > 0 && layers > 0 && cost_layer_crosses(&step->spec->model, first_layer)) {
        out->passed_bytes = step_bytes(cost_encoder_output_bytes(&step->shape));
        out->segments[0].activation_bytes += out->passed_bytes;
    }
    offload_layers(step, first_layer, out);
    add_first_checks(step, stage, out);
    add_microbatch_overhead(step->spec, &out->segments[0]);
    add_shared_maxima(step->spec, out);
}

/* A backward that leaves the product out still reduces the input's gradient, beside nothing. What comes later gathers
 * the input of one micro-batch beside the product of another: as long as the reduction beside it would have taken. Where
 * the sequence is not split the input is there. Kept until then: the gradient of the logits and the head's input. Source: [MegatronLoss] drain_embedding_wgrad_compute */
void step_fill_deferred_head(const Step *step)
{
    const CostShape *shape = &step->shape;
    const SpecModel *model = &step->spec->model;
    SimPlan *plan = step->plan;
    CostOps ops = {.count = 0}, rest = {.count = 0}, products = {.count = 0};
    if (step->spec->execution.framework.pipeline.deferred_head_gradients == 0 || model->moe.experts > 0 ||
        model->mtp_layers > 0) {
        return;
    }
    cost_ops_head(shape, COST_BACKWARD_WEIGHT, &ops);
    for (int i = 0; i < ops.count; i++) {
        if (ops.op[i].kind == COST_OP_COLLECTIVE) {
            rest.op[rest.count] = ops.op[i];
            rest.op[rest.count++].u.collective.hidden_under = -1;
        } else {
            products.op[products.count++] = ops.op[i];
        }
    }
    const CostTime whole = cost_time_ops(shape, &ops, COST_BACKWARD_WEIGHT);
    const CostTime left = cost_time_ops(shape, &rest, COST_BACKWARD_WEIGHT);
    const CostTime later =
        cost_time_ops(shape, shape->sequence_parallel ? &ops : &products, COST_BACKWARD_WEIGHT);
    SimWork before = {0}, stays = {0};
    step_add_time(&plan->head_later, &later, SIM_PART_COMPUTE);
    step_add_time(&before, &whole, SIM_PART_COMPUTE);
    step_add_time(&stays, &left, SIM_PART_COMPUTE);
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        plan->head_left_out.part_ps[part] = before.part_ps[part] - stays.part_ps[part];
    }
    plan->deferred_heads = spec_deferred_heads(step->spec);
    plan->head_held_bytes =
        step_bytes(cost_result_bytes(shape) + shape->stream_bytes * shape->part_tokens * shape->hidden);
}
