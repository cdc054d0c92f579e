/* calibrate/fit/minimize.h - least loss over a few positive numbers, by the simplex method of Nelder and Mead.
 *
 * Numbers move on a logarithmic scale between bounds, each tied to its start by a weak prior, so that a
 * number that no row speaks of stays where it is. Deterministic. Source: [NelderMead1965], coefficients for
 * many dimensions [GaoHan2012].
 */
#ifndef ORR_CALIBRATE_MINIMIZE_H
#define ORR_CALIBRATE_MINIMIZE_H

typedef struct CalNumber {
    double *value; /* read by the loss; holds the answer at the end */
    double min, max;
    double start; /* set by cal_minimize */
} CalNumber;

typedef double (*CalLoss)(void *context);

#define CAL_MAX_NUMBERS 48

/* `prior`: loss added for the square of a number's logarithm moved by 1. Returns the least loss found. */
double cal_minimize(CalNumber *numbers, int count, CalLoss loss, void *context, double prior, int rounds);

#endif
