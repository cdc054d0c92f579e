/* costmodel/layers.c - see layers.h. */
#include "costmodel/layers.h"

#include "costmodel/freeze.h"

int cost_layer_group(const Spec *spec, int layer, int layer_in_stage)
{
    const int trained = cost_part_stops(spec, COST_PART_LAYER, layer, layer_in_stage) ? 2
                        : cost_part_frozen(spec, COST_PART_LAYER, layer)              ? 1
                                                                                      : 0;
    return (trained * COST_LAYER_KINDS + cost_layer_kind(&spec->model, layer)) * COST_RECOMPUTE_OP_COUNT +
           (int)cost_layer_extent(spec, layer, layer_in_stage);
}

void cost_group_layers(const Spec *spec, int first_layer, int layers, CostLayerGroups *groups)
{
    for (int i = 0; i < layers; i++) {
        int *at = &groups->at[cost_layer_group(spec, first_layer + i, i)];
        if (*at == 0) {
            groups->group[groups->count] =
                (CostLayerGroup){.layer = first_layer + i,
                                 .layer_in_stage = i,
                                 .extent = cost_layer_extent(spec, first_layer + i, i)};
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

static void add_shape(double rows, double columns, CostWeightShapes *shapes)
{
    for (int i = 0; i < shapes->count; i++) {
        if (shapes->rows[i] == rows && shapes->columns[i] == columns) {
            return;
        }
    }
    g_assert(shapes->count < COST_WEIGHT_SHAPES);
    shapes->rows[shapes->count] = rows;
    shapes->columns[shapes->count++] = columns;
}

void cost_add_weight_shapes(const CostOps *weights, CostWeightShapes *shapes)
{
    for (int i = 0; i < weights->count; i++) {
        const CostOp *op = &weights->op[i];
        if (op->kind != COST_OP_GEMM || op->module == COST_MODULE_ROUTER) {
            continue;
        }
        for (int part = 0; part < COST_MAX_PARTS && op->parts[part] > 0; part++) {
            add_shape(op->parts[part], op->u.gemm.n, shapes);
        }
        if (op->parts[0] <= 0) {
            add_shape(op->u.gemm.m, op->u.gemm.n, shapes);
        }
    }
}

void cost_join_weight_shapes(const CostWeightShapes *more, CostWeightShapes *shapes)
{
    for (int i = 0; i < more->count; i++) {
        add_shape(more->rows[i], more->columns[i], shapes);
    }
}

double cost_weight_shapes_elements(const CostWeightShapes *shapes)
{
    double elements = 0;
    for (int i = 0; i < shapes->count; i++) {
        elements += shapes->rows[i] * shapes->columns[i];
    }
    return elements;
}
