/* search/batch.c - bounding and simulating by the batch: on all threads, shared between processes, merged in order. */
#include <math.h>

#include "base/crew.h"
#include "search/late.h"
#include "search/search_internal.h"
#include "search/write_internal.h"

static SearchWorker *borrow_worker(Search *search)
{
    g_mutex_lock(&search->mutex);
    SearchWorker *worker = search->workers->len > 0
                               ? g_ptr_array_steal_index_fast(search->workers, search->workers->len - 1)
                               : NULL;
    g_mutex_unlock(&search->mutex);
    return worker != NULL ? worker : search_worker_new(search->space, search->tables);
}

static void return_worker(Search *search, SearchWorker *worker)
{
    g_mutex_lock(&search->mutex);
    g_ptr_array_add(search->workers, worker);
    g_mutex_unlock(&search->mutex);
}

/* The same on one thread: work that has not begun by then is skipped. */
static bool hurries(const Search *search)
{
    const SearchOptions *options = search->options;
    if (orr_stop_asked(&options->stop))
        return true;
    return options->max_seconds > 0 && search->found &&
           g_timer_elapsed(search->timer, NULL) > options->max_seconds;
}

bool search_over(const Search *search)
{
    const SearchOptions *options = search->options;
    return (options->max_seconds > 0 || options->stop.asked != NULL) &&
           search_team_agree(options->team, hurries(search));
}

void search_leave_open(Search *search, int64_t points, int64_t least_ps)
{
    search->result->open += points;
    search->least_open_ps = MIN(search->least_open_ps, least_ps);
}

static void simulate_one(int index, void *data)
{
    Search *search = data;
    if (!search_team_mine(search->options->team, index))
        return;
    search->batch[index].skipped = hurries(search);
    if (search->batch[index].skipped)
        return;
    search->ran[index] =
        search_simulate(search->space, search->ids[index], search->capacity_bytes, &search->batch[index]);
    if (search->ran[index] && search->goal.kind != SEARCH_FOR_STEP)
        search->batch[index].figure = search_run_figure(search, &search->batch[index]);
}

static int compare_runs(const void *a, const void *b)
{
    const SearchRun *x = a, *y = b;
    if (x->fits != y->fits)
        return x->fits ? -1 : 1;
    if (!x->fits && (x->short_bytes < y->short_bytes || x->short_bytes > y->short_bytes))
        return x->short_bytes < y->short_bytes ? -1 : 1;
    if (x->figure < y->figure || x->figure > y->figure)
        return x->figure < y->figure ? -1 : 1;
    if (x->step_ps != y->step_ps)
        return x->step_ps < y->step_ps ? -1 : 1;
    return search_id_compare(&x->id, &y->id);
}

guint search_id_hash(gconstpointer key)
{
    const SearchId *id = key;
    const uint64_t word =
        (uint64_t)id->group * 0x9E3779B97F4A7C15u ^ (uint64_t)id->partition * 0xC2B2AE3D27D4EB4Fu ^
        (uint64_t)id->recompute * 0x165667B19E3779F9u ^ (uint64_t)id->policy * 0xD6E8FEB86659FD93u;
    return (guint)(word >> 32);
}

gboolean search_id_equal(gconstpointer a, gconstpointer b)
{
    return search_id_compare(a, b) == 0;
}

/* Also keeps when the best was found, and those before it. */
static void keep_run(Search *search, const SearchRun *run)
{
    GArray *improvements = search->result->improvements;
    g_array_append_vals(search->runs, run, 1);
    search->found |= run->fits;
    const SearchImprovement *last =
        improvements->len > 0 ? &g_array_index(improvements, SearchImprovement, improvements->len - 1) : NULL;
    const bool by_step = search->goal.kind == SEARCH_FOR_STEP;
    if (!run->fits ||
        (last != NULL && (by_step ? run->step_ps >= last->step_ps : run->figure >= last->figure)))
        return;
    const SearchImprovement improvement = {g_timer_elapsed(search->timer, NULL), run->step_ps,
                                           search->result->simulated, run->figure};
    g_array_append_val(improvements, improvement);
}

/* Of equal figures each may come first: none is left out. */
static SearchLimit limit_of(const Search *search, int64_t busy_ps)
{
    return (SearchLimit){search_goal_longest_ps(&search->goal, search->most, busy_ps),
                         {G_MAXINT32, G_MAXINT16, G_MAXINT16, G_MAXINT32}};
}

/* The limit of a group's points: what its GPUs work at least leaves less of an energy for the rest of the step. */
static SearchLimit search_limit_of(const Search *search, int group)
{
    return search->busy_ps == NULL || isinf(search->most) ? search->limit
                                                          : limit_of(search, search->busy_ps[group]);
}

