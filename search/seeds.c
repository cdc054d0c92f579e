/* search/seeds.c - good points within the first second, before the tables of a large space are filled.
 *
 * Begins at plain groups, one for each tensor and pipeline degree, and goes from the best of them to the best of its
 * neighbours, which differ in one choice, until none is better. A group counts by its most promising point: few points
 * are simulated. Which groups are met does not depend on threads or time. Nothing is proved here; what is found sets the
 * first limit of the search.   Tested: unit/search/test_search_anytime.c, bench/bench_search.c
 */
#include "search/search_internal.h"

enum { STEPS = 12, RUNS_A_STEP = 4, START_RUNS = 8 };

/* Choices of a group, the number of pipeline ranks and tensor ranks first. */
enum {
    TENSOR,
    PIPELINE,
    SEQUENCE,
    CONTEXT,
    EXPERT,
    EXPERT_TENSOR,
    MICRO_BATCH,
    ATTENTION,
    PRECISION,
    DISPATCHER,
    ORDER,
    OFFLOADED,
    SCHEME,
    OVERLAP,
    CHOICES
};

typedef struct Choices {
    int of[CHOICES];
} Choices;

static Choices choices_of(const SearchGroup *group)
{
    return (Choices){{[TENSOR] = group->tensor,
                      [PIPELINE] = group->pipeline,
                      [SEQUENCE] = group->sequence_parallel,
                      [CONTEXT] = group->context,
                      [EXPERT] = group->expert,
                      [EXPERT_TENSOR] = group->expert_tensor,
                      [MICRO_BATCH] = group->micro_batch,
                      [ATTENTION] = group->attention,
                      [PRECISION] = group->precision,
                      [DISPATCHER] = group->dispatcher,
                      [ORDER] = group->order,
                      [OFFLOADED] = group->offloaded,
                      [SCHEME] = group->scheme,
                      [OVERLAP] = (int)group->overlap}};
}

/* Choices that one other drags along: sequence parallelism and the slices of experts follow the tensor degree, overlap
 * needs what it hides, a dispatcher needs ranks to carry to; and pipeline ranks become tensor ranks. */
static bool goes_along(int a, int b)
{
    switch (a) {
    case TENSOR:
        return b == PIPELINE || b == SEQUENCE || b == EXPERT_TENSOR;
    case SEQUENCE:
        return b == OVERLAP;
    case EXPERT:
        return b == EXPERT_TENSOR || b == DISPATCHER || b == OVERLAP;
    default:
        return false;
    }
}

static bool is_neighbour(const Choices *a, const Choices *b)
{
    int differ[2], count = 0;
    for (int i = 0; i < CHOICES; i++) {
        if (a->of[i] == b->of[i])
            continue;
        if (count == 2)
            return false;
        differ[count++] = i;
    }
    return count == 1 || (count == 2 && goes_along(differ[0], differ[1]));
}

typedef struct Seeder {
    Search *search;
    GArray
        *best; /* SearchCandidate: the most promising point of each group that was walked, in order of time */
    bool *walked; /* [groups] */
    SearchWalkMode mode;
} Seeder;

/* Walks the groups of `list` that were not. */
static void look_at(Seeder *seeder, const GArray *list)
{
    Search *search = seeder->search;
    g_autofree int *groups = g_new(int, (gsize)MAX(1, list->len));
    int count = 0;
    for (guint i = 0; i < list->len; i++) {
        const int group = g_array_index(list, int, i);
        if (!seeder->walked[group])
            groups[count++] = group;
        seeder->walked[group] = true;
    }
    const SearchLimit limit = search->limit;
    search->limit = (SearchLimit){INT64_MAX, {G_MAXINT32, G_MAXINT16, G_MAXINT16, G_MAXINT32}};
    search_walk_batch(search, groups, count, seeder->mode, false);
    search->limit = limit;
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
    const Choices own = choices_of(&space->groups[group]);
    GArray *list = g_array_new(FALSE, FALSE, sizeof(int));
    for (int i = 0; i < space->group_count; i++) {
        const Choices other = choices_of(&space->groups[i]);
        if (is_neighbour(&own, &other))
            g_array_append_val(list, i);
    }
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
    g_array_free(starts, TRUE);
}
