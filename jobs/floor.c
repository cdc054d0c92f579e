/* jobs/floor.c - see floor.h. */
#include "jobs/floor.h"

#include <math.h>
#include <string.h>

#define EPSILON    1e-9
#define MOST_NODES 8192 /* of a pool */
#define TYPICAL    16   /* kinds of jobs, the most frequent ones, that fragments are counted for */

typedef struct Node {
    int pool, first, count; /* its GPUs */
    double fragments;
    bool chosen; /* for the job that is being placed */
} Node;

typedef struct Kind {
    int gpus;
    double share, frequency;
    bool none; /* looked for since a job last left, and no place found */
} Kind;

struct JobsFloor {
    const JobsTrace *trace;
    Node *nodes;
    int node_count;
    double *room;  /* [GPUs] free of each */
    int *node_of;  /* [GPUs] */
    int *sorted;   /* [GPUs] room to sort those of a node */
    GArray *kinds; /* the most frequent first */
    guint typical; /* of them */
    int *kind_of;  /* [jobs] */
    int **held;    /* [jobs] its GPUs */
};

static Kind *kind_at(const JobsFloor *floor, guint index)
{
    return &g_array_index(floor->kinds, Kind, index);
}

static const Job *job_at(const JobsFloor *floor, int index)
{
    return &g_array_index(floor->trace->jobs, Job, (guint)index);
}

/* GPUs of the node with room for `share`. */
static int with_room(const JobsFloor *floor, const Node *node, double share)
{
    int count = 0;
    for (int g = node->first; g < node->first + node->count; g++)
        count += floor->room[g] >= share - EPSILON;
    return count;
}

static double fragments_of(const JobsFloor *floor, const Node *node)
{
    double sum = 0;
    for (guint k = 0; k < floor->typical; k++) {
        const Kind *kind = kind_at(floor, k);
        const bool fits = with_room(floor, node, kind->share) >= MIN(kind->gpus, node->count);
        for (int g = node->first; g < node->first + node->count; g++)
            sum += kind->frequency * (fits && floor->room[g] >= kind->share - EPSILON ? 0 : floor->room[g]);
    }
    return sum;
}

static int node_size(const JobsPool *pool)
{
    return MAX(pool->node_gpus, (pool->gpus + MOST_NODES - 1) / MOST_NODES);
}

static void add_nodes(JobsFloor *floor)
{
    int gpus = 0, nodes = 0;
    for (int p = 0; p < floor->trace->pool_count; p++) {
        const JobsPool *pool = &floor->trace->pools[p];
        nodes += (pool->gpus - 1) / node_size(pool) + 1;
        gpus += pool->gpus;
    }
    floor->nodes = g_new0(Node, nodes);
    floor->room = g_new(double, gpus);
    floor->node_of = g_new(int, gpus);
    floor->sorted = g_new(int, gpus);
    for (int g = 0; g < gpus; g++)
        floor->room[g] = 1;
    for (int p = 0, first = 0; p < floor->trace->pool_count; p++) {
        const JobsPool *pool = &floor->trace->pools[p];
        for (int left = pool->gpus; left > 0; left -= node_size(pool)) {
            const int count = MIN(left, node_size(pool));
            for (int g = first; g < first + count; g++)
                floor->node_of[g] = floor->node_count;
            floor->nodes[floor->node_count++] = (Node){.pool = p, .first = first, .count = count};
            first += count;
        }
    }
}

static int by_frequency(gconstpointer a, gconstpointer b)
{
    const Kind *x = a, *y = b;
    return (x->frequency < y->frequency) - (x->frequency > y->frequency);
}

static char *name_of(int gpus, double share)
{
    return g_strdup_printf("%d %.17g", gpus, share);
}

