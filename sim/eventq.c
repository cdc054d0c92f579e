/* sim/eventq.c - a wheel of instants, a sorted row of those that come next, a list of events at each. */
#include "base/prefetch.h"
#include "sim/eventq.h"

#include <glib.h>
#include <string.h>

#include "sim/eventq_wheel.h"

#define NONE (-1)

#define RECENT_BITS 8
#define NEAR_FILL   128 /* a slot of so many instants or fewer is sorted, another divided */
#define SMALL_FILL  24  /* the same of a small queue, whose events need no fetching */
#define NEAR_SPACE  256
#define FEW_NEAR    24 /* searched from the end */
#define FEW         24 /* sorted by insertion alone */
#define FETCH_FIRST 16 /* instants ahead of the present: what they hold is fetched */

typedef struct {
    int32_t instant; /* NONE: not in the queue */
    int32_t next, prev;
} Event;

typedef struct {
    int64_t time_ps;     /* NONE: free */
    int32_t first, last; /* first NONE: its events were all removed; free: `last` is the next free one */
} Instant;

struct SimEventq {
    Event *events;
    Instant *instants;
    const unsigned char *items;
    size_t item_bytes;
    int32_t item_count;
    int32_t capacity, instant_space;
    int32_t near_fill;
    int32_t free_instant, next_instant; /* list; all from next_instant on were never used */
    int64_t now_ps;                     /* of the last event popped */
    int64_t near_last_ps;               /* instants up to here are in `near`, later ones on the wheel */
    int32_t near_at, near_end;          /* what is left of near */
    SimWheel wheel;
    SimWheelEntry near[NEAR_SPACE];   /* by time */
    int32_t recent[1 << RECENT_BITS]; /* instants by a hash of their time */
};

SimEventq *sim_eventq_new(OrrArena *arena, int32_t capacity)
{
    g_assert(capacity >= 0 && capacity < INT32_MAX / 4);
    SimEventq *q = ORR_ARENA_NEW(arena, SimEventq, 1);
    q->capacity = capacity;
    q->instant_space = 2 * capacity + SIM_WHEEL_DIGITS;
    q->events = ORR_ARENA_NEW(arena, Event, capacity);
    q->instants = ORR_ARENA_NEW(arena, Instant, q->instant_space);
    sim_wheel_init(&q->wheel, arena, q->instant_space);
    q->near_fill = sim_eventq_is_small(capacity) ? SMALL_FILL : NEAR_FILL;
    q->free_instant = NONE;
    q->near_last_ps = NONE;
    for (int32_t i = 0; i < capacity; i++)
        q->events[i].instant = NONE;
    q->instants[0].time_ps = NONE; /* what `recent` names before any other */
    return q;
}

void sim_eventq_announce(SimEventq *q, const void *items, size_t item_bytes, int32_t count)
{
    q->items = items;
    q->item_bytes = item_bytes;
    q->item_count = count;
}

static inline void fetch_item(const SimEventq *q, int32_t event)
{
    if (event < q->item_count)
        orr_prefetch(q->items + (size_t)event * q->item_bytes);
}

static inline void free_instant(SimEventq *q, int32_t instant)
{
    q->instants[instant].time_ps = NONE;
    q->instants[instant].last = q->free_instant;
    q->free_instant = instant;
}

static inline void append_event(SimEventq *q, int32_t instant, int32_t event)
{
    Instant *at = &q->instants[instant];
    q->events[event] = (Event){.instant = instant, .next = NONE, .prev = NONE};
    if (at->first == NONE) {
        at->first = event;
    } else {
        q->events[event].prev = at->last;
        q->events[at->last].next = event;
    }
    at->last = event;
}

/* --- what comes next --- */

