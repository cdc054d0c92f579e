/* costmodel/params.c - see params.h. Counts are exact; docs/MODEL.md lists them piece by piece. */
#include "costmodel/params.h"

#include <stddef.h>

#include "costmodel/layer_list.h"
#include "spec/moe.h"

bool cost_layer_has_experts(const SpecModel *model, int layer)
{
    const SpecMoe *moe = &model->moe;
    if (moe->experts == 0 || layer < moe->dense_layers) {
        return false;
    }
    const int step = moe->layer_step > 1 ? moe->layer_step : 1;
    return (layer - moe->dense_layers) % step == step - 1;
}

static double norm_params(const SpecModel *model, double width)
{
    switch (model->norm) {
    case SPEC_NORM_LAYERNORM:
        return 2 * width;
    case SPEC_NORM_RMSNORM:
        return width;
    default:
        return 0;
    }
}

static void add_matrix(CostParams *params, double rows, double columns)
{
    params->tensor_sharded += rows * columns;
    params->matrices += 1;
}

static void add_norm(CostParams *params, const SpecModel *model, double width)
{
    const double count = norm_params(model, width);
    params->replicated += count;
    const int vectors = count > 0 ? (model->norm == SPEC_NORM_LAYERNORM ? 2 : 1) : 0;
    params->matrices += vectors;
    params->vectors += vectors;
}

/* Multi-head latent attention: down-projections with their norms, up-projections. [DeepSeekV3] */
static void add_mla(CostParams *params, const SpecModel *model)
{
    const SpecMla *mla = &model->mla;
    const double h = model->hidden, a = model->heads;
    const double qk = mla->qk_nope_head_dim + mla->qk_rope_head_dim;
    if (mla->q_lora_rank > 0) {
        params->replicated += h * mla->q_lora_rank;
        params->matrices += 1;
        add_norm(params, model, mla->q_lora_rank);
        add_matrix(params, mla->q_lora_rank, a * qk);
    } else {
        add_matrix(params, h, a * qk);
    }
    params->replicated += h * (mla->kv_lora_rank + mla->qk_rope_head_dim);
    params->matrices += 1;
    add_norm(params, model, mla->kv_lora_rank);
    add_matrix(params, mla->kv_lora_rank, a * (mla->qk_nope_head_dim + mla->v_head_dim));
    add_matrix(params, a * mla->v_head_dim, h);
}

static void add_attention(CostParams *params, const SpecModel *model)
{
    const double h = model->hidden, d = model->head_dim;
    const double qkv = (model->heads + 2.0 * model->kv_heads) * d;
    if (model->mla.kv_lora_rank > 0) {
        add_mla(params, model);
        return;
    }
    add_matrix(params, h, qkv);
    add_matrix(params, model->heads * d, h);
    if (model->biases == SPEC_BIASES_ALL || model->biases == SPEC_BIASES_QKV) {
        params->tensor_sharded += qkv;
        params->matrices += 1;
        params->vectors += 1;
    }
    if (model->biases == SPEC_BIASES_ALL) {
        params->replicated += h;
        params->matrices += 1;
        params->vectors += 1;
    }
    if (model->qk_norm) {
        params->replicated += 2 * d;
        params->matrices += 2;
        params->vectors += 2;
    }
}

static double mlp_weights(const SpecModel *model, double ffn)
{
    return (model->gated_mlp ? 3.0 : 2.0) * model->hidden * ffn;
}

static void add_dense_mlp(CostParams *params, const SpecModel *model, double ffn)
{
    params->tensor_sharded += mlp_weights(model, ffn);
    params->matrices += 2;
    if (model->biases == SPEC_BIASES_ALL || model->biases == SPEC_BIASES_MLP) {
        params->tensor_sharded += (model->gated_mlp ? 2 : 1) * ffn;
        params->replicated += model->hidden;
        params->matrices += 2;
        params->vectors += 2;
    }
}

