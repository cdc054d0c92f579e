/* search/seeds.c - good points within the first second, before the tables of a large space are filled.
 *
 * Begins at plain groups, one for each tensor and pipeline degree, and goes from the best of them to the best of its
 * neighbours, which differ in one choice, until none is better. A group counts by its most promising point: few points
 * are simulated. Bounds rank points of one schedule well and those of two schedules badly, so large spaces are then
 * climbed once more with a list for each schedule. Which groups are met does not depend on threads or time. Nothing is
 * proved here; what is found sets the first limit of the search.   Tested: unit/search/test_search_anytime.c, bench/bench_search.c
 */
#include <string.h>

#include "search/axes.h"
#include "search/search_internal.h"

enum { STEPS = 12, RUNS_A_STEP = 4, START_RUNS = 8 };

/* Schedule by schedule. */
enum {
    MANY_TABLES = 4096, /* with fewer, filling them takes no longer than these rounds */
    SCHEDULES = SPEC_SCHEDULE_FILE,
    ROUNDS = 5,
    SCHEDULES_KEPT = 3, /* after the first round */
    GROUPS_CLOSER = 4,  /* replayed in a round */
    RUNS_A_SCHEDULE = 2
};

/* What groups may differ in: the grouped axes that no other decides. */
typedef struct Choices {
    int count;
    const SearchAxis *axis[SEARCH_AXES_MOST];
    bool along[SEARCH_AXES_MOST]
              [SEARCH_AXES_MOST]; /* whether the second may change together with the first */
} Choices;

static bool goes_along(const SearchAxis *a, const SearchAxis *b)
{
    for (int i = 0; i < SEARCH_AXES_ALONG && a->along[i] != NULL; i++)
        if (strcmp(a->along[i], b->key) == 0)
            return true;
    return false;
}

static void list_choices(Choices *choices)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    choices->count = 0;
    for (int i = 0; i < count; i++)
        if (axes[i].grouped && !axes[i].derived)
            choices->axis[choices->count++] = &axes[i];
    for (int a = 0; a < choices->count; a++)
        for (int b = 0; b < choices->count; b++)
            choices->along[a][b] = goes_along(choices->axis[a], choices->axis[b]) ||
                                   goes_along(choices->axis[b], choices->axis[a]);
}

static bool is_neighbour(const Choices *choices, const SearchGroup *a, const SearchGroup *b)
{
    int differ[2], count = 0;
    for (int i = 0; i < choices->count; i++) {
        if (search_axis_of_group(choices->axis[i], a) == search_axis_of_group(choices->axis[i], b))
            continue;
        if (count == 2)
            return false;
        differ[count++] = i;
    }
    return count == 1 || (count == 2 && choices->along[differ[0]][differ[1]]);
}

typedef struct Seeder {
    Search *search;
    GArray
        *best; /* SearchCandidate: the most promising point of each group that was walked, in order of time */
    bool *walked; /* [groups] */
    SearchWalkMode mode;
} Seeder;

/* The groups of `list` that were not walked yet are now; gives their number. */
static int unwalked(const GArray *list, bool *walked, int *ret_groups)
{
    int count = 0;
    for (guint i = 0; i < list->len; i++) {
        const int group = g_array_index(list, int, i);
        if (!walked[group])
            ret_groups[count++] = group;
        walked[group] = true;
    }
    return count;
}

/* Into search->walks; what cannot be faster than the best so far is of no use here. */
static void walk_below_best(Search *search, const int *groups, int count, SearchWalkMode mode)
{
    const SearchLimit limit = search->limit;
    const SearchRun *best = search->found ? &g_array_index(search->runs, SearchRun, 0) : NULL;
    search->limit = (SearchLimit){INT64_MAX, {G_MAXINT32, G_MAXINT16, G_MAXINT16, G_MAXINT32}};
    if (best != NULL)
        search->limit = (SearchLimit){best->step_ps, best->id};
    search_walk_batch(search, groups, count, mode, false);
    search->limit = limit;
}

static void look_at(Seeder *seeder, const GArray *list)
{
    Search *search = seeder->search;
    g_autofree int *groups = g_new(int, (gsize)MAX(1, list->len));
    const int count = unwalked(list, seeder->walked, groups);
    walk_below_best(search, groups, count, seeder->mode);
    for (int i = 0; i < count; i++)
        if (search->walks[i].first.least_ps < INT64_MAX)
            g_array_append_val(seeder->best, search->walks[i].first);
    search_clear_walks(search, count);
    g_array_sort(seeder->best, search_candidate_compare);
}

