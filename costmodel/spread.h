/* costmodel/spread.h - what waiting for the slowest of many costs: expected extremes of normal deviates. */
#ifndef ORR_COSTMODEL_SPREAD_H
#define ORR_COSTMODEL_SPREAD_H

/* A synchronous job runs at its slowest chip. Expected maximum of n normal deviates (Blom's approximation):
 *   1 + s q((n - 3/8) / (n + 1/4))     s = spread of speed, q = quantile of the standard normal
 * Source: [MlEngineering] (spread), [Blom1958] (maximum)    Ignores: machines that are taken out as stragglers */
double cost_slowest_chip(double speed_spread_frac, int chips);
/* The expected maximum of `count` normal deviates in that formula, in standard deviations; 0 for one. */
double cost_largest_deviate(int count);

#endif
