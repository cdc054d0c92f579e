/* program/join.c - several folded programs as one. */
#include "program/join.h"

#include <string.h>

/* Where a part's rows begin in the joined tables. */
typedef struct Offsets {
    int classes, groups;
    int32_t ops, works, mems;
    int16_t resources;
} Offsets;

/* `count` instructions of a stream in its step `step`: from the second step on, streams first wait for compute. */
static int32_t count_until(const SimClass *of, int stream, int step, int32_t count)
{
    const int64_t each = of->streams[stream].count + (stream != SIM_STREAM_COMPUTE);
    return (int32_t)(step * each + count);
}

static SimInstr wait_for_step(const SimClass *of, int step)
{
    return (SimInstr){.op = SIM_ONLY_WAITS,
                      .wait_on = sim_wait_on(-1, SIM_STREAM_COMPUTE),
                      .wait_count = count_until(of, SIM_STREAM_COMPUTE, step, 0),
                      .microbatch = -1};
}

static SimInstr moved(const SimProgram *part, int cls, const SimInstr *from, int step, const Offsets *at)
{
    SimInstr instr = *from;
    if (instr.wait_count > 0) {
        const SimClass *on = &part->class_list[sim_wait_class(&instr, cls)];
        instr.wait_count = count_until(on, sim_wait_stream(&instr), step, instr.wait_count);
        instr.wait_on += instr.wait_on < 0 ? 0 : sim_wait_on(at->classes, 0);
    }
    instr.op += instr.op == SIM_ONLY_WAITS ? 0 : at->ops;
    return instr;
}

static SimOp moved_op(const SimOp *from, const Offsets *at)
{
    SimOp op = *from;
    op.work += at->works;
    op.mem += op.mem < 0 ? 0 : at->mems;
    op.group = (uint8_t)(op.group + (op.kind == SIM_COLLECTIVE ? at->groups : 0));
    return op;
}

static SimList repeated(const SimProgram *part, int cls, int stream, int times, const Offsets *at,
                        OrrArena *arena)
{
    const SimClass *of = &part->class_list[cls];
    const SimList *list = &of->streams[stream];
    if (list->count == 0)
        return *list;
    const bool waits = stream != SIM_STREAM_COMPUTE;
    const int64_t count = times * (list->count + waits) - waits;
    SimInstr *instrs = ORR_ARENA_NEW(arena, SimInstr, count), *to = instrs;
    for (int step = 0; step < times; step++) {
        if (waits && step > 0)
            *to++ = wait_for_step(of, step);
        for (int64_t i = 0; i < list->count; i++)
            *to++ = moved(part, cls, &list->instrs[i], step, at);
    }
    return (SimList){.instrs = instrs, .count = count};
}

static void move_shares(const SimWork *from, const Offsets *at, OrrArena *arena, SimWork *work)
{
    *work = *from;
    for (int i = 0; i < SIM_WORK_SHARES; i++)
        work->shares[i].resource = (int16_t)(work->shares[i].resource + at->resources);
    SimShare *more = ORR_ARENA_NEW(arena, SimShare, from->more_share_count);
    for (int i = 0; i < from->more_share_count; i++) {
        more[i] = from->more_shares[i];
        more[i].resource = (int16_t)(more[i].resource + at->resources);
    }
    work->more_shares = more;
}

/* A map of all ranks, of which only those of one part have an instance. */
static int32_t *spread(const int32_t *map, int ranks, int first, int all, OrrArena *arena)
{
    int32_t *wide = ORR_ARENA_NEW(arena, int32_t, all);
    for (int r = 0; r < all; r++)
        wide[r] = r >= first && r < first + ranks ? map[r - first] : SIM_NO_INSTANCE;
    return wide;
}

/* Tables that say the same: rows, and where they lie; how large a tier is may differ. */
static bool same_tables(const SimProgram *a, const SimProgram *b)
{
    int counts[2];
    const SimStreamRow *streams[] = {sim_program_streams(a, &counts[0]), sim_program_streams(b, &counts[1])};
    bool same = counts[0] == counts[1];
    for (int i = 0; same && i < counts[0]; i++)
        same =
            streams[0][i].kind == streams[1][i].kind && strcmp(streams[0][i].name, streams[1][i].name) == 0;
    const SimMemKind *kinds[] = {sim_program_mem_kinds(a, &counts[0]), sim_program_mem_kinds(b, &counts[1])};
    same = same && counts[0] == counts[1];
    for (int i = 0; same && i < counts[0]; i++)
        same = kinds[0][i].tier == kinds[1][i].tier && strcmp(kinds[0][i].name, kinds[1][i].name) == 0;
    const SimTier *tiers[] = {sim_program_tiers(a, &counts[0]), sim_program_tiers(b, &counts[1])};
    same = same && counts[0] == counts[1];
    for (int i = 0; same && i < counts[0]; i++)
        same = strcmp(tiers[0][i].name, tiers[1][i].name) == 0 && tiers[0][i].instance_of_rank == NULL &&
               tiers[1][i].instance_of_rank == NULL;
    return same;
}

static bool joinable(const SimProgram *a, const SimProgram *b, GError **error)
{
    g_assert(a->replicas == 1 && b->replicas == 1);
    if (!same_tables(a, b) || a->capacity_event_count > 0 || b->capacity_event_count > 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "jobs of which one offloads, or whose links change during a step, cannot be "
                        "simulated side by side");
    if (a->skewed != b->skewed)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "a job whose steps overlap (post-validation) and one whose do not cannot be simulated side "
            "by side");
    return true;
}

