/* api/after.h - keys that a step does not read: prices, PUE, tokens, storage, and all that fails. Runs of a sweep that
 * differ in these alone share one loaded scenario and one simulated step.
 *
 * A key is one of them where its member of the Spec is read behind the step only: by report_costs_fill(), by
 * report_input_fill() where the scenario has `data`, and by campaign_effective_fill(). The member takes what the reader
 * makes of a value, whatever else the scenario says. Before an axis is trusted, the scenario is loaded with its first and
 * its last value, and both must differ in that member alone.
 */
#ifndef ORR_API_AFTER_H
#define ORR_API_AFTER_H

#include "api/simulate.h"

/* The axes of a sweep in two groups, steps and what comes after each of them. Read-only, for any thread. */
typedef struct ApiAfter ApiAfter;

/* `fields`: ApiVary, borrowed, as `input` and `sets` are. `alone`: every run has a step of its own. */
ApiAfter *api_after_new(const ApiInput *input, char **sets, const GArray *fields, bool alone);
void api_after_free(ApiAfter *after);

/* Steps of the sweep, and runs of each: their product is the number of runs. */
guint api_after_steps(const ApiAfter *after);
guint api_after_each(const ApiAfter *after);
/* The run, counted with the last field fastest, that is the `each`-th of a step. */
guint api_after_index(const ApiAfter *after, guint step, guint each);
/* The run that stands for a step: all of its values are such as the reader takes. */
guint api_after_base(const ApiAfter *after, guint step);

/* Whether the other runs of its step may be had from this one, and none of its own rules stands against it. */
bool api_after_shares(const ApiAfter *after, const ApiSimulation *base);
/* The members of run `each` into `spec`, which is the base's; false where a value is none that the reader takes. */
bool api_after_put(const ApiAfter *after, guint each, Spec *spec);

#endif
