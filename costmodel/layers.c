/* costmodel/layers.c - see layers.h. */
#include "costmodel/layers.h"

int cost_layer_group(const Spec *spec, int layer, int layer_in_stage)
{
    return cost_layer_kind(&spec->model, layer) * COST_RECOMPUTE_OP_COUNT +
           (int)cost_recompute_extent(spec, layer_in_stage);
}

void cost_group_layers(const Spec *spec, int first_layer, int layers, CostLayerGroups *groups)
{
    for (int i = 0; i < layers; i++) {
        int *at = &groups->at[cost_layer_group(spec, first_layer + i, i)];
        if (*at == 0) {
            groups->group[groups->count] =
                (CostLayerGroup){.layer = first_layer + i, .extent = cost_recompute_extent(spec, i)};
            *at = ++groups->count;
        }
        groups->group[*at - 1].count++;
    }
}

CostLayerGroups cost_group_model(const Spec *spec, const int *stage_layers, int stages)
{
    CostLayerGroups groups = {.count = 0};
    if (stages == 0) {
        cost_group_layers(spec, 0, spec->model.layers, &groups);
    }
    for (int stage = 0, layer = 0; stage < stages; stage++) {
        cost_group_layers(spec, layer, stage_layers[stage], &groups);
        layer += stage_layers[stage];
    }
    return groups;
}
