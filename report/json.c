/* report/json.c - a report as JSON; docs/REPORT.md has the meaning of every key. */
#include <string.h>

#include "costmodel/lengths.h"
#include "report/batches.h"
#include "report/groups.h"
#include "report/effective.h"
#include "report/input.h"
#include "report/jitter.h"
#include "report/measured.h"
#include "report/offload.h"
#include "report/parts.h"
#include "report/network.h"
#include "report/servers.h"
#include "spec/notes.h"
#include "spec/run_length.h"

static void write_strings(OrrJsonWriter *w, const char *key, const GPtrArray *texts)
{
    orr_jw_begin(w, key, '[');
    for (guint i = 0; texts != NULL && i < texts->len; i++)
        orr_jw_text(w, NULL, g_ptr_array_index(texts, i));
    orr_jw_end(w, ']');
}

void report_write_stamp(OrrJsonWriter *w, const SpecSource *source)
{
    orr_jw_begin(w, "stamp", '{');
    orr_jw_text(w, "version", ORRERY_VERSION);
    orr_jw_text(w, "scenario_hash", source != NULL ? source->scenario_hash : NULL);
    write_strings(w, "profiles", source != NULL ? source->profiles : NULL);
    write_strings(w, "defaulted", source != NULL ? source->defaulted : NULL);
    orr_jw_end(w, '}');
}

static void write_mfu_by_convention(OrrJsonWriter *w, const CostMfuByConvention *by_convention)
{
    orr_jw_begin(w, "mfu_by_convention", '{');
    for (int i = 0; i < COST_CONVENTION_COUNT; i++)
        orr_jw_number(w, cost_convention_name((CostConvention)i), by_convention->mfu[i]);
    orr_jw_end(w, '}');
}

static void write_interval(OrrJsonWriter *w, const Report *report)
{
    if (!(report->interval_coverage > 0.0)) {
        orr_jw_null(w, "interval");
        return;
    }
    orr_jw_begin(w, "interval", '{');
    orr_jw_number(w, "low_s", report->interval_low_s);
    orr_jw_number(w, "high_s", report->interval_high_s);
    orr_jw_number(w, "coverage", report->interval_coverage);
    orr_jw_number(w, "widening", report->interval_widening);
    orr_jw_text(w, "class", report->interval_class);
    orr_jw_int(w, "runs", report->interval_runs);
    orr_jw_begin(w, "outside", '[');
    for (int i = 0; i < report->outside_count; i++)
        orr_jw_text(w, NULL, report->outside[i]);
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
}

static void write_own(OrrJsonWriter *w, const ReportOwn *own)
{
    if (own->runs == 0)
        return;
    orr_jw_begin(w, "own_runs", '{');
    orr_jw_int(w, "runs", own->runs);
    orr_jw_number(w, "factor", own->factor);
    orr_jw_number(w, "step_s", own->step_s);
    orr_jw_number(w, "low_s", own->low_s);
    orr_jw_number(w, "high_s", own->high_s);
    orr_jw_end(w, '}');
}

static void write_time(OrrJsonWriter *w, const Report *report)
{
    ReportTime times[REPORT_TIME_COUNT];
    report_times(report->part_ps, report->bubble_ps, report->late_ps, times);
    orr_jw_begin(w, "time", '{');
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        orr_jw_ps(w, times[i].key, times[i].ps);
    orr_jw_end(w, '}');
}

