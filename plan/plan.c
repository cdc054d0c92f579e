/* plan/plan.c - see plan.h. */
#include "plan/plan.h"

#include <math.h>
#include <string.h>

#include "answer/answer.h"
#include "costmodel/params.h"
#include "costmodel/textbook.h"
#include "report/groups.h"
#include "report/parts.h"
#include "plan/counts.h"
#include "search/choose.h"
#include "search/mixed.h"

#define DAY_S        86400.0
#define HALF_OF_PEAK 0.5 /* what a textbook assumes a GPU achieves when nothing is known */

/* What the textbook's explanation needs of a simulated point. */
typedef struct PlanParts {
    int64_t part_ps[SIM_PART_COUNT], bubble_ps, step_ps;
    int64_t late_ps[REPORT_LATE_COUNT];
    double model_flops;     /* of a step, as the report counts them */
    double attention_flops; /* of a step, not halved: what Chowdhery et al. add to 6 P T */
} PlanParts;

/* A point, and what explains it. */
typedef struct PlanEntry {
    PlanPoint point;
    PlanParts parts;
} PlanEntry;

static void point_clear(void *data)
{
    PlanPoint *point = data;
    g_free(point->reason);
    g_free(point->spec);
    g_free((char *)point->effective.why_not);
}

double plan_days(const PlanPoint *point)
{
    return point->effective.why_not != NULL ? INFINITY
           : point->effective.told          ? point->effective.days
                                            : point->days;
}

/* What the plan goes by of a point: effective days (of the step too), USD or kWh; INFINITY where it would not end. */
static double plan_figure(const PlanPoint *point, SearchFor by)
{
    const double days = plan_days(point);
    return isinf(days) || by == SEARCH_FOR_STEP || by == SEARCH_FOR_DAYS ? days
           : by == SEARCH_FOR_COST                                       ? point->usd
                                                                         : point->kwh;
}

/* The report's arena goes before the point does. */
static ReportEffective keep_effective(const ReportEffective *effective)
{
    ReportEffective kept = *effective;
    kept.faults = g_intern_string(effective->faults);
    kept.storage = g_intern_string(effective->storage);
    kept.why_not = g_strdup(effective->why_not);
    return kept;
}

void plan_clear(Plan *plan)
{
    g_clear_pointer(&plan->accelerator, g_free);
    g_clear_pointer(&plan->cluster, g_free);
    g_clear_pointer(&plan->name, g_free);
    g_clear_pointer(&plan->cluster_json, g_free);
    g_clear_pointer(&plan->reason, g_free);
    g_clear_pointer(&plan->asked, g_free);
    if (plan->points != NULL)
        g_array_free(g_steal_pointer(&plan->points), TRUE);
}

static void fill_point(const Report *report, const PlanOptions *options, PlanPoint *point, PlanParts *parts)
{
    const Spec *spec = report->spec;
    point->microbatches = spec_microbatches(spec);
    point->global_batch = spec->training.global_batch;
    point->spec = g_memdup2(spec, sizeof *spec);
    point->fits = report->fits;
    point->memory_verdict = report->memory_verdict;
    point->memory_odds = report->memory_odds;
    point->short_bytes = report->short_bytes;
    point->step_s = (double)report->step_ps * 1e-12;
    point->tokens_per_s = report->tokens_per_s;
    point->tokens_per_s_per_gpu = report->tokens_per_s_per_gpu;
    point->mfu = report->mfu;
    point->hfu = report->hfu;
    point->bubble_frac = report->bubble_frac;
    point->days = report->days;
    if (report->interval_coverage > 0) {
        point->days_low = report->days * report->interval_low_s / point->step_s;
        point->days_high = report->days * report->interval_high_s / point->step_s;
    }
    plan_pay(report, options, point);
    point->effective = keep_effective(&report->effective);
    *parts = (PlanParts){.bubble_ps = report->bubble_ps,
                         .step_ps = report->step_ps,
                         .model_flops = cost_flops(spec, NULL, 0).model,
                         .attention_flops = cost_convention_flops(spec, COST_CONVENTION_PALM) -
                                            cost_convention_flops(spec, COST_CONVENTION_6ND)};
    for (int part = 0; part < SIM_PART_COUNT; part++)
        parts->part_ps[part] = report->part_ps[part];
    for (int late = 0; late < REPORT_LATE_COUNT; late++)
        parts->late_ps[late] = report->late_ps[late];
}

