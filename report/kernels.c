/* report/kernels.c - the kernels and collectives of each piece of the model as CSV: what a step's time is made of. */
#include "costmodel/params.h"
#include "costmodel/pass.h"
#include "report/report.h"

typedef struct Piece {
    const char *name;
    int layer; /* the first of its kind; -1: not a layer */
    int count; /* of this kind, in the whole model */
} Piece;

static void list_ops(const CostShape *shape, const Piece *piece, CostPass pass, CostOps *ops)
{
    ops->count = ops->kept_count = 0;
    if (piece->layer >= 0)
        cost_ops_layer(shape, piece->layer, pass, ops);
    else if (g_str_equal(piece->name, "embedding"))
        cost_ops_embedding(shape, pass, ops);
    else if (g_str_equal(piece->name, "head"))
        cost_ops_head(shape, pass, ops);
    else
        cost_ops_mtp(shape, pass, ops);
}

static void append_number(GString *out, double value)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append(out, g_ascii_formatd(text, sizeof text, "%.9g", value));
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
    case COST_OP_MOVE:
        bytes = op->u.move.bytes * (op->repeat > 0 ? op->repeat : 1);
        g_string_append_c(out, ',');
        break;
    case COST_OP_COLLECTIVE:
        bytes = op->u.collective.collective.bytes * (op->repeat > 0 ? op->repeat : 1);
        g_string_append_printf(out, ",%d", op->u.collective.collective.group.ranks);
        break;
    case COST_OP_ATTENTION:
        g_string_append_c(out, ',');
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
}

static void append_op(GString *out, const CostShape *shape, const Piece *piece, CostPass pass,
                      const CostOps *ops, int index)
{
    static const char *const passes[] = {"forward", "backward-input", "backward-weight"};
    static const char *const kinds[] = {[COST_OP_GEMM] = "gemm",
                                        [COST_OP_ATTENTION] = "attention",
                                        [COST_OP_MOVE] = "memory",
                                        [COST_OP_COLLECTIVE] = "collective"};
    const CostOp *op = &ops->op[index];
    const bool again = piece->layer >= 0 && pass == COST_FORWARD &&
                       cost_runs_again(shape->spec, ops, index, cost_recompute_extent(shape->spec, 0));
    const int beside = op->kind == COST_OP_COLLECTIVE ? op->u.collective.hidden_under : -1;
    const double seconds = cost_op_s(shape, op);
    g_string_append_printf(out, "%s,%d,%s,%s,%s,%s,%s,%d,", piece->name, piece->count, passes[pass], op->name,
                           kinds[op->kind], beside >= 0 ? ops->op[beside].name : "", again ? "yes" : "no",
                           op->kernels);
    append_number(out, seconds);
    g_string_append_c(out, ',');
    append_work(out, op, seconds);
    g_string_append_c(out, '\n');
}

static const char *layer_name(const SpecModel *model, int layer)
{
    static const char *const names[2][2] = {{"layer", "windowed layer"},
                                            {"expert layer", "windowed expert layer"}};
    return names[cost_layer_has_experts(model, layer)][cost_layer_windowed(model, layer)];
}

/* Every kind of layer once, by its first, then what lies before and behind them. */
static int list_pieces(const SpecModel *model, Piece pieces[COST_LAYER_KINDS + 3])
{
    int count = 0, at[COST_LAYER_KINDS];
    for (int kind = 0; kind < COST_LAYER_KINDS; kind++)
        at[kind] = -1;
    for (int layer = 0; layer < model->layers; layer++) {
        const int kind = cost_layer_kind(model, layer);
        if (at[kind] < 0) {
            at[kind] = count;
            pieces[count++] = (Piece){layer_name(model, layer), layer, 0};
        }
        pieces[at[kind]].count++;
    }
    pieces[count++] = (Piece){"embedding", -1, 1};
    pieces[count++] = (Piece){"head", -1, 1};
    if (model->mtp_layers > 0)
        pieces[count++] = (Piece){"multi-token prediction", -1, model->mtp_layers};
    return count;
}

void report_write_kernels(const Report *report, GString *out)
{
    CostShape shape;
    Piece pieces[COST_LAYER_KINDS + 3];
    const int count = list_pieces(&report->spec->model, pieces);
    cost_shape_init(&shape, report->spec);
    g_string_append(out, "piece,count,pass,kernel,kind,beside,recomputed,launches,seconds,size,groups,flops,"
                         "flops_per_s,bytes,bytes_per_s\n");
    for (int i = 0; i < count; i++)
        for (int pass = 0; pass < COST_PASS_COUNT; pass++) {
            CostOps ops;
            list_ops(&shape, &pieces[i], (CostPass)pass, &ops);
            for (int index = 0; index < ops.count; index++)
                append_op(out, &shape, &pieces[i], (CostPass)pass, &ops, index);
        }
}
