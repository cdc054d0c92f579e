/* calibrate/fit/step_knobs.c - factors on the rates and times of a Spec. */
#include "calibrate/fit/step_knobs.h"

#include <string.h>

#define GREATEST_PEAK   1.3 /* the field tables' ranges: spec/fields_kernel.c, fields_collective.c */
#define GREATEST_MEMORY 1.2
#define GREATEST_NIC    2.0
#define GREATEST_BUS    8.0

static const char *const names[CAL_KNOB_KIND_COUNT] = {"compute",  "memory",    "host",
                                                       "scale-up", "scale-out", "latency"};

void cal_knob_name(const CalKnob *knob, char *text, gsize size)
{
    if (knob->kind == CAL_KNOB_HOST)
        g_snprintf(text, size, "host of %s", knob->framework);
    else
        g_strlcpy(text, names[knob->kind], size);
}

static void scale(double *value, double factor, double greatest)
{
    *value = MIN(*value * factor, greatest);
}

static SpecGemmShared *shared_of(SpecKernelModel *model)
{
    if (model->gemm_shared.memory_frac <= 0)
        model->gemm_shared = spec_gemm_shared_default;
    return &model->gemm_shared;
}

static void turn_compute(SpecKernelModel *model, double factor)
{
    bool gemm = false, attention = false;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        gemm |= model->gemm[i].peak_frac > 0;
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++)
        attention |= model->attention[i].peak_frac > 0;
    if (!gemm)
        model->gemm[SPEC_BF16] = spec_gemm_model_default;
    if (!attention)
        model->attention[SPEC_ATTENTION_FLASH2] = spec_attention_model_default;
    SpecGemmShared *shared = shared_of(model);
    shared->tile_s /= factor;
    shared->epilogue_s /= factor;
    for (int i = 0; i < SPEC_DTYPE_COUNT; i++)
        scale(&model->gemm[i].peak_frac, factor, GREATEST_PEAK);
    for (int i = 0; i < SPEC_ATTENTION_COUNT; i++) {
        SpecAttentionModel *kernel = &model->attention[i];
        scale(&kernel->peak_frac, factor, GREATEST_PEAK);
        scale(&kernel->backward_peak_frac, factor, GREATEST_PEAK);
        kernel->tile_s /= factor;
        kernel->backward_tile_s /= factor;
    }
}

static void turn_memory(SpecKernelModel *model, double factor)
{
    SpecMemoryBoundModel *memory = &model->memory_bound;
    if (memory->elementwise_frac <= 0)
        *memory = spec_memory_bound_model_default;
    double *const fracs[] = {&memory->elementwise_frac, &memory->norm_frac,
                             &memory->softmax_frac,     &memory->cross_entropy_frac,
                             &memory->permute_frac,     &memory->cast_frac,
                             &memory->optimizer_frac,   &shared_of(model)->memory_frac};
    for (size_t i = 0; i < G_N_ELEMENTS(fracs); i++)
        scale(fracs[i], factor, GREATEST_MEMORY);
}

static void turn_links(CalKnobKind kind, SpecCollectiveModel *c, double factor)
{
    double *const buses[] = {&c->ll_frac,       &c->ll128_frac, &c->ring_frac,         &c->nvls_frac,
                             &c->alltoall_frac, &c->copy_frac,  &c->alltoall_copy_frac};
    double *const times[] = {
        &c->offset_s,        &c->ll_hop_s,        &c->ll_spread_s,   &c->ll128_hop_s,   &c->simple_hop_s,
        &c->ring_fill_s,     &c->nvls_latency_s,  &c->nvls_fill_s,   &c->alltoall_ll_s, &c->alltoall_simple_s,
        &c->alltoall_peer_s, &c->alltoall_fill_s, &c->net_latency_s, &c->net_simple_s,  &c->net_ring_hop_s};
    for (size_t i = 0; kind == CAL_KNOB_SCALE_UP && i < G_N_ELEMENTS(buses); i++)
        scale(buses[i], factor, GREATEST_BUS);
    for (size_t i = 0; kind == CAL_KNOB_LATENCY && i < G_N_ELEMENTS(times); i++)
        *times[i] /= factor;
    if (kind == CAL_KNOB_SCALE_OUT)
        scale(&c->nic_frac, factor, GREATEST_NIC);
}

SpecCollectiveModel cal_effective_collectives(const SpecCluster *cluster)
{
    const SpecCollectiveModel *own = &cluster->collectives, *gpu = &cluster->accelerator.model.collectives,
                              *none = &spec_collective_model_default;
    const SpecCollectiveModel *inside = own->fitted > 0 && own->offset_s > 0   ? own
                                        : gpu->fitted > 0 && gpu->offset_s > 0 ? gpu
                                                                               : none;
    const SpecCollectiveModel *across = own->fitted > 0 && own->nic_frac > 0   ? own
                                        : gpu->fitted > 0 && gpu->nic_frac > 0 ? gpu
                                                                               : none;
    SpecCollectiveModel both = *inside;
    both.nic_frac = across->nic_frac;
    both.tree_frac = across->tree_frac;
    both.nvls_tree_frac = across->nvls_tree_frac;
    both.net_latency_s = across->net_latency_s;
    both.net_simple_s = across->net_simple_s;
    both.net_ring_hop_s = across->net_ring_hop_s;
    both.net_congestion_frac = across->net_congestion_frac;
    both.net_sm_frac = across->net_sm_frac;
    return both;
}

void cal_knob_turn(const CalKnob *knob, double factor, Spec *spec)
{
    SpecKernelModel *model = &spec->cluster.accelerator.model;
    SpecFramework *framework = &spec->execution.framework;
    switch (knob->kind) {
    case CAL_KNOB_COMPUTE:
        turn_compute(model, factor);
        break;
    case CAL_KNOB_MEMORY:
        turn_memory(model, factor);
        break;
    case CAL_KNOB_HOST:
        if (strcmp(framework->name, knob->framework) != 0)
            break;
        framework->host.kernel_host_s /= factor;
        framework->experts.host_sync_s /= factor;
        framework->host.step_overhead_s /= factor;
        framework->host.microbatch_overhead_s /= factor;
        break;
    default: {
        SpecCollectiveModel both = cal_effective_collectives(&spec->cluster);
        turn_links(knob->kind, &both, factor);
        spec->cluster.collectives = both;
    }
    }
}
