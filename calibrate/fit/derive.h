/* calibrate/fit/derive.h - blocks without rows of their own, carried over from a sibling. */
#ifndef ORR_CALIBRATE_DERIVE_H
#define ORR_CALIBRATE_DERIVE_H

#include "calibrate/fit/profile.h"

/* Where a fit starts: the donor's blocks carried over, or the field tables' defaults (donor NULL). Fractions
 * of peak and bandwidth stay; what does not scale with the data sheet is turned: the L2 cache's rate, and the
 * watts of the same silicon under another limit. Loss and permutation keep the preset's own numbers. */
void cal_derive_start(CalProfile *profile, const CalProfile *donor);

/* After all fits: blocks that name a donor of their own (a dtype, a kernel, a kernel's backward pass, a
 * dtype's layouts). False with an error when a named donor does not exist or has no such block. */
bool cal_derive_blocks(CalProfile *profile, GPtrArray *profiles, GError **error);

#endif