/* Simulates the most promising points that were not. */
static void run_some(Seeder *seeder, int most)
{
    SearchId ids[START_RUNS];
    guint at = 0;
    const int count = search_choose_next(seeder->search, seeder->best, &at, ids, most);
    search_simulate_batch(seeder->search, ids, count);
}

/* Whether `a` is plainer than `b`, both with the same tensor and pipeline degrees. */
static bool is_plainer(const SearchGroup *a, const SearchGroup *b)
{
    const int order[][2] = {{a->context, b->context},
                            {a->offloaded, b->offloaded},
                            {a->scheme, b->scheme},
                            {a->order, b->order},
                            {a->precision, b->precision},
                            {a->micro_batch, b->micro_batch},
                            {a->expert_tensor, b->expert_tensor},
                            {-a->sequence_parallel, -b->sequence_parallel},
                            {-a->expert, -b->expert},
                            {-(int)a->overlap, -(int)b->overlap},
                            {-a->attention, -b->attention},
                            {a->dispatcher, b->dispatcher}};
    for (gsize i = 0; i < G_N_ELEMENTS(order); i++)
        if (order[i][0] != order[i][1])
            return order[i][0] < order[i][1];
    return false;
}

/* The plainest group of each tensor and pipeline degree. */
static GArray *plain_groups(const SearchSpace *space)
{
    GArray *list = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < space->group_count; i++) {
        const SearchGroup *group = &space->groups[i];
        guint at = 0;
        while (at < list->len) {
            const SearchGroup *other = &space->groups[g_array_index(list, int, at)];
            if (other->tensor == group->tensor && other->pipeline == group->pipeline)
                break;
            at++;
        }
        if (at == list->len)
            g_array_append_val(list, i);
        else if (is_plainer(group, &space->groups[g_array_index(list, int, at)]))
            g_array_index(list, int, at) = i;
    }
    return list;
}

static GArray *neighbours(const SearchSpace *space, int group)
{
    Choices choices;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(int));
    list_choices(&choices);
    for (int i = 0; i < space->group_count; i++)
        if (is_neighbour(&choices, &space->groups[group], &space->groups[i]))
            g_array_append_val(list, i);
    return list;
}

/* The fastest run that fits, else the most promising point; -1: neither. */
static int centre(const Seeder *seeder)
{
    const GArray *runs = seeder->search->runs;
    if (seeder->search->found)
        return g_array_index(runs, SearchRun, 0).id.group;
    return seeder->best->len > 0 ? g_array_index(seeder->best, SearchCandidate, 0).id.group : -1;
}

static void climb(Seeder *seeder)
{
    Search *search = seeder->search;
    g_autoptr(GHashTable) seen = g_hash_table_new(g_direct_hash, g_direct_equal);
    for (int step = 0; step < STEPS && !search_over(search); step++) {
        const int here = centre(seeder);
        if (here < 0 || g_hash_table_contains(seen, GINT_TO_POINTER(here)))
            return;
        g_hash_table_add(seen, GINT_TO_POINTER(here));
        GArray *list = neighbours(search->space, here);
        look_at(seeder, list);
        g_array_free(list, TRUE);
        run_some(seeder, RUNS_A_STEP);
    }
}

/* --- schedule by schedule --- */

/* What is known of each schedule: bounds of one say little about another. */
typedef struct Lanes {
    Search *search;
    unsigned left;            /* bits of schedules */
    GArray *cheap[SCHEDULES]; /* SearchCandidate: the most promising point of each group, by bounds alone */
    GArray *best[SCHEDULES];  /* the same of groups that were looked at closer, by replays */
    bool *walked;             /* [groups] */
} Lanes;

static int schedule_of(const SearchSpace *space, SearchId id)
{
    return (int)space->groups[id.group].partitions->partition[id.partition].schedule;
}

/* Walks `groups` [count] for some schedules; what is found goes to their lists. */
static void walk_by_schedule(Search *search, const int *groups, int count, unsigned schedules,
                             SearchWalkMode mode, GArray *const *lists)
{
    search->schedules = schedules;
    walk_below_best(search, groups, count, mode);
    search->schedules = 0;
    for (int i = 0; i < count; i++) {
        const GArray *found = search->walks[i].survivors;
        for (guint j = 0; j < found->len; j++) {
            const SearchCandidate *candidate = &g_array_index(found, SearchCandidate, j);
            g_array_append_val(lists[schedule_of(search->space, candidate->id)], *candidate);
        }
    }
    search_clear_walks(search, count);
    for (int s = 0; s < SCHEDULES; s++)
        g_array_sort(lists[s], search_candidate_compare);
}

