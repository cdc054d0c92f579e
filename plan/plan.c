/* plan/plan.c - see plan.h. */
#include "plan/plan.h"

#include <math.h>
#include <string.h>

#include "costmodel/params.h"
#include "costmodel/textbook.h"
#include "ledger/interval.h"
#include "report/parts.h"
#include "search/choose.h"

#define DAY_S        86400.0
#define MAX_GPUS     131072 /* of the counts that are tried without being asked for */
#define HALF_OF_PEAK 0.5    /* what a textbook assumes a GPU achieves when nothing is known */

/* What the textbook's explanation needs of a simulated point. */
typedef struct PlanParts {
    int64_t part_ps[SIM_PART_COUNT], bubble_ps, step_ps;
    double model_flops;     /* of a step, as the report counts them */
    double attention_flops; /* of a step, not halved: what Chowdhery et al. add to 6 P T */
} PlanParts;

static void point_clear(void *data)
{
    g_free(((PlanPoint *)data)->reason);
}

void plan_clear(Plan *plan)
{
    g_clear_pointer(&plan->accelerator, g_free);
    g_clear_pointer(&plan->cluster, g_free);
    if (plan->points != NULL)
        g_array_free(g_steal_pointer(&plan->points), TRUE);
}

/* --- the points --- */

static bool model_degrees_known(const Spec *spec)
{
    return spec->parallel.tensor > 0 && spec->parallel.context > 0 && spec->parallel.pipeline > 0;
}

