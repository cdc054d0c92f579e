/* step/offload.c - what each piece of a stage moves to the host and the disks and back, and what a rank keeps where. */
#include <math.h>

#include "costmodel/offload.h"
#include "costmodel/states.h"
#include "step/fill.h"

/* Rows behind the standard ones. */
enum { ROW_IN = SIM_RESOURCE_COUNT, ROW_OUT, ROW_BOTH_WAYS, ROW_DRAM, ROW_READ, ROW_WRITE, ROW_COUNT };

static SimWork work_of(SimPart part, double seconds)
{
    SimWork work = {0};
    work.part_ps[part] = seconds > 0 ? sim_ps(seconds) : 0;
    return work;
}

static int64_t common_multiple(int64_t a, int64_t b)
{
    int64_t divisor = a;
    for (int64_t rest = b; rest != 0;) {
        const int64_t next = divisor % rest;
        divisor = rest;
        rest = next;
    }
    return a / divisor * b;
}

/* A rate as the rows count it: in bytes/s, or the power of two of them in which the host's fastest part can be said; a
 * multiple of all that share, so that what one of them gets is a whole number, folded or not. */
static int64_t amount_of(const CostHost *host, double rate)
{
    const double ways = fmax(fmax(host->root, host->both_ways), fmax(host->nvme_read, host->nvme_write));
    const double fastest = fmax(ways, fmax(host->dram, host->optimizer));
    const double over = fastest / (double)(SIM_MAX_CAPACITY / 2);
    const int64_t sharers =
        common_multiple(host->root_gpus, common_multiple(host->socket_gpus, host->node_gpus));
    const double amount = over > 1 ? ldexp(rate, -(int)ceil(log2(over))) : rate;
    return llround(fmax(1, amount / (double)sharers)) * sharers;
}

/* Bytes between GPU and host: through a port that others may share, and through the socket's memory. */
static SimWork copy_at(const CostHost *host, double bytes, double rate, int row)
{
    SimWork work = work_of(SIM_PART_OFFLOAD, bytes / rate);
    if (bytes <= 0)
        return work;
    sim_work_hold(&work, row, SIM_SHARE_FAIR, amount_of(host, rate));
    sim_work_hold(&work, ROW_BOTH_WAYS, SIM_SHARE_FAIR, amount_of(host, rate));
    sim_work_hold(&work, ROW_DRAM, SIM_SHARE_FAIR, amount_of(host, rate));
    return work;
}

static SimWork copy_of(const CostHost *host, double bytes, int row)
{
    return copy_at(host, bytes, host->copy, row);
}

/* Seconds of the host's cores at work on its memory. */
static SimWork host_work(const CostHost *host, SimPart part, double seconds)
{
    SimWork work = work_of(part, seconds);
    if (seconds > 0)
        sim_work_hold(&work, ROW_DRAM, SIM_SHARE_FAIR, amount_of(host, host->optimizer));
    return work;
}

static SimWork disk_work(const CostHost *host, double bytes, int row)
{
    const double rate = row == ROW_READ ? host->own_read : host->own_write;
    SimWork work = work_of(SIM_PART_OFFLOAD, bytes / rate);
    if (bytes <= 0)
        return work;
    sim_work_hold(&work, row, SIM_SHARE_FAIR, amount_of(host, rate));
    sim_work_hold(&work, ROW_DRAM, SIM_SHARE_FAIR, amount_of(host, rate));
    return work;
}

static void fill_resources(Step *step, const CostHost *host)
{
    SimPlan *plan = step->plan;
    SimPlanResource *rows = ORR_ARENA_NEW(step->arena, SimPlanResource, ROW_COUNT);
    const SimPlanResource *standard = sim_standard_resources(NULL);
    for (int i = 0; i < SIM_RESOURCE_COUNT; i++)
        rows[i] = standard[i];
    rows[ROW_IN] = (SimPlanResource){"port to the GPUs", amount_of(host, host->root), host->root_gpus};
    rows[ROW_OUT] = (SimPlanResource){"port from the GPUs", amount_of(host, host->root), host->root_gpus};
    rows[ROW_BOTH_WAYS] = (SimPlanResource){"host link", amount_of(host, host->both_ways), 1};
    rows[ROW_DRAM] = (SimPlanResource){"host memory", amount_of(host, host->dram), host->socket_gpus};
    rows[ROW_READ] = (SimPlanResource){"disk reads", amount_of(host, host->nvme_read), host->node_gpus};
    rows[ROW_WRITE] = (SimPlanResource){"disk writes", amount_of(host, host->nvme_write), host->node_gpus};
    plan->resources = rows;
    plan->resource_count = ROW_COUNT;
    plan->rate_grain = 1; /* many share a row, and a 1,024th of a copy's rate may be all that one gets */
}

