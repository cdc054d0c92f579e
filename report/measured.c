/* report/measured.c - see measured.h. Tested: unit/step/test_measured.c */
#include "report/measured.h"

#include "report/page.h"
#include "step/measured.h"

static bool step_of(const Spec *spec, const SpecMeasured *measured, OrrArena *arena, int64_t *ret_ps,
                    GError **error)
{
    SimKinds kinds;
    SimProgram program;
    SimResult result;
    if (!sim_measured_kinds(spec, measured, false, arena, &kinds, error) ||
        !sim_kinds_program(&kinds, false, arena, &program, error) ||
        !sim_engine_run(&program, 0, arena, &result, error))
        return false;
    *ret_ps = result.step_ps;
    return true;
}

bool report_measured_program(const Spec *spec, bool unfold, OrrArena *arena, Report *report, GError **error)
{
    SpecMeasured measured;
    if (!spec_measured_read(spec, arena, &measured, error) ||
        !sim_measured_kinds(spec, &measured, unfold, arena, &report->kinds, error) ||
        !sim_kinds_program(&report->kinds, unfold, arena, &report->program, error))
        return false;
    report->plan = report->kinds.kinds[0].plan;
    return true;
}

bool report_measured_fill(Report *report, GError **error)
{
    const Spec *spec = report->spec;
    const unsigned along[] = {0, SPEC_ALONG_STAGES, SPEC_ALONG_REPLICAS, SPEC_ALONG_MICROBATCHES};
    int64_t *const steps[] = {&report->measured.even_ps, &report->measured.stages_ps,
                              &report->measured.replicas_ps, &report->measured.microbatches_ps};
    bool ok = true;
    if (spec->execution.measured_passes == NULL)
        return true;
    for (gsize i = 0; ok && i < G_N_ELEMENTS(along); i++) {
        OrrArena *scratch = orr_arena_new();
        SpecMeasured measured, even;
        ok = spec_measured_read(spec, scratch, &measured, error);
        if (ok) {
            spec_measured_even(&measured, along[i], scratch, &even);
            ok = step_of(spec, &even, scratch, steps[i], error);
        }
        orr_arena_free(scratch);
    }
    report->measured.told = ok;
    return ok;
}

static double slowdown(int64_t ps, int64_t even_ps)
{
    return even_ps > 0 ? (double)ps / (double)even_ps : 1;
}

void report_measured_text(const Report *report, GString *out)
{
    const ReportMeasured *measured = &report->measured;
    char even[ORR_TEXT_SIZE];
    if (!measured->told)
        return;
    g_autofree char *line = g_strdup_printf(
        "%s if all passes took the mean: stragglers slow the step %.3fx (stages alone %.3fx, replicas %.3fx, "
        "micro-batches %.3fx)",
        orr_text_seconds(even, (double)measured->even_ps * 1e-12),
        slowdown(report_ideal_ps(report), measured->even_ps),
        slowdown(measured->stages_ps, measured->even_ps), slowdown(measured->replicas_ps, measured->even_ps),
        slowdown(measured->microbatches_ps, measured->even_ps));
    g_string_append_c(out, '\n');
    report_page_entry(out, "Measured", 14, line);
}

void report_measured_json(const Report *report, OrrJsonWriter *w)
{
    const ReportMeasured *measured = &report->measured;
    if (!measured->told)
        return;
    orr_jw_begin(w, "measured_passes", '{');
    orr_jw_ps(w, "even_step_s", measured->even_ps);
    orr_jw_number(w, "slowdown", slowdown(report_ideal_ps(report), measured->even_ps));
    orr_jw_number(w, "stages_slowdown", slowdown(measured->stages_ps, measured->even_ps));
    orr_jw_number(w, "replicas_slowdown", slowdown(measured->replicas_ps, measured->even_ps));
    orr_jw_number(w, "microbatches_slowdown", slowdown(measured->microbatches_ps, measured->even_ps));
    orr_jw_end(w, '}');
}
