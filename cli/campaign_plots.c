/* cli/campaign_plots.c - see campaign_plots.h. */
#include "cli/campaign_plots.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "campaign/effective.h"

enum { REPLICAS = 400, LEAST_GPUS = 1024, MOST_GPUS = 262144, MODES = 3, INTERVALS = 41 };

/* The scenario with what fails in it, and a report of it. */
static bool give_faults(ApiSimulation *simulation, Spec **ret_spec, Report *ret_report, GError **error)
{
    CampaignAssumed assumed;
    Spec *spec = ORR_ARENA_NEW(simulation->arena, Spec, 1);
    if (!campaign_assumed_load(&assumed, error))
        return false;
    *spec = *simulation->report.spec;
    campaign_assume(&assumed, spec, NULL);
    *ret_spec = spec;
    *ret_report = simulation->report;
    ret_report->spec = spec;
    return true;
}

/* Mean goodput, and the band of nine of ten replicas. */
static void live_goodput(const Campaign *campaign, double *ret_mean, double *ret_low, double *ret_high)
{
    g_autofree CampaignLife *lives = g_new(CampaignLife, REPLICAS);
    g_autofree double *goodput = g_new(double, REPLICAS);
    double mean_s = 0;
    campaign_live_all(&campaign->run, 1, REPLICAS, 0, lives);
    for (int i = 0; i < REPLICAS; i++) {
        goodput[i] = campaign->ideal_s / lives[i].total_s;
        mean_s += lives[i].total_s / REPLICAS;
    }
    orr_stats_sort(goodput, REPLICAS);
    *ret_mean = campaign->ideal_s / mean_s;
    *ret_low = goodput[REPLICAS / 20];
    *ret_high = goodput[REPLICAS - 1 - REPLICAS / 20];
}

/* --- goodput over GPUs --- */

static void add_goodput(GArray *points, const PlotGoodput *like, const Report *report, Spec *spec, int nodes)
{
    const CampaignOptions options = {.replicas = REPLICAS, .seed = 1};
    Campaign campaign;
    Report sized = *report;
    PlotGoodput point = *like;
    const int own = spec->cluster.nodes;
    spec->cluster.nodes = nodes;
    sized.gpus = point.gpus = nodes * spec->cluster.gpus_per_node;
    point.own = like->own && nodes == own;
    if (campaign_prepare(&sized, "", &options, &campaign,
                         NULL)) { /* a size whose run would not end has no point */
        live_goodput(&campaign, &point.mean, &point.low, &point.high);
        g_array_append_val(points, point);
    }
    spec->cluster.nodes = own;
}

bool cli_plot_goodput(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error)
{
    static const struct {
        SpecCheckpointMode mode;
        const char *name;
    } modes[MODES] = {{SPEC_CHECKPOINT_SYNC, "training stops while a checkpoint is written (sync)"},
                      {SPEC_CHECKPOINT_ASYNC, "written during training (async)"},
                      {SPEC_CHECKPOINT_PEERS, "kept in other nodes' memory (peers)"}};
    const CampaignOptions options = {.replicas = 1, .seed = 1};
    Spec *spec = NULL;
    Report report;
    Campaign campaign;
    g_autoptr(GArray) points = g_array_new(FALSE, TRUE, sizeof(PlotGoodput));
    if (!give_faults(simulation, &spec, &report, error) ||
        !campaign_prepare(&report, where, &options, &campaign, error))
        return false;
    if (isinf(campaign.run.rates.mtbf_s))
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "%s: --what goodput: nothing fails at random, so that goodput is the same on any number "
            "of GPUs; give faults with rates (orrery help faults)",
            where);
    const SpecCheckpoint own = spec->faults.checkpoint;
    const int per_node = spec->cluster.gpus_per_node, nodes = spec->cluster.nodes;
    int series = 0;
    for (int m = 0; m < MODES; m++) {
        const PlotGoodput like = {.series = series, .name = modes[m].name, .own = own.mode == modes[m].mode};
        const guint before = points->len;
        spec->faults.elastic = false; /* fewer replicas are of the scenario's own size only */
        spec->faults.checkpoint.mode = modes[m].mode;
        spec->faults.checkpoint.interval_s = 0;
        bool told = false;
        for (int gpus = LEAST_GPUS; gpus <= MOST_GPUS; gpus *= 2) {
            if (!told && nodes * per_node <= gpus)
                add_goodput(points, &like, &report, spec, nodes);
            told = told || nodes * per_node <= gpus;
            if (gpus / per_node != nodes && gpus % per_node == 0)
                add_goodput(points, &like, &report, spec, gpus / per_node);
        }
        series += points->len > before;
    }
    return plot_goodput(spec->name, (const PlotGoodput *)(void *)points->data, (int)points->len, target,
                        error);
}

