/* workload/costs.c - see costs.h. */
#include "workload/costs.h"

#include <math.h>

#include "costmodel/activations.h"
#include "costmodel/collective.h"
#include "costmodel/params.h"
#include "sim/picoseconds.h"

double workload_least_flops(const Spec *spec, const SpecModel *model, const SpecPhase *phase,
                            const Sequences *sequences)
{
    const SpecWorkload *workload = &spec->workload;
    const double table = model->tied_embeddings ? 0 : (double)model->vocab * model->hidden,
                 params = fmax(0, cost_parameters(model, 0, true) - table),
                 tokens = sequences->count * sequences->mean;
    switch (phase->kind) {
    case SPEC_PHASE_TRAIN:
        return workload->epochs * (spec->training.adapter.given ? 4.0 : 6.0) * params * tokens;
    case SPEC_PHASE_FORWARD:
        return 2 * params * tokens;
    case SPEC_PHASE_GENERATE:
        return 2 * params * workload->generation.prompts * workload->generation.samples_per_prompt *
               sequences->answer;
    default:
        return 0;
    }
}

/* --- forwards --- */

/* Once through a model stage, without its message. */
static int64_t stage_ps(const SimPlan *plan, const SimStage *stage)
{
    int64_t ps = 0, gathered_ps = 0;
    for (int i = 0; i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        const int64_t forward_ps = sim_work_duration_ps(&segment->forward),
                      gather_ps = plan->zero == 3 ? sim_work_duration_ps(&segment->param_gather) : 0;
        if (plan->zero == 3 && plan->prefetch_units > 0 && i > 0)
            ps = sim_sum(ps, MAX(gathered_ps, gather_ps)); /* beside the forward before */
        else
            ps = sim_sum(ps, sim_sum(gathered_ps, gather_ps));
        gathered_ps = forward_ps;
    }
    return sim_sum(ps, gathered_ps);
}

int64_t workload_forward_ps(const SimPlan *plan)
{
    const int ranks = plan->shape.ranks, stages = sim_plan_model_stages(plan);
    int64_t once_ps = 0, most_ps = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int64_t rank_ps = 0;
        for (int stage = 0; stage < stages; stage++) {
            int at = 0, chunk = 0;
            sim_place_of(plan->schedule->placement, ranks, plan->shape.chunks, stage, &at, &chunk);
            if (at != rank)
                continue;
            const int64_t own_ps = stage_ps(plan, &plan->stages[stage]),
                          send_ps = sim_work_duration_ps(&plan->stages[stage].send_next);
            once_ps = sim_sum(once_ps, sim_sum(own_ps, send_ps));
            rank_ps = sim_sum(rank_ps, sim_sum(own_ps, plan->p2p_blocking ? send_ps : 0));
        }
        most_ps = MAX(most_ps, rank_ps);
    }
    return sim_sum(once_ps, sim_product(most_ps, plan->shape.microbatches - 1));
}

/* --- weights --- */

double workload_weight_bytes(const Spec *spec)
{
    const double bytes = spec->training.precision == SPEC_PRECISION_FP8 ? 1 : 2;
    return bytes * cost_parameters(&spec->model, 0, false);
}

double workload_held_bytes(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const double replicas = parallel->zero == 3 ? parallel->data : 1,
                 expert_replicas = fmax(1, replicas / MAX(1, parallel->expert));
    const CostModelPart ends[] = {COST_PART_EMBEDDING, COST_PART_HEAD};
    CostWeights sum = {0};
    for (int i = 0; i < spec->model.layers + 2; i++) {
        const CostParams params = i < 2 ? cost_part_params(&spec->model, ends[i], 0)
                                        : cost_part_params(&spec->model, COST_PART_LAYER, i - 2);
        const CostWeights weights = cost_rank_weights(&params, parallel);
        cost_weights_add(&sum, &weights);
    }
    return 2 * (sum.dense / replicas + sum.expert / expert_replicas) / MAX(1, parallel->pipeline);
}

/* So many neighbours, as many of them in a scale-up domain as fit. */
static CostGroup neighbours(const SpecCluster *cluster, int ranks)
{
    const int domain =
        MAX(1, cluster->scale_up_domain_gpus > 0 ? cluster->scale_up_domain_gpus : cluster->gpus_per_node);
    int inside = MIN(ranks, domain);
    while (ranks % inside != 0)
        inside--;
    return (CostGroup){.ranks = ranks, .per_domain = inside, .nic_sharers = 1};
}

static double collective_s(const Spec *spec, CostCollectiveOp op, double bytes, int ranks)
{
    const CostCollective collective = {.op = op, .bytes = bytes, .group = neighbours(&spec->cluster, ranks)};
    return ranks < 2 ? 0 : cost_collective_s(&spec->cluster, &collective);
}