static void add_kinds(JobsFloor *floor)
{
    const guint jobs = floor->trace->jobs->len;
    g_autoptr(GHashTable) places = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
    floor->kinds = g_array_new(FALSE, FALSE, sizeof(Kind));
    floor->kind_of = g_new(int, jobs);
    floor->held = g_new0(int *, jobs);
    for (guint i = 0; i < jobs; i++) {
        const Job *job = job_at(floor, (int)i);
        const Kind kind = {.gpus = job->gpus, .share = job->share};
        char *name = name_of(job->gpus, job->share);
        gpointer place = NULL;
        if (g_hash_table_lookup_extended(places, name, NULL, &place)) {
            g_free(name);
        } else {
            place = GUINT_TO_POINTER(floor->kinds->len);
            g_array_append_val(floor->kinds, kind);
            g_hash_table_insert(places, name, place);
        }
        kind_at(floor, GPOINTER_TO_UINT(place))->frequency += 1.0 / jobs;
    }
    g_array_sort(floor->kinds, by_frequency);
    floor->typical = MIN(floor->kinds->len, TYPICAL);
    for (guint k = 0; k < floor->kinds->len; k++)
        g_hash_table_insert(places, name_of(kind_at(floor, k)->gpus, kind_at(floor, k)->share),
                            GUINT_TO_POINTER(k));
    for (guint i = 0; i < jobs; i++) {
        g_autofree char *name = name_of(job_at(floor, (int)i)->gpus, job_at(floor, (int)i)->share);
        floor->kind_of[i] = GPOINTER_TO_INT(g_hash_table_lookup(places, name));
    }
}

JobsFloor *jobs_floor_new(const JobsTrace *trace)
{
    JobsFloor *floor = g_new0(JobsFloor, 1);
    floor->trace = trace;
    add_nodes(floor);
    add_kinds(floor);
    for (int n = 0; n < floor->node_count; n++)
        floor->nodes[n].fragments = fragments_of(floor, &floor->nodes[n]);
    return floor;
}

void jobs_floor_free(JobsFloor *floor)
{
    if (floor == NULL)
        return;
    for (guint i = 0; i < floor->trace->jobs->len; i++)
        g_free(floor->held[i]);
    g_array_free(floor->kinds, TRUE);
    g_free(floor->nodes);
    g_free(floor->room);
    g_free(floor->node_of);
    g_free(floor->sorted);
    g_free(floor->kind_of);
    g_free(floor->held);
    g_free(floor);
}

static int by_room(gconstpointer a, gconstpointer b, gpointer data)
{
    const JobsFloor *floor = data;
    const int x = *(const int *)a, y = *(const int *)b;
    const double first = floor->room[x], second = floor->room[y];
    return first != second ? (first > second) - (first < second) : (x > y) - (x < y);
}

/* Which `count` GPUs of the node: one is `alone`; of several those with least room that is enough. */
static void pick(JobsFloor *floor, const Node *node, int count, double share, int alone, int *gpus)
{
    int enough = 0;
    gpus[0] = alone;
    if (count == 1)
        return;
    for (int g = node->first; g < node->first + node->count; g++)
        if (floor->room[g] >= share - EPSILON)
            floor->sorted[enough++] = g;
    g_qsort_with_data(floor->sorted, enough, sizeof *floor->sorted, by_room, floor);
    memcpy(gpus, floor->sorted, sizeof *gpus * (gsize)count);
}

static void take(JobsFloor *floor, const int *gpus, int count, double share)
{
    for (int i = 0; i < count; i++)
        floor->room[gpus[i]] = fmax(0, floor->room[gpus[i]] - share);
}

static void give(JobsFloor *floor, const int *gpus, int count, double share)
{
    for (int i = 0; i < count; i++)
        floor->room[gpus[i]] = fmin(1, floor->room[gpus[i]] + share);
}

