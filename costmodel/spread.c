/* costmodel/spread.c - see spread.h. */
#include "costmodel/spread.h"

#include <math.h>

/* Quantile of the standard normal distribution, by bisection of its distribution function. */
static double normal_quantile(double probability)
{
    double low = -8, high = 8;
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        if (0.5 * erfc(-middle / sqrt(2)) < probability) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return (low + high) / 2;
}

double cost_largest_deviate(int count)
{
    return count < 2 ? 0 : normal_quantile((count - 0.375) / (count + 0.25));
}

double cost_slowest_chip(double speed_spread_frac, int chips)
{
    return 1 + speed_spread_frac * cost_largest_deviate(chips);
}
