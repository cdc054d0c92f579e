/* search/orders.c - see orders.h. Tested: unit/search/test_search.c, whose answers depend on neither threads nor
 * room. */
#include "search/orders.h"

/* Limit of what is kept of orders, by one search. */
#define SHELF_BYTES ((size_t)512 << 20)

/* What is known of one shape of a schedule. */
typedef struct Entry {
    const SimSchedule *schedule;
    SimScheduleShape shape;
    OrrArena *arena; /* of the orders; NULL: not made yet, or no room */
    SimOrder *ranks;
    const SimOrderFacts *facts; /* in the space's own arena; NULL: not read off yet */
} Entry;

static guint entry_hash(gconstpointer key)
{
    const Entry *entry = key;
    uint64_t hash = (uint64_t)(guintptr)entry->schedule * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (uint64_t)entry->shape.ranks) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (uint64_t)entry->shape.chunks) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ (uint64_t)entry->shape.microbatches) * 0x9E3779B97F4A7C15u;
    return (guint)(hash >> 32);
}

static bool same_shape(const SimScheduleShape *a, const SimScheduleShape *b)
{
    return a->ranks == b->ranks && a->chunks == b->chunks && a->microbatches == b->microbatches;
}

static gboolean entry_equal(gconstpointer a, gconstpointer b)
{
    const Entry *x = a, *y = b;
    return x->schedule == y->schedule && same_shape(&x->shape, &y->shape);
}

static void entry_free(gpointer data)
{
    Entry *entry = data;
    if (entry->arena != NULL)
        orr_arena_free(entry->arena);
    g_free(entry);
}

GHashTable *search_shelf_new(void)
{
    return g_hash_table_new_full(entry_hash, entry_equal, entry_free, NULL);
}

/* With the space's mutex held. */
static Entry *entry_of(SearchSpace *space, const SimSchedule *schedule, const SimScheduleShape *shape)
{
    const Entry key = {.schedule = schedule, .shape = *shape};
    Entry *entry = g_hash_table_lookup(space->orders, &key);
    if (entry == NULL) {
        entry = g_new(Entry, 1);
        *entry = key;
        g_hash_table_add(space->orders, entry);
    }
    return entry;
}

static SimOrder *make_orders(const SimSchedule *schedule, const SimScheduleShape *shape, OrrArena *arena)
{
    SimOrder *ranks = ORR_ARENA_NEW(arena, SimOrder, shape->ranks);
    sim_schedule_orders(schedule, shape, arena, ranks);
    return ranks;
}

void search_orders_return(SearchOrders *orders)
{
    if (orders->own != NULL)
        orr_arena_free(orders->own);
    *orders = (SearchOrders){0};
}

/* Two threads may make the same; one of them is kept. */
void search_orders_borrow(SearchSpace *space, const SimSchedule *schedule, const SimScheduleShape *shape,
                          SearchOrders *orders)
{
    if (orders->schedule == schedule && same_shape(&orders->shape, shape))
        return;
    search_orders_return(orders);
    *orders = (SearchOrders){.schedule = schedule, .shape = *shape};
    g_mutex_lock(&space->mutex);
    orders->ranks = entry_of(space, schedule, shape)->ranks;
    g_mutex_unlock(&space->mutex);
    if (orders->ranks != NULL)
        return;
    OrrArena *arena = orr_arena_new();
    SimOrder *fresh = make_orders(schedule, shape, arena);
    g_mutex_lock(&space->mutex);
    Entry *entry = entry_of(space, schedule, shape);
    if (entry->ranks == NULL && space->orders_bytes < SHELF_BYTES) {
        entry->ranks = fresh;
        entry->arena = arena;
        space->orders_bytes += orr_arena_used_bytes(arena);
    }
    orders->ranks = entry->ranks;
    g_mutex_unlock(&space->mutex);
    if (orders->ranks == fresh)
        return;
    if (orders->ranks != NULL) {
        orr_arena_free(arena);
        return;
    }
    orders->ranks = fresh;
    orders->own = arena;
}

static const SimOrderFacts *known_facts(SearchSpace *space, const SimSchedule *schedule,
                                        const SimScheduleShape *shape)
{
    g_mutex_lock(&space->mutex);
    const SimOrderFacts *facts = entry_of(space, schedule, shape)->facts;
    g_mutex_unlock(&space->mutex);
    return facts;
}

/* Read off by one thread at a time, for all. */
const SimOrderFacts *search_facts(SearchSpace *space, const SimSchedule *schedule,
                                  const SimScheduleShape *shape)
{
    if (sim_schedule_needs_times(schedule))
        return NULL;
    const SimOrderFacts *facts = known_facts(space, schedule, shape);
    if (facts != NULL)
        return facts;
    g_mutex_lock(&space->facts_mutex);
    facts = known_facts(space, schedule, shape);
    if (facts == NULL) {
        facts = sim_order_facts(schedule, shape, space->facts_arena);
        g_mutex_lock(&space->mutex);
        entry_of(space, schedule, shape)->facts = facts;
        g_mutex_unlock(&space->mutex);
    }
    g_mutex_unlock(&space->facts_mutex);
    return facts;
}
