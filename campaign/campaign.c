/* campaign/campaign.c - see campaign.h. */
#include "campaign/campaign.h"

#include <math.h>
#include <stdlib.h>

#include "base/stats.h"
#include "costmodel/params.h"
#include "costmodel/states.h"
#include "spec/read.h"

#define DAY_S 86400.0
/* A campaign that would take longer than this many times its work is refused: it would not end. */
#define MOST_TIMES 200.0

enum { CURVE_REPLICAS = 100 };

enum { CAUSE_NODE = 2 }; /* of a failure that the scenario names: a host */

typedef enum { PER_GPU, PER_NODE, PER_RACK, PER_POD, PER_JOB } Per;

typedef struct ClassRow {
    const char *key, *label;
    size_t offset; /* in SpecFaults */
    Per per;
    bool takes_nodes;
} ClassRow;

static const ClassRow classes[CAMPAIGN_CAUSES] = {
    {"gpu", "GPU", offsetof(SpecFaults, gpu_mtbf_s), PER_GPU, true},
    {"gpu_memory", "GPU memory", offsetof(SpecFaults, gpu_memory_mtbf_s), PER_GPU, true},
    {"node", "host", offsetof(SpecFaults, node_mtbf_s), PER_NODE, true},
    {"network", "network", offsetof(SpecFaults, network_mtbf_s), PER_NODE, true},
    {"software", "software", offsetof(SpecFaults, software_mtbf_s), PER_NODE, false},
    {"rack", "rack", offsetof(SpecFaults, rack_mtbf_s), PER_RACK, true},
    {"pod", "pod", offsetof(SpecFaults, pod_mtbf_s), PER_POD, true},
    {"spot", "spot node taken back", offsetof(SpecFaults, spot_mtbf_s), PER_NODE, true},
    {"rollback", "diverging loss", offsetof(SpecFaults, rollback_mtbf_s), PER_JOB, false},
};

/* Nodes of one of what a class has. */
static int nodes_of(const Spec *spec, const ClassRow *row)
{
    const int nodes = row->per == PER_RACK  ? spec->faults.rack_nodes
                      : row->per == PER_POD ? spec->faults.pod_nodes
                                            : 1;
    return MIN(nodes, spec->cluster.nodes);
}

/* Failures a second of a class in the whole job. */
static double class_rate(const Spec *spec, const ClassRow *row)
{
    const double mtbf_s = *(const double *)(const void *)((const char *)&spec->faults + row->offset);
    if (!spec->faults.given || spec->faults.failure_count > 0 || !(mtbf_s > 0))
        return 0;
    const int nodes = nodes_of(spec, row), units = (spec->cluster.nodes + nodes - 1) / nodes;
    return (row->per == PER_GPU ? spec_gpus(spec) : row->per == PER_JOB ? 1 : units) / mtbf_s;
}

double campaign_mtbf_s(const Spec *spec)
{
    double rate = 0;
    for (int i = 0; i < CAMPAIGN_CAUSES; i++)
        rate += class_rate(spec, &classes[i]);
    return rate > 0 ? 1 / rate : INFINITY;
}

/* Shares of the causes, and the most nodes that any of them takes. */
static int share_causes(const Spec *spec, CampaignRun *run)
{
    const double mtbf_s = campaign_mtbf_s(spec);
    double until = 0;
    int most = 0;
    run->cause_count = isinf(mtbf_s) && spec->faults.failure_count == 0 ? 0 : CAMPAIGN_CAUSES;
    for (int i = 0; i < run->cause_count; i++) {
        const double rate = class_rate(spec, &classes[i]);
        until += rate > 0 ? rate * mtbf_s : 0;
        run->causes[i] = (CampaignShare){until, classes[i].takes_nodes ? nodes_of(spec, &classes[i]) : 0,
                                         classes[i].per == PER_JOB ? spec->faults.rollback_s : 0};
        most = rate > 0 ? MAX(most, run->causes[i].nodes) : most;
    }
    return most;
}

const char *campaign_cause_label(int cause)
{
    return classes[cause].label;
}

double campaign_checkpoint_bytes(const Spec *spec, double parameters)
{
    const CostRecipe recipe = cost_recipe(spec);
    const double master = fmin(recipe.master, 4); /* wider: an fp32 copy of the gradients is in it */
    return parameters * (recipe.weights + master +
                         recipe.moments * cost_optimizer_moments_ratio(spec->training.optimizer));
}