static int compare_ints(const void *a, const void *b)
{
    const int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

static bool whole_nodes(const SpecCluster *cluster, int64_t gpus)
{
    return gpus <= MAX_GPUS && (gpus < cluster->gpus_per_node || gpus % cluster->gpus_per_node == 0);
}

/* Every GPU count whose replicas share the global batch evenly; with degrees left to a search, nodes by doubling. */
static GArray *gpu_counts(const Spec *asked, const PlanOptions *options)
{
    GArray *counts = g_array_new(FALSE, FALSE, sizeof(int));
    const int own = spec_gpus(asked);
    if (options->gpus != NULL) {
        g_array_append_vals(counts, options->gpus, (guint)options->gpus_count);
    } else if (model_degrees_known(asked)) {
        const int batch = asked->training.global_batch;
        const int64_t split =
            (int64_t)asked->parallel.tensor * asked->parallel.context * asked->parallel.pipeline;
        for (int data = 1; data <= batch && split * data <= MAX_GPUS; data++) {
            const int gpus = (int)split * data;
            if (batch % data == 0 && whole_nodes(&asked->cluster, gpus))
                g_array_append_val(counts, gpus);
        }
        if (split > 0 && own % split == 0)
            g_array_append_val(counts, own);
    } else {
        for (int64_t gpus = asked->cluster.gpus_per_node; gpus <= MAX_GPUS && gpus <= 16 * (int64_t)own;
             gpus *= 2) {
            const int count = (int)gpus;
            g_array_append_val(counts, count);
        }
        g_array_append_val(counts, own);
    }
    g_array_sort(counts, compare_ints);
    for (guint i = counts->len; i > 1; i--)
        if (g_array_index(counts, int, i - 1) == g_array_index(counts, int, i - 2))
            g_array_remove_index(counts, i - 1);
    return counts;
}

static char *refuse_count(const Spec *asked, int gpus)
{
    const SpecParallel *parallel = &asked->parallel;
    const int per_node = asked->cluster.gpus_per_node;
    if (gpus > per_node && gpus % per_node != 0)
        return g_strdup_printf("%d GPUs are no whole nodes of %d", gpus, per_node);
    const int64_t split =
        model_degrees_known(asked) ? (int64_t)parallel->tensor * parallel->context * parallel->pipeline : 1;
    if (gpus % split != 0)
        return g_strdup_printf("tensor %d x context %d x pipeline %d does not divide %d GPUs",
                               parallel->tensor, parallel->context, parallel->pipeline, gpus);
    return NULL;
}

/* The largest micro-batch up to the scenario's that divides the sequences of one replica. */
static int fitting_micro_batch(const Spec *asked, int data)
{
    const int micro = asked->training.micro_batch, share = asked->training.global_batch / data;
    if (micro <= 0 || asked->training.global_batch % data != 0)
        return micro;
    for (int size = MIN(micro, share); size > 1; size--)
        if (share % size == 0)
            return size;
    return 1;
}

static void spread(const Spec *asked, int gpus, Spec *spec)
{
    SpecCluster *cluster = &spec->cluster;
    *spec = *asked;
    if (gpus < cluster->gpus_per_node) {
        cluster->scale_up_domain_gpus = MIN(cluster->scale_up_domain_gpus, gpus);
        cluster->gpus_per_node = gpus;
    }
    cluster->nodes = gpus / cluster->gpus_per_node;
    if (!model_degrees_known(asked)) {
        spec->parallel.data = SPEC_AUTO;
        return;
    }
    spec->parallel.data = gpus / (spec->parallel.tensor * spec->parallel.context * spec->parallel.pipeline);
    spec->training.micro_batch = fitting_micro_batch(asked, spec->parallel.data);
}

static void fill_point(const Report *report, PlanPoint *point, PlanParts *parts)
{
    const Spec *spec = report->spec;
    point->tensor = spec->parallel.tensor;
    point->context = spec->parallel.context;
    point->pipeline = spec->parallel.pipeline;
    point->virtual_stages = spec->parallel.virtual_stages;
    point->data = spec->parallel.data;
    point->micro_batch = spec->training.micro_batch;
    point->microbatches = spec_microbatches(spec);
    point->fits = report->fits;
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
    point->gpu_hours = report->gpu_hours;
    point->usd = report->usd;
    point->kwh = report->kwh;
    *parts = (PlanParts){.bubble_ps = report->bubble_ps,
                         .step_ps = report->step_ps,
                         .model_flops = cost_flops(spec, NULL, 0).model,
                         .attention_flops = cost_convention_flops(spec, COST_CONVENTION_PALM) -
                                            cost_convention_flops(spec, COST_CONVENTION_6ND)};
    for (int part = 0; part < SIM_PART_COUNT; part++)
        parts->part_ps[part] = report->part_ps[part];
}

static PlanPoint simulate_point(const Spec *asked, int gpus, const LedgerResiduals *residuals,
                                PlanParts *ret_parts)
{
    PlanPoint point = {.gpus = gpus, .reason = refuse_count(asked, gpus)};
    if (point.reason != NULL)
        return point;
    const ReportOptions options = {0};
    GError *error = NULL;
    Report report;
    g_autofree Spec *spread_spec = g_new(Spec, 1);
    g_autofree Spec *spec = g_new(Spec, 1);
    OrrArena *arena = orr_arena_new();
    spread(asked, gpus, spread_spec);
    *spec = *spread_spec;
    point.nodes = spec->cluster.nodes;
    const bool ok = (!search_has_auto(spread_spec) || search_choose(spread_spec, spec, &error)) &&
                    spec_check(spec, "plan", &error) &&
                    report_run(spec, NULL, &options, arena, &report, &error);
    if (ok) {
        ledger_interval_fill(residuals, arena, &report);
        fill_point(&report, &point, ret_parts);
    } else
        point.reason = g_strdup(g_str_has_prefix(error->message, "plan: ") ? error->message + strlen("plan: ")
                                                                           : error->message);
    g_clear_error(&error);
    orr_arena_free(arena);
    return point;
}

/* --- the answer --- */

static bool keeps(const PlanPoint *point, const PlanOptions *options)
{
    return point->reason == NULL && point->fits &&
           (!(options->deadline_s > 0) || point->days * DAY_S <= options->deadline_s) &&
           (!(options->budget_usd > 0) || point->usd <= options->budget_usd);
}

static void choose(const PlanOptions *options, Plan *plan)
{
    const bool asked = options->deadline_s > 0 || options->budget_usd > 0;
    const int only = options->gpus_count == 1 ? options->gpus[0] : plan->own_gpus;
    double base = 0;
    plan->chosen = plan->fastest = -1;
    for (guint i = 0; i < plan->points->len; i++) {
        PlanPoint *point = &g_array_index(plan->points, PlanPoint, i);
        if (point->reason != NULL)
            continue;
        if (base <= 0 && point->fits)
            base = point->tokens_per_s_per_gpu;
        point->efficiency_frac = base > 0 ? point->tokens_per_s_per_gpu / base : 0;
        const PlanPoint *fastest =
            plan->fastest >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)plan->fastest) : NULL;
        if (point->fits && (fastest == NULL || point->days < fastest->days))
            plan->fastest = (int)i;
        if (!asked && point->gpus == only)
            plan->chosen = (int)i;
        if (!asked || !keeps(point, options))
            continue;
        const PlanPoint *chosen =
            plan->chosen >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)plan->chosen) : NULL;
        const bool better =
            options->deadline_s > 0 ? chosen == NULL : chosen == NULL || point->days < chosen->days;
        if (better)
            plan->chosen = (int)i;
    }
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
    add_term(textbook, "flops", "FLOPs that 6 P T leaves out", counted - textbook->days);
    report_times(parts->part_ps, parts->bubble_ps, times);
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

