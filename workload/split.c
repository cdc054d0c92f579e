/* workload/split.c - see split.h. */
#include "workload/split.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "costmodel/flops.h"
#include "sim/picoseconds.h"
#include "workload/costs.h"
#include "workload/split_layouts.h"

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

/* --- layouts --- */

static void load_degree(SplitSearch *search, const Spec *role, int tensor)
{
    SplitDegree *degree = &search->degree[search->degree_count++];
    degree->tensor = tensor;
    degree->role = role->parallel.tensor == tensor
                       ? role
                       : workload_load_role(search->spec, search->source, search->generator,
                                            (SpecRanks){.tensor = tensor}, search->arena, splits_why(search));
}

/* Powers of two within a node, and the scenario's own degree where that is none. */
static void load_degrees(SplitSearch *search, const Spec *role)
{
    bool own = false;
    for (int tensor = 1; tensor <= role->cluster.gpus_per_node && search->degree_count + 1 < MOST_DEGREES;
         tensor *= 2) {
        if (role->cluster.gpus_per_node % tensor != 0)
            continue;
        load_degree(search, role, tensor);
        own |= tensor == role->parallel.tensor;
    }
    if (!own)
        load_degree(search, role, role->parallel.tensor);
}

/* On the whole machine, as its parts are dealt later. The scenario's own layout also holds roles with one of their own. */
static void load_layout(SplitSearch *search, SpecRanks ranks)
{
    const SpecWorkload *workload = &search->spec->workload;
    Spec *whole = ORR_ARENA_NEW(search->arena, Spec, 1);
    SplitLayout *layout = &search->layout[search->layout_count++];
    *whole = *search->spec;
    whole->cluster.nodes = search->nodes;
    layout->ranks = ranks;
    for (int i = 0; i < search->computing_count; i++) {
        const int row = search->computing[i];
        const bool own = spec_role_has_layout(&workload->role[row]);
        if (!own || search->layout_count == 1)
            layout->roles[row] = workload_load_role(whole, search->source, row, own ? (SpecRanks){0} : ranks,
                                                    search->arena, splits_why(search));
    }
}

static bool computes(const SpecWorkload *workload, int role)
{
    if (role == workload_generator(workload))
        return false;
    for (int i = 0; i < workload->phase_count; i++) {
        const SpecPhase *phase = &workload->phase[i];
        if (phase->role == role && (phase->kind == SPEC_PHASE_TRAIN || phase->kind == SPEC_PHASE_FORWARD))
            return spec_role_host(workload, role) < 0;
    }
    return false;
}

/* Whether a role that computes has the scenario's layout: then that layout is free. */
static bool has_free_layout(SplitSearch *search)
{
    bool is_free = false;
    for (int i = 0; i < search->spec->workload.role_count; i++)
        if (computes(&search->spec->workload, i)) {
            search->computing[search->computing_count++] = i;
            is_free |= !spec_role_has_layout(&search->spec->workload.role[i]);
        }
    return is_free;
}

/* The scenario's own layout first, then powers of two: tensor within a node, pipeline no deeper than the model. */
static void load_layouts(SplitSearch *search)
{
    const Spec *spec = search->spec;
    const SpecParallel *own = &spec->parallel;
    const int gpus = search->nodes * spec->cluster.gpus_per_node;
    const bool is_free = has_free_layout(search);
    load_layout(search, (SpecRanks){own->tensor, own->pipeline, own->context});
    if (!is_free)
        return;
    for (int tensor = 1; tensor <= spec->cluster.gpus_per_node; tensor *= 2)
        for (int pipeline = 1; pipeline <= spec->model.layers; pipeline *= 2)
            for (int context = 1; context <= MOST_CONTEXT; context *= 2) {
                const bool known =
                    tensor == own->tensor && pipeline == own->pipeline && context == own->context;
                if (!known && spec->cluster.gpus_per_node % tensor == 0 &&
                    (int64_t)tensor * pipeline * context <= gpus && search->layout_count < MOST_LAYOUTS)
                    load_layout(search, (SpecRanks){tensor, pipeline, context});
            }
}

/* --- splits --- */

/* What answers take there; NULL: there is no room for one. */
static const RolloutAnswer *answer_of(const SplitSearch *search, const SplitDegree *degree, int apart)
{
    if (degree->role == NULL)
        return NULL;
    RolloutAnswer *answer = &degree->answers[apart];
    if (!(answer->seconds > 0)) {
        const SpecWorkload *workload = &search->spec->workload;
        g_autofree Spec *role = g_new(Spec, 1);
        if (!workload_resize(degree->role, apart > 0 ? apart : search->nodes, role,
                             workload->role[search->generator].name, splits_why(search)))
            return NULL;
        const bool streams = workload->in_flight && workload->staleness_steps > 0;
        if (!rollout_ask(role, workload, &search->sequences, streams, answer, splits_why(search)))
            return NULL;
    }
    return answer;
}