/* What a node holds below its GPUs: its own capacity, of all its ranks. */
static void fill_tiers(Step *step)
{
    const SpecCluster *cluster = &step->spec->cluster;
    SimTier *tiers = ORR_ARENA_NEW(step->arena, SimTier, SIM_TIER_COUNT);
    int count = 0;
    const SimTier *standard = sim_standard_tiers(&count);
    for (int i = 0; i < count; i++)
        tiers[i] = standard[i];
    tiers[SIM_TIER_HOST].capacity_bytes = llround(cluster->host.dram_bytes);
    tiers[SIM_TIER_NVME].capacity_bytes = llround(cluster->host.nvme_bytes);
    step->plan->tiers = tiers;
    step->plan->tier_count = count;
    for (int i = 0; i < count; i++)
        step->plan->tier_sharers[i] = i == SIM_TIER_GPU ? 1 : cluster->gpus_per_node;
}

/* Share of the parameters whose optimizer runs on the host. */
static double host_share(const Spec *spec)
{
    return spec->offload.optimizer.tier == SPEC_TIER_GPU
               ? 0
               : spec->offload.optimizer.fraction * spec->offload.ratio;
}

static bool returned(const Spec *spec)
{
    return spec->execution.framework.optimizer.host_gradients == SPEC_HOST_GRADIENTS_RETURNED;
}

/* Gradients leave as they are made; else they are summed on the GPU and leave behind the last micro-batch. */
static bool streams_gradients(const Spec *spec)
{
    const bool alone = cost_dense_replicas(spec) == 1 || spec->parallel.zero == 0;
    return spec->offload.gradients.tier != SPEC_TIER_GPU && host_share(spec) >= 1 &&
           spec->execution.framework.optimizer.host_gradients != SPEC_HOST_GRADIENTS_AT_STEP &&
           (alone || cost_reduces_each_microbatch(spec));
}

static bool windowed(const Spec *spec)
{
    return spec_offload_row(spec->offload.scheme)->windowed;
}

/* A layer's weights lie off the GPU between their uses. */
static bool fetches(const Spec *spec, bool layer)
{
    return spec->offload.weights.tier != SPEC_TIER_GPU && (windowed(spec) ? layer : spec->parallel.zero == 3);
}

/* Gradients that leave are checked and waited for as the software does. MemFerry changes forwards alone; schemes that update
 * beside the passes bring code of their own. */
static bool gradients_stop(const Spec *spec)
{
    return (cost_offload_is_staged(spec) || spec->offload.direct) && host_share(spec) > 0 &&
           spec->offload.gradients.tier != SPEC_TIER_GPU;
}

static bool reductions_overlap(const Spec *spec)
{
    return (spec->execution.overlap & SPEC_OVERLAP_GRAD_REDUCE) != 0;
}

/* What the GPU does before a gradient leaves, which copies its passes wait for, and where micro-batches are summed. Behind the
 * last matrix of a bucket the host launches on; vectors are small.   Ignores: reading and adding the sums (6 B)
 * Source: [DeepSpeedOffload] copy_grads_in_partition, reduce_ipg_grads, async_accumulate_grad_in_cpu_via_gpu */
static void fill_gradient(const Spec *spec, const CostHost *host, const StepParams *params, double count,
                          SimOffload *out)
{
    const SpecRecipeOptimizer *recipe = &spec->execution.framework.optimizer;
    const double bytes = count * cost_offload_gradient_bytes(spec),
                 sums = count * cost_weight_wire_bytes(spec);
    const int matrices = MAX(1, params->weights.tensors - params->weights.vectors);
    const bool some_wait = gradients_stop(spec) && returned(spec) && reductions_overlap(spec);
    const double ahead = some_wait ? bytes * (matrices - 1) / matrices : 0;
    out->grad_ahead = copy_of(host, ahead, ROW_OUT);
    out->grad_out = copy_of(host, bytes - ahead, ROW_OUT);
    if (!gradients_stop(spec))
        return;
    const double check = count * recipe->host_gradient_check_bytes;
    if (check > 0)
        out->check = work_of(SIM_PART_OFFLOAD,
                             cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE, check));
    if (returned(spec) && streams_gradients(spec)) {
        out->sum_in = copy_of(host, sums, ROW_IN);
        out->sum_out = copy_of(host, sums, ROW_OUT);
    }
}

