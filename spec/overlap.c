/* spec/overlap.c - what runs beside compute, waits for a bubble or is not to be had, as the scenario, its framework and
 * that framework's recipes say. Costs, programs and searches ask here. */
#include <glib.h>
#include <stdlib.h>

#include "spec/spec.h"

/* Groups of tensor ranks that recipes give user buffers: where links have multicast, inside one node whose NVLinks end
 * there. Earlier chips have no multicast; on racks of GB200 the library's groups end at the node of four, and the
 * recipe of Llama 3.1 405B switches them off beyond 128 GPUs. */
static bool has_user_buffers(const Spec *spec)
{
    const SpecCluster *cluster = &spec->cluster;
    return cluster->accelerator.generation.multicast && spec->parallel.sequence_parallel == 1 &&
           spec->model.moe.experts == 0 && spec->parallel.tensor > 1 &&
           spec->parallel.tensor <= cluster->gpus_per_node &&
           cluster->scale_up_domain_gpus <= cluster->gpus_per_node;
}

unsigned spec_overlap(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    const unsigned named = spec->execution.overlap;
    unsigned besides = spec_follows_recipes(named) ? framework->defaults.recipe_overlap : 0u;
    if (spec->parallel.virtual_stages <= 1) /* messages where stages are interleaved */
        besides &= ~(unsigned)SPEC_OVERLAP_PIPELINE;
    if (!has_user_buffers(spec))
        besides &= ~(unsigned)SPEC_OVERLAP_TENSOR;
    if (spec_follows_recipes(named))
        besides |= spec->execution.overlap_besides;
    return named | besides;
}

/* 1F1B and its like, one chunk a rank. */
static bool is_not_interleaved(const Spec *spec)
{
    return (spec_schedule_traits(spec) & SIM_TRAIT_USUAL) != 0 && spec->parallel.virtual_stages <= 1;
}

bool spec_waits_for_sends(const Spec *spec)
{
    const SpecFramework *framework = &spec->execution.framework;
    const bool hides = (spec_overlap(spec) & SPEC_OVERLAP_PIPELINE) != 0 &&
                       !(framework->pipeline.p2p_waits == SPEC_P2P_WAITS_IN_1F1B && is_not_interleaved(spec));
    return framework->pipeline.p2p_waits != SPEC_P2P_WAITS_NEVER && !hides;
}

bool spec_hides_param_gather(const Spec *spec)
{
    return (spec->execution.overlap & SPEC_OVERLAP_PARAM_GATHER) != 0 &&
           spec->execution.framework.data_parallel.reductions != SPEC_REDUCTIONS_HOLD_QUEUE;
}

bool spec_gathers_on_use(const Spec *spec)
{
    const SpecGathersBegin begin = spec->execution.framework.data_parallel.gathers_begin;
    const bool beside = spec_hides_param_gather(spec) && !spec_offloads_states(&spec->offload);
    return beside && spec->parallel.pipeline > 1 &&
           (begin == SPEC_GATHERS_USE ||
            (begin == SPEC_GATHERS_STEP_IF_INTERLEAVED && is_not_interleaved(spec)));
}

bool spec_scatters_gradients(const Spec *spec)
{
    const bool whole = spec->execution.framework.data_parallel.zero1_reduces == SPEC_ZERO1_ALL_REDUCE;
    return spec->parallel.zero >= (whole ? 2 : 1);
}

bool spec_gathers_each_tensor(const SpecFramework *framework)
{
    return framework->data_parallel.gathers == SPEC_GATHERS_TENSORS ||
           framework->data_parallel.gathers == SPEC_GATHERS_TENSORS_DRAINED;
}

