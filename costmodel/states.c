/* costmodel/states.c - see states.h. */
#include <math.h>

#include "costmodel/memory_bound.h"
#include "costmodel/states.h"

/* In the order of SpecStatesRecipe; Source: docs/MODEL.md "Model states". */
static const CostRecipe RECIPES[SPEC_STATES_COUNT] = {
    [SPEC_STATES_MEGATRON_FP32_GRADS] = {2, 4, 4, 8},
    [SPEC_STATES_MEGATRON_FP16_GRADS] = {2, 2, 8, 8}, /* master and an fp32 copy of the gradients */
    [SPEC_STATES_MEGATRON_FP32] = {4, 4, 0, 8},
    [SPEC_STATES_ZERO_FP16] = {2, 2, 4, 8},
    [SPEC_STATES_BF16_FP32_ACC] = {2, 6, 4, 8}, /* bf16 gradients and their fp32 sum */
    [SPEC_STATES_FSDP_BF16] = {2, 2, 0, 4},
    [SPEC_STATES_FSDP_MIXED] = {4, 4, 0, 8},
    [SPEC_STATES_DEEPSPEED] = {2, 2, 4, 8},
    [SPEC_STATES_FP32_ADAM] = {4, 4, 0, 8},
    [SPEC_STATES_FP32_ADAM_NOTES] = {4, 4, 0, 12},
    [SPEC_STATES_MIXED_12] = {4, 2, 0, 6},
    [SPEC_STATES_DEEPSEEK_V3] = {1, 4, 4, 4},
    [SPEC_STATES_FP8_PRIMARY] = {2, 2, 4, 8},
    [SPEC_STATES_MEGATRON_BF16_GRADS] = {2, 2, 4, 8},
};

/* Megatron's gradients are summed in the type that the scenario or the framework asks for. */
static bool sums_in_gradient_dtype(SpecStatesRecipe recipe)
{
    return recipe == SPEC_STATES_MEGATRON_FP32_GRADS || recipe == SPEC_STATES_MEGATRON_BF16_GRADS;
}

CostRecipe cost_recipe(const Spec *spec)
{
    const SpecStates *states = &spec->training.states;
    const SpecPrecision precision = spec->training.precision;
    if (states->recipe == SPEC_STATES_CUSTOM) {
        return (CostRecipe){states->weights_bytes, states->gradients_bytes, states->master_bytes,
                            states->moments_bytes};
    }
    CostRecipe recipe = RECIPES[states->recipe];
    if (states->named)
        return recipe;
    const bool sums_apart = states->recipe == SPEC_STATES_DEEPSPEED && precision != SPEC_PRECISION_FP16 &&
                            (int)spec->training.gradient_dtype == SPEC_FP32;
    const SpecAdapter *adapter = &spec->training.adapter;
    if (precision == SPEC_PRECISION_FP32 || precision == SPEC_PRECISION_TF32) {
        recipe = RECIPES[SPEC_STATES_FP32_ADAM];
    } else if (adapter->given &&
               recipe.master <= 0) { /* no master copy: an optimizer keeps moments in its weights' type */
        recipe = RECIPES[adapter->dtype == SPEC_FP32 ? SPEC_STATES_FP32_ADAM : SPEC_STATES_FSDP_BF16];
    } else if (sums_apart) { /* DeepSpeed's BF16 optimizer keeps the fp32 sum beside the bf16 gradients */
        recipe.gradients += 4;
    } else if (sums_in_gradient_dtype(states->recipe) && (int)spec->training.gradient_dtype != SPEC_AUTO) {
        recipe.gradients = spec_dtype_bytes(spec->training.gradient_dtype);
    }
    return recipe;
}

