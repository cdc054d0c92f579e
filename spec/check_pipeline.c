/* spec/check_pipeline.c - contradictions of schedules, orders and layouts, of offloading and of a search's limits. */
#include <string.h>

#include "spec/checks.h"
#include "spec/placement.h"

/* A file of op orders replays one shape of pipeline. */
static bool check_orders(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const SpecTraining *training = &check->spec->training;
    const SpecOrders *orders = &parallel->orders;
    const char *file = parallel->schedule_file;
    const int copies = orders->placement == SIM_PLACE_BIDIRECTIONAL ? 2 : 1;
    if (!spec_check_known(parallel->pipeline) || !spec_check_known(parallel->virtual_stages) ||
        !spec_check_known(parallel->data) || !spec_check_known(training->micro_batch))
        return spec_check_fail(
            check,
            "parallel.schedule: \"%s\" is written for one shape of pipeline, but pipeline, virtual_stages, "
            "data or micro_batch is \"auto\"; give numbers there",
            file);
    if (parallel->pipeline != orders->ranks)
        return spec_check_fail(
            check, "parallel.pipeline: %d, but \"%s\" gives orders for %d pipeline ranks; give %d",
            parallel->pipeline, file, orders->ranks, orders->ranks);
    if (parallel->virtual_stages != orders->chunks / copies && parallel->virtual_stages != orders->chunks)
        return spec_check_fail(
            check, "parallel.virtual_stages: %d, but \"%s\" gives every rank %d model stages; give %d",
            parallel->virtual_stages, file, orders->chunks, orders->chunks / copies);
    const int microbatches = spec_microbatches(check->spec);
    if (microbatches != orders->microbatches)
        return spec_check_fail(
            check,
            "parallel.schedule: \"%s\" gives orders for %d micro-batches, but global_batch %d / "
            "(micro_batch %d x data %d) = %d; give orders for %d, or global_batch %" G_GINT64_FORMAT,
            file, orders->microbatches, training->global_batch, training->micro_batch, parallel->data,
            microbatches, microbatches,
            (gint64)orders->microbatches * training->micro_batch * parallel->data);
    return true;
}

/* Of the schedules, the one that makes its order from times and memory. */
static const char *name_of_timed(void)
{
    int row = 0;
    while (!sim_schedule_needs_times(sim_schedule_at(row)))
        row++;
    return sim_schedule_at(row)->name;
}

static bool check_group(const Check *check, const SimSchedule *row)
{
    const SpecParallel *parallel = &check->spec->parallel;
    if (parallel->microbatch_group == 0)
        return true;
    if (spec_check_known((int)parallel->schedule) &&
        (row == NULL || !sim_schedule_has(row, SIM_TRAIT_GROUPS)))
        return spec_check_fail(check,
                               "parallel.microbatch_group: %d, but schedule \"%s\" runs no groups of "
                               "micro-batches; give \"%s\", or "
                               "leave it out",
                               parallel->microbatch_group, row != NULL ? row->name : parallel->schedule_file,
                               sim_schedule_at(sim_schedule_usual(2))->name);
    if (spec_check_known(parallel->pipeline) && parallel->microbatch_group < parallel->pipeline)
        return spec_check_fail(
            check, "parallel.microbatch_group: %d, less than the %d pipeline ranks; give at least as many",
            parallel->microbatch_group, parallel->pipeline);
    return true;
}

static bool check_schedule(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    const int schedule = (int)parallel->schedule, chunks = parallel->virtual_stages,
              pipeline = parallel->pipeline;
    const SimSchedule *row = sim_schedule_at(schedule);
    if (parallel->live_microbatches > 0 && !sim_schedule_needs_times(row))
        return spec_check_fail(check,
                               "parallel.live_microbatches: %d, which only schedule \"%s\" keeps; give that "
                               "schedule, or leave it out",
                               parallel->live_microbatches, name_of_timed());
    if (!check_group(check, row))
        return false;
    if (schedule == SPEC_SCHEDULE_FILE)
        return check_orders(check);
    if (row == NULL || !spec_check_known(chunks))
        return true;
    if (sim_schedule_has(row, SIM_TRAIT_NEEDS_CHUNKS) && chunks < 2)
        return spec_check_fail(
            check,
            "parallel.schedule: \"%s\" needs virtual_stages above 1; give 2 or more, or schedule "
            "\"%s\"",
            row->name, row->one_chunk);
    const bool one_copy = row->placement != SIM_PLACE_BIDIRECTIONAL;
    if (one_copy && row->fixed_chunks > 1 && chunks != row->fixed_chunks)
        return spec_check_fail(
            check,
            "parallel.virtual_stages: %d with schedule \"%s\", whose ranks hold %d model chunks; give %d",
            chunks, row->name, row->fixed_chunks, row->fixed_chunks);
    if (one_copy && row->fixed_chunks == 1 && chunks > 1)
        return spec_check_fail(check,
                               "parallel.virtual_stages: %d with schedule \"%s\", which has none; give 1, or "
                               "schedule \"%s\"",
                               chunks, row->name, sim_schedule_at(sim_schedule_usual(chunks))->name);
    if (chunks > 1 && pipeline == 1)
        return spec_check_fail(
            check, "parallel.virtual_stages: %d without a pipeline; give 1, or a pipeline above 1", chunks);
    return true;
}

static bool check_layout(const Check *check)
{
    const SpecParallel *parallel = &check->spec->parallel;
    GError *problem = NULL;
    int counts[SPEC_MAX_STAGES];
    if (!spec_check_known(parallel->pipeline) || !spec_check_known(parallel->virtual_stages))
        return true;
    if (spec_stage_layers(check->spec, counts, &problem))
        return true;
    spec_check_fail(check, "%s", problem->message);
    g_error_free(problem);
    return false;
}

static bool check_offload(const Check *check)
{
    GError *problem = NULL;
    if (spec_offload_check(check->spec, &problem))
        return true;
    spec_check_fail(check, "%s", problem->message);
    g_error_free(problem);
    return false;
}

static bool check_search(const Check *check)
{
    const double all = check->spec->cluster.accelerator.memory_bytes;
    if (check->spec->search.reserve_memory_bytes >= all)
        return spec_check_fail(
            check, "search.reserve_memory_bytes: %.0f leaves nothing of the %.0f bytes of %s; give less",
            check->spec->search.reserve_memory_bytes, all, check->spec->cluster.accelerator.name);
    const SpecChoices *nodes = &check->spec->search.nodes;
    for (int i = 0; i < nodes->count; i++)
        if (nodes->value[i] < 1)
            return spec_check_fail(check, "search.nodes: %d is not a number of nodes; give 1 or more",
                                   nodes->value[i]);
    if (nodes->count == 0 && nodes->min > nodes->max)
        return spec_check_fail(check, "search.nodes: min %d is above max %d; give both, or a list",
                               nodes->min, nodes->max);
    return true;
}

bool spec_check_pipeline(const Check *check)
{
    return check_schedule(check) && check_layout(check) && check_offload(check) && check_search(check);
}
