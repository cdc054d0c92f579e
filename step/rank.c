/* step/rank.c - the optimizer step of a rank, its model states, and the buffers that it holds all the time. */
#include <math.h>

#include "costmodel/lengths_memory.h"
#include "costmodel/states.h"
#include "step/fill.h"

static StepParams params_of_rank(const Step *step, int rank)
{
    const SimPlan *plan = step->plan;
    StepParams sum = {0};
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const int stage =
            sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
        for (int i = 0; i < plan->stages[stage].segment_count; i++) {
            step_add_params(&sum, &step->params[stage][i]);
        }
    }
    return sum;
}

bool step_copies_table(const Step *step)
{
    int rank, chunk;
    sim_place_of(step->plan->schedule->placement, step->plan->shape.ranks, step->plan->shape.chunks,
                 step->stages - 1, &rank, &chunk);
    return rank > 0 && step->spec->model.mtp_layers > 0 && !step->spec->model.tied_embeddings;
}

/* First and last pipeline rank sum the gradients of their copies of a tied table. Ignored: that Megatron sums those of a
 * multi-token module's copy too. */
static void fill_embedding_reduce(const Step *step, int rank, SimRankPlan *out)
{
    const Spec *spec = step->spec;
    const int last = step->plan->shape.ranks - 1;
    if (!spec->model.tied_embeddings || last == 0 || (rank != 0 && rank != last) ||
        spec->training.adapter.given || spec->training.freeze.head) {
        return;
    }
    const double bytes = (double)spec->model.vocab * spec->model.hidden / spec->parallel.tensor *
                         cost_gradient_wire_bytes(spec);
    const CostGroup ends = cost_pipeline_pair(spec, 0, last);
    out->embedding_reduce = step_collective(
        spec, &(CostCollective){.op = COST_ALL_REDUCE, .bytes = bytes, .group = ends}, SIM_PART_DATA_COMM);
}

static int stage_of(const Step *step, int rank, int chunk)
{
    const SimPlan *plan = step->plan;
    return sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
}

static const StepLayerKind *group_kind(const Step *step, const CostLayerGroup *group)
{
    return step->kinds[cost_layer_group(step->spec, group->layer, group->layer_in_stage)];
}

static bool has_placeholders(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    return framework->allocator.weight_placeholders &&
           framework->kernels.gradient_sum == SPEC_SUM_IN_PRODUCT && !spec->training.adapter.given;
}

/* Transformer Engine hands autograd a cached placeholder for each distinct shape of weight whose gradient the GEMM
 * has already added: those of all kinds of layers of the rank and, on the last one, the LM head's. */
static double layer_placeholder_bytes(const Step *step, int rank)
{
    CostWeightShapes shapes = {.count = 0};
    for (int chunk = 0; chunk < step->plan->shape.chunks; chunk++) {
        const CostLayerGroups *groups = &step->groups[stage_of(step, rank, chunk) % step->stages];
        for (int i = 0; i < groups->count; i++) {
            cost_join_weight_shapes(&group_kind(step, &groups->group[i])->weights, &shapes);
        }
    }
    return cost_weight_shapes_elements(&shapes) * step->shape.element_bytes;
}

static double least_placeholder_bytes(const Step *step)
{
    double least = INFINITY;
    for (int i = 0; i < COST_LAYER_GROUPS; i++) {
        if (step->kinds[i] != NULL) {
            least = fmin(least, cost_weight_shapes_elements(&step->kinds[i]->weights));
        }
    }
    return isinf(least) ? 0 : least * step->shape.element_bytes;
}

static void fill_workspace(const Step *step, int rank, SimRankPlan *out)
{
    const SpecModel *model = &step->spec->model;
    const bool placeholders = has_placeholders(step->spec) && step->spec->model.list.text == NULL,
               last = rank == step->plan->shape.ranks - 1;
    const double head = (double)model->vocab * model->hidden / step->spec->parallel.tensor;
    const double ends = step->spec->execution.framework.allocator.workspace_bytes +
                        (placeholders && last ? head * step->shape.element_bytes : 0);
    out->static_bytes[SIM_MEM_WORKSPACE] =
        step_bytes(ends + (placeholders ? layer_placeholder_bytes(step, rank) : 0));
    out->end_workspace_bytes = step_bytes(ends);
    out->least_layer_workspace_bytes = placeholders ? step_bytes(least_placeholder_bytes(step)) : 0;
}

