/* search/search.c - see search.h. */
#include "base/crew.h"
#include "search/search_internal.h"

#include "search/late.h"
#include "search/limits.h"
#include "search/plain.h"
#include "step/step.h"

#include <math.h>

enum {
    FIRST_BATCH = 8, /* while the limit falls quickly; doubled each time */
    WALK_BATCH = 128,
    RUN_BATCH = 32,
    EARLY_RUNS = 16,
    TABLES_BATCH = 256,
    FRONT_POINTS = 20000, /* of a space whose front is proved without being asked for ... */
    FRONT_RUNS = 1000     /* ... unless it takes more of these */
};

/* Of the progress that is told. */
#define TABLES_SHARE 0.5
#define WALK_SHARE   0.3

static void tell(Search *search, double done_frac)
{
    const GArray *runs = search->result->best != NULL ? search->result->best : search->runs;
    const SearchRun *first = runs->len > 0 ? &g_array_index(runs, SearchRun, 0) : NULL;
    const SearchNews news = {done_frac, g_timer_elapsed(search->timer, NULL), search->result,
                             first != NULL && first->fits ? first : NULL};
    if (search->options->progress != NULL)
        search->options->progress(&news, search->options->progress_data);
}

static void bound_one(int index, void *data)
{
    Search *search = data;
    const SearchGroup *group = &search->space->groups[index];
    if (!search_team_mine(search->options->team, group->costs))
        return;
    search->group_ps[index] = search_bound_group(search->tables, group);
    search->pairs_ps[index] = search_bound_group_pairs(search->tables, group);
    if (search->busy_ps != NULL)
        search->busy_ps[index] = search_bound_busy(search->tables, group);
}

static int compare_groups(gconstpointer a, gconstpointer b, gpointer user)
{
    const Search *search = user;
    const int x = *(const int *)a, y = *(const int *)b;
    if (search->group_ps[x] != search->group_ps[y])
        return search->group_ps[x] < search->group_ps[y] ? -1 : 1;
    return x - y;
}

static void leave_group(Search *search, int group)
{
    const int64_t points = search_group_count(search->space, &search->space->groups[group]);
    search->result->points += points;
    if (points > 0)
        search_leave_open(search, points, MIN(search->group_ps[group], search->pairs_ps[group]));
}

/* Groups base and later of the order. */
static void leave_groups(Search *search, int base)
{
    for (int i = base; i < search->space->group_count; i++)
        leave_group(search, search->order[i]);
}

