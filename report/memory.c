/* report/memory.c - the memory of every simulated rank over the step as CSV, one line a change. */
#include "report/parts.h"

/* In the order of the columns. */
static const SimMem columns[SIM_MEM_GPU_COUNT] = {SIM_MEM_WEIGHTS, SIM_MEM_GRADIENTS, SIM_MEM_OPTIMIZER,
                                                  SIM_MEM_ACTIVATIONS, SIM_MEM_WORKSPACE};

void report_write_memory(const Report *report, GString *out)
{
    const SimResult *result = &report->result;
    g_string_append(out, "time_s,rank");
    for (int i = 0; i < SIM_MEM_GPU_COUNT; i++)
        g_string_append_printf(out, ",%s_bytes", report_mem_name(columns[i]));
    g_string_append(out, ",total_bytes,host_bytes\n");
    for (int64_t at = 0; at < result->level_count; at++) {
        const SimLevel *level = &result->levels[at];
        int64_t total = 0;
        g_string_append_printf(out, "%" G_GINT64_FORMAT ".%012" G_GINT64_FORMAT ",%d",
                               level->time_ps / 1000000000000, level->time_ps % 1000000000000, level->rank);
        for (int i = 0; i < SIM_MEM_GPU_COUNT; i++) {
            g_string_append_printf(out, ",%" G_GINT64_FORMAT, level->bytes[columns[i]]);
            total += level->bytes[columns[i]];
        }
        g_string_append_printf(out, ",%" G_GINT64_FORMAT ",%" G_GINT64_FORMAT "\n", total,
                               level->bytes[SIM_MEM_HOST]);
    }
}
