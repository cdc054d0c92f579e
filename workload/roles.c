/* workload/roles.c - the roles of a loop as scenarios. See workload.h. */
#include "workload/workload.h"

#include <math.h>

#include "base/error.h"

int workload_generator(const SpecWorkload *workload)
{
    for (int i = 0; i < workload->phase_count; i++)
        if (workload->phase[i].kind == SPEC_PHASE_GENERATE)
            return workload->phase[i].role;
    return -1;
}

const Spec *workload_load_role(const Spec *spec, const SpecSource *source, int row, SpecRanks ranks,
                               OrrArena *arena, GError **error)
{
    g_autofree char *where = g_strdup_printf("workload.roles.%s", spec->workload.role[row].name);
    Spec *role = ORR_ARENA_NEW(arena, Spec, 1);
    SpecSource own = {0};
    if (!spec_load_role(spec, source, row, ranks, where, role, &own, error))
        return NULL;
    for (guint i = 0; own.texts != NULL && i < own.texts->len; i++)
        g_ptr_array_add(source->texts, g_ref_string_acquire(own.texts->pdata[i]));
    spec_source_clear(&own);
    return role;
}

const Spec **workload_roles(const Spec *spec, const SpecSource *source, SpecRanks ranks, OrrArena *arena,
                            GError **error)
{
    const Spec **roles = ORR_ARENA_NEW(arena, const Spec *, SPEC_MOST_ROLES);
    const int generator = workload_generator(&spec->workload);
    for (int i = 0; i < spec->workload.role_count; i++) {
        const bool own = i == generator || spec_role_host(&spec->workload, i) >= 0 ||
                         spec_role_has_layout(&spec->workload.role[i]);
        roles[i] = workload_load_role(spec, source, i, own ? (SpecRanks){0} : ranks, arena, error);
        if (roles[i] == NULL)
            return NULL;
    }
    return roles;
}

bool workload_resize(const Spec *role, int nodes, Spec *ret_role, const char *name, GError **error)
{
    const int layout = role->parallel.tensor * role->parallel.context * role->parallel.pipeline;
    *ret_role = *role;
    ret_role->cluster.nodes = nodes;
    ret_role->parallel.data = spec_gpus(ret_role) / layout;
    return (ret_role->parallel.data >= 1 && spec_gpus(ret_role) % layout == 0) ||
           orr_fail(error, ORR_ERROR_INPUT, "workload.roles.%s: %d GPUs do not divide by its layout of %d",
                    name, spec_gpus(ret_role), layout);
}

/* Each forward is beside what it and those before it have returned. */
static void add_scoring(Workload *workload)
{
    double returned[LOOP_MOST_PARTS] = {0};
    for (int k = 0; k < workload->phase_count; k++) {
        const SpecPhase *phase = workload->phase[k].phase;
        if (phase->kind != SPEC_PHASE_FORWARD)
            continue;
        WorkloadRole *role = &workload->role[phase->role];
        returned[role->part] += role->output_bytes;
        if (role->scoring_bytes > 0)
            role->needed_bytes =
                fmax(role->needed_bytes, role->resting_bytes + role->scoring_bytes + returned[role->part]);
    }
}

/* What trains or generates has the GPU beside what the other roles there keep. Who generates sleeps while others work, and
 * keeps nothing then. */
void workload_fill_memory(Workload *workload)
{
    const int roles = workload->spec->workload.role_count;
    workload->fits = true;
    add_scoring(workload);
    for (int i = 0; i < roles; i++) {
        WorkloadRole *role = &workload->role[i];
        for (int j = 0; j < roles && role->capacity_bytes > 0; j++) {
            const WorkloadRole *other = &workload->role[j];
            if (j != i && other->part == role->part && !other->role->offloaded)
                role->needed_bytes += other->resting_bytes;
        }
        workload->fits = workload->fits && role->needed_bytes <= role->capacity_bytes;
    }
}