double campaign_storage_s(double bytes, double bytes_per_s, const SpecStorage *storage, int nodes)
{
    double rate = storage->shared_by == SPEC_SHARED_BY_NODE ? bytes_per_s * nodes : bytes_per_s;
    if (storage->node_bytes_per_s > 0)
        rate = fmin(rate, storage->node_bytes_per_s * nodes);
    return bytes / rate;
}

static bool refuse(const char *where, GError **error, const char *format, ...) G_GNUC_PRINTF(3, 4);

static bool refuse(const char *where, GError **error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *message = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    return orr_fail(error, ORR_ERROR_INPUT, "%s: %s", where, message);
}

/* --- checkpoints --- */

/* Reading one back: all nodes their shares, or one the whole, which it sends to the others over the network. */
static double restore_s(const Spec *spec, double bytes, const SpecStorage *storage)
{
    if (!spec->faults.checkpoint.broadcast)
        return campaign_storage_s(bytes, storage->read_bytes_per_s, storage, spec->cluster.nodes);
    const double network = spec->cluster.scale_out_bytes_per_s_per_gpu * spec->cluster.gpus_per_node;
    return campaign_storage_s(bytes, storage->read_bytes_per_s, storage, 1) +
           (spec->cluster.nodes > 1 ? bytes / network : 0);
}

/* The stall of modes that copy to host memory, and the copy to a peer. */
static bool copy_seconds(Campaign *campaign, double bytes, const char *where, GError **error)
{
    const Spec *spec = campaign->report->spec;
    const SpecCheckpointMode mode = spec->faults.checkpoint.mode;
    const double link = spec->cluster.accelerator.host_link_bytes_per_s;
    const double share = bytes / campaign->report->gpus;
    campaign->checkpoint_bytes = bytes;
    if (mode == SPEC_CHECKPOINT_SYNC)
        return true;
    if (!(link > 0))
        return refuse(where, error,
                      "faults.checkpoint.mode: \"%s\" copies to host memory, and the accelerator's "
                      "host_link_bytes_per_s is not known; give that, or mode \"sync\"",
                      spec_word(&spec_words_checkpoint, (int)mode));
    if (mode == SPEC_CHECKPOINT_PEERS && spec->cluster.nodes == 1)
        return refuse(
            where, error,
            "faults.checkpoint.mode: \"peers\" copies to another node, and there is one; give \"async\"");
    campaign->run.rates.stall_s = share / link;
    campaign->peer_s = share / spec->cluster.scale_out_bytes_per_s_per_gpu;
    return true;
}

/* Into the run what a checkpoint of the mode takes, given what storage takes. */
static void store(Campaign *campaign, double write_s, double load_s, double *ret_load_s)
{
    const SpecCheckpoint *checkpoint = &campaign->report->spec->faults.checkpoint;
    CampaignRun *run = &campaign->run;
    campaign->checkpoint_write_s = write_s;
    *ret_load_s = load_s;
    if (checkpoint->mode == SPEC_CHECKPOINT_SYNC)
        run->rates.stall_s = write_s;
    else if (checkpoint->mode == SPEC_CHECKPOINT_ASYNC)
        run->rates.write_s = write_s;
    if (checkpoint->mode != SPEC_CHECKPOINT_PEERS)
        return;
    run->rates.write_s = campaign->checkpoint_write_s = campaign->peer_s;
    run->store_every = checkpoint->store_every;
    run->stored_write_s = write_s;
    run->stored_load_s = load_s;
    *ret_load_s = fmax(campaign->peer_s, run->rates.stall_s); /* the others from their own memory */
}

/* Sizes and times of one checkpoint, into `campaign` and its run; *ret_load_s: reading one back. */
static bool measure_checkpoint(Campaign *campaign, const char *where, double *ret_load_s, GError **error)
{
    const Spec *spec = campaign->report->spec;
    const SpecCheckpoint *checkpoint = &spec->faults.checkpoint;
    const SpecStorage *storage =
        checkpoint->storage.write_bytes_per_s > 0 ? &checkpoint->storage : &spec->storage;
    const bool stored = storage->write_bytes_per_s > 0;
    if (!stored && (!(checkpoint->write_s > 0) || !(checkpoint->load_s > 0)))
        return refuse(
            where, error,
            "faults.checkpoint: %s without storage or a measured %s; give \"storage\" a preset or its "
            "rates, or mode \"none\"",
            spec_word(&spec_words_checkpoint, (int)checkpoint->mode),
            checkpoint->write_s > 0 ? "load_s" : "write_s");
    const double bytes = checkpoint->bytes > 0
                             ? checkpoint->bytes
                             : campaign_checkpoint_bytes(spec, campaign->report->trained_parameters);
    if (!copy_seconds(campaign, bytes, where, error))
        return false;
    const int writers = checkpoint->one_writer ? 1 : spec->cluster.nodes;
    const double write_s = checkpoint->write_s > 0
                               ? checkpoint->write_s
                               : campaign_storage_s(bytes, storage->write_bytes_per_s, storage, writers);
    store(campaign, write_s, checkpoint->load_s > 0 ? checkpoint->load_s : restore_s(spec, bytes, storage),
          ret_load_s);
    return true;
}

