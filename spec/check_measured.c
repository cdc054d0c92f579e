/* spec/check_measured.c - what seconds of measured passes do not go with, and whether they are of the scenario's shape. */
#include "spec/checks.h"
#include "spec/measured.h"

static const char *not_with(const Spec *spec)
{
    if (spec->cluster.group_count > 0)
        return "cluster.groups";
    if (spec->cluster.network.fidelity == SPEC_FIDELITY_FLOW)
        return "cluster.network.fidelity \"flow\"";
    if (spec->parallel.servers.servers > 0)
        return "parallel.parameter_server";
    if (spec->jitter.given)
        return "jitter, which slows predicted passes";
    if (spec_offloads(&spec->offload))
        return "offload";
    if (spec->parallel.zero == 3)
        return "parallel.zero 3, whose passes wait for weights";
    return spec->model.list.text != NULL ? "a model that is a list of layers" : NULL;
}

bool spec_check_measured(const Check *check)
{
    const Spec *spec = check->spec;
    const SpecParallel *parallel = &spec->parallel;
    if (spec->execution.measured_passes == NULL)
        return true;
    const char *other = not_with(spec);
    if (other != NULL)
        return spec_check_fail(
            check, "execution.measured_passes: does not go with %s yet; leave one of them out", other);
    if (!spec_check_known(parallel->pipeline) || !spec_check_known(parallel->virtual_stages) ||
        !spec_check_known(parallel->data) || !spec_check_known(spec->training.micro_batch))
        return true;
    if (parallel->schedule != SPEC_SCHEDULE_FILE && sim_schedule_at((int)parallel->schedule) != NULL &&
        sim_schedule_has(sim_schedule_at((int)parallel->schedule), SIM_TRAIT_PAIRS))
        return spec_check_fail(
            check,
            "execution.measured_passes: does not go with schedule \"%s\", which runs a forward and "
            "a backward at once; give 1f1b or interleaved",
            sim_schedule_at((int)parallel->schedule)->name);
    OrrArena *arena = orr_arena_new();
    GError *problem = NULL;
    SpecMeasured measured;
    const bool ok = spec_measured_read(spec, arena, &measured, &problem);
    orr_arena_free(arena);
    if (!ok) {
        spec_check_fail(check, "%s", problem->message);
        g_error_free(problem);
    }
    return ok;
}
