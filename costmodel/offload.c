/* costmodel/offload.c - see offload.h. */
#include "costmodel/offload.h"

#include <math.h>

#include "costmodel/states.h"

static int ceil_div(int a, int b)
{
    return (a + b - 1) / b;
}

/* Source of what the keys mean: [DeepSpeedAio] */
static double asked_rate(const Spec *spec, double disks)
{
    const SpecAio *aio = &spec->offload.aio;
    const double under_way = aio->block_bytes * aio->queue_depth * aio->threads;
    const double latency_s = spec->cluster.host.nvme_latency_s;
    if (under_way <= 0 || disks <= 0)
        return disks;
    return aio->overlap_events ? fmin(disks, under_way / latency_s)
                               : under_way / (latency_s + under_way / disks);
}

CostHost cost_host(const Spec *spec)
{
    const SpecCluster *cluster = &spec->cluster;
    const SpecHost *host = &cluster->host;
    const int sockets = MAX(host->sockets, 1), gpus = MAX(cluster->gpus_per_node, 1);
    const int processes = ceil_div(gpus, sockets); /* of one socket */
    const double link = cluster->accelerator.host_link_bytes_per_s;
    const double port = host->pcie_root_bytes_per_s > 0 ? host->pcie_root_bytes_per_s : link;
    const double frac = spec->offload.pinned ? host->pinned_frac : host->pageable_frac;
    const double stream = host->dram_stream_frac * host->dram_bytes_per_s;
    const double own = (double)host->cores / sockets / processes;
    const double cores =
        host->core_bytes_per_s * (spec->offload.threads > 0 ? fmin(spec->offload.threads, own) : own);
    const double copy = frac * fmin(link, port);
    return (CostHost){.copy = copy,
                      .ordinary = fmin(copy, host->pageable_frac * fmin(link, port)),
                      .optimizer = fmin(stream, cores),
                      .root = frac * port,
                      .both_ways = 2 * host->duplex_frac * copy,
                      .dram = stream,
                      .nvme_read = host->nvme_read_bytes_per_s,
                      .nvme_write = host->nvme_write_bytes_per_s,
                      .own_read = asked_rate(spec, host->nvme_read_bytes_per_s),
                      .own_write = asked_rate(spec, host->nvme_write_bytes_per_s),
                      .root_gpus = MIN(MAX(host->gpus_per_pcie_root, 1), gpus),
                      .socket_gpus = processes,
                      .node_gpus = gpus};
}

bool cost_checkpoints_wait(const Spec *spec)
{
    const SpecRecomputeMode mode = spec->training.recompute.mode;
    return spec->execution.framework.kernels.pageable_checkpoints &&
           (mode == SPEC_RECOMPUTE_FULL || mode == SPEC_RECOMPUTE_SELECTIVE_LAYER);
}

bool cost_offload_is_staged(const Spec *spec)
{
    const SpecUpdateOrder order = spec->offload.update;
    return spec->parallel.zero < 3 && (order == SPEC_UPDATE_BARRIER || order == SPEC_UPDATE_DELAYED);
}

bool cost_host_casts_weights(const Spec *spec)
{
    return spec->execution.framework.optimizer.host_casts_weights && !spec->offload.fp32_transfer;
}

static double cost_host_scaling_bytes_per_parameter(const Spec *spec)
{
    return spec->offload.update != SPEC_UPDATE_LAYERWISE
               ? spec->execution.framework.optimizer.host_scaling_bytes
               : 0;
}

double cost_host_optimizer_bytes_per_parameter(const Spec *spec)
{
    const double moments = 8 * cost_optimizer_moments_ratio(spec->training.optimizer);
    return 2 * moments + 2 * 4 + 4 + (cost_host_casts_weights(spec) ? 6 : 0);
}

double cost_host_scaling_s(const Spec *spec, double parameters)
{
    return parameters * cost_host_scaling_bytes_per_parameter(spec) / cost_host(spec).optimizer;
}

double cost_host_optimizer_s(const Spec *spec, double parameters)
{
    const double passes = fmax(1, spec->execution.framework.optimizer.host_optimizer_passes);
    return passes * parameters * cost_host_optimizer_bytes_per_parameter(spec) / cost_host(spec).optimizer;
}

double cost_offload_gradient_bytes(const Spec *spec)
{
    const double own = spec->execution.framework.optimizer.host_gradient_bytes;
    const double width = spec->offload.fp32_transfer ? 4 : cost_weight_wire_bytes(spec);
    return fmax(own, width) + cost_offload_gradient_return_bytes(spec);
}

