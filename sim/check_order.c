/* sim/check_order.c - every op starts exactly when its stream, its waits and its group let it: not earlier,
 * and, since the engine never dawdles, not later. */
#include "sim/checked_run.h"

#include <inttypes.h>

/* When a wait is over. The end of an op; of a wait, only a lower bound: the end of the op before it. */
static int64_t completed_ps(const Check *c, int rank, const SimInstr *wait, bool *exact)
{
    const int replicas = c->program->replicas, stream = sim_wait_stream(wait);
    const int other = sim_wait_class(wait, rank / replicas) * replicas + rank % replicas;
    const SimList *list = sim_check_list(c, other, stream);
    int64_t index = wait->wait_count - 1;
    if (list->instrs[index].op == SIM_ONLY_WAITS)
        *exact = false;
    while (index >= 0 && list->instrs[index].op == SIM_ONLY_WAITS)
        index--;
    if (index < 0)
        return 0;
    int32_t ordinal = sim_check_ordinals(c, other, stream)[index];
    return sim_check_span(c, other, stream, ordinal)->end_ps;
}

typedef struct {
    int64_t ready_ps, start_ps, end_ps, duration_ps;
    const SimSpan *span; /* of the last member */
    int32_t members;
    bool exact;
} Meeting;

/* Meetings of an instance are numbered in the order in which its members come to them. */
typedef struct {
    int32_t *meetings; /* [class] how often it uses the group */
    int64_t *first;    /* [instance] in `list` */
    Meeting *list;
    int64_t count;
} GroupMeetings;

static void number_meetings(const Check *c, int group, GroupMeetings *meetings)
{
    const SimProgram *program = c->program;
    const SimGroups *groups = &program->groups[group];
    meetings->meetings = ORR_ARENA_NEW(c->arena, int32_t, program->classes);
    for (int i = 0; i < program->classes * SIM_MAX_STREAMS; i++) {
        const SimList *list = &program->class_list[i / SIM_MAX_STREAMS].streams[i % SIM_MAX_STREAMS];
        for (int64_t k = 0; k < list->count; k++) {
            const int32_t op = list->instrs[k].op;
            if (op != SIM_ONLY_WAITS && program->ops[op].kind == SIM_COLLECTIVE &&
                program->ops[op].group == group)
                meetings->meetings[i / SIM_MAX_STREAMS]++;
        }
    }
    if (groups->instance_of_rank == NULL)
        return;
    int64_t *most = ORR_ARENA_NEW(c->arena, int64_t, groups->instances);
    meetings->first = ORR_ARENA_NEW(c->arena, int64_t, groups->instances);
    for (int r = 0; r < c->result->ranks; r++) {
        int32_t instance = groups->instance_of_rank[r];
        if (instance >= 0)
            most[instance] = MAX(most[instance], meetings->meetings[r / program->replicas]);
    }
    for (int32_t i = 0; i < groups->instances; i++) {
        meetings->first[i] = meetings->count;
        meetings->count += most[i];
    }
    meetings->list = ORR_ARENA_NEW(c->arena, Meeting, meetings->count);
}

static bool check_start(int rank, const SimSpan *span, int64_t ready_ps, bool exact, GError **error)
{
    if (span->start_ps < ready_ps)
        return sim_check_fail(error,
                              "an op of rank %d stream %d starts at %" PRId64
                              " ps, before what it depends on at %" PRId64 " ps",
                              rank, span->stream, span->start_ps, ready_ps);
    if (exact && span->start_ps > ready_ps)
        return sim_check_fail(
            error, "an op of rank %d stream %d starts at %" PRId64 " ps although it could at %" PRId64 " ps",
            rank, span->stream, span->start_ps, ready_ps);
    return true;
}

static bool join(Meeting *meeting, const SimSpan *span, int64_t ready_ps, bool exact, int64_t duration_ps,
                 GError **error)
{
    if (meeting->members > 0 && (span->start_ps != meeting->start_ps || span->end_ps != meeting->end_ps))
        return sim_check_fail(error, "rank %d is not in step with its group", span->rank);
    meeting->exact = meeting->members == 0 ? exact : meeting->exact && exact;
    meeting->members++;
    meeting->span = span;
    meeting->start_ps = span->start_ps;
    meeting->end_ps = span->end_ps;
    meeting->ready_ps = MAX(meeting->ready_ps, ready_ps);
    meeting->duration_ps = MAX(meeting->duration_ps, duration_ps);
    return true;
}

static bool check_stream(const Check *c, int rank, int stream, GroupMeetings *groups, GError **error)
{
    const SimList *list = sim_check_list(c, rank, stream);
    int32_t met[SIM_MAX_GROUPS] = {0};
    int64_t ready_ps = 0;
    bool exact = true;
    for (int64_t i = 0; i < list->count; i++) {
        const SimInstr *instr = &list->instrs[i];
        if (instr->wait_count > 0) {
            int64_t over_ps = completed_ps(c, rank, instr, &exact);
            ready_ps = MAX(ready_ps, over_ps);
        }
        if (instr->op == SIM_ONLY_WAITS)
            continue;
        const SimOp *op = &c->program->ops[instr->op];
        const SimSpan *span = sim_check_span(c, rank, stream, sim_check_ordinals(c, rank, stream)[i]);
        int64_t duration_ps = sim_check_duration_ps(c, rank, stream, op);
        if (op->kind == SIM_COLLECTIVE && groups[op->group].list != NULL) {
            int32_t instance = c->program->groups[op->group].instance_of_rank[rank];
            Meeting *meeting = &groups[op->group].list[groups[op->group].first[instance] + met[op->group]++];
            if (!join(meeting, span, ready_ps, exact, duration_ps, error))
                return false;
        } else if (!check_start(rank, span, ready_ps, exact, error) ||
                   !sim_check_work(c, span, duration_ps, error)) {
            return false;
        }
        ready_ps = span->end_ps;
        exact = true;
    }
    return true;
}

bool sim_check_dependencies(const Check *c, GError **error)
{
    GroupMeetings groups[SIM_MAX_GROUPS] = {{0}};
    for (int g = 0; g < c->program->group_count; g++)
        number_meetings(c, g, &groups[g]);
    for (int rank = 0; rank < c->result->ranks; rank++) {
        for (int stream = 0; stream < SIM_MAX_STREAMS; stream++) {
            if (!check_stream(c, rank, stream, groups, error))
                return false;
        }
    }
    for (int g = 0; g < c->program->group_count; g++) {
        for (int64_t i = 0; i < groups[g].count; i++) {
            const Meeting *meeting = &groups[g].list[i];
            if (meeting->members > 0 &&
                (!check_start(-1, meeting->span, meeting->ready_ps, meeting->exact, error) ||
                 !sim_check_work(c, meeting->span, meeting->duration_ps, error)))
                return false;
        }
    }
    return true;
}
