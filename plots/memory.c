/* plots/memory.c - memory over the step of some stages, and what fills every stage at its peak. */
#include <math.h>

#include "plots/data.h"
#include "plots/driver.h"
#include "report/parts.h"

#define GIB       1073741824.0
#define MAX_LINES 7

enum { MANY_LEVELS = 320 };

/* The order in which kinds are stacked: what stays at the bottom. */
static const SimMem stack[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};

static void append_gib(GString *csv, double bytes)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_c(csv, ',');
    g_string_append(csv, g_ascii_formatd(text, sizeof text, "%.6g", bytes / GIB));
}

static void add_level(GString *csv, int rank, double time, const int64_t bytes[SIM_MEM_COUNT])
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    double sum = 0.0;
    g_string_append_printf(csv, "%d,%s", rank, g_ascii_formatd(text, sizeof text, "%.9g", time));
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++) {
        append_gib(csv, (double)bytes[stack[i]]);
        sum += (double)bytes[stack[i]];
    }
    append_gib(csv, sum);
    g_string_append_c(csv, '\n');
}

static int64_t sum_of(const SimLevel *level)
{
    int64_t sum = 0;
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        sum += level->bytes[stack[i]];
    return sum;
}

/* Levels of a rank; of more than can be told apart, the fullest and the last of each of many equal parts of the step. */
static GArray *levels_of(const Report *report, int rank)
{
    const SimResult *result = &report->result;
    const int replica = rank * report->program.replicas;
    GArray *all = g_array_new(FALSE, FALSE, sizeof(const SimLevel *));
    for (int64_t i = 0; i < result->level_count; i++) {
        const SimLevel *level = &result->levels[i];
        if (level->rank == replica)
            g_array_append_val(all, level);
    }
    if (all->len <= 2 * MANY_LEVELS)
        return all;
    GArray *thin = g_array_new(FALSE, FALSE, sizeof(const SimLevel *));
    for (guint i = 0, end; i < all->len; i = end) {
        const SimLevel *fullest = g_array_index(all, const SimLevel *, i), *last = fullest;
        const double part_ps = (double)result->end_ps / MANY_LEVELS,
                     part = floor((double)fullest->time_ps / part_ps);
        for (end = i + 1; end < all->len; end++) {
            const SimLevel *level = g_array_index(all, const SimLevel *, end);
            if (floor((double)level->time_ps / part_ps) > part)
                break;
            last = level;
            fullest = sum_of(level) > sum_of(fullest) ? level : fullest;
        }
        g_array_append_val(thin, fullest);
        if (last != fullest)
            g_array_append_val(thin, last);
    }
    g_array_free(all, TRUE);
    return thin;
}

static void add_rank(GString *csv, const Report *report, int rank, double unit_s)
{
    const int64_t *bytes = report->program.class_list[rank].static_bytes;
    g_autoptr(GArray) levels = levels_of(report, rank);
    add_level(csv, rank, 0.0, bytes);
    for (guint i = 0; i < levels->len; i++) {
        const SimLevel *level = g_array_index(levels, const SimLevel *, i);
        bytes = level->bytes;
        add_level(csv, rank, (double)level->time_ps * 1e-12 / unit_s, bytes);
    }
    add_level(csv, rank, (double)report->result.end_ps * 1e-12 / unit_s, bytes);
}

static int fullest_rank(const Report *report)
{
    int fullest = 0;
    for (int i = 1; i < report->stage_count; i++)
        if (report->stages[i].peak_bytes > report->stages[fullest].peak_bytes)
            fullest = i;
    return MIN(fullest, report->program.classes - 1);
}

