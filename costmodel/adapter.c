/* costmodel/adapter.c - see adapter.h. */
#include "costmodel/adapter.h"

#include <string.h>

/* A linear layer of a block: the projections that it is made of, and whether tensor ranks cut its inputs. */
typedef struct Linear {
    const char *name;
    SpecTarget targets[COST_MAX_PARTS];
    bool cuts_inputs;
} Linear;

static const Linear linears[] = {{"qkv", {SPEC_TARGET_Q, SPEC_TARGET_K, SPEC_TARGET_V}, false},
                                 {"attention out", {SPEC_TARGET_O}, true},
                                 {"mlp in", {SPEC_TARGET_GATE, SPEC_TARGET_UP}, false},
                                 {"mlp out", {SPEC_TARGET_DOWN}, true}};

/* Outputs of a projection, whole. */
static double outputs_of(const SpecModel *model, SpecTarget target)
{
    switch (target) {
    case SPEC_TARGET_Q:
        return (double)model->heads * model->head_dim;
    case SPEC_TARGET_K:
    case SPEC_TARGET_V:
        return (double)model->kv_heads * model->head_dim;
    case SPEC_TARGET_GATE:
        return model->gated_mlp ? model->ffn_hidden : 0;
    case SPEC_TARGET_UP:
        return model->ffn_hidden;
    default:
        return model->hidden;
    }
}

/* Adapters of one linear layer: how many there are, and the outputs of each, whole. */
typedef struct Adapters {
    int count;
    double out[COST_MAX_PARTS], all_out;
} Adapters;

static Adapters adapters_of(const Spec *spec, const Linear *linear)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    Adapters on = {0};
    for (int i = 0; i < COST_MAX_PARTS; i++) {
        const double out = outputs_of(&spec->model, linear->targets[i]);
        if ((adapter->targets & linear->targets[i]) == 0 || out <= 0)
            continue;
        on.out[on.count++] = out;
        on.all_out += out;
    }
    if (adapter->fused && on.count > 1) {
        on.count = 1;
        on.out[0] = on.all_out;
    }
    return on;
}

static const Linear *find(const char *name)
{
    for (gsize i = 0; i < G_N_ELEMENTS(linears); i++)
        if (strcmp(linears[i].name, name) == 0)
            return &linears[i];
    return NULL;
}

/* --- parameters --- */

CostParams cost_trained_params(const Spec *spec, CostModelPart piece, int layer)
{
    const SpecModel *model = &spec->model;
    const SpecAdapter *adapter = &spec->training.adapter;
    CostParams params = {0};
    if (!adapter->given)
        return cost_part_params(model, piece, layer);
    if (piece != COST_PART_LAYER)
        return params;
    for (gsize i = 0; i < G_N_ELEMENTS(linears); i++) {
        const Adapters on = adapters_of(spec, &linears[i]);
        const double in = strcmp(linears[i].name, "attention out") == 0
                              ? (double)model->heads * cost_v_dim(model)
                          : strcmp(linears[i].name, "mlp out") == 0 ? model->ffn_hidden
                                                                    : model->hidden;
        const double a = on.count * in * adapter->rank, b = on.all_out * adapter->rank;
        params.tensor_sharded += linears[i].cuts_inputs ? a : b;
        params.replicated += linears[i].cuts_inputs ? b : a;
        params.matrices += 2 * on.count;
    }
    return params;
}

double cost_trained_parameters(const Spec *spec)
{
    double sum = 0;
    if (!spec->training.adapter.given)
        return cost_parameters(&spec->model, 0, false);
    for (int layer = 0; layer < spec->model.layers; layer++) {
        const CostParams params = cost_trained_params(spec, COST_PART_LAYER, layer);
        sum += params.tensor_sharded + params.replicated;
    }
    return sum;
}

double cost_base_bytes(const SpecAdapter *adapter)
{
    switch (adapter->base_dtype) {
    case SPEC_BASE_NF4:
        return 0.5 + (adapter->double_quantised ? 1.0 / 64 + 4.0 / (64 * 256) : 4.0 / 64);
    case SPEC_BASE_INT8:
    case SPEC_BASE_FP8:
        return 1;
    default:
        return 2;
    }
}

