/* campaign/write.c - a campaign as JSON and as a page. Computes nothing. */
#include <math.h>

#include "base/json.h"
#include "base/text.h"
#include "campaign/campaign.h"
#include "campaign/effective.h"
#include "report/groups.h"
#include "report/effective.h"
#include "report/page.h"

enum { LABEL_COLUMN = 18 };

#define DAY_S 86400.0

static void write_spread(OrrJsonWriter *w, const char *key, const OrrSpread *spread)
{
    orr_jw_begin(w, key, '{');
    orr_jw_number(w, "mean", spread->mean);
    orr_jw_number(w, "p10", spread->p10);
    orr_jw_number(w, "p50", spread->p50);
    orr_jw_number(w, "p90", spread->p90);
    orr_jw_end(w, '}');
}

/* null where it does not apply */
static void write_positive(OrrJsonWriter *w, const char *key, double value)
{
    orr_jw_number(w, key, value > 0 ? value : NAN);
}

static void write_causes(const Campaign *campaign, OrrJsonWriter *w)
{
    orr_jw_begin(w, "causes", '[');
    for (int i = 0; i < CAMPAIGN_CAUSES; i++) {
        const CampaignCause *cause = &campaign->causes[i];
        if (isinf(cause->mtbf_s))
            continue;
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "cause", cause->key);
        orr_jw_number(w, "mtbf_s", cause->mtbf_s);
        orr_jw_number(w, "interruptions", cause->per_replica);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void write_curve(const Campaign *campaign, OrrJsonWriter *w)
{
    orr_jw_begin(w, "spares_curve", '[');
    for (int i = 0; i < campaign->spares_count; i++) {
        orr_jw_begin(w, NULL, '{');
        orr_jw_int(w, "spares", campaign->spares_curve[i].spares);
        orr_jw_number(w, "days", campaign->spares_curve[i].days);
        orr_jw_number(w, "days_p90", campaign->spares_curve[i].days_p90);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void write_timeline(const Campaign *campaign, OrrJsonWriter *w)
{
    orr_jw_begin(w, "timeline", '[');
    for (int i = 0; i < campaign->event_count; i++) {
        const CampaignEvent *event = &campaign->events[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_number(w, "at_s", event->at_s);
        orr_jw_text(w, "cause", campaign_cause_label(event->cause));
        orr_jw_int(w, "nodes_lost", event->nodes);
        orr_jw_int(w, "nodes_away", event->nodes_away);
        orr_jw_number(w, "lost_work_s", event->lost_s);
        orr_jw_number(w, "waiting_s", event->waited_s);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static double energy_kwh(const Campaign *campaign, double *ret_waiting)
{
    double part_days[REPORT_LIFE_COUNT];
    campaign_part_days(campaign, true, part_days);
    return campaign_kwh(campaign->report, part_days, campaign->days.mean, ret_waiting);
}

/* Of the mean days, of the job's own nodes; *ret_usd 0: no price. */
static double gpu_hours(const Campaign *campaign, double *ret_usd)
{
    const double hours = campaign->days.mean * 24 * campaign->report->gpus;
    double waiting = 0;
    *ret_usd = hours * report_groups_mean(campaign->report->spec, REPORT_MEAN_USD_PER_HOUR) +
               energy_kwh(campaign, &waiting) * campaign->report->spec->cluster.usd_per_kwh;
    return hours;
}

static void write_checkpoint(const Campaign *campaign, OrrJsonWriter *w)
{
    const SpecCheckpoint *checkpoint = &campaign->report->spec->faults.checkpoint;
    orr_jw_begin(w, "checkpoint", '{');
    orr_jw_text(w, "mode", spec_word(&spec_words_checkpoint, (int)checkpoint->mode));
    write_positive(w, "bytes", campaign->checkpoint_bytes);
    write_positive(w, "write_s", campaign->checkpoint_write_s);
    write_positive(w, "stall_s", campaign->run.rates.stall_s);
    write_positive(w, "load_s", campaign->run.load_s);
    write_positive(w, "interval_s", campaign->interval_s);
    write_positive(w, "young_s", campaign->young_s);
    write_positive(w, "daly_s", campaign->daly_s);
    write_positive(w, "availability_s", campaign->availability_s);
    write_positive(w, "best_interval_s", campaign->best_interval_s);
    orr_jw_end(w, '}');
}

void campaign_write_json(const Campaign *campaign, GString *out)
{
    OrrJsonWriter w;
    const bool fails = !isinf(campaign->run.rates.mtbf_s);
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "scenario", campaign->report->spec->name);
    orr_jw_int(&w, "gpus", campaign->report->gpus);
    orr_jw_int(&w, "replicas", campaign->options.replicas);
    orr_jw_bool(&w, "partial", campaign->options.replicas < campaign->asked_replicas);
    orr_jw_int(&w, "seed", (int64_t)campaign->options.seed);
    orr_jw_number(&w, "step_s", (double)campaign->report->step_ps * 1e-12);
    orr_jw_number(&w, "ideal_days", campaign->ideal_s / DAY_S);
    write_spread(&w, "days", &campaign->days);
    orr_jw_number(&w, "days_standard_error", campaign->days_error);
    write_spread(&w, "goodput", &campaign->goodput);
    write_spread(&w, "interruptions", &campaign->interruptions);
    orr_jw_begin(&w, "lost", '{');
    orr_jw_number(&w, "stragglers_s", campaign->slow_s);
    orr_jw_number(&w, "input_s", campaign->input_s);
    orr_jw_number(&w, "evaluation_s", campaign->eval_s);
    orr_jw_number(&w, "skipped_s", campaign->skipped_s);
    orr_jw_number(&w, "checkpoint_s", campaign->checkpoint_s);
    orr_jw_number(&w, "lost_work_s", campaign->lost_work_s);
    orr_jw_number(&w, "restart_s", campaign->restart_s);
    orr_jw_number(&w, "loading_s", campaign->loading_s);
    orr_jw_number(&w, "waiting_s", campaign->waiting_s);
    orr_jw_number(&w, "degraded_s", campaign->degraded_s);
    orr_jw_end(&w, '}');
    write_checkpoint(campaign, &w);
    double waiting_kwh = 0, usd = 0;
    orr_jw_number(&w, "gpu_hours", gpu_hours(campaign, &usd));
    write_positive(&w, "usd", usd);
    write_positive(&w, "kwh", energy_kwh(campaign, &waiting_kwh));
    write_positive(&w, "waiting_kwh", waiting_kwh);
    const double co2_g = campaign->report->spec->cluster.co2_g_per_kwh;
    if (co2_g > 0)
        orr_jw_number(&w, "co2_kg", energy_kwh(campaign, &waiting_kwh) * co2_g / 1000);
    orr_jw_bool(&w, "faults_assumed", campaign->report->effective.faults_assumed);
    orr_jw_bool(&w, "storage_assumed", campaign->report->effective.storage_assumed);
    orr_jw_number(&w, "mtbf_s", campaign->run.rates.mtbf_s);
    orr_jw_number(&w, "restart_s", campaign->run.rates.restart_s);
    orr_jw_begin(&w, "formula", '{');
    orr_jw_number(&w, "days", campaign->exact_s / DAY_S);
    orr_jw_number(&w, "goodput", campaign->exact_frac);
    orr_jw_number(&w, "first_order_goodput", fails ? campaign->first_order_frac : campaign->exact_frac);
    orr_jw_end(&w, '}');
    write_spread(&w, "spare_nodes", &campaign->spare_nodes);
    write_causes(campaign, &w);
    write_curve(campaign, &w);
    write_timeline(campaign, &w);
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

/* --- text --- */

static void entry(GString *out, const char *label, const char *format, ...) G_GNUC_PRINTF(3, 4);

static void entry(GString *out, const char *label, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    g_autofree char *text = g_strdup_vprintf(format, arguments);
    va_end(arguments);
    report_page_entry(out, label, LABEL_COLUMN, text);
}

static void write_title(const Campaign *campaign, GString *out)
{
    const Spec *spec = campaign->report->spec;
    g_autofree char *title =
        g_strdup_printf("Campaign: %s", spec->name[0] != '\0' ? spec->name : spec->model.name);
    report_page_entry(out, "", 0, title);
    const glong width = MIN(g_utf8_strlen(title, -1), report_page_width());
    for (glong i = 0; i < width; i++)
        g_string_append(out, "\u2500");
    g_string_append_c(out, '\n');
}

static void write_interruptions(const Campaign *campaign, GString *out)
{
    char text[ORR_TEXT_SIZE];
    g_autoptr(GString) line = g_string_new(NULL);
    if (campaign->run.script_count > 0) {
        entry(out, "  Interruptions", "%.0f, at the times that the scenario gives",
              campaign->interruptions.mean);
        return;
    }
    if (isinf(campaign->run.rates.mtbf_s)) {
        entry(out, "  Interruptions",
              "none: the scenario says nothing that fails; --set faults=%s --set storage=%s would",
              CAMPAIGN_ASSUMED_FAULTS, CAMPAIGN_ASSUMED_STORAGE);
        return;
    }
    g_string_printf(line, "%.0f (%.0f to %.0f), one every %s:", campaign->interruptions.mean,
                    campaign->interruptions.p10, campaign->interruptions.p90,
                    orr_text_seconds(text, campaign->run.rates.mtbf_s));
    bool first = true;
    for (int i = 0; i < CAMPAIGN_CAUSES; i++) {
        if (!(campaign->causes[i].per_replica > 0))
            continue;
        g_string_append_printf(line, "%s %s %.0f", first ? "" : ",", campaign->causes[i].label,
                               campaign->causes[i].per_replica);
        first = false;
    }
    entry(out, "  Interruptions", "%s", line->str);
    entry(out, "  Spare nodes", "%.0f at most are away at one time (%.0f in nine of ten campaigns)%s",
          campaign->spare_nodes.p50, campaign->spare_nodes.p90,
          campaign->run.spares < 0 ? "; as many are there" : "");
}

static void write_lost(const Campaign *campaign, GString *out)
{
    const struct {
        const char *label;
        double s;
    } kinds[] = {{"waiting for stragglers", campaign->slow_s},
                 {"waiting for input", campaign->input_s},
                 {"evaluation", campaign->eval_s},
                 {"skipped steps", campaign->skipped_s},
                 {"writing checkpoints", campaign->checkpoint_s},
                 {"work done again", campaign->lost_work_s},
                 {"restarts", campaign->restart_s},
                 {"loading checkpoints", campaign->loading_s},
                 {"waiting for nodes or people", campaign->waiting_s},
                 {"steps on fewer nodes", campaign->degraded_s}};
    g_autoptr(GString) line = g_string_new(NULL);
    char text[ORR_TEXT_SIZE];
    for (gsize i = 0; i < G_N_ELEMENTS(kinds); i++)
        if (kinds[i].s > 0)
            g_string_append_printf(line, "%s%s %s (%.2f %%)", line->len > 0 ? ", " : "", kinds[i].label,
                                   orr_text_seconds(text, kinds[i].s),
                                   100 * kinds[i].s / (campaign->days.mean * DAY_S));
    if (line->len > 0)
        entry(out, "  Lost time", "%s", line->str);
}

static void write_checkpoint_text(const Campaign *campaign, GString *out)
{
    char bytes[ORR_TEXT_SIZE], write[ORR_TEXT_SIZE], stall[ORR_TEXT_SIZE], load[ORR_TEXT_SIZE];
    if (!(campaign->checkpoint_write_s > 0)) {
        if (!isinf(campaign->run.rates.mtbf_s))
            entry(out, "  Checkpoints", "none: every failure starts the run from zero");
        return;
    }
    entry(out, "  Checkpoints", "%s, written in %s while training stops for %s, read back in %s",
          orr_text_si(bytes, campaign->checkpoint_bytes, "B"),
          orr_text_seconds(write, campaign->checkpoint_write_s),
          orr_text_seconds(stall, campaign->run.rates.stall_s), orr_text_seconds(load, campaign->run.load_s));
    if (campaign->young_s > 0)
        entry(out, "  Interval", "%.1f s; best %.1f s, Young %.1f s, Daly %.1f s, availability %.1f s",
              campaign->interval_s, campaign->best_interval_s, campaign->young_s, campaign->daly_s,
              campaign->availability_s);
}

static void write_cost(const Campaign *campaign, GString *out)
{
    char hours[ORR_TEXT_SIZE], dollars[ORR_TEXT_SIZE], low[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    double usd = 0;
    report_page_whole(hours, gpu_hours(campaign, &usd));
    if (!(usd > 0)) {
        entry(out, "  Cost", "%s GPU-hours (cluster.usd_per_gpu_hour is not given)", hours);
        return;
    }
    const OrrSpread *days = &campaign->days;
    entry(out, "  Cost", "%s USD (%s to %s in eight of ten), %s GPU-hours%s", report_page_whole(dollars, usd),
          report_page_whole(low, usd * days->p10 / days->mean),
          report_page_whole(high, usd * days->p90 / days->mean), hours,
          campaign->run.spares != 0 && campaign->run.cause_count > 0 ? "; without what spare nodes cost"
                                                                     : "");
}

static void write_energy(const Campaign *campaign, GString *out)
{
    char kwh[ORR_TEXT_SIZE], waiting[ORR_TEXT_SIZE];
    double waiting_kwh = 0;
    const double sum_kwh = energy_kwh(campaign, &waiting_kwh);
    const Report *report = campaign->report;
    if (sum_kwh > 0)
        entry(out, "  Energy",
              "%s kWh, %s of them while GPUs wait between steps, at %.0f %% of a step's power%s",
              report_page_whole(kwh, sum_kwh), report_page_whole(waiting, waiting_kwh),
              100 * report->waiting_w / report->step_w,
              report->waiting_w < report->step_w ? "" : " (idle_power_w is not known)");
    const double co2_kg = sum_kwh * report->spec->cluster.co2_g_per_kwh / 1000;
    if (co2_kg > 0)
        entry(out, "  CO2", "%s kg, at %.4g g a kWh", report_page_whole(kwh, co2_kg),
              report->spec->cluster.co2_g_per_kwh);
}

static void write_curve_text(const Campaign *campaign, GString *out)
{
    g_autoptr(GString) line = g_string_new(NULL);
    for (int i = 0; i < campaign->spares_count; i++)
        g_string_append_printf(line, "%s%d: %.1f", i > 0 ? ", " : "", campaign->spares_curve[i].spares,
                               campaign->spares_curve[i].days);
    if (line->len > 0)
        entry(out, "  Days by spares", "%s", line->str);
}

/* The first interruptions of one campaign. */
static void write_timeline_text(const Campaign *campaign, GString *out)
{
    enum { COLUMNS = 5, ROWS = 12 };
    static const char *const headers[COLUMNS] = {"day", "cause", "nodes away", "lost work", "waits"};
    char text[COLUMNS][ORR_TEXT_SIZE];
    if (!campaign->options.timeline || campaign->event_count == 0)
        return;
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int i = 0; i < MIN(campaign->event_count, ROWS); i++) {
        const CampaignEvent *event = &campaign->events[i];
        g_snprintf(text[0], ORR_TEXT_SIZE, "%.2f", event->at_s / DAY_S);
        g_snprintf(text[2], ORR_TEXT_SIZE, "%d", event->nodes_away);
        orr_table_row(table, (const char *[COLUMNS]){text[0], campaign_cause_label(event->cause), text[2],
                                                     orr_text_seconds(text[3], event->lost_s),
                                                     orr_text_seconds(text[4], event->waited_s)});
    }
    g_string_append(out, "\nInterruptions of the first campaign\n");
    report_page_table(table, out, 2);
    orr_table_free(table);
}

void campaign_write_text(const Campaign *campaign, GString *out)
{
    char gpus[ORR_TEXT_SIZE], restart[ORR_TEXT_SIZE];
    write_title(campaign, out);
    entry(out, "  Training", "%.2f days on %s without a failure", campaign->ideal_s / DAY_S,
          report_page_gpus(gpus, campaign->report->gpus));
    entry(out, "  With faults", "%.2f days (%.2f to %.2f in eight of ten), goodput %.2f %%",
          campaign->days.mean, campaign->days.p10, campaign->days.p90, 100 * campaign->goodput.mean);
    const ReportEffective *named = &campaign->report->effective;
    g_autofree char *basis = named->faults != NULL ? report_effective_basis(named) : NULL;
    if (named->faults_assumed || named->storage_assumed)
        entry(out, "  With", "%s", basis);
    write_interruptions(campaign, out);
    write_lost(campaign, out);
    write_checkpoint_text(campaign, out);
    if (!isinf(campaign->run.rates.mtbf_s)) {
        const SpecFaults *faults = &campaign->report->spec->faults;
        const bool instant = !(faults->detection_s > 0) && !(faults->reschedule_s > 0) &&
                             !(faults->init_s > 0) && !(faults->init_s_per_node > 0);
        entry(out, "  Restart", "%s after each failure%s",
              orr_text_seconds(restart, campaign->run.rates.restart_s),
              instant ? "; nothing says how long a failure goes unseen, a new node and a start take "
                        "(faults.detection_s, reschedule_s, init_s), so these count as nothing"
                      : "");
        entry(out, "  By formula", "%.2f days, goodput %.2f %% (exact%s); %.2f %% to first order",
              campaign->exact_s / DAY_S, 100 * campaign->exact_frac,
              campaign->by_formula ? "" : ", where no job waits for nodes and no copies are lost",
              100 * campaign->first_order_frac);
    }
    write_cost(campaign, out);
    write_energy(campaign, out);
    write_curve_text(campaign, out);
    write_timeline_text(campaign, out);
    entry(out, "  Replicas", "%lld, seed %llu; standard error of the mean %.3f days",
          (long long)campaign->options.replicas, (unsigned long long)campaign->options.seed,
          campaign->days_error);
    if (campaign->options.replicas < campaign->asked_replicas)
        entry(out, "  Partial", "stopped after %lld of %lld replicas; days by spares are left out",
              (long long)campaign->options.replicas, (long long)campaign->asked_replicas);
}