double cost_optimizer_moments_ratio(SpecOptimizer optimizer)
{
    switch (optimizer) {
    case SPEC_OPTIMIZER_ADAM:
        return 1;
    case SPEC_OPTIMIZER_SGD:
        return 0;
    case SPEC_OPTIMIZER_ADAFACTOR: /* a row and a column vector for each matrix: negligible beside it */
        return 0;
    case SPEC_OPTIMIZER_ADAM8BIT: /* 1 + 1 bytes and fp32 scales for blocks of 256 */
        return (2 + 2 * 4.0 / 256) / 8;
    default: /* one moment: momentum, Lion, Muon */
        return 0.5;
    }
}

int cost_dense_replicas(const Spec *spec)
{
    return spec->parallel.data * spec->parallel.context;
}

int cost_expert_replicas(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const int ranks = parallel->data * parallel->context * parallel->tensor;
    const int used = parallel->expert * parallel->expert_tensor;
    return ranks / used > 0 ? ranks / used : 1;
}

/* Experts have fewer replicas than dense layers: their shards lie over as many of a group as divide those. */
int cost_shard_degree(const Spec *spec, int replicas)
{
    int shard = spec->parallel.zero_group_gpus;
    if (spec->parallel.zero == 0 || shard <= 0 || shard >= replicas) {
        return spec->parallel.zero == 0 ? 1 : replicas;
    }
    while (replicas % shard != 0) {
        shard -= 1;
    }
    return shard;
}

/* Buckets into which hooks copy gradients for the wire: beside the gradients, in the weights' type. Source: PyTorch's
 * DistributedDataParallel without gradient_as_bucket_view */
static double hook_bucket_bytes(const Spec *spec)
{
    const bool hooks = spec->parallel.zero == 0 &&
                       spec->execution.framework.data_parallel.reductions == SPEC_REDUCTIONS_HOOKS &&
                       cost_dense_replicas(spec) > 1;
    return hooks ? cost_weight_wire_bytes(spec) : 0;
}

/* Gradients are there from their layer's backward, shards from their unit's reduction, to the optimizer's
 * zero_grad(set_to_none=True): a step's only backward makes all of them. DistributedDataParallel keeps its own (measured: the
 * fourth blind set). Source: PyTorch's foreach_reduce() of fully_shard, torch/optim/optimizer.py */
static bool makes_gradients(const Spec *spec)
{
    const bool own = cost_shards_gradients(spec) || cost_dense_replicas(spec) == 1;
    return spec->execution.framework.allocator.gradients == SPEC_GRADIENTS_CLEARED && own &&
           spec->parallel.pipeline == 1 && spec_microbatches(spec) == 1;
}

double cost_passing_gradient_bytes(const Spec *spec)
{
    const double gradients = cost_recipe(spec).gradients;
    if (makes_gradients(spec))
        return gradients;
    const bool both = gradients > 4 && !cost_shards_gradients(spec); /* whole ones, beside sums in fp32 */
    return spec->execution.framework.allocator.gradients == SPEC_GRADIENTS_DROPPED_IN_BACKWARD && both
               ? gradients - 4
               : 0;
}

/* Sharded gradients take the place of the unsharded ones, unit by unit, where these are summed over a step's micro-batches
 * and reduced once; cleared gradients take none. In pipelines fully_shard has been measured to hold both.
 * Source: PyTorch's fully_shard under set_requires_gradient_sync(False) */
static bool shards_replace_sums(const Spec *spec)
{
    return cost_shards_gradients(spec) && spec_microbatches(spec) > 1 && !cost_keeps_gathered(spec) &&
           !cost_reduces_each_microbatch(spec);
}

double cost_shard_count(const Spec *spec, const CostWeights *weights)
{
    return weights->dense / cost_shard_degree(spec, cost_dense_replicas(spec)) +
           weights->expert / cost_shard_degree(spec, cost_expert_replicas(spec));
}

