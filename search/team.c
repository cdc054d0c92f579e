/* search/team.c - see team.h. Processes of a team run the same program, so structs travel as they lie in memory. */
#include "search/team.h"

#include <string.h>

typedef struct Reader {
    const guint8 *at, *end;
} Reader;

static void take(Reader *reader, void *ret_bytes, gsize count)
{
    g_assert((gsize)(reader->end - reader->at) >= count);
    if (count > 0)
        memcpy(ret_bytes, reader->at, count);
    reader->at += count;
}

static void put(GByteArray *bytes, const void *data, gsize count)
{
    g_byte_array_append(bytes, data, (guint)count);
}

static void put_list(GByteArray *bytes, const GArray *list)
{
    const guint count = list != NULL ? list->len : 0;
    put(bytes, &count, sizeof count);
    if (count > 0)
        put(bytes, list->data, count * sizeof(SearchCandidate));
}

static void take_list(Reader *reader, GArray *list)
{
    guint count = 0;
    take(reader, &count, sizeof count);
    if (list == NULL)
        return;
    g_array_set_size(list, count);
    take(reader, list->data, count * sizeof(SearchCandidate));
}

typedef struct Exchange {
    const OrrTeam *team;
    GByteArray **all;
    Reader *readers;
} Exchange;

/* Exchanges `mine`, which it frees, and gives a reader of every process's bytes for close_all(). */
static Exchange exchange(const OrrTeam *team, GByteArray *mine)
{
    Exchange one = {
        .team = team, .all = g_new0(GByteArray *, team->ranks), .readers = g_new0(Reader, team->ranks)};
    for (int r = 0; r < team->ranks; r++)
        one.all[r] = g_byte_array_new();
    team->exchange(team->data, mine, one.all);
    for (int r = 0; r < team->ranks; r++)
        one.readers[r] = (Reader){one.all[r]->data, one.all[r]->data + one.all[r]->len};
    g_byte_array_free(mine, TRUE);
    return one;
}

static void close_all(Exchange *one)
{
    for (int r = 0; r < one->team->ranks; r++) {
        g_assert(one->readers[r].at == one->readers[r].end);
        g_byte_array_free(one->all[r], TRUE);
    }
    g_free(one->all);
    g_free(one->readers);
}

void search_team_share_bounds(const OrrTeam *team, int64_t *bounds, const SearchGroup *groups, int count)
{
    if (team == NULL)
        return;
    GByteArray *mine = g_byte_array_new();
    for (int i = 0; i < count; i++)
        if (search_team_mine(team, groups[i].costs))
            put(mine, &bounds[i], sizeof bounds[i]);
    Exchange one = exchange(team, mine);
    for (int i = 0; i < count; i++)
        take(&one.readers[groups[i].costs % team->ranks], &bounds[i], sizeof bounds[i]);
    close_all(&one);
}

void search_team_share_walks(const OrrTeam *team, SearchWalk *walks, const int *groups, int count,
                             const SearchSpace *space)
{
    if (team == NULL)
        return;
    GByteArray *mine = g_byte_array_new();
    for (int i = 0; i < count; i++) {
        if (!search_team_mine(team, space->groups[groups[i]].costs))
            continue;
        put(mine, &walks[i], sizeof walks[i]);
        put_list(mine, walks[i].survivors);
        put_list(mine, walks[i].misses);
    }
    Exchange one = exchange(team, mine);
    for (int i = 0; i < count; i++) {
        Reader *reader = &one.readers[space->groups[groups[i]].costs % team->ranks];
        const SearchWalk own = walks[i]; /* its lists */
        take(reader, &walks[i], sizeof walks[i]);
        walks[i].survivors = own.survivors;
        walks[i].misses = own.misses;
        take_list(reader, own.survivors);
        take_list(reader, own.misses);
    }
    close_all(&one);
}

void search_team_share_runs(const OrrTeam *team, SearchRun *runs, bool *ran, int count)
{
    if (team == NULL)
        return;
    GByteArray *mine = g_byte_array_new();
    for (int i = 0; i < count; i++) {
        if (!search_team_mine(team, i))
            continue;
        put(mine, &runs[i], sizeof runs[i]);
        put(mine, &ran[i], sizeof ran[i]);
    }
    Exchange one = exchange(team, mine);
    for (int i = 0; i < count; i++) {
        take(&one.readers[i % team->ranks], &runs[i], sizeof runs[i]);
        take(&one.readers[i % team->ranks], &ran[i], sizeof ran[i]);
    }
    close_all(&one);
}

bool search_team_agree(const OrrTeam *team, bool word)
{
    if (team == NULL)
        return word;
    GByteArray *mine = g_byte_array_new();
    put(mine, &word, sizeof word);
    Exchange one = exchange(team, mine);
    for (int r = team->ranks - 1; r >= 0; r--)
        take(&one.readers[r], &word, sizeof word);
    close_all(&one);
    return word;
}
