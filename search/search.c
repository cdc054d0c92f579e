/* search/search.c - see search.h. */
#include "search/search.h"
#include "sim/step.h"

#include <math.h>
#include <string.h>

#include "search/limits.h"
#include "search/parallel.h"
#include "search/plain.h"
#include "search/team.h"

enum {
    SEEDS = 32,
    SEED_RUNS = 8,
    FIRST_BATCH = 8, /* while the limit falls quickly; doubled each time */
    WALK_BATCH = 128,
    RUN_BATCH = 32,
    EARLY_RUNS = 16,
    TABLES_BATCH = 1024,
    MISSES_RUN = 24,
    MISSES_SHOWN = 5
};

/* Of the progress that is told. */
#define TABLES_SHARE 0.5
#define WALK_SHARE   0.3

typedef struct Search {
    const SearchOptions *options;
    SearchResult *result;
    SearchSpace *space;
    SearchTables *tables;
    int jobs, top;
    double capacity_bytes;
    int64_t *group_ps; /* [groups]: least time without pairs of a forward and a backward ... */
    int64_t *pairs_ps; /* ... and with them */
    int *order;        /* groups, most promising first */
    SearchLimit limit;
    GArray *runs;      /* SearchRun: all that were simulated */
    GHashTable *known; /* ids simulated */
    GArray *misses;    /* SearchCandidate */
    GTimer *timer;
    GMutex mutex;
    GPtrArray *lanes; /* idle ones */
    /* The batch at hand. */
    SearchWalk *walks;
    SearchRun *batch;
    const SearchId *ids;
    bool *ran;
    int base;
    int64_t least_open_ps; /* of what a time limit left; INT64_MAX: nothing */
} Search;

static SearchLane *borrow_lane(Search *search)
{
    g_mutex_lock(&search->mutex);
    SearchLane *lane =
        search->lanes->len > 0 ? g_ptr_array_steal_index_fast(search->lanes, search->lanes->len - 1) : NULL;
    g_mutex_unlock(&search->mutex);
    return lane != NULL ? lane : search_lane_new(search->space, search->tables);
}

static void return_lane(Search *search, SearchLane *lane)
{
    g_mutex_lock(&search->mutex);
    g_ptr_array_add(search->lanes, lane);
    g_mutex_unlock(&search->mutex);
}

/* Whether the time that was given is over; the same for all processes. */
static bool over(const Search *search)
{
    const double limit_s = search->options->max_seconds;
    return limit_s > 0 &&
           search_team_agree(search->options->team, g_timer_elapsed(search->timer, NULL) > limit_s);
}

static void leave_open(Search *search, int64_t points, int64_t least_ps)
{
    search->result->open += points;
    search->least_open_ps = MIN(search->least_open_ps, least_ps);
}

static void tell(Search *search, double done_frac)
{
    if (search->options->progress != NULL)
        search->options->progress(done_frac, g_timer_elapsed(search->timer, NULL),
                                  search->options->progress_data);
}

/* --- simulating --- */

static void simulate_one(int index, void *data)
{
    Search *search = data;
    if (!search_team_mine(search->options->team, index))
        return;
    search->ran[index] =
        search_simulate(search->space, search->ids[index], search->capacity_bytes, &search->batch[index]);
}

static int compare_runs(const void *a, const void *b)
{
    const SearchRun *x = a, *y = b;
    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    if (!x->fits && (x->short_bytes < y->short_bytes || x->short_bytes > y->short_bytes))
        return x->short_bytes < y->short_bytes ? -1 : 1;
    if (x->step_ps != y->step_ps)
        return x->step_ps < y->step_ps ? -1 : 1;
    return search_id_compare(&x->id, &y->id);
}

static guint id_hash(gconstpointer key)
{
    const SearchId *id = key;
    const uint64_t word =
        (uint64_t)id->group * 0x9E3779B97F4A7C15u ^ (uint64_t)id->deal * 0xC2B2AE3D27D4EB4Fu ^
        (uint64_t)id->extent * 0x165667B19E3779F9u ^ (uint64_t)id->policy * 0xD6E8FEB86659FD93u;
    return (guint)(word >> 32);
}

static gboolean id_equal(gconstpointer a, gconstpointer b)
{
    return search_id_compare(a, b) == 0;
}

/* The last of the best `top` that fit. */
static void lower_limit(Search *search)
{
    GArray *runs = search->runs;
    g_array_sort(runs, compare_runs);
    if ((int)runs->len < search->top)
        return;
    const SearchRun *last = &g_array_index(runs, SearchRun, search->top - 1);
    if (last->fits)
        search->limit = (SearchLimit){last->step_ps, last->id};
}

