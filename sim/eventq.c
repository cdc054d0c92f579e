/* sim/eventq.c - a wheel of instants, a sorted row of those that come next, a list of events at each. */
#include "sim/eventq.h"

#include <glib.h>
#include <string.h>

#define NONE (-1)

#define DIGIT_BITS    6
#define DIGITS        (1 << DIGIT_BITS)
#define LEVELS        11 /* 66 bits */
#define RECENT_BITS   8
#define CHUNK_ENTRIES 15
#define NEAR_FILL     128 /* a slot of so many instants or fewer is sorted, another divided */
#define NEAR_SPACE    256
#define FEW           8  /* sorted by insertion alone */
#define FETCH_FIRST   16 /* instants ahead of the present: what they hold is fetched */

typedef struct {
    int32_t instant; /* NONE: not in the queue */
    int32_t next, prev;
} Event;

typedef struct {
    int64_t time_ps;     /* NONE: free */
    int32_t first, last; /* first NONE: its events were all removed; free: `last` is the next free one */
} Instant;

typedef struct {
    int64_t time_ps;
    int32_t instant;
} Entry;

typedef struct {
    Entry entries[CHUNK_ENTRIES];
    int32_t count, next;
} Chunk;

typedef struct {
    int32_t first, last; /* chunks: all are full but the last */
    int32_t count;       /* entries */
} WheelSlot;

struct SimEventq {
    Event *events;
    Instant *instants;
    Chunk *chunks;
    const unsigned char *items;
    size_t item_bytes;
    int32_t item_count;
    int32_t capacity, instant_space;
    int32_t free_instant, next_instant; /* list; all from next_instant on were never used */
    int32_t free_chunk, next_chunk;
    int64_t now_ps;            /* of the last event popped */
    int64_t base_ps;           /* what the wheel's levels count from */
    int64_t near_last_ps;      /* instants up to here are in `near`, later ones on the wheel */
    int32_t near_at, near_end; /* what is left of near */
    uint32_t used_levels;      /* bits */
    uint64_t occupied[LEVELS]; /* bits of slots */
    WheelSlot slots[LEVELS][DIGITS];
    Entry near[NEAR_SPACE]; /* by time */
    Entry recent[1 << RECENT_BITS];
};

