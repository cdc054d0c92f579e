/* program/groups.c - which ranks act together. Rank = class x replicas + replica; replicas enumerate
 * tensor fastest, then context, then data.
 *
 * Folded, the members of a communicator inside one pipeline rank are one simulated rank; communicators across
 * pipeline ranks stay what they are.
 */
#include "program/builder.h"

static SimGroups new_groups(OrrArena *arena, int ranks, int instances)
{
    int32_t *instance_of_rank = ORR_ARENA_NEW(arena, int32_t, ranks);
    for (int r = 0; r < ranks; r++)
        instance_of_rank[r] = SIM_NONE;
    return (SimGroups){.instance_of_rank = instance_of_rank, .instances = instances};
}

typedef enum { CONSECUTIVE, STRIDED } Spread;

/* Within each pipeline rank: `size` neighbouring replicas together (CONSECUTIVE), or those whose numbers agree
 * modulo `size` (STRIDED). */
static SimGroups within_pipeline_rank(const Builder *b, int replicas, Spread spread, int size)
{
    int each = spread == CONSECUTIVE ? replicas / size : size;
    SimGroups groups = new_groups(b->arena, b->ranks * replicas, b->ranks * each);
    int32_t *instance_of_rank = (int32_t *)groups.instance_of_rank;
    for (int r = 0; r < b->ranks * replicas; r++) {
        int replica = r % replicas;
        instance_of_rank[r] = r / replicas * each + (spread == CONSECUTIVE ? replica / size : replica % size);
    }
    return groups;
}

void sim_program_groups(const Builder *b, SimProgram *program)
{
    const SimPlan *plan = b->plan;
    int replicas = program->replicas, ranks = b->ranks * replicas;
    program->group_count = GROUP_COUNT;
    program->groups[GROUP_MODEL] = program->groups[GROUP_GATHER] = program->groups[GROUP_REDUCE] =
        program->groups[GROUP_STAGE] = (SimGroups){.instance_of_rank = NULL, .instances = 0};
    if (replicas > 1) {
        program->groups[GROUP_MODEL] =
            within_pipeline_rank(b, replicas, CONSECUTIVE, plan->tensor * plan->context);
        program->groups[GROUP_GATHER] = within_pipeline_rank(b, replicas, STRIDED, plan->tensor);
        program->groups[GROUP_REDUCE] = program->groups[GROUP_GATHER];
        program->groups[GROUP_STAGE] = within_pipeline_rank(b, replicas, CONSECUTIVE, replicas);
    }
    SimGroups embedding = new_groups(b->arena, ranks, replicas);
    SimGroups world = new_groups(b->arena, ranks, 1);
    for (int r = 0; r < ranks; r++) {
        if (sim_work_duration_ps(&plan->ranks[r / replicas].embedding_reduce) > 0)
            ((int32_t *)embedding.instance_of_rank)[r] = r % replicas;
        ((int32_t *)world.instance_of_rank)[r] = 0;
    }
    program->groups[GROUP_EMBEDDING] = embedding;
    program->groups[GROUP_WORLD] = world;
}
