/* plots/sweep.c - MFU and memory against one swept field. */
#include <string.h>

#include "plots/driver.h"

#define GIB 1073741824.0

bool plot_sweep(const char *title, const char *key, const PlotPoint *points, int count,
                const PlotTarget *target, GError **error)
{
    PlotJob job;
    plot_job_init(&job, "sweep");
    g_string_append(job.csv, "value,mfu_percent,step_s,reserved_gib,fits\n");
    bool numbers = true;
    double fullest = 0.0, best = 0.0, capacity = 0.0;
    for (int i = 0; i < count; i++) {
        char mfu[G_ASCII_DTOSTR_BUF_SIZE], step[G_ASCII_DTOSTR_BUF_SIZE], memory[G_ASCII_DTOSTR_BUF_SIZE];
        plot_csv_text(job.csv, points[i].value);
        numbers = numbers && strspn(points[i].value, "0123456789.") > 0; /* with a unit behind, or not */
        g_string_append_printf(job.csv, ",%s,%s,%s,%d\n",
                               g_ascii_formatd(mfu, sizeof mfu, "%.6g", points[i].mfu * 100.0),
                               g_ascii_formatd(step, sizeof step, "%.9g", points[i].step_s),
                               g_ascii_formatd(memory, sizeof memory, "%.6g", points[i].reserved_bytes / GIB),
                               points[i].fits ? 1 : 0);
        fullest = MAX(fullest, points[i].reserved_bytes / GIB);
        capacity = MAX(capacity, points[i].capacity_bytes / GIB);
        best = MAX(best, points[i].mfu * 100.0);
    }
    g_autofree char *caption = g_strdup_printf(
        "MFU, and memory reserved on the fullest stage, against %s; hollow: does not fit", key);
    plot_set_heading(&job, title, caption);
    plot_set_text(&job, "swept", key);
    plot_set_number(&job, "numbers", numbers); /* else words, which no line joins */
    plot_set_number(&job, "points", count);
    plot_set_number(&job, "capacity", capacity);
    plot_set_number(&job, "fullest", fullest);
    plot_set_number(&job, "best", best);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