CostStates cost_states(const Spec *spec, const CostWeights *weights)
{
    const CostRecipe recipe = cost_recipe(spec);
    const int zero = spec->parallel.zero;
    const double moments = recipe.moments * cost_optimizer_moments_ratio(spec->training.optimizer);
    const double all = cost_weights_count(weights), shard = cost_shard_count(spec, weights);
    return (CostStates){
        .weights_bytes = recipe.weights * (zero >= 3 ? shard : all),
        .gradients_bytes = (recipe.gradients - cost_passing_gradient_bytes(spec)) *
                               (cost_shards_gradients(spec) ? shards_replace_sums(spec) ? 0 : shard : all) +
                           hook_bucket_bytes(spec) * all,
        .optimizer_bytes = (recipe.master + moments) * (zero >= 1 ? shard : all),
        .moments_bytes = moments * (zero >= 1 ? shard : all),
    };
}

double cost_unsharded_gradient_bytes(const Spec *spec)
{
    const double wire = cost_gradient_wire_bytes(spec);
    const bool alone = cost_dense_replicas(spec) <= 1 && cost_expert_replicas(spec) <= 1;
    const bool has = spec_most_zero(&spec->execution.framework, spec->parallel.pipeline) >= 3;
    if (alone)
        return spec->parallel.zero >= 3 && has ? wire : 0;
    const bool widened = cost_reduces_each_microbatch(spec) || (spec->parallel.zero >= 3 && has);
    return widened ? wire : fmin(wire, cost_recipe(spec).gradients);
}

double cost_flat_gradient_bytes(const Spec *spec, const CostWeights *weights)
{
    const SpecFramework *framework = &spec->execution.framework;
    const double bucket = fmin(framework->allocator.bucket_copy_elements, cost_weights_count(weights)) *
                          cost_gradient_wire_bytes(spec);
    const bool reduced = spec_gpus(spec) > spec->parallel.tensor * spec->parallel.pipeline;
    return (reduced ? bucket : 0) +
           (spec->training.gradient_dtype == SPEC_FP32
                ? 0
                : framework->optimizer.optimizer_flat_bytes * cost_shard_count(spec, weights));
}

bool cost_reshards(const Spec *spec)
{
    return spec->execution.framework.data_parallel.resharding != SPEC_RESHARDING_NEVER;
}

bool cost_regathers(const Spec *spec)
{
    return spec->execution.framework.data_parallel.resharding == SPEC_RESHARDING_AFTER_RECOMPUTE &&
           spec->training.recompute.mode == SPEC_RECOMPUTE_FULL;
}

bool cost_keeps_gathered(const Spec *spec)
{
    return spec->parallel.zero == 3 && spec->parallel.pipeline > 1 &&
           spec->execution.framework.data_parallel.resharding == SPEC_RESHARDING_UNLESS_PIPELINE;
}

bool cost_shards_by_chunk(const Spec *spec)
{
    return cost_shards_gradients(spec) && !cost_keeps_gathered(spec) && spec_microbatches(spec) > 1 &&
           (spec_schedule_traits(spec) & SIM_TRAIT_WHOLE_CHUNKS) != 0;
}

/* A window of layers has no room for the sums of all: what a layer's backward made is reduced and leaves at once. */
static bool window_passes_on(const Spec *spec)
{
    return spec_offload_row(spec->offload.scheme)->windowed &&
           spec->offload.gradients.tier != SPEC_TIER_GPU && cost_dense_replicas(spec) > 1;
}

bool cost_reduces_each_microbatch(const Spec *spec)
{
    if (window_passes_on(spec))
        return true;
    return cost_shards_gradients(spec) && spec->execution.framework.data_parallel.reduce_each_microbatch &&
           !cost_keeps_gathered(spec) && !cost_shards_by_chunk(spec);
}

bool cost_overlaps_grad_reduce(const Spec *spec)
{
    const bool waits = spec->parallel.zero == 3 &&
                       spec->execution.framework.data_parallel.gathers == SPEC_GATHERS_TENSORS_DRAINED;
    return ((spec->execution.overlap & SPEC_OVERLAP_GRAD_REDUCE) != 0 && !waits) ||
           (spec->parallel.zero == 0 &&
            spec->execution.framework.data_parallel.reductions == SPEC_REDUCTIONS_HOOKS);
}

