/* step/clock.c - does a plan fit the clock of the simulator? Durations stop growing at the clock's end instead of
 * wrapping round. */
#include "costmodel/flops.h"
#include "step/fill.h"

#define LONGEST_PS ((int64_t)(SIM_LONGEST_S * 1e12))

/* The values that decide how long a part lasts: in the words of a scenario. */
static char *culprits(const Spec *spec, SimPart part)
{
    const SpecCluster *cluster = &spec->cluster;
    switch (part) {
    case SIM_PART_COMPUTE:
    case SIM_PART_RECOMPUTE:
    case SIM_PART_OPTIMIZER:
        return g_strdup_printf("cluster.accelerator.peak_flops_per_s (%.4g) and memory_bytes_per_s (%.4g)",
                               cost_peak_flops_per_s(spec), cluster->accelerator.memory_bytes_per_s);
    case SIM_PART_OFFLOAD:
        return g_strdup_printf("cluster.accelerator.host_link_bytes_per_s (%.4g)",
                               cluster->accelerator.host_link_bytes_per_s);
    case SIM_PART_OTHER:
        return g_strdup("the seconds of execution.framework.host");
    default:
        return g_strdup_printf("cluster.scale_up_bytes_per_s (%.4g), scale_out_bytes_per_s_per_gpu (%.4g) "
                               "and the rates and seconds of cluster.collectives",
                               cluster->scale_up_bytes_per_s, cluster->scale_out_bytes_per_s_per_gpu);
    }
}

static const char *kind_of(SimPart part)
{
    static const char *const KINDS[SIM_PART_COUNT] = {
        [SIM_PART_COMPUTE] = "compute",
        [SIM_PART_RECOMPUTE] = "recomputation",
        [SIM_PART_TENSOR_COMM] = "tensor-parallel communication",
        [SIM_PART_CONTEXT_COMM] = "context-parallel communication",
        [SIM_PART_EXPERT_COMM] = "expert-parallel communication",
        [SIM_PART_PIPELINE_COMM] = "messages between stages",
        [SIM_PART_DATA_COMM] = "data-parallel communication",
        [SIM_PART_OFFLOAD] = "copies to the host",
        [SIM_PART_OPTIMIZER] = "the optimizer",
        [SIM_PART_OTHER] = "waiting for the host",
    };
    return KINDS[part];
}

static bool fits(const Spec *spec, const SimWork *work, GError **error)
{
    int main_part = SIM_PART_COMPUTE;
    if (sim_work_duration_ps(work) < LONGEST_PS) {
        return true;
    }
    for (int part = 0; part < SIM_PART_COUNT; part++) {
        if (work->part_ps[part] > work->part_ps[main_part]) {
            main_part = part;
        }
    }
    char *values = culprits(spec, (SimPart)main_part);
    g_set_error(
        error, ORR_ERROR, ORR_ERROR_INPUT,
        "the step lasts longer than the clock can hold (%.0f s), most of it %s: are %s in the units that "
        "their names say?",
        SIM_LONGEST_S, kind_of((SimPart)main_part), values);
    g_free(values);
    return false;
}

/* Each work of a stage by itself, and all passes of all micro-batches. */
static bool stage_fits(const Spec *spec, const SimPlan *plan, const SimStage *stage, SimWork *passes,
                       GError **error)
{
    bool ok = fits(spec, &stage->send_next, error) && fits(spec, &stage->send_prev, error);
    for (int i = 0; ok && i < stage->segment_count; i++) {
        const SimSegment *segment = &stage->segments[i];
        const SimWork *const works[] = {&segment->forward,         &segment->recompute,
                                        &segment->backward_input,  &segment->backward_weight,
                                        &segment->param_gather,    &segment->grad_reduce,
                                        &segment->backward_gather, &segment->copy_out};
        for (size_t k = 0; ok && k < G_N_ELEMENTS(works); k++) {
            SimWork all = *works[k];
            ok = fits(spec, &all, error);
            if (k < 4) {
                const int copies = plan->schedule->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : 1;
                sim_work_repeat(&all, plan->shape.microbatches / copies);
                sim_work_add(passes, &all);
            }
        }
    }
    return ok;
}

bool sim_step_fits_clock(const Spec *spec, const SimPlan *plan, GError **error)
{
    const SimScheduleShape *shape = &plan->shape;
    bool ok = fits(spec, &plan->grad_norm, error) && fits(spec, &plan->stage_norm, error);
    for (int rank = 0; ok && rank < shape->ranks; rank++) {
        SimWork passes = {0};
        ok = fits(spec, &plan->ranks[rank].optimizer, error) &&
             fits(spec, &plan->ranks[rank].embedding_reduce, error);
        for (int chunk = 0; ok && chunk < shape->chunks; chunk++) {
            const int stage =
                sim_stage_of(plan->schedule->placement, shape->ranks, shape->chunks, rank, chunk);
            ok = stage_fits(spec, plan, &plan->stages[stage], &passes, error);
        }
        ok = ok && fits(spec, &passes, error);
    }
    return ok;
}