/* Gradients that the backward of one chunk makes fill up as its activations leave, from the last segment to the first: what they
 * take beyond those at most. Shards stay for the optimizer, whose kernels need room of their own, and no pass's beside it:
 * what that is beyond, in *ret_optimizer_bytes.
 * Ignored: that room where a pipeline has several ranks, which hold several micro-batches before. */
static double passing_gradients_bytes(const Step *step, int rank, double *ret_optimizer_bytes)
{
    const SimPlan *plan = step->plan;
    const Spec *spec = step->spec;
    const double each = cost_passing_gradient_bytes(spec);
    const bool sharded = cost_shards_gradients(spec);
    const double dense = sharded ? cost_shard_degree(spec, cost_dense_replicas(spec)) : 1;
    const double expert = sharded ? cost_shard_degree(spec, cost_expert_replicas(spec)) : 1;
    const double temp = plan->shape.ranks == 1 ? spec->execution.framework.optimizer.optimizer_temp_bytes : 0;
    double most = 0;
    *ret_optimizer_bytes = 0;
    for (int chunk = 0; each + temp > 0 && chunk < plan->shape.chunks; chunk++) {
        const int index =
            sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
        double beyond = 0, all = 0, passes = 0;
        for (int i = plan->stages[index].segment_count - 1; i >= 0; i--) {
            const StepParams *params = &step->params[index][i];
            const SimSegment *segment = &plan->stages[index].segments[i];
            const double owned = params->weights.dense / dense + params->weights.expert / expert;
            all += owned;
            beyond += each * owned - (double)segment->activation_bytes;
            passes = fmax(passes, (double)segment->backward_temp_bytes);
            most = fmax(most, each > 0 ? beyond : 0);
        }
        *ret_optimizer_bytes = fmax(*ret_optimizer_bytes, temp > 0 ? beyond + temp * all - passes : 0);
    }
    *ret_optimizer_bytes = fmax(0, *ret_optimizer_bytes - most);
    return most;
}

/* Layers whose launches are one backward's that runs its forward again. */
#define BACKWARD_LAUNCHES 3

/* Outputs that a collective's stream has used in the layers that the host is `ahead` of the GPU in a forward, of a queue that
 * takes `most`: two row-parallel linears a layer; of a backward that runs its forward again, those and the gradients of the
 * two blocks' inputs. Without that a backward frees more than it holds. Pipeline ranks that wait for messages empty the queue
 * between the two passes. */
static double held_outputs(const Spec *spec, double ahead, double most)
{
    const double forward = 2 * fmin(ahead, most);
    if (spec->training.recompute.mode != SPEC_RECOMPUTE_FULL)
        return forward;
    if (spec->parallel.pipeline > 1)
        return fmax(forward, 4 * fmin(ahead, most / BACKWARD_LAUNCHES));
    return forward + 4 * fmin(ahead, fmax(most - ahead, 0) / BACKWARD_LAUNCHES);
}

/* The allocator frees these when the GPU has passed them, behind the host by the layers it launches ahead.
 * Source: [PyTorchRecordStream] */
static double held_outputs_bytes(const Step *step, int rank)
{
    const CostShape *shape = &step->shape;
    const double most = step->spec->execution.framework.allocator.launch_lead_layers;
    double ahead = 0;
    if (most <= 0 || shape->tensor < 2) {
        return 0;
    }
    for (int chunk = 0; chunk < step->plan->shape.chunks; chunk++) {
        const CostLayerGroups *groups = &step->groups[stage_of(step, rank, chunk) % step->stages];
        double layers = 0;
        for (int i = 0; i < groups->count; i++) {
            layers += groups->group[i].count * group_kind(step, &groups->group[i])->ahead_layers;
        }
        ahead = fmax(ahead, layers);
    }
    return held_outputs(step->spec, ahead, most) * shape->tokens * shape->hidden * shape->element_bytes;
}

/* Of the GPU beside what lies there for the whole step. */
static double room_bytes(const Step *step, int rank)
{
    const int64_t *held = step->plan->ranks[rank].static_bytes;
    double room = step->spec->cluster.accelerator.memory_bytes - spec_context_bytes(step->spec);
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        room -= (double)held[i];
    return room;
}

/* What the caching allocator holds beyond the tensors of the peak: the hole in the loss, or blocks that fit no other text, flat gradients of the
 * optimizer step, and buffers of the stream which gathers sharded weights, which compute cannot use. */
