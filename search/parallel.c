/* search/parallel.c - see parallel.h. */
#include "search/parallel.h"

#include <glib.h>

typedef struct Share {
    int count;
    gint next;
    SearchWork work;
    void *data;
} Share;

static void take_turns(gpointer task, gpointer user)
{
    Share *share = user;
    (void)task;
    for (;;) {
        const int index = g_atomic_int_add(&share->next, 1);
        if (index >= share->count)
            return;
        share->work(index, share->data);
    }
}

void search_parallel(int count, int jobs, SearchWork work, void *data)
{
    Share share = {.count = count, .work = work, .data = data};
    GThreadPool *pool =
        jobs > 1 && count > 1 ? g_thread_pool_new(take_turns, &share, jobs - 1, FALSE, NULL) : NULL;
    for (int i = 1; pool != NULL && i < MIN(jobs, count); i++)
        g_thread_pool_push(pool, GINT_TO_POINTER(i), NULL);
    take_turns(NULL, &share);
    if (pool != NULL)
        g_thread_pool_free(pool, FALSE, TRUE);
}

int search_cores(void)
{
    return (int)g_get_num_processors();
}