/* Replays the most promising groups of a schedule, which leave its first list. */
static void look_closer(Lanes *lanes, int schedule)
{
    GArray *cheap = lanes->cheap[schedule];
    int groups[GROUPS_CLOSER];
    const int count = MIN(GROUPS_CLOSER, (int)cheap->len);
    for (int i = 0; i < count; i++)
        groups[i] = g_array_index(cheap, SearchCandidate, i).id.group;
    if (count > 0)
        g_array_remove_range(cheap, 0, (guint)count);
    walk_by_schedule(lanes->search, groups, count, 1u << schedule, SEARCH_WALK_REPLAYED, lanes->best);
}

static void run_by_schedule(Lanes *lanes)
{
    Search *search = lanes->search;
    SearchId ids[SCHEDULES * RUNS_A_SCHEDULE];
    int count = 0;
    for (int s = 0; s < SCHEDULES; s++) {
        guint at = 0;
        if ((lanes->left & 1u << s) == 0)
            continue;
        look_closer(lanes, s);
        count += search_choose_next(search, lanes->best[s], &at, ids + count, RUNS_A_SCHEDULE);
    }
    search_simulate_batch(search, ids, count);
}

/* Keeps the schedules whose runs are the fastest, and lists the neighbours of these runs. */
static GArray *keep_fastest(Lanes *lanes)
{
    const Search *search = lanes->search;
    GArray *list = g_array_new(FALSE, FALSE, sizeof(int));
    unsigned kept = 0;
    int count = 0;
    for (guint i = 0; i < search->runs->len && count < SCHEDULES_KEPT; i++) {
        const SearchRun *run = &g_array_index(search->runs, SearchRun, i);
        const unsigned schedule = 1u << schedule_of(search->space, run->id);
        if (!run->fits || (kept & schedule) != 0 || (lanes->left & schedule) == 0)
            continue;
        GArray *near = neighbours(search->space, run->id.group);
        g_array_append_val(list, run->id.group);
        g_array_append_vals(list, near->data, near->len);
        g_array_free(near, TRUE);
        kept |= schedule;
        count++;
    }
    lanes->left = kept;
    return list;
}

static void climb_by_schedule(Search *search, const GArray *starts)
{
    Lanes lanes = {.search = search, .left = ~0u, .walked = g_new0(bool, (gsize)search->space->group_count)};
    for (int s = 0; s < SCHEDULES; s++) {
        lanes.cheap[s] = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
        lanes.best[s] = g_array_new(FALSE, FALSE, sizeof(SearchCandidate));
    }
    for (int round = 0; round < ROUNDS && !search_over(search); round++) {
        GArray *list = keep_fastest(&lanes);
        if (round == 0) {
            lanes.left = ~0u;
            g_array_append_vals(list, starts->data, starts->len);
        }
        g_autofree int *groups = g_new(int, list->len);
        const int count = unwalked(list, lanes.walked, groups);
        walk_by_schedule(search, groups, count, lanes.left, SEARCH_WALK_UNSHARDED, lanes.cheap);
        run_by_schedule(&lanes);
        g_array_free(list, TRUE);
    }
    for (int s = 0; s < SCHEDULES; s++) {
        g_array_free(lanes.cheap[s], TRUE);
        g_array_free(lanes.best[s], TRUE);
    }
    g_free(lanes.walked);
}

/* Bounds of sharded weights promise too much to begin with: they are left out where anything else fits. */
void search_seed(Search *search)
{
    static const SearchWalkMode MODES[] = {SEARCH_WALK_UNSHARDED, SEARCH_WALK_FIRST};
    GArray *starts = plain_groups(search->space);
    for (gsize i = 0; i < G_N_ELEMENTS(MODES) && !search->found && !search_over(search); i++) {
        Seeder seeder = {.search = search,
                         .best = g_array_new(FALSE, FALSE, sizeof(SearchCandidate)),
                         .walked = g_new0(bool, (gsize)MAX(1, search->space->group_count)),
                         .mode = MODES[i]};
        look_at(&seeder, starts);
        run_some(&seeder, START_RUNS);
        climb(&seeder);
        g_array_free(seeder.best, TRUE);
        g_free(seeder.walked);
    }
    if (search->found && search->tables->count >= MANY_TABLES && !search_over(search))
        climb_by_schedule(search, starts);
    g_array_free(starts, TRUE);
}
