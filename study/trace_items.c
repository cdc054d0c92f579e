/* study/trace_items.c - see trace_items.h. */
#include "study/trace_items.h"

#include "costmodel/exchange_beside.h"
#include "costmodel/freeze.h"
#include "costmodel/layers.h"
#include "costmodel/pass.h"

enum { PIECE_EMBEDDING, PIECE_HEAD, PIECE_MTP, PIECE_OTHERS, PIECES = COST_LAYER_GROUPS + PIECE_OTHERS };
enum { TAGS = SIM_TAG_BACKWARD_WEIGHT + 1 };

/* A piece's ops, and how much of them recomputation runs again; what passes over it run, once it was asked. */
typedef struct Piece {
    CostGraph *graph;
    CostRecomputeExtent extent;
    GArray *lists[TAGS]; /* TraceItem */
} Piece;

struct TraceItems {
    const Report *report;
    TraceRank *rank;
    CostShape shape;
    Piece pieces[PIECES]; /* kinds of layers, then the others */
};

TraceItems *trace_items_new(const Report *report, TraceRank *rank)
{
    TraceItems *items = g_new0(TraceItems, 1);
    items->report = report;
    items->rank = rank;
    cost_shape_init(&items->shape, report->spec);
    return items;
}

void trace_items_free(TraceItems *items)
{
    for (int i = 0; i < PIECES; i++) {
        g_free(items->pieces[i].graph);
        for (int tag = 0; tag < TAGS; tag++)
            if (items->pieces[i].lists[tag] != NULL)
                g_array_free(items->pieces[i].lists[tag], TRUE);
    }
    g_free(items);
}

/* --- one op --- */

const char *trace_collective_kernel(TraceClass kind)
{
    static const char *const names[TRACE_CLASSES] = {[TRACE_ALL_REDUCE] = "ncclDevKernel_AllReduce",
                                                     [TRACE_ALL_GATHER] = "ncclDevKernel_AllGather",
                                                     [TRACE_REDUCE_SCATTER] = "ncclDevKernel_ReduceScatter",
                                                     [TRACE_ALL_TO_ALL] = "ncclDevKernel_AllToAll",
                                                     [TRACE_SEND_RECEIVE] = "ncclDevKernel_SendRecv",
                                                     [TRACE_OTHER_COLLECTIVE] = "ncclDevKernel_Broadcast"};
    return names[kind];
}

static TraceClass collective_class(CostCollectiveOp op)
{
    static const TraceClass kinds[COST_COLLECTIVE_COUNT] = {
        [COST_ALL_REDUCE] = TRACE_ALL_REDUCE,         [COST_ALL_GATHER] = TRACE_ALL_GATHER,
        [COST_REDUCE_SCATTER] = TRACE_REDUCE_SCATTER, [COST_ALL_TO_ALL] = TRACE_ALL_TO_ALL,
        [COST_BROADCAST] = TRACE_OTHER_COLLECTIVE,    [COST_REDUCE] = TRACE_OTHER_COLLECTIVE,
        [COST_SEND_RECV] = TRACE_SEND_RECEIVE};
    return kinds[op];
}

static TraceClass class_of(const CostOp *op)
{
    switch (op->kind) {
    case COST_OP_GEMM:
        return TRACE_PRODUCTS;
    case COST_OP_ATTENTION:
        return TRACE_ATTENTION;
    case COST_OP_COLLECTIVE:
        return collective_class(op->u.collective.collective.op);
    default:
        return op->module == COST_MODULE_NORM || op->u.memory.norm.blocks == COST_NORM_SUMMAND
                   ? TRACE_NORMS
                   : TRACE_ELEMENTWISE;
    }
}

/* As PyTorch would have called it: a matrix product of these sizes. */
static int32_t product_op(TraceRank *rank, const double size[3], double groups)
{
    g_autofree char *dims =
        groups > 1 ? g_strdup_printf("[[%.0f,%.0f,%.0f],[%.0f,%.0f,%.0f]]", groups, size[0], size[2], groups,
                                     size[2], size[1])
                   : g_strdup_printf("[[%.0f,%.0f],[%.0f,%.0f]]", size[0], size[2], size[2], size[1]);
    return trace_rank_op(rank, groups > 1 ? "aten::bmm" : "aten::mm", dims, "");
}

