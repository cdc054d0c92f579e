/* calibrate/measure/beside.h - how long two kinds of work run side by side, and what of it counts. No CUDA here. */
#ifndef ORR_CALIBRATE_BESIDE_H
#define ORR_CALIBRATE_BESIDE_H

#ifdef __cplusplus
extern "C" {
#endif

/* Products, each between two events, beside `others` groups of `inner` calls, each group between two events. */
typedef struct CalBesidePlan {
    int products, others, inner;
} CalBesidePlan;

#define CAL_BESIDE_LEAST 8 /* of each */

/* Both sides last for about as long as each other, alone, and for `window_s` at least; no side has more than `most_events`.
 * A side that ended early would leave the other alone for most of the time: its median would then say that nothing
 * happened. */
CalBesidePlan cal_beside_plan(double product_s, double other_s, double window_s, int most_events);

/* Median of the `count` intervals between marks_s[i] and marks_s[i + 1] that lie between `from_s` and `until_s` as a whole;
 * 0: there is none. */
double cal_beside_median_s(const double *marks_s, int count, double from_s, double until_s);

#ifdef __cplusplus
}
#endif

#endif
