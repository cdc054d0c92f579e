/* exchange/trace_link.c - see trace_link.h. */
#include "exchange/trace_link.h"

#include <string.h>

#include "exchange/trace_event.h"

static int by_id(gconstpointer a, gconstpointer b)
{
    const TraceLinked *left = a, *right = b;
    if (left->id != right->id)
        return left->id < right->id ? -1 : 1;
    return left->begin_ps < right->begin_ps ? -1 : left->begin_ps > right->begin_ps;
}

static const TraceLinked *find(const GArray *sorted, int64_t id)
{
    guint low = 0, high = sorted->len;
    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (g_array_index(sorted, TraceLinked, middle).id < id)
            low = middle + 1;
        else
            high = middle;
    }
    const TraceLinked *found = low < sorted->len ? &g_array_index(sorted, TraceLinked, low) : NULL;
    return found != NULL && found->id == id ? found : NULL;
}

static int by_begin(gconstpointer a, gconstpointer b)
{
    const TraceKernel *left = a, *right = b;
    if (left->begin_ps != right->begin_ps)
        return left->begin_ps < right->begin_ps ? -1 : 1;
    if (left->stream != right->stream)
        return left->stream < right->stream ? -1 : 1;
    return left->dur_ps < right->dur_ps ? -1 : left->dur_ps > right->dur_ps;
}

enum { MOST_MOVES = 16 }; /* an item, on the mean */

/* Profilers write most of it in order: little is moved then, and no memory taken for that. */
static void sort(GArray *array, GCompareFunc compare)
{
    const gsize size = g_array_get_element_size(array);
    g_autofree char *item = g_malloc(size);
    guint64 moves = 0;
    for (guint i = 1; i < array->len; i++) {
        guint to = i;
        while (to > 0 && compare(array->data + (to - 1) * size, array->data + i * size) > 0 &&
               moves <= (guint64)array->len * MOST_MOVES) {
            to--;
            moves++;
        }
        if (moves > (guint64)array->len * MOST_MOVES) {
            g_array_sort(array, compare);
            return;
        }
        if (to == i)
            continue;
        memcpy(item, array->data + i * size, size);
        memmove(array->data + (to + 1) * size, array->data + to * size, (i - to) * size);
        memcpy(array->data + to * size, item, size);
    }
}

void trace_rank_sort(TraceRank *rank)
{
    sort(rank->kernels, by_begin);
}

static int by_step(gconstpointer a, gconstpointer b)
{
    const TraceStep *left = a, *right = b;
    return left->begin_ps < right->begin_ps ? -1 : left->begin_ps > right->begin_ps;
}

/* The GPU whose kernels take longest. */
static int32_t main_device(const GArray *kernels)
{
    GHashTable *sums = g_hash_table_new_full(g_direct_hash, g_direct_equal, NULL, g_free);
    int32_t best = 0;
    double most = -1;
    for (guint i = 0; i < kernels->len; i++) {
        const TraceKernel *kernel = &g_array_index(kernels, TraceKernel, i);
        const gpointer key = GINT_TO_POINTER(kernel->op);
        double *sum = g_hash_table_lookup(sums, key);
        if (sum == NULL) {
            sum = g_new0(double, 1);
            g_hash_table_insert(sums, key, sum);
        }
        *sum += (double)kernel->dur_ps;
        if (*sum > most) {
            most = *sum;
            best = kernel->op;
        }
    }
    g_hash_table_destroy(sums);
    return best;
}

/* RCCL's kernels are all "Generic", and older traces have no collective's name: the operator's knows. */
static void class_by_operator(TraceRank *rank, TraceKernel *kernel)
{
    if (kernel->op < 0 || trace_kernel_class(rank, kernel) != TRACE_OTHER_COLLECTIVE)
        return;
    const char *name = g_array_index(rank->ops, TraceOp, kernel->op).name;
    const TraceSlice called = {name, strlen(name)};
    const TraceClass kind = trace_collective_class(&called, TRACE_OTHER_COLLECTIVE);
    if (kind != TRACE_OTHER_COLLECTIVE) {
        g_autofree char *text = g_strdup(g_array_index(rank->names, TraceName, kernel->name).text);
        kernel->name = trace_rank_name(rank, text, kind);
    }
}

void trace_link(GArray *launches, GArray *ops, TraceRank *rank)
{
    GArray *kernels = rank->kernels;
    const int32_t device = main_device(kernels);
    guint kept = 0;
    sort(launches, by_id);
    sort(ops, by_id);
    for (guint i = 0; i < kernels->len; i++) {
        TraceKernel kernel = g_array_index(kernels, TraceKernel, i);
        const int64_t correlation = kernel.launch_ps, external = kernel.wait_ps;
        if (kernel.op != device) {
            rank->elsewhere++;
            continue;
        }
        const TraceLinked *launch = correlation != 0 ? find(launches, correlation) : NULL;
        const TraceLinked *op = external != 0 ? find(ops, external) : NULL;
        if (op == NULL && launch != NULL && launch->external != 0)
            op = find(ops, launch->external);
        kernel.launch_ps = launch != NULL ? launch->begin_ps : TRACE_NO_LAUNCH;
        kernel.wait_ps = 0;
        kernel.op = op != NULL ? op->op : -1;
        class_by_operator(rank, &kernel);
        g_array_index(kernels, TraceKernel, kept++) = kernel;
    }
    g_array_set_size(kernels, kept);
    trace_rank_sort(rank);
    sort(rank->steps, by_step);
}