static bool simulate(const Spec *spread, const PlanOptions *options, OrrArena *arena, Spec *spec,
                     Report *report, GError **error)
{
    const double reserve_bytes = ledger_reserve_bytes(options->residuals, &options->reserve, spread);
    const AnswerAsk ask = {.residuals = options->residuals,
                           .reserve = &options->reserve,
                           .own = options->own,
                           .own_count = options->own_count,
                           .assumed = options->assumed,
                           .where = "plan"};
    const SearchChoosing how = {.reserve_bytes = reserve_bytes,
                                .stop = &options->stop,
                                .team = options->team,
                                .jobs = options->jobs,
                                .by = options->by,
                                .assumed = options->assumed};
    return search_choose_by(spread, &how, spec, error) &&
           (!search_mixed_asked(spec) || search_mixed_choose(spec, error)) &&
           spec_check(spec, "plan", error) && answer_ask(spec, NULL, &ask, arena, report, error);
}

static PlanEntry simulate_count(const Spec *asked, int gpus, const PlanOptions *options)
{
    const int paid = plan_paid_gpus(asked, gpus, options->whole_racks), rack = asked->cluster.rack_gpus;
    PlanEntry entry = {.point = {.gpus = gpus,
                                 .paid_gpus = paid,
                                 .power_w = plan_power_w(asked, paid),
                                 .racks = rack > 0 ? (double)gpus / rack : 0,
                                 .reason = plan_refuse_count(asked, gpus, options)}};
    if (entry.point.reason != NULL)
        return entry;
    GError *error = NULL;
    Report report;
    g_autofree Spec *spread = g_new(Spec, 1);
    g_autofree Spec *spec = g_new(Spec, 1);
    OrrArena *arena = orr_arena_new();
    plan_spread(asked, gpus, options, spread);
    entry.point.nodes = spread->cluster.nodes;
    if (simulate(spread, options, arena, spec, &report, &error))
        fill_point(&report, options, &entry.point, &entry.parts);
    else
        entry.point.reason = g_strdup(
            g_str_has_prefix(error->message, "plan: ") ? error->message + strlen("plan: ") : error->message);
    g_clear_error(&error);
    orr_arena_free(arena);
    return entry;
}

/* --- the answer --- */

static bool keeps(const PlanPoint *point, const PlanOptions *options)
{
    return point->reason == NULL && point->fits &&
           (!(options->deadline_s > 0) || plan_days(point) * DAY_S <= options->deadline_s) &&
           (!(options->budget_usd > 0) || point->usd <= options->budget_usd);
}

/* The best tokens/s a GPU of a point that fits: scaling is told against it. */
static double best_rate(const Plan *plan)
{
    double best = 0;
    for (guint i = 0; i < plan->points->len; i++) {
        const PlanPoint *point = &g_array_index(plan->points, PlanPoint, i);
        if (point->reason == NULL && point->fits)
            best = fmax(best, point->tokens_per_s_per_gpu);
    }
    return best;
}

/* Of two that keep what is asked the surer to fit; then what is better by days, cost or energy; by the step with a deadline the
 * smaller, else the faster. */
static bool better(const PlanPoint *point, const PlanPoint *chosen, const PlanOptions *options)
{
    if (chosen == NULL || point->memory_verdict != chosen->memory_verdict)
        return chosen == NULL || point->memory_verdict > chosen->memory_verdict;
    return (options->by != SEARCH_FOR_STEP || !(options->deadline_s > 0)) &&
           plan_figure(point, options->by) < plan_figure(chosen, options->by);
}