/* The interval, and the campaign cut into a whole number of equal ones. */
static bool choose_interval(Campaign *campaign, const char *where, GError **error)
{
    const SpecCheckpoint *checkpoint = &campaign->report->spec->faults.checkpoint;
    const CampaignRates *rates = &campaign->run.rates;
    if (checkpoint->interval_s > campaign->work_s)
        return refuse(
            where, error,
            "faults.checkpoint.interval_s: %g is longer than the campaign, which trains for %g s; give less, "
            "or mode \"none\"",
            checkpoint->interval_s, campaign->work_s);
    if (checkpoint->interval_s > 0 && checkpoint->interval_s + rates->stall_s < rates->write_s)
        return refuse(
            where, error,
            "faults.checkpoint.interval_s: %g is over before a checkpoint is written, which takes %g s; give "
            "at least %g",
            checkpoint->interval_s, rates->write_s, ceil(rates->write_s));
    campaign->best_interval_s = campaign_best_interval_s(rates, campaign->work_s);
    campaign->interval_s = checkpoint->interval_s > 0 ? checkpoint->interval_s : campaign->best_interval_s;
    campaign->run.segments = fmax(1, round(campaign->work_s / campaign->interval_s));
    campaign->run.interval_s = campaign->work_s / campaign->run.segments;
    if (isinf(rates->mtbf_s))
        return true;
    campaign->young_s = campaign_young_s(rates->stall_s, rates->mtbf_s);
    campaign->daly_s = campaign_daly_s(rates->stall_s, rates->mtbf_s);
    campaign->availability_s = campaign_availability_s(rates->stall_s, rates->mtbf_s, rates->restart_s);
    return true;
}

/* --- what there is to live through --- */

/* Keys that say nothing, or nothing that could be, without another. */
static bool check_pairs(const SpecFaults *faults, const char *where, GError **error)
{
    if (faults->replan && !faults->elastic)
        return refuse(where, error, "faults.replan: true without elastic, so that the job waits; give both");
    if (faults->manual_frac > 0 && !(faults->response_s > 0))
        return refuse(
            where, error,
            "faults.manual_frac: %g of the failures wait for a person, but response_s does not say how "
            "long; give it, or 0",
            faults->manual_frac);
    if (faults->repeat_frac > 0 && !(faults->manual_frac > 0))
        return refuse(where, error,
                      "faults.repeat_frac: %g of waits that manual_frac 0 leaves out; give both, or 0",
                      faults->repeat_frac);
    if (faults->given && faults->rollback_mtbf_s > 0 && faults->rollback_s > 0.9 * faults->rollback_mtbf_s)
        return refuse(
            where, error,
            "faults.rollback_s: %g every %g s of training would throw away what it does; give less, or a "
            "longer rollback_mtbf_s",
            faults->rollback_s, faults->rollback_mtbf_s);
    return true;
}