static void add_part(const SimProgram *part, int times, int all, const Offsets *at, OrrArena *arena,
                     SimProgram *to)
{
    for (int c = 0; c < part->classes; c++) {
        SimClass *cls = (SimClass *)&to->class_list[at->classes + c];
        *cls = part->class_list[c];
        for (int s = 0; s < SIM_MAX_STREAMS; s++)
            cls->streams[s] = repeated(part, c, s, times, at, arena);
    }
    for (int32_t i = 0; i < part->op_count; i++)
        ((SimOp *)to->ops)[at->ops + i] = moved_op(&part->ops[i], at);
    for (int64_t i = 0; i < part->work_count; i++)
        move_shares(&part->works[i], at, arena, (SimWork *)&to->works[at->works + i]);
    if (part->mem_count > 0)
        memcpy((SimMemDelta *)to->mems + at->mems, part->mems, sizeof *part->mems * (size_t)part->mem_count);
    for (int i = 0; i < part->resource_count; i++) {
        SimResource *row = (SimResource *)&to->resources[at->resources + i];
        *row = part->resources[i];
        if (row->instance_of_rank != NULL)
            row->instance_of_rank = spread(row->instance_of_rank, part->classes, at->classes, all, arena);
    }
    for (int i = 0; i < part->group_count; i++) {
        SimGroups *groups = &to->groups[at->groups + i];
        *groups = part->groups[i];
        if (groups->instance_of_rank != NULL)
            groups->instance_of_rank =
                spread(groups->instance_of_rank, part->classes, at->classes, all, arena);
    }
}

static void join_speeds(const SimProgram *parts, int count, OrrArena *arena, SimProgram *to)
{
    bool any = false;
    for (int i = 0; i < count; i++)
        any = any || parts[i].rank_speed != NULL;
    if (!any)
        return;
    int32_t *speed = ORR_ARENA_NEW(arena, int32_t, to->classes), *next = speed;
    for (int i = 0; i < count; i++)
        for (int r = 0; r < parts[i].classes; r++)
            *next++ = parts[i].rank_speed != NULL ? parts[i].rank_speed[r] : SIM_FULL_RATE;
    to->rank_speed = speed;
}

bool sim_program_join(const SimProgram *parts, const int *times, int count, OrrArena *arena,
                      SimProgram *ret_program, GError **error)
{
    SimProgram to = parts[0];
    for (int i = 1; i < count; i++) {
        if (!joinable(&parts[0], &parts[i], error))
            return false;
        to.classes += parts[i].classes;
        to.op_count += parts[i].op_count;
        to.work_count += parts[i].work_count;
        to.mem_count += parts[i].mem_count;
        to.resource_count += parts[i].resource_count;
        to.group_count += parts[i].group_count;
    }
    if (to.group_count > SIM_MAX_GROUPS)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "the jobs have %d kinds of groups together, more than %d; simulate fewer side by side",
            to.group_count, SIM_MAX_GROUPS);
    to.class_list = ORR_ARENA_NEW(arena, SimClass, to.classes);
    to.ops = ORR_ARENA_NEW(arena, SimOp, to.op_count);
    to.works = ORR_ARENA_NEW(arena, SimWork, to.work_count);
    to.mems = ORR_ARENA_NEW(arena, SimMemDelta, to.mem_count);
    to.resources = ORR_ARENA_NEW(arena, SimResource, to.resource_count);
    Offsets at = {0};
    for (int i = 0; i < count; i++) {
        add_part(&parts[i], times[i], to.classes, &at, arena, &to);
        at.classes += parts[i].classes;
        at.groups += parts[i].group_count;
        at.ops += parts[i].op_count;
        at.works += (int32_t)parts[i].work_count;
        at.mems += (int32_t)parts[i].mem_count;
        at.resources = (int16_t)(at.resources + parts[i].resource_count);
    }
    join_speeds(parts, count, arena, &to);
    *ret_program = to;
    return true;
}

/* --- of a result the first ranks --- */

static void cut_records(SimResult *result, int ranks)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < result->span_count; i++)
        if (result->spans[i].rank < ranks)
            result->spans[kept++] = result->spans[i];
    result->span_count = result->spans != NULL ? kept : 0;
    kept = 0;
    for (int64_t i = 0; i < result->level_count; i++)
        if (result->levels[i].rank < ranks)
            result->levels[kept++] = result->levels[i];
    result->level_count = result->levels != NULL ? kept : 0;
    kept = 0;
    for (int64_t i = 0; i < result->rate_count; i++)
        if (result->rates[i].rank < ranks)
            result->rates[kept++] = result->rates[i];
    result->rate_count = result->rates != NULL ? kept : 0;
}

void sim_result_cut(SimResult *result, int ranks, bool skewed)
{
    if (ranks == result->ranks)
        return;
    const int64_t step_ps = result->step_ps;
    result->step_ps = result->end_ps = 0;
    result->critical_rank = 0;
    for (int r = 0; r < ranks; r++) {
        const SimRankResult *rank = &result->rank[r];
        const int64_t took_ps = rank->end_ps - (skewed ? rank->start_ps : 0);
        result->end_ps = MAX(result->end_ps, rank->end_ps);
        if (took_ps > result->step_ps) {
            result->step_ps = took_ps;
            result->critical_rank = r;
        }
    }
    for (int r = 0; r < ranks; r++)
        result->rank[r].idle_ps -= step_ps - result->step_ps;
    result->ranks = ranks;
    cut_records(result, ranks);
}
