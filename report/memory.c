/* report/memory.c - the memory of every simulated rank over the first steps as CSV, one line a change.
 *
 * All steps are the one that was simulated, but for the optimizer's moments: software makes them in its first optimizer
 * step, so until then they are not there. Ignored: software that steps once with zeros before training begins.
 */
#include "report/parts.h"

/* In the order of the columns. */
static const SimMem columns[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                  SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};

static void write_level(GString *out, const SimLevel *level, int64_t time_ps, int64_t missing_bytes)
{
    int64_t total = 0;
    g_string_append_printf(out, "%" G_GINT64_FORMAT ".%012" G_GINT64_FORMAT ",%d", time_ps / 1000000000000,
                           time_ps % 1000000000000, level->rank);
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++) {
        const int64_t bytes =
            level->bytes[columns[i]] - (columns[i] == SIM_MEM_OPTIMIZER ? missing_bytes : 0);
        g_string_append_printf(out, ",%" G_GINT64_FORMAT, bytes);
        total += bytes;
    }
    g_string_append_printf(out, ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "\n", total,
                           level->bytes[SIM_MEM_HOST]);
}

typedef struct FirstStep {
    int64_t optimizer_ps, moments_bytes; /* when its optimizer begins; what that makes */
    const SimLevel *last;
    bool stepped;
} FirstStep;

static FirstStep *find_first_steps(const Report *report)
{
    const SimResult *result = &report->result;
    FirstStep *ranks = g_new0(FirstStep, result->ranks);
    for (int i = 0; i < result->ranks; i++) {
        const int each = report_ranks_a_stage(report);
        const SimPlan *plan =
            report->kinds.count > 0 ? &report->kinds.kinds[i % report->kinds.count].plan : &report->plan;
        ranks[i].moments_bytes = plan->ranks[i / each].moments_bytes;
        ranks[i].optimizer_ps = INT64_MAX;
    }
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        if (span->tag == SIM_TAG_OPTIMIZER)
            ranks[span->rank].optimizer_ps = MIN(ranks[span->rank].optimizer_ps, span->start_ps);
    }
    return ranks;
}

/* A line where the moments come, between the changes before and behind that instant. */
static void write_first_step(const Report *report, GString *out)
{
    FirstStep *ranks = find_first_steps(report);
    for (int64_t i = 0; i < report->result.level_count; i++) {
        const SimLevel *level = &report->result.levels[i];
        FirstStep *rank = &ranks[level->rank];
        if (!rank->stepped && level->time_ps >= rank->optimizer_ps) {
            rank->stepped = true;
            if (level->time_ps > rank->optimizer_ps && rank->last != NULL)
                write_level(out, rank->last, rank->optimizer_ps, 0);
        }
        write_level(out, level, level->time_ps, rank->stepped ? 0 : rank->moments_bytes);
        rank->last = level;
    }
    for (int i = 0; i < report->result.ranks; i++)
        if (!ranks[i].stepped && ranks[i].last != NULL && ranks[i].optimizer_ps < INT64_MAX)
            write_level(out, ranks[i].last, ranks[i].optimizer_ps, 0);
    g_free(ranks);
}

void report_write_memory(const Report *report, int steps, GString *out)
{
    const SimResult *result = &report->result;
    g_string_append(out, "time_s,rank");
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(out, ",%s_bytes", report_mem_name(columns[i]));
    g_string_append(out, ",total_bytes,host_bytes\n");
    if (steps > 0)
        write_first_step(report, out);
    for (int step = steps > 0 ? 1 : 0; step < MAX(1, steps); step++)
        for (int64_t at = 0; at < result->level_count; at++)
            write_level(out, &result->levels[at], result->levels[at].time_ps + step * result->step_ps, 0);
}