static void fill_update(const Spec *spec, const CostHost *host, const StepParams *params, SimOffload *out)
{
    const double count = cost_shard_count(spec, &params->weights) * host_share(spec);
    const double gradient =
        count * (cost_offload_gradient_bytes(spec) - cost_offload_gradient_return_bytes(spec));
    const double states = count * cost_offload_state_bytes(spec);
    const double weights = count * cost_weight_wire_bytes(spec);
    const double scaling_s = cost_host_scaling_s(spec, count); /* else with each piece */
    const bool apart = cost_offload_is_staged(spec);
    fill_gradient(spec, host, params, count, out);
    out->scale = host_work(host, SIM_PART_OPTIMIZER, apart ? scaling_s : 0);
    out->update =
        host_work(host, SIM_PART_OPTIMIZER, cost_host_optimizer_s(spec, count) + (apart ? 0 : scaling_s));
    if (sim_work_duration_ps(&out->sum_in) == 0) /* a 16-bit gradient read, its fp32 sum read and written */
        out->accumulate = host_work(host, SIM_PART_OFFLOAD, 10 * count / host->optimizer);
    if (streams_gradients(spec))
        out->grad_bytes = llround(cost_shard_count(spec, &params->weights) * cost_weight_wire_bytes(spec));
    if (spec->offload.optimizer.tier == SPEC_TIER_NVME) {
        const double sums = spec->offload.gradients.tier == SPEC_TIER_NVME ? gradient : 0;
        const double copies = spec->offload.weights.tier == SPEC_TIER_NVME ? weights : 0;
        out->state_in = disk_work(host, states + sums, ROW_READ);
        out->state_out = disk_work(host, states + sums + copies, ROW_WRITE);
    }
}

/* Updated weights that passes find on the GPU, which are those that no pass fetches. */
static void fill_weight_in(const Spec *spec, const CostHost *host, const StepParams *params, bool layer,
                           bool stays, SimOffload *out)
{
    const double left = fetches(spec, layer) && !stays ? 1 - spec->offload.weights.fraction : 1;
    const double bytes =
        cost_shard_count(spec, &params->weights) * host_share(spec) * left * cost_offload_weight_bytes(spec);
    out->weight_in =
        copy_at(host, bytes, cost_host_casts_weights(spec) ? host->ordinary : host->copy, ROW_IN);
}

static void fill_fetch(const Spec *spec, const CostHost *host, const StepParams *params, SimOffload *out)
{
    const double fraction = spec->offload.weights.fraction;
    const double count = cost_shard_count(spec, &params->weights) * fraction;
    const double frozen = cost_held_bytes(spec, &params->frozen) * fraction; /* as they are stored */
    const double bytes = count * cost_offload_shard_bytes(spec) + frozen;
    const bool again = spec->parallel.zero == 3 && cost_regathers(spec);
    out->weight_bytes = llround((count * cost_weight_wire_bytes(spec) + frozen) / MAX(1, params->tiles));
    out->fetch = copy_of(host, bytes, ROW_IN);
    out->backward_fetch = copy_of(host, (again ? 2 : 1) * bytes, ROW_IN);
    if (spec->offload.weights.tier == SPEC_TIER_NVME) {
        out->read = disk_work(host, bytes, ROW_READ);
        out->backward_read = disk_work(host, (again ? 2 : 1) * bytes, ROW_READ);
    }
}

/* Layers of weights on the GPU at once: given, or the fewest whose forwards hide a copy, (w - 1) f >= t. */
static int window_layers(const Spec *spec, const SimStage *stage, const SimOffload *offloads)
{
    const SimSegment *layer = &stage->segments[stage->first_layer];
    if (!windowed(spec) || stage->layers == 0 || spec->offload.weights.tier == SPEC_TIER_GPU)
        return 0;
    if (spec->offload.window_layers > 0)
        return MIN(spec->offload.window_layers, stage->layers);
    const int64_t forward_ps = sim_work_duration_ps(&layer->forward);
    const int64_t copy_ps = offloads[stage->first_layer].fetch.part_ps[SIM_PART_OFFLOAD];
    const int64_t hides = forward_ps > 0 ? sim_sum(copy_ps, forward_ps - 1) / forward_ps : stage->layers;
    return (int)MIN(sim_sum(1, hides), stage->layers);
}

