/* report/describe.c - see describe.h. */
#include "report/describe.h"
#include "report/report.h"
#include "spec/notes.h"

#include <string.h>

#include "costmodel/ops.h"

static void append_degree(GString *out, const char *name, int degree)
{
    if (degree > 1)
        g_string_append_printf(out, " %s%d", name, degree);
}

static void append_parallel(GString *out, const Spec *spec)
{
    const SpecParallel *parallel = &spec->parallel;
    g_string_append_printf(out, "tp%d%s", parallel->tensor,
                           parallel->tensor > 1 && parallel->sequence_parallel == 1 ? " sp" : "");
    append_degree(out, "cp", parallel->context);
    g_string_append_printf(out, " pp%d", parallel->pipeline);
    append_degree(out, "vpp", parallel->virtual_stages);
    if (spec->model.moe.experts > 0)
        g_string_append_printf(out, " ep%d etp%d %s", parallel->expert, parallel->expert_tensor,
                               spec_word(&spec_words_dispatcher, (int)parallel->moe_dispatcher));
    g_string_append_printf(out, " zero%d", parallel->zero);
    if (parallel->zero_group_gpus > 0)
        g_string_append_printf(out, "/%d", parallel->zero_group_gpus);
    if (strcmp(parallel->order, "tp-cp-ep-dp-pp") != 0)
        g_string_append_printf(out, " %s", parallel->order);
    if (parallel->pipeline > 1)
        g_string_append_printf(out, " %s",
                               parallel->schedule_file[0] != '\0'
                                   ? parallel->schedule_file
                                   : spec_word(&spec_words_schedule, (int)parallel->schedule));
    if (parallel->embedding_as_layer || parallel->loss_as_layer)
        g_string_append_printf(out, " (%s%s%s as layer)", parallel->embedding_as_layer ? "embedding" : "",
                               parallel->embedding_as_layer && parallel->loss_as_layer ? "+" : "",
                               parallel->loss_as_layer ? "loss" : "");
}

char *report_configuration(const Spec *spec)
{
    const SpecRecompute *recompute = &spec->training.recompute;
    GString *out = g_string_new(NULL);
    append_parallel(out, spec);
    g_autofree char *again = spec_recompute_words(recompute);
    g_string_append_printf(out, " recompute %s", again);
    if (spec->offload.activation_layers > 0)
        g_string_append_printf(out, " offload %d", spec->offload.activation_layers);
    g_string_append_printf(out, " %s%s", spec_word(&spec_words_attention, (int)cost_attention_kernel(spec)),
                           spec->execution.compiled ? " compiled" : "");
    const unsigned overlap = spec_overlap(spec);
    const char *before = " overlap ";
    for (int i = 0; i < spec_words_overlap.count; i++) {
        if ((overlap & 1u << i) == 0)
            continue;
        g_string_append_printf(out, "%s%s", before, orr_word(&spec_words_overlap, i));
        before = "+";
    }
    return g_string_free(out, FALSE);
}

void report_notes(const Report *report, GPtrArray *notes)
{
    spec_notes(report->spec, notes);
    if (report->mfu > 1)
        g_ptr_array_add(
            notes, g_strdup_printf("an MFU of %.1f %% is above the peak of the GPU: no step is that fast; "
                                   "model.time_frac or measured times scale it",
                                   100 * report->mfu));
}
