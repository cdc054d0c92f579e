/* calibrate/fit/merge.h - sweeps of one kind of GPU, by several people or on several days, as one table. */
#ifndef ORR_CALIBRATE_MERGE_H
#define ORR_CALIBRATE_MERGE_H

#include <glib.h>
#include <stdbool.h>

/* Tables that orrery-calibrate wrote, of one device. Every row gets "sweep", its place in "stamps"; "stamp" is the first's.
 * Refused with one sentence: other files, another device, one sweep given twice. */
bool cal_merge_tables(char *const *paths, GString *out, GError **error);

#endif
