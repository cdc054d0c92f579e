/* spec/overlap.c - what runs beside compute or waits for a bubble, named by the scenario or by its framework's recipes. */
#include <glib.h>

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
           spec->parallel.tensor > 1 && spec->parallel.tensor <= cluster->gpus_per_node &&
           cluster->scale_up_domain_gpus <= cluster->gpus_per_node;
}

unsigned spec_overlap(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    const unsigned named = spec->execution.overlap;
    unsigned besides = spec_follows_recipes(named) ? framework->defaults.recipe_overlap : 0u;
    besides &= ~(unsigned)SPEC_OVERLAP_PIPELINE;
    if (!has_user_buffers(spec))
        besides &= ~(unsigned)SPEC_OVERLAP_TENSOR;
    return spec_pipeline_overlap(framework, named, spec->parallel.virtual_stages > 1) | besides;
}

SpecSchedule spec_schedule_kind(const Spec *spec)
{
    const SpecOrders *orders = &spec->parallel.orders;
    if (spec->parallel.schedule != SPEC_SCHEDULE_FILE || orders->text == NULL)
        return spec->parallel.schedule;
    bool whole = orders->placement == SPEC_PLACE_LOOP, forwards_first = whole, backward = false;
    for (const char *c = orders->text; *c != '\0'; c++) {
        if (*c == 'I' || *c == 'W' || *c == '(')
            whole = false;
        if (*c == 'F' && backward)
            forwards_first = false;
        backward = *c != '\n' && (backward || *c == 'B');
    }
    if (!whole)
        return SPEC_SCHEDULE_FILE;
    if (forwards_first)
        return orders->chunks > 1 ? SPEC_SCHEDULE_BREADTH_FIRST : SPEC_SCHEDULE_GPIPE;
    return orders->chunks > 1 ? SPEC_SCHEDULE_INTERLEAVED : SPEC_SCHEDULE_1F1B;
}

int spec_deferred_heads(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const SpecSchedule kind = spec_schedule_kind(spec);
    const bool ordered = kind == SPEC_SCHEDULE_1F1B || kind == SPEC_SCHEDULE_INTERLEAVED;
    const bool dense = spec->model.moe.experts == 0 && spec->model.mtp_layers == 0;
    const bool applies = ordered && dense && parallel->pipeline > 1 && parallel->zero <= 1 &&
                         spec_follows_recipes(spec->execution.overlap);
    return applies ? MIN(spec->execution.framework.pipeline.deferred_head_gradients, spec_microbatches(spec))
                   : 0;
}
