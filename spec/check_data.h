/* spec/check_data.h - contradictions of lists of layers, parameter servers and gradient compression. */
#ifndef ORR_SPEC_CHECK_DATA_H
#define ORR_SPEC_CHECK_DATA_H

#include "base/error.h"
#include "spec/spec.h"

/* Part of spec_check(). */
bool spec_check_data(const Spec *spec, const char *where, GError **error);

#endif
