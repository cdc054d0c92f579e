/* calibrate/fit/fit_steps.h - a profile from measured training steps: a few physical factors, as far as the rows tell them.
 *
 * No kernel is timed here: each row is a whole step, predicted by whoever calls (this room does not know the simulator).
 * A factor whose effect on the rows is smaller than their noise, or the same as another's, is left at 1 and named.
 */
#ifndef ORR_CALIBRATE_FIT_STEPS_H
#define ORR_CALIBRATE_FIT_STEPS_H

#include "base/error.h"
#include "calibrate/fit/residual.h"
#include "calibrate/fit/step_knobs.h"

typedef struct CalStep {
    char id[2 * SPEC_NAME_SIZE];
    Spec spec; /* complete */
    double measured_s;
} CalStep;

/* Seconds of a step; false: it cannot be simulated. */
typedef bool (*CalPredictStep)(const Spec *spec, void *data, double *ret_s, GError **error);

typedef struct CalKnobFit {
    CalKnob knob;
    bool fitted;
    double factor;   /* above 1: faster than the profile that the rows began with; 1 when not fitted */
    double std_frac; /* one standard deviation of it; 0 when not fitted */
    char why[240];   /* not fitted: why */
} CalKnobFit;

typedef struct CalStepFit {
    CalKnobFit knobs[CAL_MAX_KNOBS];
    int count, rows, folds;
    double noise_frac;               /* what the fitted factors leave over */
    CalErrors before, after, unseen; /* unseen: each row by a fit without it */
} CalStepFit;

#define CAL_LEAST_STEPS 3

/* `steps` (CalStep*): of one accelerator and one kind of links. Fails with fewer than CAL_LEAST_STEPS rows, when the rows
 * do not go together, when no factor can be told, and when unseen rows come out worse than without a fit. `residuals`
 * (may be NULL) gets each row before the fit, after it, and by a fit that has not seen it. */
bool cal_fit_steps(const GPtrArray *steps, CalPredictStep predict, void *data, GArray *residuals,
                   CalStepFit *ret_fit, GError **error);

/* One line a factor, then the errors. */
void cal_step_fit_print(const CalStepFit *fit, GString *log);
/* The profile for scenarios/calibrations; `source` says where the rows come from. */
void cal_step_fit_write(const CalStepFit *fit, const GPtrArray *steps, const char *source, GString *out_json);

#endif
