/* campaign/effective.c - see effective.h. */
#include "campaign/effective.h"

#include "spec/load.h"
#include "spec/read.h"

#define DAY_S 86400.0

enum { REPLICAS = 256 }; /* where there is no formula */

bool campaign_assumed_load(CampaignAssumed *ret_assumed, GError **error)
{
    return spec_load_faults(CAMPAIGN_ASSUMED_FAULTS, &ret_assumed->faults, error) &&
           spec_load_storage(CAMPAIGN_ASSUMED_STORAGE, &ret_assumed->storage, error);
}

void campaign_part_days(const Campaign *campaign, bool lived, double *days)
{
    const CampaignMeans *means = &campaign->means;
    const double seconds[REPORT_LIFE_COUNT] = {
        [REPORT_LIFE_COMPUTE] = campaign->ideal_s,
        [REPORT_LIFE_SLOW] = campaign->slow_s,
        [REPORT_LIFE_INPUT] = campaign->input_s,
        [REPORT_LIFE_EVALUATION] = campaign->eval_s,
        [REPORT_LIFE_SKIPPED] = campaign->skipped_s,
        [REPORT_LIFE_CHECKPOINT] = lived ? campaign->checkpoint_s : means->checkpoint_s,
        [REPORT_LIFE_FAILURES] = lived ? campaign->lost_work_s : means->lost_work_s,
        [REPORT_LIFE_RESTARTS] = lived ? campaign->restart_s : means->restart_s,
        [REPORT_LIFE_LOADING] = lived ? campaign->loading_s : means->loading_s,
        [REPORT_LIFE_DEGRADED] = lived ? campaign->degraded_s : 0,
        [REPORT_LIFE_WAITING] = lived ? campaign->waiting_s : means->waiting_s};
    for (int part = 0; part < REPORT_LIFE_COUNT; part++)
        days[part] = seconds[part] / DAY_S;
}

static void fill_parts(const Campaign *campaign, bool lived, ReportEffective *effective)
{
    const double *days = effective->part_days;
    campaign_part_days(campaign, lived, effective->part_days);
    effective->days = 0;
    for (int part = 0; part < REPORT_LIFE_COUNT; part++)
        effective->days += days[part];
    effective->goodput = days[REPORT_LIFE_COMPUTE] / effective->days;
    effective->interruptions = lived ? campaign->interruptions.mean : campaign->means.interruptions;
    effective->told = true;
}

double campaign_kwh(const Report *report, const double *part_days, double days, double *ret_waiting)
{
    static const ReportLife waits[] = {REPORT_LIFE_SLOW,     REPORT_LIFE_INPUT,   REPORT_LIFE_CHECKPOINT,
                                       REPORT_LIFE_RESTARTS, REPORT_LIFE_LOADING, REPORT_LIFE_WAITING};
    const double late_frac = (double)report->late_ps[REPORT_LATE_LENGTHS] / (double)report_even_ps(report);
    double waiting_days = part_days[REPORT_LIFE_COMPUTE] * late_frac; /* for the rank of the longest texts */
    for (gsize i = 0; i < G_N_ELEMENTS(waits); i++)
        waiting_days += part_days[waits[i]];
    *ret_waiting = waiting_days * report->waiting_w * 24 / 1000;
    return (days - waiting_days) * report->step_w * 24 / 1000 + *ret_waiting;
}

/* Costs are those of the time that the GPUs are held. */
static void stretch_costs(Report *report)
{
    const double times = report->effective.days / report->days;
    const bool known = report->waiting_w < report->step_w; /* else a wait counts as a step */
    const double kwh =
        campaign_kwh(report, report->effective.part_days, report->effective.days, &report->waiting_kwh);
    report->gpu_hours *= times;
    report_energy_fill(report, report_hours_usd(report) * times, known ? kwh : report->kwh * times);
}

void campaign_assume(const CampaignAssumed *assumed, Spec *spec, bool *ret_storage)
{
    if (!spec->faults.given)
        spec->faults = assumed->faults;
    const SpecCheckpoint *checkpoint = &spec->faults.checkpoint;
    const bool stored = checkpoint->storage.write_bytes_per_s > 0 || spec->storage.write_bytes_per_s > 0 ||
                        (checkpoint->write_s > 0 && checkpoint->load_s > 0);
    const bool lacks = checkpoint->mode != SPEC_CHECKPOINT_NONE && !stored;
    if (lacks)
        spec->storage = assumed->storage;
    if (ret_storage != NULL)
        *ret_storage = lacks;
}

/* Of a scenario as a whole: whether its failures, or those of a preset, count. */
static bool lives(const Report *report)
{
    return report->spec->faults.given || report->gpus >= CAMPAIGN_ASSUMED_GPUS;
}

static void name_assumed(const Spec *lived, bool own, bool storage_assumed, ReportEffective *effective)
{
    const SpecCheckpoint *checkpoint = &lived->faults.checkpoint;
    effective->faults = lived->faults.name;
    effective->storage = checkpoint->mode == SPEC_CHECKPOINT_NONE    ? ""
                         : checkpoint->storage.write_bytes_per_s > 0 ? checkpoint->storage.name
                                                                     : lived->storage.name;
    effective->faults_assumed = !own;
    effective->storage_assumed = storage_assumed;
}

bool campaign_assume_shipped(Spec *spec, Report *report, GError **error)
{
    CampaignAssumed assumed;
    bool storage_assumed = false;
    if (!lives(report))
        return true;
    if (!campaign_assumed_load(&assumed, error))
        return false;
    const bool own = report->spec->faults.given;
    *spec = *report->spec;
    campaign_assume(&assumed, spec, &storage_assumed);
    report->spec = spec;
    name_assumed(spec, own, storage_assumed, &report->effective);
    return true;
}

bool campaign_effective_fill(const CampaignAssumed *assumed, const char *where, OrrArena *arena,
                             Report *report, GError **error)
{
    const Spec *spec = report->spec;
    const bool own = spec->faults.given;
    if (!(report->days > 0) || !lives(report))
        return true;
    Spec *lived = ORR_ARENA_NEW(arena, Spec, 1);
    Campaign campaign;
    GError *failure = NULL;
    *lived = *spec;
    bool storage_assumed = false;
    campaign_assume(assumed, lived, &storage_assumed);
    Report over = *report;
    over.spec = lived;
    const CampaignOptions options = {.replicas = REPLICAS, .seed = 1};
    bool ok = campaign_prepare(&over, where, &options, &campaign, &failure);
    const bool replicas = ok && !campaign.by_formula;
    if (replicas)
        ok = campaign_run(&over, where, &options, &campaign, &failure);
    if (!ok && own) {
        g_propagate_error(error, failure);
        return false;
    }
    ReportEffective *effective = &report->effective;
    name_assumed(lived, own, storage_assumed, effective);
    if (!ok) {
        effective->why_not = orr_arena_strdup(arena, failure->message);
        g_error_free(failure);
        return true;
    }
    fill_parts(&campaign, replicas, effective);
    stretch_costs(report);
    return true;
}
