/* plots/finetune.c - what fills a GPU's memory when all weights are trained, adapters, or adapters beside narrow weights. */
#include <math.h>

#include "plots/driver.h"

#define GIB 1073741824.0

static void add_gib(GString *csv, double bytes)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(csv, ",%s", g_ascii_formatd(text, sizeof text, "%.6g", bytes / GIB));
}

bool plot_finetune(const char *title, const PlotTuning *tunings, int count, const PlotTarget *target,
                   GError **error)
{
    PlotJob job;
    double top = 0, capacity = 0;
    plot_job_init(&job, "finetune");
    g_string_append(job.csv, "what,weights_gib,gradients_gib,optimizer_gib,activations_gib,workspace_gib,"
                             "reserved_besides_gib,step_s\n");
    for (int i = 0; i < count; i++) {
        const ReportStage *stage = &tunings[i].fullest;
        char step[G_ASCII_DTOSTR_BUF_SIZE];
        plot_csv_text(job.csv, tunings[i].name);
        add_gib(job.csv, stage->weights_bytes);
        add_gib(job.csv, stage->gradients_bytes);
        add_gib(job.csv, stage->optimizer_bytes);
        add_gib(job.csv, stage->activations_bytes);
        add_gib(job.csv, stage->workspace_bytes);
        add_gib(job.csv, fmax(stage->reserved_bytes - stage->peak_bytes, 0));
        g_string_append_printf(job.csv, ",%s\n",
                               g_ascii_formatd(step, sizeof step, "%.6g", tunings[i].step_s));
        top = fmax(top, fmax(stage->reserved_bytes, stage->capacity_bytes) / GIB);
        capacity = stage->capacity_bytes / GIB;
    }
    plot_set_heading(&job, title, "memory of one GPU of the fullest stage at its peak, by what is trained");
    plot_set_number(&job, "bars", count);
    plot_set_number(&job, "top", top);
    plot_set_number(&job, "capacity", capacity);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
