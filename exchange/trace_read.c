/* exchange/trace_read.c - the ranks of a folder, and their collectives side by side. See trace.h. */
#include <string.h>

#include "exchange/trace.h"

#define PS_PER_US 1000000

enum { MOST_RANKS = 1024 };

static bool is_trace_name(const char *name)
{
    static const char *const ends[] = {".json", ".json.gz", ".jsonl", ".csv", ".csv.gz"};
    for (gsize i = 0; i < G_N_ELEMENTS(ends); i++)
        if (g_str_has_suffix(name, ends[i]))
            return true;
    return false;
}

static int by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Paths of a folder's traces, by name. NULL with an error. */
static GPtrArray *list_folder(const char *path, GError **error)
{
    GError *cause = NULL;
    g_autoptr(GDir) folder = g_dir_open(path, 0, &cause);
    if (folder == NULL) {
        orr_fail(error, ORR_ERROR_IO, "%s: cannot read the folder: %s", path, cause->message);
        g_error_free(cause);
        return NULL;
    }
    GPtrArray *files = g_ptr_array_new_with_free_func(g_free);
    for (const char *name = g_dir_read_name(folder); name != NULL; name = g_dir_read_name(folder))
        if (is_trace_name(name))
            g_ptr_array_add(files, g_build_filename(path, name, NULL));
    g_ptr_array_sort(files, by_text);
    if (files->len > 0 && files->len <= MOST_RANKS)
        return files;
    orr_fail(error, ORR_ERROR_INPUT,
             files->len == 0 ? "%s: holds no traces; they end in .json, .jsonl or .csv, or with .gz behind it"
                             : "%s: holds more than 1024 traces; give a folder of fewer ranks",
             path);
    g_ptr_array_free(files, TRUE);
    return NULL;
}

static void free_rank(void *rank)
{
    trace_rank_free(rank);
}

static int by_rank(gconstpointer a, gconstpointer b)
{
    const TraceRank *left = *(TraceRank *const *)a, *right = *(TraceRank *const *)b;
    if (left->rank != right->rank)
        return left->rank < right->rank ? -1 : 1;
    return strcmp(left->path, right->path);
}

/* All on the clock of the first. */
static bool share_clock(GPtrArray *ranks, GError **error)
{
    const TraceRank *first = ranks->pdata[0];
    for (guint i = 1; i < ranks->len; i++) {
        TraceRank *rank = ranks->pdata[i];
        const int64_t shift_us = rank->base_us - first->base_us;
        if (shift_us > (int64_t)4e12 || shift_us < -(int64_t)4e12)
            return orr_fail(error, ORR_ERROR_INPUT, "%s: its clock is weeks away from that of %s: %s",
                            rank->path, first->path, "these are not ranks of one run");
        const int64_t shift_ps = shift_us * PS_PER_US;
        for (guint k = 0; k < rank->kernels->len; k++) {
            TraceKernel *kernel = &g_array_index(rank->kernels, TraceKernel, k);
            kernel->begin_ps += shift_ps;
            kernel->launch_ps += kernel->launch_ps != TRACE_NO_LAUNCH ? shift_ps : 0;
        }
        for (guint k = 0; k < rank->steps->len; k++) {
            TraceStep *step = &g_array_index(rank->steps, TraceStep, k);
            step->begin_ps += shift_ps;
            step->end_ps += shift_ps;
        }
        rank->base_us = first->base_us;
    }
    return true;
}

/* In the order of their ranks, where all say theirs. */
static bool order_ranks(GPtrArray *ranks, GError **error)
{
    for (guint i = 0; i < ranks->len; i++)
        if (((TraceRank *)ranks->pdata[i])->rank < 0)
            return true;
    g_ptr_array_sort(ranks, by_rank);
    for (guint i = 1; i < ranks->len; i++) {
        const TraceRank *a = ranks->pdata[i - 1], *b = ranks->pdata[i];
        if (a->rank == b->rank)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "%s and %s are both of rank %d; keep one recording of each rank in the folder",
                            a->path, b->path, a->rank);
    }
    return true;
}

