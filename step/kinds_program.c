/* step/kinds_program.c - programs of the kinds of replicas as one, which meet where gradients do. */
#include "step/kinds.h"
#include "program/builder.h"
#include "program/join.h"

/* Number of a class of the joined program, kind after kind, as pipeline rank x kinds + kind. */
static int renumbered(const SimKinds *kinds, int cls)
{
    return cls % kinds->ranks * kinds->count + cls / kinds->ranks;
}

/* One row for what every kind has of a resource: collectives hold it on the ranks of all kinds. Of a row that ranks share,
 * the instances of one kind come after those of the kind before. */
static SimResource merged_row(const SimKinds *kinds, const SimProgram *program, int row, int rows,
                              OrrArena *arena)
{
    SimResource merged = program->resources[row];
    if (merged.instance_of_rank == NULL)
        return merged;
    int32_t *map = ORR_ARENA_NEW(arena, int32_t, kinds->ranks * kinds->count), before = 0;
    for (int k = 0; k < kinds->count; k++) {
        const SimResource *own = &program->resources[k * rows + row];
        for (int c = k * kinds->ranks; c < (k + 1) * kinds->ranks; c++)
            map[renumbered(kinds, c)] =
                own->instance_of_rank[c] < 0 ? SIM_NO_INSTANCE : own->instance_of_rank[c] + before;
        before += own->instances;
    }
    merged.instance_of_rank = map;
    merged.instances = before;
    return merged;
}

static void merge_rows(const SimKinds *kinds, OrrArena *arena, SimProgram *program)
{
    const int rows = program->resource_count / kinds->count;
    SimResource *merged = ORR_ARENA_NEW(arena, SimResource, rows);
    g_assert(program->resource_count == rows * kinds->count); /* joined programs have the same tables */
    for (int row = 0; row < rows; row++)
        merged[row] = merged_row(kinds, program, row, rows, arena);
    for (int64_t i = 0; i < program->work_count; i++) {
        SimWork *work = (SimWork *)&program->works[i];
        for (int share = 0; rows > 0 && share < SIM_WORK_SHARES; share++)
            work->shares[share].resource = (int16_t)(work->shares[share].resource % rows);
        for (int share = 0; share < work->more_share_count; share++)
            ((SimShare *)&work->more_shares[share])->resource =
                (int16_t)(work->more_shares[share].resource % rows);
    }
    program->resources = merged;
    program->resource_count = rows;
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
                if (instr->wait_count > 0 && instr->wait_on >= 0)
                    instr->wait_on =
                        sim_wait_on(renumbered(kinds, sim_wait_class(instr, c)), sim_wait_stream(instr));
            }
        classes[renumbered(kinds, c)] = *from;
    }
    program->class_list = classes;
    merge_rows(kinds, arena, program);
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
