/* cli/plot_loop.c - see plot_loop.h. */
#include "cli/plot_loop.h"

#include "base/error.h"
#include "base/units.h"

static void add(GArray *phases, const WorkloadPhase *phase, int lane)
{
    const PlotPhase one = {.name = phase->phase->name,
                           .lane = lane,
                           .begin_s = (double)phase->begin_ps * 1e-12,
                           .end_s = (double)(phase->begin_ps + phase->ps) * 1e-12};
    g_array_append_val(phases, one);
}

bool cli_plot_loop(const ApiSimulation *simulation, const char *where, const PlotTarget *target,
                   GError **error)
{
    const Workload *loop = simulation->workload;
    if (loop == NULL)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: loop is the picture of a workload, and the scenario has none; give one with a "
                        "workload, or another --what",
                        where);
    g_autoptr(GArray) phases = g_array_new(FALSE, TRUE, sizeof(PlotPhase));
    g_autoptr(GPtrArray) lanes = g_ptr_array_new_with_free_func(g_free);
    char step[ORR_TEXT_SIZE];
    for (int p = 0; p < loop->part_count; p++)
        g_ptr_array_add(lanes,
                        g_strdup_printf("%s: %d GPUs, idle %.0f %% of the step", loop->part[p].name,
                                        loop->part[p].gpus,
                                        100 * (1 - (double)loop->part[p].busy_ps / (double)loop->step_ps)));
    for (int i = 0; i < loop->phase_count; i++) {
        const WorkloadPhase *phase = &loop->phase[i];
        if (phase->ps > 0 && phase->part >= 0)
            add(phases, phase, phase->part);
        if (phase->ps > 0 && phase->other >= 0 && phase->other != phase->part)
            add(phases, phase, phase->other);
    }
    g_autofree char *caption =
        g_strdup_printf("one turn of the loop; a step takes %s, bound by %s%s",
                        orr_text_seconds(step, (double)loop->step_ps * 1e-12), workload_bound_word(loop),
                        loop->staleness_steps > 0 ? "; generation works ahead of training" : "");
    return plot_loop(loop->spec->name, caption, (const char *const *)lanes->pdata, (int)lanes->len,
                     (const PlotPhase *)(void *)phases->data, (int)phases->len, target, error);
}
