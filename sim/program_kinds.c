/* sim/program_kinds.c - programs of the kinds of replicas as one, which meet where gradients do. */
#include "sim/kinds.h"
#include "sim/program_internal.h"
#include "sim/program_join.h"

/* Number of a class of the joined program, kind after kind, as pipeline rank x kinds + kind. */
static int renumbered(const SimKinds *kinds, int cls)
{
    return cls % kinds->ranks * kinds->count + cls / kinds->ranks;
}

static void renumber_map(const SimKinds *kinds, const int32_t **map, OrrArena *arena)
{
    if (*map == NULL)
        return;
    int32_t *other = ORR_ARENA_NEW(arena, int32_t, kinds->ranks * kinds->count);
    for (int c = 0; c < kinds->ranks * kinds->count; c++)
        other[renumbered(kinds, c)] = (*map)[c];
    *map = other;
}

/* Instructions of a joined program are its own: waits may be written anew. */
static void renumber(const SimKinds *kinds, OrrArena *arena, SimProgram *program)
{
    SimClass *classes = ORR_ARENA_NEW(arena, SimClass, program->classes);
    for (int c = 0; c < program->classes; c++) {
        const SimClass *from = &program->class_list[c];
        for (int s = 0; s < SIM_MAX_STREAMS; s++)
            for (int64_t i = 0; i < from->streams[s].count; i++) {
                SimInstr *instr = (SimInstr *)&from->streams[s].instrs[i];
                if (instr->wait_count > 0 && instr->wait_class >= 0)
                    instr->wait_class = renumbered(kinds, instr->wait_class);
            }
        classes[renumbered(kinds, c)] = *from;
    }
    program->class_list = classes;
    for (int i = 0; i < program->resource_count; i++)
        renumber_map(kinds, &((SimResource *)&program->resources[i])->instance_of_rank, arena);
}

static SimGroups groups_of(const SimKinds *kinds, OrrArena *arena, Group group)
{
    const int ranks = kinds->ranks * kinds->count;
    int32_t *of_rank = ORR_ARENA_NEW(arena, int32_t, ranks);
    for (int r = 0; r < ranks; r++) {
        const int rank = r / kinds->count, kind = r % kinds->count;
        const SimWork *tied = &kinds->kinds[kind].plan.ranks[rank].embedding_reduce;
        of_rank[r] = group == GROUP_WORLD             ? 0
                     : group != GROUP_EMBEDDING       ? rank
                     : sim_work_duration_ps(tied) > 0 ? kind
                                                      : SIM_NO_INSTANCE;
    }
    return (SimGroups){.instance_of_rank = of_rank,
                       .instances = group == GROUP_WORLD       ? 1
                                    : group == GROUP_EMBEDDING ? kinds->count
                                                               : kinds->ranks};
}

bool sim_kinds_program(const SimKinds *kinds, bool unfold, OrrArena *arena, SimProgram *ret_program,
                       GError **error)
{
    if (kinds->count == 1)
        return sim_program_build(&kinds->kinds[0].plan, unfold, arena, ret_program, error);
    SimProgram *parts = ORR_ARENA_NEW(arena, SimProgram, kinds->count);
    int *times = ORR_ARENA_NEW(arena, int, kinds->count);
    for (int k = 0; k < kinds->count; k++) {
        if (!sim_program_build(&kinds->kinds[k].plan, false, arena, &parts[k], error))
            return false;
        parts[k].group_count = 0; /* all parts name the same ones, below */
        times[k] = 1;
    }
    if (!sim_program_join(parts, times, kinds->count, arena, ret_program, error))
        return false;
    renumber(kinds, arena, ret_program);
    ret_program->group_count = GROUP_COUNT;
    ret_program->groups[GROUP_MODEL] = (SimGroups){.instance_of_rank = NULL, .instances = 0};
    for (Group group = GROUP_GATHER; group < GROUP_COUNT; group++)
        ret_program->groups[group] = groups_of(kinds, arena, group);
    return true;
}
