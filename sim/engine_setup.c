/* sim/engine_setup.c - lays out ranks, streams and communicators in the arena before the first event. */
#include "sim/engine_state.h"

#include <string.h>

static void setup_tables(Engine *e)
{
    const SimProgram *program = e->program;
    int streams = 0;
    const SimStreamRow *rows = sim_program_streams(program, &streams);
    const SimTier *tiers = sim_program_tiers(program, &e->tiers);
    const SimMemKind *kinds = sim_program_mem_kinds(program, &e->mem_kinds);
    g_assert(streams <= SIM_MAX_STREAMS && e->tiers <= SIM_MAX_TIERS && e->mem_kinds <= SIM_MAX_MEMS);
    for (int s = 0; s < streams; s++)
        e->runs_kernels[s] = rows[s].kind == SIM_RUNS_KERNELS;
    for (int kind = 0; kind < e->mem_kinds; kind++) {
        g_assert(kinds[kind].tier >= 0 && kinds[kind].tier < e->tiers);
        e->mem_tier[kind] = (int8_t)kinds[kind].tier;
        e->mem_on_gpu[kind] = kinds[kind].tier == SIM_TIER_GPU;
    }
    for (int t = 0; t < e->tiers; t++) {
        if (tiers[t].instance_of_rank != NULL)
            e->tier_levels[t] =
                (TierLevels){.instance_of_rank = tiers[t].instance_of_rank,
                             .level_bytes = ORR_ARENA_NEW(e->arena, int64_t, tiers[t].instances),
                             .peak_bytes = ORR_ARENA_NEW(e->arena, int64_t, tiers[t].instances),
                             .level_ps = ORR_ARENA_NEW(e->arena, int64_t, tiers[t].instances)};
    }
}

/* Slots of a rank are neighbours; returns how many it has. */
static int32_t setup_streams(Engine *e, int cls)
{
    StreamSlots *streams = &e->stream_slots[cls * SIM_MAX_STREAMS];
    int32_t count = 0;
    for (int s = 0; s < SIM_MAX_STREAMS; s++)
        streams[s].first_slot =
            e->program->class_list[cls].streams[s].count > 0 ? e->slot_count + count++ : SIM_NONE;
    for (int s = 0; s < SIM_MAX_STREAMS; s++)
        streams[s].stride = count;
    return count;
}

static void setup_list(const Engine *e, int cls, const SimList *from, List *list)
{
    const StreamSlots *streams = &e->stream_slots[cls * SIM_MAX_STREAMS];
    *list = (List){.instrs = from->instrs, .count = (int32_t)from->count, .cls = cls};
    for (int s = 0, place = 0; s < SIM_MAX_STREAMS; s++)
        list->place_of_stream[s] = streams[s].first_slot >= 0 ? (uint8_t)place++ : SIM_NO_PLACE;
}

static void setup_classes(Engine *e)
{
    const SimProgram *program = e->program;
    e->stream_slots = ORR_ARENA_NEW(e->arena, StreamSlots, program->classes * SIM_MAX_STREAMS);
    for (int c = 0; c < program->classes; c++)
        e->slot_count += setup_streams(e, c) * program->replicas;
    e->lists = sim_new_lines(e->arena, sizeof(List), e->slot_count / program->replicas);
    List *list = e->lists;
    for (int i = 0; i < program->classes * SIM_MAX_STREAMS; i++) {
        const int cls = i / SIM_MAX_STREAMS;
        const SimList *from = &program->class_list[cls].streams[i % SIM_MAX_STREAMS];
        g_assert(from->count <= INT32_MAX);
        if (from->count > 0)
            setup_list(e, cls, from, list++);
    }
}

static void setup_memory(Engine *e, int r, const int64_t *static_bytes)
{
    for (int kind = 0; kind < e->mem_kinds; kind++) {
        const TierLevels *levels = &e->tier_levels[e->mem_tier[kind]];
        e->memory[r].bytes[kind] = static_bytes[kind];
        e->ranks[r].level_bytes += e->mem_on_gpu[kind] ? static_bytes[kind] : 0;
        if (levels->instance_of_rank != NULL && levels->instance_of_rank[r] >= 0)
            levels->level_bytes[levels->instance_of_rank[r]] += static_bytes[kind];
    }
}

