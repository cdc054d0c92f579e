/* report/kernels.c - the kernels and collectives of each piece of the model as CSV: what a step's time is made of. */
#include "costmodel/freeze.h"
#include "costmodel/layers.h"
#include "costmodel/pass.h"
#include "report/kernels.h"

typedef struct Piece {
    const char *name, *more; /* of a layer: and what tells it from others of its kind */
    CostListOps list;        /* NULL: a layer, the first of its group */
    CostLayerGroup group;
} Piece;

static void append_number(GString *out, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(out, g_ascii_formatd(text, sizeof text, "%.9g", value));
}

/* "2x4096x4096 heads 32/8 dim 128/128 causal bf16": sequences, queries, keys; heads and dims of queries and keys, of values. */
static void append_attention(GString *out, const CostAttention *attention)
{
    g_string_append_printf(out, "%.0fx%.0fx%.0f heads %.0f/%.0f dim %.0f/%.0f%s", attention->batch,
                           attention->q_tokens, attention->kv_tokens, attention->heads, attention->kv_heads,
                           attention->qk_head_dim, attention->v_head_dim, attention->causal ? " causal" : "");
    if (attention->window_tokens > 0)
        g_string_append_printf(out, " window %.0f", attention->window_tokens);
    g_string_append_printf(out, " %s,", spec_word(&spec_words_dtype, (int)attention->dtype));
}

/* Cells `size` and after: empty where the kind of op has no such thing. */
static void append_work(GString *out, const CostOp *op, double seconds)
{
    double bytes = 0;
    switch (op->kind) {
    case COST_OP_GEMM:
        g_string_append_printf(out, "%.0fx%.0fx%.0f,%.9g", op->u.gemm.m, op->u.gemm.n, op->u.gemm.k,
                               op->u.gemm.groups);
        break;
    case COST_OP_MEMORY:
        bytes = cost_moved_bytes(op) * (op->repeat > 0 ? op->repeat : 1);
        g_string_append_c(out, ',');
        break;
    case COST_OP_COLLECTIVE:
        bytes = op->u.collective.collective.bytes * (op->repeat > 0 ? op->repeat : 1);
        g_string_append_printf(out, ",%d", op->u.collective.collective.group.ranks);
        break;
    case COST_OP_ATTENTION:
        append_attention(out, &op->u.attention);
        break;
    }
    const double amounts[] = {op->full_flops, bytes};
    for (gsize i = 0; i < G_N_ELEMENTS(amounts); i++) {
        g_string_append_c(out, ',');
        if (amounts[i] > 0)
            append_number(out, amounts[i]);
        g_string_append_c(out, ',');
        if (amounts[i] > 0 && seconds > 0)
            append_number(out, amounts[i] / seconds);
    }
    const CostMoved traffic = cost_op_moved(op);
    const double directions[] = {traffic.read, traffic.written};
    for (gsize i = 0; i < G_N_ELEMENTS(directions); i++) {
        g_string_append_c(out, ',');
        if (directions[i] > 0)
            append_number(out, directions[i]);
    }
}

static void append_op(GString *out, const CostShape *shape, const Piece *piece, CostPass pass,
                      const CostOps *ops, int index)
{
    static const char *const passes[] = {"forward", "backward-input", "backward-weight"};
    static const char *const kinds[] = {[COST_OP_GEMM] = "gemm",
                                        [COST_OP_ATTENTION] = "attention",
                                        [COST_OP_MEMORY] = "memory",
                                        [COST_OP_COLLECTIVE] = "collective"};
    const CostOp *op = &ops->op[index];
    const bool again = pass == COST_FORWARD && cost_runs_again(shape->spec, ops, index, piece->group.extent);
    const int beside = op->kind == COST_OP_COLLECTIVE ? op->u.collective.hidden_under : -1;
    const double seconds = cost_op_s(shape, op);
    g_string_append_printf(out, "%s%s,%d,%s,%s,%s,%s,%s,%d,", piece->name, piece->more, piece->group.count,
                           passes[pass], op->name, kinds[op->kind], beside >= 0 ? ops->op[beside].name : "",
                           again ? "yes" : "no", op->kernels);
    append_number(out, seconds);
    g_string_append_c(out, ',');
    append_work(out, op, seconds);
    g_string_append_c(out, '\n');
}

static const char *layer_name(const SpecModel *model, int layer)
{
    static const char *const names[2][2] = {{"layer", "windowed layer"},
                                            {"expert layer", "windowed expert layer"}};
    if (model->encoder_layers > 0)
        return cost_layer_crosses(model, layer)        ? "decoder layer"
               : cost_layer_ends_encoder(model, layer) ? "last encoder layer"
                                                       : "encoder layer";
    const char *name = names[cost_layer_has_experts(model, layer)][cost_layer_windowed(model, layer)];
    const bool differ = model->moe.run_count > 0 || model->moe.late_layers > 0;
    if (!differ || !cost_layer_has_experts(model, layer))
        return name;
    const SpecMoeRun own = cost_layer_moe(model, layer);
    g_autofree char *text =
        g_strdup_printf("%s of %d x %d top %d", name, own.experts, own.expert_ffn_hidden, own.top_k);
    return g_intern_string(text);
}