/* Simulates `count` points (none twice) and lowers the limit. */
static void simulate(Search *search, const SearchId *ids, int count)
{
    SearchResult *result = search->result;
    search->ids = ids;
    search->batch = g_new0(SearchRun, (gsize)MAX(1, count));
    search->ran = g_new0(bool, (gsize)MAX(1, count));
    search_parallel(count, search->jobs, simulate_one, search);
    search_team_share_runs(search->options->team, search->batch, search->ran, count);
    for (int i = 0; i < count; i++) {
        SearchId *id = g_new(SearchId, 1);
        *id = ids[i];
        g_hash_table_add(search->known, id);
        if (search->ran[i])
            g_array_append_val(search->runs, search->batch[i]);
        else
            result->refused++;
    }
    result->simulated += count;
    g_free(search->batch);
    g_free(search->ran);
    lower_limit(search);
}

/* The first `most` of sorted candidates that were not simulated and are not ruled out. */
static int choose_next(const Search *search, const GArray *candidates, guint *at, SearchId *ret_ids, int most)
{
    int count = 0;
    for (; *at < candidates->len && count < most; (*at)++) {
        const SearchCandidate *candidate = &g_array_index(candidates, SearchCandidate, *at);
        if (search_beyond(&search->limit, candidate->least_ps, candidate->id) && candidate->short_bytes <= 0)
            break;
        if (!g_hash_table_contains(search->known, &candidate->id))
            ret_ids[count++] = candidate->id;
    }
    return count;
}

/* --- bounding --- */

static void bound_one(int index, void *data)
{
    Search *search = data;
    const SearchGroup *group = &search->space->groups[index];
    if (!search_team_mine(search->options->team, group->costs))
        return;
    search->group_ps[index] = search_bound_group(search->tables, group);
    search->pairs_ps[index] = search_bound_group_pairs(search->tables, group);
}

static int compare_groups(gconstpointer a, gconstpointer b, gpointer user)
{
    const Search *search = user;
    const int x = *(const int *)a, y = *(const int *)b;
    if (search->group_ps[x] != search->group_ps[y])
        return search->group_ps[x] < search->group_ps[y] ? -1 : 1;
    return x - y;
}

static void walk_one(int index, void *data)
{
    Search *search = data;
    const int group = search->order[search->base + index];
    if (!search_team_mine(search->options->team, search->space->groups[group].costs))
        return;
    SearchLane *lane = borrow_lane(search);
    search_walk_group(lane, group, &search->limit, search->capacity_bytes, &search->walks[index]);
    return_lane(search, lane);
}

/* Walks groups base .. base+count-1 of the order. */
static void walk(Search *search, int base, int count, SearchWalkMode mode)
{
    search->base = base;
    search->walks = g_new0(SearchWalk, (gsize)MAX(1, count));
    for (int i = 0; i < count; i++) {
        search->walks[i].first.least_ps = INT64_MAX;
        search->walks[i].misses = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        search->walks[i].mode = mode;
        if (mode == SEARCH_WALK_ALL)
            search->walks[i].survivors = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    }
    search_parallel(count, search->jobs, walk_one, search);
    search_team_share_walks(search->options->team, search->walks, search->order + base, count, search->space);
}

static void clear_walks(Search *search, int count)
{
    for (int i = 0; i < count; i++) {
        g_array_free(search->walks[i].misses, TRUE);
        if (search->walks[i].survivors != NULL)
            g_array_free(search->walks[i].survivors, TRUE);
    }
    g_free(search->walks);
}

/* The most promising point of each group, of them the `SEEDS` most promising. */
static GArray *find_seeds(Search *search, bool sharded)
{
    const SearchLimit none = search->limit;
    const int groups = search->space->group_count;
    GArray *seeds = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    for (int base = 0; base < groups; base += WALK_BATCH) {
        const int count = MIN(WALK_BATCH, groups - base);
        if (search->group_ps[search->order[base]] > search->limit.step_ps || over(search))
            break;
        walk(search, base, count, sharded ? SEARCH_WALK_FIRST : SEARCH_WALK_UNSHARDED);
        for (int i = 0; i < count; i++)
            if (search->walks[i].first.least_ps < INT64_MAX)
                g_array_append_val(seeds, search->walks[i].first);
        clear_walks(search, count);
        g_array_sort(seeds, search_candidate_compare);
        if (seeds->len >= SEEDS) {
            const SearchCandidate *last = &g_array_index(seeds, SearchCandidate, SEEDS - 1);
            search->limit = (SearchLimit){last->least_ps, last->id};
            g_array_set_size(seeds, SEEDS);
        }
    }
    search->limit = none;
    return seeds;
}

