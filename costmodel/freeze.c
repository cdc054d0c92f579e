/* costmodel/freeze.c - see freeze.h. */
#include "costmodel/freeze.h"

bool cost_part_frozen(const Spec *spec, CostModelPart piece, int layer)
{
    const SpecFreeze *freeze = &spec->training.freeze;
    return piece == COST_PART_EMBEDDING ? freeze->embedding
           : piece == COST_PART_HEAD    ? freeze->head
                                        : piece == COST_PART_LAYER && layer < freeze->layers;
}

bool cost_part_saved(const Spec *spec, CostModelPart piece)
{
    const unsigned saved = spec->training.adapter.given ? spec->training.adapter.saved : 0;
    return (piece == COST_PART_EMBEDDING && (saved & SPEC_SAVED_EMBEDDING) != 0) ||
           (piece == COST_PART_HEAD && (saved & SPEC_SAVED_HEAD) != 0);
}

bool cost_tower_trained(const Spec *spec)
{
    return spec->model.vision.layers > 0 && !spec->training.adapter.given && !spec->training.freeze.vision;
}

bool cost_projector_trained(const Spec *spec)
{
    return spec->model.vision.layers > 0 && !spec->training.adapter.given && !spec->training.freeze.projector;
}

bool cost_part_stops(const Spec *spec, CostModelPart piece, int layer, int layer_in_stage)
{
    return spec->training.freeze.embedding && piece != COST_PART_HEAD && layer == layer_in_stage &&
           cost_part_frozen(spec, piece, layer) && !cost_tower_trained(spec) && !cost_projector_trained(spec);
}

CostRecomputeExtent cost_layer_extent(const Spec *spec, int layer, int layer_in_stage)
{
    return cost_part_stops(spec, COST_PART_LAYER, layer, layer_in_stage)
               ? COST_RECOMPUTE_OP_NONE
               : cost_recompute_extent(spec, layer_in_stage);
}