/* Sorts what is nearly in order; equal times keep theirs. */
static void insertion_sort(SimWheelEntry *entries, int count)
{
    for (int i = 1; i < count; i++) {
        const SimWheelEntry entry = entries[i];
        int at = i;
        for (; at > 0 && entries[at - 1].time_ps > entry.time_ps; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* The instants of a slot into `near`, which is empty, sorted: by their next digit, then by what is below. */
static void fill_near(SimEventq *q, SimWheelSlot slot, int level)
{
    SimWheel *wheel = &q->wheel;
    uint8_t place[SIM_WHEEL_DIGITS] = {0};
    const bool few = slot.count <= FEW || level == 0;
    for (int32_t c = slot.first; !few && c != NONE; c = wheel->chunks[c].next) {
        for (int32_t i = 0; i < wheel->chunks[c].count; i++)
            place[sim_wheel_digit_of(wheel->chunks[c].entries[i].time_ps, level - 1)]++;
    }
    for (int digit = 0, sum = 0; !few && digit < SIM_WHEEL_DIGITS; digit++) {
        const int here = place[digit];
        place[digit] = (uint8_t)sum;
        sum += here;
    }
    int next = 0;
    for (int32_t c = slot.first; c != NONE; c = sim_wheel_free_chunk(wheel, c)) {
        for (int32_t i = 0; i < wheel->chunks[c].count; i++) {
            const SimWheelEntry entry = wheel->chunks[c].entries[i];
            orr_prefetch(&q->instants[entry.instant]);
            q->near[few ? next++ : place[sim_wheel_digit_of(entry.time_ps, level - 1)]++] = entry;
        }
    }
    q->near_end = slot.count;
    if (level > 0)
        insertion_sort(q->near, slot.count);
}

/* The first instants of a slot where all are the same, and more than there is room for; pushes of this instant go on
 * behind the others. */
static void take_part(SimEventq *q, SimWheelSlot slot)
{
    SimWheel *wheel = &q->wheel;
    SimWheelSlot part = {.first = slot.first, .last = slot.first};
    for (part.count = SIM_WHEEL_CHUNK_ENTRIES; part.count + SIM_WHEEL_CHUNK_ENTRIES <= q->near_fill;
         part.count += SIM_WHEEL_CHUNK_ENTRIES)
        part.last = wheel->chunks[part.last].next;
    const int digit = sim_wheel_digit_of(wheel->base_ps, 0);
    wheel->slots[0][digit] = (SimWheelSlot){
        .first = wheel->chunks[part.last].next, .last = slot.last, .count = slot.count - part.count};
    wheel->chunks[part.last].next = NONE;
    wheel->occupied[0] |= UINT64_C(1) << digit;
    wheel->used_levels |= 1;
    fill_near(q, part, 0);
    q->near_last_ps = wheel->base_ps - 1;
}

/* The earliest slot into `near`, which is empty; false when there is none. */
static bool refill(SimEventq *q)
{
    SimWheel *wheel = &q->wheel;
    int level, digit;
    q->near_at = q->near_end = 0;
    while (sim_wheel_first(wheel, &level, &digit)) {
        const SimWheelSlot slot = sim_wheel_take_first(wheel, level, digit);
        if (slot.count <= q->near_fill) {
            q->near_last_ps = wheel->base_ps | sim_wheel_low_bits(level);
            fill_near(q, slot, level);
            return true;
        }
        if (level == 0) {
            take_part(q, slot);
            return true;
        }
        sim_wheel_divide(wheel, slot);
    }
    return false;
}

/* Room for another instant: the later half goes back to the wheel, those of one time together. */
static void make_room(SimEventq *q)
{
    const int32_t count = q->near_end - q->near_at;
    memmove(q->near, q->near + q->near_at, sizeof(SimWheelEntry) * (size_t)count);
    q->near_at = 0;
    q->near_end = count;
    if (count < NEAR_SPACE)
        return;
    int32_t keep = count / 2;
    while (keep < count && q->near[keep].time_ps == q->near[keep - 1].time_ps)
        keep++;
    g_assert(keep < count);
    q->near_last_ps = q->near[keep].time_ps - 1;
    for (int32_t i = keep; i < count; i++)
        sim_wheel_add(&q->wheel, q->near[i]);
    q->near_end = keep;
}

/* Where an instant of this time belongs in `near`: behind those that are not later. */
static int32_t place_near(const SimEventq *q, int64_t time_ps)
{
    int32_t end = q->near_end;
    for (int tries = 0; tries < FEW_NEAR; tries++, end--)
        if (end == q->near_at || q->near[end - 1].time_ps <= time_ps)
            return end;
    int32_t at = q->near_at, count = end - q->near_at;
    while (count > 0) {
        const int32_t half = (count + 1) / 2;
        at += q->near[at + half - 1].time_ps <= time_ps ? half : 0;
        count -= half;
    }
    return at;
}

/* The shorter side makes way. */
static void insert_near(SimEventq *q, int32_t at, SimWheelEntry entry)
{
    if (q->near_at > 0 && at - q->near_at < q->near_end - at) {
        memmove(q->near + q->near_at - 1, q->near + q->near_at,
                sizeof(SimWheelEntry) * (size_t)(at - q->near_at));
        q->near_at--;
        at--;
    } else {
        memmove(q->near + at + 1, q->near + at, sizeof(SimWheelEntry) * (size_t)(q->near_end - at));
        q->near_end++;
    }
    q->near[at] = entry;
}

/* --- instants --- */

/* Takes out of a row of entries those without events; returns how many stay. */
static int32_t drop_empty(SimEventq *q, SimWheelEntry *entries, int32_t count)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < count; i++) {
        if (q->instants[entries[i].instant].first != NONE)
            entries[kept++] = entries[i];
        else
            free_instant(q, entries[i].instant);
    }
    return kept;
}

/* Instants whose events were all removed are found when their time comes, or here. */
static G_GNUC_NO_INLINE void drop_all_empty(SimEventq *q)
{
    q->near_end = q->near_at + drop_empty(q, q->near + q->near_at, q->near_end - q->near_at);
    SimWheel *wheel = &q->wheel;
    for (int level = 0; level < SIM_WHEEL_LEVELS; level++) {
        for (uint64_t bits = wheel->occupied[level]; bits != 0; bits &= bits - 1) {
            const SimWheelSlot slot = sim_wheel_take(wheel, level, orr_lowest_bit(bits));
            for (int32_t c = slot.first; c != NONE; c = sim_wheel_free_chunk(wheel, c)) {
                SimWheelChunk chunk = wheel->chunks[c];
                const int32_t kept = drop_empty(q, chunk.entries, chunk.count);
                for (int32_t i = 0; i < kept; i++)
                    sim_wheel_add(wheel, chunk.entries[i]);
            }
        }
    }
}

static inline int32_t new_instant(SimEventq *q, int64_t time_ps)
{
    if (q->free_instant == NONE && q->next_instant == q->instant_space)
        drop_all_empty(q);
    int32_t instant = q->free_instant;
    if (instant != NONE)
        q->free_instant = q->instants[instant].last;
    else
        instant = q->next_instant++;
    q->instants[instant].time_ps = time_ps;
    q->instants[instant].first = NONE;
    return instant;
}

/* The youngest instant of a time that is near, or a new one. */
static int32_t instant_near(SimEventq *q, int64_t time_ps)
{
    int32_t at = place_near(q, time_ps);
    if (at > q->near_at && q->near[at - 1].time_ps == time_ps)
        return q->near[at - 1].instant;
    const int32_t end = q->near_end;
    const SimWheelEntry entry = {.time_ps = time_ps, .instant = new_instant(q, time_ps)};
    if (q->near_end == NEAR_SPACE)
        make_room(q);
    if (time_ps > q->near_last_ps)
        sim_wheel_add(&q->wheel, entry);
    else
        insert_near(q, q->near_end == end ? at : place_near(q, time_ps), entry);
    return entry.instant;
}

static inline int32_t *recent_of(SimEventq *q, int64_t time_ps)
{
    /* Fibonacci hashing: times are multiples of common periods, so the low bits alone would collide. */
    return &q->recent[((uint64_t)time_ps * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - RECENT_BITS)];
}

static G_GNUC_NO_INLINE void push_near(SimEventq *q, int32_t event, int64_t time_ps)
{
    const int32_t instant = instant_near(q, time_ps);
    *recent_of(q, time_ps) = instant;
    append_event(q, instant, event);
}

static G_GNUC_NO_INLINE void push_later(SimEventq *q, int32_t event, int64_t time_ps)
{
    const SimWheelEntry entry = {.time_ps = time_ps, .instant = new_instant(q, time_ps)};
    *recent_of(q, time_ps) = entry.instant;
    append_event(q, entry.instant, event);
    sim_wheel_add(&q->wheel, entry);
}

void sim_eventq_push(SimEventq *q, int32_t event, int64_t time_ps)
{
    g_assert(q->events[event].instant == NONE && time_ps >= q->now_ps);
    const int32_t recent = *recent_of(q, time_ps);
    if (q->instants[recent].time_ps == time_ps)
        append_event(q, recent, event);
    else if (time_ps <= q->near_last_ps)
        push_near(q, event, time_ps);
    else
        push_later(q, event, time_ps);
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
    e->instant = NONE;
}

/* The first event of the first instant in `near` that has one; NONE. */
static inline int32_t first_near(SimEventq *q)
{
    for (; q->near_at < q->near_end; q->near_at++) {
        const int32_t instant = q->near[q->near_at].instant, event = q->instants[instant].first;
        if (event != NONE)
            return event;
        free_instant(q, instant);
    }
    return NONE;
}

/* The first event of the instant that comes next. */
static inline void take(SimEventq *q, int32_t event, int64_t *ret_time_ps)
{
    const SimWheelEntry *at = &q->near[q->near_at];
    const int32_t next = q->events[event].next;
    q->events[event].instant = NONE;
    q->instants[at->instant].first = next;
    *ret_time_ps = at->time_ps;
    if (next == NONE) {
        free_instant(q, at->instant);
        q->near_at++;
    } else {
        q->events[next].prev = NONE;
        fetch_item(q, next);
    }
}

int32_t sim_eventq_ahead(const SimEventq *q, int32_t instants)
{
    const int32_t at = q->near_at + instants;
    return at < q->near_end ? q->instants[q->near[at].instant].first : NONE;
}

static inline void pop_near(SimEventq *q, int32_t event, int64_t *ret_time_ps, int32_t *ret_event)
{
    *ret_event = event;
    take(q, event, &q->now_ps);
    *ret_time_ps = q->now_ps;
    const int32_t later = q->item_count > 0 ? sim_eventq_ahead(q, FETCH_FIRST) : NONE;
    if (later != NONE) {
        fetch_item(q, later);
        orr_prefetch(&q->events[later]);
    }
}

static G_GNUC_NO_INLINE bool pop_later(SimEventq *q, int64_t *ret_time_ps, int32_t *ret_event)
{
    int32_t event;
    while ((event = first_near(q)) == NONE) {
        if (!refill(q)) {
            q->wheel.base_ps = q->now_ps;
            q->near_last_ps = NONE;
            return false;
        }
    }
    pop_near(q, event, ret_time_ps, ret_event);
    return true;
}

bool sim_eventq_pop(SimEventq *q, int64_t *ret_time_ps, int32_t *ret_event)
{
    const int32_t event = first_near(q);
    if (event == NONE)
        return pop_later(q, ret_time_ps, ret_event);
    pop_near(q, event, ret_time_ps, ret_event);
    return true;
}

bool sim_eventq_pop_at(SimEventq *q, int64_t time_ps, int32_t *ret_event)
{
    if (q->near_at < q->near_end && q->near[q->near_at].time_ps != time_ps)
        return false;
    int32_t event;
    while ((event = first_near(q)) == NONE) {
        const bool more = time_ps > q->near_last_ps && time_ps == q->wheel.base_ps &&
                          (q->wheel.occupied[0] >> sim_wheel_digit_of(time_ps, 0) & 1);
        if (!more || !refill(q))
            return false;
    }
    if (q->near[q->near_at].time_ps != time_ps)
        return false;
    *ret_event = event;
    take(q, event, &time_ps);
    return true;
}
