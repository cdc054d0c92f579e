/* study/program_answer.c - what a run of a program came to, for `orrery replay`. */
#include "study/program_text.h"

#include <inttypes.h>

#include "base/units.h"
#include "base/text.h"
#include "program/join.h"
#include "report/page.h"
#include "report/parts.h"

bool program_text_run(const ProgramText *text, bool check, OrrArena *arena, SimResult *ret_result,
                      bool *ret_fits, GError **error)
{
    SimProgram program = text->program;
    if (!sim_engine_run(&program, check ? SIM_RECORD_SPANS | SIM_RECORD_LEVELS : 0, arena, ret_result, error))
        return false;
    *ret_fits = !check || !sim_run_overfills(&program, ret_result);
    if (!*ret_fits)
        sim_program_unbounded(&program, arena);
    if (check && !sim_run_check(&program, ret_result, error)) {
        if (error != NULL)
            (*error)->code = ORR_ERROR_INPUT; /* of a program that somebody wrote it is no mistake of ours */
        return false;
    }
    if (text->own_classes < program.classes)
        sim_result_cut(ret_result, text->own_classes * program.replicas, program.skewed);
    return true;
}

/* The rank of a class that takes longest; the lowest number on a tie. */
static const SimRankResult *slowest(const SimProgram *program, const SimResult *result, int cls)
{
    const SimRankResult *most = &result->rank[cls * program->replicas];
    for (const SimRankResult *rank = most; rank < &result->rank[(cls + 1) * program->replicas]; rank++)
        if (rank->end_ps - rank->start_ps > most->end_ps - most->start_ps)
            most = rank;
    return most;
}

static int64_t peak_bytes(const SimProgram *program, const SimResult *result, int cls)
{
    int64_t most = 0;
    for (int r = cls * program->replicas; r < (cls + 1) * program->replicas; r++)
        most = MAX(most, result->rank[r].peak_bytes);
    return most;
}

static void add_times(const SimProgram *program, const SimResult *result, int cls, OrrTable *table)
{
    char seconds[ORR_TEXT_SIZE], memory[ORR_TEXT_SIZE];
    ReportTime times[REPORT_TIME_COUNT];
    const SimRankResult *rank = slowest(program, result, cls);
    g_autoptr(GString) where = g_string_new(NULL);
    report_times(rank->part_ps, rank->idle_ps, NULL, times);
    for (int i = 0; i <= SIM_PART_COUNT; i++)
        if (times[i].ps > 0)
            g_string_append_printf(where, "%s%s %s", where->len > 0 ? ", " : "", times[i].label,
                                   orr_text_seconds(seconds, (double)times[i].ps * 1e-12));
    g_autofree char *name = g_strdup_printf("%d", cls);
    const char *const cells[] = {name, orr_text_bytes(memory, (double)peak_bytes(program, result, cls)),
                                 where->str};
    orr_table_row(table, cells);
}

void program_answer_text(const ProgramText *text, const SimResult *result, GString *out)
{
    const SimProgram *program = &text->program;
    static const char *const heads[] = {"class", "peak memory", "where the slowest rank's time goes"};
    char seconds[ORR_TEXT_SIZE];
    g_string_append_printf(out, "step: %s (%" PRId64 " ps)\n",
                           orr_text_seconds(seconds, (double)result->step_ps * 1e-12), result->step_ps);
    g_string_append_printf(
        out, "ranks: %d (%d classes x %d replicas), %" PRId64 " ops; rank %d takes longest\n\n",
        result->ranks, text->own_classes, program->replicas, result->ops, result->critical_rank);
    OrrTable *table = orr_table_new(heads, (int)G_N_ELEMENTS(heads));
    for (int cls = 0; cls < text->own_classes; cls++)
        add_times(program, result, cls, table);
    orr_table_print_within(table, out, 0, report_page_width());
    orr_table_free(table);
}

void program_answer_json(const ProgramText *text, const SimResult *result, GString *out)
{
    const SimProgram *program = &text->program;
    OrrJsonWriter w;
    ReportTime times[REPORT_TIME_COUNT];
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "step_ps", result->step_ps);
    orr_jw_ps(&w, "step_s", result->step_ps);
    orr_jw_ps(&w, "end_s", result->end_ps);
    orr_jw_int(&w, "ranks", result->ranks);
    orr_jw_int(&w, "ops", result->ops);
    orr_jw_int(&w, "critical_rank", result->critical_rank);
    orr_jw_begin(&w, "classes", '[');
    for (int cls = 0; cls < text->own_classes; cls++) {
        const SimRankResult *rank = slowest(program, result, cls);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_int(&w, "ranks", program->replicas);
        orr_jw_int(&w, "peak_bytes", peak_bytes(program, result, cls));
        report_times(rank->part_ps, rank->idle_ps, NULL, times);
        for (int i = 0; i <= SIM_PART_COUNT; i++)
            orr_jw_ps(&w, times[i].key, times[i].ps);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}