double cost_offload_gradient_return_bytes(const Spec *spec)
{
    const bool returns = spec->parallel.zero == 3 &&
                         spec->execution.framework.optimizer.host_gradients == SPEC_HOST_GRADIENTS_RETURNED;
    return returns ? cost_weight_wire_bytes(spec) : 0;
}

double cost_offload_weight_bytes(const Spec *spec)
{
    const double own =
        cost_offload_is_staged(spec) ? spec->execution.framework.optimizer.host_weight_bytes : 0;
    return spec->offload.fp32_transfer ? 4 : fmax(own, cost_weight_wire_bytes(spec));
}

double cost_offload_shard_bytes(const Spec *spec)
{
    const double own = spec->parallel.zero == 3 ? spec->execution.framework.optimizer.host_shard_bytes : 0;
    return fmax(own, cost_weight_wire_bytes(spec));
}

double cost_offload_state_bytes(const Spec *spec)
{
    const CostRecipe recipe = cost_recipe(spec);
    return fmax(recipe.master, 4) + recipe.moments * cost_optimizer_moments_ratio(spec->training.optimizer);
}

static int first_of(const CostOps *ops, CostModule module, CostOpKind kind)
{
    int i = 0;
    while (i < ops->count && (ops->op[i].module != module || ops->op[i].kind != kind))
        i++;
    return i;
}

static int core_of(const CostOps *ops)
{
    int i = 0;
    while (i < ops->count && ops->op[i].module != COST_MODULE_ATTENTION_CORE)
        i++;
    return i;
}

/* Modules, as recomputation and as Megatron-Core's offloading name them, that an op of the forward belongs to.
 * Source: [MegatronOffload] */
static unsigned bits_of(const CostOps *forward, int index)
{
    const bool before_core = index < core_of(forward);
    switch (forward->op[index].module) {
    case COST_MODULE_NORM:
        return SPEC_MODULE_LAYERNORM | (before_core ? SPEC_MODULE_ATTN_NORM : SPEC_MODULE_MLP_NORM);
    case COST_MODULE_ATTENTION_PROJECTION:
        return before_core ? SPEC_MODULE_QKV_LINEAR : SPEC_MODULE_ATTN_PROJ;
    case COST_MODULE_MLA_UP:
        return SPEC_MODULE_MLA_UP_PROJ;
    case COST_MODULE_ATTENTION_CORE:
        return SPEC_MODULE_CORE_ATTN;
    case COST_MODULE_MLP_LINEAR:
    case COST_MODULE_MLP_ACTIVATION:
        return SPEC_MODULE_MLP;
    case COST_MODULE_MOE_ACTIVATION:
        return SPEC_MODULE_MOE_ACT | SPEC_MODULE_MOE;
    case COST_MODULE_MOE:
        return SPEC_MODULE_MOE |
               (index == first_of(forward, COST_MODULE_MOE, COST_OP_GEMM) ? SPEC_MODULE_EXPERT_FC1 : 0u);
    case COST_MODULE_ROUTER:
        return SPEC_MODULE_MOE;
    case COST_MODULE_SHARED_EXPERT:
        return SPEC_MODULE_SHARED_EXPERTS | SPEC_MODULE_MOE;
    default:
        return 0;
    }
}

double cost_offload_module_bytes(const CostShape *shape, int layer, int layer_in_stage, unsigned modules)
{
    const CostRecomputeExtent extent = cost_recompute_extent(shape->spec, layer_in_stage);
    CostGraph graph;
    double bytes = 0;
    cost_graph_layer_in(shape, layer, layer_in_stage, &graph);
    const CostOps *forward = &graph.pass[COST_FORWARD];
    for (int i = 0; i < forward->kept_count; i++) {
        const CostTensor *tensor = &forward->kept[i];
        const bool leaves = modules == 0 || (bits_of(forward, tensor->kept_by) & modules) != 0;
        bytes += leaves && !cost_drops_tensor(shape->spec, forward, tensor, extent)
                     ? cost_kept_bytes(shape, tensor, extent)
                     : 0;
    }
    return bytes;
}

int cost_offload_tensors(const CostShape *shape, int layer, int layer_in_stage, double *ret_bytes)
{
    const CostRecomputeExtent extent = cost_recompute_extent(shape->spec, layer_in_stage);
    CostGraph graph;
    int count = 0;
    cost_graph_layer_in(shape, layer, layer_in_stage, &graph);
    const CostOps *forward = &graph.pass[COST_FORWARD];
    for (int i = 0; i < forward->kept_count; i++) {
        if (!cost_drops_tensor(shape->spec, forward, &forward->kept[i], extent)) {
            ret_bytes[count++] = cost_kept_bytes(shape, &forward->kept[i], extent);
        }
    }
    return count;
}
