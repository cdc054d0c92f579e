/* sim/picoseconds.h - arithmetic of a clock that ends. */
#ifndef ORR_SIM_PICOSECONDS_H
#define ORR_SIM_PICOSECONDS_H

#include <math.h>
#include <stdint.h>

/* A duration of this or more is refused; the clock itself ends at 9.2e6 seconds. */
#define SIM_LONGEST_S 8e6

/* Rounded to the nearest; at most SIM_LONGEST_S, which a NaN becomes too. */
static inline int64_t sim_ps(double seconds)
{
    return (int64_t)llround(fmin(seconds, SIM_LONGEST_S) * 1e12);
}

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
