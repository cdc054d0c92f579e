/* costmodel/vision.c - see vision.h. */
#include "costmodel/vision.h"

#include "costmodel/activations.h"
#include "costmodel/freeze.h"
#include "costmodel/pass.h"

typedef struct Tower {
    Spec spec;
    CostShape whole, window; /* layers that see an image, and those that see windows of it */
    int layers, window_layers;
    bool trained, projector; /* what a gradient trains; it passes the projector on its way to the tower */
    CostRecomputeExtent extent;
} Tower;

static bool is_narrow(SpecPrecision precision)
{
    return precision != SPEC_PRECISION_FP32 && precision != SPEC_PRECISION_TF32 &&
           precision != SPEC_PRECISION_FP16;
}

/* `seen` patches see each other. */
static void set_shape(const CostShape *outer, const Tower *tower, double seen, CostShape *shape)
{
    const SpecImages *images = &outer->spec->training.images;
    cost_shape_init(shape, &tower->spec);
    shape->tokens = shape->key_tokens = shape->part_tokens =
        outer->batch * images->per_sequence * images->patches;
    shape->sequence = shape->keys = seen;
    shape->batch = shape->tokens / seen;
    shape->longest_over_mean = 1;
    shape->accumulates = outer->accumulates;
    shape->causal = false;
}

static void fill_tower(const CostShape *shape, Tower *tower)
{
    const Spec *spec = shape->spec;
    const SpecVision *vision = &spec->model.vision;
    const int patches = spec->training.images.patches;
    const int window = vision->window_patches > 0 ? MIN(vision->window_patches, patches) : patches;
    SpecTraining *training = &tower->spec.training;
    tower->spec = *spec;
    tower->spec.model = cost_tower_model(&spec->model);
    training->adapter = (SpecAdapter){.given = false};
    training->freeze = (SpecFreeze){.layers = 0};
    training->lengths.given = false;
    training->document_tokens = 0;
    training->mlp_tiles = 1;
    training->attention_8bit = training->head_8bit = training->activation_input_8bit = false;
    training->sequence_length = patches;
    if (is_narrow(training->precision))
        training->precision = SPEC_PRECISION_BF16;
    tower->spec.parallel.context = tower->spec.parallel.expert = tower->spec.parallel.expert_tensor = 1;
    tower->spec.parallel.sequence_parallel = 0;
    tower->layers = vision->layers;
    tower->window_layers =
        window == patches
            ? 0
            : vision->layers - (vision->full_every > 0 ? vision->layers / vision->full_every : 0);
    tower->trained = cost_tower_trained(spec);
    tower->projector = cost_projector_trained(spec);
    tower->extent = tower->trained ? cost_recompute_extent(spec, 0) : COST_RECOMPUTE_OP_NONE;
    set_shape(shape, tower, patches, &tower->whole);
    set_shape(shape, tower, window, &tower->window);
}

static void repeat(CostOp *op, int times)
{
    op->repeat = MAX(1, op->repeat) * times;
    op->kernels *= times;
    op->host_kernels *= times;
    op->model_flops *= times;
    op->full_flops *= times;
    op->idle_s *= times;
}

/* What one layer runs, as often as there are layers; its attention core, where windows are smaller than images, as often as
 * layers see as much. `core`: these ops alone. `runs`: which of them; NULL: all. */
static void append(const Tower *tower, const CostOps *layer, bool core, const bool *runs, CostOps *ops)
{
    const int first = ops->count, whole = tower->layers - tower->window_layers;
    for (int i = 0; i < layer->count; i++) {
        const CostOp *op = &layer->op[i];
        const bool is_core = op->module == COST_MODULE_ATTENTION_CORE;
        const int times = core ? tower->window_layers : is_core ? whole : tower->layers;
        if ((core && !is_core) || times == 0 || (runs != NULL && !runs[i]))
            continue;
        CostOp *added = cost_ops_push(ops, op->name, op->kind, op->module);
        *added = *op;
        repeat(added, times);
        added->again = added->again || runs != NULL;
        if (op->kind == COST_OP_COLLECTIVE && (core || runs != NULL || tower->window_layers > 0))
            added->u.collective.hidden_under = -1;
        else if (op->kind == COST_OP_COLLECTIVE && op->u.collective.hidden_under >= 0)
            added->u.collective.hidden_under += first;
    }
}

static void add_layer_ops(const Tower *tower, CostPass pass, CostOps *layer, CostOps *ops)
{
    for (int windowed = 0; windowed < (tower->window_layers > 0 ? 2 : 1); windowed++) {
        layer->count = layer->kept_count = 0;
        cost_ops_layer(windowed ? &tower->window : &tower->whole, 0, pass, layer);
        append(tower, layer, windowed, NULL, ops);
    }
}

/* The forward once more before a backward, of the layers that it keeps too little of; returns the bytes that one of them
 * makes again. */
static double add_again(const Tower *tower, CostOps *layer, CostOps *ops)
{
    g_autofree CostOps *again = g_new(CostOps, 1);
    bool runs[COST_MAX_OPS];
    double bytes = 0;
    for (int windowed = 0; windowed < (tower->window_layers > 0 ? 2 : 1); windowed++) {
        layer->count = layer->kept_count = 0;
        cost_ops_layer(windowed ? &tower->window : &tower->whole, 0, COST_FORWARD, layer);
        cost_again_ops(&tower->spec, layer, tower->extent, again, runs);
        append(tower, again, windowed, runs, ops);
    }
    for (int i = 0; i < layer->kept_count; i++)
        bytes +=
            cost_drops_tensor(&tower->spec, layer, &layer->kept[i], tower->extent) ? layer->kept[i].bytes : 0;
    return bytes;
}

