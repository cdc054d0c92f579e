/* sim/engine_setup.c - lays out ranks, streams and communicators in the arena before the first event. */
#include "sim/engine_internal.h"

#include <string.h>

/* Remaining work is kept in ps x 1024. */
#define MAX_DURATION_PS (INT64_MAX / SIM_FULL_RATE)

static bool setup_works(Engine *e, GError **error)
{
    const SimProgram *program = e->program;
    e->works = ORR_ARENA_NEW(e->arena, WorkInfo, program->work_count);
    for (int64_t i = 0; i < program->work_count; i++) {
        const SimWork *work = &program->works[i];
        WorkInfo *info = &e->works[i];
        int main_part = SIM_PART_COMPUTE;
        for (int part = 0; part < SIM_PART_COUNT; part++) {
            g_assert(work->part_ps[part] >= 0);
            if (work->part_ps[part] > MAX_DURATION_PS - info->duration_ps) {
                g_set_error(error, ORR_ERROR, ORR_ERROR_INPUT,
                            "an operation of the step lasts longer than %.0f s, more than the clock can hold",
                            (double)MAX_DURATION_PS * 1e-12);
                return false;
            }
            info->duration_ps += work->part_ps[part];
            if (work->part_ps[part] > work->part_ps[main_part])
                main_part = part;
        }
        info->main_part = (uint8_t)main_part;
        info->stretch_part = work->part_ps[SIM_PART_COMPUTE] > 0 ? SIM_PART_COMPUTE : (uint8_t)main_part;
        info->sm_share = work->sm_share;
        info->link_demand = work->link == SIM_LINK_NONE ? 0 : work->link_demand;
        info->link = info->link_demand == 0 ? SIM_LINK_NONE : work->link;
        g_assert(work->link < SIM_LINK_COUNT && work->link_demand <= SIM_FULL_RATE);
    }
    return true;
}

static void check_instr(const SimProgram *program, const SimInstr *instr)
{
    if (instr->kind == SIM_WAIT) {
        g_assert(instr->wait_stream < SIM_STREAM_COUNT && instr->wait_class < program->classes);
        return;
    }
    g_assert(instr->work >= 0 && instr->work < program->work_count && instr->mem < program->mem_count);
    g_assert(instr->kind == SIM_OP || instr->group < program->group_count);
}

/* Slots; and, as a side product, the stream on which each class uses each group. */
static void setup_slots(Engine *e, int8_t *stream_of_group)
{
    const SimProgram *program = e->program;
    int ranks = program->classes * program->replicas;
    e->ranks = ORR_ARENA_NEW(e->arena, Rank, ranks);
    e->class_first_slot = ORR_ARENA_NEW(e->arena, int32_t, program->classes);
    e->class_slot_count = ORR_ARENA_NEW(e->arena, int32_t, program->classes);
    e->slot_of_stream = ORR_ARENA_NEW(e->arena, int8_t, program->classes * SIM_STREAM_COUNT);
    memset(stream_of_group, SIM_NONE, (size_t)(program->classes * SIM_MAX_GROUPS));
    for (int c = 0; c < program->classes; c++) {
        e->class_first_slot[c] = e->slot_count;
        for (int s = 0; s < SIM_STREAM_COUNT; s++) {
            SimList list = program->class_list[c].streams[s];
            g_assert(list.count <= INT32_MAX);
            bool used = list.count > 0;
            e->slot_of_stream[c * SIM_STREAM_COUNT + s] = used ? (int8_t)e->class_slot_count[c]++ : SIM_NONE;
            for (int64_t i = 0; i < list.count; i++) {
                check_instr(program, &list.instrs[i]);
                if (list.instrs[i].kind != SIM_COLLECTIVE)
                    continue;
                int8_t *stream = &stream_of_group[c * SIM_MAX_GROUPS + list.instrs[i].group];
                g_assert(*stream == SIM_NONE || *stream == s);
                *stream = (int8_t)s;
            }
        }
        e->slot_count += e->class_slot_count[c] * program->replicas;
    }
    e->slots = ORR_ARENA_NEW(e->arena, Slot, e->slot_count);
    Slot *slot = e->slots;
    for (int r = 0; r < ranks; r++) {
        const SimClass *cls = &program->class_list[r / program->replicas];
        Rank *rank = &e->ranks[r];
        rank->cls = r / program->replicas;
        rank->first_slot = (int32_t)(slot - e->slots);
        rank->slot_count = e->class_slot_count[rank->cls];
        for (int s = 0; s < SIM_STREAM_COUNT; s++) {
            if (cls->streams[s].count == 0)
                continue;
            *slot = (Slot){.instrs = cls->streams[s].instrs,
                           .count = (int32_t)cls->streams[s].count,
                           .rank = r,
                           .link_next = SIM_NONE,
                           .first_waiter = SIM_NONE,
                           .collective = SIM_NONE,
                           .stream = (uint8_t)s};
            slot++;
        }
        for (int kind = 0; kind < SIM_MEM_COUNT; kind++) {
            rank->bytes[kind] = cls->static_bytes[kind];
            rank->level_bytes += kind < SIM_MEM_GPU_COUNT ? cls->static_bytes[kind] : 0;
        }
    }
}

