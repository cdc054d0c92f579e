/* spec/set_times.h - "key=x2": a figure of the scenario as it stands, times a number. */
#ifndef ORR_SPEC_SET_TIMES_H
#define ORR_SPEC_SET_TIMES_H

#include "base/error.h"
#include "spec/spec.h"

/* Whether the value of "key=value" is such a number: "x2", "x0.5". */
bool spec_set_is_times(const char *set);
/* The same as "key=value" with the number that `spec` has there, times it; g_free. NULL: the key is no number, or the
 * scenario has none there. */
char *spec_set_times(const Spec *spec, const char *set, GError **error);

#endif
