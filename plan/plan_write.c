/* plan/plan_write.c - a plan as JSON and as CSV. Computes nothing. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plan/plan.h"
#include "report/describe.h"
#include "report/effective.h"
#include "report/page.h"
#include "search/axes.h"
#include "search/scenario.h"
#include "spec/notes.h"

static const PlanPoint *point_at(const Plan *plan, int index)
{
    return index >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)index) : NULL;
}

/* --- JSON --- */

/* What was not given or does not apply: null, not 0. */
static void write_positive(OrrJsonWriter *w, const char *key, double value)
{
    if (value > 0)
        orr_jw_number(w, key, value);
    else
        orr_jw_null(w, key);
}

/* What a configuration is told by. */
static void write_degrees(OrrJsonWriter *w, const Spec *spec)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        if (axes[i].planned)
            search_axis_write(&axes[i], w, search_axis_member(&axes[i]), spec);
}

/* What only some scenarios tell: racks, terms of years, CO2, the interval of money and of days with failures. */
static void write_paid(OrrJsonWriter *w, const PlanPoint *point)
{
    const double low = point->days_low / point->days, high = point->days_high / point->days;
    if (point->days_high > 0 && point->effective.told) {
        orr_jw_number(w, "effective_days_low", point->effective.days * low);
        orr_jw_number(w, "effective_days_high", point->effective.days * high);
    }
    if (point->days_high > 0 && point->usd > 0 && !(point->committed_usd > 0)) {
        orr_jw_number(w, "usd_low", point->usd * low);
        orr_jw_number(w, "usd_high", point->usd * high);
    }
    if (point->committed_usd > 0)
        orr_jw_number(w, "committed_usd", point->committed_usd);
    if (point->co2_kg > 0)
        orr_jw_number(w, "co2_kg", point->co2_kg);
    if (point->racks > 0) {
        orr_jw_number(w, "racks", point->racks);
        orr_jw_int(w, "paid_gpus", point->paid_gpus);
    }
}

static void write_json_point(OrrJsonWriter *w, const char *key, const PlanPoint *point)
{
    if (point == NULL) {
        orr_jw_null(w, key);
        return;
    }
    orr_jw_begin(w, key, '{');
    orr_jw_int(w, "gpus", point->gpus);
    orr_jw_text(w, "reason", point->reason);
    if (point->reason == NULL) {
        orr_jw_int(w, "nodes", point->nodes);
        write_degrees(w, point->spec);
        orr_jw_int(w, "global_batch", point->global_batch);
        orr_jw_int(w, "microbatches", point->microbatches);
        orr_jw_bool(w, "fits", point->fits);
        orr_jw_number(w, "short_bytes", point->short_bytes);
        orr_jw_number(w, "step_s", point->step_s);
        orr_jw_number(w, "tokens_per_s", point->tokens_per_s);
        orr_jw_number(w, "tokens_per_s_per_gpu", point->tokens_per_s_per_gpu);
        orr_jw_number(w, "mfu", point->mfu);
        orr_jw_number(w, "hfu", point->hfu);
        orr_jw_number(w, "bubble_frac", point->bubble_frac);
        orr_jw_number(w, "efficiency_frac", point->efficiency_frac);
        orr_jw_number(w, "days", point->days);
        report_effective_json(&point->effective, w);
        write_positive(w, "days_low", point->days_low);
        write_positive(w, "days_high", point->days_high);
        orr_jw_number(w, "gpu_hours", point->gpu_hours);
        write_positive(w, "usd", point->usd);
        write_positive(w, "kwh", point->kwh);
        write_paid(w, point);
    }
    orr_jw_end(w, '}');
}

static void write_json_textbook(OrrJsonWriter *w, const PlanTextbook *textbook)
{
    orr_jw_begin(w, "textbook", '{');
    orr_jw_number(w, "parameters", textbook->parameters);
    write_positive(w, "flops_per_s_per_gpu", textbook->flops_per_s_per_gpu);
    orr_jw_bool(w, "rate_given", textbook->rate_given);
    write_positive(w, "gpus", textbook->gpus);
    write_positive(w, "gpus_rounded", textbook->gpus_rounded);
    write_positive(w, "at_gpus", textbook->at_gpus);
    write_positive(w, "days", textbook->days);
    write_positive(w, "attention_days", textbook->attention_days);
    write_positive(w, "recompute_days", textbook->recompute_days);
    orr_jw_begin(w, "difference_days", '{');
    for (int i = 0; i < textbook->term_count; i++) {
        const char *key = textbook->terms[i].key;
        g_autofree char *name =
            g_str_has_suffix(key, "_s") ? g_strndup(key, strlen(key) - strlen("_s")) : g_strdup(key);
        orr_jw_number(w, name, textbook->terms[i].days);
    }
    orr_jw_end(w, '}');
    orr_jw_end(w, '}');
}

static void write_terms(OrrJsonWriter *w, const PlanTerms *terms)
{
    if (terms->name == NULL)
        return;
    orr_jw_begin(w, "terms", '{');
    orr_jw_text(w, "name", terms->name);
    write_positive(w, "years", terms->years);
    orr_jw_bool(w, "paid_in_full", terms->paid_in_full);
    orr_jw_end(w, '}');
}