static int count_parts(const CostOp *op)
{
    int count = 0;
    while (count < COST_MAX_PARTS && op->parts[count] > 0)
        count++;
    return count;
}

/* The product of part `part`: which of its sizes the parts divide follows from the pass. */
static void part_size(const CostOp *op, CostPass pass, int part, double size[3], double *ret_share)
{
    static const int divided[COST_PASS_COUNT] = {
        [COST_FORWARD] = 1, [COST_BACKWARD_INPUT] = 2, [COST_BACKWARD_WEIGHT] = 0};
    double whole = 0;
    for (int i = 0; i < count_parts(op); i++)
        whole += op->parts[i];
    *ret_share = op->parts[part] / whole;
    size[divided[pass]] *= *ret_share;
}

static void add_products(TraceItems *items, const CostOp *op, CostPass pass, const TraceItem *all,
                         GArray *out)
{
    const int parts = MAX(count_parts(op), 1);
    for (int part = 0; part < parts; part++) {
        double size[3] = {op->u.gemm.m, op->u.gemm.n, op->u.gemm.k}, share = 1;
        TraceItem item = *all;
        if (parts > 1)
            part_size(op, pass, part, size, &share);
        item.op = product_op(items->rank, size, op->u.gemm.groups);
        item.seconds *= share;
        item.gap_s *= share;
        item.lost_s *= share;
        g_array_append_val(out, item);
    }
}

/* Kernels of one op that are alike. */
static void add_alike(const CostOp *op, const TraceItem *all, GArray *out)
{
    const int kernels = MAX(op->kernels, 1);
    TraceItem item = *all;
    item.seconds /= kernels;
    item.gap_s /= kernels;
    item.lost_s /= kernels;
    for (int i = 0; i < kernels; i++)
        g_array_append_val(out, item);
}

static void add_op(TraceItems *items, const CostOp *op, const CostPassStep *step, CostPass pass,
                   const char *word, GArray *out)
{
    const TraceClass kind = class_of(op);
    TraceItem item = {
        .kind = kind, .seconds = step->gpu_s, .gap_s = step->gap_s, .lost_s = step->lost_s, .under = -1};
    g_autofree char *called = g_strdup_printf("orrery::%s", op->name);
    item.op = trace_rank_op(items->rank, called, "", "");
    if (op->kind == COST_OP_COLLECTIVE) {
        item.name = trace_rank_name(items->rank, trace_collective_kernel(kind), kind);
        item.bytes = op->u.collective.collective.bytes * (op->repeat > 0 ? op->repeat : 1);
        item.ranks = op->u.collective.collective.group.ranks;
        item.comm = (int)op->u.collective.comm;
        item.pace = cost_exchange_pace(&items->shape, op);
        item.under = step->beside != COST_BESIDE_NOTHING ? 0 : -1;
        g_array_append_val(out, item);
        return;
    }
    g_autofree char *name = g_strdup_printf("orrery::%s %s %s", trace_class_word(kind), word, op->name);
    item.name = trace_rank_name(items->rank, name, kind);
    if (op->kind == COST_OP_GEMM)
        add_products(items, op, pass, &item, out);
    else
        add_alike(op, &item, out);
}

/* --- one pass --- */

static void add_list(TraceItems *items, const CostOps *ops, const bool *again, CostPass pass,
                     const char *word, GArray *out)
{
    g_autofree CostPassSteps *steps = g_new(CostPassSteps, 1);
    int first[COST_MAX_OPS];
    cost_pass_steps(&items->shape, ops, again, pass, steps);
    for (int i = 0; i < ops->count; i++) {
        first[i] = (int)out->len;
        if (steps->step[i].runs)
            add_op(items, &ops->op[i], &steps->step[i], pass, word, out);
    }
    for (int i = 0; i < ops->count; i++)
        if (steps->step[i].runs && steps->step[i].beside != COST_BESIDE_NOTHING)
            g_array_index(out, TraceItem, first[i]).under = first[steps->step[i].under];
}