static double stranded_bytes(const Step *step, int rank, const StepParams *params)
{
    const SimPlan *plan = step->plan;
    int64_t unit_bytes = 0;
    int layers = 0;
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const int index =
            sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
        const SimStage *stage = &plan->stages[index];
        layers += stage->layers;
        for (int i = 0; i < stage->segment_count; i++) {
            unit_bytes = MAX(unit_bytes, stage->segments[i].gathered_param_bytes);
        }
    }
    const bool head = rank == plan->shape.ranks - 1 && step->spec->model.list.text == NULL;
    const double hole = head ? cost_head_stranded_bytes(&step->shape) : 0,
                 loss = fmax(hole,
                             cost_lengths_stranded_bytes(&step->shape, layers, head, room_bytes(step, rank)));
    return loss + held_outputs_bytes(step, rank) + cost_flat_gradient_bytes(step->spec, &params->weights) +
           step->spec->execution.framework.allocator.gather_buffers * (double)unit_bytes;
}

bool step_keeps_boundaries(const Spec *spec)
{
    return spec->execution.framework.allocator.pipeline_keeps != SPEC_PIPELINE_KEEPS_IN_FLIGHT &&
           spec->parallel.pipeline > 1;
}

/* Of what stage `stage` sends to the next one, of a micro-batch. */
static double boundary_bytes(const Step *step, int stage)
{
    return step->spec->model.list.text != NULL ? step_list_boundary_bytes(step, stage)
                                               : cost_boundary_bytes(&step->shape);
}

/* Receive buffers for the input and the output's gradient of each micro-batch, and outputs of a rank's stages: of all
 * micro-batches, or of those that a 1F1B pipeline has in flight; the last stage's of all. */
static double boundary_buffer_bytes(const Step *step, int rank)
{
    const SimPlan *plan = step->plan;
    const int last = plan->shape.ranks * plan->shape.chunks - 1, count = plan->shape.microbatches;
    const bool all = step->spec->execution.framework.allocator.pipeline_keeps == SPEC_PIPELINE_KEEPS_OUTPUTS;
    double bytes = 0;
    for (int chunk = 0; step_keeps_boundaries(step->spec) && chunk < plan->shape.chunks; chunk++) {
        const int stage =
            sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
        bytes += stage > 0 ? count * boundary_bytes(step, stage - 1) : 0;
        bytes += stage < last
                     ? (count + (all ? count : MIN(count, plan->shape.ranks))) * boundary_bytes(step, stage)
                     : count * cost_result_bytes(&step->shape);
    }
    return bytes;
}

/* Behind the last reduction; the report has the rank with most to send. */
static void fill_compression(Step *step, double count, SimRankPlan *out)
{
    const Spec *spec = step->spec;
    if (!step_compresses(spec)) {
        return;
    }
    SimCompression *compression = ORR_ARENA_NEW(step->arena, SimCompression, 1);
    step_fill_compression(spec, count, compression);
    sim_work_spend(&out->optimizer, SIM_PART_DATA_COMM, sim_ps(compression->restore_s));
    out->static_bytes[SIM_MEM_OPTIMIZER] += llround(compression->residual_bytes);
    if (step->plan->compression == NULL || step->plan->compression->dense_bytes < compression->dense_bytes) {
        step->plan->compression = compression;
    }
}

void step_fill_rank(Step *step, int rank)
{
    const Spec *spec = step->spec;
    SimRankPlan *out = &step->plan->ranks[rank];
    const StepParams params = params_of_rank(step, rank);
    const CostStates states = cost_states(spec, &params.weights);
    out->optimizer.part_ps[SIM_PART_OPTIMIZER] = sim_ps(cost_optimizer_s(spec, &params.weights));
    fill_embedding_reduce(step, rank, out);
    out->static_bytes[SIM_MEM_WEIGHTS] =
        step_bytes(states.weights_bytes + step_secondary_shard_bytes(spec, &params) +
                   cost_held_bytes(spec, &params.frozen) + cost_held_bytes(spec, &params.reference));
    double optimizer_bytes;
    out->static_bytes[SIM_MEM_GRADIENTS] =
        step_bytes(states.gradients_bytes + passing_gradients_bytes(step, rank, &optimizer_bytes));
    out->static_bytes[SIM_MEM_OPTIMIZER] = step_bytes(states.optimizer_bytes);
    out->moments_bytes = step_bytes(states.moments_bytes);
    fill_workspace(step, rank, out);
    out->static_bytes[SIM_MEM_WORKSPACE] += step_bytes(optimizer_bytes);
    out->static_bytes[SIM_MEM_ACTIVATIONS] = step_bytes(boundary_buffer_bytes(step, rank));
    out->stranded_bytes = step_bytes(stranded_bytes(step, rank, &params));
    fill_compression(step, params.weights.dense, out);
    step_offload_rank(step, rank, &params, out);
}