static void write_json_plan(OrrJsonWriter *w, const Plan *plan)
{
    g_autofree char *wrong = spec_chip_note(plan->asked);
    orr_jw_begin(w, NULL, '{');
    if (plan->name != NULL)
        orr_jw_text(w, "name", plan->name);
    write_terms(w, &plan->terms);
    orr_jw_text(w, "accelerator", plan->accelerator);
    orr_jw_text(w, "cluster", plan->cluster);
    if (plan->framework != NULL)
        orr_jw_text(w, "framework", plan->framework);
    if (plan->reason != NULL)
        orr_jw_text(w, "reason", plan->reason);
    if (wrong != NULL)
        orr_jw_text(w, "note", wrong);
    orr_jw_int(w, "gpus_per_node", plan->gpus_per_node);
    write_positive(w, "usd_per_gpu_hour", plan->usd_per_gpu_hour);
    write_positive(w, "power_w_per_gpu", plan->power_w_per_gpu);
    orr_jw_number(w, "pue", plan->pue);
    write_json_point(w, "answer", point_at(plan, plan->chosen));
    write_json_point(w, "fastest", point_at(plan, plan->fastest));
    write_json_textbook(w, &plan->textbook);
    orr_jw_begin(w, "points", '[');
    for (int i = 0; i < (int)plan->points->len; i++)
        write_json_point(w, NULL, point_at(plan, i));
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
}

/* --- rows that run again --- */

static bool write_json_row(OrrJsonWriter *w, const PlanPage *page, int index, int at, GError **error)
{
    const Plan *plan = &page->plans[index];
    const PlanPoint *point = point_at(plan, at);
    const SpecSource *source = plan->source != NULL ? plan->source : page->source;
    OrrJsonDoc *scenario =
        source != NULL ? search_scenario(source, plan->asked, point->spec, plan->cluster_json, error) : NULL;
    if (source != NULL && scenario == NULL)
        return false;
    orr_jw_begin(w, NULL, '{');
    orr_jw_int(w, "plan", index);
    orr_jw_bool(w, "answer", at == plan->chosen);
    orr_jw_int(w, "gpus", point->gpus);
    write_positive(w, "power_w", point->power_w);
    orr_jw_number(w, "step_s", point->step_s);
    orr_jw_number(w, "mfu", point->mfu);
    orr_jw_number(w, "days", point->days);
    if (point->effective.told)
        orr_jw_number(w, "effective_days", point->effective.days);
    else
        orr_jw_null(w, "effective_days");
    orr_jw_number(w, "gpu_hours", point->gpu_hours);
    write_positive(w, "usd", point->usd);
    write_positive(w, "kwh", point->kwh);
    orr_jw_bool(w, "fits", point->fits);
    orr_jw_begin(w, "memory", '{');
    orr_jw_text(w, "verdict", report_memory_word(point->memory_verdict));
    orr_jw_number(w, "odds", point->memory_odds);
    orr_jw_end(w, '}');
    if (scenario != NULL)
        orr_jw_node(w, "scenario", orr_json_root(scenario));
    orr_jw_end(w, '}');
    orr_json_free(scenario);
    return true;
}

static bool write_json_rows(OrrJsonWriter *w, const PlanPage *page, GError **error)
{
    orr_jw_begin(w, "rows", '[');
    for (int i = 0; i < page->count; i++)
        for (int at = 0; at < (int)page->plans[i].points->len; at++)
            if (point_at(&page->plans[i], at)->spec != NULL && !write_json_row(w, page, i, at, error))
                return false;
    orr_jw_end(w, ']');
    return true;
}

bool plan_write_json(const PlanPage *page, GString *out, GError **error)
{
    OrrJsonWriter writer;
    OrrJsonWriter *w = &writer;
    orr_jw_init(w, out, false);
    orr_jw_begin(w, NULL, '{');
    orr_jw_int(w, "schema", 1);
    orr_jw_text(w, "scenario", page->spec->name);
    orr_jw_begin(w, "stamp", '{');
    orr_jw_text(w, "version", ORRERY_VERSION);
    orr_jw_text(w, "scenario_hash", page->source != NULL ? page->source->scenario_hash : NULL);
    orr_jw_end(w, '}');
    orr_jw_number(w, "tokens", page->spec->training.tokens);
    if (page->options->by != SEARCH_FOR_STEP)
        orr_jw_text(w, "for", search_goal_word(page->options->by));
    write_positive(w, "deadline_s", page->options->deadline_s);
    write_positive(w, "budget_usd", page->options->budget_usd);
    write_positive(w, "power_limit_w", page->options->power_w);
    orr_jw_bool(w, "partial", page->partial);
    orr_jw_begin(w, "assumed", '{');
    const bool ideal = page->options->assumed == NULL;
    orr_jw_text(w, "failures", ideal ? "none" : CAMPAIGN_ASSUMED_FAULTS);
    orr_jw_text(w, "checkpoints", ideal ? "none" : CAMPAIGN_ASSUMED_STORAGE);
    orr_jw_text(w, "days", "of computing");
    orr_jw_end(w, '}');
    if (!write_json_rows(w, page, error))
        return false;
    orr_jw_begin(w, "plans", '[');
    for (int i = 0; i < page->count; i++)
        write_json_plan(w, &page->plans[i]);
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
    g_string_append_c(out, '\n');
    return true;
}

