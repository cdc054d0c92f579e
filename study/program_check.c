/* study/program_check.c - what the engine takes for granted of a program, for one that somebody wrote. */
#include "study/program_text.h"

#include <inttypes.h>

/* Bytes that come and go in all ranks together, and instances of all resources and groups. */
#define MOST_BYTES     4e18
#define MOST_INSTANCES ((int64_t)1 << 26)

typedef struct Check {
    const SimProgram *program;
    int cls, stream;
    int64_t at;                          /* instruction */
    int stream_of_group[SIM_MAX_GROUPS]; /* of the class; -1: none */
    double bytes;
    GError **error;
} Check;

G_GNUC_PRINTF(2, 3) static bool fail(const Check *c, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *message = g_strdup_vprintf(format, args);
    va_end(args);
    return orr_fail(c->error, ORR_ERROR_INPUT, "class %d, stream %d, instruction %" PRId64 ": %s", c->cls,
                    c->stream, c->at, message);
}

static bool check_wait(const Check *c, const SimInstr *instr)
{
    if (instr->wait_count == 0)
        return true;
    const int cls = sim_wait_class(instr, c->cls), stream = sim_wait_stream(instr);
    const int64_t count = c->program->class_list[cls].streams[stream].count;
    return instr->wait_count <= count ||
           fail(c, "it waits for %d instructions of stream %d of class %d, which has %" PRId64,
                instr->wait_count, stream, cls, count);
}

/* All replicas of the class are members, and in one stream. */
static bool check_collective(Check *c, const SimOp *op)
{
    const SimGroups *group = &c->program->groups[op->group];
    int *stream = &c->stream_of_group[op->group];
    if (*stream >= 0 && *stream != c->stream)
        return fail(c, "group %d has collectives in stream %d already: a class has them in one stream",
                    op->group, *stream);
    const bool seen = *stream == c->stream;
    *stream = c->stream;
    if (seen || group->instance_of_rank == NULL)
        return true;
    const int32_t first = c->cls * c->program->replicas;
    for (int32_t r = first; r < first + c->program->replicas; r++)
        if (group->instance_of_rank[r] < 0)
            return fail(c, "rank %d is not a member of group %d", r, op->group);
    return true;
}

static double moved(const int64_t *bytes)
{
    double sum = 0;
    for (int kind = 0; kind < SIM_MAX_MEMS; kind++)
        sum += bytes[kind] < 0 ? -(double)bytes[kind] : (double)bytes[kind];
    return sum;
}

static bool check_instr(Check *c, const SimInstr *instr)
{
    if (!check_wait(c, instr))
        return false;
    if (instr->op == SIM_ONLY_WAITS)
        return true;
    const SimOp *op = &c->program->ops[instr->op];
    if (op->mem >= 0) {
        const SimMemDelta *change = &c->program->mems[op->mem];
        c->bytes += (moved(change->start_bytes) + moved(change->end_bytes)) * c->program->replicas;
    }
    return op->kind == SIM_OP || check_collective(c, op);
}

static bool check_class(Check *c)
{
    const SimClass *cls = &c->program->class_list[c->cls];
    c->bytes += moved(cls->static_bytes) * c->program->replicas;
    for (int group = 0; group < SIM_MAX_GROUPS; group++)
        c->stream_of_group[group] = -1;
    for (c->stream = 0; c->stream < SIM_MAX_STREAMS; c->stream++) {
        const SimList *list = &cls->streams[c->stream];
        for (c->at = 0; c->at < list->count; c->at++)
            if (!check_instr(c, &list->instrs[c->at]))
                return false;
    }
    return c->bytes <= MOST_BYTES ||
           orr_fail(c->error, ORR_ERROR_INPUT, "all ranks together take and give back more than %g bytes",
                    MOST_BYTES);
}

/* Instances of a resource; those without a map are the ranks. */
static int64_t instances_of(const SimProgram *program, int row)
{
    return program->resources[row].instance_of_rank != NULL ? program->resources[row].instances
                                                            : (int64_t)program->classes * program->replicas;
}

static bool check_shares(const SimProgram *program, GError **error)
{
    int64_t shares = 0;
    for (int32_t i = 0; i < program->op_count; i++) {
        const SimShare *share;
        const SimWork *work = &program->works[program->ops[i].work];
        for (int k = 0; (share = sim_work_share(work, k)) != NULL; k++, shares++)
            if (share->instance > instances_of(program, share->resource))
                return orr_fail(error, ORR_ERROR_INPUT,
                                "op %d holds instance %d of resource %d, which has %" PRId64, i,
                                share->instance - 1, share->resource, instances_of(program, share->resource));
    }
    return shares < INT32_MAX / 2 ||
           orr_fail(error, ORR_ERROR_INPUT, "all ops together hold more than %d shares", INT32_MAX / 2);
}

static bool check_resources(const SimProgram *program, GError **error)
{
    int64_t instances = 0, before_ps = 0;
    for (int row = 0; row < program->resource_count; row++)
        instances += instances_of(program, row);
    for (int group = 0; group < program->group_count; group++)
        instances += program->groups[group].instances;
    if (instances > MOST_INSTANCES)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "resources and groups have %" PRId64 " instances, and at most %" PRId64
                        " are simulated",
                        instances, MOST_INSTANCES);
    for (int64_t i = 0; i < program->capacity_event_count; i++) {
        const SimCapacityEvent *event = &program->capacity_events[i];
        if (event->instance >= instances_of(program, event->resource))
            return orr_fail(error, ORR_ERROR_INPUT,
                            "event %" PRId64 " changes instance %d of resource %d, which has %" PRId64, i,
                            event->instance, event->resource, instances_of(program, event->resource));
        if (event->time_ps < before_ps)
            return orr_fail(error, ORR_ERROR_INPUT,
                            "event %" PRId64 " is before the one above it: give events by time", i);
        before_ps = event->time_ps;
    }
    return check_shares(program, error);
}

bool program_text_check(const SimProgram *program, GError **error)
{
    Check c = {.program = program, .error = error};
    if (program->tier_count == 0 || program->mem_kind_count == 0 || program->stream_count == 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "a program needs lines \"tier\", \"memory\" and \"stream\", one of each at least");
    if (!check_resources(program, error))
        return false;
    for (c.cls = 0; c.cls < program->classes; c.cls++)
        if (!check_class(&c))
            return false;
    return true;
}