static CostParams router_of(const SpecModel *model, int experts)
{
    const bool bias = model->biases == SPEC_BIASES_ALL;
    return (CostParams){.replicated = (double)(model->hidden + (bias ? 1 : 0)) * experts,
                        .matrices = bias ? 2 : 1};
}

static void add_experts(CostParams *params, const SpecModel *model, const SpecMoeRun *own)
{
    const SpecMoe *moe = &model->moe;
    const int experts = own->experts;
    const CostParams router = router_of(model, experts);
    params->replicated += router.replicated;
    params->expert += experts * mlp_weights(model, own->expert_ffn_hidden);
    params->matrices += 2 + router.matrices;
    if (model->biases == SPEC_BIASES_ALL) {
        params->expert += experts * ((model->gated_mlp ? 2.0 : 1.0) * own->expert_ffn_hidden + model->hidden);
        params->matrices += 2;
    }
    if (moe->shared_experts > 0) {
        params->tensor_sharded += mlp_weights(model, moe->shared_expert_ffn_hidden);
        params->matrices += 2;
    }
}

SpecMoeRun cost_layer_moe(const SpecModel *model, int layer)
{
    const SpecMoe *moe = &model->moe;
    const int step = moe->layer_step > 1 ? moe->layer_step : 1;
    const SpecMoeRun *run = spec_moe_run(moe, (layer - moe->dense_layers) / step);
    SpecMoeRun own = {.layers = 1,
                      .experts = moe->experts,
                      .top_k = moe->top_k,
                      .expert_ffn_hidden = moe->expert_ffn_hidden};
    if (run != NULL)
        return *run;
    if (moe->late_layers > 0 && layer >= model->layers - moe->late_layers) {
        own.kind = moe->late_experts != moe->experts;
        own.experts = moe->late_experts;
    }
    return own;
}

bool cost_layer_spec(const Spec *spec, int layer, Spec *ret_spec)
{
    const SpecMoeRun own = cost_layer_moe(&spec->model, layer);
    if (own.kind == 0)
        return false;
    *ret_spec = *spec;
    ret_spec->model.moe.experts = own.experts;
    ret_spec->model.moe.top_k = own.top_k;
    ret_spec->model.moe.expert_ffn_hidden = own.expert_ffn_hidden;
    return true;
}

double cost_qk_dim(const SpecModel *model)
{
    return model->mla.kv_lora_rank > 0 ? model->mla.qk_nope_head_dim + model->mla.qk_rope_head_dim
                                       : model->head_dim;
}

double cost_v_dim(const SpecModel *model)
{
    return model->mla.kv_lora_rank > 0 ? model->mla.v_head_dim : model->head_dim;
}

bool cost_layer_windowed(const SpecModel *model, int layer)
{
    const int every = model->attention_window_every > 1 ? model->attention_window_every : 1;
    const bool full = model->attention_full_every > 0 && (layer + 1) % model->attention_full_every == 0;
    return model->attention_window_tokens > 0 && layer % every == 0 && !full;
}

bool cost_layer_encodes(const SpecModel *model, int layer)
{
    return layer < model->encoder_layers;
}

bool cost_layer_ends_encoder(const SpecModel *model, int layer)
{
    return layer + 1 == model->encoder_layers;
}

bool cost_layer_crosses(const SpecModel *model, int layer)
{
    return model->encoder_layers > 0 && layer >= model->encoder_layers;
}

int cost_layer_kind(const SpecModel *model, int layer)
{
    enum {
        ENCODER = COST_DECODER_KINDS,
        ENCODER_END,
        DECODER
    }; /* behind those of models without an encoder */
    if (model->encoder_layers > 0)
        return cost_layer_crosses(model, layer)        ? DECODER
               : cost_layer_ends_encoder(model, layer) ? ENCODER_END
                                                       : ENCODER;
    const int window = cost_layer_windowed(model, layer);
    const int experts = cost_layer_has_experts(model, layer) ? 1 + cost_layer_moe(model, layer).kind : 0;
    return experts * 2 + window;
}

