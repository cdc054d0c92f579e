/* step/step.c - the plan of a step: schedule, stages, hops between them, and what happens once a step. */
#include <math.h>
#include <string.h>

#include "costmodel/encoder.h"
#include "costmodel/memory_bound.h"
#include "costmodel/states.h"
#include "step/fill.h"
#include "spec/load.h"

/* What the receivers of 1/t each do to have the whole tensor. DeepSpeed's PartitionedTensor [DeepSpeedPipe] fills a buffer with
 * zeros, gathers a list of parts, which PyTorch copies out of a buffer of its own, and clones the result: 5 passes. For
 * a backward it does so for the gradient and, anew, for the output that the stage had cut and dropped. */
static SimWork gather_parts(const CostShape *shape, double whole, bool backward)
{
    const Spec *spec = shape->spec;
    SimWork work = step_collective(
        spec, &(CostCollective){.op = COST_ALL_GATHER, .bytes = whole, .group = shape->tensor_group},
        SIM_PART_PIPELINE_COMM);
    if (spec->execution.framework.pipeline.p2p_tensors == SPEC_P2P_PARTITIONED) {
        sim_work_spend(
            &work, SIM_PART_PIPELINE_COMM,
            sim_ps(cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, 5 * whole)));
        if (backward) {
            const SimWork again = work;
            step_add_work(&work, &again);
        }
    }
    return work;
}

/* The share of the network grows to that of `term`, whichever network that is on. */
static void widen_network(SimWork *work, const SimWork *term)
{
    const SimShare *share = step_network_share(term);
    for (int i = 0; i < SIM_WORK_SHARES && share != NULL; i++) {
        if (work->shares[i].amount > 0 && step_is_network(work->shares[i].resource)) {
            work->shares[i].amount = MAX(work->shares[i].amount, share->amount);
        }
    }
}

static void drop_sms(SimWork *work)
{
    int kept = 0;
    for (int i = 0; i < SIM_WORK_SHARES; i++) {
        if (work->shares[i].resource != SIM_RESOURCE_SM) {
            work->shares[kept++] = work->shares[i];
        }
    }
    for (; kept < SIM_WORK_SHARES; kept++) {
        work->shares[kept] = (SimShare){.amount = 0};
    }
}

/* One activation or, `backward`, its gradient to another pipeline rank, as `pair` lies on the machine, in `messages` of
 * which all but the first are small. With sequence parallelism, or with the scatter-gather of [Narayanan2021], a tensor
 * rank sends its 1/t; the latter gathers on the other side. Where messages go one at a time an exchange of both directions
 * takes both; that a pipeline which fills or drains has one direction only is ignored. */
static SimWork hop(const CostShape *shape, const CostGroup *pair, int messages, bool backward)
{
    const Spec *spec = shape->spec;
    const bool inside = pair->per_domain == 2;
    const SpecFramework *framework = &spec->execution.framework;
    const bool cuts = framework->pipeline.p2p_tensors == SPEC_P2P_PARTITIONED ||
                      (framework->pipeline.p2p_tensors == SPEC_P2P_SCATTER_GATHER && !inside);
    const bool scatter = !shape->sequence_parallel && cuts && spec->parallel.tensor > 1;
    const double whole = cost_boundary_tokens(shape, shape->tokens) * shape->hidden * shape->stream_bytes;
    const double bytes = shape->sequence_parallel || scatter ? whole / shape->tensor : whole;
    SimWork work =
        step_collective(spec, &(CostCollective){.op = COST_SEND_RECV, .bytes = bytes, .group = *pair},
                        SIM_PART_PIPELINE_COMM);
    work.part_ps[SIM_PART_PIPELINE_COMM] =
        sim_product(work.part_ps[SIM_PART_PIPELINE_COMM], framework->pipeline.p2p_one_at_a_time ? 2 : 1);
    if (scatter) {
        const SimWork gather = gather_parts(shape, whole, backward);
        sim_work_add(&work, &gather); /* on the network of the message */
        widen_network(&work, &gather);
    }
    sim_work_spend(&work, SIM_PART_PIPELINE_COMM,
                   sim_product(sim_ps(framework->pipeline.p2p_host_s), messages));
    drop_sms(&work); /* one or two channels: below what the compute kernels notice */
    return work;
}

