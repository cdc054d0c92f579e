/* calibrate/fit/fit_unknown.h - a sweep of a GPU that no preset describes: its profile is an accelerator of its own. */
#ifndef ORR_CALIBRATE_FIT_UNKNOWN_H
#define ORR_CALIBRATE_FIT_UNKNOWN_H

#include "calibrate/fit/profile.h"

/* The accelerator of a sweep's stamp, or NULL with an error when `table` is no sweep of the device `name` or holds neither a
 * product nor a stream. Of a data sheet the stamp has SMs, memory, cache and compute capability; peaks and bandwidth are
 * the best that the sweep's rows reached, so that "share of the peak" is of those. Freed by g_free. */
CalProfile *cal_unknown_profile(const OrrJson *table, const GArray *rows, const char *name, GError **error);

/* Members of the open object that a file of an accelerator has before its "model". */
void cal_unknown_write(const CalProfile *profile, const char *source, OrrJsonWriter *w);

#endif
