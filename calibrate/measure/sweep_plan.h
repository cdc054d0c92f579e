/* calibrate/measure/sweep_plan.h - what the tables of a sweep's points share. Not for other rooms. */
#ifndef ORR_CALIBRATE_SWEEP_PLAN_H
#define ORR_CALIBRATE_SWEEP_PLAN_H

#include "calibrate/measure/sweep.h"

typedef struct CalPlan {
    GArray *points; /* CalPoint */
    const CalStamp *stamp;
    const CalSweepOptions *options;
} CalPlan;

/* Where `only` allows it. */
void cal_plan_add(CalPlan *plan, CalPoint point);

/* The kernel that stands for one of our own: Transformer Engine's where it works on this GPU. NULL: nothing here does it. */
const char *cal_mover(const CalStamp *stamp, const char *name);

/* The products that this machine's GPU can do. */
void cal_plan_products(CalPlan *plan);

#endif
