/* report/memory.c - the memory of every simulated rank over the first steps as CSV, one line a change. */
#include "report/memory_walk.h"
#include "report/parts.h"

/* In the order of the columns. */
static const SimMem columns[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                  SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};

static void write_level(const Report *report, const ReportMoment *moment, void *data)
{
    GString *out = data;
    const SimLevel *level = moment->level;
    const int64_t time_ps = moment->in_step_ps + moment->step * report->result.step_ps;
    int64_t total = 0;
    g_string_append_printf(out, "%" G_GINT64_FORMAT ".%012" G_GINT64_FORMAT ",%d", time_ps / 1000000000000,
                           time_ps % 1000000000000, level->rank);
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++) {
        const int64_t bytes =
            level->bytes[columns[i]] - (columns[i] == SIM_MEM_OPTIMIZER ? moment->missing_bytes : 0);
        g_string_append_printf(out, ",%" G_GINT64_FORMAT, bytes);
        total += bytes;
    }
    g_string_append_printf(out, ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "\n", total,
                           level->bytes[SIM_MEM_HOST]);
}

void report_write_memory(const Report *report, int steps, GString *out)
{
    g_string_append(out, "time_s,rank");
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(out, ",%s_bytes", report_mem_name(columns[i]));
    g_string_append(out, ",total_bytes,host_bytes\n");
    report_walk_memory(report, steps, write_level, out);
}
