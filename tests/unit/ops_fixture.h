/* tests/unit/ops_fixture.h - programs of single ops and what they hold, and checked runs of them. */
#ifndef ORR_TESTS_OPS_FIXTURE_H
#define ORR_TESTS_OPS_FIXTURE_H

#include "tests/unit/sim_fixture.h"

#include <string.h>

enum { MAX_RANKS = 6 };

/* Ranks with one op on each of some streams, and what they hold. */
typedef struct {
    SimClass classes[MAX_RANKS];
    SimInstr instrs[MAX_RANKS][SIM_STREAM_COUNT];
    SimOp ops[MAX_RANKS * SIM_STREAM_COUNT]; /* one a work */
    SimWork works[MAX_RANKS * SIM_STREAM_COUNT];
    SimProgram program;
} Ops;

static inline void ops_init(Ops *ops, int ranks, const SimResource *resources, int resource_count)
{
    memset(ops, 0, sizeof *ops);
    for (int i = 0; i < MAX_RANKS * SIM_STREAM_COUNT; i++)
        ops->ops[i].mem = -1;
    ops->program = (SimProgram){.classes = ranks,
                                .replicas = 1,
                                .class_list = ops->classes,
                                .ops = ops->ops,
                                .op_count = MAX_RANKS * SIM_STREAM_COUNT,
                                .works = ops->works,
                                .work_count = MAX_RANKS * SIM_STREAM_COUNT,
                                .resources = resources,
                                .resource_count = resource_count,
                                .rate_grain = 1};
}

static inline SimWork *add_op(Ops *ops, int rank, int stream, int64_t duration_ps)
{
    const int at = rank * SIM_STREAM_COUNT + stream;
    ops->ops[at] = (SimOp){.kind = SIM_OP, .work = at, .mem = -1, .stage = -1};
    ops->instrs[rank][stream] = (SimInstr){.op = at, .microbatch = -1};
    ops->classes[rank].streams[stream] = (SimList){.instrs = &ops->instrs[rank][stream], .count = 1};
    ops->works[at].part_ps[stream == SIM_STREAM_COMPUTE ? SIM_PART_COMPUTE : SIM_PART_DATA_COMM] =
        duration_ps;
    return &ops->works[at];
}

static inline SimOp *op_of(Ops *ops, int rank, int stream)
{
    return &ops->ops[rank * SIM_STREAM_COUNT + stream];
}

static inline SimResult run(const SimProgram *program, OrrArena *arena)
{
    GError *error = NULL;
    SimResult result;
    sim_engine_run(program, SIM_RECORD_SPANS | SIM_RECORD_LEVELS, arena, &result, &error);
    g_assert_no_error(error);
    sim_run_check(program, &result, &error);
    g_assert_no_error(error);
    return result;
}

#endif
