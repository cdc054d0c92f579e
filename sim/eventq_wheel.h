/* sim/eventq_wheel.h - where the instants of a queue wait that are not near; only sim/eventq*.c include it.
 *
 * Levels of slots, a level for six bits of the time: an entry lies in the slot of the highest bits in which its time
 * differs from the wheel's base, which no entry comes before. So the first slot of the lowest level in use is the earliest,
 * and the order within a slot is that in which its entries came. Slots are lists of chunks.
 */
#ifndef ORR_SIM_EVENTQ_WHEEL_H
#define ORR_SIM_EVENTQ_WHEEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bits.h"

#define SIM_WHEEL_NONE (-1)

#define SIM_WHEEL_DIGIT_BITS    6
#define SIM_WHEEL_DIGITS        (1 << SIM_WHEEL_DIGIT_BITS)
#define SIM_WHEEL_LEVELS        11 /* 66 bits */
#define SIM_WHEEL_CHUNK_ENTRIES 15

typedef struct {
    int64_t time_ps;
    int32_t instant;
} SimWheelEntry;

typedef struct {
    SimWheelEntry entries[SIM_WHEEL_CHUNK_ENTRIES];
    int32_t count, next;
} SimWheelChunk;

typedef struct {
    int32_t first, last; /* chunks: all are full but the last */
    int32_t count;       /* entries */
} SimWheelSlot;

typedef struct {
    SimWheelChunk *chunks;
    int32_t free_chunk, next_chunk;      /* list; all from next_chunk on were never used */
    int64_t base_ps;                     /* what the levels count from */
    uint32_t used_levels;                /* bits */
    uint64_t occupied[SIM_WHEEL_LEVELS]; /* bits of slots */
    SimWheelSlot slots[SIM_WHEEL_LEVELS][SIM_WHEEL_DIGITS];
} SimWheel;

/* Room for so many entries at once. */
void sim_wheel_init(SimWheel *wheel, OrrArena *arena, int32_t entries);

/* --- bits and digits --- */

static inline int sim_wheel_digit_of(int64_t time_ps, int level)
{
    return (int)((uint64_t)time_ps >> (SIM_WHEEL_DIGIT_BITS * level)) & (SIM_WHEEL_DIGITS - 1);
}

/* The bits of a time below `level`. */
static inline int64_t sim_wheel_low_bits(int level)
{
    return level < SIM_WHEEL_LEVELS - 1
               ? (INT64_C(1) << (SIM_WHEEL_DIGIT_BITS * level)) - 1
               : (int64_t)(UINT64_MAX >> (64 - SIM_WHEEL_DIGIT_BITS * (SIM_WHEEL_LEVELS - 1)));
}

static inline int sim_wheel_highest_bit(uint64_t bits)
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

static inline int sim_wheel_level_of(const SimWheel *wheel, int64_t time_ps)
{
    return sim_wheel_highest_bit((uint64_t)(time_ps ^ wheel->base_ps) | 1) / SIM_WHEEL_DIGIT_BITS;
}

/* --- slots --- */

static inline int32_t sim_wheel_new_chunk(SimWheel *wheel)
{
    int32_t chunk = wheel->free_chunk;
    if (chunk != SIM_WHEEL_NONE)
        wheel->free_chunk = wheel->chunks[chunk].next;
    else
        chunk = wheel->next_chunk++;
    wheel->chunks[chunk].count = 0;
    wheel->chunks[chunk].next = SIM_WHEEL_NONE;
    return chunk;
}

/* Puts an entry at the end of the slot where its time, which is not before the base, belongs. */
static inline void sim_wheel_add(SimWheel *wheel, SimWheelEntry entry)
{
    const int level = sim_wheel_level_of(wheel, entry.time_ps),
              digit = sim_wheel_digit_of(entry.time_ps, level);
    SimWheelSlot *slot = &wheel->slots[level][digit];
    if (slot->count == 0) {
        slot->first = slot->last = sim_wheel_new_chunk(wheel);
        wheel->occupied[level] |= UINT64_C(1) << digit;
        wheel->used_levels |= 1u << level;
    } else if (wheel->chunks[slot->last].count == SIM_WHEEL_CHUNK_ENTRIES) {
        const int32_t chunk = sim_wheel_new_chunk(wheel);
        wheel->chunks[slot->last].next = chunk;
        slot->last = chunk;
    }
    slot->count++;
    SimWheelChunk *chunk = &wheel->chunks[slot->last];
    chunk->entries[chunk->count++] = entry;
}

/* Takes out a slot; the base stays. */
static inline SimWheelSlot sim_wheel_take(SimWheel *wheel, int level, int digit)
{
    const SimWheelSlot slot = wheel->slots[level][digit];
    wheel->slots[level][digit].count = 0;
    wheel->occupied[level] &= ~(UINT64_C(1) << digit);
    if (wheel->occupied[level] == 0)
        wheel->used_levels &= ~(1u << level);
    return slot;
}

/* The level and digit of the earliest slot; false: the wheel is empty. */
static inline bool sim_wheel_first(const SimWheel *wheel, int *ret_level, int *ret_digit)
{
    if (wheel->used_levels == 0)
        return false;
    *ret_level = orr_lowest_bit(wheel->used_levels);
    *ret_digit = orr_lowest_bit(wheel->occupied[*ret_level]);
    return true;
}

/* Takes out the earliest slot, from whose start the wheel counts from now on. Its chunks are still to be freed. */
SimWheelSlot sim_wheel_take_first(SimWheel *wheel, int level, int digit);
/* Puts the entries of a slot that was taken out back where they belong by now. */
void sim_wheel_divide(SimWheel *wheel, SimWheelSlot slot);

/* Returns the chunk behind it. */
static inline int32_t sim_wheel_free_chunk(SimWheel *wheel, int32_t chunk)
{
    const int32_t next = wheel->chunks[chunk].next;
    wheel->chunks[chunk].next = wheel->free_chunk;
    wheel->free_chunk = chunk;
    return next;
}

#endif
