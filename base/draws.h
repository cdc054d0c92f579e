/* base/draws.h - random numbers from a key and a counter: the same on any number of threads and on every machine.
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

#endif
