/* spec/notes.c - what a scenario asks of its framework that the framework does not have. */
#include "spec/notes.h"

bool spec_framework_has_schedule(const SpecFramework *framework, SpecSchedule schedule)
{
    return framework->pipeline.schedules == 0 || schedule == SPEC_SCHEDULE_FILE ||
           (framework->pipeline.schedules & 1u << schedule) != 0;
}

bool spec_framework_has_recompute(const SpecFramework *framework, const SpecRecompute *recompute)
{
    const unsigned modes = framework->kernels.recompute_modes;
    const bool partial = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0;
    return (modes == 0 || (modes & 1u << recompute->mode) != 0) &&
           (!partial || framework->kernels.recompute_partial);
}

char *spec_recompute_words(const SpecRecompute *recompute)
{
    const char *mode = spec_word(&spec_words_recompute, (int)recompute->mode);
    if (recompute->mode == SPEC_RECOMPUTE_SELECTIVE_LAYER)
        return g_strdup_printf("%s/%d", mode, recompute->every_n_layers);
    if (recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0)
        return g_strdup_printf("%s/%d", mode, recompute->layers);
    return g_strdup(mode);
}

char *spec_framework_schedules(const SpecFramework *framework)
{
    GString *names = g_string_new(NULL);
    for (int i = 0; i < spec_words_schedule.count; i++)
        if ((framework->pipeline.schedules & 1u << i) != 0)
            g_string_append_printf(names, "%s%s", names->len > 0 ? ", " : "",
                                   spec_word(&spec_words_schedule, i));
    return g_string_free(names, FALSE);
}

static void note_zero(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const bool pipelined = spec->parallel.pipeline > 1 && framework->data_parallel.most_zero_in_pipeline <
                                                              framework->data_parallel.most_zero;
    const int most = spec_most_zero(framework, spec->parallel.pipeline);
    if (spec->parallel.zero > most && spec->parallel.data > 1)
        g_ptr_array_add(notes,
                        g_strdup_printf("%s has no ZeRO %d%s (at most %d): the step is what it would take, "
                                        "nothing launches it",
                                        framework->name, spec->parallel.zero,
                                        pipelined ? " under a pipeline" : "", most));
}

static void note_recompute(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const SpecRecompute *recompute = &spec->training.recompute;
    g_autoptr(GString) names = g_string_new(NULL);
    if (spec_framework_has_recompute(framework, recompute))
        return;
    const bool partial = recompute->mode == SPEC_RECOMPUTE_FULL && recompute->layers > 0;
    for (int i = 0; i < spec_words_recompute.count; i++)
        if (framework->kernels.recompute_modes == 0 || (framework->kernels.recompute_modes & 1u << i) != 0)
            g_string_append_printf(
                names, "%s%s%s", names->len > 0 ? ", " : "", spec_word(&spec_words_recompute, i),
                i == SPEC_RECOMPUTE_FULL && !framework->kernels.recompute_partial ? " of all layers" : "");
    g_ptr_array_add(notes,
                    g_strdup_printf("%s has no recompute %s%s (it has %s): the step is what it would take, "
                                    "nothing launches it",
                                    framework->name, spec_word(&spec_words_recompute, (int)recompute->mode),
                                    partial ? " of some layers" : "", names->str));
}

void spec_notes(const Spec *spec, GPtrArray *notes)
{
    const SpecFramework *framework = &spec->execution.framework;
    const SpecSchedule schedule = spec->parallel.schedule;
    if (spec->parallel.pipeline > 1 && !spec_framework_has_schedule(framework, schedule)) {
        g_autofree char *names = spec_framework_schedules(framework);
        g_ptr_array_add(
            notes, g_strdup_printf("%s has no schedule %s (it has %s): the step is what it would take, "
                                   "nothing launches it",
                                   framework->name, spec_word(&spec_words_schedule, (int)schedule), names));
    }
    note_zero(spec, notes);
    note_recompute(spec, notes);
}

void spec_source_notes(const SpecSource *source, GPtrArray *notes)
{
    for (guint i = 0; source != NULL && source->notes != NULL && i < source->notes->len; i++)
        g_ptr_array_add(notes, g_strdup(g_ptr_array_index(source->notes, i)));
}