bool search_ruled_out(const Search *search, const SearchCandidate *candidate)
{
    const SearchLimit limit = search_limit_of(search, candidate->id.group);
    return search_beyond(&limit, candidate->least_ps, candidate->id);
}

/* Days without end are known to be none. */
double search_run_figure(const Search *search, const SearchRun *run)
{
    const SearchResult of = {.space = search->space, .assumed = search->options->assumed};
    SearchRun late = *run;
    if (search_is_late(search->space->spec))
        search_settle_run(&of, &late);
    const SearchCampaign campaign = search_campaign(&of, &late);
    const double days = campaign.effective_days > 0 ? campaign.effective_days : campaign.days;
    if (campaign.endless || !(days > 0))
        return INFINITY;
    return search->goal.kind == SEARCH_FOR_DAYS   ? days
           : search->goal.kind == SEARCH_FOR_COST ? campaign.usd
                                                  : campaign.kwh;
}

/* The last of the best `top` that fit. */
static void lower_limit(Search *search)
{
    GArray *runs = search->runs;
    g_array_sort(runs, compare_runs);
    if ((int)runs->len < search->top)
        return;
    const SearchRun *last = &g_array_index(runs, SearchRun, search->top - 1);
    if (!last->fits)
        return;
    search->most = last->figure;
    search->limit =
        search->goal.kind == SEARCH_FOR_STEP ? (SearchLimit){last->step_ps, last->id} : limit_of(search, 0);
}

void search_simulate_batch(Search *search, const SearchId *ids, int count)
{
    SearchResult *result = search->result;
    search->ids = ids;
    search->batch = g_new0(SearchRun, (gsize)MAX(1, count));
    search->ran = g_new0(bool, (gsize)MAX(1, count));
    orr_crew(count, search->jobs, NULL, simulate_one, search);
    search_team_share_runs(search->options->team, search->batch, search->ran, count);
    for (int i = 0; i < count; i++) {
        if (search->batch[i].skipped)
            continue;
        SearchId *id = g_new(SearchId, 1);
        *id = ids[i];
        g_hash_table_add(search->known, id);
        result->simulated++;
        if (search->ran[i])
            keep_run(search, &search->batch[i]);
        else
            result->refused++;
    }
    g_free(search->batch);
    g_free(search->ran);
    lower_limit(search);
}

int search_choose_next(const Search *search, const GArray *candidates, guint *at, SearchId *ret_ids, int most)
{
    int count = 0;
    for (; *at < candidates->len && count < most; (*at)++) {
        const SearchCandidate *candidate = &g_array_index(candidates, SearchCandidate, *at);
        if (search_beyond(&search->limit, candidate->least_ps, candidate->id) && candidate->short_bytes <= 0)
            break;
        if (search->busy_ps != NULL && search_ruled_out(search, candidate) && candidate->short_bytes <= 0)
            continue;
        if (!g_hash_table_contains(search->known, &candidate->id))
            ret_ids[count++] = candidate->id;
    }
    return count;
}

static void walk_one(int index, void *data)
{
    Search *search = data;
    SearchWalk *walk = &search->walks[index];
    const int group = search->walked[index];
    if (search->shared && !search_team_mine(search->options->team, search->space->groups[group].costs))
        return;
    walk->skipped = hurries(search);
    if (walk->skipped)
        return;
    SearchWorker *worker = borrow_worker(search);
    const SearchLimit limit = search_limit_of(search, group);
    search_walk_group(worker, group, &limit, search->capacity_bytes, walk);
    return_worker(search, worker);
}

void search_walk_batch(Search *search, const int *groups, int count, SearchWalkMode mode, bool shared)
{
    search->walked = groups;
    search->shared = shared;
    search->walks = g_new0(SearchWalk, (gsize)MAX(1, count));
    for (int i = 0; i < count; i++) {
        search->walks[i].first.least_ps = INT64_MAX;
        search->walks[i].misses = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        search->walks[i].mode = mode;
        search->walks[i].schedules = search->schedules;
        search->walks[i].front = search->front;
        if (mode == SEARCH_WALK_ALL || search->schedules != 0)
            search->walks[i].survivors = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    }
    orr_crew(count, search->jobs, NULL, walk_one, search);
    if (shared)
        search_team_share_walks(search->options->team, search->walks, groups, count, search->space);
}

void search_clear_walks(Search *search, int count)
{
    for (int i = 0; i < count; i++) {
        g_array_free(search->walks[i].misses, TRUE);
        if (search->walks[i].survivors != NULL)
            g_array_free(search->walks[i].survivors, TRUE);
    }
    g_free(search->walks);
}
