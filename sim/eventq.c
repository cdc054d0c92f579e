/* sim/eventq.c - heap of distinct instants, a first-in first-out list of events at each. */
#include "sim/eventq.h"

#include <glib.h>

#define NONE (-1)
/* Children of a heap entry: four of 16 bytes are one cache line. */
#define ARITY 4

typedef struct {
    int32_t next, prev; /* in the instant's list */
    int32_t instant;    /* NONE: not in the queue */
} Event;

typedef struct {
    int64_t time_ps;
    int32_t first, last; /* events; NONE: empty */
    int32_t hash_next;   /* also links free instants */
} Instant;

typedef struct {
    int64_t time_ps;
    int32_t instant;
} HeapEntry;

struct SimEventq {
    Event *events;
    Instant *instants;
    HeapEntry *heap;
    int32_t *heap_index; /* of each instant; apart, for every sift writes them */
    int32_t *hash;       /* first instant of each chain */
    int hash_shift;
    int32_t heap_count;
    int32_t free_instant;
};

SimEventq *sim_eventq_new(OrrArena *arena, int32_t capacity)
{
    g_assert(capacity >= 0 && capacity < INT32_MAX / 2);
    SimEventq *q = ORR_ARENA_NEW(arena, SimEventq, 1);
    /* One more instant than events: the one being emptied stays until the next pop. */
    int32_t instants = capacity + 1;
    int bits = 4;
    while (bits < 30 && ((int32_t)1 << bits) < instants)
        bits++;
    q->events = ORR_ARENA_NEW(arena, Event, capacity);
    q->instants = ORR_ARENA_NEW(arena, Instant, instants);
    q->heap = ORR_ARENA_NEW(arena, HeapEntry, instants);
    q->heap_index = ORR_ARENA_NEW(arena, int32_t, instants);
    q->hash = ORR_ARENA_NEW(arena, int32_t, (int32_t)1 << bits);
    q->hash_shift = 64 - bits;
    for (int32_t i = 0; i < capacity; i++)
        q->events[i].instant = NONE;
    for (int32_t i = 0; i < instants; i++)
        q->instants[i].hash_next = i + 1 < instants ? i + 1 : NONE;
    for (int32_t i = 0; i < (int32_t)1 << bits; i++)
        q->hash[i] = NONE;
    q->free_instant = 0;
    return q;
}

/* Fibonacci hashing: times are multiples of common periods, so the low bits alone would collide. */
static int32_t *chain_of(SimEventq *q, int64_t time_ps)
{
    return &q->hash[((uint64_t)time_ps * UINT64_C(0x9E3779B97F4A7C15)) >> q->hash_shift];
}

static void heap_put(SimEventq *q, int32_t index, HeapEntry entry)
{
    q->heap[index] = entry;
    q->heap_index[entry.instant] = index;
}

static void heap_sift_up(SimEventq *q, int32_t index, HeapEntry entry)
{
    while (index > 0) {
        int32_t parent = (index - 1) / ARITY;
        if (q->heap[parent].time_ps <= entry.time_ps)
            break;
        heap_put(q, index, q->heap[parent]);
        index = parent;
    }
    heap_put(q, index, entry);
}

static void heap_sift_down(SimEventq *q, int32_t index, HeapEntry entry)
{
    for (;;) {
        int32_t first = ARITY * index + 1, child = first;
        if (first >= q->heap_count)
            break;
        for (int32_t i = first + 1; i < MIN(first + ARITY, q->heap_count); i++) {
            if (q->heap[i].time_ps < q->heap[child].time_ps)
                child = i;
        }
        if (q->heap[child].time_ps >= entry.time_ps)
            break;
        heap_put(q, index, q->heap[child]);
        index = child;
    }
    heap_put(q, index, entry);
}

static void drop_instant(SimEventq *q, int32_t index)
{
    Instant *instant = &q->instants[index];
    int32_t *link = chain_of(q, instant->time_ps);
    while (*link != index)
        link = &q->instants[*link].hash_next;
    *link = instant->hash_next;
    instant->hash_next = q->free_instant;
    q->free_instant = index;

    int32_t hole = q->heap_index[index];
    HeapEntry moved = q->heap[--q->heap_count];
    if (hole == q->heap_count)
        return;
    if (hole > 0 && q->heap[(hole - 1) / ARITY].time_ps > moved.time_ps)
        heap_sift_up(q, hole, moved);
    else
        heap_sift_down(q, hole, moved);
}

static int32_t instant_at(SimEventq *q, int64_t time_ps)
{
    int32_t *chain = chain_of(q, time_ps);
    for (int32_t i = *chain; i != NONE; i = q->instants[i].hash_next) {
        if (q->instants[i].time_ps == time_ps)
            return i;
    }
    int32_t index = q->free_instant;
    g_assert(index != NONE);
    Instant *instant = &q->instants[index];
    q->free_instant = instant->hash_next;
    instant->time_ps = time_ps;
    instant->first = instant->last = NONE;
    instant->hash_next = *chain;
    *chain = index;
    heap_sift_up(q, q->heap_count++, (HeapEntry){.time_ps = time_ps, .instant = index});
    return index;
}

void sim_eventq_push(SimEventq *q, int32_t event, int64_t time_ps)
{
    Event *e = &q->events[event];
    g_assert(e->instant == NONE);
    e->instant = instant_at(q, time_ps);
    Instant *instant = &q->instants[e->instant];
    e->prev = instant->last;
    e->next = NONE;
    if (instant->last == NONE)
        instant->first = event;
    else
        q->events[instant->last].next = event;
    instant->last = event;
}

void sim_eventq_remove(SimEventq *q, int32_t event)
{
    Event *e = &q->events[event];
    if (e->instant == NONE)
        return;
    Instant *instant = &q->instants[e->instant];
    if (e->prev == NONE)
        instant->first = e->next;
    else
        q->events[e->prev].next = e->next;
    if (e->next == NONE)
        instant->last = e->prev;
    else
        q->events[e->next].prev = e->prev;
    if (instant->first == NONE)
        drop_instant(q, e->instant);
    e->instant = NONE;
}

/* Takes the first event of the earliest instant, which must have one. The instant stays, maybe empty: more
 * may be pushed at it. */
static int32_t take_first(SimEventq *q)
{
    Instant *instant = &q->instants[q->heap[0].instant];
    int32_t event = instant->first;
    Event *e = &q->events[event];
    instant->first = e->next;
    if (e->next == NONE)
        instant->last = NONE;
    else
        q->events[e->next].prev = NONE;
    e->instant = NONE;
    return event;
}

static bool drop_empty_instants(SimEventq *q)
{
    while (q->heap_count > 0 && q->instants[q->heap[0].instant].first == NONE)
        drop_instant(q, q->heap[0].instant);
    return q->heap_count > 0;
}

bool sim_eventq_pop(SimEventq *q, int64_t *ret_time_ps, int32_t *ret_event)
{
    if (!drop_empty_instants(q))
        return false;
    *ret_time_ps = q->heap[0].time_ps;
    *ret_event = take_first(q);
    return true;
}

bool sim_eventq_pop_at(SimEventq *q, int64_t time_ps, int32_t *ret_event)
{
    if (q->heap_count == 0 || q->heap[0].time_ps != time_ps || q->instants[q->heap[0].instant].first == NONE)
        return false;
    *ret_event = take_first(q);
    return true;
}
