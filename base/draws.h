/* base/draws.h - random numbers: the same on any number of threads and on every machine.
 *
 * A stream of draws belongs to a seed and a number (a replica, a step, a job); its i-th draw depends on nothing else.
 */
#ifndef ORR_BASE_DRAWS_H
#define ORR_BASE_DRAWS_H

#include <stdint.h>

typedef struct OrrDraws {
    uint64_t key, counter;
} OrrDraws;

OrrDraws orr_draws(uint64_t seed, uint64_t number);
/* In (0, 1). */
double orr_draw(OrrDraws *draws);
/* Of mean `mean`. */
double orr_draw_exponential(OrrDraws *draws, double mean);
/* Of mean 0 and deviation 1.   Source: Box, Muller, 1958 */
double orr_draw_normal(OrrDraws *draws);

/* SplitMix64's step: 64 bits that look unlike those of x + 1.   Source: Steele, Lea, Flood, OOPSLA 2014 */
uint64_t orr_mix(uint64_t x);

/* In (0, 1): number `index` of stream `stream`, drawn without a state. */
double orr_draw_at(uint64_t seed, uint64_t stream, uint64_t index);

/* A linear congruential generator: for one fixed shuffle, not for samples.   Source: Knuth's MMIX */
typedef struct OrrLcg {
    uint64_t state;
} OrrLcg;

/* 0 .. count - 1; count >= 1. */
int orr_lcg_below(OrrLcg *lcg, int count);

#endif
