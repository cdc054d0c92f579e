/* costmodel/flops.c - see flops.h. */
#include "costmodel/flops.h"
#include "costmodel/layers.h"
#include "costmodel/layer_list.h"
#include "costmodel/ops.h"
#include "costmodel/params.h"
#include "costmodel/pass.h"

/* The job on one rank: counting needs no splitting, and the counts must not depend on it. */
static Spec unsplit(const Spec *spec)
{
    Spec whole = *spec;
    whole.parallel.tensor = whole.parallel.context = whole.parallel.expert = whole.parallel.expert_tensor = 1;
    whole.parallel.sequence_parallel = 0;
    whole.training.micro_batch = 1;
    return whole;
}

typedef struct Sums {
    double model, full, recompute;
} Sums;

static void add_list(const CostOps *ops, double weight, Sums *sums)
{
    for (int i = 0; i < ops->count; i++) {
        const CostOp *op = &ops->op[i];
        sums->model += op->again ? 0 : weight * op->model_flops;
        sums->full += op->again ? 0 : weight * op->full_flops;
        sums->recompute += op->again ? weight * op->model_flops : 0;
    }
}

static void add_graph(const Spec *spec, const CostGraph *graph, CostRecomputeExtent extent, double weight,
                      Sums *sums)
{
    const CostOps *forward = &graph->pass[COST_FORWARD];
    for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
        add_list(&graph->pass[pass], weight, sums);
    }
    CostOps ops;
    bool again[COST_MAX_OPS];
    cost_again_ops(spec, forward, extent, &ops, again);
    for (int i = 0; i < ops.count; i++) {
        sums->recompute += again[i] ? weight * ops.op[i].model_flops : 0;
    }
}

static void add_layers(const CostShape *shape, const CostLayerGroups *groups, Sums *sums)
{
    CostGraph graph;
    for (int i = 0; i < groups->count; i++) {
        const CostLayerGroup *group = &groups->group[i];
        cost_graph_layer_in(shape, group->layer, group->layer_in_stage, &graph);
        add_graph(shape->spec, &graph, group->extent, group->count, sums);
    }
}

/* Multi-token modules follow the `last` layers of the last stage. */
static void add_edges(const CostShape *shape, int last, Sums *sums)
{
    const int modules = shape->spec->model.mtp_layers;
    CostGraph graph;
    if (shape->spec->model.vision.layers > 0) {
        cost_graph(shape, cost_ops_embedding, &graph);
        add_graph(shape->spec, &graph, COST_RECOMPUTE_OP_NONE, 1, sums);
    }
    cost_graph(shape, cost_ops_head, &graph);
    add_graph(shape->spec, &graph, COST_RECOMPUTE_OP_NONE, 1 + modules, sums);
    if (modules > 0) {
        cost_graph(shape, cost_ops_mtp, &graph);
        add_graph(shape->spec, &graph, cost_recompute_extent(shape->spec, last), modules, sums);
    }
}

CostFlops cost_flops(const Spec *spec, const int *stage_layers, int stages)
{
    if (spec->model.list.text != NULL) {
        const double flops = spec->training.global_batch * cost_list_flops(&spec->model);
        const bool again = spec->training.recompute.mode == SPEC_RECOMPUTE_FULL; /* forwards: a third */
        return (CostFlops){.model = flops, .model_full = flops, .hardware = flops * (again ? 4.0 / 3 : 1)};
    }
    const Spec whole = unsplit(spec);
    const CostLayerGroups groups = cost_group_model(spec, stage_layers, stages);
    const double sequences = spec->training.global_batch;
    CostShape shape;
    Sums sums = {0};
    cost_shape_init(&shape, &whole);
    add_layers(&shape, &groups, &sums);
    add_edges(&shape, stages > 0 ? stage_layers[stages - 1] : spec->model.layers, &sums);
    return (CostFlops){
        .model = sequences * sums.model,
        .model_full = sequences * sums.full,
        .recompute = sequences * sums.recompute,
        .hardware = sequences * (sums.model + sums.recompute),
    };
}

static const char *const NAMES[COST_CONVENTION_COUNT] = {
    "orrery", "sc21", "korthikanti", "megatron", "palm", "torchtitan", "mosaic", "6nd",
};

const char *cost_convention_name(CostConvention convention)
{
    return NAMES[convention];
}

double cost_convention_flops(const Spec *spec, CostConvention convention)
{
    const SpecModel *model = &spec->model;
    const double sequences = spec->training.global_batch, s = spec->training.sequence_length;
    const double tokens = sequences * s, l = model->layers, h = model->hidden, v = model->vocab;
    const double heads_width = (double)model->heads * model->head_dim;
    const double n = cost_parameters(model, 0, true);
    switch (convention) {
    case COST_CONVENTION_SC21:
        return 96 * tokens * l * h * h * (1 + s / (6 * h) + v / (16 * l * h));
    case COST_CONVENTION_KORTHIKANTI:
        return 72 * tokens * l * h * h * (1 + s / (6 * h) + v / (12 * h * l));
    case COST_CONVENTION_PALM:
        return tokens * (6 * n + 12 * l * heads_width * s);
    case COST_CONVENTION_TORCHTITAN:
        return tokens * (6 * (n - (model->tied_embeddings ? 0 : v * h)) + 12 * l * heads_width * s);
    case COST_CONVENTION_MOSAIC:
        return sequences * 3 * (2 * n * s + 4 * l * h * s * s);
    case COST_CONVENTION_6ND:
        return 6 * n * tokens;
    default: /* Orrery's own count is Megatron's current one: causal half, every shape counted */
        return cost_flops(spec, NULL, 0).model;
    }
}

double cost_peak_flops_per_s(const Spec *spec)
{
    return spec->cluster.accelerator.peak_flops_per_s[spec_gemm_dtype(spec->training.precision)];
}

CostMfuByConvention cost_mfu_by_convention(const Spec *spec, double step_s)
{
    CostMfuByConvention ratios;
    const double peak = cost_peak_flops_per_s(spec) * spec_gpus(spec);
    /* the others are formulas of decoders */
    const bool list =
        spec->model.list.text != NULL || spec->model.encoder_layers > 0 || spec->model.vision.layers > 0;
    for (int i = 0; i < COST_CONVENTION_COUNT; i++) {
        ratios.mfu[i] = list && i != COST_CONVENTION_ORRERY
                            ? 0
                            : cost_convention_flops(spec, (CostConvention)i) / (peak * step_s);
    }
    return ratios;
}