/* Of a list of layers: a tensor rank sends what it has of the outputs, and the next stage gathers what it wants whole. */
static SimWork list_hop(const Step *step, const CostGroup *pair, int from, int messages)
{
    const SpecFramework *framework = &step->spec->execution.framework;
    const double bytes = step_list_boundary_bytes(step, from);
    SimWork work =
        step_collective(step->spec, &(CostCollective){.op = COST_SEND_RECV, .bytes = bytes, .group = *pair},
                        SIM_PART_PIPELINE_COMM);
    sim_work_spend(&work, SIM_PART_PIPELINE_COMM,
                   sim_product(sim_ps(framework->pipeline.p2p_host_s), messages));
    drop_sms(&work);
    return work;
}

/* What crosses between stages `from` and `from` + 1, or the gradient of it. */
static SimWork hop_from(const Step *step, const CostGroup *pair, int from, bool backward)
{
    const SpecRecipePipeline *recipe = &step->spec->execution.framework.pipeline;
    const int messages = backward ? 1 : recipe->p2p_forward_messages;
    return step->spec->model.list.text != NULL ? list_hop(step, pair, from, messages)
                                               : hop(&step->shape, pair, messages, backward);
}

int64_t sim_step_hop_ps(const Spec *spec, bool inside)
{
    CostShape shape;
    cost_shape_init(&shape, spec);
    const CostGroup pair = {.ranks = 2, .per_domain = inside ? 2 : 1, .nic_sharers = 1};
    const SimWork work = hop(&shape, &pair, 1, false);
    return sim_work_duration_ps(&work);
}

static void fill_hops(Step *step, int stage)
{
    const SimPlan *plan = step->plan;
    const SimPlacement placement = plan->schedule->placement;
    const int within = stage % step->stages; /* of its copy of the model */
    int rank = 0, other = 0, chunk = 0;
    sim_place_of(placement, plan->shape.ranks, plan->shape.chunks, stage, &rank, &chunk);
    if (within + 1 < step->stages) {
        sim_place_of(placement, plan->shape.ranks, plan->shape.chunks, stage + 1, &other, &chunk);
        if (other != rank) {
            const CostGroup pair = cost_pipeline_pair(step->spec, rank, other);
            plan->stages[stage].send_next = hop_from(step, &pair, stage, false);
        }
    }
    if (within > 0) {
        sim_place_of(placement, plan->shape.ranks, plan->shape.chunks, stage - 1, &other, &chunk);
        if (other != rank) {
            const CostGroup pair = cost_pipeline_pair(step->spec, rank, other);
            plan->stages[stage].send_prev = hop_from(step, &pair, stage - 1, true);
        }
    }
}

static void fill_policies(const Spec *spec, SimPlan *plan)
{
    const SpecFramework *framework = &spec->execution.framework;
    const StepPolicy policy = step_policy(spec);
    plan->zero = spec->parallel.zero;
    plan->overlap_grad_reduce = step_reduces_beside(&policy);
    plan->reduction_holds_queue = framework->data_parallel.reductions == SPEC_REDUCTIONS_HOLD_QUEUE;
    plan->overlap_param_gather = policy.gathers != STEP_GATHERS_NONE;
    plan->gathers_on_use = policy.gathers == STEP_GATHERS_USE;
    plan->reduce_each_microbatch = step_reduces_each(&policy);
    plan->reshard_after_forward = policy.reshards_after_forward && !policy.keeps_gathered;
    plan->reshard_after_backward = !policy.keeps_gathered;
    plan->whole_chunks = policy.by_chunk;
    plan->prefetch_units = policy.prefetch_units;
    plan->one_data_stream = spec_gathers_each_tensor(framework); /* its host runs them one after the other */
    plan->p2p_blocking = policy.waits_for_sends;
    plan->tensor = spec->parallel.tensor;
    plan->context = spec->parallel.context;
    plan->data = spec->parallel.data;
    plan->expert = spec->parallel.expert;
}