/* GPUs over which one copy of the weights is spread. */
static int holders_of(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const int layout = parallel->tensor * parallel->pipeline * MAX(1, parallel->expert);
    return parallel->zero == 3 ? spec_gpus(spec) : MIN(layout, spec_gpus(spec));
}

/* Tensors of a checkpoint: matrices and norms of each layer, those of each expert by themselves. */
static double tensors_of(const SpecModel *model)
{
    const double matrices = model->gated_mlp ? 3 : 2,
                 attention = model->mla.kv_lora_rank > 0 ? (model->mla.q_lora_rank > 0 ? 7 : 5) : 4;
    double sum = 3; /* embedding, last norm, head */
    for (int i = 0; i < model->layers; i++) {
        const SpecMoeRun moe = cost_layer_moe(model, i);
        sum += 2 + attention +
               (cost_layer_has_experts(model, i)
                    ? 1 + matrices * (moe.experts + (model->moe.shared_experts > 0 ? 1 : 0))
                    : matrices);
    }
    return sum;
}

/* Through all that receive, from a GPU of another scale-up domain. */
static double broadcast_s(const Spec *to, double bytes, int receivers)
{
    CostGroup group = neighbours(&to->cluster, receivers);
    group.ranks += group.per_domain;
    const CostCollective collective = {.op = COST_BROADCAST, .bytes = bytes, .group = group};
    return cost_collective_s(&to->cluster, &collective);
}

double workload_sync_s(const Spec *from, const Spec *to, bool same, SpecSyncWay way, double *ret_bytes)
{
    const double bytes = workload_weight_bytes(to);
    const int shards = MAX(1, to->parallel.tensor * to->parallel.pipeline); /* of a receiver's replica */
    const int owners = spec_gpus(from), receivers = spec_gpus(to), holders = holders_of(from);
    const double gather_s = collective_s(from, COST_ALL_GATHER, bytes, holders);
    const double load_s =
        spec_host_s(&to->cluster.host, to->execution.framework.engine.load_host_s) * tensors_of(&to->model);
    *ret_bytes = bytes;
    if (same)
        return load_s + gather_s;
    if (way == SPEC_SYNC_BROADCAST)
        return load_s + gather_s + broadcast_s(to, bytes, receivers);
    const double link =
        fmin(from->cluster.scale_out_bytes_per_s_per_gpu, to->cluster.scale_out_bytes_per_s_per_gpu);
    const double parts = MAX(1, MIN(MIN(holders, owners), receivers));
    return load_s + (link > 0 ? bytes / parts / link : 0) +
           collective_s(to, COST_BROADCAST, bytes / shards, MAX(1, receivers / shards));
}

double workload_logits_bytes(const Spec *spec, double tokens)
{
    const double own = tokens / MAX(1, spec->parallel.context * spec->parallel.tensor);
    return spec->model.scalar_head ? 0 : 2 * own * (double)spec->model.vocab;
}

double workload_cache_bytes(const Spec *spec, double tokens)
{
    const SpecModel *model = &spec->model;
    const SpecParallel *parallel = &spec->parallel;
    const double ranks = MAX(1, parallel->context * parallel->tensor * parallel->pipeline);
    return 2 * tokens * model->layers * model->kv_heads * (cost_qk_dim(model) + cost_v_dim(model)) / ranks;
}

double workload_layer_bytes(const Spec *spec)
{
    Spec plain = *spec;
    CostShape shape;
    double most = 0;
    plain.training.recompute = (SpecRecompute){.mode = SPEC_RECOMPUTE_NONE};
    cost_shape_init(&shape, &plain);
    for (int i = 0; i < spec->model.layers; i++) {
        const CostActivations layer = cost_layer_activations(&shape, i, i);
        most = fmax(most, layer.kept_bytes + layer.forward_temp_bytes);
    }
    return most;
}

#define FRESH_BYTES_PER_S 2.2e9
#define BACK_BYTES_PER_S  10.8e9

static double copied_s(const Spec *spec, double most, double bytes)
{
    const double link = spec->cluster.accelerator.host_link_bytes_per_s;
    return link > 0 ? bytes / fmin(most, link) : 0;
}

double workload_leave_s(const Spec *spec, SpecHostMemory memory, double bytes_per_gpu)
{
    return copied_s(spec, memory == SPEC_HOST_FRESH ? FRESH_BYTES_PER_S : INFINITY, bytes_per_gpu);
}

double workload_return_s(const Spec *spec, SpecHostMemory memory, double bytes_per_gpu)
{
    return copied_s(spec, memory == SPEC_HOST_FRESH ? BACK_BYTES_PER_S : INFINITY, bytes_per_gpu);
}
