/* costmodel/adapter.c - see adapter.h. */
#include "costmodel/adapter.h"

#include <string.h>

#include "costmodel/adapter_internal.h"
#include "costmodel/states.h"

static const CostLinear linears[] = {
    {"qkv", {SPEC_TARGET_Q, SPEC_TARGET_K, SPEC_TARGET_V}, COST_CUT_OUTPUTS, COST_MLP_NONE},
    {"q down", {SPEC_TARGET_Q_A}, COST_CUT_NOTHING, COST_MLP_NONE},
    {"q up", {SPEC_TARGET_Q, SPEC_TARGET_Q_B}, COST_CUT_OUTPUTS, COST_MLP_NONE},
    {"kv down", {SPEC_TARGET_KV_A}, COST_CUT_NOTHING, COST_MLP_NONE},
    {"kv up", {SPEC_TARGET_KV_B}, COST_CUT_OUTPUTS, COST_MLP_NONE},
    {"attention out", {SPEC_TARGET_O}, COST_CUT_INPUTS, COST_MLP_NONE},
    {"mlp in", {SPEC_TARGET_GATE, SPEC_TARGET_UP}, COST_CUT_OUTPUTS, COST_MLP_DENSE},
    {"mlp out", {SPEC_TARGET_DOWN}, COST_CUT_INPUTS, COST_MLP_DENSE},
    {"shared expert in", {SPEC_TARGET_GATE, SPEC_TARGET_UP}, COST_CUT_OUTPUTS, COST_MLP_SHARED},
    {"shared expert out", {SPEC_TARGET_DOWN}, COST_CUT_INPUTS, COST_MLP_SHARED},
    {"experts in", {SPEC_TARGET_GATE, SPEC_TARGET_UP}, COST_CUT_OUTPUTS, COST_MLP_EXPERTS},
    {"experts out", {SPEC_TARGET_DOWN}, COST_CUT_INPUTS, COST_MLP_EXPERTS},
};

static double mlp_width(const SpecModel *model, CostMlp mlp)
{
    return mlp == COST_MLP_DENSE    ? model->ffn_hidden
           : mlp == COST_MLP_SHARED ? model->moe.shared_expert_ffn_hidden
                                    : model->moe.expert_ffn_hidden;
}

/* Outputs of a projection, whole; 0: the model has none of this name. */
static double outputs_of(const SpecModel *model, const CostLinear *linear, SpecTarget target)
{
    const SpecMla *mla = &model->mla;
    const bool latent = mla->kv_lora_rank > 0, qkv = strcmp(linear->name, "qkv") == 0;
    switch (target) {
    case SPEC_TARGET_Q: /* beside a latent of keys and values queries may have none of their own */
        if (qkv ? latent : !latent || mla->q_lora_rank > 0)
            return 0;
        return model->heads * cost_qk_dim(model);
    case SPEC_TARGET_K:
    case SPEC_TARGET_V:
        return latent ? 0 : (double)model->kv_heads * model->head_dim;
    case SPEC_TARGET_Q_A:
        return mla->q_lora_rank;
    case SPEC_TARGET_Q_B:
        return mla->q_lora_rank > 0 ? model->heads * cost_qk_dim(model) : 0;
    case SPEC_TARGET_KV_A:
        return latent ? mla->kv_lora_rank + mla->qk_rope_head_dim : 0;
    case SPEC_TARGET_KV_B:
        return latent ? (double)model->heads * (mla->qk_nope_head_dim + mla->v_head_dim) : 0;
    case SPEC_TARGET_GATE:
        return model->gated_mlp ? mlp_width(model, linear->mlp) : 0;
    case SPEC_TARGET_UP:
        return mlp_width(model, linear->mlp);
    default:
        return model->hidden;
    }
}

static double inputs_of(const SpecModel *model, const CostLinear *linear)
{
    switch (linear->targets[0]) {
    case SPEC_TARGET_O:
        return model->heads * cost_v_dim(model);
    case SPEC_TARGET_DOWN:
        return mlp_width(model, linear->mlp);
    case SPEC_TARGET_KV_B:
        return model->mla.kv_lora_rank;
    default:
        return strcmp(linear->name, "q up") == 0 && model->mla.q_lora_rank > 0 ? model->mla.q_lora_rank
                                                                               : model->hidden;
    }
}