/* Pieces whose gradients leave together: units of ZeRO-3 and layers of a window by themselves, else buckets as they are
 * reduced. [segments] */
static StepParams *pieces_of(const Step *step, int stage)
{
    const Spec *spec = step->spec;
    const int count = step->plan->stages[stage].segment_count;
    const double limit = step_policy(spec).bucket_bytes, wire = cost_gradient_wire_bytes(spec);
    const bool apart = spec->parallel.zero >= 3 || windowed(spec) || spec->offload.direct;
    StepParams *pieces = ORR_ARENA_NEW(step->arena, StepParams, count), bucket = {0};
    for (int i = count - 1; i >= 0; i--) {
        step_add_params(&bucket, &step->params[stage][i]);
        const bool full = limit > 0 && cost_weights_count(&bucket.weights) * wire >= limit;
        if (apart || full || i == 0) {
            pieces[i] = bucket;
            bucket = (StepParams){0};
        }
    }
    return pieces;
}

static void fill_order(const Spec *spec, SimPlan *plan, int window)
{
    static const SimUpdateOrder orders[] = {[SPEC_UPDATE_BARRIER] = SIM_UPDATE_BARRIER,
                                            [SPEC_UPDATE_LAYERWISE] = SIM_UPDATE_LAYERWISE,
                                            [SPEC_UPDATE_DELAYED] = SIM_UPDATE_DELAYED,
                                            [SPEC_UPDATE_FIRST] = SIM_UPDATE_FIRST};
    const int depth = spec->offload.prefetch_depth;
    plan->offload.on = true;
    plan->offload.update = orders[spec->offload.update];
    plan->offload.each_microbatch = streams_gradients(spec);
    plan->offload.passes_wait = gradients_stop(spec) && !reductions_overlap(spec) && returned(spec);
    plan->offload.one_at_a_time = cost_host_casts_weights(spec);
    plan->offload.update_beside_copies = spec->offload.overlap_update;
    plan->offload.reads_beside = spec->offload.aio.pipeline_read;
    plan->offload.writes_beside = spec->offload.aio.pipeline_write;
    plan->offload.gradients_at_step =
        spec->execution.framework.optimizer.host_gradients == SPEC_HOST_GRADIENTS_AT_STEP &&
        spec->offload.update != SPEC_UPDATE_LAYERWISE;
    plan->offload.window = MAX(plan->offload.window, window);
    if (spec->parallel.zero == 3 && spec->offload.weights.tier != SPEC_TIER_GPU) {
        plan->prefetch_units = depth > 0 ? MAX(plan->prefetch_units, 1) : 0;
        plan->offload.copy_ahead = depth > 1 ? 1 : 0;
        plan->offload.read_ahead = depth > 2 ? 2 : plan->offload.copy_ahead;
    }
}

/* Activations use the same link, memory and disks. Through the host to the disks: as fast as the slower of the two. */
static void share_activations(const Spec *spec, const CostHost *host, SimStage *stage)
{
    const bool disks = spec->offload.activations.tier == SPEC_TIER_NVME;
    const double copy = cost_checkpoints_wait(spec) ? host->ordinary : host->copy;
    stage->offloaded_to_disks = disks;
    for (int i = 0; i < stage->offloaded; i++) {
        SimSegment *segment = &stage->segments[stage->first_layer + i];
        const double bytes = (double)segment->leaving_bytes;
        const double out = disks ? fmin(copy, host->own_write) : copy;
        const double in = disks ? fmin(copy, host->own_read) : copy;
        segment->copy_out = copy_at(host, bytes, out, ROW_OUT);
        segment->copy_back = copy_at(host, bytes, in, ROW_IN);
        if (disks && bytes > 0) {
            sim_work_hold(&segment->copy_out, ROW_WRITE, SIM_SHARE_FAIR, amount_of(host, out));
            sim_work_hold(&segment->copy_back, ROW_READ, SIM_SHARE_FAIR, amount_of(host, in));
        }
    }
}

