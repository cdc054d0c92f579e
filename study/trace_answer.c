/* study/trace_answer.c - see trace_answer.h. */
#include "study/trace_answer.h"

#include <math.h>
#include <string.h>

enum { NAME_LENGTH = 72 };

#define PS_PER_S   1e12
#define LEAST_FRAC 1e-3 /* of a step: what pages print as 0.0 % cancels nothing */

/* --- what meets what --- */

static bool is_backward(const char *name)
{
    static const char *const words[] = {"bwd",       "Bwd",       "backward",  "Backward",
                                        "gammabeta", "GammaBeta", "GradInput", "_dgrad"};
    for (gsize i = 0; i < G_N_ELEMENTS(words); i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    return false;
}

/* "8192x4096x1024", the contracted size last and the larger of the others first, so that transposed products meet. */
static bool product_size(const TraceRank *rank, const TraceKernel *kernel, GString *out)
{
    double size[3], groups = 1;
    if (kernel->op < 0 || !trace_op_product(&g_array_index(rank->ops, TraceOp, kernel->op), size, &groups))
        return false;
    if (groups > 1)
        g_string_append_printf(out, "%.0f of ", groups);
    g_string_append_printf(out, "%.0fx%.0fx%.0f", MAX(size[0], size[1]), MIN(size[0], size[1]), size[2]);
    return true;
}

static void name_op(const TraceRank *rank, const TraceKernel *kernel, bool compared, GString *out)
{
    const TraceName *name = &g_array_index(rank->names, TraceName, kernel->name);
    g_string_assign(out, trace_class_word(name->kind));
    g_string_append_c(out, ' ');
    if (name->kind == TRACE_PRODUCTS && product_size(rank, kernel, out))
        return;
    if (trace_is_communication(name->kind)) {
        if (kernel->bytes > 0)
            g_string_append_printf(out, "%.2f MiB ", kernel->bytes / 1048576);
        if (kernel->ranks > 0)
            g_string_append_printf(out, "over %d", kernel->ranks);
        if (!compared && kernel->bytes <= 0)
            g_string_append(out, name->text);
    } else if (compared && (name->kind == TRACE_ATTENTION || name->kind == TRACE_NORMS)) {
        g_string_append(out, is_backward(name->text) ? "backward" : "forward");
    } else if (!compared || name->kind == TRACE_PRODUCTS || name->kind == TRACE_OTHER) {
        const char *end = g_utf8_strlen(name->text, -1) > NAME_LENGTH
                              ? g_utf8_offset_to_pointer(name->text, NAME_LENGTH)
                              : name->text + strlen(name->text);
        g_string_append_len(out, name->text, end - name->text);
    }
    g_strchomp(out->str);
    out->len = strlen(out->str);
}

typedef struct Rows {
    GHashTable *index; /* text: index + 1 */
    GArray *rows;
} Rows;

static TraceOpRow *row_of(Rows *rows, const char *text, TraceClass kind)
{
    const gpointer known = g_hash_table_lookup(rows->index, text);
    if (known != NULL)
        return &g_array_index(rows->rows, TraceOpRow, GPOINTER_TO_INT(known) - 1);
    const TraceOpRow row = {.text = g_strdup(text), .kind = kind};
    g_array_append_val(rows->rows, row);
    g_hash_table_insert(rows->index, g_strdup(text), GINT_TO_POINTER((int)rows->rows->len));
    return &g_array_index(rows->rows, TraceOpRow, rows->rows->len - 1);
}

/* --- by order, where a trace has no sizes --- */

/* Names of the prediction's products, and of its collectives by kind, in their order; NULL: none of that class. */
typedef struct Orders {
    GPtrArray *names[TRACE_CLASSES];
} Orders;

static bool goes_by_order(TraceClass kind)
{
    return kind == TRACE_PRODUCTS || trace_is_communication(kind);
}

static void orders_init(const TraceRank *predicted, Orders *orders)
{
    g_autoptr(GString) text = g_string_new(NULL);
    for (guint i = 0; i < predicted->kernels->len; i++) {
        const TraceKernel *kernel = trace_kernel(predicted, i);
        const TraceClass kind = trace_kernel_class(predicted, kernel);
        if (!goes_by_order(kind))
            continue;
        if (orders->names[kind] == NULL)
            orders->names[kind] = g_ptr_array_new_with_free_func(g_free);
        name_op(predicted, kernel, true, text);
        g_ptr_array_add(orders->names[kind], g_strdup(text->str));
    }
}

static void orders_clear(Orders *orders)
{
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        if (orders->names[kind] != NULL)
            g_ptr_array_free(orders->names[kind], TRUE);
}

static bool has_size(const TraceRank *rank, const TraceKernel *kernel)
{
    g_autoptr(GString) size = g_string_new(NULL);
    return trace_is_communication(trace_kernel_class(rank, kernel)) ? kernel->bytes > 0
                                                                    : product_size(rank, kernel, size);
}

/* Classes of which no kernel has a size and each step has as many as the prediction: the n-th is the n-th. */
static void find_ordered(const TraceRank *rank, const bool *in_step, int steps, const Orders *orders,
                         bool ret_ordered[TRACE_CLASSES])
{
    gsize counts[TRACE_CLASSES] = {0};
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        ret_ordered[kind] = orders != NULL && orders->names[kind] != NULL;
    for (guint i = 0; i < rank->kernels->len; i++) {
        const TraceKernel *kernel = trace_kernel(rank, i);
        const TraceClass kind = trace_kernel_class(rank, kernel);
        if (!in_step[i] || !ret_ordered[kind])
            continue;
        counts[kind]++;
        ret_ordered[kind] = !has_size(rank, kernel);
    }
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        ret_ordered[kind] =
            ret_ordered[kind] && counts[kind] == (gsize)orders->names[kind]->len * (gsize)steps;
}

/* `orders`: of the prediction that a measured rank is compared with; NULL: none, or the rank is the prediction. */
static void add_rank(Rows *rows, const TraceRank *rank, double share, bool compared, bool predicted,
                     const Orders *orders)
{
    g_autoptr(GString) text = g_string_new(NULL);
    g_autofree bool *in_step = g_new0(bool, rank->kernels->len + 1);
    const int steps = MAX(trace_window(rank, in_step), 1);
    share /= steps;
    bool ordered[TRACE_CLASSES];
    guint seen[TRACE_CLASSES] = {0};
    find_ordered(rank, in_step, steps, orders, ordered);
    for (guint i = 0; i < rank->kernels->len; i++) {
        const TraceKernel *kernel = trace_kernel(rank, i);
        if (!in_step[i])
            continue;
        const TraceClass kind = trace_kernel_class(rank, kernel);
        if (ordered[kind])
            g_string_assign(text, orders->names[kind]->pdata[seen[kind]++ % orders->names[kind]->len]);
        else
            name_op(rank, kernel, compared, text);
        TraceOpRow *row = row_of(rows, text->str, kind);
        *(predicted ? &row->predicted_s : &row->measured_s) +=
            share * (double)(kernel->dur_ps - MIN(kernel->wait_ps, kernel->dur_ps)) / PS_PER_S;
        *(predicted ? &row->predicted_kernels : &row->measured_kernels) += share;
    }
}

static int by_time(gconstpointer a, gconstpointer b)
{
    const TraceOpRow *left = a, *right = b;
    const double mine = fabs(left->measured_s - left->predicted_s),
                 other = fabs(right->measured_s - right->predicted_s);
    return mine > other ? -1 : mine < other ? 1 : strcmp(left->text, right->text);
}

static void clear_row(void *row)
{
    g_free(((TraceOpRow *)row)->text);
}

/* What both sides come to class by class, and what is met on one side alone. */
static void find_errors(TraceAnswer *answer)
{
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        const double error_s =
            trace_class_s(&answer->predicted, kind) - trace_class_s(&answer->measured, kind);
        answer->error_s += error_s;
        answer->absolute_s += fabs(error_s);
    }
    answer->cancelled = fabs(answer->error_s) < answer->absolute_s / 3 &&
                        answer->absolute_s > LEAST_FRAC * answer->measured.step_s;
    for (guint i = 0; i < answer->ops->len; i++) {
        const TraceOpRow *row = &g_array_index(answer->ops, TraceOpRow, i);
        answer->unmatched_measured_s += row->predicted_kernels > 0 ? 0 : row->measured_s;
        answer->unmatched_predicted_s += row->measured_kernels > 0 ? 0 : row->predicted_s;
    }
}

