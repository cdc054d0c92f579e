/* base/crew.c - see crew.h. Tested: unit/base/test_crew.c, unit/search/test_search_anytime.c, cli/test_cli_anytime.c */
#include "base/crew.h"

#include <glib.h>

typedef struct Crew {
    int count;
    gint next; /* atomic */
    const OrrStop *stop;
    OrrCrewWork work;
    void *data;
} Crew;

static gpointer take_turns(gpointer data)
{
    Crew *crew = data;
    for (bool first = true;; first = false) {
        if (!first && orr_stop_asked(crew->stop))
            return NULL;
        const int index = g_atomic_int_add(&crew->next, 1);
        if (index >= crew->count)
            return NULL;
        crew->work(index, crew->data);
    }
}

int orr_crew(int count, int threads, const OrrStop *stop, OrrCrewWork work, void *data)
{
    Crew crew = {.count = count, .stop = stop, .work = work, .data = data};
    const int wanted = threads > 0 ? threads : orr_crew_cores();
    const int helpers = MAX(0, MIN(wanted, count) - 1);
    g_autofree GThread **team = g_new(GThread *, (gsize)MAX(1, helpers));
    int made = 0; /* where threads are short, fewer do the same work */
    while (made < helpers && (team[made] = g_thread_try_new("crew", take_turns, &crew, NULL)) != NULL)
        made++;
    take_turns(&crew);
    while (made > 0)
        g_thread_join(team[--made]);
    return MIN(count, g_atomic_int_get(&crew.next));
}

int orr_crew_cores(void)
{
    return (int)g_get_num_processors();
}