/* Norms and biases are vectors, which stay in 16 bits, as the embedding and the head do. */
CostFrozen cost_frozen_bytes(const Spec *spec, CostModelPart piece, int layer)
{
    const SpecAdapter *adapter = &spec->training.adapter;
    CostFrozen frozen = {0};
    if (!adapter->given)
        return frozen;
    const CostParams all = cost_part_params(&spec->model, piece, layer);
    const double base = piece == COST_PART_LAYER ? cost_base_bytes(adapter) : 2;
    const CostParams matrices = {.tensor_sharded = all.tensor_sharded},
                     vectors = {.replicated = all.replicated};
    frozen.dense_bytes = base * cost_rank_dense_params(&matrices, &spec->parallel) +
                         2 * cost_rank_dense_params(&vectors, &spec->parallel);
    frozen.expert_bytes = base * cost_rank_expert_params(&all, &spec->parallel);
    return frozen;
}

/* --- ops --- */

void cost_push_widening(const CostShape *shape, CostOps *ops, CostModule module, CostPass pass,
                        double weights)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const bool as_stored = adapter->base_dtype == SPEC_BASE_FP8 && shape->linear_dtype == SPEC_FP8;
    if (!adapter->given || adapter->base_dtype == SPEC_BASE_BF16 || as_stored ||
        pass == COST_BACKWARD_WEIGHT ||
        (module != COST_MODULE_ATTENTION_PROJECTION && module != COST_MODULE_MLP_LINEAR))
        return;
    const bool scales = adapter->base_dtype == SPEC_BASE_NF4 && adapter->double_quantised;
    cost_push_memory(ops, "widen weight", module, COST_MEMORY_CAST, weights,
                     cost_both_ways(cost_base_bytes(adapter), shape->element_bytes), scales ? 2 : 1);
    ops->op[ops->count - 1].temp_bytes = weights * shape->element_bytes;
}

/* The products of the adapters: A of `in` inputs, or B of their outputs. `rows` are the linear's outputs of each. */
static void push_product(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                         CostPass pass, double tokens, double in, const double *rows, int count)
{
    double out = 0, parts[COST_MAX_PARTS] = {0};
    for (int i = 0; i < count; i++) {
        parts[i] = rows[i];
        out += rows[i];
    }
    const SpecDtype dtype = shape->activation_dtype;
    int gemm = ops->count;
    if (pass == COST_FORWARD)
        cost_push_gemm(ops, name, module, pass, tokens, out, in, 1, dtype);
    else if (pass == COST_BACKWARD_INPUT)
        cost_push_gemm(ops, name, module, pass, tokens, in, out, 1, dtype);
    else
        gemm =
            cost_push_weight_gradient(shape, ops, name, module, (const double[]){out, in, tokens}, 1, dtype);
    if (count > 1) {
        memcpy(ops->op[gemm].parts, parts, sizeof parts);
        ops->op[gemm].kernels = count;
    }
}

/* Element-wise kernels around the products: dropout before A, then scaling and adding, which a compiler makes one kernel and
 * a fused product does itself. */
static void push_around(const CostShape *shape, CostOps *ops, CostModule module, bool backward, int count,
                        double in, double out)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const double e = shape->element_bytes;
    const bool compiled = shape->spec->execution.compiled == 1;
    if (adapter->dropout_frac > 0)
        cost_push_memory(ops, "adapter dropout", module, COST_MEMORY_ELEMENTWISE, count * in,
                         backward ? cost_both_ways(e + 1, e) : cost_both_ways(e, e + 1), count);
    if (adapter->fused)
        return;
    if (!compiled)
        cost_push_memory(ops, "adapter scale", module, COST_MEMORY_ELEMENTWISE, out, cost_both_ways(e, e),
                         count);
    const double added = backward ? count * in : out;
    cost_push_memory(ops, "adapter add", module, COST_MEMORY_ELEMENTWISE, added, cost_both_ways(2 * e, e),
                     count);
}