static void list_passes(TraceItems *items, const Piece *piece, SimTag tag, GArray *out)
{
    const CostGraph *graph = piece->graph;
    if (tag == SIM_TAG_FORWARD) {
        add_list(items, &graph->pass[COST_FORWARD], NULL, COST_FORWARD, "forward", out);
        return;
    }
    if (tag != SIM_TAG_BACKWARD_WEIGHT && piece->extent != COST_RECOMPUTE_OP_NONE) {
        g_autofree CostOps *ops = g_new(CostOps, 1);
        bool again[COST_MAX_OPS];
        cost_again_ops(items->report->spec, &graph->pass[COST_FORWARD], piece->extent, ops, again);
        add_list(items, ops, again, COST_FORWARD, "again", out);
    }
    if (tag != SIM_TAG_BACKWARD_WEIGHT)
        add_list(items, &graph->pass[COST_BACKWARD_INPUT], NULL, COST_BACKWARD_INPUT, "backward", out);
    if (tag != SIM_TAG_BACKWARD_INPUT)
        add_list(items, &graph->pass[COST_BACKWARD_WEIGHT], NULL, COST_BACKWARD_WEIGHT, "backward", out);
}

static void add_passes(TraceItems *items, Piece *piece, SimTag tag, GArray *out)
{
    const int base = (int)out->len;
    if (piece->lists[tag] == NULL) {
        piece->lists[tag] = g_array_new(FALSE, FALSE, sizeof(TraceItem));
        list_passes(items, piece, tag, piece->lists[tag]);
    }
    for (guint i = 0; i < piece->lists[tag]->len; i++) {
        TraceItem item = g_array_index(piece->lists[tag], TraceItem, i);
        item.under += item.under >= 0 ? base : 0;
        g_array_append_val(out, item);
    }
}

/* --- which piece a segment is --- */

static Piece *layer_piece(TraceItems *items, int layer, int layer_in_stage)
{
    const Spec *spec = items->report->spec;
    Piece *piece = &items->pieces[cost_layer_group(spec, layer, layer_in_stage)];
    if (piece->graph == NULL) {
        piece->graph = g_new(CostGraph, 1);
        piece->extent = cost_layer_extent(spec, layer, layer_in_stage);
        cost_graph_layer_in(&items->shape, layer, layer_in_stage, piece->graph);
    }
    return piece;
}

static Piece *other_piece(TraceItems *items, int which, CostRecomputeExtent extent)
{
    static const CostListOps lists[PIECE_OTHERS] = {
        [PIECE_EMBEDDING] = cost_ops_embedding, [PIECE_HEAD] = cost_ops_head, [PIECE_MTP] = cost_ops_mtp};
    Piece *piece = &items->pieces[COST_LAYER_GROUPS + which];
    if (piece->graph == NULL) {
        piece->graph = g_new(CostGraph, 1);
        piece->extent = extent;
        cost_graph(&items->shape, lists[which], piece->graph);
    }
    return piece;
}

bool trace_items_add(TraceItems *items, int stage, int segment, SimTag tag, GArray *out)
{
    const SimPlan *plan = &items->report->plan;
    const Spec *spec = items->report->spec;
    if (spec->model.list.text != NULL || tag > SIM_TAG_BACKWARD_WEIGHT || plan->stages == NULL)
        return false;
    const int own_stage = stage % sim_plan_model_stages(plan);
    const SimStage *own = &plan->stages[own_stage];
    int layer = segment - own->first_layer;
    for (int before = 0; before < own_stage; before++)
        layer += plan->stages[before].layers;
    if (segment < own->first_layer) {
        add_passes(items, other_piece(items, PIECE_EMBEDDING, COST_RECOMPUTE_OP_NONE), tag, out);
    } else if (segment < own->first_layer + own->layers) {
        add_passes(items, layer_piece(items, layer, segment - own->first_layer), tag, out);
    } else {
        /* behind the layers: the modules of multi-token prediction with a head each, and the head */
        if (segment + 1 < own->segment_count)
            add_passes(items, other_piece(items, PIECE_MTP, cost_recompute_extent(spec, own->layers)), tag,
                       out);
        add_passes(items, other_piece(items, PIECE_HEAD, COST_RECOMPUTE_OP_NONE), tag, out);
    }
    return true;
}