/* Behind a model's last layer, or its encoder's. */
static void add_final_norm(CostParams *params, const SpecModel *model)
{
    if (!model->no_final_norm) {
        add_norm(params, model, model->hidden);
    }
}

static CostParams layer_params(const SpecModel *model, int layer)
{
    CostParams params = {0};
    add_norm(&params, model, model->hidden);
    add_attention(&params, model);
    add_norm(&params, model, model->hidden);
    if (cost_layer_crosses(model, layer)) {
        add_norm(&params, model, model->hidden);
        add_attention(&params, model);
    }
    if (cost_layer_ends_encoder(model, layer)) {
        add_final_norm(&params, model);
    }
    if (cost_layer_has_experts(model, layer)) {
        const SpecMoeRun own = cost_layer_moe(model, layer);
        add_experts(&params, model, &own);
    } else {
        add_dense_mlp(&params, model, model->ffn_hidden);
    }
    return params;
}

/* What a stack of layers adds to the rows of the table: positions, or each head's biases by distance, and a norm. */
static void add_positions(CostParams *params, const SpecModel *model)
{
    if (model->position == SPEC_POSITION_LEARNED) {
        params->replicated += (double)model->max_positions * model->hidden;
        params->matrices += 1;
    }
    if (model->position == SPEC_POSITION_RELATIVE) {
        add_matrix(params, model->position_buckets, model->heads);
    }
    if (model->embedding_norm) {
        add_norm(params, model, model->hidden);
    }
}

/* The tower as a model of its own. */
SpecModel cost_tower_model(const SpecModel *model)
{
    const SpecVision *vision = &model->vision;
    return (SpecModel){.layers = vision->layers,
                       .decoder_layers = vision->layers,
                       .hidden = vision->hidden,
                       .heads = vision->heads,
                       .kv_heads = vision->heads,
                       .head_dim = vision->hidden / vision->heads,
                       .ffn_hidden = vision->ffn_hidden,
                       .gated_mlp = vision->gated_mlp,
                       .vocab = 1,
                       .norm = vision->norm,
                       .biases = vision->biases ? SPEC_BIASES_ALL : SPEC_BIASES_NONE,
                       .position = SPEC_POSITION_NONE,
                       .max_positions = 1,
                       .attention_window_every = 1,
                       .time_frac = 1,
                       .moe = {.layer_step = 1}};
}

static void add_linear(const SpecVision *vision, double in, double out, CostParams *params)
{
    const int biases = vision->biases ? 1 : 0;
    params->replicated += in * out + biases * out;
    params->matrices += 1 + biases;
    params->vectors += biases;
}

static void add_projector(const SpecModel *model, CostParams *params)
{
    const SpecVision *vision = &model->vision;
    const double joined = (double)vision->merged_patches * vision->hidden;
    const int vectors = !vision->projector_norm || vision->norm == SPEC_NORM_NONE ? 0
                        : vision->norm == SPEC_NORM_LAYERNORM                     ? 2
                                                                                  : 1;
    params->replicated += (double)vectors * vision->hidden;
    params->matrices += vectors;
    params->vectors += vectors;
    if (vision->projector_hidden > 0)
        add_linear(vision, joined, vision->projector_hidden, params);
    add_linear(vision, vision->projector_hidden > 0 ? vision->projector_hidden : joined, model->hidden,
               params);
}

CostParams cost_vision_params(const SpecModel *model, bool tower, bool projector)
{
    const SpecVision *vision = &model->vision;
    CostParams params = {0};
    if (vision->layers > 0 && tower) {
        const SpecModel own = cost_tower_model(model);
        const CostParams layer = layer_params(&own, 0);
        params.tensor_sharded = vision->layers * layer.tensor_sharded;
        params.replicated = vision->layers * layer.replicated + (double)vision->patch_values * vision->hidden;
        params.matrices = vision->layers * layer.matrices + 1;
        params.vectors = vision->layers * layer.vectors;
    }
    if (vision->layers > 0 && projector)
        add_projector(model, &params);
    return params;
}