bool cost_shards_gradients(const Spec *spec)
{
    const bool early = spec->parallel.zero == 1 &&
                       spec->execution.framework.data_parallel.zero1_reduces == SPEC_ZERO1_SCATTER_EARLY &&
                       cost_overlaps_grad_reduce(spec);
    return spec->parallel.zero >= 2 || early;
}

/* Read gradient, moments and master (or weights), write moments, master and the working copy. */
static double cost_optimizer_bytes_per_parameter(const Spec *spec)
{
    const CostRecipe recipe = cost_recipe(spec);
    const double moments = recipe.moments * cost_optimizer_moments_ratio(spec->training.optimizer);
    const double master = recipe.master > 0 ? 4 : 0;
    const double copies = recipe.master > 4 ? 2 + 4 + 4 : 0; /* fp16 gradients are first copied to fp32 */
    return recipe.gradients + 2 * moments + 2 * master + (master > 0 ? 1 : 2) * fmin(recipe.weights, 4) +
           copies;
}

/* Gradients that no unit shards are joined in buckets, scaled and copied back by passes of their own. */
static double bucket_copies_s(const Spec *spec, double parameters)
{
    const bool reduced = spec->parallel.zero < 3 && cost_dense_replicas(spec) > 1;
    const double copies = reduced ? spec->execution.framework.data_parallel.bucket_copies : 0;
    return copies > 0 ? cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE,
                                            copies * 2 * cost_gradient_wire_bytes(spec) * parameters)
                      : 0;
}

double cost_optimizer_s(const Spec *spec, const CostWeights *weights)
{
    const SpecFramework *framework = &spec->execution.framework;
    const double all = cost_weights_count(weights);
    const double owned = spec->parallel.zero >= 1 ? cost_shard_count(spec, weights) : all;
    /* clipping reads every gradient twice more: its norm, and its scaling */
    const double clip =
        framework->optimizer.grad_norm != SPEC_GRAD_NORM_NONE ? cost_recipe(spec).gradients : 0;
    const double adam = cost_optimizer_bytes_per_parameter(spec) * framework->optimizer.optimizer_streams;
    const double bytes = owned * (adam + 3 * clip);
    /* an unfused optimizer streams each array through memory for every arithmetic step of Adam */
    const double passes = framework->optimizer.optimizer_fused ? 1 : 2.5;
    const double move_s =
        cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_OPTIMIZER, passes * bytes);
    const double launches = framework->optimizer.optimizer_fused ? 16 : 8.0 * weights->tensors;
    const double zero_s =
        cost_memory_bound_s(&spec->cluster.accelerator, COST_MEMORY_ELEMENTWISE,
                            all * cost_recipe(spec).gradients); /* cleared for the next step */
    return fmax((1 + framework->learned.excess_frac[SPEC_LEARNED_OPTIMIZER]) * (move_s + zero_s),
                launches * spec_host_s(&spec->cluster.host, framework->host.kernel_host_s)) +
           bucket_copies_s(spec, all);
}

double cost_gradient_wire_bytes(const Spec *spec)
{
    const SpecPrecision precision = spec->training.precision;
    const bool full = precision == SPEC_PRECISION_FP32 || precision == SPEC_PRECISION_TF32;
    return full ? 4 : spec_dtype_bytes(spec->training.gradient_reduce_dtype);
}

static bool is_full(SpecPrecision precision)
{
    return precision == SPEC_PRECISION_FP32 || precision == SPEC_PRECISION_TF32;
}

bool cost_autocasts(const Spec *spec)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    const bool narrow =
        adapter->given && adapter->base_dtype != SPEC_BASE_NF4 && adapter->base_dtype != SPEC_BASE_INT8;
    return spec->execution.framework.kernels.autocast && !is_full(spec->training.precision) && !narrow;
}

double cost_weight_wire_bytes(const Spec *spec)
{
    return is_full(spec->training.precision) || cost_autocasts(spec) ? 4 : 2;
}
