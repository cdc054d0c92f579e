/* costmodel/layers.h - layers that are alike: of one kind (costmodel/params.h) and one extent of recomputation, all
 * trained, all frozen, or all before what a gradient reaches. Each such group has one graph, so that a model's layers cost no more to count than their kinds. */
#ifndef ORR_COSTMODEL_LAYERS_H
#define ORR_COSTMODEL_LAYERS_H

#include "costmodel/params.h"
#include "costmodel/pass.h"

#define COST_LAYER_GROUPS                                                                                    \
    (3 * COST_LAYER_KINDS * COST_RECOMPUTE_OP_COUNT) /* trained, frozen, without a backward */

typedef struct CostLayerGroup {
    int layer, layer_in_stage; /* 0-based along the model and its stage: the first of them */
    int count;
    CostRecomputeExtent extent;
} CostLayerGroup;

/* Zeroed before the first stage; groups in the order in which the model has them. */
typedef struct CostLayerGroups {
    CostLayerGroup group[COST_LAYER_GROUPS];
    int count;
    int at[COST_LAYER_GROUPS]; /* 1 + place of each kind and extent; 0: none yet */
} CostLayerGroups;

/* Which of all kinds and extents a layer is: below COST_LAYER_GROUPS. `layer_in_stage` counts from 0. Layers before those that
 * a gradient reaches run nothing again. */
int cost_layer_group(const Spec *spec, int layer, int layer_in_stage);

/* Adds the `layers` layers of one stage, the first of which is `first_layer` of the model. */
void cost_group_layers(const Spec *spec, int first_layer, int layers, CostLayerGroups *groups);

/* The same of a whole model: `stage_layers` of each of `stages` in order; 0: one stage. */
CostLayerGroups cost_group_model(const Spec *spec, const int *stage_layers, int stages);

/* Distinct shapes of weights, rows x columns on one rank. */
#define COST_WEIGHT_SHAPES 64
typedef struct CostWeightShapes {
    double rows[COST_WEIGHT_SHAPES], columns[COST_WEIGHT_SHAPES];
    int count;
} CostWeightShapes;

/* Adds the shapes of the linear layers of a backward-weight list that are not there yet; a router is none of them. */
void cost_add_weight_shapes(const CostOps *weights, CostWeightShapes *shapes);
void cost_join_weight_shapes(const CostWeightShapes *more, CostWeightShapes *shapes);
double cost_weight_shapes_elements(const CostWeightShapes *shapes);

#endif