static void add_vision(const SpecModel *model, CostParams *params)
{
    const CostParams more = cost_vision_params(model, true, true);
    params->tensor_sharded += more.tensor_sharded;
    params->replicated += more.replicated;
    params->matrices += more.matrices;
    params->vectors += more.vectors;
}

CostParams cost_part_params(const SpecModel *model, CostModelPart piece, int layer)
{
    CostParams params = {0};
    const double h = model->hidden;
    switch (piece) {
    case COST_PART_EMBEDDING:
        add_matrix(&params, model->vocab, h);
        for (int stack = 0; stack < (model->encoder_layers > 0 ? 2 : 1); stack++) {
            add_positions(&params, model);
        }
        add_vision(model, &params);
        return params;
    case COST_PART_LAYER:
        return layer_params(model, layer);
    case COST_PART_HEAD:
        add_final_norm(&params, model);
        if (model->scalar_head) {
            params.replicated += h;
            params.matrices++;
        } else if (!model->tied_embeddings) {
            add_matrix(&params, model->vocab, h);
        }
        return params;
    case COST_PART_MTP: /* two norms, the joining projection, one layer, a final norm [DeepSeekV3] */
        params = layer_params(model, model->layers - 1);
        add_norm(&params, model, h);
        add_norm(&params, model, h);
        add_norm(&params, model, h);
        add_matrix(&params, 2 * h, h);
        return params;
    }
    return params;
}

CostParams cost_router_params(const SpecModel *model, int layer)
{
    const int experts = cost_layer_has_experts(model, layer) ? cost_layer_moe(model, layer).experts : 0;
    return experts > 0 ? router_of(model, experts) : (CostParams){0};
}

static double piece_total(const SpecModel *model, CostModelPart piece, int layer, bool active)
{
    const CostParams params = cost_part_params(model, piece, layer);
    const int last = piece == COST_PART_MTP ? model->layers - 1 : layer;
    const SpecMoeRun own = cost_layer_moe(model, last);
    const double share = active && own.experts > 0 ? (double)own.top_k / own.experts : 1;
    return params.tensor_sharded + params.replicated + params.expert * share;
}

double cost_parameters(const SpecModel *model, int max_positions_or_0, bool active)
{
    SpecModel copy = *model;
    if (model->list.text != NULL) {
        return cost_list_parameters(model);
    }
    if (max_positions_or_0 > 0) {
        copy.max_positions = max_positions_or_0;
    }
    double total =
        piece_total(&copy, COST_PART_EMBEDDING, 0, active) + piece_total(&copy, COST_PART_HEAD, 0, active);
    for (int layer = 0; layer < copy.layers; layer++) {
        total += piece_total(&copy, COST_PART_LAYER, layer, active);
    }
    return total + copy.mtp_layers * piece_total(&copy, COST_PART_MTP, 0, active);
}

CostWeights cost_rank_weights(const CostParams *params, const SpecParallel *parallel)
{
    /* the layers of a 2.5D grid hold the same weights */
    const double copies = parallel->tensor_scheme == SPEC_TENSOR_2_5D ? parallel->tensor_depth : 1;
    return (CostWeights){.dense = params->tensor_sharded * copies / parallel->tensor + params->replicated,
                         .expert = params->expert / ((double)parallel->expert * parallel->expert_tensor),
                         .tensors = params->matrices,
                         .vectors = params->vectors};
}

void cost_weights_add(CostWeights *sum, const CostWeights *term)
{
    sum->dense += term->dense;
    sum->expert += term->expert;
    sum->tensors += term->tensors;
    sum->vectors += term->vectors;
}

CostWeights cost_weights_without(const CostWeights *sum, const CostWeights *term)
{
    return (CostWeights){sum->dense - term->dense, sum->expert - term->expert, sum->tensors - term->tensors,
                         sum->vectors - term->vectors};
}
