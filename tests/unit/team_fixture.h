/* tests/unit/team_fixture.h - a team whose processes are threads of this one, and whose exchange is shared memory. */
#ifndef ORR_TESTS_TEAM_FIXTURE_H
#define ORR_TESTS_TEAM_FIXTURE_H

#include "base/team.h"

enum { FIXTURE_RANKS = 4 };

/* All bring their bytes, all take them away, and only then the next exchange begins. */
typedef struct FixtureTable {
    GMutex mutex;
    GCond cond;
    int ranks, arrived, left;
    const GByteArray *brought[FIXTURE_RANKS];
} FixtureTable;

typedef struct FixtureSeat {
    FixtureTable *table;
    OrrTeam team;
    const void *given; /* to the work ... */
    void *result;      /* ... and what it leaves */
} FixtureSeat;

static void fixture_exchange(void *data, const GByteArray *mine, GByteArray **all)
{
    FixtureSeat *seat = data;
    FixtureTable *table = seat->table;
    g_mutex_lock(&table->mutex);
    while (table->left > 0)
        g_cond_wait(&table->cond, &table->mutex);
    table->brought[seat->team.rank] = mine;
    table->arrived++;
    if (table->arrived == table->ranks) {
        table->left = table->ranks;
        g_cond_broadcast(&table->cond);
    }
    while (table->left == 0)
        g_cond_wait(&table->cond, &table->mutex);
    for (int r = 0; r < table->ranks; r++)
        g_byte_array_append(all[r], table->brought[r]->data, table->brought[r]->len);
    if (--table->left == 0)
        table->arrived = 0;
    g_cond_broadcast(&table->cond);
    while (table->left > 0) /* what was brought stays until all have it */
        g_cond_wait(&table->cond, &table->mutex);
    g_mutex_unlock(&table->mutex);
}

/* `work` (of a FixtureSeat) on `ranks` processes; process r's seat has results[r]. */
static inline void fixture_team(int ranks, GThreadFunc work, const void *given, void *const *results)
{
    FixtureTable table = {.ranks = ranks};
    FixtureSeat seats[FIXTURE_RANKS];
    GThread *threads[FIXTURE_RANKS];
    g_mutex_init(&table.mutex);
    g_cond_init(&table.cond);
    for (int r = 0; r < ranks; r++) {
        seats[r] = (FixtureSeat){.table = &table, .given = given, .result = results[r]};
        seats[r].team = (OrrTeam){.rank = r, .ranks = ranks, .exchange = fixture_exchange, .data = &seats[r]};
        threads[r] = g_thread_new("rank", work, &seats[r]);
    }
    for (int r = 0; r < ranks; r++)
        g_thread_join(threads[r]);
    g_mutex_clear(&table.mutex);
    g_cond_clear(&table.cond);
}

#endif
