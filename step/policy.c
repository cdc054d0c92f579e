/* step/policy.c - see policy.h.
 * Tested: unit/step/test_buckets.c
 */
#include "step/policy.h"

#include <math.h>

#include "costmodel/states.h"

/* Buckets of tensors are for overlap alone: without it one bucket holds all.
 * Source: [MegatronCore] distributed_data_parallel.py */
static double bucket_bytes(const Spec *spec)
{
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    if (recipe->bucket_bytes <= 0 ||
        (recipe->bucket_fill == SPEC_FILL_FROM_LAST && !cost_overlaps_grad_reduce(spec)))
        return 0;
    return fmax(recipe->bucket_bytes, recipe->bucket_rank_bytes * cost_dense_replicas(spec));
}

/* ZeRO-3 on one stage: what lies outside the layers is one unit, FSDP's root.
 * Source: torch/distributed/fsdp/_fully_shard/_fsdp_state.py, _lazy_init: the root is not resharded after its forward */
static bool has_root_unit(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    return spec->execution.framework.data_parallel.root_unit && parallel->zero >= 3 &&
           parallel->pipeline * parallel->virtual_stages == 1 && spec->model.mtp_layers == 0 &&
           !parallel->quantized_weight_gather && !parallel->quantized_gradient_reduce &&
           !parallel->secondary_weight_shard && !spec_offloads_states(&spec->offload);
}

/* ZeRO-3 and states off the GPU never go by tensors. ZeRO-2 that reduces every micro-batch goes by layers where its recipe has
 * no size of buckets: of a whole bucket nothing would be sharded before all of it is there. */
static StepFill fill_of(const Spec *spec, double limit)
{
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    if (spec->parallel.zero >= 3)
        return STEP_FILL_SEGMENTS;
    if (!spec_offloads_states(&spec->offload)) {
        if (recipe->bucket_fill == SPEC_FILL_FROM_FIRST)
            return STEP_FILL_TENSORS_FIRST;
        if (recipe->bucket_fill == SPEC_FILL_FROM_LAST && spec->model.moe.experts == 0)
            return STEP_FILL_TENSORS_LAST;
    }
    return !(limit > 0) && cost_reduces_each_microbatch(spec) ? STEP_FILL_SEGMENTS : STEP_FILL_BYTES;
}

static StepReduces reduces_of(const Spec *spec)
{
    const bool beside = cost_overlaps_grad_reduce(spec);
    if (cost_reduces_each_microbatch(spec))
        return beside ? STEP_REDUCES_EACH : STEP_REDUCES_EACH_ALONE;
    return beside ? STEP_REDUCES_LAST : STEP_REDUCES_LATE;
}

static StepGathers gathers_of(const Spec *spec)
{
    if (!spec_hides_param_gather(spec))
        return STEP_GATHERS_NONE;
    return spec_gathers_on_use(spec) ? STEP_GATHERS_USE : STEP_GATHERS_STEP;
}

StepPolicy step_policy(const Spec *spec)
{
    const SpecRecipeDataParallel *recipe = &spec->execution.framework.data_parallel;
    const double limit = bucket_bytes(spec);
    return (StepPolicy){
        .fill = fill_of(spec, limit),
        .bucket_bytes = limit,
        .first_bucket_bytes = recipe->first_bucket_bytes > 0 ? recipe->first_bucket_bytes : limit,
        .gradient_wire_bytes = cost_gradient_wire_bytes(spec),
        .root_unit = has_root_unit(spec),
        .counts_tensors = spec->parallel.zero >= 3 || recipe->tensor_list_rank_host_s > 0,
        .keeps_gathered = cost_keeps_gathered(spec),
        .reshards_after_forward = cost_reshards(spec),
        .sharded_weights = spec->parallel.zero >= 3,
        .gathers = gathers_of(spec),
        .reduces = reduces_of(spec),
        .by_chunk = cost_shards_by_chunk(spec),
        .prefetch_units = spec_prefetch_units(spec),
        .waits_for_sends = spec_waits_for_sends(spec),
        .validates_later = spec_validates_later(spec),
        .waits_for_norm = spec->execution.framework.optimizer.grad_norm != SPEC_GRAD_NORM_NONE,
        .context_bytes = spec_context_bytes(spec),
        .overhead_s = spec->execution.framework.host.step_overhead_s};
}

StepFilling step_filling(const StepPolicy *policy)
{
    return (StepFilling){.limit = policy->first_bucket_bytes,
                         .next_limit = policy->bucket_bytes,
                         .wire_bytes = policy->gradient_wire_bytes,
                         .segments = policy->fill == STEP_FILL_SEGMENTS};
}

bool step_completes_bucket(StepFilling *filling, double parameters)
{
    const bool full =
        filling->segments || (filling->limit > 0 && parameters * filling->wire_bytes >= filling->limit);
    if (full)
        filling->limit = filling->next_limit;
    return full;
}