/* --- goodput over the interval --- */

bool cli_plot_interval(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error)
{
    const CampaignOptions options = {.replicas = REPLICAS, .seed = 1};
    Spec *spec = NULL;
    Report report;
    Campaign own, campaign;
    g_autoptr(GArray) points = g_array_new(FALSE, TRUE, sizeof(PlotInterval));
    if (!give_faults(simulation, &spec, &report, error) ||
        !campaign_prepare(&report, where, &options, &own, error))
        return false;
    if (!(own.best_interval_s > 0) || isinf(own.run.rates.mtbf_s))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: --what interval: without checkpoints and random failures no interval is best; "
                        "give faults with rates and a checkpoint mode",
                        where);
    for (int i = 0; i < INTERVALS; i++) {
        const double interval_s = own.best_interval_s * pow(10, 2.0 * i / (INTERVALS - 1) - 1);
        PlotInterval point = {.interval_s = interval_s};
        double mean = 0;
        spec->faults.checkpoint.interval_s = interval_s;
        if (interval_s > own.work_s || !campaign_prepare(&report, where, &options, &campaign, NULL))
            continue;
        point.exact = campaign.exact_frac;
        point.first_order = campaign.first_order_frac;
        live_goodput(&campaign, &mean, &point.low, &point.high);
        if (!campaign.by_formula)
            point.exact = mean;
        g_array_append_val(points, point);
    }
    const PlotMark marks[] = {{"best", own.best_interval_s},
                              {"Young", own.young_s},
                              {"Daly", own.daly_s},
                              {"asked for", own.interval_s}};
    const bool asked = fabs(own.interval_s - own.best_interval_s) > 1e-9;
    return plot_interval(spec->name, (const PlotInterval *)(void *)points->data, (int)points->len, marks,
                         asked ? 4 : 3, target, error);
}

/* --- one campaign --- */

/* The scenario's campaign with its curves; on the heap, for it is large. */
static Campaign *live(ApiSimulation *simulation, const char *where, bool curve, GError **error)
{
    const CampaignOptions options = {.replicas = REPLICAS, .seed = 1, .curve = curve};
    Spec *spec = NULL;
    Report *report = ORR_ARENA_NEW(simulation->arena, Report, 1);
    g_autofree Campaign *campaign = g_new0(Campaign, 1);
    return give_faults(simulation, &spec, report, error) &&
                   campaign_run(report, where, &options, campaign, error)
               ? g_steal_pointer(&campaign)
               : NULL;
}

bool cli_plot_interruptions(ApiSimulation *simulation, const char *where, const PlotTarget *target,
                            GError **error)
{
    g_autofree Campaign *campaign = live(simulation, where, false, error);
    const char *causes[CAMPAIGN_CAUSES];
    PlotInterruption points[CAMPAIGN_EVENTS];
    int used[CAMPAIGN_CAUSES] = {0}, count = 0;
    if (campaign == NULL)
        return false;
    if (campaign->event_count == 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: --what interruptions: nothing fails in this campaign; give faults with rates",
                        where);
    for (int i = 0; i < campaign->event_count; i++)
        used[campaign->events[i].cause] = 1;
    for (int i = 0; i < CAMPAIGN_CAUSES; i++) {
        causes[count] = campaign_cause_label(i);
        used[i] = used[i] != 0 ? count++ : -1;
    }
    for (int i = 0; i < campaign->event_count; i++) {
        const CampaignEvent *event = &campaign->events[i];
        points[i] = (PlotInterruption){event->at_s, event->lost_s, event->waited_s, used[event->cause],
                                       event->nodes_away};
    }
    return plot_interruptions(campaign->report->spec->name, causes, count, points, campaign->event_count,
                              target, error);
}

bool cli_plot_spares(ApiSimulation *simulation, const char *where, const PlotTarget *target, GError **error)
{
    g_autofree Campaign *campaign = live(simulation, where, true, error);
    PlotSpares points[CAMPAIGN_SPARES];
    if (campaign == NULL)
        return false;
    if (campaign->spares_count < 2)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: --what spares: nine of ten campaigns have no node away; give faults with higher "
                        "rates or more nodes",
                        where);
    for (int i = 0; i < campaign->spares_count; i++)
        points[i] = (PlotSpares){campaign->spares_curve[i].spares, campaign->spares_curve[i].days,
                                 campaign->spares_curve[i].days_p90};
    return plot_spares(campaign->report->spec->name, campaign->ideal_s / 86400, points,
                       campaign->spares_count, target, error);
}
