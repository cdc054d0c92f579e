/* sim/picoseconds.h - arithmetic of a clock that ends. */
#ifndef ORR_SIM_PICOSECONDS_H
#define ORR_SIM_PICOSECONDS_H

#include <stdint.h>

/* Sums and products of picoseconds and bytes that stop at INT64_MAX, which the clock refuses. Factors are not negative. */
static inline int64_t sim_sum(int64_t a, int64_t b)
{
    if (b > 0 && a > INT64_MAX - b)
        return INT64_MAX;
    return b < 0 && a < INT64_MIN - b ? INT64_MIN : a + b;
}

static inline int64_t sim_product(int64_t a, int64_t b)
{
    return b > 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

#endif
