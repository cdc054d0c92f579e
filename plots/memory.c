/* plots/memory.c - memory over the step of some stages, and what fills every stage at its peak. */
#include "plots/driver.h"

#include <math.h>

#include "report/parts.h"

#define GIB       1073741824.0
#define MAX_LINES 8

/* The order in which kinds are stacked: what stays at the bottom. */
static const SimMem stack[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};

static double total_gib(const int64_t bytes[SIM_MEM_COUNT])
{
    double sum = 0.0;
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        sum += (double)bytes[i];
    return sum / GIB;
}

static void add_level(GString *csv, double time, double gib)
{
    char x[G_ASCII_DTOSTR_BUF_SIZE], y[G_ASCII_DTOSTR_BUF_SIZE];
    g_ascii_formatd(x, sizeof x, "%.9g", time);
    g_ascii_formatd(y, sizeof y, "%.6g", gib);
    g_string_append_printf(csv, "%s,%s\n", x, y);
}

/* Lines of the first replica of up to MAX_LINES pipeline ranks, one gnuplot index each. */
static void add_lines(PlotJob *job, const Report *report, double unit_s)
{
    const SimResult *result = &report->result;
    const int ranks = report->program.classes, replicas = report->program.replicas;
    const int lines = MIN(ranks, MAX_LINES);
    const double step = (double)result->end_ps * 1e-12 / unit_s;
    g_autoptr(GString) names = g_string_new(NULL);
    g_string_append(job->csv, "time,memory_gib\n");
    for (int line = 0; line < lines; line++) {
        const int rank = lines > 1 ? (int)((int64_t)line * (ranks - 1) / (lines - 1)) : 0;
        double gib = total_gib(report->program.class_list[rank].static_bytes);
        if (line > 0)
            g_string_append(job->csv, "\n\n");
        add_level(job->csv, 0.0, gib);
        for (int64_t i = 0; i < result->level_count; i++) {
            const SimLevel *level = &result->levels[i];
            if (level->rank != rank * replicas)
                continue;
            gib = total_gib(level->bytes);
            add_level(job->csv, (double)level->time_ps * 1e-12 / unit_s, gib);
        }
        add_level(job->csv, step, gib);
        g_string_append_printf(names, "%s%d", line > 0 ? " " : "", rank);
    }
    plot_set_text(job, "line_names", names->str);
    plot_set_number(job, "line_count", lines);
}

static void add_stages(PlotJob *job, const Report *report)
{
    job->extra_csv = g_string_new("stage");
    job->extra_name = "memory-stages";
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(job->extra_csv, ",%s_gib", report_mem_name(stack[i]));
    g_string_append(job->extra_csv, ",reserved_besides_gib\n");
    for (int i = 0; i < report->stage_count; i++) {
        const ReportStage *stage = &report->stages[i];
        const double bytes[] = {stage->weights_bytes,   stage->gradients_bytes,
                                stage->optimizer_bytes, stage->activations_bytes,
                                stage->workspace_bytes, fmax(stage->reserved_bytes - stage->peak_bytes, 0.0)};
        g_string_append_printf(job->extra_csv, "%d", stage->stage);
        for (gsize kind = 0; kind < G_N_ELEMENTS(bytes); kind++) {
            char number[G_ASCII_DTOSTR_BUF_SIZE];
            g_string_append_printf(job->extra_csv, ",%s",
                                   g_ascii_formatd(number, sizeof number, "%.6g", bytes[kind] / GIB));
        }
        g_string_append_c(job->extra_csv, '\n');
    }
}

bool plot_memory(const Report *report, const PlotTarget *target, GError **error)
{
    g_assert(report->result.levels != NULL);
    PlotJob job;
    plot_job_init(&job, "memory");
    const double step_s = (double)report->step_ps * 1e-12;
    double unit_s = 1.0;
    plot_set_text(&job, "unit", plot_time_unit(step_s, &unit_s));
    plot_set_number(&job, "step", (double)report->result.end_ps * 1e-12 / unit_s);
    add_lines(&job, report, unit_s);
    add_stages(&job, report);
    plot_set_text(&job, "heading", report->spec->name);
    g_autofree char *caption =
        report->fits ? g_strdup_printf("memory of one GPU: the fullest stage reserves %.1f of %.1f GiB",
                                       report->reserved_bytes / GIB, report->capacity_bytes / GIB)
                     : g_strdup_printf("memory of one GPU: does not fit, %.1f GiB short of %.1f GiB",
                                       report->short_bytes / GIB, report->capacity_bytes / GIB);
    plot_set_text(&job, "caption", caption);
    plot_set_number(&job, "capacity", report->capacity_bytes / GIB);
    plot_set_number(&job, "fullest", report->reserved_bytes / GIB);
    plot_set_number(&job, "stages", report->stage_count);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
