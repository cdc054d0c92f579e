/* calibrate/fit/neighbours.h - a row from the rows measured around it: how smooth a table is, without a model. */
#ifndef ORR_CALIBRATE_NEIGHBOURS_H
#define ORR_CALIBRATE_NEIGHBOURS_H

#include "calibrate/fit/table.h"

/* Seconds of rows[index] from the nearest rows of the same accelerator, source, dtype, layout and kind of product, itself left
 * out: the mean of log(FLOP/s), weighted by the inverse square of the distance in (log m, log n, log k, log groups), over the
 * nearest CAL_NEIGHBOURS. 0: no product, or fewer than that around it. */
#define CAL_NEIGHBOURS 4
double cal_neighbours_s(const GArray *rows, guint index);

#endif
