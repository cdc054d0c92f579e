/* base/bits.h - sets of small numbers as bits of a word. */
#ifndef ORR_BASE_BITS_H
#define ORR_BASE_BITS_H

#include <stdint.h>

/* The least number in a set that is not empty. */
static inline int orr_lowest_bit(uint64_t bits)
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

#endif
