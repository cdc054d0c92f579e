/* search/space_count.c - how many points a space has, without walking them. */
#include <string.h>

#include "search/axes.h"
#include "search/space_parts.h"

/* All that the number of a group's points depends on, and the number. */
typedef struct Count {
    int key[SEARCH_AXES_MOST + 2]; /* as many for every group; the rest is 0 */
    int numbers;
    int64_t points;
} Count;

static guint count_hash(gconstpointer count)
{
    return search_ints_hash(((const Count *)count)->key, (gsize)((const Count *)count)->numbers);
}

static gboolean count_equal(gconstpointer a, gconstpointer b)
{
    return memcmp(((const Count *)a)->key, ((const Count *)b)->key, sizeof((const Count *)a)->key) == 0;
}

static int64_t count_points(SearchSpace *space, const SearchGroup *group)
{
    g_autofree SpecRecompute *recomputes = g_new(SpecRecompute, (gsize)space->spec->model.layers + 16);
    int policies = 0;
    int64_t total = 0;
    g_free(search_policies(space, group, &policies));
    for (int d = 0; d < group->partitions->count; d++)
        if (search_partition_valid(space, group, &group->partitions->partition[d]))
            total +=
                (int64_t)search_recomputes(space, &group->partitions->partition[d], recomputes) * policies;
    return total;
}

int64_t search_group_count(SearchSpace *space, const SearchGroup *group)
{
    Count count = {0};
    count.numbers = search_axes_key(group, SEARCH_KEY_COUNT, count.key);
    count.key[count.numbers++] = group->microbatches;
    count.key[count.numbers++] = search_is_alone(space->spec, group);
    g_mutex_lock(&space->mutex);
    const Count *known = g_hash_table_lookup(space->counts, &count);
    g_mutex_unlock(&space->mutex);
    if (known != NULL)
        return known->points;
    Count *fresh = g_memdup2(&count, sizeof count);
    const int64_t points = fresh->points = count_points(space, group);
    g_mutex_lock(&space->mutex);
    if (!g_hash_table_contains(space->counts, fresh))
        g_hash_table_add(space->counts, g_steal_pointer(&fresh));
    g_mutex_unlock(&space->mutex);
    g_free(fresh);
    return points;
}

int64_t search_space_count(SearchSpace *space)
{
    int64_t total = 0;
    for (const SearchGroup *group = space->groups; group < space->groups + space->group_count; group++)
        total += search_group_count(space, group);
    return total;
}

GHashTable *search_counts_new(void)
{
    return g_hash_table_new_full(count_hash, count_equal, g_free, NULL);
}
