/* step/textbook.h - the step of textbooks: stages all alike, and nothing but their passes. */
#ifndef ORR_STEP_TEXTBOOK_H
#define ORR_STEP_TEXTBOOK_H

#include "program/plan.h"
#include "spec/spec.h"

/* False, with a sentence, for what no textbook has: fabrics, mixed machines, measured passes, servers, offloading, layer lists. */
bool step_textbook_fits(const Spec *spec, GError **error);

/* Gives every stage of a plan the mean time of all: a third each for the forward, the gradient of inputs and that of weights.
 * Messages, collectives of data parallelism, the optimizer and the host take none; memory stays. Bubbles are then those of the
 * schedules' papers: (p - 1) / (m + p - 1) for GPipe and 1F1B. Tested: unit/step/test_textbook.c */
void step_textbook(SimPlan *plan);

#endif