/* Layers of each model stage as far as a run knows them; else one stage. */
static CostLayerGroups group_layers(const Report *report)
{
    const SimPlan *plan = &report->plan;
    CostLayerGroups groups = {.count = 0};
    if (plan->stages == NULL) {
        return cost_group_model(report->spec, NULL, 0);
    }
    const int stages = sim_plan_model_stages(plan);
    for (int stage = 0, layer = 0; stage < stages; stage++) {
        cost_group_layers(report->spec, layer, plan->stages[stage].layers, &groups);
        layer += plan->stages[stage].layers;
    }
    return groups;
}

/* Layers that recomputation leaves alone beside others of their kind that it does not; frozen ones. */
static const char *what_else(const Spec *spec, const CostLayerGroups *groups, const CostLayerGroup *group)
{
    const SpecModel *model = &spec->model;
    if (cost_part_stops(spec, COST_PART_LAYER, group->layer, group->layer_in_stage))
        return " frozen before any trained";
    if (cost_part_frozen(spec, COST_PART_LAYER, group->layer))
        return " frozen";
    for (int i = 0; i < groups->count; i++) {
        const CostLayerGroup *other = &groups->group[i];
        if (!cost_part_frozen(spec, COST_PART_LAYER, other->layer) &&
            cost_layer_kind(model, other->layer) == cost_layer_kind(model, group->layer) &&
            other->extent != group->extent && group->extent == COST_RECOMPUTE_OP_NONE) {
            return " without recomputation";
        }
    }
    return "";
}

static CostRecomputeExtent last_extent(const Report *report)
{
    const SimPlan *plan = &report->plan;
    const int behind = plan->stages == NULL ? report->spec->model.layers
                                            : plan->stages[sim_plan_model_stages(plan) - 1].layers;
    return cost_recompute_extent(report->spec, behind);
}

/* Layers that are alike once, by the first of them, then what lies before and behind them. */
static int list_pieces(const Report *report, Piece pieces[COST_LAYER_GROUPS + 3])
{
    const SpecModel *model = &report->spec->model;
    const CostLayerGroups groups = group_layers(report);
    int count = 0;
    for (; count < groups.count; count++) {
        const CostLayerGroup *group = &groups.group[count];
        pieces[count] =
            (Piece){layer_name(model, group->layer), what_else(report->spec, &groups, group), NULL, *group};
    }
    pieces[count++] = (Piece){"embedding", "", cost_ops_embedding, {.count = 1}};
    pieces[count++] = (Piece){"head", "", cost_ops_head, {.count = 1}};
    if (model->mtp_layers > 0)
        pieces[count++] = (Piece){"multi-token prediction",
                                  "",
                                  cost_ops_mtp,
                                  {.count = model->mtp_layers, .extent = last_extent(report)}};
    return count;
}

static void graph_of_piece(const CostShape *shape, const Piece *piece, CostGraph *graph)
{
    if (piece->list == NULL)
        cost_graph_layer_in(shape, piece->group.layer, piece->group.layer_in_stage, graph);
    else
        cost_graph(shape, piece->list, graph);
}

void report_visit_kernels(const Report *report, ReportKernelVisitor visit, void *data)
{
    CostShape shape;
    Piece pieces[COST_LAYER_GROUPS + 3];
    if (report->spec->model.list.text != NULL)
        return; /* costs of layers, which nobody took apart */
    const int count = list_pieces(report, pieces);
    cost_shape_init(&shape, report->spec);
    for (int i = 0; i < count; i++) {
        CostGraph graph;
        graph_of_piece(&shape, &pieces[i], &graph);
        for (int pass = 0; pass < COST_PASS_COUNT; pass++)
            for (int index = 0; index < graph.pass[pass].count; index++) {
                const CostOp *op = &graph.pass[pass].op[index];
                visit(op, cost_op_s(&shape, op), pieces[i].group.count, data);
            }
    }
}

void report_write_kernels(const Report *report, GString *out)
{
    CostShape shape;
    Piece pieces[COST_LAYER_GROUPS + 3];
    const int count = list_pieces(report, pieces);
    cost_shape_init(&shape, report->spec);
    g_string_append(out, "piece,count,pass,kernel,kind,beside,recomputed,launches,seconds,size,groups,flops,"
                         "flops_per_s,bytes,bytes_per_s,read_bytes,written_bytes\n");
    for (int i = 0; i < count; i++) {
        CostGraph graph;
        graph_of_piece(&shape, &pieces[i], &graph);
        for (int pass = 0; pass < COST_PASS_COUNT; pass++)
            for (int index = 0; index < graph.pass[pass].count; index++)
                append_op(out, &shape, &pieces[i], (CostPass)pass, &graph.pass[pass], index);
    }
}
