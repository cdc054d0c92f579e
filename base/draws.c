/* base/draws.c - see draws.h. */
#include "base/draws.h"

#include <math.h>

#define PI 3.14159265358979323846

/* SplitMix64's mixer over a counter.   Source: Steele, Lea, Flood, OOPSLA 2014 */
static uint64_t mix(uint64_t x)
{
    x += UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

OrrDraws orr_draws(uint64_t seed, uint64_t number)
{
    return (OrrDraws){mix(mix(seed) ^ number), 0};
}

double orr_draw(OrrDraws *draws)
{
    const uint64_t bits = mix(draws->key ^ mix(draws->counter++)) >> 11;
    return ((double)bits + 0.5) * 0x1p-53;
}

double orr_draw_exponential(OrrDraws *draws, double mean)
{
    return -mean * log(orr_draw(draws));
}

double orr_draw_normal(OrrDraws *draws)
{
    const double radius = sqrt(-2 * log(orr_draw(draws)));
    return radius * cos(2 * PI * orr_draw(draws));
}