/* Members of every instance of one group, in rank order, appended at `member`. */
static int32_t *fill_group(Engine *e, int group, const int8_t *stream_of_group, int32_t *member)
{
    const SimProgram *program = e->program;
    const SimGroups *groups = &program->groups[group];
    Collective *instances = &e->collectives[e->first_collective[group]];
    int ranks = program->classes * program->replicas;
    for (int r = 0; r < ranks; r++) {
        if (groups->instance_of_rank[r] >= 0) {
            g_assert(groups->instance_of_rank[r] < groups->instances);
            instances[groups->instance_of_rank[r]].member_count++;
        }
    }
    for (int32_t i = 0; i < groups->instances; i++) {
        instances[i].first_member = (int32_t)(member - e->members);
        member += instances[i].member_count;
        instances[i].member_count = 0;
    }
    for (int r = 0; r < ranks; r++) {
        if (groups->instance_of_rank[r] < 0)
            continue;
        Collective *instance = &instances[groups->instance_of_rank[r]];
        const Rank *rank = &e->ranks[r];
        int stream = stream_of_group[rank->cls * SIM_MAX_GROUPS + group];
        e->members[instance->first_member + instance->member_count++] =
            stream < 0 ? SIM_NONE
                       : rank->first_slot + e->slot_of_stream[rank->cls * SIM_STREAM_COUNT + stream];
    }
    return member;
}

static void setup_groups(Engine *e, const int8_t *stream_of_group)
{
    const SimProgram *program = e->program;
    int ranks = program->classes * program->replicas;
    int64_t members = 0;
    g_assert(program->group_count <= SIM_MAX_GROUPS);
    for (int g = 0; g < program->group_count; g++) {
        e->first_collective[g] = SIM_NONE;
        if (program->groups[g].instance_of_rank == NULL)
            continue;
        e->first_collective[g] = e->collective_count;
        e->collective_count += program->groups[g].instances;
        members += ranks;
    }
    e->collectives = ORR_ARENA_NEW(e->arena, Collective, e->collective_count);
    e->members = ORR_ARENA_NEW(e->arena, int32_t, members);
    int32_t *member = e->members;
    for (int g = 0; g < program->group_count; g++) {
        if (e->first_collective[g] != SIM_NONE)
            member = fill_group(e, g, stream_of_group, member);
    }
}

static void setup_result(Engine *e)
{
    const SimProgram *program = e->program;
    int64_t ops = 0, changes = 0;
    for (int c = 0; c < program->classes; c++) {
        changes += program->replicas;
        for (int s = 0; s < SIM_STREAM_COUNT; s++) {
            SimList list = program->class_list[c].streams[s];
            for (int64_t i = 0; i < list.count; i++) {
                ops += list.instrs[i].kind == SIM_WAIT ? 0 : program->replicas;
                changes +=
                    list.instrs[i].kind == SIM_WAIT || list.instrs[i].mem < 0 ? 0 : 2 * program->replicas;
            }
        }
    }
    e->result.ranks = program->classes * program->replicas;
    e->result.rank = ORR_ARENA_NEW(e->arena, SimRankResult, e->result.ranks);
    for (int r = 0; r < e->result.ranks; r++)
        e->result.rank[r].first_start_ps = SIM_NONE;
    if (e->record & SIM_RECORD_SPANS)
        e->result.spans = ORR_ARENA_NEW(e->arena, SimSpan, ops);
    if (e->record & SIM_RECORD_LEVELS)
        e->result.levels = ORR_ARENA_NEW(e->arena, SimLevel, changes);
}

bool sim_engine_setup(Engine *e, GError **error)
{
    const SimProgram *program = e->program;
    g_assert(program->classes > 0 && program->replicas > 0);
    g_assert((int64_t)program->classes * program->replicas * SIM_STREAM_COUNT < INT32_MAX / 4);
    if (!setup_works(e, error))
        return false;
    int8_t *stream_of_group = ORR_ARENA_NEW(e->arena, int8_t, program->classes * SIM_MAX_GROUPS);
    setup_slots(e, stream_of_group);
    setup_groups(e, stream_of_group);
    setup_result(e);
    e->queue = sim_eventq_new(e->arena, e->slot_count + e->collective_count);
    e->dirty_ranks = ORR_ARENA_NEW(e->arena, int32_t, e->result.ranks);
    e->dirty_collectives = ORR_ARENA_NEW(e->arena, int32_t, e->collective_count);
    e->ready_first = e->ready_last = SIM_NONE;
    return true;
}