/* Sums of squares: over the ranks of a pipeline rank, then from one pipeline rank to the next. */
static void fill_post_validation(const Spec *spec, SimPlan *plan)
{
    const bool inside = cost_pipeline_inside(spec, 0, 1);
    const SimWork replicas = step_collective(
        spec,
        &(CostCollective){.op = COST_ALL_REDUCE, .bytes = 4, .group = cost_group(spec, COST_RANKS_REPLICAS)},
        SIM_PART_DATA_COMM);
    plan->stage_norm = step_collective(
        spec,
        &(CostCollective){.op = COST_ALL_REDUCE, .bytes = 4, .group = cost_group(spec, COST_RANKS_TENSOR)},
        SIM_PART_DATA_COMM);
    step_add_work(&plan->stage_norm, &replicas);
    plan->norm_hop = step_collective(
        spec,
        &(CostCollective){.op = COST_SEND_RECV,
                          .bytes = 4,
                          .group = {.ranks = 2, .per_domain = inside ? 2 : 1, .nic_sharers = 1}},
        SIM_PART_DATA_COMM);
    plan->post_validation = true;
}

/* A graph of the whole iteration starts when all micro-batches of its step lie in its buffers. Each has a mask of a byte for
 * every pair of positions: the loader's process copies it into a batch, and from there, ordinary memory, it goes to the GPU
 * once for every chunk.   Source: [MegatronCore] full_cuda_graph.py (data_read), datasets/gpt_dataset.py */
static double mask_reads_s(const Spec *spec)
{
    const SpecHost *host = &spec->cluster.host;
    const double link = spec->cluster.accelerator.host_link_bytes_per_s,
                 mask = spec->training.micro_batch * pow(spec->training.sequence_length, 2);
    if (!spec->execution.framework.host.reads_masks ||
        strstr(spec->execution.cuda_graph, "full_iteration") == NULL)
        return 0;
    const double copies_s =
        link > 0 ? spec->parallel.virtual_stages * mask / (host->pageable_frac * link) : 0;
    return spec_microbatches(spec) * (2 * mask / host->core_bytes_per_s + copies_s);
}

static void fill_once_a_step(const Spec *spec, SimPlan *plan)
{
    if (spec->execution.framework.optimizer.grad_norm != SPEC_GRAD_NORM_NONE &&
        spec->parallel.data_scheme == SPEC_DATA_ALLREDUCE) {
        plan->grad_norm = step_collective(
            spec,
            &(CostCollective){.op = COST_ALL_REDUCE, .bytes = 4, .group = cost_group(spec, COST_RANKS_ALL)},
            SIM_PART_DATA_COMM);
    }
    if (spec_validates_later(spec)) {
        fill_post_validation(spec, plan);
    }
    plan->overhead.part_ps[SIM_PART_OTHER] =
        sim_ps(spec->execution.framework.host.step_overhead_s + mask_reads_s(spec));
}

bool sim_step_supports(const Spec *spec, GError **error)
{
    if (spec->offload.activation_layers > 0 && spec->cluster.accelerator.host_link_bytes_per_s <= 0) {
        g_set_error(
            error, ORR_ERROR, ORR_ERROR_INPUT,
            "offload.activation_layers: %d, but host_link_bytes_per_s of %s is not known; give it, or "
            "leave the field out",
            spec->offload.activation_layers, spec->cluster.accelerator.name);
        return false;
    }
    return true;
}

static bool fill_layers(Step *step, GError **error)
{
    Spec one_copy = *step->spec;
    if (step->plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL) {
        one_copy.parallel.virtual_stages = 1;
    }
    return spec_stage_layers(&one_copy, step->layers, error);
}

/* Forward of one micro-batch and backward of another at once: the kernels of both share the SMs, so they take as
 * long as one after the other; the all-to-all of each hides behind the other's kernels. [DeepSeekV3] */
static SimWork overlapped_pair(const SimStage *ahead, const SimStage *back)
{
    SimWork pair = {0};
    int64_t compute_ps = 0;
    for (int i = 0; i < ahead->segment_count; i++) {
        step_add_work(&pair, &ahead->segments[i].forward);
    }
    for (int i = 0; i < back->segment_count; i++) {
        const SimSegment *segment = &back->segments[i];
        step_add_work(&pair, &segment->recompute);
        step_add_work(&pair, &segment->backward_input);
        step_add_work(&pair, &segment->backward_weight);
    }
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        compute_ps = sim_sum(compute_ps, part == SIM_PART_EXPERT_COMM ? 0 : pair.part_ps[part]);
    }
    pair.part_ps[SIM_PART_EXPERT_COMM] = MAX(0, pair.part_ps[SIM_PART_EXPERT_COMM] - compute_ps);
    return pair;
}