static bool prepare(Campaign *campaign, const char *where, GError **error)
{
    const Spec *spec = campaign->report->spec;
    const SpecFaults *faults = &spec->faults;
    CampaignRun *run = &campaign->run;
    double load_s = 0;
    const bool saves = faults->given && faults->checkpoint.mode != SPEC_CHECKPOINT_NONE;
    *run = (CampaignRun){
        .rates = {.mtbf_s = campaign_mtbf_s(spec), .fails_in_restart = faults->fails_in_restart},
        .interval_s = campaign->work_s,
        .segments = 1,
        .repair_s = faults->repair_s,
        .manual_frac = faults->response_s > 0 ? faults->manual_frac : 0,
        .response_s = faults->response_s,
        .repeat_frac = faults->repeat_frac,
        .detection_s = faults->detection_s,
        .spares = !faults->given || (faults->spares == SPEC_UNSET && !faults->elastic) ? -1
                  : faults->spares == SPEC_UNSET                                       ? 0
                                                                                       : faults->spares};
    const int most = share_causes(spec, run);
    for (; run->script_count < faults->failure_count; run->script_count++)
        run->script_s[run->script_count] = faults->failures_s[run->script_count];
    run->script_cause = CAUSE_NODE;
    if (run->spares > spec->cluster.nodes)
        return refuse(where, error,
                      "faults.spares: %d is more than the cluster's %d nodes; give at most that many",
                      run->spares, spec->cluster.nodes);
    if (saves && !measure_checkpoint(campaign, where, &load_s, error))
        return false;
    if (!check_pairs(faults, where, error))
        return false;
    if (faults->elastic && !campaign_levels_fill(campaign->report, run, error))
        return false;
    const bool rolls_back = faults->given && faults->rollback_mtbf_s > 0 && faults->rollback_s > 0;
    campaign->by_formula =
        run->spares < 0 && run->script_count == 0 && (run->store_every <= 0 || most <= 1) && !rolls_back;
    const double init_s = faults->init_s + faults->init_s_per_node * spec->cluster.nodes;
    run->load_from_s = faults->detection_s + faults->reschedule_s + init_s;
    run->load_s = load_s;
    run->rates.restart_s = run->load_from_s + load_s + faults->warmup_s;
    if (saves && !choose_interval(campaign, where, error))
        return false;
    campaign->means =
        campaign_means(&run->rates, run->interval_s, run->segments, run->load_from_s, run->load_s);
    const double response_s = run->response_s / (1 - run->repeat_frac);
    campaign->means.waiting_s = campaign->means.interruptions * run->manual_frac * response_s;
    campaign->means.total_s += campaign->means.waiting_s;
    campaign->exact_s =
        campaign_total_s(&run->rates, run->interval_s, run->segments) + campaign->means.waiting_s;
    if (!(campaign->exact_s <= MOST_TIMES * campaign->work_s)) /* nor where it is beyond all numbers */
        return refuse(
            where, error,
            "faults: with a failure every %.6g s, %.6g s of uptime between checkpoints and %.6g s of "
            "restart the campaign would hardly end; give shorter intervals, faster storage or fewer GPUs",
            run->rates.mtbf_s, run->interval_s + run->rates.stall_s + run->rates.write_s,
            run->rates.restart_s);
    campaign->exact_frac = campaign->ideal_s / campaign->exact_s;
    campaign->first_order_frac = campaign_first_order(&run->rates, run->interval_s) -
                                 run->manual_frac * response_s / run->rates.mtbf_s;
    return true;
}

/* --- over replicas --- */

static void summarise(Campaign *campaign, const CampaignLife *lives)
{
    const int64_t count = campaign->options.replicas;
    g_autofree double *days = g_new(double, (gsize)count), *goodput = g_new(double, (gsize)count),
                      *hits = g_new(double, (gsize)count), *away = g_new(double, (gsize)count);
    for (int64_t i = 0; i < count; i++) {
        const CampaignLife *life = &lives[i];
        days[i] = campaign->ideal_s / DAY_S * (life->total_s / campaign->ideal_s);
        goodput[i] = campaign->ideal_s / life->total_s;
        hits[i] = (double)life->interruptions;
        away[i] = (double)life->nodes_away;
        campaign->checkpoint_s += life->checkpoint_s / (double)count;
        campaign->lost_work_s += life->lost_work_s / (double)count;
        campaign->restart_s += life->restart_s / (double)count;
        campaign->loading_s += life->loading_s / (double)count;
        campaign->waiting_s += life->waiting_s / (double)count;
        campaign->degraded_s += life->degraded_s / (double)count;
    }
    campaign->days = orr_stats_spread(days, (size_t)count);
    campaign->days_error = orr_stats_mean_error(days, (size_t)count, campaign->days.mean);
    campaign->goodput = orr_stats_spread(goodput, (size_t)count);
    campaign->interruptions = orr_stats_spread(hits, (size_t)count);
    campaign->spare_nodes = orr_stats_spread(away, (size_t)count);
    for (int i = 0; i < CAMPAIGN_CAUSES; i++) {
        const double rate = class_rate(campaign->report->spec, &classes[i]);
        campaign->causes[i] =
            (CampaignCause){classes[i].key, classes[i].label, rate > 0 ? 1 / rate : INFINITY,
                            rate > 0 ? campaign->interruptions.mean * rate * campaign->run.rates.mtbf_s : 0};
    }
}

