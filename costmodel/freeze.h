/* costmodel/freeze.h - which pieces of a model training.freeze leaves as they are, and where gradients end.
 * Tested: unit/costmodel/test_freeze.c */
#ifndef ORR_COSTMODEL_FREEZE_H
#define ORR_COSTMODEL_FREEZE_H

#include "costmodel/params.h"
#include "costmodel/pass.h"

/* Whether training.freeze names the piece; `layer` as in cost_part_params(). */
/* Whether a piece's table is trained whole beside adapters (training.adapter.modules_to_save). */
bool cost_part_saved(const Spec *spec, CostModelPart piece);
bool cost_part_frozen(const Spec *spec, CostModelPart piece, int layer);

/* Whether a gradient trains the vision tower, and its projector; adapters leave both as they are. */
bool cost_tower_trained(const Spec *spec);
bool cost_projector_trained(const Spec *spec);

/* Whether no gradient reaches it besides: it and all before it are frozen. It has no backward, and keeps nothing. ZeRO-3
 * gathers its units for the forward alone: hooks before a backward hang on outputs that require a gradient. Stages behind
 * the first receive into tensors that require one: their frozen layers run a backward, whose result is sent on, and a
 * first stage whose output requires none receives it and does nothing. `layer_in_stage` is `layer`
 * in the first stage alone.   Source: [Zhao2023]; [MegatronCore] p2p_communication.py (create_tensor_recv_prev), schedules.py
 * (backward_step) */
bool cost_part_stops(const Spec *spec, CostModelPart piece, int layer, int layer_in_stage);

/* What of a layer runs again in the backward: nothing where there is none. `layer_in_stage` counts from 0. */
CostRecomputeExtent cost_layer_extent(const Spec *spec, int layer, int layer_in_stage);

#endif