/* The columns between A and B, where each tensor rank has a part of the sum. */
static void push_sum(const CostShape *shape, CostOps *ops, CostModule module, double elements)
{
    cost_push_collective(ops, "adapter reduce", module, COST_ALL_REDUCE, elements * shape->element_bytes,
                         shape->tensor_group, COST_COMM_TENSOR, -1);
}

void cost_push_adapter(const CostShape *shape, CostOps *ops, const char *name, CostModule module,
                       CostPass pass, double tokens, double in, double out)
{
    const SpecAdapter *adapter = &shape->spec->training.adapter;
    const Linear *linear = adapter->given ? find(name) : NULL;
    const int first = ops->count;
    if (linear == NULL)
        return;
    const Adapters on = adapters_of(shape->spec, linear);
    if (on.count == 0)
        return;
    double ranks[COST_MAX_PARTS] = {0}, outs[COST_MAX_PARTS] = {0}, all_out = 0;
    for (int i = 0; i < on.count; i++) {
        ranks[i] = adapter->rank;
        outs[i] = linear->cuts_inputs ? on.out[i] : on.out[i] / shape->tensor;
        all_out += outs[i];
    }
    g_assert(all_out <= out * (1 + 1e-9));
    const double columns = on.count * (double)adapter->rank;
    const bool backward = pass == COST_BACKWARD_INPUT;
    if (pass == COST_FORWARD) {
        push_product(shape, ops, "adapter a", module, pass, tokens, in, ranks, on.count);
        if (linear->cuts_inputs)
            push_sum(shape, ops, module, tokens * columns);
        push_product(shape, ops, "adapter b", module, pass, tokens, adapter->rank, outs, on.count);
    } else {
        push_product(shape, ops, "adapter b", module, pass, tokens, adapter->rank, outs, on.count);
        if (backward && !linear->cuts_inputs)
            push_sum(shape, ops, module, tokens * columns);
        push_product(shape, ops, "adapter a", module, pass, tokens, in, ranks, on.count);
    }
    if (pass != COST_BACKWARD_WEIGHT)
        push_around(shape, ops, module, backward, on.count, tokens * in, tokens * all_out);
    for (int i = first; i < ops->count; i++)
        ops->op[i].adapter = true;
    if (pass != COST_FORWARD)
        return;
    const double e = shape->element_bytes, copies = adapter->dropout_frac > 0 ? on.count - 1 : 0,
                 masks = adapter->dropout_frac > 0 ? on.count : 0;
    cost_keep(ops, (CostTensor){"adapter columns", tokens * columns * e, first, .kept_by = first,
                                .weight_grad = true});
    cost_keep(ops, (CostTensor){"adapter inputs", tokens * in * (copies * e + masks), first, .kept_by = first,
                                .weight_grad = true});
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

void cost_freeze(const CostShape *shape, CostGraph *graph)
{
    if (!shape->spec->training.adapter.given)
        return;
    drop_tensors(shape, &graph->pass[COST_FORWARD]);
    drop_gradients(&graph->pass[COST_BACKWARD_WEIGHT]);
}

/* --- the reference of preference pairs --- */

bool cost_runs_reference(const Spec *spec)
{
    return spec->training.reference == SPEC_REFERENCE_ADAPTER_OFF ||
           spec->training.reference == SPEC_REFERENCE_MODEL;
}

CostFrozen cost_reference_bytes(const Spec *spec, CostModelPart piece, int layer)
{
    CostFrozen bytes = {0};
    if (spec->training.reference != SPEC_REFERENCE_MODEL)
        return bytes;
    const CostParams all = cost_part_params(&spec->model, piece, layer);
    bytes.dense_bytes = 2 * cost_rank_dense_params(&all, &spec->parallel);
    bytes.expert_bytes = 2 * cost_rank_expert_params(&all, &spec->parallel);
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