static bool askable(const Spec *asked, const PlanOptions *options, GError **error)
{
    if (!(asked->training.tokens > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "training.tokens: missing; a plan needs the tokens of the whole run, as in --set "
                        "training.tokens=300e9");
    if (options->budget_usd > 0 && !(asked->cluster.usd_per_gpu_hour > 0))
        return orr_fail(error, ORR_ERROR_INPUT,
                        "cluster.usd_per_gpu_hour: missing for %s; a budget needs a price, as in --set "
                        "cluster.usd_per_gpu_hour=2.5 or --accelerator NAME@2.5",
                        asked->cluster.accelerator.name);
    return true;
}

bool plan_run(const Spec *asked, const PlanOptions *options, Plan *ret_plan, GError **error)
{
    if (!askable(asked, options, error))
        return false;
    const SpecCluster *cluster = &asked->cluster;
    Plan plan = {.accelerator = g_strdup(cluster->accelerator.name),
                 .cluster = g_strdup(cluster->name),
                 .memory_bytes = cluster->accelerator.memory_bytes,
                 .peak_flops_per_s = cost_peak_flops_per_s(asked),
                 .usd_per_gpu_hour = cluster->usd_per_gpu_hour,
                 .pue = cluster->pue,
                 .host_power_known = cluster->host_power_w_per_gpu > 0,
                 .power_w_per_gpu = cluster->accelerator.power_w + cluster->host_power_w_per_gpu,
                 .gpus_per_node = cluster->gpus_per_node,
                 .own_gpus = spec_gpus(asked),
                 .points = g_array_new(FALSE, TRUE, sizeof(PlanPoint))};
    g_array_set_clear_func(plan.points, point_clear);
    g_autoptr(GArray) counts = gpu_counts(asked, options);
    g_autofree PlanParts *parts = g_new0(PlanParts, counts->len + 1);
    for (guint i = 0; i < counts->len; i++) {
        const PlanPoint point =
            simulate_point(asked, g_array_index(counts, int, i), options->residuals, &parts[i]);
        g_array_append_val(plan.points, point);
        if (options->progress != NULL)
            options->progress((int)i + 1, (int)counts->len, options->progress_data);
    }
    choose(options, &plan);
    fill_textbook(asked, options, parts, &plan);
    *ret_plan = plan;
    return true;
}
