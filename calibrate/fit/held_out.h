/* calibrate/fit/held_out.h - what a fit is worth: whole shapes that it has not seen, and a layer beside its prediction. */
#ifndef ORR_CALIBRATE_HELD_OUT_H
#define ORR_CALIBRATE_HELD_OUT_H

#include "calibrate/fit/profile.h"

/* One shape in CAL_HELD_OUT, with every round of it and every source, is kept from a fit that begins as the table's own
 * (`donor`, may be NULL) and then predicted by it; a line a block goes to `log`. Nothing is said of fewer than
 * CAL_HELD_OUT shapes. `profile` stays as it is. */
#define CAL_HELD_OUT 5
void cal_held_out(const CalProfile *profile, const GPtrArray *rows, const CalProfile *donor, GString *log);

/* Rows of layer_measurements beside the sum of the model's kernels at the same sizes, which is a product each way, norms,
 * SwiGLU and residuals with the fitted blocks and attention as `kernel` of the accelerator. A line a shape. */
void cal_layers_beside(const OrrJson *table, const SpecAccelerator *accelerator, GString *log);

#endif