/* A first limit. The bounds of sharded weights promise too much to begin with. */
static void seed(Search *search)
{
    GArray *seeds = find_seeds(search, false);
    if (seeds->len == 0) {
        g_array_free(seeds, TRUE);
        seeds = find_seeds(search, true);
    }
    SearchId ids[RUN_BATCH];
    guint at = 0;
    for (int n = 1; n > 0 && !over(search);) {
        n = choose_next(search, seeds, &at, ids, MIN(RUN_BATCH, SEED_RUNS));
        simulate(search, ids, n);
    }
    g_array_free(seeds, TRUE);
}

static void merge_walks(Search *search, int count, GArray *survivors)
{
    SearchResult *result = search->result;
    for (int i = 0; i < count; i++) {
        const SearchWalk *one = &search->walks[i];
        result->points += one->points;
        result->evaluated += one->evaluated;
        for (int kind = 0; kind < SEARCH_BOUND_COUNT; kind++)
            result->pruned[kind] += one->pruned[kind];
        g_array_append_vals(survivors, one->survivors->data, one->survivors->len);
        g_array_append_vals(search->misses, one->misses->data, one->misses->len);
    }
    g_array_sort(search->misses, search_miss_compare);
    if (search->misses->len > 4096)
        g_array_set_size(search->misses, 4096);
}

/* Points of groups base and later of the order. */
static void leave_groups(Search *search, int base)
{
    for (int i = base; i < search->space->group_count; i++) {
        const int group = search->order[i];
        const int64_t points = search_group_count(search->space, &search->space->groups[group]);
        search->result->points += points;
        if (points > 0)
            leave_open(search, points, MIN(search->group_ps[group], search->pairs_ps[group]));
    }
}

static void search_all_groups(Search *search, GArray *survivors)
{
    const int groups = search->space->group_count;
    int count = 0, batch = FIRST_BATCH;
    for (int base = 0; base < groups; base += count, batch = MIN(2 * batch, WALK_BATCH)) {
        if (over(search)) {
            leave_groups(search, base);
            return;
        }
        count = MIN(batch, groups - base);
        walk(search, base, count, SEARCH_WALK_ALL);
        GArray *fresh = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        merge_walks(search, count, fresh);
        clear_walks(search, count);
        g_array_sort(fresh, search_candidate_compare);
        SearchId ids[EARLY_RUNS];
        guint at = 0;
        simulate(search, ids, choose_next(search, fresh, &at, ids, EARLY_RUNS));
        g_array_append_vals(survivors, fresh->data, fresh->len);
        g_array_free(fresh, TRUE);
        tell(search, TABLES_SHARE + WALK_SHARE * (base + count) / groups);
    }
}

/* The certificate's account of what the bounds let through. */
static void judge_survivors(Search *search, const GArray *survivors, guint until)
{
    SearchResult *result = search->result;
    g_autoptr(GHashTable) steps = g_hash_table_new(id_hash, id_equal);
    for (guint i = 0; i < search->runs->len; i++) {
        SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        g_hash_table_insert(steps, &run->id, run);
    }
    result->seeds = result->simulated;
    for (guint i = 0; i < survivors->len; i++) {
        const SearchCandidate *candidate = &g_array_index(survivors, SearchCandidate, i);
        SearchLoose *loose = &result->loose[candidate->kind];
        loose->survivors++;
        if (g_hash_table_contains(search->known, &candidate->id)) {
            const SearchRun *run = g_hash_table_lookup(steps, &candidate->id);
            result->seeds--;
            loose->simulated++;
            loose->below_frac += run != NULL ? 1 - (double)candidate->least_ps / (double)run->step_ps : 0;
        } else if (i >= until && !search_beyond(&search->limit, candidate->least_ps, candidate->id)) {
            leave_open(search, 1, candidate->least_ps);
        } else {
            result->pruned[candidate->kind]++;
        }
    }
}

/* Runs what is left, most promising first, until the bounds rule out the rest. */
static void run_survivors(Search *search, GArray *survivors)
{
    SearchResult *result = search->result;
    SearchId ids[RUN_BATCH];
    guint at = 0;
    g_array_sort(survivors, search_candidate_compare);
    result->survivors = survivors->len;
    while (!over(search)) {
        const int count = choose_next(search, survivors, &at, ids, RUN_BATCH);
        if (count == 0)
            break;
        simulate(search, ids, count);
        tell(search, TABLES_SHARE + WALK_SHARE + (1 - TABLES_SHARE - WALK_SHARE) * at / survivors->len);
    }
    judge_survivors(search, survivors, at);
}