CostAdapters cost_adapters_of(const Spec *spec, const CostLinear *linear)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    CostAdapters on = {0};
    for (int i = 0; i < COST_MAX_PARTS; i++) {
        if ((adapter->targets & linear->targets[i]) == 0)
            continue;
        const double out = outputs_of(&spec->model, linear, linear->targets[i]);
        if (out <= 0)
            continue;
        on.out[on.count++] = out;
        on.all_out += out;
    }
    if ((adapter->fused || (adapter->joint & linear->targets[0]) != 0) && on.count > 1) {
        on.count = 1;
        on.out[0] = on.all_out;
    }
    return on;
}

const CostLinear *cost_linear_named(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(linears); i++)
        if (strcmp(linears[i].name, name) == 0)
            return &linears[i];
    return NULL;
}

/* --- parameters --- */

/* Of one linear layer: with experts all of them, or one for each expert rank where its experts share. */
static void add_params(const Spec *spec, const CostLinear *linear, int experts, CostParams *params)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    const CostAdapters on = cost_adapters_of(spec, linear);
    const double a = on.count * inputs_of(&spec->model, linear) * adapter->rank,
                 b = on.all_out * adapter->rank;
    const int ranks = spec->parallel.expert;
    if (linear->mlp == COST_MLP_EXPERTS) {
        params->expert += (a + b) * (adapter->share_expert_adapters ? ranks : experts);
        params->matrices += 2 * on.count * (adapter->share_expert_adapters ? 1 : MAX(1, experts / ranks));
        return;
    }
    const double whole = linear->cut == COST_CUT_INPUTS ? b : linear->cut == COST_CUT_OUTPUTS ? a : a + b;
    params->replicated += whole;
    params->tensor_sharded += a + b - whole;
    params->matrices += 2 * on.count;
}

/* What of a piece is frozen beside the rest of it: its router, the vision tower before the first layer. */
static CostParams frozen_inside(const Spec *spec, CostModelPart piece, int layer)
{
    const SpecFreeze *freeze = &spec->training.freeze;
    if (piece == COST_PART_EMBEDDING)
        return cost_vision_params(&spec->model, freeze->vision, freeze->projector);
    const bool has = piece == COST_PART_LAYER || piece == COST_PART_MTP;
    return freeze->router && has
               ? cost_router_params(&spec->model, piece == COST_PART_MTP ? spec->model.layers - 1 : layer)
               : (CostParams){0};
}

static CostParams without(CostParams all, CostParams part)
{
    all.tensor_sharded -= part.tensor_sharded;
    all.replicated -= part.replicated;
    all.expert -= part.expert;
    all.matrices -= part.matrices;
    all.vectors -= part.vectors;
    return all;
}

/* What of a piece training.freeze leaves as it is. */
static CostParams frozen_params(const Spec *spec, CostModelPart piece, int layer)
{
    const CostParams inside = frozen_inside(spec, piece, layer);
    if (!cost_part_frozen(spec, piece, layer))
        return inside;
    const CostParams all = cost_part_params(&spec->model, piece, layer);
    if (piece != COST_PART_EMBEDDING)
        return all;
    const SpecFreeze *freeze = &spec->training.freeze;
    return without(all, cost_vision_params(&spec->model, !freeze->vision, !freeze->projector));
}

CostParams cost_trained_params(const Spec *spec, CostModelPart piece, int layer)
{
    const SpecModel *model = &spec->model;
    CostParams params = {0};
    if (!spec->training.adapter.given)
        return without(cost_part_params(model, piece, layer), frozen_params(spec, piece, layer));
    if (cost_part_saved(spec, piece)) { /* the table alone: no positions, no norm */
        params.tensor_sharded = (double)model->vocab * model->hidden;
        params.matrices = 1;
    }
    if (piece != COST_PART_LAYER)
        return params;
    const bool has_experts = cost_layer_has_experts(model, layer);
    g_autofree Spec *own = g_new(Spec, 1);
    const Spec *of_layer = has_experts && cost_layer_spec(spec, layer, own) ? own : spec;
    const int experts = has_experts ? of_layer->model.moe.experts : 0;
    for (gsize i = 0; i < G_N_ELEMENTS(linears); i++) {
        const CostMlp mlp = linears[i].mlp;
        if (mlp == COST_MLP_NONE || (mlp == COST_MLP_DENSE && !has_experts) ||
            (mlp == COST_MLP_EXPERTS && has_experts) ||
            (mlp == COST_MLP_SHARED && has_experts && model->moe.shared_experts > 0))
            add_params(of_layer, &linears[i], experts, &params);
    }
    return params;
}

