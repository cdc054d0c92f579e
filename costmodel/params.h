/* costmodel/params.h - parameter counts: of the whole model, and of one rank's share of a piece.
 *
 * A piece is the embedding, one layer, the final norm and LM head, or one multi-token prediction module.
 * Tensor parallelism shards matrices and replicates norms and the biases of row-parallel linears;
 * expert parallelism shards experts. [Shoeybi2019, Narayanan2021]
 */
#ifndef ORR_COSTMODEL_PARAMS_H
#define ORR_COSTMODEL_PARAMS_H

#include "spec/spec.h"

typedef struct CostParams {
    double tensor_sharded; /* divided by the tensor degree */
    double replicated;     /* whole on every tensor rank */
    double expert;         /* of routed experts: divided by expert x expert-tensor degree */
    int matrices;          /* parameter tensors, for per-tensor kernels of unfused optimizers */
    int vectors;           /* those of them with one dimension: norms and biases */
} CostParams;

typedef enum {
    COST_PART_EMBEDDING, /* token and position tables, embedding norm */
    COST_PART_LAYER,
    COST_PART_HEAD, /* final norm and LM head (no matrix when tied and on the embedding's stage) */
    COST_PART_MTP,
} CostModelPart;

/* `layer` (0-based along the model) tells dense from expert layers; ignored for other pieces. The head of a
 * tied model counts no matrix. */
CostParams cost_part_params(const SpecModel *model, CostModelPart piece, int layer);

/* Parameters of the vision tower, of its projector, or of both; zeros without one. The tower as a model of its own. */
CostParams cost_vision_params(const SpecModel *model, bool tower, bool projector);
SpecModel cost_tower_model(const SpecModel *model);

/* The router of a layer with experts, of which every rank has all; zeros: it has none. */
CostParams cost_router_params(const SpecModel *model, int layer);

/* True when the layer has routed experts. */
bool cost_layer_has_experts(const SpecModel *model, int layer);

/* Experts of a layer that has some: those of the last ones may be more (pyramid), or a list says which layer has what.
 * Source: [Rajbhandari2022] section 4 */
SpecMoeRun cost_layer_moe(const SpecModel *model, int layer);
/* The scenario as that layer's experts see it; false, and nothing written, where model.moe's own figures are the layer's. */
bool cost_layer_spec(const Spec *spec, int layer, Spec *ret_spec);

/* Dimensions of a head's queries and keys, and of its values. */
double cost_qk_dim(const SpecModel *model);
double cost_v_dim(const SpecModel *model);

/* True when its attention has a window. */
bool cost_layer_windowed(const SpecModel *model, int layer);

/* Of models with an encoder: its layers, its last one, and those of the decoder, which attend to what it returns. */
bool cost_layer_encodes(const SpecModel *model, int layer);
bool cost_layer_ends_encoder(const SpecModel *model, int layer);
bool cost_layer_crosses(const SpecModel *model, int layer);

/* Layers of one kind cost and keep the same: dense, or with experts of one kind; windowed or not; of an encoder, its last one,
 * or behind it. */
#define COST_DECODER_KINDS (2 * (2 + SPEC_MOE_KINDS)) /* of models without an encoder */
#define COST_LAYER_KINDS   (COST_DECODER_KINDS + 3)
int cost_layer_kind(const SpecModel *model, int layer);

/* Whole model; `active` counts top_k instead of all experts. mtp modules included when mtp_layers > 0. */
double cost_parameters(const SpecModel *model, int max_positions_or_0, bool active);

/* Parameters that a rank holds and trains (before ZeRO): of a piece, a bucket, a stage, or all of its own. */
typedef struct CostWeights {
    double dense;  /* with copies on all data-parallel and context-parallel ranks */
    double expert; /* of routed experts: with copies on the ranks of the same expert rank alone */
    int tensors;   /* for per-tensor kernels of unfused optimizers */
    int vectors;   /* those of them with one dimension */
} CostWeights;

/* What one rank holds of a piece. */
CostWeights cost_rank_weights(const CostParams *params, const SpecParallel *parallel);
void cost_weights_add(CostWeights *sum, const CostWeights *term);
/* All of `sum` but `term`. */
CostWeights cost_weights_without(const CostWeights *sum, const CostWeights *term);
/* Elements, dense and of experts. */
static inline double cost_weights_count(const CostWeights *weights)
{
    return weights->dense + weights->expert;
}

#endif