/* `most` of the ranks, evenly spread; the fullest takes the place of its neighbour. */
static GArray *chosen_ranks(const Report *report, int most, int fullest)
{
    const int ranks = report->program.classes, count = MIN(ranks, most);
    GArray *chosen = g_array_new(FALSE, FALSE, sizeof(int));
    int nearest = 0;
    for (int i = 0; i < count; i++) {
        const int rank = count > 1 ? (int)((int64_t)i * (ranks - 1) / (count - 1)) : fullest;
        g_array_append_val(chosen, rank);
        if (abs(rank - fullest) < abs(g_array_index(chosen, int, nearest) - fullest))
            nearest = i;
    }
    g_array_index(chosen, int, nearest) = fullest;
    return chosen;
}

PlotLevels plot_levels(const Report *report, int most_ranks)
{
    g_assert(report->result.levels != NULL);
    double unit_s = 1.0;
    PlotLevels levels = {.csv = g_string_new("rank,time"), .fullest = fullest_rank(report)};
    levels.unit = plot_time_unit((double)report->step_ps * 1e-12, &unit_s);
    levels.end = (double)report->result.end_ps * 1e-12 / unit_s;
    levels.ranks = chosen_ranks(report, most_ranks, levels.fullest);
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(levels.csv, ",%s_gib", report_mem_name(stack[i]));
    g_string_append(levels.csv, ",total_gib\n");
    for (guint i = 0; i < levels.ranks->len; i++)
        add_rank(levels.csv, report, g_array_index(levels.ranks, int, i), unit_s);
    return levels;
}

void plot_levels_clear(PlotLevels *levels)
{
    g_string_free(levels->csv, TRUE);
    g_array_free(levels->ranks, TRUE);
}

GString *plot_stages(const Report *report)
{
    GString *csv = g_string_new("stage");
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(csv, ",%s_gib", report_mem_name(stack[i]));
    g_string_append(csv, ",reserved_besides_gib\n");
    for (int i = 0; i < report->stage_count; i++) {
        const ReportStage *stage = &report->stages[i];
        const double bytes[] = {stage->weights_bytes,   stage->gradients_bytes,
                                stage->optimizer_bytes, stage->activations_bytes,
                                stage->workspace_bytes, fmax(stage->reserved_bytes - stage->peak_bytes, 0.0)};
        g_string_append_printf(csv, "%d", stage->stage);
        for (gsize kind = 0; kind < G_N_ELEMENTS(bytes); kind++)
            append_gib(csv, bytes[kind]);
        g_string_append_c(csv, '\n');
    }
    return csv;
}

static void set_captions(PlotJob *job, const Report *report, const PlotLevels *levels)
{
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < levels->ranks->len; i++)
        g_string_append_printf(names, "%s%d", i > 0 ? " " : "", g_array_index(levels->ranks, int, i));
    g_autofree char *caption =
        report->fits ? g_strdup_printf("memory of one GPU: the fullest stage reserves %.1f of %.1f GiB",
                                       report->reserved_bytes / GIB, report->capacity_bytes / GIB)
                     : g_strdup_printf("memory of one GPU: does not fit, %.1f GiB short of %.1f GiB",
                                       report->short_bytes / GIB, report->capacity_bytes / GIB);
    plot_set_heading(job, report->spec->name, caption);
    plot_set_text(job, "line_names", names->str);
    plot_set_number(job, "line_count", levels->ranks->len);
    plot_set_number(job, "fullest_rank", levels->fullest);
}

bool plot_memory(const Report *report, const PlotTarget *target, GError **error)
{
    PlotJob job;
    PlotLevels levels = plot_levels(report, MAX_LINES);
    plot_job_init(&job, "memory");
    g_string_append_len(job.csv, levels.csv->str, (gssize)levels.csv->len);
    job.extra_csv = plot_stages(report);
    job.extra_name = "memory-stages";
    set_captions(&job, report, &levels);
    plot_set_text(&job, "unit", levels.unit);
    plot_set_number(&job, "step", levels.end);
    plot_set_number(&job, "capacity", report->capacity_bytes / GIB);
    plot_set_number(&job, "fullest", report->reserved_bytes / GIB);
    plot_set_number(&job, "stages", report->stage_count);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    plot_levels_clear(&levels);
    return ok;
}
