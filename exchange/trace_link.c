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

/* Profilers write most of it in order: then nothing is moved, nor memory taken for that. */
static void sort(GArray *array, GCompareFunc compare)
{
    const guint size = g_array_get_element_size(array);
    for (guint i = 1; i < array->len; i++)
        if (compare(array->data + (gsize)(i - 1) * size, array->data + (gsize)i * size) > 0) {
            g_array_sort(array, compare);
            return;
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
static int64_t main_device(const GArray *kernels)
{
    GHashTable *sums = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    int64_t best = 0;
    double most = -1;
    for (guint i = 0; i < kernels->len; i++) {
        const TraceRaw *raw = &g_array_index(kernels, TraceRaw, i);
        double *sum = g_hash_table_lookup(sums, &raw->device);
        if (sum == NULL) {
            sum = g_new0(double, 1);
            g_hash_table_insert(sums, g_memdup2(&raw->device, sizeof raw->device), sum);
        }
        *sum += (double)raw->kernel.dur_ps;
        if (*sum > most) {
            most = *sum;
            best = raw->device;
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

void trace_link(const GArray *kernels, GArray *launches, GArray *ops, TraceRank *rank)
{
    const int64_t device = main_device(kernels);
    sort(launches, by_id);
    sort(ops, by_id);
    for (guint i = 0; i < kernels->len; i++) {
        TraceRaw *raw = &g_array_index(kernels, TraceRaw, i);
        if (raw->device != device) {
            rank->elsewhere++;
            continue;
        }
        const TraceLinked *launch = raw->correlation != 0 ? find(launches, raw->correlation) : NULL;
        if (launch != NULL)
            raw->kernel.launch_ps = launch->begin_ps;
        const TraceLinked *op = raw->external != 0 ? find(ops, raw->external) : NULL;
        if (op == NULL && launch != NULL && launch->external != 0)
            op = find(ops, launch->external);
        raw->kernel.op = op != NULL ? op->op : -1;
        class_by_operator(rank, &raw->kernel);
        g_array_append_val(rank->kernels, raw->kernel);
    }
    trace_rank_sort(rank);
    sort(rank->steps, by_step);
}