/* `others` NULL: nothing to compare with. */
static TraceAnswer answer_of(const GPtrArray *ranks, const GPtrArray *others, bool recorded)
{
    TraceAnswer answer = {
        .ranks = ranks, .measured = trace_sums_mean(ranks), .compared = others != NULL, .recorded = recorded};
    Rows rows = {g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
                 g_array_new(FALSE, TRUE, sizeof(TraceOpRow))};
    const bool predicted = others != NULL && !recorded;
    Orders orders = {{NULL}};
    g_array_set_clear_func(rows.rows, clear_row);
    if (predicted)
        orders_init(others->pdata[0], &orders);
    for (guint i = 0; i < ranks->len; i++)
        add_rank(&rows, ranks->pdata[i], 1.0 / ranks->len, predicted, false, predicted ? &orders : NULL);
    orders_clear(&orders);
    for (guint i = 0; others != NULL && i < others->len; i++)
        add_rank(&rows, others->pdata[i], 1.0 / others->len, predicted, true, NULL);
    g_hash_table_destroy(rows.index);
    g_array_sort(rows.rows, by_time);
    answer.ops = rows.rows;
    if (others != NULL) {
        answer.predicted = trace_sums_mean(others);
        find_errors(&answer);
    }
    return answer;
}

TraceAnswer trace_answer(const GPtrArray *ranks, const TraceRank *predicted)
{
    g_autoptr(GPtrArray) others = g_ptr_array_new();
    g_ptr_array_add(others, (gpointer)predicted);
    return answer_of(ranks, predicted != NULL ? others : NULL, false);
}

TraceAnswer trace_answer_beside(const GPtrArray *ranks, const GPtrArray *others)
{
    return answer_of(ranks, others, true);
}

void trace_answer_clear(TraceAnswer *answer)
{
    g_array_free(answer->ops, TRUE);
}
