/* spec/overlap.c - what runs beside compute. */
#include "spec/spec.h"

/* Groups of tensor ranks that recipes give user buffers: on Hopper and Blackwell, inside one node whose NVLinks end
 * there. Earlier chips have no multicast; on racks of GB200 the library's groups end at the node of four, and the
 * recipe of Llama 3.1 405B switches them off beyond 128 GPUs. */
static bool has_user_buffers(const Spec *spec)
{
    const SpecCluster *cluster = &spec->cluster;
    const SpecGeneration generation = cluster->accelerator.generation;
    return (generation == SPEC_GENERATION_HOPPER || generation == SPEC_GENERATION_BLACKWELL) &&
           spec->parallel.sequence_parallel == 1 && spec->model.moe.experts == 0 &&
           spec->parallel.tensor <= cluster->gpus_per_node &&
           cluster->scale_up_domain_gpus <= cluster->gpus_per_node;
}

unsigned spec_overlap(const Spec *spec)
{
    const unsigned both = SPEC_OVERLAP_GRAD_REDUCE | SPEC_OVERLAP_PARAM_GATHER;
    unsigned recipe = spec_follows_recipes(spec) ? spec->execution.framework.recipe_overlap : 0;
    if (spec->parallel.virtual_stages < 2)
        recipe &= ~(unsigned)SPEC_OVERLAP_PIPELINE;
    if (!has_user_buffers(spec))
        recipe &= ~(unsigned)SPEC_OVERLAP_TENSOR;
    return spec->execution.overlap | (recipe & ~both);
}
