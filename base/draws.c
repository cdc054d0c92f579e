/* base/draws.c - see draws.h. */
#include "base/draws.h"

#include <math.h>

#define PI 3.14159265358979323846

#define GOLDEN UINT64_C(0x9E3779B97F4A7C15)

static uint64_t scramble(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

static double unit(uint64_t bits)
{
    return ((double)(bits >> 11) + 0.5) * 0x1p-53;
}

uint64_t orr_mix(uint64_t x)
{
    return scramble(x + GOLDEN);
}

double orr_draw_at(uint64_t seed, uint64_t stream, uint64_t index)
{
    return unit(scramble(seed * GOLDEN + (stream + 1) * UINT64_C(0xD1B54A32D192ED03) +
                         (index + 1) * UINT64_C(0x8CB92BA72F3D8DD7)));
}

int orr_lcg_below(OrrLcg *lcg, int count)
{
    lcg->state = lcg->state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((lcg->state >> 33) % (uint64_t)count);
}

OrrDraws orr_draws(uint64_t seed, uint64_t number)
{
    return (OrrDraws){orr_mix(orr_mix(seed) ^ number), 0};
}

double orr_draw(OrrDraws *draws)
{
    return unit(orr_mix(draws->key ^ orr_mix(draws->counter++)));
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