/* --- CSV: a row a point --- */

static void add_number(GPtrArray *cells, double value, bool known)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ptr_array_add(cells, g_strdup(known ? g_ascii_formatd(text, sizeof text, "%.15g", value) : ""));
}

/* `spec` NULL: empty cells; `asked` NULL: the headers. */
static void add_degrees(GPtrArray *cells, const Spec *asked, const Spec *spec)
{
    int count = 0;
    const SearchAxis *axes = search_axes(&count);
    for (int i = 0; i < count; i++)
        if (axes[i].planned)
            g_ptr_array_add(cells, asked == NULL  ? g_strdup(search_axis_column(&axes[i]))
                                   : spec != NULL ? search_axis_cell(&axes[i], spec)
                                                  : g_strdup(""));
}

static void write_csv_point(const Plan *plan, int index, OrrTable *table)
{
    const PlanPoint *point = point_at(plan, index);
    const bool known = point->reason == NULL;
    g_autoptr(GPtrArray) cells = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(cells, g_strdup(plan->accelerator));
    g_ptr_array_add(cells, g_strdup(plan->cluster));
    add_number(cells, point->gpus, true);
    g_ptr_array_add(cells, g_strdup(index == plan->chosen ? "true" : "false"));
    g_ptr_array_add(cells, g_strdup(known ? (point->fits ? "true" : "false") : ""));
    add_number(cells, point->nodes, known);
    add_degrees(cells, plan->asked, point->spec);
    add_number(cells, point->step_s, known);
    add_number(cells, point->tokens_per_s, known);
    add_number(cells, point->tokens_per_s_per_gpu, known);
    add_number(cells, point->mfu, known);
    add_number(cells, point->hfu, known);
    add_number(cells, point->efficiency_frac, known);
    add_number(cells, point->days, known);
    add_number(cells, point->days_low, point->days_low > 0);
    add_number(cells, point->days_high, point->days_high > 0);
    add_number(cells, point->gpu_hours, known);
    add_number(cells, point->usd, point->usd > 0);
    add_number(cells, point->kwh, point->kwh > 0);
    add_number(cells, point->short_bytes, known);
    g_ptr_array_add(cells, g_strdup(known ? "" : point->reason));
    add_number(cells, point->global_batch, known);
    g_ptr_array_add(cells, g_strdup(known ? report_memory_word(point->memory_verdict) : ""));
    g_ptr_array_add(cells, known ? report_configuration(point->spec) : g_strdup(""));
    add_number(cells, point->effective.days, point->effective.told);
    g_ptr_array_add(cells, g_strdup(plan->name != NULL ? plan->name : ""));
    g_ptr_array_add(cells, g_strdup(plan->framework != NULL ? plan->framework : ""));
    add_number(cells, point->power_w, point->power_w > 0);
    add_number(cells, point->committed_usd, point->committed_usd > 0);
    add_number(cells, point->co2_kg, point->co2_kg > 0);
    add_number(cells, point->racks, point->racks > 0);
    orr_table_row(table, (const char *const *)cells->pdata);
}

void plan_write_csv(const PlanPage *page, GString *out)
{
    static const char *const before[] = {"accelerator", "cluster", "gpus", "answer", "fits", "nodes"};
    static const char *const behind[] = {"step_s",
                                         "tokens_per_s",
                                         "tokens_per_s_per_gpu",
                                         "mfu",
                                         "hfu",
                                         "efficiency_frac",
                                         "days",
                                         "days_low",
                                         "days_high",
                                         "gpu_hours",
                                         "usd",
                                         "kwh",
                                         "short_bytes",
                                         "reason",
                                         "global_batch",
                                         "memory_verdict",
                                         "configuration",
                                         "effective_days",
                                         "name",
                                         "framework",
                                         "power_w",
                                         "committed_usd",
                                         "co2_kg",
                                         "racks"};
    g_autoptr(GPtrArray) headers = g_ptr_array_new_with_free_func(g_free);
    for (gsize i = 0; i < G_N_ELEMENTS(before); i++)
        g_ptr_array_add(headers, g_strdup(before[i]));
    add_degrees(headers, NULL, NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(behind); i++)
        g_ptr_array_add(headers, g_strdup(behind[i]));
    OrrTable *table = orr_table_new((const char *const *)headers->pdata, (int)headers->len);
    for (int i = 0; i < page->count; i++)
        for (int point = 0; point < (int)page->plans[i].points->len; point++)
            write_csv_point(&page->plans[i], point, table);
    orr_table_csv(table, out);
    orr_table_free(table);
}
