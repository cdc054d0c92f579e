/* workload/split.c - see split.h. */
#include "workload/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "costmodel/flops.h"
#include "sim/picoseconds.h"
#include "workload/costs.h"

/* FLOPs of the phases that do not generate, on the scenario's own GPUs. */
static double least_flops(const Spec *spec, const Spec *const *roles)
{
    const SpecWorkload *workload = &spec->workload;
    Sequences sequences;
    double flops = 0;
    sequences_of(workload, &sequences);
    for (int i = 0; i < workload->phase_count; i++) {
        const SpecPhase *phase = &workload->phase[i];
        const bool computes = phase->kind == SPEC_PHASE_TRAIN || phase->kind == SPEC_PHASE_FORWARD;
        if (computes && phase->seconds < 0 && spec_role_host(workload, phase->role) < 0)
            flops += workload_least_flops(spec, &roles[phase->role]->model, phase, &sequences);
    }
    return flops;
}

static int by_bound(const void *a, const void *b)
{
    const SplitRow *x = a, *y = b;
    if (x->bound_ps != y->bound_ps)
        return x->bound_ps < y->bound_ps ? -1 : 1;
    return x->nodes != y->nodes ? x->nodes - y->nodes : x->tensor - y->tensor;
}

/* Each degree of tensor ranks where answers are written is loaded once: what a layout leaves open follows from it. */
typedef struct Degree {
    int tensor;
    const Spec *const *roles; /* NULL: the layout cannot be */
} Degree;

enum { MOST_DEGREES = 16 };

typedef struct Search {
    const Spec *spec;
    const SpecSource *source;
    Degree degree[MOST_DEGREES];
    int degree_count;
    OrrArena *arena; /* of the roles */
    GError **first;  /* why the first split is refused */
} Search;

static GError **unless_known(GError **first)
{
    return *first == NULL ? first : NULL;
}

static void load_degree(Search *search, const Spec *const *roles, int tensor)
{
    Degree *degree = &search->degree[search->degree_count++];
    degree->tensor = tensor;
    degree->roles = workload_roles_at(search->spec, search->source, roles, tensor, search->arena,
                                      unless_known(search->first));
}

/* Powers of two within a node, and the scenario's own degree where that is none. */
static bool load_degrees(Search *search, GError **error)
{
    const Spec *const *roles =
        (const Spec *const *)workload_roles(search->spec, search->source, search->arena, error);
    if (roles == NULL)
        return false;
    const Spec *role = roles[workload_generator(&search->spec->workload)];
    bool own = false;
    for (int tensor = 1; tensor <= role->cluster.gpus_per_node && search->degree_count + 1 < MOST_DEGREES;
         tensor *= 2) {
        if (role->cluster.gpus_per_node % tensor != 0)
            continue;
        load_degree(search, roles, tensor);
        own |= tensor == role->parallel.tensor;
    }
    if (!own)
        load_degree(search, roles, role->parallel.tensor);
    return true;
}

/* The split with its bound; false: no room for an answer. */
static bool bound_row(const Search *search, const Degree *degree, SplitRow *row)
{
    const Spec *spec = search->spec;
    const WorkloadSplit split = {.roles = degree->roles, .nodes = row->nodes, .apart = row->apart};
    const int64_t generation_ps =
        degree->roles != NULL ? workload_generation_ps(spec, &split, unless_known(search->first)) : 0;
    if (generation_ps <= 0)
        return false;
    const double gpus = (double)row->nodes * spec->cluster.gpus_per_node;
    const int64_t training_ps =
        sim_ps(least_flops(spec, degree->roles) / (gpus * cost_peak_flops_per_s(spec)));
    const bool ahead = row->apart > 0 && spec->workload.staleness_steps > 0;
    row->bound_ps = ahead ? MAX(generation_ps, training_ps) : sim_sum(generation_ps, training_ps);
    return true;
}

/* Every split with its bound; those with no room for an answer are left out. */
static GArray *all_splits(const Search *search, Splits *splits)
{
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(SplitRow));
    for (int apart = 0; apart < splits->nodes; apart++)
        for (int i = 0; i < search->degree_count; i++) {
            SplitRow row = {.nodes = splits->nodes - apart,
                            .apart = apart,
                            .tensor = search->degree[i].tensor,
                            .degree = i};
            splits->space++;
            if (bound_row(search, &search->degree[i], &row))
                g_array_append_val(rows, row);
            else
                splits->refused++;
        }
    qsort(rows->data, rows->len, sizeof(SplitRow), by_bound);
    return rows;
}