static void add_row(const SplitSearch *search, int degree, int apart, Splits *splits, GArray *rows)
{
    const Spec *spec = search->spec;
    SplitRow row = {.nodes = splits->nodes - apart,
                    .apart = apart,
                    .tensor = search->degree[degree].tensor,
                    .degree = degree};
    splits->space++;
    const RolloutAnswer *answer = answer_of(search, &search->degree[degree], apart);
    if (answer == NULL) {
        splits->refused++;
        return;
    }
    const double gpus = (double)row.nodes * spec->cluster.gpus_per_node;
    row.bound_ps =
        splits_bound_ps(search, &row, sim_ps(search->flops / (gpus * cost_peak_flops_per_s(spec))));
    g_array_append_val(rows, row);
}

/* Every split with its bound; those with no room for an answer are left out. */
static GArray *all_splits(const SplitSearch *search, Splits *splits)
{
    GArray *rows = g_array_new(FALSE, TRUE, sizeof(SplitRow));
    for (int apart = 0; apart < splits->nodes; apart++)
        for (int degree = 0; degree < search->degree_count; degree++)
            add_row(search, degree, apart, splits, rows);
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

static void ask_all(const SplitSearch *search, int top, Splits *splits)
{
    OrrArena *arena = orr_arena_new();
    GArray *rows = all_splits(search, splits);
    for (guint i = 0; i < rows->len; i++) {
        SplitRow *row = &g_array_index(rows, SplitRow, i);
        if (splits->row_count == top && row->bound_ps >= splits->row[top - 1].step_ps) {
            splits->pruned += (int)(rows->len - i);
            break;
        }
        bool cut = false;
        if (splits_ask_layouts(search, splits->row_count == top ? splits->row[top - 1].step_ps : INT64_MAX,
                               arena, row, &cut)) {
            splits->asked++;
            keep(splits, top, row);
        } else {
            splits->pruned += cut;
            splits->refused += !cut;
        }
        orr_arena_clear(arena);
    }
    g_array_free(rows, TRUE);
    orr_arena_free(arena);
}

static void search_free(SplitSearch *search)
{
    for (int i = 0; i < search->degree_count; i++)
        g_free(search->degree[i].answers);
    for (int i = 0; i < search->computing_count; i++) {
        SplitChoices *choices = search->choices[search->computing[i]];
        for (int k = 0; k < 2 * search->nodes; k++)
            g_free(choices[k].choice);
        g_free(choices);
    }
    orr_arena_free(search->arena);
    g_free(search);
}

/* NULL with an error: the scenario's own layout cannot be. */
static SplitSearch *search_new(const Spec *spec, const SpecSource *source, int nodes, GError **first,
                               GError **error)
{
    SplitSearch *search = g_new0(SplitSearch, 1);
    search->spec = spec;
    search->source = source;
    search->nodes = nodes;
    search->generator = workload_generator(&spec->workload);
    search->arena = orr_arena_new();
    search->first = first;
    sequences_of(&spec->workload, &search->sequences);
    const Spec *const *roles =
        (const Spec *const *)workload_roles(spec, source, (SpecRanks){0}, search->arena, error);
    if (roles == NULL) {
        search_free(search);
        return NULL;
    }
    search->roles = roles;
    search->flops = least_flops(spec, roles);
    load_degrees(search, roles[search->generator]);
    load_layouts(search);
    for (int i = 0; i < search->degree_count; i++)
        search->degree[i].answers = g_new0(RolloutAnswer, (gsize)nodes);
    for (int i = 0; i < search->computing_count; i++)
        search->choices[search->computing[i]] = g_new0(SplitChoices, 2 * (gsize)nodes);
    return search;
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
    if (workload_generator(&spec->workload) < 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "workload.phases: none of kind \"generate\", so there is nothing to split");
    GError *first = NULL;
    SplitSearch *search = search_new(spec, source, nodes, &first, error);
    if (search == NULL)
        return false;
    Splits splits = {.spec = spec,
                     .nodes = nodes,
                     .gpus = nodes * spec->cluster.gpus_per_node,
                     .layouts = search->layout_count};
    ask_all(search, CLAMP(top, 1, SPLIT_MOST_ROWS), &splits);
    if (first != NULL)
        g_strlcpy(splits.why, first->message, sizeof splits.why);
    bool ok = splits.row_count > 0;
    if (!ok)
        orr_fail(error, ORR_ERROR_INPUT, "workload: none of %d splits of %d nodes can run; %s", splits.space,
                 nodes,
                 first != NULL ? first->message
                               : "none fits in memory: give the trained role more tensor or pipeline ranks");
    if (ok)
        *ret_splits = splits;
    g_clear_error(&first);
    search_free(search);
    return ok;
}
