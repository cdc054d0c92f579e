/* sim/check_say.c - what the checks of a run say, and how long an op of theirs should take. */
#include <stdarg.h>

#include "sim/checked_run.h"

bool sim_check_fail(GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    g_set_error(error, ORR_ERROR, ORR_ERROR_INTERNAL, "the run breaks an invariant: %s", text);
    g_free(text);
    return false;
}

int64_t sim_check_duration_ps(const Check *c, int rank, int stream, const SimOp *op)
{
    const SimWork *work = &c->program->works[op->work];
    const SimStreamRow *row = &sim_program_streams(c->program, NULL)[stream];
    if (c->program->rank_speed == NULL || row->kind != SIM_RUNS_KERNELS)
        return sim_work_duration_ps(work);
    return sim_duration_at_speed_ps(sim_work_duration_ps(work), sim_work_compute_ps(work),
                                    c->program->rank_speed[rank]);
}