unsigned spec_overlap_choices(const SpecFramework *framework, int zero, int64_t replicas, int pipeline)
{
    unsigned flags = 0;
    if (replicas > 1 && framework->data_parallel.reductions != SPEC_REDUCTIONS_AT_END &&
        !(zero == 3 && framework->data_parallel.gathers == SPEC_GATHERS_TENSORS_DRAINED) &&
        (zero > 0 || framework->data_parallel.reductions != SPEC_REDUCTIONS_HOOKS))
        flags |= SPEC_OVERLAP_GRAD_REDUCE;
    if (replicas > 1 && zero > 0 && (zero < 3 || framework->data_parallel.prefetch_units > 0))
        flags |= SPEC_OVERLAP_PARAM_GATHER;
    if (pipeline > 1 && framework->pipeline.p2p_waits != SPEC_P2P_WAITS_NEVER)
        flags |= SPEC_OVERLAP_PIPELINE;
    return flags;
}

int spec_prefetch_units(const Spec *spec)
{
    const bool ahead = (spec->execution.overlap & SPEC_OVERLAP_PARAM_GATHER) != 0;
    return ahead ? spec->execution.framework.data_parallel.prefetch_units : 0;
}

bool spec_validates_later(const Spec *spec)
{
    return spec->execution.framework.optimizer.grad_norm == SPEC_GRAD_NORM_VALIDATED_LATER;
}

int spec_most_zero(const SpecFramework *framework, int pipeline)
{
    return pipeline > 1
               ? MIN(framework->data_parallel.most_zero, framework->data_parallel.most_zero_in_pipeline)
               : framework->data_parallel.most_zero;
}

bool spec_has_zero(const SpecFramework *framework, int pipeline, int zero)
{
    return zero == 0 ||
           (zero >= framework->data_parallel.least_zero && zero <= spec_most_zero(framework, pipeline));
}

/* Ops of one kind and stage in a row, of all ranks. */
static int64_t count_blocks(const char *orders)
{
    int64_t blocks = 0;
    char kind = '\0';
    long stage = -1;
    for (const char *c = orders; *c != '\0'; c++) {
        if (*c == '\n')
            kind = '\0';
        if (!g_ascii_isdigit(*c) || (c > orders && g_ascii_isdigit(c[-1])))
            continue;
        char *end = NULL;
        const long number = strtol(c, &end, 10);
        if (*end != 'F' && *end != 'B') /* of a micro-batch */
            continue;
        blocks += *end != kind || number != stage;
        kind = *end;
        stage = number;
    }
    return blocks;
}

/* What a file of orders is: each of its properties is read off its ops. */
static unsigned traits_of_orders(const SpecOrders *orders)
{
    bool whole = orders->placement == SIM_PLACE_LOOP, forwards_first = whole, backward = false;
    for (const char *c = orders->text; *c != '\0'; c++) {
        if (*c == 'I' || *c == 'W' || *c == '(')
            whole = false;
        if (*c == 'F' && backward)
            forwards_first = false;
        backward = *c != '\n' && (backward || *c == 'B');
    }
    if (!whole)
        return 0;
    if (!forwards_first)
        return SIM_TRAIT_USUAL;
    const bool chunks = count_blocks(orders->text) == 2 * (int64_t)orders->ranks * orders->chunks;
    return SIM_TRAIT_FORWARDS_FIRST | (chunks ? SIM_TRAIT_WHOLE_CHUNKS : 0u);
}

unsigned spec_schedule_traits(const Spec *spec)
{
    const SpecOrders *orders = &spec->parallel.orders;
    const SimSchedule *schedule = sim_schedule_at((int)spec->parallel.schedule);
    if (schedule != NULL)
        return schedule->traits;
    const bool file = spec->parallel.schedule == SPEC_SCHEDULE_FILE && orders->text != NULL;
    return file ? traits_of_orders(orders) : 0;
}

int spec_deferred_heads(const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    const bool ordered = (spec_schedule_traits(spec) & SIM_TRAIT_USUAL) != 0;
    const bool dense = spec->model.moe.experts == 0 && spec->model.mtp_layers == 0;
    const bool applies = ordered && dense && !spec->training.adapter.given && !spec->training.freeze.head &&
                         parallel->pipeline > 1 && parallel->zero <= 1 &&
                         spec_follows_recipes(spec->execution.overlap);
    return applies ? MIN(spec->execution.framework.pipeline.deferred_head_gradients, spec_microbatches(spec))
                   : 0;
}
