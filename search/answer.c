/* search/answer.c - what a search that is over says: the best, the front, near misses, what more of the machine brings. */
#include "search/plain.h"
#include "search/search_internal.h"

#include <math.h>

enum { MISSES_RUN = 24, MISSES_SHOWN = 5 };

void search_judge_survivors(Search *search, const GArray *survivors, guint until)
{
    SearchResult *result = search->result;
    g_autoptr(GHashTable) steps = g_hash_table_new(search_id_hash, search_id_equal);
    for (guint i = 0; i < search->runs->len; i++) {
        SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        g_hash_table_insert(steps, &run->id, run);
    }
    result->seeds = result->simulated;
    for (guint i = 0; i < survivors->len; i++) {
        const SearchCandidate *candidate = &g_array_index(survivors, SearchCandidate, i);
        SearchSlack *loose = &result->loose[candidate->kind];
        loose->survivors++;
        if (g_hash_table_contains(search->known, &candidate->id)) {
            const SearchRun *run = g_hash_table_lookup(steps, &candidate->id);
            result->seeds--;
            loose->simulated++;
            loose->below_frac += run != NULL ? 1 - (double)candidate->least_ps / (double)run->step_ps : 0;
        } else if (i >= until && !search_ruled_out(search, candidate)) {
            search_leave_open(search, 1, candidate->least_ps);
        } else {
            result->pruned[candidate->kind]++;
        }
    }
}

static int compare_times(const void *a, const void *b)
{
    const SearchRun *x = a, *y = b;
    if (x->step_ps != y->step_ps)
        return x->step_ps < y->step_ps ? -1 : 1;
    if (x->reserved_bytes < y->reserved_bytes || x->reserved_bytes > y->reserved_bytes)
        return x->reserved_bytes < y->reserved_bytes ? -1 : 1;
    return search_id_compare(&x->id, &y->id);
}

void search_keep_front(GArray *runs, GArray *front)
{
    double least_bytes = G_MAXDOUBLE;
    g_array_sort(runs, compare_times);
    for (guint i = 0; i < runs->len; i++) {
        const SearchRun *run = &g_array_index(runs, SearchRun, i);
        if (!run->fits || run->reserved_bytes >= least_bytes)
            continue;
        least_bytes = run->reserved_bytes;
        g_array_append_vals(front, run, 1);
    }
}

/* A step that would not be worse than the best. */
static int64_t longest_of_misses(const Search *search)
{
    const GArray *best = search->result->best;
    if (best->len == 0)
        return INT64_MAX;
    const SearchRun *first = &g_array_index(best, SearchRun, 0);
    return search->goal.kind == SEARCH_FOR_STEP ? first->step_ps
                                                : search_goal_longest_ps(&search->goal, first->figure, 0);
}

/* Runs that did not fit, and the nearest that the memory bound ruled out, which are simulated to know by how much. */
static void find_misses(Search *search)
{
    SearchResult *result = search->result;
    const int64_t limit_ps = longest_of_misses(search);
    SearchId ids[MISSES_RUN];
    int count = 0;
    for (guint i = 0; i < search->misses->len && count < MISSES_RUN; i++) {
        const SearchCandidate *miss = &g_array_index(search->misses, SearchCandidate, i);
        if (miss->least_ps <= limit_ps && !g_hash_table_contains(search->known, &miss->id))
            ids[count++] = miss->id;
    }
    const int64_t simulated = result->simulated;
    search_simulate_batch(search, ids, count);
    result->simulated = simulated; /* they are counted where the memory bound left them out */
    for (guint i = 0; i < search->runs->len && (int)result->misses->len < MISSES_SHOWN; i++) {
        const SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        if (!run->fits && run->step_ps <= limit_ps)
            g_array_append_vals(result->misses, run, 1);
    }
}

/* A tenth more of one thing, of every kind of nodes. */
static void more_of(Spec *spec, int what)
{
    SpecCluster *cluster = &spec->cluster;
    for (int kind = -1; kind < cluster->group_count; kind++) {
        SpecGroup *own = &cluster->groups[MAX(kind, 0)];
        SpecAccelerator *accelerator = kind < 0 ? &cluster->accelerator : &own->accelerator;
        double *const up = kind < 0 ? &cluster->scale_up_bytes_per_s : &own->scale_up_bytes_per_s;
        double *const out =
            kind < 0 ? &cluster->scale_out_bytes_per_s_per_gpu : &own->scale_out_bytes_per_s_per_gpu;
        *up *= what == 0 ? 1.1 : 1;
        *out *= what == 1 ? 1.1 : 1;
        accelerator->memory_bytes_per_s *= what == 2 ? 1.1 : 1;
        for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
            accelerator->peak_flops_per_s[dtype] *= what == 3 ? 1.1 : 1;
    }
}

