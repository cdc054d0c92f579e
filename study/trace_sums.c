/* study/trace_sums.c - see trace_sums.h. */
#include "study/trace_sums.h"

#define PS_PER_S 1e12

const char *trace_fall_word(TraceFall fall)
{
    static const char *const words[TRACE_FALLS] = {"compute", "communication", "skew",
                                                   "copies",  "host",          "gaps"};
    return words[fall];
}

const char *trace_fall_help(TraceFall fall)
{
    static const char *const helps[TRACE_FALLS] = {
        "kernels that compute",
        "communication with no kernel at the same time",
        "collectives that wait for their last rank",
        "copies with nothing else at the same time",
        "nothing runs: the host has launched nothing",
        "nothing runs: between kernels that wait in a queue",
    };
    return helps[fall];
}

/* --- the window --- */

static bool is_in_steps(const TraceRank *rank, const TraceKernel *kernel)
{
    const GArray *steps = rank->steps;
    const int64_t at_ps = kernel->launch_ps != TRACE_NO_LAUNCH ? kernel->launch_ps : kernel->begin_ps;
    if (steps->len == 0)
        return true;
    guint low = 0, high = steps->len; /* the last step that begins before */
    while (low < high) {
        const guint middle = low + (high - low) / 2;
        if (g_array_index(steps, TraceStep, middle).begin_ps <= at_ps)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && at_ps < g_array_index(steps, TraceStep, low - 1).end_ps;
}

int trace_window(const TraceRank *rank, bool *ret_in_step)
{
    bool any = false;
    for (guint i = 0; i < rank->kernels->len; i++) {
        ret_in_step[i] = is_in_steps(rank, trace_kernel(rank, i));
        any = any || ret_in_step[i];
    }
    for (guint i = 0; !any && i < rank->kernels->len; i++)
        ret_in_step[i] = true; /* the marks are of another time */
    return any ? (int)rank->steps->len : 0;
}

/* --- instant by instant --- */

typedef enum { RUNS_COMPUTE, RUNS_TRANSFER, RUNS_WAIT, RUNS_COPY, RUNS } Runs;

typedef struct Edge {
    int64_t at_ps, launch_ps;
    int8_t runs, step; /* step: 1 begins, -1 ends */
    int8_t kind;       /* a class whose kernel begins or ends here; TRACE_CLASSES: none does */
} Edge;

/* Edges of kernels that have begun, the next one first: as many as run at once, not as many as there are. */
typedef struct Sweep {
    TraceSums *sums;
    GArray *ahead; /* Edge: a heap */
    int running[RUNS], of_class[TRACE_CLASSES + 1];
    int64_t before_ps;
    bool any;
} Sweep;

static bool is_before(const Edge *left, const Edge *right)
{
    /* what begins at an instant leaves no gap there */
    return left->at_ps != right->at_ps ? left->at_ps < right->at_ps : left->step > right->step;
}

static void swap(GArray *heap, guint a, guint b)
{
    const Edge edge = g_array_index(heap, Edge, a);
    g_array_index(heap, Edge, a) = g_array_index(heap, Edge, b);
    g_array_index(heap, Edge, b) = edge;
}

static void push(GArray *heap, Edge edge)
{
    g_array_append_val(heap, edge);
    for (guint i = heap->len - 1; i > 0; i = (i - 1) / 2) {
        if (!is_before(&g_array_index(heap, Edge, i), &g_array_index(heap, Edge, (i - 1) / 2)))
            return;
        swap(heap, i, (i - 1) / 2);
    }
}

static Edge pop(GArray *heap)
{
    const Edge first = g_array_index(heap, Edge, 0);
    swap(heap, 0, heap->len - 1);
    g_array_set_size(heap, heap->len - 1);
    for (guint i = 0, next = 1; next < heap->len; i = next, next = 2 * i + 1) {
        if (next + 1 < heap->len &&
            is_before(&g_array_index(heap, Edge, next + 1), &g_array_index(heap, Edge, next)))
            next++;
        if (!is_before(&g_array_index(heap, Edge, next), &g_array_index(heap, Edge, i)))
            break;
        swap(heap, i, next);
    }
    return first;
}

static TraceFall fall_of(const int running[RUNS])
{
    return running[RUNS_COMPUTE] > 0    ? TRACE_FALL_COMPUTE
           : running[RUNS_TRANSFER] > 0 ? TRACE_FALL_COMMUNICATION
           : running[RUNS_WAIT] > 0     ? TRACE_FALL_SKEW
           : running[RUNS_COPY] > 0     ? TRACE_FALL_COPIES
                                        : TRACE_FALL_GAPS;
}

static void take(Sweep *sweep, const Edge *edge)
{
    TraceSums *sums = sweep->sums;
    const int64_t before_ps = sweep->any ? sweep->before_ps : edge->at_ps;
    const double seconds = (double)(edge->at_ps - before_ps) / PS_PER_S;
    TraceFall fall = fall_of(sweep->running);
    const bool communicates = sweep->running[RUNS_TRANSFER] + sweep->running[RUNS_WAIT] > 0;
    if (fall == TRACE_FALL_GAPS && edge->launch_ps != TRACE_NO_LAUNCH && edge->launch_ps > before_ps)
        fall = TRACE_FALL_HOST;
    sums->fall_s[fall] += seconds;
    sums->communication_s += communicates ? seconds : 0;
    sums->beside_s += communicates && fall == TRACE_FALL_COMPUTE ? seconds : 0;
    for (int kind = 0; kind < TRACE_CLASSES && seconds > 0; kind++)
        sums->class_busy_s[kind] += sweep->of_class[kind] > 0 ? seconds : 0;
    sweep->running[edge->runs] += edge->step;
    sweep->of_class[edge->kind] += edge->step;
    sweep->before_ps = edge->at_ps;
    sweep->any = true;
}

/* All edges that come before `edge`. */
static void take_until(Sweep *sweep, const Edge *edge)
{
    while (sweep->ahead->len > 0 &&
           (edge == NULL || is_before(&g_array_index(sweep->ahead, Edge, 0), edge))) {
        const Edge next = pop(sweep->ahead);
        take(sweep, &next);
    }
}

/* Kernels come by their begin. */
static void add_kernel(Sweep *sweep, const TraceRank *rank, const TraceKernel *kernel)
{
    const TraceClass kind = trace_kernel_class(rank, kernel);
    const bool waits = trace_is_communication(kind);
    const int64_t end_ps = kernel->begin_ps + kernel->dur_ps,
                  arrived_ps = kernel->begin_ps + MIN(kernel->wait_ps, kernel->dur_ps);
    const Runs runs = waits ? RUNS_WAIT : kind == TRACE_COPIES ? RUNS_COPY : RUNS_COMPUTE;
    const Edge begins = {kernel->begin_ps, kernel->launch_ps, (int8_t)runs, 1, (int8_t)kind};
    take_until(sweep, &begins);
    take(sweep, &begins);
    const int8_t ends = waits ? TRACE_CLASSES : (int8_t)kind;
    push(sweep->ahead, (Edge){waits ? arrived_ps : end_ps, TRACE_NO_LAUNCH, (int8_t)runs, -1, ends});
    if (!waits)
        return;
    push(sweep->ahead, (Edge){arrived_ps, kernel->launch_ps, RUNS_TRANSFER, 1, TRACE_CLASSES});
    push(sweep->ahead, (Edge){end_ps, TRACE_NO_LAUNCH, RUNS_TRANSFER, -1, (int8_t)kind});
}

TraceSums trace_sums(const TraceRank *rank)
{
    g_autofree bool *in_step = g_new0(bool, rank->kernels->len + 1);
    const int marked = trace_window(rank, in_step);
    TraceSums sums = {.steps = MAX(marked, 1), .marked = marked > 0};
    g_autoptr(GArray) ahead = g_array_new(FALSE, FALSE, sizeof(Edge));
    Sweep sweep = {.sums = &sums, .ahead = ahead};
    int64_t first_ps = INT64_MAX, end_ps = INT64_MIN, host_ps = 0;
    for (guint i = 0; i < rank->kernels->len; i++) {
        const TraceKernel *kernel = trace_kernel(rank, i);
        const TraceClass kind = trace_kernel_class(rank, kernel);
        if (!in_step[i])
            continue;
        sums.class_s[kind] += (double)kernel->dur_ps / PS_PER_S / sums.steps;
        sums.class_wait_s[kind] += (double)kernel->wait_ps / PS_PER_S / sums.steps;
        sums.class_kernels[kind] += 1.0 / sums.steps;
        first_ps = MIN(first_ps, kernel->begin_ps);
        end_ps = MAX(end_ps, kernel->begin_ps + kernel->dur_ps);
        add_kernel(&sweep, rank, kernel);
    }
    if (sums.marked)
        host_ps = g_array_index(rank->steps, TraceStep, rank->steps->len - 1).end_ps -
                  g_array_index(rank->steps, TraceStep, 0).begin_ps;
    take_until(&sweep, NULL);
    if (first_ps <= end_ps && host_ps > end_ps - first_ps) {
        sums.fall_s[TRACE_FALL_HOST] += (double)(host_ps - (end_ps - first_ps)) / PS_PER_S;
        end_ps = first_ps + host_ps;
    }
    sums.step_s = first_ps <= end_ps ? (double)(end_ps - first_ps) / PS_PER_S / sums.steps : 0;
    for (int fall = 0; fall < TRACE_FALLS; fall++)
        sums.fall_s[fall] /= sums.steps;
    for (int kind = 0; kind < TRACE_CLASSES; kind++)
        sums.class_busy_s[kind] /= sums.steps;
    sums.beside_s /= sums.steps;
    sums.communication_s /= sums.steps;
    return sums;
}

static void add_share(TraceSums *mean, const TraceSums *sums, double share)
{
    mean->step_s += share * sums->step_s;
    mean->beside_s += share * sums->beside_s;
    mean->communication_s += share * sums->communication_s;
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        mean->class_s[kind] += share * sums->class_s[kind];
        mean->class_wait_s[kind] += share * sums->class_wait_s[kind];
        mean->class_busy_s[kind] += share * sums->class_busy_s[kind];
        mean->class_kernels[kind] += share * sums->class_kernels[kind];
    }
    for (int fall = 0; fall < TRACE_FALLS; fall++)
        mean->fall_s[fall] += share * sums->fall_s[fall];
}

TraceSums trace_sums_mean(const GPtrArray *ranks)
{
    TraceSums mean = {.steps = 0, .marked = true};
    for (guint i = 0; i < ranks->len; i++) {
        const TraceSums sums = trace_sums(ranks->pdata[i]);
        mean.steps = i == 0 ? sums.steps : MIN(mean.steps, sums.steps);
        mean.marked = mean.marked && sums.marked;
        add_share(&mean, &sums, 1.0 / ranks->len);
    }
    return mean;
}