static void choose(const PlanOptions *options, Plan *plan)
{
    const bool asked = options->deadline_s > 0 || options->budget_usd > 0 || options->power_w > 0 ||
                       options->by != SEARCH_FOR_STEP;
    const int only = options->gpus_count == 1 ? options->gpus[0] : plan->own_gpus;
    const double base = best_rate(plan);
    plan->chosen = plan->fastest = -1;
    for (guint i = 0; i < plan->points->len; i++) {
        PlanPoint *point = &g_array_index(plan->points, PlanPoint, i);
        if (point->reason != NULL)
            continue;
        point->efficiency_frac = base > 0 ? point->tokens_per_s_per_gpu / base : 0;
        const PlanPoint *fastest =
            plan->fastest >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)plan->fastest) : NULL;
        if (point->fits && (fastest == NULL || plan_days(point) < plan_days(fastest)))
            plan->fastest = (int)i;
        if (!asked && point->gpus == only)
            plan->chosen = (int)i;
        if (!asked || !keeps(point, options))
            continue;
        const PlanPoint *chosen =
            plan->chosen >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)plan->chosen) : NULL;
        if (better(point, chosen, options))
            plan->chosen = (int)i;
    }
    if (!asked && plan->chosen < 0)
        plan->chosen = plan->fastest; /* the scenario's own count is not among them */
}

/* --- the textbook --- */

static void add_term(PlanTextbook *textbook, const char *key, const char *label, double days)
{
    g_assert(textbook->term_count < PLAN_TERM_MAX);
    textbook->terms[textbook->term_count++] = (PlanTerm){key, label, days};
}

/* Days of the textbook, then the FLOPs it leaves out at its own rate, then compute at the simulated rate instead,
 * then every other part of the critical rank's step: they add up to the simulated days. */
static void explain(double tokens, const PlanPoint *point, const PlanParts *parts, PlanTextbook *textbook)
{
    ReportTime times[REPORT_TIME_COUNT];
    const double steps = point->days * DAY_S / point->step_s;
    const double rate = textbook->flops_per_s_per_gpu * point->gpus;
    const double flops = 6 * textbook->parameters * tokens;
    const double counted = parts->model_flops * steps / rate / DAY_S;
    textbook->at_gpus = point->gpus;
    textbook->days = flops / rate / DAY_S;
    textbook->attention_days = (flops + parts->attention_flops * steps) / rate / DAY_S;
    textbook->recompute_days =
        cost_textbook_seconds(textbook->parameters, tokens, point->gpus, textbook->flops_per_s_per_gpu) /
        DAY_S;
    const SpecTraining *training = &point->spec->training;
    const bool frozen = training->adapter.given || spec_freezes(&training->freeze);
    add_term(textbook, "flops",
             frozen ? "gradients of frozen weights, which 6 P T counts" : "FLOPs that 6 P T leaves out",
             counted - textbook->days);
    report_times(parts->part_ps, parts->bubble_ps, parts->late_ps, times);
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        const double days = (double)times[i].ps / (double)parts->step_ps * point->days;
        if (g_str_equal(times[i].key, "compute_s"))
            add_term(textbook, "compute_rate", "compute faster or slower than assumed", days - counted);
        else
            add_term(textbook, times[i].key, times[i].label, days);
    }
}

static void fill_textbook(const Spec *asked, const PlanOptions *options, const PlanParts *parts, Plan *plan)
{
    PlanTextbook *textbook = &plan->textbook;
    textbook->parameters = options->textbook_parameters > 0 ? options->textbook_parameters
                                                            : cost_parameters(&asked->model, 0, true);
    textbook->rate_given = options->textbook_flops_per_s > 0;
    textbook->flops_per_s_per_gpu =
        textbook->rate_given ? options->textbook_flops_per_s : HALF_OF_PEAK * plan->peak_flops_per_s;
    if (!(textbook->flops_per_s_per_gpu > 0))
        return;
    if (options->deadline_s > 0) {
        textbook->gpus = cost_textbook_gpus(textbook->parameters, asked->training.tokens,
                                            textbook->flops_per_s_per_gpu, options->deadline_s);
        textbook->gpus_rounded = (int)ceil(MIN(textbook->gpus, 1e9));
    }
    const int index = plan->chosen >= 0 ? plan->chosen : plan->fastest;
    if (index >= 0 && g_array_index(plan->points, PlanPoint, (guint)index).reason == NULL)
        explain(asked->training.tokens, &g_array_index(plan->points, PlanPoint, (guint)index), &parts[index],
                textbook);
}

/* --- the plan --- */