/* Days over the number of spare nodes, up to as many as nine of ten campaigns have away. */
static void fill_spares(Campaign *campaign)
{
    CampaignRun run = campaign->run;
    const int64_t count = MIN(campaign->options.replicas, CURVE_REPLICAS);
    g_autofree CampaignLife *lives = g_new(CampaignLife, (gsize)count);
    g_autofree double *days = g_new(double, (gsize)count), *away = g_new(double, (gsize)count);
    run.spares = -1;
    campaign_live_team(&run, campaign->options.seed, count, campaign->options.crew.threads,
                       campaign->options.crew.team, lives);
    for (int64_t i = 0; i < count; i++)
        away[i] = (double)lives[i].nodes_away;
    const int most = (int)orr_stats_spread(away, (size_t)count).p90;
    for (int i = 0; most > 0 && i < CAMPAIGN_SPARES; i++) {
        const int spares = (int)lround((double)most * i / (CAMPAIGN_SPARES - 1));
        if (i > 0 && spares == campaign->spares_curve[campaign->spares_count - 1].spares)
            continue;
        run.spares = spares;
        campaign_live_team(&run, campaign->options.seed, count, campaign->options.crew.threads,
                           campaign->options.crew.team, lives);
        for (int64_t k = 0; k < count; k++)
            days[k] = lives[k].total_s / DAY_S;
        const OrrSpread all = orr_stats_spread(days, (size_t)count);
        campaign->spares_curve[campaign->spares_count++] = (CampaignSpares){spares, all.mean, all.p90};
    }
}

static void fill_events(Campaign *campaign)
{
    g_autoptr(GArray) events = g_array_new(FALSE, FALSE, sizeof(CampaignEvent));
    campaign_live_events(&campaign->run, campaign->options.seed, 0, events);
    for (guint i = 0; i < events->len && campaign->event_count < CAMPAIGN_EVENTS; i++)
        campaign->events[campaign->event_count++] = g_array_index(events, CampaignEvent, i);
}

bool campaign_prepare(const Report *report, const char *where, const CampaignOptions *options,
                      Campaign *ret_campaign, GError **error)
{
    Campaign campaign = {.report = report, .options = *options, .asked_replicas = options->replicas};
    const double ideal_ps = (double)report_even_ps(report);
    campaign.ideal_s =
        (options->ideal_days > 0 ? options->ideal_days : report->days * ideal_ps / (double)report->step_ps) *
        DAY_S;
    if (!(campaign.ideal_s > 0))
        return refuse(where, error,
                      "training.tokens: is not given, so that the campaign has no end; give it, as in "
                      "15e12, or --days");
    campaign.slow_s = campaign.ideal_s * (double)report->late_ps[REPORT_LATE_STRAGGLERS] / ideal_ps;
    campaign.input_s = campaign.ideal_s * (double)report->late_ps[REPORT_LATE_INPUT] / ideal_ps;
    const double steps_s = campaign.ideal_s + campaign.slow_s;
    campaign.eval_s = steps_s * report->input.eval_frac;
    campaign.skipped_s =
        (steps_s + campaign.input_s) * report->input.skipped_frac / (1 - report->input.skipped_frac);
    campaign.work_s = steps_s + campaign.input_s + campaign.eval_s + campaign.skipped_s;
    if (!prepare(&campaign, where, error))
        return false;
    *ret_campaign = campaign;
    return true;
}

/* A core lives through some four million interruptions a second: beyond minutes of it nobody waits for an answer. */
static bool check_work(const Campaign *campaign, const char *where, int64_t replicas, GError **error)
{
    const double each = campaign->work_s / campaign->run.rates.mtbf_s, most = 2e9;
    return each * (double)replicas <= most ||
           orr_fail(
               error, ORR_ERROR_INPUT,
               "%s: about %.3g interruptions in each of %lld replicas take a core %.2g hours; give at most "
               "%.3g replicas, or fewer days",
               where, each, (long long)replicas, each * (double)replicas / 4e6 / 3600, floor(most / each));
}

bool campaign_run(const Report *report, const char *where, const CampaignOptions *options,
                  Campaign *ret_campaign, GError **error)
{
    Campaign campaign;
    g_assert(options->replicas >= 1);
    if (!campaign_prepare(report, where, options, &campaign, error) ||
        !check_work(&campaign, where, options->replicas, error))
        return false;
    g_autofree CampaignLife *lives = g_new(CampaignLife, (gsize)options->replicas);
    campaign.options.replicas =
        campaign_live_until(&campaign.run, options->seed, options->replicas, &options->crew, lives);
    const bool whole = campaign.options.replicas == options->replicas;
    summarise(&campaign, lives);
    fill_events(&campaign);
    if (options->curve && whole)
        fill_spares(&campaign);
    *ret_campaign = campaign;
    return true;
}