static bool exchanges(const SimStage *stage)
{
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        if (segment->forward.part_ps[SIM_PART_EXPERT_COMM] > 0 ||
            segment->backward_input.part_ps[SIM_PART_EXPERT_COMM] > 0) {
            return true;
        }
    }
    return false;
}

/* Orders of one copy that may run a forward beside a backward: schedules with pairs, and files that say so. */
static bool pairs_in_v(const Spec *spec)
{
    return sim_schedule_has(sim_schedule_at((int)spec->parallel.schedule), SIM_TRAIT_PAIRS) ||
           spec->parallel.schedule == SPEC_SCHEDULE_FILE;
}

/* The stage whose backwards run beside forwards of `stage`: the rank's other one, or what given orders say. */
static int pair_of(const SimPlan *plan, int stage)
{
    int rank = 0, chunk = 0;
    sim_place_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, stage, &rank, &chunk);
    for (int64_t i = 0; plan->orders != NULL && i < plan->orders[rank].count; i++) {
        const SimPassOp *op = &plan->orders[rank].ops[i];
        if (op->pass == SIM_PASS_FORWARD_BACKWARD && op->chunk == chunk) {
            return sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank,
                                op->chunk2);
        }
    }
    return plan->shape.chunks != 2 ? stage
                                   : sim_stage_of(plan->schedule->placement, plan->shape.ranks,
                                                  plan->shape.chunks, rank, 1 - chunk);
}

/* The second copy of a bidirectional model is the first one again, from the last rank to the first. */
static void copy_stages(Step *step, int stages)
{
    for (int stage = step->stages; stage < stages; stage++) {
        step->plan->stages[stage] = step->plan->stages[stage - step->stages];
        step->params[stage] = step->params[stage - step->stages];
    }
    const bool copies = step->stages < stages;
    for (int stage = 0; stage < stages && (copies || pairs_in_v(step->spec)); stage++) {
        SimStage *ahead = &step->plan->stages[stage];
        const SimStage *back = &step->plan->stages[pair_of(step->plan, stage)];
        if (copies || exchanges(ahead) || exchanges(back)) {
            ahead->overlapped_pair = overlapped_pair(ahead, back);
        }
    }
}

int sim_plan_model_stages(const SimPlan *plan)
{
    const bool copies = plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL;
    return plan->shape.ranks * (copies ? 1 : plan->shape.chunks);
}

bool sim_step_plan(const Spec *spec, OrrArena *arena, SimPlan *ret_plan, GError **error)
{
    SimPlan plan = {0};
    Step *step = ORR_ARENA_NEW(arena, Step, 1); /* large: threads may have little stack */
    step->spec = spec;
    step->arena = arena;
    step->plan = &plan;
    if (!sim_step_supports(spec, error) || !step_fill_schedule(spec, arena, &plan, error)) {
        return false;
    }
    const int stages = plan.shape.ranks * plan.shape.chunks;
    step->stages = sim_plan_model_stages(&plan);
    step->layers = ORR_ARENA_NEW(arena, int, stages);
    step->groups = ORR_ARENA_NEW(arena, CostLayerGroups, step->stages);
    if (!fill_layers(step, error)) {
        return false;
    }
    cost_shape_init(&step->shape, spec);
    plan.stages = ORR_ARENA_NEW(arena, SimStage, stages);
    plan.ranks = ORR_ARENA_NEW(arena, SimRankPlan, plan.shape.ranks);
    step->params = ORR_ARENA_NEW(arena, StepParams *, stages);
    fill_policies(spec, &plan);
    for (int stage = 0, layer = 0; stage < step->stages; stage++) {
        if (spec->model.list.text != NULL) {
            step_fill_list(step, stage, layer);
        } else {
            step_fill_stage(step, stage, layer);
        }
        step_fill_data(step, stage);
        step_fill_offload(step, stage);
        layer += step->layers[stage];
    }
    copy_stages(step, stages);
    step_fill_deferred_head(step);
    for (int stage = 0; stage < stages; stage++) {
        fill_hops(step, stage);
    }
    for (int rank = 0; rank < plan.shape.ranks; rank++) {
        step_fill_rank(step, rank);
    }
    fill_once_a_step(spec, &plan);
    step_fill_limits(spec, &plan);
    if (!step_apply_scheme(step, error)) {
        return false;
    }
    sim_plan_choose_orders(&plan, arena);
    *ret_plan = plan;
    return true;
}