static void find_sensitivity(Search *search)
{
    static const char *const names[SEARCH_SENSITIVITIES] = {"NVLink", "NIC", "HBM", "FLOP/s"};
    SearchResult *result = search->result;
    g_autofree Spec *spec = g_new(Spec, 1);
    for (int i = 0; i < SEARCH_SENSITIVITIES; i++) {
        SearchRun run = {0};
        search_point_dealt(search->space, g_array_index(result->best, SearchRun, 0).id, spec);
        more_of(spec, i);
        result->sensitivity[i].what = names[i];
        if (search_simulate_spec(spec, search->capacity_bytes, &run))
            result->sensitivity[i].step_ps = run.step_ps;
    }
}

/* A family's row is proved where no open point can be faster: it is among the best, or every point was simulated. */
static int families_proved(const Search *search)
{
    const SearchResult *result = search->result;
    int proved = 0;
    if (!result->proved)
        return 0;
    if (search->options->exhaustive)
        return (int)result->families->len;
    for (guint i = 0; i < result->best->len && proved < (int)result->families->len; i++) {
        const SearchId *best = &g_array_index(result->best, SearchRun, i).id,
                       *family = &g_array_index(result->families, SearchRun, proved).id;
        proved += search_id_compare(best, family) == 0;
    }
    return proved;
}

bool search_same_family(const SpecParallel *a, const SpecParallel *b)
{
    return a->tensor == b->tensor && a->context == b->context && a->pipeline == b->pipeline &&
           a->expert == b->expert && a->zero == b->zero;
}

static void find_families(SearchResult *result, const GArray *runs, int top)
{
    g_autofree Spec *spec = g_new(Spec, 1);
    g_autoptr(GArray) seen = g_array_new(FALSE, FALSE, sizeof(SpecParallel));
    for (guint i = 0; i < runs->len && (int)result->families->len < top; i++) { /* fastest first */
        const SearchRun *run = &g_array_index(runs, SearchRun, i);
        bool known = !run->fits;
        search_point_spec(result->space, run->id, spec);
        for (guint k = 0; k < seen->len && !known; k++)
            known = search_same_family(&g_array_index(seen, SpecParallel, k), &spec->parallel);
        if (known)
            continue;
        g_array_append_val(seen, spec->parallel);
        g_array_append_vals(result->families, run, 1);
    }
}

void search_answer(Search *search)
{
    SearchResult *result = search->result;
    find_families(result, search->runs, search->top);
    for (guint i = 0; i < search->runs->len && (int)i < search->top; i++) {
        const SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        if (run->fits)
            g_array_append_vals(result->best, run, 1);
    }
    const bool hurried = search_over(search);
    if (!hurried && (result->best->len == 0 || !search->options->best_only))
        find_misses(search);
    if (!hurried && result->best->len > 0 && !search->options->best_only)
        find_sensitivity(search);
    /* Proved: every point was simulated, or has a bound beyond the last of the best. */
    result->proved = result->open == 0;
    result->families_proved = families_proved(search);
    if (result->proved)
        return;
    result->least_open_ps = search->least_open_ps;
    if (search->goal.kind != SEARCH_FOR_STEP) {
        const double figure = result->best->len > 0 ? g_array_index(result->best, SearchRun, 0).figure : 0;
        const double least = search_goal_least(&search->goal, result->least_open_ps, 0);
        result->gap_frac = figure > 0 ? isinf(figure) ? 1 : MAX(0, 1 - least / figure) : NAN;
        return;
    }
    const int64_t best_ps = result->best->len > 0 ? g_array_index(result->best, SearchRun, 0).step_ps : 0;
    result->gap_frac =
        best_ps > 0 ? MAX(0, (double)(best_ps - result->least_open_ps) / (double)best_ps) : NAN;
}

void search_plain_free(SearchPlain *plain)
{
    if (plain == NULL)
        return;
    search_result_clear(&plain->result);
    g_free(plain->spec);
    g_free(plain);
}

void search_result_clear(SearchResult *result)
{
    search_space_free(result->space);
    g_array_free(result->best, TRUE);
    g_array_free(result->pareto, TRUE);
    g_array_free(result->misses, TRUE);
    g_array_free(result->families, TRUE);
    g_array_free(result->improvements, TRUE);
    search_plain_free(result->plain);
}
