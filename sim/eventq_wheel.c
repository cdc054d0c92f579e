/* sim/eventq_wheel.c - slots of a wheel: entries added, earliest slots taken and divided. */
#include "sim/eventq_wheel.h"

#include <glib.h>

void sim_wheel_init(SimWheel *wheel, OrrArena *arena, int32_t entries)
{
    wheel->chunks = ORR_ARENA_NEW(
        arena, SimWheelChunk, entries / SIM_WHEEL_CHUNK_ENTRIES + SIM_WHEEL_LEVELS * SIM_WHEEL_DIGITS + 2);
    wheel->free_chunk = SIM_WHEEL_NONE;
}

SimWheelSlot sim_wheel_take_first(SimWheel *wheel, int level, int digit)
{
    const int64_t above = level + 1 < SIM_WHEEL_LEVELS ? ~sim_wheel_low_bits(level + 1) : 0;
    wheel->base_ps = (wheel->base_ps & above) | (int64_t)digit << (SIM_WHEEL_DIGIT_BITS * level);
    return sim_wheel_take(wheel, level, digit);
}

void sim_wheel_divide(SimWheel *wheel, SimWheelSlot slot)
{
    for (int32_t c = slot.first; c != SIM_WHEEL_NONE; c = sim_wheel_free_chunk(wheel, c)) {
        const int32_t count = wheel->chunks[c].count;
        for (int32_t i = 0; i < count; i++)
            sim_wheel_add(wheel, wheel->chunks[c].entries[i]);
    }
}
