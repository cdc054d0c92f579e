/* step/measured.h - one step whose passes, messages and ends take what a trace says instead of what is predicted.
 *
 * Replicas whose seconds differ are kinds of their own, which meet in their collectives as those of a mixed cluster do.
 */
#ifndef ORR_STEP_MEASURED_H
#define ORR_STEP_MEASURED_H

#include "spec/measured.h"
#include "step/kinds.h"

/* What replicas do; those with the same seconds are one kind unless `apart`. What was not measured is predicted. Fails where
 * the plan runs a forward beside a backward, or has no place for a measured collective. */
bool sim_measured_kinds(const Spec *spec, const SpecMeasured *measured, bool apart, OrrArena *arena,
                        SimKinds *ret_kinds, GError **error);

#endif