static void add_id(GArray *ids, SearchId id)
{
    g_array_append_val(ids, id);
}

static void run_everything(Search *search)
{
    SearchSpace *space = search->space;
    g_autofree SpecRecompute *extents = g_new(SpecRecompute, (gsize)space->spec->model.layers + 16);
    GArray *ids = g_array_new(FALSE, FALSE, sizeof(SearchId));
    for (int g = 0; g < space->group_count; g++) {
        const SearchGroup *group = &space->groups[g];
        int policies = 0;
        g_free(search_policies(space, group, &policies));
        for (int d = 0; d < group->deals->count; d++) {
            if (!search_deal_valid(space, group, &group->deals->deal[d]))
                continue;
            const int count = search_extents(space, &group->deals->deal[d], extents);
            for (int e = 0; e < count; e++)
                for (int i = 0; i < policies; i++)
                    add_id(ids, (SearchId){g, (int16_t)d, (int16_t)e, i});
        }
    }
    search->result->points = ids->len;
    for (guint at = 0; at < ids->len; at += RUN_BATCH) {
        simulate(search, &g_array_index(ids, SearchId, at), (int)MIN(RUN_BATCH, ids->len - at));
        tell(search, (double)at / ids->len);
        if (over(search)) {
            const int64_t left = (int64_t)ids->len - MIN((int64_t)ids->len, (int64_t)at + RUN_BATCH);
            if (left > 0)
                leave_open(search, left, 0);
            break;
        }
    }
    g_array_free(ids, TRUE);
}

/* --- the answer --- */

static void find_pareto(const Search *search, GArray *pareto)
{
    double least_bytes = G_MAXDOUBLE;
    for (guint i = 0; i < search->runs->len; i++) { /* fastest first */
        const SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        if (!run->fits || run->reserved_bytes >= least_bytes)
            continue;
        least_bytes = run->reserved_bytes;
        g_array_append_vals(pareto, run, 1);
    }
}

/* Runs that did not fit, and the nearest that the memory bound ruled out, which are simulated to know by how much. */
static void find_misses(Search *search)
{
    SearchResult *result = search->result;
    const GArray *best = result->best;
    const int64_t limit_ps = best->len > 0 ? g_array_index(best, SearchRun, 0).step_ps : INT64_MAX;
    SearchId ids[MISSES_RUN];
    int count = 0;
    for (guint i = 0; i < search->misses->len && count < MISSES_RUN; i++) {
        const SearchCandidate *miss = &g_array_index(search->misses, SearchCandidate, i);
        if (miss->least_ps <= limit_ps && !g_hash_table_contains(search->known, &miss->id))
            ids[count++] = miss->id;
    }
    const int64_t simulated = result->simulated;
    simulate(search, ids, count);
    result->simulated = simulated; /* they are counted where the memory bound left them out */
    for (guint i = 0; i < search->runs->len && (int)result->misses->len < MISSES_SHOWN; i++) {
        const SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        if (!run->fits && run->step_ps <= limit_ps)
            g_array_append_vals(result->misses, run, 1);
    }
}

static void find_sensitivity(Search *search)
{
    static const char *const names[SEARCH_SENSITIVITIES] = {"NVLink", "NIC", "HBM", "FLOP/s"};
    SearchResult *result = search->result;
    g_autofree Spec *spec = g_new(Spec, 1);
    for (int i = 0; i < SEARCH_SENSITIVITIES; i++) {
        SearchRun run = {0};
        search_point_spec(search->space, g_array_index(result->best, SearchRun, 0).id, spec);
        SpecCluster *cluster = &spec->cluster;
        cluster->scale_up_bytes_per_s *= i == 0 ? 1.1 : 1;
        cluster->scale_out_bytes_per_s_per_gpu *= i == 1 ? 1.1 : 1;
        cluster->accelerator.memory_bytes_per_s *= i == 2 ? 1.1 : 1;
        for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
            cluster->accelerator.peak_flops_per_s[dtype] *= i == 3 ? 1.1 : 1;
        result->sensitivity[i].what = names[i];
        if (search_simulate_spec(spec, search->capacity_bytes, &run))
            result->sensitivity[i].step_ps = run.step_ps;
    }
}