/* Tensors of all layers; what reads and writes them is the last op of the list, as places of one layer's ops are none here. */
static void keep_layers(const Tower *tower, CostOps *layer, CostOps *ops)
{
    layer->count = layer->kept_count = 0;
    cost_ops_layer(&tower->whole, 0, COST_FORWARD, layer);
    for (int i = 0; i < layer->kept_count; i++) {
        CostTensor tensor = layer->kept[i];
        if (cost_drops_tensor(&tower->spec, layer, &tensor, tower->extent))
            continue;
        tensor.bytes *= tower->layers;
        tensor.written_by = COST_OUTSIDE;
        tensor.product = 0;
        tensor.kept_by = ops->count - 1;
        cost_keep(ops, tensor);
    }
}

static void add_patches(const Tower *tower, CostPass pass, CostOps *ops)
{
    const CostShape *shape = &tower->whole;
    const double values = tower->spec.model.vision.patch_values;
    if (pass == COST_BACKWARD_INPUT)
        return;
    const int gemm = cost_push_linear(shape, ops, "patches", COST_MODULE_EMBEDDING, pass, shape->tokens,
                                      values, shape->hidden, shape->linear_dtype);
    if (pass == COST_FORWARD && tower->trained)
        cost_keep(ops, (CostTensor){"patches", shape->tokens * values * shape->element_bytes, COST_OUTSIDE,
                                    .kept_by = gemm, .weight_grad = true});
}

/* One linear layer of the projector; `first`: nothing before it is trained. */
static void project(const Tower *tower, CostPass pass, const double size[3], bool first, CostOps *ops)
{
    const CostShape *shape = &tower->whole;
    const bool wanted = pass == COST_FORWARD          ? true
                        : pass == COST_BACKWARD_INPUT ? tower->trained || !first
                                                      : tower->projector;
    if (!wanted)
        return;
    const int gemm = cost_push_linear(shape, ops, "project", COST_MODULE_EMBEDDING, pass, size[0], size[1],
                                      size[2], shape->linear_dtype);
    if (pass == COST_FORWARD && tower->projector)
        cost_keep(ops, (CostTensor){"projector input", size[0] * size[1] * shape->element_bytes, COST_OUTSIDE,
                                    .kept_by = gemm, .weight_grad = true});
}

static void add_projector_ops(const Tower *tower, double out, CostPass pass, CostOps *ops)
{
    const CostShape *shape = &tower->whole;
    const SpecVision *vision = &tower->spec.model.vision;
    const double joined = (double)vision->merged_patches * shape->hidden, inner = vision->projector_hidden,
                 rows = shape->tokens / vision->merged_patches, e = shape->element_bytes;
    if (vision->projector_norm && (pass == COST_FORWARD || tower->trained || tower->projector))
        cost_push_norm(shape, ops, pass, shape->tokens, shape->hidden);
    if (inner > 0) {
        project(tower, pass, (const double[]){rows, joined, inner}, true, ops);
        if (pass != COST_BACKWARD_WEIGHT)
            cost_push_memory(ops, "projector activation", COST_MODULE_EMBEDDING, COST_MEMORY_ELEMENTWISE,
                             rows * inner, cost_both_ways(pass == COST_FORWARD ? e : 2 * e, e), 1);
        if (pass == COST_FORWARD && (tower->trained || tower->projector))
            cost_keep(ops, (CostTensor){"projector activation", rows * inner * e, COST_OUTSIDE,
                                        .kept_by = ops->count - 1});
    }
    project(tower, pass, (const double[]){rows, inner > 0 ? inner : joined, out}, !(inner > 0), ops);
    if (pass != COST_BACKWARD_WEIGHT) /* into the places of image tokens, and their gradients out of them */
        cost_push_memory(ops, "image rows", COST_MODULE_EMBEDDING, COST_MEMORY_PERMUTE, rows * out,
                         cost_both_ways(e, e), 1);
}

void cost_push_vision(const CostShape *shape, CostGraph *graph)
{
    const SpecModel *model = &shape->spec->model;
    if (model->vision.layers == 0 || !(shape->spec->training.images.per_sequence > 0))
        return;
    g_autofree Tower *tower = g_new0(Tower, 1);
    g_autofree CostOps *layer = g_new(CostOps, 1);
    fill_tower(shape, tower);
    tower->spec.model.vision = model->vision;
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        CostOps *ops = &graph->pass[pass];
        const int first = ops->count;
        double again = 0;
        if (pass != COST_FORWARD && !tower->trained && !tower->projector)
            continue;
        if (pass == COST_BACKWARD_INPUT && tower->extent != COST_RECOMPUTE_OP_NONE)
            again = add_again(tower, layer, ops);
        if (pass == COST_FORWARD || tower->trained) {
            add_patches(tower, (CostPass)pass, ops);
            add_layer_ops(tower, (CostPass)pass, layer, ops);
        }
        add_projector_ops(tower, model->hidden, (CostPass)pass, ops);
        if (pass == COST_FORWARD && tower->trained)
            keep_layers(tower, layer, ops);
        if (again > 0 && ops->count > first)
            ops->op[first].temp_bytes += again;
    }
}