static void keep(Splits *splits, int top, const SplitRow *row)
{
    int at = splits->row_count;
    while (at > 0 && splits->row[at - 1].step_ps > row->step_ps)
        at--;
    if (at >= top)
        return;
    const int moved = MIN(splits->row_count, top - 1) - at;
    memmove(&splits->row[at + 1], &splits->row[at], (size_t)moved * sizeof *row);
    splits->row[at] = *row;
    splits->row_count = MIN(top, splits->row_count + 1);
}

/* False: this split is refused, as one whose layout does not divide its GPUs. */
static bool ask_split(const Search *search, OrrArena *arena, SplitRow *row)
{
    const Spec *spec = search->spec;
    const WorkloadSplit split = {
        .roles = search->degree[row->degree].roles, .nodes = row->nodes, .apart = row->apart};
    const WorkloadAsk ask = {.split = &split};
    Workload *workload = ORR_ARENA_NEW(arena, Workload, 1);
    if (!workload_ask(spec, search->source, &ask, arena, workload, unless_known(search->first)) ||
        !workload->fits)
        return false;
    row->step_ps = workload->step_ps;
    row->tokens_per_s = workload->tokens_per_s;
    row->tokens_per_s_per_gpu = workload->tokens_per_s_per_gpu;
    row->bound_by = workload_bound_word(workload);
    row->train_gpus = row->nodes * spec->cluster.gpus_per_node;
    row->rollout_gpus = row->apart > 0 ? row->apart * spec->cluster.gpus_per_node : row->train_gpus;
    return true;
}

static void ask_all(const Search *search, int top, Splits *splits)
{
    OrrArena *arena = orr_arena_new();
    GArray *rows = all_splits(search, splits);
    for (guint i = 0; i < rows->len; i++) {
        SplitRow *row = &g_array_index(rows, SplitRow, i);
        if (splits->row_count == top && row->bound_ps >= splits->row[top - 1].step_ps) {
            splits->pruned = (int)(rows->len - i);
            break;
        }
        if (ask_split(search, arena, row)) {
            splits->asked++;
            keep(splits, top, row);
        } else {
            splits->refused++;
        }
        orr_arena_clear(arena);
    }
    g_array_free(rows, TRUE);
    orr_arena_free(arena);
}

int splits_nodes(const Spec *spec)
{
    const int generator = workload_generator(&spec->workload),
              host = generator >= 0 ? spec_role_host(&spec->workload, generator) : -1;
    return spec->cluster.nodes + (host >= 0 ? spec->workload.role[host].nodes : 0);
}

bool splits_search(const Spec *spec, const SpecSource *source, int top, Splits *ret_splits, GError **error)
{
    return splits_search_on(spec, source, splits_nodes(spec), top, ret_splits, error);
}

bool splits_search_on(const Spec *spec, const SpecSource *source, int nodes, int top, Splits *ret_splits,
                      GError **error)
{
    const int generator = workload_generator(&spec->workload);
    if (generator < 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "workload.phases: none of kind \"generate\", so there is nothing to split");
    GError *first = NULL;
    Search search = {.spec = spec, .source = source, .arena = orr_arena_new(), .first = &first};
    Splits splits = {.spec = spec, .nodes = nodes, .gpus = nodes * spec->cluster.gpus_per_node};
    bool ok = load_degrees(&search, error);
    if (ok)
        ask_all(&search, CLAMP(top, 1, SPLIT_MOST_ROWS), &splits);
    if (first != NULL)
        g_strlcpy(splits.why, first->message, sizeof splits.why);
    if (ok && splits.row_count == 0)
        ok = orr_fail(error, ORR_ERROR_INPUT, "workload: none of %d splits of %d nodes can run; %s",
                      splits.space, nodes,
                      first != NULL
                          ? first->message
                          : "none fits in memory: give the trained role more tensor or pipeline ranks");
    if (ok)
        *ret_splits = splits;
    g_clear_error(&first);
    orr_arena_free(search.arena);
    return ok;
}