SimEventq *sim_eventq_new(OrrArena *arena, int32_t capacity)
{
    g_assert(capacity >= 0 && capacity < INT32_MAX / 4);
    SimEventq *q = ORR_ARENA_NEW(arena, SimEventq, 1);
    q->capacity = capacity;
    q->instant_space = 2 * capacity + DIGITS;
    q->events = ORR_ARENA_NEW(arena, Event, capacity);
    q->instants = ORR_ARENA_NEW(arena, Instant, q->instant_space);
    q->chunks = ORR_ARENA_NEW(arena, Chunk, q->instant_space / CHUNK_ENTRIES + LEVELS * DIGITS + 2);
    q->free_instant = q->free_chunk = NONE;
    q->near_last_ps = NONE;
    for (int32_t i = 0; i < capacity; i++)
        q->events[i].instant = NONE;
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

static inline void fetch(const void *what)
{
#if defined __GNUC__
    __builtin_prefetch(what);
#else
    (void)what;
#endif
}

static inline void fetch_item(const SimEventq *q, int32_t event)
{
    if (event < q->item_count)
        fetch(q->items + (size_t)event * q->item_bytes);
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

/* The bits of a time below `level`. */
static inline int64_t low_bits(int level)
{
    return level < LEVELS - 1 ? (INT64_C(1) << (DIGIT_BITS * level)) - 1
                              : (int64_t)(UINT64_MAX >> (64 - DIGIT_BITS * (LEVELS - 1)));
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

/* --- the wheel --- */

static inline int32_t new_chunk(SimEventq *q)
{
    int32_t chunk = q->free_chunk;
    if (chunk != NONE)
        q->free_chunk = q->chunks[chunk].next;
    else
        chunk = q->next_chunk++;
    q->chunks[chunk].count = 0;
    q->chunks[chunk].next = NONE;
    return chunk;
}

static inline int32_t free_chunk(SimEventq *q, int32_t chunk)
{
    const int32_t next = q->chunks[chunk].next;
    q->chunks[chunk].next = q->free_chunk;
    q->free_chunk = chunk;
    return next;
}

/* Puts an instant at the end of the slot where its time belongs. */
static inline void add_to_wheel(SimEventq *q, Entry entry)
{
    const int level = level_of(q, entry.time_ps), digit = digit_of(entry.time_ps, level);
    WheelSlot *slot = &q->slots[level][digit];
    if (slot->count == 0) {
        slot->first = slot->last = new_chunk(q);
        q->occupied[level] |= UINT64_C(1) << digit;
        q->used_levels |= 1u << level;
    } else if (q->chunks[slot->last].count == CHUNK_ENTRIES) {
        const int32_t chunk = new_chunk(q);
        q->chunks[slot->last].next = chunk;
        slot->last = chunk;
    }
    slot->count++;
    Chunk *chunk = &q->chunks[slot->last];
    chunk->entries[chunk->count++] = entry;
}

static inline WheelSlot take_slot(SimEventq *q, int level, int digit)
{
    const WheelSlot slot = q->slots[level][digit];
    q->slots[level][digit].count = 0;
    q->occupied[level] &= ~(UINT64_C(1) << digit);
    if (q->occupied[level] == 0)
        q->used_levels &= ~(1u << level);
    return slot;
}

/* Its instants come nearer, those without events go. */
static void divide_slot(SimEventq *q, WheelSlot slot)
{
    for (int32_t c = slot.first; c != NONE; c = free_chunk(q, c)) {
        const Chunk *chunk = &q->chunks[c];
        if (chunk->next != NONE)
            fetch(&q->chunks[chunk->next]);
        const int32_t count = chunk->count;
        for (int32_t i = 0; i < count; i++)
            add_to_wheel(q, q->chunks[c].entries[i]);
    }
}

/* --- what comes next --- */

/* Sorts what is nearly in order; equal times keep theirs. */
static void insertion_sort(Entry *entries, int count)
{
    for (int i = 1; i < count; i++) {
        const Entry entry = entries[i];
        int at = i;
        for (; at > 0 && entries[at - 1].time_ps > entry.time_ps; at--)
            entries[at] = entries[at - 1];
        entries[at] = entry;
    }
}

/* The instants of a slot into `near`, sorted: by their next digit, then by what is below. */
static void sort_slot(SimEventq *q, WheelSlot slot, int level)
{
    uint8_t place[DIGITS] = {0};
    const bool few = slot.count <= FEW || level == 0;
    for (int32_t c = slot.first; !few && c != NONE; c = q->chunks[c].next) {
        for (int32_t i = 0; i < q->chunks[c].count; i++)
            place[digit_of(q->chunks[c].entries[i].time_ps, level - 1)]++;
    }
    for (int digit = 0, sum = 0; !few && digit < DIGITS; digit++) {
        const int here = place[digit];
        place[digit] = (uint8_t)sum;
        sum += here;
    }
    int next = 0;
    for (int32_t c = slot.first; c != NONE; c = free_chunk(q, c)) {
        for (int32_t i = 0; i < q->chunks[c].count; i++) {
            const Entry entry = q->chunks[c].entries[i];
            fetch(&q->instants[entry.instant]);
            q->near[few ? next++ : place[digit_of(entry.time_ps, level - 1)]++] = entry;
        }
    }
    q->near_at = 0;
    q->near_end = slot.count;
    if (level > 0)
        insertion_sort(q->near, slot.count);
}

/* The first instants of a slot where all are the same, and more than there is room for; pushes of this instant go on
 * behind the others. */
static void take_part(SimEventq *q, WheelSlot slot)
{
    WheelSlot part = {.first = slot.first, .last = slot.first};
    for (part.count = CHUNK_ENTRIES; part.count + CHUNK_ENTRIES <= NEAR_FILL; part.count += CHUNK_ENTRIES)
        part.last = q->chunks[part.last].next;
    WheelSlot *rest = &q->slots[0][digit_of(q->base_ps, 0)];
    *rest =
        (WheelSlot){.first = q->chunks[part.last].next, .last = slot.last, .count = slot.count - part.count};
    q->chunks[part.last].next = NONE;
    q->occupied[0] |= UINT64_C(1) << digit_of(q->base_ps, 0);
    q->used_levels |= 1;
    sort_slot(q, part, 0);
    q->near_last_ps = q->base_ps - 1;
}

/* The earliest slot into `near`, which is empty; false when there is none. */
static bool refill(SimEventq *q)
{
    while (q->used_levels != 0) {
        const int level = lowest_bit(q->used_levels), digit = lowest_bit(q->occupied[level]);
        const WheelSlot slot = take_slot(q, level, digit);
        const int64_t above = level + 1 < LEVELS ? ~low_bits(level + 1) : 0;
        q->base_ps = (q->base_ps & above) | (int64_t)digit << (DIGIT_BITS * level);
        if (slot.count <= NEAR_FILL) {
            q->near_last_ps = q->base_ps | low_bits(level);
            sort_slot(q, slot, level);
            return true;
        }
        if (level == 0) {
            take_part(q, slot);
            return true;
        }
        divide_slot(q, slot);
    }
    return false;
}

/* Room for another instant: the later half goes back to the wheel. */
static void make_room(SimEventq *q)
{
    const int32_t count = q->near_end - q->near_at;
    memmove(q->near, q->near + q->near_at, sizeof(Entry) * (size_t)count);
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
        add_to_wheel(q, q->near[i]);
    q->near_end = keep;
}

/* Where an instant of this time belongs in `near`: behind those that are not later. */
static int32_t place_near(const SimEventq *q, int64_t time_ps)
{
    int32_t at = q->near_end;
    while (at > q->near_at && q->near[at - 1].time_ps > time_ps)
        at--;
    return at;
}

static void add_near(SimEventq *q, Entry entry)
{
    const int32_t at = place_near(q, entry.time_ps);
    memmove(q->near + at + 1, q->near + at, sizeof(Entry) * (size_t)(q->near_end - at));
    q->near[at] = entry;
    q->near_end++;
}

/* --- instants --- */

/* Takes out of a row of entries those without events; returns how many stay. */
static int32_t drop_empty(SimEventq *q, Entry *entries, int32_t count)
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
static void drop_all_empty(SimEventq *q)
{
    q->near_end = q->near_at + drop_empty(q, q->near + q->near_at, q->near_end - q->near_at);
    for (int level = 0; level < LEVELS; level++) {
        for (uint64_t bits = q->occupied[level]; bits != 0; bits &= bits - 1) {
            const WheelSlot slot = take_slot(q, level, lowest_bit(bits));
            for (int32_t c = slot.first; c != NONE; c = free_chunk(q, c)) {
                const Chunk chunk = q->chunks[c];
                Entry entries[CHUNK_ENTRIES];
                memcpy(entries, chunk.entries, sizeof entries);
                const int32_t kept = drop_empty(q, entries, chunk.count);
                for (int32_t i = 0; i < kept; i++)
                    add_to_wheel(q, entries[i]);
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
    q->instants[instant] = (Instant){.time_ps = time_ps, .first = NONE};
    return instant;
}

static inline int32_t add_instant(SimEventq *q, int64_t time_ps)
{
    const Entry entry = {.time_ps = time_ps, .instant = new_instant(q, time_ps)};
    if (time_ps > q->near_last_ps) {
        add_to_wheel(q, entry);
        return entry.instant;
    }
    if (q->near_end == NEAR_SPACE)
        make_room(q);
    if (time_ps > q->near_last_ps)
        add_to_wheel(q, entry);
    else
        add_near(q, entry);
    return entry.instant;
}

/* The youngest instant in `near` of this time; NONE. */
static int32_t find_near(const SimEventq *q, int64_t time_ps)
{
    const int32_t at = place_near(q, time_ps);
    return at > q->near_at && q->near[at - 1].time_ps == time_ps ? q->near[at - 1].instant : NONE;
}

void sim_eventq_push(SimEventq *q, int32_t event, int64_t time_ps)
{
    g_assert(q->events[event].instant == NONE && time_ps >= q->now_ps);
    /* Fibonacci hashing: times are multiples of common periods, so the low bits alone would collide. */
    Entry *recent = &q->recent[((uint64_t)time_ps * UINT64_C(0x9E3779B97F4A7C15)) >> (64 - RECENT_BITS)];
    if (recent->time_ps != time_ps || q->instants[recent->instant].time_ps != time_ps) {
        int32_t instant = time_ps <= q->near_last_ps ? find_near(q, time_ps) : NONE;
        if (instant == NONE)
            instant = add_instant(q, time_ps);
        *recent = (Entry){.time_ps = time_ps, .instant = instant};
    }
    append_event(q, recent->instant, event);
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

static inline void take(SimEventq *q, int32_t event)
{
    Event *e = &q->events[event];
    const int32_t instant = e->instant, next = e->next;
    e->instant = NONE;
    q->instants[instant].first = next;
    if (next == NONE) {
        free_instant(q, instant);
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

bool sim_eventq_pop(SimEventq *q, int64_t *ret_time_ps, int32_t *ret_event)
{
    int32_t event;
    while ((event = first_near(q)) == NONE) {
        q->near_at = q->near_end = 0;
        if (!refill(q)) {
            q->base_ps = q->now_ps;
            q->near_last_ps = NONE;
            return false;
        }
    }
    q->now_ps = *ret_time_ps = q->near[q->near_at].time_ps;
    *ret_event = event;
    take(q, event);
    const int32_t later = sim_eventq_ahead(q, FETCH_FIRST);
    if (later != NONE) {
        fetch_item(q, later);
        fetch(&q->events[later]);
    }
    return true;
}

bool sim_eventq_pop_at(SimEventq *q, int64_t time_ps, int32_t *ret_event)
{
    int32_t event;
    while ((event = first_near(q)) == NONE) {
        const bool more = time_ps > q->near_last_ps && time_ps == q->base_ps &&
                          (q->occupied[0] >> digit_of(time_ps, 0) & 1);
        if (!more || !refill(q))
            return false;
    }
    if (q->near[q->near_at].time_ps != time_ps)
        return false;
    *ret_event = event;
    take(q, event);
    return true;
}