static void merge_walks(Search *search, const int *groups, int count, GArray *survivors)
{
    SearchResult *result = search->result;
    for (int i = 0; i < count; i++) {
        const SearchWalk *one = &search->walks[i];
        if (one->skipped) {
            leave_group(search, groups[i]);
            continue;
        }
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

static void search_all_groups(Search *search, GArray *survivors)
{
    const int groups = search->space->group_count;
    int count = 0, batch = FIRST_BATCH;
    for (int base = 0; base < groups; base += count, batch = MIN(2 * batch, WALK_BATCH)) {
        if (search_over(search)) {
            leave_groups(search, base);
            return;
        }
        count = MIN(batch, groups - base);
        search_walk_batch(search, search->order + base, count, SEARCH_WALK_ALL, true);
        GArray *fresh = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        merge_walks(search, search->order + base, count, fresh);
        search_clear_walks(search, count);
        g_array_sort(fresh, search_candidate_compare);
        SearchId ids[EARLY_RUNS];
        guint at = 0;
        search_simulate_batch(search, ids, search_choose_next(search, fresh, &at, ids, EARLY_RUNS));
        g_array_append_vals(survivors, fresh->data, fresh->len);
        g_array_free(fresh, TRUE);
        tell(search, TABLES_SHARE + WALK_SHARE * (base + count) / groups);
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
    while (!search_over(search)) {
        const int count = search_choose_next(search, survivors, &at, ids, RUN_BATCH);
        if (count == 0)
            break;
        search_simulate_batch(search, ids, count);
        tell(search, TABLES_SHARE + WALK_SHARE + (1 - TABLES_SHARE - WALK_SHARE) * at / survivors->len);
    }
    search_judge_survivors(search, survivors, at);
}

/* --- the front --- */

/* A walk through the space once more, for what is on the front of time and memory. */
typedef struct FrontWalk {
    Search search; /* of the same space and tables */
    SearchResult result;
    GArray *front; /* SearchRun */
    int64_t most;  /* runs; 0: any number */
} FrontWalk;

static bool is_tired(const FrontWalk *walk)
{
    return (walk->most > 0 && walk->result.simulated > walk->most) || search_over(&walk->search);
}

static bool is_beaten(const FrontWalk *walk, const SearchCandidate *candidate)
{
    return candidate->least_bytes >= search_front_bytes(walk->front, candidate->least_ps);
}

static int compare_bytes(const void *a, const void *b)
{
    const SearchCandidate *x = a, *y = b;
    if (x->least_bytes < y->least_bytes || x->least_bytes > y->least_bytes)
        return x->least_bytes < y->least_bytes ? -1 : 1;
    return search_candidate_compare(a, b);
}

/* Simulates the first `most` of the candidates that nothing beats yet; gives how many there were. */
static int run_unbeaten(FrontWalk *walk, const GArray *candidates, guint *at, int most)
{
    Search *search = &walk->search;
    SearchId ids[RUN_BATCH];
    int count = 0;
    for (; *at < candidates->len && count < most; (*at)++) {
        const SearchCandidate *candidate = &g_array_index(candidates, SearchCandidate, *at);
        if (!is_beaten(walk, candidate) && !g_hash_table_contains(search->known, &candidate->id))
            ids[count++] = candidate->id;
    }
    if (count == 0)
        return 0;
    g_array_set_size(search->runs, 0);
    search_simulate_batch(search, ids, count);
    g_array_append_vals(search->runs, walk->front->data, walk->front->len);
    g_array_set_size(walk->front, 0);
    search_keep_front(search->runs, walk->front);
    return count;
}

/* Points that the runs do not beat by their bounds; some of them run at once, the smallest and the fastest. */
static GArray *walk_front(FrontWalk *walk)
{
    Search *search = &walk->search;
    const int groups = search->space->group_count;
    GArray *open = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    for (int base = 0, count = 0, batch = FIRST_BATCH; base < groups;
         base += count, batch = MIN(2 * batch, WALK_BATCH)) {
        count = MIN(batch, groups - base);
        if (is_tired(walk)) {
            leave_groups(search, base);
            return open;
        }
        search_walk_batch(search, search->order + base, count, SEARCH_WALK_ALL, true);
        GArray *fresh = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        merge_walks(search, search->order + base, count, fresh);
        search_clear_walks(search, count);
        guint smallest = 0, fastest = 0;
        g_array_sort(fresh, compare_bytes);
        run_unbeaten(walk, fresh, &smallest, EARLY_RUNS / 2);
        g_array_sort(fresh, search_candidate_compare);
        run_unbeaten(walk, fresh, &fastest, EARLY_RUNS / 2);
        g_array_append_vals(open, fresh->data, fresh->len);
        g_array_free(fresh, TRUE);
    }
    return open;
}

/* A point is left out only where one that was simulated is no slower than its least time and no larger than its least
 * memory. `front` has what is known, and then all of it; gives whether the walk came to the end. */
static bool prove_front(Search *from, GArray *front)
{
    FrontWalk walk = {.search = *from, .front = front, .most = from->options->front ? 0 : FRONT_RUNS};
    Search *search = &walk.search;
    walk.result.improvements = g_array_new(FALSE, FALSE, sizeof(SearchImprovement));
    search->result = &walk.result;
    search->found = true; /* the time is over without anything new, too */
    search->goal = (SearchGoal){.kind = SEARCH_FOR_STEP};
    search->busy_ps = NULL;
    search->limit = (SearchLimit){INT64_MAX, {G_MAXINT32, G_MAXINT16, G_MAXINT16, G_MAXINT32}};
    search->top = G_MAXINT; /* no limit but the front */
    search->front = front;
    search->runs = g_array_new(FALSE, FALSE, sizeof(SearchRun)); /* of the batch at hand */
    search->misses = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    g_mutex_init(&search->mutex);
    GArray *open = walk_front(&walk);
    guint at = 0;
    g_array_sort(open, search_candidate_compare);
    bool going = true;
    while (going && !is_tired(&walk))
        going = run_unbeaten(&walk, open, &at, RUN_BATCH) > 0;
    from->result->pareto_simulated = walk.result.simulated;
    g_array_free(open, TRUE);
    g_array_free(search->runs, TRUE);
    g_array_free(search->misses, TRUE);
    g_array_free(walk.result.improvements, TRUE);
    g_mutex_clear(&search->mutex);
    return walk.result.open == 0 && !going;
}

/* The front of what was simulated; of all points where the space is small enough, or its front is asked for. */
static void find_front(Search *search)
{
    SearchResult *result = search->result;
    const SearchOptions *options = search->options;
    const bool wanted = !options->best_only && (options->front || result->points <= FRONT_POINTS) &&
                        search->space->spec->cluster.group_count == 0; /* GPUs of one size */
    search_keep_front(search->runs, result->pareto);
    if (result->open == 0)
        result->pareto_proved = options->exhaustive || (wanted && prove_front(search, result->pareto));
}

/* Points on their way to the simulator: a space may hold more than memory does. */
typedef struct Everything {
    Search *search;
    SearchId ids[RUN_BATCH];
    int count;
} Everything;

static void flush(Everything *all)
{
    SearchResult *result = all->search->result;
    search_simulate_batch(all->search, all->ids, all->count);
    all->count = 0;
    tell(all->search, (double)result->simulated / (double)MAX(1, result->points));
}

/* Every point of a partition; false when the time is over. */
static bool run_partition(Everything *all, SearchId id, int recomputes, int policies)
{
    for (int e = 0; e < recomputes; e++) {
        for (int i = 0; i < policies; i++) {
            all->ids[all->count++] = (SearchId){id.group, id.partition, (int16_t)e, i};
            if (all->count < RUN_BATCH)
                continue;
            flush(all);
            if (search_over(all->search))
                return false;
        }
    }
    return true;
}

static bool run_group(Everything *all, int index, SpecRecompute *recomputes)
{
    SearchSpace *space = all->search->space;
    const SearchGroup *group = &space->groups[index];
    int policies = 0;
    g_free(search_policies(space, group, &policies));
    for (int d = 0; d < group->partitions->count; d++) {
        const SearchPartition *partition = &group->partitions->partition[d];
        const SearchId id = {.group = index, .partition = (int16_t)d};
        if (search_partition_valid(space, group, partition) &&
            !run_partition(all, id, search_recomputes(space, partition, recomputes), policies))
            return false;
    }
    return true;
}

static void run_everything(Search *search)
{
    SearchSpace *space = search->space;
    SearchResult *result = search->result;
    g_autofree SpecRecompute *recomputes = g_new(SpecRecompute, (gsize)space->spec->model.layers + 16);
    Everything all = {.search = search};
    bool going = true;
    result->points = search_space_count(space);
    for (int g = 0; g < space->group_count && going; g++)
        going = run_group(&all, g, recomputes);
    if (going)
        flush(&all);
    const int64_t left = result->points - result->simulated;
    if (left > 0)
        search_leave_open(search, left, 0);
}

/* Tables and the bounds of groups; false when the time is over before. */
static bool prepare(Search *search)
{
    const int groups = search->space->group_count;
    const OrrTeam *team = search->options->team;
    search->group_ps = g_new0(int64_t, (gsize)MAX(1, groups));
    search->pairs_ps = g_new0(int64_t, (gsize)MAX(1, groups));
    search->order = g_new(int, (gsize)MAX(1, groups));
    int64_t *busy_ps = search->goal.working > 0 ? g_new0(int64_t, (gsize)MAX(1, groups)) : NULL;
    search->busy_ps = busy_ps;
    for (int i = 0; i < groups; i++)
        search->order[i] = i;
    for (int from = 0; from < search->tables->count; from += TABLES_BATCH) {
        search_tables_fill(search->tables, from, TABLES_BATCH, search->jobs, team != NULL ? team->rank : 0,
                           team != NULL ? team->ranks : 1);
        tell(search, TABLES_SHARE * from / search->tables->count);
        if (search_over(search))
            return false;
    }
    orr_crew(groups, search->jobs, NULL, bound_one, search);
    search_team_share_bounds(team, search->group_ps, search->space->groups, groups);
    search_team_share_bounds(team, search->pairs_ps, search->space->groups, groups);
    if (busy_ps != NULL)
        search_team_share_bounds(team, busy_ps, search->space->groups, groups);
    g_qsort_with_data(search->order, groups, sizeof(int), compare_groups, search);
    return true;
}

static void clear(Search *search)
{
    for (guint i = 0; i < search->workers->len; i++)
        search_worker_free(g_ptr_array_index(search->workers, i));
    g_ptr_array_free(search->workers, TRUE);
    search_tables_free(search->tables);
    g_free(search->group_ps);
    g_free(search->pairs_ps);
    g_free(search->busy_ps);
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
    result.improvements = g_array_new(FALSE, FALSE, sizeof(SearchImprovement));
    Search search = {.options = options, .result = &result, .runs = runs_new(), .timer = g_timer_new()};
    search.space = result.space = search_space_new(spec);
    result.by = options->by;
    search.goal = search_goal_of(options->by, search.space, options->assumed);
    search.most = INFINITY;
    search.jobs = result.jobs = options->jobs > 0 ? options->jobs : orr_crew_cores();
    search.least_open_ps = INT64_MAX;
    result.processes = options->team != NULL ? options->team->ranks : 1;
    search.top = options->top > 0 ? options->top : spec->search.top > 0 ? spec->search.top : 5;
    search.capacity_bytes = search_limits_capacity_bytes(spec, NULL);
    search.limit = (SearchLimit){INT64_MAX, {G_MAXINT32, G_MAXINT16, G_MAXINT16, G_MAXINT32}};
    search.known = g_hash_table_new_full(search_id_hash, search_id_equal, g_free, NULL);
    search.misses = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    search.workers = g_ptr_array_new();
    g_mutex_init(&search.mutex);
    if (options->exhaustive) {
        run_everything(&search);
    } else {
        GArray *survivors = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        search.tables = search_tables_new(search.space);
        search_seed(&search);
        if (prepare(&search))
            search_all_groups(&search, survivors);
        else
            leave_groups(&search, 0);
        run_survivors(&search, survivors);
        g_array_free(survivors, TRUE);
    }
    search_answer(&search);
    find_front(&search);
    tell(&search, 1); /* the best as the search saw it, before what slow GPUs and late input add */
    if (!options->ideal)
        search_settle(&result, spec);
    result.seconds = g_timer_elapsed(search.timer, NULL);
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
