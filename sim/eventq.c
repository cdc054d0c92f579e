/* sim/eventq.c - a wheel of instants, a ring of events at each. */
#include "sim/eventq.h"

#include <glib.h>
#include <string.h>

#define NONE     (-1)
#define FOLLOWER (-2) /* of an instant that another event leads */

#define DIGIT_BITS  6
#define DIGITS      (1 << DIGIT_BITS)
#define LEVELS      11 /* 66 bits */
#define RECENT_BITS 8
#define NEAR_LEVEL  1 /* what is moved to it or below is popped soon */

typedef struct {
    int64_t time_ps;
    int32_t next, prev;           /* ring of the instant's events; NONE: not in the queue */
    int32_t slot_next, slot_prev; /* the leaders of a slot's instants; FOLLOWER */
} Event;

typedef struct {
    int32_t first, last;
} WheelSlot;

typedef struct {
    int64_t time_ps;
    int32_t leader; /* of the instant, when it was last seen */
} Recent;

struct SimEventq {
    Event *events;
    const unsigned char *items;
    size_t item_bytes;
    int32_t item_count;
    int64_t base_ps;           /* the present */
    uint32_t used_levels;      /* bits */
    uint64_t occupied[LEVELS]; /* bits of slots */
    WheelSlot slots[LEVELS][DIGITS];
    Recent recent[1 << RECENT_BITS];
};

SimEventq *sim_eventq_new(OrrArena *arena, int32_t capacity)
{
    g_assert(capacity >= 0 && capacity < INT32_MAX / 2);
    SimEventq *q = ORR_ARENA_NEW(arena, SimEventq, 1);
    q->events = ORR_ARENA_NEW(arena, Event, capacity);
    for (int32_t i = 0; i < capacity; i++)
        q->events[i].next = NONE;
    for (int i = 0; i < 1 << RECENT_BITS; i++)
        q->recent[i].time_ps = NONE;
    return q;
}

void sim_eventq_announce(SimEventq *q, const void *items, size_t item_bytes, int32_t count)
{
    q->items = items;
    q->item_bytes = item_bytes;
    q->item_count = count;
}

static inline void fetch(const SimEventq *q, int32_t event)
{
#if defined __GNUC__
    if (event < q->item_count)
        __builtin_prefetch(q->items + (size_t)event * q->item_bytes);
#else
    (void)q, (void)event;
#endif
}

static inline int lowest_bit(uint64_t bits)
{
#if defined __GNUC__
    return __builtin_ctzll(bits);
#else
    int at = 0;
    for (; !(bits & 1); bits >>= 1)
        at++;
    return at;
#endif
}

static inline int highest_bit(uint64_t bits)
{
#if defined __GNUC__
    return 63 - __builtin_clzll(bits);
#else
    int at = -1;
    for (; bits != 0; bits >>= 1)
        at++;
    return at;
#endif
}

static inline int level_of(const SimEventq *q, int64_t time_ps)
{
    return highest_bit((uint64_t)(time_ps ^ q->base_ps) | 1) / DIGIT_BITS;
}

static inline int digit_of(int64_t time_ps, int level)
{
    return (int)((uint64_t)time_ps >> (DIGIT_BITS * level)) & (DIGITS - 1);
}

/* Puts a leader at the end of the slot where its time belongs. */
static inline void link_leader(SimEventq *q, int32_t leader)
{
    Event *e = &q->events[leader];
    const int level = level_of(q, e->time_ps), digit = digit_of(e->time_ps, level);
    WheelSlot *slot = &q->slots[level][digit];
    const uint64_t bit = UINT64_C(1) << digit;
    e->slot_next = NONE;
    if (q->occupied[level] & bit) {
        e->slot_prev = slot->last;
        q->events[slot->last].slot_next = leader;
    } else {
        e->slot_prev = NONE;
        slot->first = leader;
        q->occupied[level] |= bit;
        q->used_levels |= 1u << level;
    }
    slot->last = leader;
    if (level <= NEAR_LEVEL)
        fetch(q, leader);
}

static inline void clear_slot(SimEventq *q, int level, int digit)
{
    q->occupied[level] &= ~(UINT64_C(1) << digit);
    if (q->occupied[level] == 0)
        q->used_levels &= ~(1u << level);
}

