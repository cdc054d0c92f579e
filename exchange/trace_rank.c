/* exchange/trace_rank.c - the kernels of one GPU: the struct, and what its operators multiply. See trace.h. */
#include <string.h>

#include "exchange/trace.h"
#include "exchange/trace_scan.h"

static void clear_name(void *item)
{
    g_free(((TraceName *)item)->text);
}

static void clear_op(void *item)
{
    TraceOp *op = item;
    g_free(op->name);
    g_free(op->dims);
    g_free(op->types);
}

TraceRank *trace_rank_new(const char *path)
{
    TraceRank *rank = g_new0(TraceRank, 1);
    rank->path = g_strdup(path);
    rank->device = g_strdup("");
    rank->rank = -1;
    rank->names = g_array_new(FALSE, TRUE, sizeof(TraceName));
    rank->ops = g_array_new(FALSE, TRUE, sizeof(TraceOp));
    rank->kernels = g_array_new(FALSE, TRUE, sizeof(TraceKernel));
    rank->steps = g_array_new(FALSE, TRUE, sizeof(TraceStep));
    g_array_set_clear_func(rank->names, clear_name);
    g_array_set_clear_func(rank->ops, clear_op);
    return rank;
}

void trace_rank_free(TraceRank *rank)
{
    if (rank == NULL)
        return;
    g_free(rank->path);
    g_free(rank->device);
    g_array_free(rank->names, TRUE);
    g_array_free(rank->ops, TRUE);
    g_array_free(rank->kernels, TRUE);
    g_array_free(rank->steps, TRUE);
    g_free(rank);
}

int32_t trace_rank_name(TraceRank *rank, const char *text, TraceClass kind)
{
    for (guint i = 0; i < rank->names->len; i++) {
        const TraceName *name = &g_array_index(rank->names, TraceName, i);
        if (name->kind == kind && g_str_equal(name->text, text))
            return (int32_t)i;
    }
    const TraceName added = {g_strdup(text), kind, false};
    g_array_append_val(rank->names, added);
    return (int32_t)rank->names->len - 1;
}

int32_t trace_rank_op(TraceRank *rank, const char *name, const char *dims, const char *types)
{
    for (guint i = 0; i < rank->ops->len; i++) {
        const TraceOp *op = &g_array_index(rank->ops, TraceOp, i);
        if (g_str_equal(op->name, name) && g_str_equal(op->dims, dims) && g_str_equal(op->types, types))
            return (int32_t)i;
    }
    const TraceOp added = {g_strdup(name), g_strdup(dims), g_strdup(types)};
    g_array_append_val(rank->ops, added);
    return (int32_t)rank->ops->len - 1;
}

/* --- products --- */

enum { MOST_TENSORS = 4, MOST_DIMS = 4 };

typedef struct Tensor {
    double dim[MOST_DIMS];
    int count; /* -1: more than fit */
} Tensor;

/* "[[2,3],[3,4],[]]": the first tensors. A list of tensors counts as none. */
static int read_tensors(const char *dims, Tensor tensors[MOST_TENSORS])
{
    TraceScan scan = {dims, dims + strlen(dims)};
    int count = 0;
    if (!trace_scan_char(&scan, '['))
        return 0;
    while (count < MOST_TENSORS && trace_scan_char(&scan, '[')) {
        Tensor *tensor = &tensors[count++];
        TraceSlice number;
        *tensor = (Tensor){.count = 0};
        while (trace_scan_peek(&scan) != ']' && trace_scan_value(&scan, &number)) {
            const double dim = trace_slice_number(&number, -1);
            if (tensor->count < 0 || tensor->count == MOST_DIMS || dim < 0)
                tensor->count = -1;
            else
                tensor->dim[tensor->count++] = dim;
            trace_scan_char(&scan, ',');
        }
        if (!trace_scan_char(&scan, ']'))
            return count - 1;
        trace_scan_char(&scan, ',');
    }
    return count;
}

/* The first two operands of which the second's rows are the first's columns. */
typedef struct Product {
    const char *op;
    int first;       /* tensor */
    int rank;        /* dimensions of each: 2, or 3 with a batch */
    bool transposed; /* the second is [n,k] */
} Product;

static const Product products[] = {
    {"aten::mm", 0, 2, false},     {"aten::addmm", 1, 2, false},   {"aten::_scaled_mm", 0, 2, false},
    {"aten::bmm", 0, 3, false},    {"aten::baddbmm", 1, 3, false}, {"aten::_addmm_activation", 1, 2, false},
    {"aten::addmm_", 1, 2, false}, {"aten::linear", 0, 0, true},   {"aten::_int_mm", 0, 2, false},
};

bool trace_op_product(const TraceOp *op, double size[3], double *ret_groups)
{
    const Product *product = NULL;
    Tensor tensors[MOST_TENSORS];
    for (gsize i = 0; i < G_N_ELEMENTS(products) && product == NULL; i++)
        product = g_str_equal(products[i].op, op->name) ? &products[i] : NULL;
    if (product == NULL || read_tensors(op->dims, tensors) < product->first + 2)
        return false;
    const Tensor *a = &tensors[product->first], *b = a + 1;
    if (product->transposed) { /* [..., k] x [n,k] */
        if (a->count < 1 || b->count != 2 || a->dim[a->count - 1] != b->dim[1])
            return false;
        size[0] = 1;
        for (int i = 0; i < a->count - 1; i++)
            size[0] *= a->dim[i];
        size[1] = b->dim[0];
        size[2] = b->dim[1];
        *ret_groups = 1;
        return true;
    }
    const int batch = product->rank - 2;
    if (a->count != product->rank || b->count != product->rank || a->dim[batch + 1] != b->dim[batch] ||
        (batch > 0 && a->dim[0] != b->dim[0]))
        return false;
    size[0] = a->dim[batch];
    size[1] = b->dim[batch + 1];
    size[2] = b->dim[batch];
    *ret_groups = batch > 0 ? a->dim[0] : 1;
    return true;
}