/* Counts of which even the dense peak would miss the deadline are not looked at, but for the scenario's own. */
static bool hopeless(const Spec *asked, int gpus, const PlanOptions *options)
{
    const double flops = cost_flops(asked, NULL, 0).model / asked->training.global_batch /
                         asked->training.sequence_length * asked->training.tokens;
    return options->deadline_s > 0 && options->gpus == NULL && gpus != spec_gpus(asked) &&
           flops / (report_groups_mean(asked, REPORT_MEAN_PEAK_FLOPS) * gpus) > options->deadline_s;
}

static void tell(const PlanOptions *options, int done, int total)
{
    if (options->progress != NULL)
        options->progress(done, total, options->progress_data);
}

/* Simulates a count into place `at`; false where it was stopped, since what "auto" became may not be the best. */
static bool insert_count(const Spec *asked, int gpus, const PlanOptions *options, guint at, GArray *entries)
{
    PlanEntry entry = simulate_count(asked, gpus, options);
    if (orr_stop_asked(&options->stop)) {
        point_clear(&entry.point);
        return false;
    }
    g_array_insert_val(entries, at, entry);
    return true;
}

/* Where degrees are searched anew at every count, two counts beyond the first that keeps the deadline say how it goes on;
 * the rest would take minutes. */
static bool enough(const GArray *entries, const Spec *asked, const PlanOptions *options)
{
    int kept = 0;
    for (guint i = 0; i < entries->len; i++)
        kept += keeps(&g_array_index(entries, PlanEntry, i).point, options);
    return options->gpus == NULL && options->deadline_s > 0 && !plan_degrees_known(asked) && kept > 2;
}

static bool simulate_counts(const Spec *asked, const PlanOptions *options, GArray *entries)
{
    g_autoptr(GArray) counts = plan_counts(asked, options);
    tell(options, 0, (int)counts->len);
    for (guint i = 0; i < counts->len && !enough(entries, asked, options); i++) {
        const int gpus = g_array_index(counts, int, i);
        if (!hopeless(asked, gpus, options) && !insert_count(asked, gpus, options, entries->len, entries))
            return false;
        tell(options, (int)i + 1, (int)counts->len);
    }
    return true;
}

/* Halves the stretch between the last count that misses and the first that keeps, where counts lie between. */
static bool refine(const Spec *asked, const PlanOptions *options, GArray *entries)
{
    enum { MOST = 6 };
    if (options->gpus != NULL || !(options->deadline_s > 0))
        return true;
    guint above = 0;
    while (above < entries->len && !keeps(&g_array_index(entries, PlanEntry, above).point, options))
        above++;
    if (above == 0 || above == entries->len)
        return true;
    for (int i = 0; i < MOST; i++) {
        const int low = g_array_index(entries, PlanEntry, above - 1).point.gpus;
        const int high = g_array_index(entries, PlanEntry, above).point.gpus;
        const int middle = plan_count_between(asked, options, low, high);
        if (middle == 0)
            break;
        tell(options, i, MOST);
        if (!insert_count(asked, middle, options, above, entries))
            return false;
        above += keeps(&g_array_index(entries, PlanEntry, above).point, options) ? 0 : 1;
    }
    tell(options, MOST, MOST);
    return true;
}