GPtrArray *trace_read(const char *path, const TraceTable *table, GError **error)
{
    const bool folder = g_file_test(path, G_FILE_TEST_IS_DIR);
    GPtrArray *files = folder ? list_folder(path, error) : NULL;
    GPtrArray *ranks = g_ptr_array_new_with_free_func(free_rank);
    bool ok = !folder || files != NULL;
    for (guint i = 0; ok && i < (folder ? files->len : 1); i++) {
        TraceRank *rank = trace_rank_read(folder ? files->pdata[i] : path, table, error);
        ok = rank != NULL;
        if (ok)
            g_ptr_array_add(ranks, rank);
    }
    if (files != NULL)
        g_ptr_array_free(files, TRUE);
    if (ok && order_ranks(ranks, error) && share_clock(ranks, error)) {
        trace_meet(ranks);
        return ranks;
    }
    g_ptr_array_free(ranks, TRUE);
    return NULL;
}

/* --- collectives of several ranks --- */

/* The n-th collective of a kind in a process group. */
typedef struct Meeting {
    uint32_t group;
    int kind, place; /* place: from 0 */
} Meeting;

typedef struct Members {
    Meeting meeting;    /* first: the key */
    GPtrArray *kernels; /* TraceKernel, borrowed: one of each rank */
} Members;

static guint meeting_hash(gconstpointer key)
{
    const Meeting *meeting = key;
    return (meeting->group * 31 + (guint)meeting->kind) * 65599 + (guint)meeting->place;
}

static gboolean meeting_equal(gconstpointer a, gconstpointer b)
{
    const Meeting *left = a, *right = b;
    return left->group == right->group && left->kind == right->kind && left->place == right->place;
}

static void members_free(void *item)
{
    Members *members = item;
    g_ptr_array_free(members->kernels, TRUE);
    g_free(members);
}

/* The members' kernels run at one time, or they are not one collective: then nothing is known. */
static bool meet_one(const Members *members)
{
    int64_t latest_ps = INT64_MIN;
    if (members->kernels->len < 2)
        return false;
    for (guint i = 0; i < members->kernels->len; i++)
        latest_ps = MAX(latest_ps, ((const TraceKernel *)members->kernels->pdata[i])->begin_ps);
    for (guint i = 0; i < members->kernels->len; i++) {
        const TraceKernel *kernel = members->kernels->pdata[i];
        if (latest_ps - kernel->begin_ps > kernel->dur_ps)
            return false;
    }
    for (guint i = 0; i < members->kernels->len; i++) {
        TraceKernel *kernel = members->kernels->pdata[i];
        kernel->wait_ps = latest_ps - kernel->begin_ps;
    }
    return true;
}

static void add_rank(GHashTable *meetings, TraceRank *rank)
{
    g_autoptr(GHashTable) places = g_hash_table_new_full(meeting_hash, meeting_equal, g_free, NULL);
    for (guint i = 0; i < rank->kernels->len; i++) {
        TraceKernel *kernel = &g_array_index(rank->kernels, TraceKernel, i);
        const TraceClass kind = trace_kernel_class(rank, kernel);
        if (!trace_is_communication(kind) || kind == TRACE_SEND_RECEIVE ||
            trace_kernel_name(rank, kernel)->waits)
            continue;
        Meeting meeting = {kernel->group, (int)kind, 0};
        const int place = GPOINTER_TO_INT(g_hash_table_lookup(places, &meeting));
        g_hash_table_replace(places, g_memdup2(&meeting, sizeof meeting), GINT_TO_POINTER(place + 1));
        meeting.place = place;
        Members *members = g_hash_table_lookup(meetings, &meeting);
        if (members == NULL) {
            members = g_new0(Members, 1);
            members->meeting = meeting;
            members->kernels = g_ptr_array_new();
            g_hash_table_insert(meetings, &members->meeting, members);
        }
        g_ptr_array_add(members->kernels, kernel);
    }
}

int64_t trace_meet(const GPtrArray *ranks)
{
    int64_t met = 0;
    if (ranks->len < 2)
        return 0;
    g_autoptr(GHashTable) meetings = g_hash_table_new_full(meeting_hash, meeting_equal, NULL, members_free);
    for (guint i = 0; i < ranks->len; i++)
        add_rank(meetings, ranks->pdata[i]);
    GHashTableIter iter;
    gpointer value = NULL;
    g_hash_table_iter_init(&iter, meetings);
    while (g_hash_table_iter_next(&iter, NULL, &value))
        met += meet_one(value);
    return met;
}
