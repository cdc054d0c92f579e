/* campaign/levels.c - how fast the job goes on with fewer nodes. */
#include "campaign/campaign.h"
#include "spec/load.h"

/* With `data` replicas of the model on the nodes that these need; false: it cannot be. */
static bool shrink(const Spec *spec, int data, Spec *out)
{
    *out = *spec;
    const int gpus = spec_gpus(spec) / spec->parallel.data * data;
    if (spec->training.global_batch % (spec->training.micro_batch * data) != 0 ||
        gpus % spec->cluster.gpus_per_node != 0)
        return false;
    out->parallel.data = data;
    out->cluster.nodes = gpus / spec->cluster.gpus_per_node;
    out->parallel.zero_group_gpus =
        spec->parallel.zero_group_gpus <= data ? spec->parallel.zero_group_gpus : 0;
    return spec_check(out, "faults.elastic", NULL);
}

bool campaign_levels_fill(const Report *report, CampaignRun *run, GError **error)
{
    static const ReportOptions plain;
    const Spec *spec = report->spec;
    g_autofree Spec *fewer = g_new(Spec, 1);
    for (int data = spec->parallel.data - 1; data >= 1 && run->level_count < CAMPAIGN_LEVELS; data--) {
        Report level;
        if (!shrink(spec, data, fewer))
            continue;
        OrrArena *arena = orr_arena_new();
        const bool ok = report_run(fewer, NULL, &plain, arena, &level, NULL) && level.fits;
        if (ok)
            run->levels[run->level_count++] =
                (CampaignLevel){spec->cluster.nodes - fewer->cluster.nodes,
                                MIN(1, (double)report->step_ps / (double)level.step_ps)};
        orr_arena_free(arena);
    }
    if (run->level_count > 0)
        return true;
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "faults.elastic: with fewer than %d replicas of the model nothing fits or divides the batch of %d; "
        "give more replicas, or false",
        spec->parallel.data, spec->training.global_batch);
}