static bool askable(const Spec *asked, const PlanOptions *options, GError **error)
{
    if (!(asked->training.tokens > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "training.tokens: missing; a plan needs the tokens of the whole run, as in --set "
                        "training.tokens=300e9, or training.samples and training.epochs");
    if (options->budget_usd > 0 && !(report_groups_mean(asked, REPORT_MEAN_USD_PER_HOUR) > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "cluster.usd_per_gpu_hour: missing for %s; a budget needs a price, as in %s",
                        asked->cluster.accelerator.name,
                        asked->cluster.group_count > 0
                            ? "\"usd_per_gpu_hour\": 2.5 in each entry of cluster.groups"
                            : "--set cluster.usd_per_gpu_hour=2.5 or --accelerator NAME@2.5");
    if (!search_goal_check(options->by, asked, options->own_count, error))
        return false;
    const int node = plan_paid_gpus(asked, asked->cluster.gpus_per_node, options->whole_racks);
    const bool rack = node > asked->cluster.gpus_per_node;
    if (options->power_w > 0 && !(plan_power_w(asked, 1) > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "cluster.accelerator.power_w: missing for %s; a limit of power needs it",
                        asked->cluster.accelerator.name);
    if (options->power_w > 0 && plan_power_w(asked, node) > options->power_w)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "--power-mw: %.6g MW, but one %s of %d %s draws %.6g MW; give at least that",
                        options->power_w * 1e-6, rack ? "rack" : "node", node,
                        asked->cluster.accelerator.name, plan_power_w(asked, node) * 1e-6);
    return true;
}

char *plan_name(const Plan *plan)
{
    const bool named = plan->name != NULL;
    const char *const parts[] = {named ? plan->name : plan->accelerator, named ? NULL : plan->cluster,
                                 plan->framework};
    GString *name = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(parts); i++)
        if (parts[i] != NULL && parts[i][0] != '\0')
            g_string_append_printf(name, "%s%s", name->len > 0 ? ", " : "", parts[i]);
    return g_string_free(name, FALSE);
}

/* Of the smallest card. */
static double least_memory_bytes(const SpecCluster *cluster)
{
    double least = cluster->accelerator.memory_bytes;
    for (int g = 0; g < cluster->group_count; g++)
        least = fmin(least, cluster->groups[g].accelerator.memory_bytes);
    return least;
}

void plan_drop(const Spec *asked, const GError *reason, Plan *ret_plan)
{
    *ret_plan = (Plan){.accelerator = report_groups_names(asked),
                       .cluster = g_strdup(asked->cluster.group_count > 0 ? "" : asked->cluster.name),
                       .reason = g_strdup(reason->message),
                       .memory_bytes = least_memory_bytes(&asked->cluster),
                       .pue = asked->cluster.pue,
                       .gpus_per_node = asked->cluster.gpus_per_node,
                       .own_gpus = spec_gpus(asked),
                       .points = g_array_new(FALSE, TRUE, sizeof(PlanPoint)),
                       .chosen = -1,
                       .fastest = -1,
                       .asked = g_memdup2(asked, sizeof *asked)};
    g_array_set_clear_func(ret_plan->points, point_clear);
}

bool plan_any(const Plan *plans, int count, GError **error)
{
    for (int i = 0; i < count; i++)
        if (plans[i].reason == NULL)
            return true;
    return count == 1 ? orr_fail(error, ORR_ERROR_INPUT, "%s", plans[0].reason)
                      : orr_fail(error, ORR_ERROR_INPUT, "none of %d machines has an answer; the first: %s",
                                 count, plans[0].reason);
}

bool plan_run(const Spec *asked, const PlanOptions *options, Plan *ret_plan, GError **error)
{
    if (!askable(asked, options, error) || !ledger_reserve_check(&options->reserve, asked, error))
        return false;
    const SpecCluster *cluster = &asked->cluster;
    Plan plan = {.accelerator = report_groups_names(asked),
                 .cluster = g_strdup(cluster->group_count > 0 ? "" : cluster->name),
                 .memory_bytes = least_memory_bytes(cluster),
                 .peak_flops_per_s = report_groups_mean(asked, REPORT_MEAN_PEAK_FLOPS),
                 .usd_per_gpu_hour = report_groups_mean(asked, REPORT_MEAN_USD_PER_HOUR),
                 .pue = cluster->pue,
                 .host_power_known = cluster->host_power_w_per_gpu > 0,
                 .power_w_per_gpu = report_groups_mean_w(asked, 0),
                 .gpus_per_node = cluster->gpus_per_node,
                 .own_gpus = spec_gpus(asked),
                 .points = g_array_new(FALSE, TRUE, sizeof(PlanPoint))};
    g_array_set_clear_func(plan.points, point_clear);
    plan.asked = g_memdup2(asked, sizeof *asked);
    plan.cluster_json = g_strdup(options->cluster_json);
    g_autoptr(GArray) entries = g_array_new(FALSE, TRUE, sizeof(PlanEntry));
    plan.partial = !simulate_counts(asked, options, entries) || !refine(asked, options, entries);
    g_autofree PlanParts *parts = g_new0(PlanParts, entries->len + 1);
    for (guint i = 0; i < entries->len; i++) {
        const PlanEntry *entry = &g_array_index(entries, PlanEntry, i);
        g_array_append_val(plan.points, entry->point);
        parts[i] = entry->parts;
    }
    choose(options, &plan);
    fill_textbook(asked, options, parts, &plan);
    *ret_plan = plan;
    return true;
}
