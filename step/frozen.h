/* step/frozen.h - what must hold of weights that a step does not train, on top of what holds of any run. */
#ifndef ORR_STEP_FROZEN_H
#define ORR_STEP_FROZEN_H

#include "program/plan.h"
#include "spec/spec.h"

/* Of a recorded run (spans and levels) whose weights are frozen, all or some: they stay on their rank from the first instant to
 * the last, with nothing beside them but what is gathered or fetched; reductions send the bytes of trained gradients and no
 * more; gradients and optimizer states are those of trained weights. Counts trained weights from the model anew, whatever
 * the plan says of its segments. True where nothing is frozen. The message (ORR_ERROR_INTERNAL) names the first violation.
 * Tested: unit/step/test_frozen.c */
bool step_check_frozen(const Spec *spec, const SimPlan *plan, const SimProgram *program,
                       const SimResult *result, GError **error);

#endif
