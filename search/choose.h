/* search/choose.h - what "auto" becomes: the fastest value that fits in memory.
 *
 * Enumerates the fields that are SPEC_AUTO, simulates every valid assignment, and keeps the fastest that fits
 * (when none fits, the one that lacks the fewest bytes). Deterministic: ties go to the first in the order of
 * enumeration, smaller values first.
 */
#ifndef ORR_SEARCH_CHOOSE_H
#define ORR_SEARCH_CHOOSE_H

#include "base/error.h"
#include "spec/spec.h"

/* True when some field of the spec is SPEC_AUTO. */
bool search_has_auto(const Spec *spec);

/* Copies `spec` with every auto field chosen. Fails when no assignment is valid; the message carries the reason
 * of the last one refused. */
bool search_choose(const Spec *spec, Spec *ret_spec, GError **error);

#endif
