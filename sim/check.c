/* sim/check.c - does a recorded run keep what any run must keep? This part: every instruction ran once, in
 * order, and no two ops overlap on a stream. It recomputes everything from spans and never looks at the
 * engine's own state. */
#include "sim/checked_run.h"

#include <inttypes.h>

static void number_ops(Check *c)
{
    const SimProgram *program = c->program;
    c->ordinal_of_instr = ORR_ARENA_NEW(c->arena, int32_t *, program->classes * SIM_MAX_STREAMS);
    c->first_op = ORR_ARENA_NEW(c->arena, int64_t, (int64_t)c->result->ranks * SIM_MAX_STREAMS + 1);
    int64_t *ops = ORR_ARENA_NEW(c->arena, int64_t, program->classes * SIM_MAX_STREAMS);
    for (int i = 0; i < program->classes * SIM_MAX_STREAMS; i++) {
        const SimList *list = &program->class_list[i / SIM_MAX_STREAMS].streams[i % SIM_MAX_STREAMS];
        c->ordinal_of_instr[i] = ORR_ARENA_NEW(c->arena, int32_t, list->count);
        for (int64_t k = 0; k < list->count; k++) {
            c->ordinal_of_instr[i][k] = (int32_t)ops[i];
            ops[i] += list->instrs[k].op != SIM_ONLY_WAITS;
        }
    }
    int64_t total = 0;
    for (int64_t i = 0; i < (int64_t)c->result->ranks * SIM_MAX_STREAMS; i++) {
        int64_t cls = i / SIM_MAX_STREAMS / program->replicas;
        c->first_op[i] = total;
        total += ops[cls * SIM_MAX_STREAMS + i % SIM_MAX_STREAMS];
    }
    c->first_op[(int64_t)c->result->ranks * SIM_MAX_STREAMS] = total;
    c->span_of_op = ORR_ARENA_NEW(c->arena, int64_t, total);
}

static bool same_op(const SimSpan *span, const SimOp *op, int32_t microbatch)
{
    return span->tag == op->tag && span->work == op->work && span->stage == op->stage &&
           span->microbatch == microbatch;
}

static bool place_spans(Check *c, GError **error)
{
    const SimResult *result = c->result;
    int64_t streams = (int64_t)result->ranks * SIM_MAX_STREAMS, last_end_ps = 0;
    int64_t *done = ORR_ARENA_NEW(c->arena, int64_t, streams);
    for (int64_t i = 0; i < result->span_count; i++) {
        const SimSpan *span = &result->spans[i];
        if (span->rank < 0 || span->rank >= result->ranks || span->stream >= SIM_MAX_STREAMS)
            return sim_check_fail(error, "span %" PRId64 " is on no rank and stream", i);
        int64_t stream = (int64_t)span->rank * SIM_MAX_STREAMS + span->stream;
        if (c->first_op[stream] + done[stream] >= c->first_op[stream + 1])
            return sim_check_fail(error, "rank %d stream %d runs more ops than it has", span->rank,
                                  span->stream);
        if (span->end_ps < last_end_ps || span->start_ps < 0 || span->end_ps < span->start_ps)
            return sim_check_fail(error, "span %" PRId64 " of rank %d ends out of order", i, span->rank);
        last_end_ps = span->end_ps;
        c->span_of_op[c->first_op[stream] + done[stream]++] = i;
    }
    for (int64_t i = 0; i < streams; i++) {
        if (c->first_op[i] + done[i] != c->first_op[i + 1])
            return sim_check_fail(error, "rank %d stream %d runs fewer ops than it has",
                                  (int)(i / SIM_MAX_STREAMS), (int)(i % SIM_MAX_STREAMS));
    }
    if (result->ops != result->span_count)
        return sim_check_fail(error, "%" PRId64 " ops counted, %" PRId64 " recorded", result->ops,
                              result->span_count);
    return true;
}

static bool check_stream(const Check *c, int rank, int stream, GError **error)
{
    const SimList *list = sim_check_list(c, rank, stream);
    const int32_t *ordinals = sim_check_ordinals(c, rank, stream);
    int64_t free_ps = 0;
    for (int64_t i = 0; i < list->count; i++) {
        const SimInstr *instr = &list->instrs[i];
        if (instr->op == SIM_ONLY_WAITS)
            continue;
        const SimSpan *span = sim_check_span(c, rank, stream, ordinals[i]);
        if (!same_op(span, &c->program->ops[instr->op], instr->microbatch))
            return sim_check_fail(error, "rank %d stream %d runs op %d out of order", rank, stream,
                                  ordinals[i]);
        if (span->start_ps < free_ps)
            return sim_check_fail(error, "ops %d and %d of rank %d stream %d overlap", ordinals[i] - 1,
                                  ordinals[i], rank, stream);
        free_ps = span->end_ps;
    }
    return true;
}

bool sim_run_check(const SimProgram *program, const SimResult *result, GError **error)
{
    g_assert(result->spans != NULL && result->levels != NULL);
    Check check = {.program = program, .result = result, .arena = orr_arena_new()};
    number_ops(&check);
    sim_check_sort_rates(&check);
    bool ok = place_spans(&check, error);
    for (int rank = 0; ok && rank < result->ranks; rank++) {
        for (int stream = 0; ok && stream < SIM_MAX_STREAMS; stream++)
            ok = check_stream(&check, rank, stream, error);
    }
    ok = ok && sim_check_dependencies(&check, error) && sim_check_times(&check, error) &&
         sim_check_memory(&check, error) && sim_check_capacities(&check, error) &&
         sim_check_tiers(&check, error);
    orr_arena_free(check.arena);
    return ok;
}
