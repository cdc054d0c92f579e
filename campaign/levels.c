/* campaign/levels.c - how fast the job goes on with fewer nodes. */
#include <string.h>

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

static void add_level(const Report *report, const Spec *fewer, CampaignRun *run)
{
    static const ReportOptions plain;
    Report level;
    OrrArena *arena = orr_arena_new();
    if (report_run(fewer, NULL, &plain, arena, &level, NULL) && level.fits)
        run->levels[run->level_count++] =
            (CampaignLevel){report->spec->cluster.nodes - fewer->cluster.nodes,
                            MIN(1, (double)report->step_ps / (double)level.step_ps)};
    orr_arena_free(arena);
}

/* --- other degrees --- */

/* By rising `missing`; a level that is no faster than one that misses as many or more goes. Where they are too many the last
 * but one goes. */
static void put_level(CampaignRun *run, const CampaignLevel *level)
{
    CampaignLevel kept[CAMPAIGN_LEVELS + 1];
    int count = 0, first = 0;
    for (int i = 0; i < run->level_count; i++) {
        const CampaignLevel *other = &run->levels[i];
        if (other->missing >= level->missing && other->rate >= level->rate)
            return;
        if (other->missing > level->missing || other->rate > level->rate)
            kept[count++] = *other;
        first += other->missing < level->missing && other->rate > level->rate;
    }
    memmove(&kept[first + 1], &kept[first], sizeof *kept * (size_t)(count - first));
    kept[first] = *level;
    if (++count > CAMPAIGN_LEVELS) {
        kept[CAMPAIGN_LEVELS - 1] = kept[CAMPAIGN_LEVELS];
        count = CAMPAIGN_LEVELS;
    }
    memcpy(run->levels, kept, sizeof *kept * (size_t)count);
    run->level_count = count;
}

/* The most replicas of the model with these degrees that fewer nodes hold and that divide the batch. */
static bool redivide(const Spec *spec, int tensor, int pipeline, Spec *out)
{
    const int split = tensor * pipeline * spec->parallel.context, node = spec->cluster.gpus_per_node;
    const int most = (spec->cluster.nodes - 1) * node / split;
    *out = *spec;
    out->parallel.tensor = tensor;
    out->parallel.pipeline = pipeline;
    if (out->parallel.expert_tensor > tensor)
        out->parallel.expert_tensor = tensor;
    for (int data = most; data >= 1; data--) {
        const int gpus = split * data;
        if (gpus % node != 0 || spec->training.global_batch % (spec->training.micro_batch * data) != 0)
            continue;
        out->parallel.data = data;
        out->cluster.nodes = gpus / node;
        out->parallel.zero_group_gpus =
            spec->parallel.zero_group_gpus <= data ? spec->parallel.zero_group_gpus : 0;
        return spec_check(out, "faults.replan", NULL);
    }
    return false;
}

/* Tensor degrees up to a node, pipelines up to the layers, both by doubling. */
static void replan(const Report *report, Spec *fewer, CampaignRun *run)
{
    const Spec *spec = report->spec;
    const int chunks = MAX(1, spec->parallel.virtual_stages);
    if (spec->parallel.stage_layers_count > 0 || spec->model.list.text != NULL)
        return; /* a layout of its own belongs to its degrees */
    for (int tensor = 1; tensor <= spec->cluster.gpus_per_node; tensor *= 2)
        for (int pipeline = 1; pipeline * chunks <= spec->model.layers; pipeline *= 2) {
            CampaignRun one = {.level_count = 0};
            if (redivide(spec, tensor, pipeline, fewer))
                add_level(report, fewer, &one);
            if (one.level_count > 0)
                put_level(run, &one.levels[0]);
        }
}

bool campaign_levels_fill(const Report *report, CampaignRun *run, GError **error)
{
    const Spec *spec = report->spec;
    g_autofree Spec *fewer = g_new(Spec, 1);
    for (int data = spec->parallel.data - 1; data >= 1 && run->level_count < CAMPAIGN_LEVELS; data--)
        if (shrink(spec, data, fewer))
            add_level(report, fewer, run);
    if (spec->faults.replan)
        replan(report, fewer, run);
    if (run->level_count > 0)
        return true;
    return orr_fail(
        error, ORR_ERROR_INPUT,
        "faults.elastic: with fewer than %d replicas of the model nothing fits or divides the batch of %d; "
        "give more replicas, or false",
        spec->parallel.data, spec->training.global_batch);
}