/* `heir`, another event of its ring or NONE, takes the place of a leader in its slot. */
static inline void replace_leader(SimEventq *q, Event *e, int32_t heir)
{
    const int level = level_of(q, e->time_ps), digit = digit_of(e->time_ps, level);
    WheelSlot *slot = &q->slots[level][digit];
    const int32_t before = e->slot_prev, after = e->slot_next;
    if (heir != NONE) {
        q->events[heir].slot_prev = before;
        q->events[heir].slot_next = after;
    }
    if (before == NONE)
        slot->first = heir != NONE ? heir : after;
    else
        q->events[before].slot_next = heir != NONE ? heir : after;
    if (after == NONE)
        slot->last = heir != NONE ? heir : before;
    else
        q->events[after].slot_prev = heir != NONE ? heir : before;
    if (slot->first == NONE || slot->last == NONE)
        clear_slot(q, level, digit);
}

static inline void take_out(SimEventq *q, int32_t event)
{
    Event *e = &q->events[event];
    const bool alone = e->next == event;
    if (e->slot_next != FOLLOWER)
        replace_leader(q, e, alone ? NONE : e->next);
    if (!alone) {
        q->events[e->next].prev = e->prev;
        q->events[e->prev].next = e->next;
    }
    e->next = NONE;
}

void sim_eventq_push(SimEventq *q, int32_t event, int64_t time_ps)
{
    Event *e = &q->events[event];
    g_assert(e->next == NONE && time_ps >= q->base_ps);
    e->time_ps = time_ps;
    /* Fibonacci hashing: times are multiples of common periods, so the low bits alone would collide. */
    Recent *recent = &q->recent[((uint64_t)time_ps * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - RECENT_BITS)];
    if (recent->time_ps == time_ps) {
        Event *leader = &q->events[recent->leader];
        if (leader->next != NONE && leader->slot_next != FOLLOWER && leader->time_ps == time_ps) {
            e->slot_next = FOLLOWER;
            e->next = recent->leader;
            e->prev = leader->prev;
            q->events[leader->prev].next = event;
            leader->prev = event;
            return;
        }
    }
    *recent = (Recent){.time_ps = time_ps, .leader = event};
    e->next = e->prev = event;
    link_leader(q, event);
}

void sim_eventq_remove(SimEventq *q, int32_t event)
{
    if (q->events[event].next != NONE)
        take_out(q, event);
}

/* Makes the earliest instant the present: it is then in level 0, and its slot's other instants come nearer. */
static void advance(SimEventq *q)
{
    const int level = lowest_bit(q->used_levels), digit = lowest_bit(q->occupied[level]);
    int32_t leader = q->slots[level][digit].first;
    int64_t earliest_ps = INT64_MAX;
    for (int32_t i = leader; i != NONE; i = q->events[i].slot_next)
        earliest_ps = MIN(earliest_ps, q->events[i].time_ps);
    q->base_ps = earliest_ps;
    if (level == 0)
        return;
    clear_slot(q, level, digit);
    while (leader != NONE) {
        const int32_t next = q->events[leader].slot_next;
        link_leader(q, leader);
        leader = next;
    }
}

static int32_t take_first(SimEventq *q)
{
    const int32_t event = q->slots[0][digit_of(q->base_ps, 0)].first;
    const int32_t follower = q->events[event].next;
    take_out(q, event);
    fetch(q, follower);
    return event;
}

void sim_eventq_peek(const SimEventq *q, int32_t ret_events[2])
{
    int found = 0;
    ret_events[0] = ret_events[1] = NONE;
    for (int level = 0; level <= NEAR_LEVEL; level++) {
        for (uint64_t bits = q->occupied[level]; bits != 0 && found < 2; bits &= bits - 1)
            ret_events[found++] = q->slots[level][lowest_bit(bits)].first;
    }
}

bool sim_eventq_pop(SimEventq *q, int64_t *ret_time_ps, int32_t *ret_event)
{
    if (q->used_levels == 0)
        return false;
    advance(q);
    *ret_time_ps = q->base_ps;
    *ret_event = take_first(q);
    return true;
}

bool sim_eventq_pop_at(SimEventq *q, int64_t time_ps, int32_t *ret_event)
{
    if (time_ps != q->base_ps || !(q->occupied[0] >> digit_of(time_ps, 0) & 1))
        return false;
    *ret_event = take_first(q);
    return true;
}