void step_fill_offload(Step *step, int stage)
{
    const Spec *spec = step->spec;
    SimStage *out = &step->plan->stages[stage];
    const CostHost host = cost_host(spec);
    if (spec_offloads_states(&spec->offload) || spec->offload.activations.tier == SPEC_TIER_NVME) {
        fill_resources(step, &host);
        fill_tiers(step);
        share_activations(spec, &host, out);
    }
    if (!spec_offloads_states(&spec->offload))
        return;
    const StepParams *pieces = pieces_of(step, stage);
    SimOffload *offloads = ORR_ARENA_NEW(step->arena, SimOffload, out->segment_count);
    for (int i = 0; i < out->segment_count; i++) {
        const bool layer = i >= out->first_layer && i < out->first_layer + out->layers;
        fill_update(spec, &host, &pieces[i], &offloads[i]);
        if (fetches(spec, layer))
            fill_fetch(spec, &host, &step->params[stage][i], &offloads[i]);
        out->segments[i].offload = &offloads[i];
    }
    const int window = window_layers(spec, out, offloads);
    for (int i = 0; i < out->segment_count; i++) {
        const bool layer = i >= out->first_layer && i < out->first_layer + out->layers;
        fill_weight_in(spec, &host, &pieces[i], layer, layer && i - out->first_layer < window, &offloads[i]);
    }
    if (spec->offload.direct && cost_dense_replicas(spec) == 1)
        step_choose_direct(step, stage, host.copy, offloads);
    fill_order(spec, step->plan, window);
}

/* Weights of a rank's layers beyond the window, which are on the host alone. */
static double beyond_window_bytes(const Step *step, int rank)
{
    const SimPlan *plan = step->plan;
    double bytes = 0;
    int window = plan->offload.window;
    for (int chunk = 0; chunk < plan->shape.chunks; chunk++) {
        const int stage =
            sim_stage_of(plan->schedule->placement, plan->shape.ranks, plan->shape.chunks, rank, chunk);
        const SimStage *held = &plan->stages[stage];
        for (int i = 0; i < held->layers; i++) {
            window--;
            bytes += window < 0 ? (double)held->segments[held->first_layer + i].offload->weight_bytes : 0;
        }
    }
    return bytes;
}

static void move(SimRankPlan *out, SpecTier tier, SimMem from, double gpu_bytes, double bytes)
{
    const SimMem to = tier == SPEC_TIER_NVME ? SIM_MEM_NVME : SIM_MEM_HOST;
    out->static_bytes[from] -= MIN(out->static_bytes[from], llround(gpu_bytes));
    out->static_bytes[to] += llround(bytes);
}

static bool sums_return(const Step *step)
{
    const Spec *spec = step->spec;
    return gradients_stop(spec) && returned(spec) && streams_gradients(spec) &&
           step->plan->shape.microbatches > 1;
}

void step_offload_rank(const Step *step, int rank, const StepParams *params, SimRankPlan *out)
{
    const Spec *spec = step->spec;
    const SpecOffload *offload = &spec->offload;
    if (!spec_offloads_states(offload))
        return;
    const double share = host_share(spec), own = cost_shard_count(spec, &params->weights);
    const double weights = own * cost_weight_wire_bytes(spec) + cost_held_bytes(spec, &params->frozen);
    const CostStates states = cost_states(spec, &params->weights);
    CostWeights rest = params->weights;
    rest.dense *= 1 - share;
    rest.expert *= 1 - share;
    out->optimizer.part_ps[SIM_PART_OPTIMIZER] = share < 1 ? sim_ps(cost_optimizer_s(spec, &rest)) : 0;
    move(out, offload->optimizer.tier, SIM_MEM_OPTIMIZER, share * states.optimizer_bytes,
         share * own * cost_offload_state_bytes(spec));
    /* the host sums in fp32, or keeps 16-bit sums beside the fp32 ones of the last micro-batch */
    move(out, offload->gradients.tier, SIM_MEM_GRADIENTS,
         streams_gradients(spec) ? states.gradients_bytes : 0,
         offload->gradients.tier != SPEC_TIER_GPU ? (sums_return(step) ? 6 : 4) * own * share : 0);
    if (offload->optimizer.tier == SPEC_TIER_NVME) /* tiles on their way in, at work and on their way out */
        out->static_bytes[SIM_MEM_HOST] +=
            llround(3 * fmin(offload->subgroup_parameters, own) * (cost_offload_state_bytes(spec) + 4));
    if (step->plan->offload.window > 0)
        move(out, offload->weights.tier, SIM_MEM_WEIGHTS, beyond_window_bytes(step, rank), weights);
    else if (fetches(spec, true))
        move(out, offload->weights.tier, SIM_MEM_WEIGHTS, offload->weights.fraction * weights,
             offload->weights.fraction * weights);
    else if (share > 0 && cost_recipe(spec).master > 0 && offload->direct)
        move(out, SPEC_TIER_HOST, SIM_MEM_WEIGHTS, 0, own * cost_weight_wire_bytes(spec));
}
