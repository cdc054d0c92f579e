/* search/parallel.c - see parallel.h. Tested: unit/search/test_search_anytime.c, cli/test_cli_anytime.c */
#include "search/parallel.h"

#include <glib.h>

typedef struct Share {
    int count;
    gint next;
    SearchWork work;
    void *data;
} Share;

static gpointer take_turns(gpointer data)
{
    Share *share = data;
    for (;;) {
        const int index = g_atomic_int_add(&share->next, 1);
        if (index >= share->count)
            return NULL;
        share->work(index, share->data);
    }
}

/* The calling thread works too, so that the work is done even where no thread can be made. */
void search_parallel(int count, int jobs, SearchWork work, void *data)
{
    Share share = {.count = count, .work = work, .data = data};
    const int helpers = MAX(0, MIN(jobs, count) - 1);
    g_autofree GThread **threads = g_new(GThread *, (gsize)MAX(1, helpers));
    int made = 0;
    while (made < helpers && (threads[made] = g_thread_try_new("search", take_turns, &share, NULL)) != NULL)
        made++;
    take_turns(&share);
    while (made > 0)
        g_thread_join(threads[--made]);
}

int search_cores(void)
{
    return (int)g_get_num_processors();
}