static double whole(const CostParams *params)
{
    return params->tensor_sharded + params->replicated + params->expert;
}

double cost_trained_parameters(const Spec *spec)
{
    if (!spec->training.adapter.given && !spec_freezes(&spec->training.freeze))
        return cost_parameters(&spec->model, 0, false);
    const CostParams first = cost_trained_params(spec, COST_PART_EMBEDDING, 0),
                     last = cost_trained_params(spec, COST_PART_HEAD, 0),
                     mtp = cost_trained_params(spec, COST_PART_MTP, 0);
    double sum = whole(&first) + whole(&last) + spec->model.mtp_layers * whole(&mtp);
    for (int layer = 0; layer < spec->model.layers; layer++) {
        const CostParams params = cost_trained_params(spec, COST_PART_LAYER, layer);
        sum += whole(&params);
    }
    return sum;
}

double cost_base_bytes(const SpecAdapter *adapter)
{
    switch (adapter->base_dtype) {
    case SPEC_BASE_NF4:
        return 0.5 + (adapter->double_quantised ? 1.0 / 64 + 4.0 / (64 * 256) : 4.0 / 64);
    case SPEC_BASE_INT4:
        return 0.5 + (2 + 0.5) / 128;
    case SPEC_BASE_INT8:
    case SPEC_BASE_FP8:
        return 1;
    default:
        return 2;
    }
}

/* Norms and biases are vectors, which stay in 16 bits, as the embedding and the head do; or in fp32 (cost_autocasts). */
CostFrozen cost_frozen_bytes(const Spec *spec, CostModelPart piece, int layer)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    CostFrozen frozen = {0};
    const CostParams all = cost_part_params(&spec->model, piece, layer);
    if (!adapter->given) {
        const CostParams left = frozen_params(spec, piece, layer);
        const CostWeights weights = cost_rank_weights(&left, &spec->parallel);
        const double each = cost_weight_wire_bytes(spec);
        return (CostFrozen){each * weights.dense, each * weights.expert};
    }
    const double rest = cost_autocasts(spec) ? 4 : 2;
    const double base = piece == COST_PART_LAYER ? cost_base_bytes(adapter) : rest;
    const CostParams matrices = {.tensor_sharded = all.tensor_sharded},
                     vectors = {.replicated = all.replicated};
    frozen.dense_bytes = base * cost_rank_weights(&matrices, &spec->parallel).dense +
                         rest * cost_rank_weights(&vectors, &spec->parallel).dense;
    frozen.expert_bytes = base * cost_rank_weights(&all, &spec->parallel).expert;
    return frozen;
}

double cost_held_bytes(const Spec *spec, const CostFrozen *frozen)
{
    const bool sharded = spec->parallel.zero >= 3;
    const double dense = sharded ? cost_shard_degree(spec, cost_dense_replicas(spec)) : 1,
                 expert = sharded ? cost_shard_degree(spec, cost_expert_replicas(spec)) : 1;
    return frozen->dense_bytes / dense + frozen->expert_bytes / expert;
}

/* --- freezing --- */

/* Whether the product at `index` of a forward list has an adapter behind it. */
static bool has_adapter(const CostOps *ops, int index)
{
    return index + 1 < ops->count && ops->op[index + 1].adapter;
}

static bool is_product_input(const CostOps *forward, const CostTensor *tensor)
{
    const CostOp *reader = &forward->op[tensor->kept_by];
    return tensor->weight_grad && !reader->adapter && reader->kind == COST_OP_GEMM;
}

/* A tensor that only the gradient of a frozen weight reads. Fused attention reads its output too; an adapter reads what was
 * there before a cast. */
