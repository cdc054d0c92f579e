/* sim/checked_run.h - what the parts of sim_run_check() share. */
#ifndef ORR_SIM_CHECKED_RUN_H
#define ORR_SIM_CHECKED_RUN_H

#include "sim/engine.h"

typedef struct {
    const SimProgram *program;
    const SimResult *result;
    OrrArena *arena;
    int32_t **ordinal_of_instr;  /* [class x streams] ops of the list before each instruction */
    int64_t *first_op;           /* [rank x streams + 1] index into span_of_op of a stream's first op */
    int64_t *span_of_op;         /* span index of each executed op */
    const SimRateChange **rates; /* by rank, stream and time */
    int64_t *first_rate;         /* [rank x streams + 1] index into rates */
} Check;

/* Sets a message and gives false, so that `return sim_check_fail(...)` says it all. */
bool sim_check_fail(GError **error, const char *format, ...) G_GNUC_PRINTF(2, 3);

static inline const SimList *sim_check_list(const Check *check, int rank, int stream)
{
    return &check->program->class_list[rank / check->program->replicas].streams[stream];
}

static inline const int32_t *sim_check_ordinals(const Check *check, int rank, int stream)
{
    return check->ordinal_of_instr[rank / check->program->replicas * SIM_MAX_STREAMS + stream];
}

static inline const SimSpan *sim_check_span(const Check *check, int rank, int stream, int64_t ordinal)
{
    int64_t op = check->first_op[(int64_t)rank * SIM_MAX_STREAMS + stream] + ordinal;
    return &check->result->spans[check->span_of_op[op]];
}

/* How long an op of a rank's stream takes alone, by the rank's speed. */
int64_t sim_check_duration_ps(const Check *check, int rank, int stream, const SimOp *op);

bool sim_check_dependencies(const Check *check, GError **error); /* check_order.c */
bool sim_check_times(const Check *check, GError **error);        /* check_account.c */
bool sim_check_memory(const Check *check, GError **error);       /* check_account.c */
/* check_rates.c */
void sim_check_sort_rates(Check *check);
/* A span at the rates that its stream had does `duration_ps` of work, and no more. */
bool sim_check_work(const Check *check, const SimSpan *span, int64_t duration_ps, GError **error);
bool sim_check_capacities(const Check *check, GError **error);
bool sim_check_tiers(const Check *check, GError **error);

#endif