static void answer(Search *search)
{
    SearchResult *result = search->result;
    search_find_families(result, search->runs, search->top);
    for (guint i = 0; i < search->runs->len && (int)i < search->top; i++) {
        const SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        if (run->fits)
            g_array_append_vals(result->best, run, 1);
    }
    find_pareto(search, result->pareto);
    if (result->best->len == 0 || !search->options->best_only)
        find_misses(search);
    if (result->best->len > 0 && !search->options->best_only)
        find_sensitivity(search);
    /* Proved: every point was simulated, or has a bound beyond the last of the best. */
    result->proved = result->open == 0;
    if (result->proved)
        return;
    result->least_open_ps = search->least_open_ps;
    const int64_t best_ps = result->best->len > 0 ? g_array_index(result->best, SearchRun, 0).step_ps : 0;
    result->gap_frac =
        best_ps > 0 ? MAX(0, (double)(best_ps - result->least_open_ps) / (double)best_ps) : NAN;
}

static void prepare(Search *search)
{
    const int groups = search->space->group_count;
    const SearchTeam *team = search->options->team;
    search->tables = search_tables_new(search->space);
    for (int from = 0; from < search->tables->count; from += TABLES_BATCH) {
        search_tables_fill(search->tables, from, TABLES_BATCH, search->jobs, team != NULL ? team->rank : 0,
                           team != NULL ? team->ranks : 1);
        tell(search, TABLES_SHARE * from / search->tables->count);
    }
    search->group_ps = g_new(int64_t, (gsize)MAX(1, groups));
    search->pairs_ps = g_new(int64_t, (gsize)MAX(1, groups));
    search->order = g_new(int, (gsize)MAX(1, groups));
    search_parallel(groups, search->jobs, bound_one, search);
    search_team_share_bounds(team, search->group_ps, search->space->groups, groups);
    search_team_share_bounds(team, search->pairs_ps, search->space->groups, groups);
    for (int i = 0; i < groups; i++)
        search->order[i] = i;
    g_qsort_with_data(search->order, groups, sizeof(int), compare_groups, search);
}

static void clear(Search *search)
{
    for (guint i = 0; i < search->lanes->len; i++)
        search_lane_free(g_ptr_array_index(search->lanes, i));
    g_ptr_array_free(search->lanes, TRUE);
    search_tables_free(search->tables);
    g_free(search->group_ps);
    g_free(search->pairs_ps);
    g_free(search->order);
    g_array_free(search->runs, TRUE);
    g_array_free(search->misses, TRUE);
    g_hash_table_destroy(search->known);
    g_timer_destroy(search->timer);
    g_mutex_clear(&search->mutex);
}

static GArray *runs_new(void)
{
    return g_array_new(FALSE, FALSE, sizeof(SearchRun));
}

bool search_run(const Spec *spec, const SearchOptions *options, SearchResult *ret_result, GError **error)
{
    if (!sim_step_supports(spec, error))
        return false;
    if (!search_supports(spec, error) || !search_limits_affordable(spec, error))
        return false;
    SearchResult result = {
        .best = runs_new(), .pareto = runs_new(), .misses = runs_new(), .families = runs_new()};
    Search search = {.options = options, .result = &result, .runs = runs_new(), .timer = g_timer_new()};
    search.space = result.space = search_space_new(spec);
    search.jobs = result.jobs = options->jobs > 0 ? options->jobs : search_cores();
    search.least_open_ps = INT64_MAX;
    result.processes = options->team != NULL ? options->team->ranks : 1;
    search.top = options->top > 0 ? options->top : spec->search.top > 0 ? spec->search.top : 5;
    search.capacity_bytes = search_limits_capacity_bytes(spec, NULL);
    search.limit = (SearchLimit){INT64_MAX, {G_MAXINT32, G_MAXINT16, G_MAXINT16, G_MAXINT32}};
    search.known = g_hash_table_new_full(id_hash, id_equal, g_free, NULL);
    search.misses = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    search.lanes = g_ptr_array_new();
    g_mutex_init(&search.mutex);
    if (options->exhaustive) {
        run_everything(&search);
    } else {
        GArray *survivors = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        prepare(&search);
        seed(&search);
        search_all_groups(&search, survivors);
        run_survivors(&search, survivors);
        g_array_free(survivors, TRUE);
    }
    answer(&search);
    result.seconds = g_timer_elapsed(search.timer, NULL);
    tell(&search, 1);
    const bool some = search.runs->len > 0 || result.open > 0;
    clear(&search);
    if (some) {
        *ret_result = result;
        return true;
    }
    g_autofree char *limits = search_limits_words(result.space), *why = search_why_empty(spec);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                "no assignment of the \"auto\" fields is valid: %" G_GINT64_FORMAT
                " points in the space%s; %s",
                (gint64)result.points, limits, why);
    search_result_clear(&result);
    return false;
}