static void setup_slots(Engine *e)
{
    const SimProgram *program = e->program;
    int ranks = program->classes * program->replicas;
    e->ranks = sim_new_lines(e->arena, sizeof(Rank), ranks);
    e->memory = sim_new_lines(e->arena, sizeof(RankMemory), ranks);
    e->slots = sim_new_lines(e->arena, sizeof(Slot), e->slot_count);
    Slot *slot = e->slots;
    int32_t list = 0; /* the first of the rank's class */
    for (int r = 0; r < ranks; r++) {
        const SimClass *cls = &program->class_list[r / program->replicas];
        Rank *rank = &e->ranks[r];
        rank->cls = r / program->replicas;
        rank->first_slot = (int32_t)(slot - e->slots);
        rank->slot_count = (int16_t)e->stream_slots[rank->cls * SIM_MAX_STREAMS].stride;
        for (int s = 0; s < SIM_MAX_STREAMS; s++) {
            if (cls->streams[s].count == 0)
                continue;
            const int32_t place = (int32_t)(slot - e->slots) - rank->first_slot;
            *slot = (Slot){.list = list + place,
                           .place = (uint8_t)(place & (SIM_MAX_STREAMS - 1)),
                           .rank = r,
                           .link_next = SIM_NONE,
                           .first_waiter = SIM_NONE,
                           .stream = (uint8_t)s};
            slot++;
        }
        setup_memory(e, r, cls->static_bytes);
        list += (r + 1) % program->replicas == 0 ? rank->slot_count : 0;
    }
}

/* Members of every instance of one group, in rank order, appended at `member`. */
static int32_t *fill_group(Engine *e, int group, const int8_t *group_stream, int32_t *member)
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
        int stream = group_stream[rank->cls * SIM_MAX_GROUPS + group];
        e->members[instance->first_member + instance->member_count++] =
            stream < 0 ? SIM_NONE
                       : e->stream_slots[rank->cls * SIM_MAX_STREAMS + stream].first_slot +
                             r % program->replicas * rank->slot_count;
    }
    return member;
}

static void setup_groups(Engine *e, const int8_t *group_stream)
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
            member = fill_group(e, g, group_stream, member);
    }
}

static void setup_result(Engine *e)
{
    const SimProgram *program = e->program;
    int64_t ops = 0, changes = 0;
    for (int c = 0; c < program->classes; c++) {
        ops += e->sums[c].ops * program->replicas;
        changes += (e->sums[c].changes + 1) * program->replicas;
    }
    e->result.ranks = program->classes * program->replicas;
    e->result.rank = ORR_ARENA_NEW(e->arena, SimRankResult, e->result.ranks);
    if (e->record & SIM_RECORD_SPANS)
        e->result.spans = ORR_ARENA_NEW(e->arena, SimSpan, ops);
    if (e->record & SIM_RECORD_LEVELS)
        e->result.levels = ORR_ARENA_NEW(e->arena, SimLevel, changes);
}

bool sim_engine_setup(Engine *e, GError **error)
{
    const SimProgram *program = e->program;
    g_assert(program->classes > 0 && program->replicas > 0);
    g_assert((int64_t)program->classes * program->replicas * SIM_MAX_STREAMS < INT32_MAX / 2);
    int8_t *group_stream = ORR_ARENA_NEW(e->arena, int8_t, program->classes * SIM_MAX_GROUPS);
    memset(group_stream, SIM_NONE, (size_t)(program->classes * SIM_MAX_GROUPS));
    setup_tables(e);
    if (!sim_setup_works(e, group_stream, error))
        return false;
    setup_classes(e);
    setup_slots(e);
    setup_groups(e, group_stream);
    setup_result(e);
    sim_setup_resources(e);
    const int32_t events = e->slot_count + e->collective_count;
    e->queue = sim_eventq_new(e->arena, events + 1);
    sim_eventq_announce(e->queue, e->slots, sizeof(Slot), e->slot_count);
    e->ready_first = e->ready_last = SIM_NONE;
    return true;
}
