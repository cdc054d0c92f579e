/* calibrate/fit/fit_steps_write.c - a fit to measured steps as lines and as a profile. */
#include <math.h>
#include <string.h>

#include "calibrate/fit/collectives.h"
#include "calibrate/fit/fit_steps.h"
#include "calibrate/fit/profile.h"

static void print_errors(GString *log, const char *what, const CalErrors *errors)
{
    g_string_append_printf(log, "%-30s mean %5.1f %%  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n", what,
                           100 * errors->mean_frac, 100 * errors->median_frac, 100 * errors->p90_frac,
                           100 * errors->bias_frac);
}

void cal_step_fit_print(const CalStepFit *fit, GString *log)
{
    for (int k = 0; k < fit->count; k++) {
        const CalKnobFit *knob = &fit->knobs[k];
        char name[96];
        cal_knob_name(&knob->knob, name, sizeof name);
        if (knob->fitted)
            g_string_append_printf(log, "%-24s x %.3f  +- %.1f %%\n", name, knob->factor,
                                   100 * knob->std_frac);
        else
            g_string_append_printf(log, "%-24s as it is: %s\n", name, knob->why);
    }
    g_string_append_printf(log, "%d rows, the factors leave %.1f %% of noise\n", fit->rows,
                           100 * fit->noise_frac);
    print_errors(log, "before the fit:", &fit->before);
    print_errors(log, "after it:", &fit->after);
    print_errors(log, "rows that a fit has not seen:", &fit->unseen);
}

static void write_errors(OrrJsonWriter *w, const char *key, const CalErrors *errors)
{
    orr_jw_begin(w, key, '{');
    orr_jw_number(w, "mean_frac", errors->mean_frac);
    orr_jw_number(w, "median_frac", errors->median_frac);
    orr_jw_number(w, "p90_frac", errors->p90_frac);
    orr_jw_number(w, "bias_frac", errors->bias_frac);
    orr_jw_end(w, '}');
}

static void write_fit(OrrJsonWriter *w, const CalStepFit *fit)
{
    orr_jw_begin(w, "fit", '{');
    orr_jw_int(w, "rows", fit->rows);
    orr_jw_number(w, "noise_frac", fit->noise_frac);
    write_errors(w, "before", &fit->before);
    write_errors(w, "after", &fit->after);
    write_errors(w, "unseen", &fit->unseen);
    orr_jw_begin(w, "factors", '[');
    for (int k = 0; k < fit->count; k++) {
        const CalKnobFit *knob = &fit->knobs[k];
        char name[96];
        cal_knob_name(&knob->knob, name, sizeof name);
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "name", name);
        if (knob->fitted) {
            orr_jw_number(w, "factor", knob->factor);
            orr_jw_number(w, "std_frac", knob->std_frac);
        } else {
            orr_jw_text(w, "not_fitted", knob->why);
        }
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
}

/* Host times of a framework under its fitted factor, from the first of its rows. */
static void write_framework(OrrJsonWriter *w, const CalKnobFit *knob, const GPtrArray *steps)
{
    for (guint i = 0; i < steps->len; i++) {
        const CalStep *step = g_ptr_array_index(steps, i);
        const SpecFramework *framework = &step->spec.execution.framework;
        if (strcmp(framework->name, knob->knob.framework) != 0)
            continue;
        orr_jw_begin(w, framework->name, '{');
        orr_jw_number(w, "kernel_host_s", framework->host.kernel_host_s / knob->factor);
        orr_jw_number(w, "host_sync_s", framework->experts.host_sync_s / knob->factor);
        orr_jw_number(w, "step_overhead_s", framework->host.step_overhead_s / knob->factor);
        orr_jw_number(w, "microbatch_overhead_s", framework->host.microbatch_overhead_s / knob->factor);
        orr_jw_end(w, '}');
        return;
    }
}

static bool fitted(const CalStepFit *fit, bool (*is)(CalKnobKind))
{
    for (int k = 0; k < fit->count; k++)
        if (fit->knobs[k].fitted && is(fit->knobs[k].knob.kind))
            return true;
    return false;
}

static bool is_kernel(CalKnobKind kind)
{
    return kind == CAL_KNOB_COMPUTE || kind == CAL_KNOB_MEMORY;
}

static bool is_link(CalKnobKind kind)
{
    return kind == CAL_KNOB_SCALE_UP || kind == CAL_KNOB_SCALE_OUT || kind == CAL_KNOB_LATENCY;
}

static bool is_host(CalKnobKind kind)
{
    return kind == CAL_KNOB_HOST;
}

static void write_blocks(OrrJsonWriter *w, const CalStepFit *fit, const Spec *turned)
{
    if (fitted(fit, is_kernel)) {
        g_autofree CalProfile *profile = g_new0(CalProfile, 1);
        profile->accelerator = turned->cluster.accelerator;
        orr_jw_begin(w, "model", '{');
        cal_profile_write_all(profile, w);
        orr_jw_end(w, '}');
    }
    if (fitted(fit, is_link)) {
        const SpecCollectiveModel links = cal_effective_collectives(&turned->cluster);
        cal_write_collectives(w, "collectives", &links);
    }
}

void cal_step_fit_write(const CalStepFit *fit, const GPtrArray *steps, const char *source, GString *out_json)
{
    const CalStep *first = g_ptr_array_index(steps, 0);
    const char *accelerator = first->spec.cluster.accelerator.name;
    g_autofree Spec *turned = g_new(Spec, 1);
    OrrJsonWriter w;
    *turned = first->spec;
    for (int k = 0; k < fit->count; k++)
        if (fit->knobs[k].fitted)
            cal_knob_turn(&fit->knobs[k].knob, fit->knobs[k].factor, turned);
    orr_jw_init(&w, out_json, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "name", accelerator);
    orr_jw_text(&w, "source", source);
    orr_jw_text(&w, "accelerator", accelerator);
    write_blocks(&w, fit, turned);
    if (fitted(fit, is_host)) {
        orr_jw_begin(&w, "frameworks", '{');
        for (int k = 0; k < fit->count; k++)
            if (fit->knobs[k].fitted && is_host(fit->knobs[k].knob.kind))
                write_framework(&w, &fit->knobs[k], steps);
        orr_jw_end(&w, '}');
    }
    write_fit(&w, fit);
    orr_jw_end(&w, '}');
    g_string_append_c(out_json, '\n');
}