static bool is_idle(const CostOps *forward, const CostTensor *tensor)
{
    const CostOp *writer = tensor->written_by != COST_OUTSIDE ? &forward->op[tensor->written_by] : NULL;
    if (!is_product_input(forward, tensor) ||
        (writer != NULL && writer->module == COST_MODULE_ATTENTION_CORE))
        return false;
    return !has_adapter(forward, tensor->kept_by) || (writer != NULL && strcmp(writer->name, "cast") == 0);
}

static void drop_tensors(const CostShape *shape, CostOps *forward)
{
    const double wider = shape->element_bytes / cost_kept_element_bytes(shape);
    int kept = 0;
    for (int i = 0; i < forward->kept_count; i++) {
        CostTensor tensor = forward->kept[i];
        const bool core = tensor.written_by != COST_OUTSIDE &&
                          forward->op[tensor.written_by].module == COST_MODULE_ATTENTION_CORE;
        if (is_idle(forward, &tensor))
            continue;
        if (is_product_input(forward, &tensor) && !core)
            tensor.bytes *= wider;
        forward->kept[kept++] = tensor;
    }
    forward->kept_count = kept;
}

/* Of the weights' pass adapters stay, and what crosses tensor ranks, which then runs beside nothing. */
static void drop_gradients(CostOps *weights)
{
    int count = 0;
    for (int i = 0; i < weights->count; i++) {
        const CostOp *op = &weights->op[i];
        if (!op->adapter && op->kind != COST_OP_COLLECTIVE)
            continue;
        weights->op[count] = *op;
        if (op->kind == COST_OP_COLLECTIVE) {
            weights->op[count].u.collective.hidden_under = -1;
            weights->op[count].u.collective.chunked = false;
        }
        count++;
    }
    weights->count = count;
}

void cost_freeze(const CostShape *shape, CostModelPart piece, int layer, int layer_in_stage, CostGraph *graph)
{
    if (cost_part_stops(shape->spec, piece, layer, layer_in_stage)) {
        graph->pass[COST_BACKWARD_INPUT].count = graph->pass[COST_BACKWARD_WEIGHT].count = 0;
        graph->pass[COST_FORWARD].kept_count = 0;
    }
    if (cost_part_saved(shape->spec, piece) ||
        (!shape->spec->training.adapter.given && !cost_part_frozen(shape->spec, piece, layer)))
        return;
    drop_tensors(shape, &graph->pass[COST_FORWARD]);
    drop_gradients(&graph->pass[COST_BACKWARD_WEIGHT]);
}

/* --- the reference of preference pairs --- */

int cost_reference_forwards(const Spec *spec)
{
    const SpecReference reference = spec->training.reference;
    return reference == SPEC_REFERENCE_ADAPTER_OFF || reference == SPEC_REFERENCE_MODEL
               ? 1 + cost_mismatched_forwards(spec)
               : 0;
}

int cost_mismatched_forwards(const Spec *spec)
{
    return spec->training.task == SPEC_TASK_KTO ? 1 : 0;
}

CostFrozen cost_reference_bytes(const Spec *spec, CostModelPart piece, int layer)
{
    CostFrozen bytes = {0};
    if (spec->training.reference != SPEC_REFERENCE_MODEL || piece == COST_PART_MTP)
        return bytes;
    const CostParams all = cost_part_params(&spec->model, piece, layer);
    const CostWeights weights = cost_rank_weights(&all, &spec->parallel);
    bytes.dense_bytes = 2 * weights.dense;
    bytes.expert_bytes = 2 * weights.expert;
    return bytes;
}

void cost_reference_ops(const CostOps *forward, CostOps *ret_ops)
{
    int moved[COST_MAX_OPS];
    ret_ops->count = ret_ops->kept_count = 0;
    for (int i = 0; i < forward->count; i++) {
        const CostOp *op = &forward->op[i];
        moved[i] = ret_ops->count;
        if (op->adapter)
            continue;
        ret_ops->op[ret_ops->count] = *op;
        if (op->kind == COST_OP_COLLECTIVE && op->u.collective.hidden_under >= 0)
            ret_ops->op[ret_ops->count].u.collective.hidden_under = moved[op->u.collective.hidden_under];
        ret_ops->count++;
    }
}