/* `count` GPUs on one node of the pool, into `gpus`; by how much fragments grow, INFINITY: no node has them. */
static double place_on_one(JobsFloor *floor, int pool, int count, double share, int *gpus)
{
    double least = INFINITY;
    int empty = 0; /* GPUs of a node without a job that was tried: others like it are as good */
    g_autofree int *tried = g_new(int, count);
    for (int n = 0; n < floor->node_count; n++) {
        const Node *node = &floor->nodes[n];
        if (node->pool != pool || node->chosen || with_room(floor, node, share) < count)
            continue;
        const bool free = with_room(floor, node, 1) == node->count;
        if (free && empty == node->count)
            continue;
        empty = free ? node->count : empty;
        for (int g = node->first; g < node->first + node->count; g++) {
            if (floor->room[g] < share - EPSILON || (g > node->first && floor->room[g] == floor->room[g - 1]))
                continue;
            pick(floor, node, count, share, g, tried);
            take(floor, tried, count, share);
            const double grows = fragments_of(floor, node) - node->fragments;
            give(floor, tried, count, share);
            if (grows < least - EPSILON) {
                least = grows;
                for (int i = 0; i < count; i++)
                    gpus[i] = tried[i];
            }
            if (count > 1)
                break;
        }
    }
    return least;
}

/* The same for any number: whole nodes first, and the rest on one. */
static double place(JobsFloor *floor, int pool, const Job *job, int *gpus)
{
    const int size = node_size(&floor->trace->pools[pool]), rest = job->gpus % size;
    int whole = job->gpus / size, got = 0;
    double grows = 0;
    if (job->gpus <= size)
        return place_on_one(floor, pool, job->gpus, job->share, gpus);
    for (int n = 0; n < floor->node_count && whole > 0; n++) {
        Node *node = &floor->nodes[n];
        if (node->pool != pool || node->count < size || with_room(floor, node, 1) < size)
            continue;
        node->chosen = true;
        whole--;
        grows -= node->fragments;
        for (int i = 0; i < size; i++)
            gpus[got++] = node->first + i;
    }
    if (whole > 0)
        grows = INFINITY;
    else if (rest > 0)
        grows += place_on_one(floor, pool, rest, job->share, gpus + got);
    for (int n = 0; n < floor->node_count; n++)
        floor->nodes[n].chosen = false;
    return grows;
}

/* `gpus`: those of a node in a row. */
static void recount(JobsFloor *floor, const int *gpus, int count)
{
    for (int i = 0; i < count; i++)
        if (i == 0 || floor->node_of[gpus[i]] != floor->node_of[gpus[i - 1]])
            floor->nodes[floor->node_of[gpus[i]]].fragments =
                fragments_of(floor, &floor->nodes[floor->node_of[gpus[i]]]);
}

int jobs_floor_take(JobsFloor *floor, int index)
{
    const Job *job = job_at(floor, index);
    Kind *kind = kind_at(floor, (guint)floor->kind_of[index]);
    bool anywhere = true;
    double least = INFINITY;
    int best = -1;
    if (kind->none)
        return -1;
    g_autofree int *gpus = g_new(int, job->gpus);
    int *held = g_new(int, job->gpus);
    for (int p = 0; p < floor->trace->pool_count; p++) {
        anywhere &= job->speed[p] > 0;
        const double grows = job->speed[p] > 0 && job->gpus <= floor->trace->pools[p].gpus
                                 ? place(floor, p, job, gpus)
                                 : (double)INFINITY;
        if (grows >= least)
            continue;
        least = grows;
        best = p;
        memcpy(held, gpus, sizeof *gpus * (gsize)job->gpus);
    }
    kind->none = best < 0 && anywhere;
    if (best < 0) {
        g_free(held);
        return -1;
    }
    take(floor, held, job->gpus, job->share);
    recount(floor, held, job->gpus);
    floor->held[index] = held;
    return best;
}

void jobs_floor_leave(JobsFloor *floor, int index)
{
    const Job *job = job_at(floor, index);
    int *held = floor->held[index];
    give(floor, held, job->gpus, job->share);
    recount(floor, held, job->gpus);
    floor->held[index] = NULL;
    g_free(held);
    for (guint k = 0; k < floor->kinds->len; k++)
        kind_at(floor, k)->none = false;
}

double jobs_floor_fragments(const JobsFloor *floor)
{
    double sum = 0;
    for (int n = 0; n < floor->node_count; n++)
        sum += floor->nodes[n].fragments;
    return sum;
}