static void write_memory(OrrJsonWriter *w, const Report *report)
{
    orr_jw_begin(w, "memory", '{');
    orr_jw_number(w, "capacity_bytes", report->capacity_bytes);
    orr_jw_number(w, "peak_bytes", report->peak_bytes);
    orr_jw_number(w, "reserved_bytes", report->reserved_bytes);
    orr_jw_number(w, "needed_bytes", report->needed_bytes);
    orr_jw_number(w, "short_bytes", report->short_bytes);
    orr_jw_text(w, "verdict", report_memory_word(report->memory_verdict));
    orr_jw_number(w, "odds", report->memory_odds);
    orr_jw_number(w, "reserve_bytes", report->reserve_bytes);
    orr_jw_begin(w, "stages", '[');
    for (int i = 0; i < report->stage_count; i++) {
        const ReportStage *stage = &report->stages[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_int(w, "stage", stage->stage);
        orr_jw_number(w, "weights_bytes", stage->weights_bytes);
        orr_jw_number(w, "gradients_bytes", stage->gradients_bytes);
        orr_jw_number(w, "optimizer_bytes", stage->optimizer_bytes);
        orr_jw_number(w, "activations_bytes", stage->activations_bytes);
        orr_jw_number(w, "workspace_bytes", stage->workspace_bytes);
        orr_jw_number(w, "reserved_bytes", stage->reserved_bytes);
        orr_jw_number(w, "peak_bytes", stage->peak_bytes);
        orr_jw_number(w, "peak_time_s", stage->peak_time_s);
        if (stage->host_bytes > 0)
            orr_jw_number(w, "host_bytes", stage->host_bytes);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
    report_json_offload(report, w);
    orr_jw_end(w, '}');
}

/* What was not given cannot be told: null, not 0. */
static void write_positive(OrrJsonWriter *w, const char *key, double value)
{
    if (value > 0.0)
        orr_jw_number(w, key, value);
    else
        orr_jw_null(w, key);
}

static void write_balance(OrrJsonWriter *w, const Report *report)
{
    orr_jw_begin(w, "balance", '{');
    orr_jw_begin(w, "context_rank_work", '[');
    for (int rank = 0; rank < report->context_ranks; rank++)
        orr_jw_number(w, NULL, report->context_work[rank]);
    orr_jw_end(w, ']');
    orr_jw_number(w, "context_busiest", report->context_busiest);
    orr_jw_number(w, "expert_busiest", report->expert_busiest);
    orr_jw_number(w, "dropped_frac", report->dropped_frac);
    orr_jw_end(w, '}');
}

/* By the names that plans and searches give them too. */
static void write_campaign(OrrJsonWriter *w, const Report *report)
{
    write_positive(w, "days", report->days);
    write_positive(w, "gpu_hours", report->gpu_hours);
    write_positive(w, "usd", report->usd);
    write_positive(w, "kwh", report->kwh);
    report_batches_json(report, w);
    if (report->co2_kg > 0)
        orr_jw_number(w, "co2_kg", report->co2_kg);
    if (report->waiting_kwh > 0 && report->waiting_w < report->step_w)
        orr_jw_number(w, "waiting_kwh", report->waiting_kwh);
}

static void write_epoch(OrrJsonWriter *w, const Report *report)
{
    if (!(report->epoch_steps > 0))
        return;
    orr_jw_begin(w, "epoch", '{');
    orr_jw_number(w, "samples_per_rank", report->epoch_rank_samples);
    orr_jw_number(w, "steps", report->epoch_steps);
    orr_jw_number(w, "seconds", report->epoch_s);
    orr_jw_end(w, '}');
}

static void write_lengths(OrrJsonWriter *w, const Report *report)
{
    const Spec *spec = report->spec;
    if (!spec->training.lengths.given)
        return;
    const double positions = cost_positions(spec);
    orr_jw_begin(w, "lengths", '{');
    orr_jw_number(w, "text_tokens", spec_text_tokens(&spec->training));
    orr_jw_number(w, "positions", positions);
    orr_jw_number(w, "filled_frac", cost_trained_tokens(spec) / (spec->training.global_batch * positions));
    orr_jw_number(w, "wait_frac", cost_lengths_wait_frac(spec));
    orr_jw_end(w, '}');
}

static void write_training(OrrJsonWriter *w, const Report *report)
{
    orr_jw_begin(w, "training", '{');
    write_campaign(w, report);
    report_effective_json(&report->effective, w);
    orr_jw_end(w, '}');
}

static void write_chosen(OrrJsonWriter *w, const GPtrArray *chosen)
{
    orr_jw_begin(w, "chosen", '{');
    for (guint i = 0; chosen != NULL && i < chosen->len; i++) {
        const char *pair = g_ptr_array_index(chosen, i);
        const char *equals = strchr(pair, '=');
        g_assert(equals != NULL);
        g_autofree char *key = g_strndup(pair, (gsize)(equals - pair));
        char *end = NULL;
        const double number = g_ascii_strtod(equals + 1, &end);
        if (end != equals + 1 && *end == '\0')
            orr_jw_number(w, key, number);
        else if (strcmp(equals + 1, "true") == 0 || strcmp(equals + 1, "false") == 0)
            orr_jw_bool(w, key, equals[1] == 't');
        else
            orr_jw_text(w, key, equals + 1);
    }
    orr_jw_end(w, '}');
}

void report_write_json(const Report *report, GString *out)
{
    OrrJsonWriter writer;
    OrrJsonWriter *w = &writer;
    orr_jw_init(w, out, false);
    orr_jw_begin(w, NULL, '{');
    orr_jw_int(w, "schema", 1);
    orr_jw_text(w, "scenario", report->spec->name);
    report_write_stamp(w, report->source);
    orr_jw_begin(w, "model", '{');
    orr_jw_text(w, "name", report->spec->model.name);
    orr_jw_number(w, "parameters", report->parameters);
    orr_jw_number(w, "active_parameters", report->active_parameters);
    orr_jw_number(w, "trained_parameters", report->trained_parameters);
    orr_jw_end(w, '}');
    orr_jw_int(w, "gpus", report->gpus);
    orr_jw_bool(w, "fits", report->fits);
    orr_jw_ps(w, "step_s", report->step_ps);
    orr_jw_number(w, "tokens_per_s", report->tokens_per_s);
    orr_jw_number(w, "tokens_per_s_per_gpu", report->tokens_per_s_per_gpu);
    orr_jw_number(w, "model_flops_per_s_per_gpu", report->model_flops_per_s_per_gpu);
    if (report->textbook)
        orr_jw_bool(w, "textbook", true);
    orr_jw_number(w, "mfu", report->mfu);
    orr_jw_number(w, "hfu", report->hfu);
    write_mfu_by_convention(w, &report->by_convention);
    orr_jw_number(w, "bubble_frac", report->bubble_frac);
    write_interval(w, report);
    write_own(w, &report->own);
    write_time(w, report);
    write_memory(w, report);
    write_balance(w, report);
    report_groups_json(report, w);
    report_input_json(report, w);
    report_jitter_json(report, w);
    report_measured_json(report, w);
    write_training(w, report);
    write_lengths(w, report);
    write_epoch(w, report);
    report_network_json(report, w);
    report_servers_json(report, w);
    write_campaign(w, report);
    write_chosen(w, report->chosen);
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    report_notes(report, notes);
    spec_source_notes(report->source, notes);
    write_strings(w, "notes", notes);
    orr_jw_end(w, '}');
    g_string_append_c(out, '\n');
}
