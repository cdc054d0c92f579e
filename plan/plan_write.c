/* plan/plan_write.c - a plan as a page of text, as JSON, as CSV. Computes nothing. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "report/page.h"
#include "plan/plan.h"

enum { LABEL_COLUMN = 14, MAX_ROWS = 24 };

#define DAY_S 86400.0
#define GIB   1073741824.0

static const PlanPoint *point_at(const Plan *plan, int index)
{
    return index >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)index) : NULL;
}

/* --- text --- */

static char *campaign_text(const PlanPoint *point)
{
    char text[ORR_TEXT_SIZE];
    GString *line = g_string_new(NULL);
    g_string_append_printf(line, "%.1f days", point->days);
    if (point->days_high > 0)
        g_string_append_printf(line, " (%.1f to %.1f)", point->days_low, point->days_high);
    g_string_append_printf(line, ", %s GPU-hours", report_page_whole(text, point->gpu_hours));
    if (point->usd > 0)
        g_string_append_printf(line, ", %s USD", report_page_whole(text, point->usd));
    if (point->kwh > 0)
        g_string_append_printf(line, ", %s kWh", report_page_whole(text, point->kwh));
    return g_string_free(line, FALSE);
}

static void write_question(const PlanPage *page, GString *out)
{
    const Spec *spec = page->spec;
    const PlanOptions *options = page->options;
    char tokens[ORR_TEXT_SIZE], parameters[ORR_TEXT_SIZE], batch[ORR_TEXT_SIZE], sequence[ORR_TEXT_SIZE];
    g_autofree char *title =
        g_strdup_printf("Plan: %s", spec->name[0] != '\0' ? spec->name : spec->model.name);
    report_page_entry(out, "", 0, title);
    const glong width = MIN(g_utf8_strlen(title, -1), REPORT_PAGE_WIDTH);
    for (glong i = 0; i < width; i++)
        g_string_append(out, "\u2500");
    g_string_append_c(out, '\n');
    g_autofree char *training =
        g_strdup_printf("%s tokens, %s parameters; %s sequences of %s tokens a step, %s",
                        orr_text_count(tokens, spec->training.tokens),
                        orr_text_count(parameters, page->plans[0].textbook.parameters),
                        report_page_whole(batch, spec->training.global_batch),
                        report_page_whole(sequence, spec->training.sequence_length),
                        spec_word(&spec_words_precision, (int)spec->training.precision));
    report_page_entry(out, "  Training", LABEL_COLUMN, training);
    g_autoptr(GString) asked = g_string_new(NULL);
    if (options->deadline_s > 0)
        g_string_append_printf(asked, "the fewest GPUs that train it in %s",
                               orr_text_seconds(tokens, options->deadline_s));
    else if (options->budget_usd > 0)
        g_string_append(asked, "the fastest way");
    else
        g_string_append(asked, "how long it takes");
    if (options->budget_usd > 0)
        g_string_append_printf(asked, " for at most %s USD", report_page_whole(tokens, options->budget_usd));
    report_page_entry(out, "  Asked", LABEL_COLUMN, asked->str);
}

/* The next smaller GPU count that fits: what just misses the deadline. */
static const PlanPoint *fewer_that_fits(const Plan *plan)
{
    for (int i = plan->chosen - 1; i >= 0; i--)
        if (point_at(plan, i)->reason == NULL && point_at(plan, i)->fits)
            return point_at(plan, i);
    return NULL;
}

static const PlanPoint *cheapest_that_fits(const Plan *plan)
{
    const PlanPoint *best = NULL;
    for (guint i = 0; i < plan->points->len; i++) {
        const PlanPoint *point = point_at(plan, (int)i);
        if (point->reason == NULL && point->fits && point->usd > 0 &&
            (best == NULL || point->usd < best->usd))
            best = point;
    }
    return best;
}

static void append_alternative(GString *line, const char *which, const PlanPoint *point)
{
    char gpus[ORR_TEXT_SIZE];
    g_autofree char *campaign = campaign_text(point);
    g_string_append_printf(line, "; the %s is %s GPUs: %s", which, report_page_whole(gpus, point->gpus),
                           campaign);
}

static void write_answer(const PlanPage *page, const Plan *plan, GString *out)
{
    char gpus[ORR_TEXT_SIZE];
    const PlanPoint *chosen = point_at(plan, plan->chosen), *fastest = point_at(plan, plan->fastest);
    g_autoptr(GString) line = g_string_new(NULL);
    if (chosen != NULL) {
        g_autofree char *campaign = campaign_text(chosen);
        g_string_printf(line, "%s GPUs: %s", report_page_whole(gpus, chosen->gpus), campaign);
        if (!chosen->fits)
            g_string_append_printf(line, "; DOES NOT FIT in memory, short by %.1f GiB",
                                   chosen->short_bytes / GIB);
        const PlanPoint *fewer = page->options->deadline_s > 0 ? fewer_that_fits(plan) : NULL;
        if (fewer != NULL)
            g_string_append_printf(line, "; %s GPUs would take %.1f days",
                                   report_page_whole(gpus, fewer->gpus), fewer->days);
    } else if (fastest != NULL && (page->options->deadline_s > 0 || page->options->budget_usd > 0)) {
        const PlanPoint *cheapest = page->options->budget_usd > 0 ? cheapest_that_fits(plan) : NULL;
        g_string_append(line, "none of the GPU counts looked at");
        if (page->options->deadline_s > 0)
            append_alternative(line, "fastest", fastest);
        if (cheapest != NULL)
            append_alternative(line, "cheapest", cheapest);
    } else {
        const PlanPoint *any = plan->points->len > 0 ? point_at(plan, 0) : NULL;
        g_string_printf(line, "none: %s",
                        any != NULL && any->reason != NULL ? any->reason
                                                           : "no GPU count looked at fits in memory");
    }
    report_page_entry(out, "  Answer", LABEL_COLUMN, line->str);
}

/* Whether a long table shows row `index`: evenly spread ones, the answer, the scenario's own count. */
static bool shown(const Plan *plan, int index)
{
    const int count = (int)plan->points->len;
    if (count <= MAX_ROWS || index == plan->chosen || index == plan->fastest ||
        point_at(plan, index)->gpus == plan->own_gpus)
        return true;
    const double stride = (double)(count - 1) / (MAX_ROWS - 1);
    return floor(index / stride) > floor((index - 1) / stride) || index == 0;
}

#define CELLS 12

/* "tp8 cp2 pp8 vpp3 dp16", without the degrees that are 1. */
static void layout_text(char *text, const PlanPoint *point)
{
    const struct {
        const char *name;
        int degree;
    } degrees[] = {{"tp", point->tensor},
                   {"cp", point->context},
                   {"pp", point->pipeline},
                   {"vpp", point->virtual_stages}};
    g_autoptr(GString) line = g_string_new(NULL);
    for (gsize i = 0; i < G_N_ELEMENTS(degrees); i++)
        if (degrees[i].degree > 1)
            g_string_append_printf(line, "%s%d ", degrees[i].name, degrees[i].degree);
    g_string_append_printf(line, "dp%d", point->data);
    g_strlcpy(text, line->str, ORR_TEXT_SIZE);
}

/* Seconds, whatever the size: the rows of a column are read against each other. */
static void step_text(char *text, double step_s)
{
    if (step_s < 1000)
        orr_text_seconds(text, step_s);
    else
        g_strlcat(strcpy(text, report_page_whole((char[ORR_TEXT_SIZE]){0}, step_s)), " s", ORR_TEXT_SIZE);
}

static void write_row(const Plan *plan, int index, OrrTable *table)
{
    char cell[CELLS][ORR_TEXT_SIZE] = {{0}};
    const PlanPoint *point = point_at(plan, index);
    g_strlcpy(cell[0], index == plan->chosen ? "\u25b6" : "", ORR_TEXT_SIZE);
    report_page_whole(cell[1], point->gpus);
    if (point->reason == NULL) {
        layout_text(cell[2], point);
        g_snprintf(cell[3], ORR_TEXT_SIZE, "%d", point->micro_batch);
        step_text(cell[4], point->step_s);
        g_snprintf(cell[5], ORR_TEXT_SIZE, "%.4g", point->tokens_per_s_per_gpu);
        g_snprintf(cell[6], ORR_TEXT_SIZE, "%.1f %%", point->mfu * 100);
        if (point->efficiency_frac > 0)
            g_snprintf(cell[7], ORR_TEXT_SIZE, "%.0f %%", point->efficiency_frac * 100);
        g_snprintf(cell[8], ORR_TEXT_SIZE, "%.1f", point->days);
        report_page_whole(cell[9], point->gpu_hours);
        if (point->usd > 0)
            report_page_whole(cell[10], point->usd);
        if (!point->fits)
            g_snprintf(cell[11], ORR_TEXT_SIZE, "short by %.1f GiB", point->short_bytes / GIB);
    }
    const char *cells[CELLS];
    for (int i = 0; i < CELLS; i++)
        cells[i] = cell[i];
    if (point->reason != NULL)
        cells[11] = "cannot: see below";
    orr_table_row(table, cells);
}

static void write_points(const Plan *plan, GString *out)
{
    static const char *const headers[CELLS] = {"",     "GPUs",         "layout", "micro",
                                               "step", "tokens/s/GPU", "MFU",    "scaling",
                                               "days", "GPU-hours",    "USD",    "memory"};
    OrrTable *table = orr_table_new(headers, CELLS);
    int rows = 0, refused = 0, first_refused = -1;
    for (int i = 0; i < (int)plan->points->len; i++) {
        if (point_at(plan, i)->reason != NULL && refused++ == 0)
            first_refused = i;
        if (!shown(plan, i))
            continue;
        rows++;
        write_row(plan, i, table);
    }
    g_string_append_c(out, '\n');
    orr_table_print(table, out, 2);
    orr_table_free(table);
    if (rows < (int)plan->points->len)
        g_string_append_printf(out, "  %d of %u GPU counts shown; --format csv has all\n", rows,
                               plan->points->len);
    if (first_refused >= 0) {
        const PlanPoint *point = point_at(plan, first_refused);
        g_autofree char *why = g_strdup_printf("%d GPU count%s cannot run; %d GPUs: %s", refused,
                                               refused > 1 ? "s" : "", point->gpus, point->reason);
        report_page_entry(out, "  Cannot", LABEL_COLUMN, why);
    }
}

static void write_terms(const PlanTextbook *textbook, const PlanPoint *point, GString *out)
{
    enum { COLUMNS = 2 };
    char text[ORR_TEXT_SIZE];
    g_string_append_printf(out, "\nFrom the textbook to the simulation, days on %s GPUs\n",
                           report_page_whole(text, textbook->at_gpus));
    OrrTable *table = orr_table_new(NULL, COLUMNS);
    g_snprintf(text, sizeof text, "%.2f", textbook->days);
    orr_table_row(table, (const char *[COLUMNS]){"textbook", text});
    for (int i = 0; i < textbook->term_count; i++) {
        if (fabs(textbook->terms[i].days) < 0.005)
            continue;
        g_snprintf(text, sizeof text, "%+.2f", textbook->terms[i].days);
        orr_table_row(table, (const char *[COLUMNS]){textbook->terms[i].label, text});
    }
    g_snprintf(text, sizeof text, "%.2f", point->days);
    orr_table_row(table, (const char *[COLUMNS]){"simulated", text});
    orr_table_print(table, out, 2);
    orr_table_free(table);
}

static void write_textbook(const PlanPage *page, const Plan *plan, GString *out)
{
    const PlanTextbook *textbook = &plan->textbook;
    char parameters[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE], rate[ORR_TEXT_SIZE], time[ORR_TEXT_SIZE],
        rounded[ORR_TEXT_SIZE];
    if (!(textbook->flops_per_s_per_gpu > 0))
        return;
    orr_text_count(parameters, textbook->parameters);
    orr_text_count(tokens, page->spec->training.tokens);
    orr_text_si(rate, textbook->flops_per_s_per_gpu, "FLOP/s");
    g_autoptr(GString) line = g_string_new(NULL);
    g_string_printf(line, "6 P T / (X t) with P = %s, T = %s, X = %s%s", parameters, tokens, rate,
                    textbook->rate_given ? "" : " (half of the dense peak)");
    if (textbook->gpus > 0)
        g_string_append_printf(line, ": %.1f, so %s GPUs for %s", textbook->gpus,
                               report_page_whole(rounded, textbook->gpus_rounded),
                               orr_text_seconds(time, page->options->deadline_s));
    g_string_append_c(out, '\n');
    report_page_entry(out, "  Textbook", LABEL_COLUMN, line->str);
    if (textbook->at_gpus == 0)
        return;
    g_autofree char *days = g_strdup_printf(
        "%s GPUs: %.1f days; %.1f with attention counted in full, %.1f with full recomputation (8 P T)",
        report_page_whole(rounded, textbook->at_gpus), textbook->days, textbook->attention_days,
        textbook->recompute_days);
    report_page_entry(out, "", LABEL_COLUMN, days);
    write_terms(textbook, point_at(plan, plan->chosen >= 0 ? plan->chosen : plan->fastest), out);
}

static void write_plan(const PlanPage *page, const Plan *plan, GString *out)
{
    char memory[ORR_TEXT_SIZE];
    g_autoptr(GString) hardware = g_string_new(NULL);
    g_string_printf(hardware, "%s%s%s, %s, %d a node", plan->accelerator,
                    plan->cluster[0] != '\0' ? ", " : "", plan->cluster,
                    orr_text_bytes(memory, plan->memory_bytes), plan->gpus_per_node);
    if (plan->usd_per_gpu_hour > 0)
        g_string_append_printf(hardware, "; %.2f USD a GPU-hour", plan->usd_per_gpu_hour);
    if (plan->power_w_per_gpu > 0)
        g_string_append_printf(hardware, "; %.0f W a GPU %s, PUE %.2f", plan->power_w_per_gpu,
                               plan->host_power_known ? "with its share of the host"
                                                      : "alone (cluster.host_power_w_per_gpu is not given)",
                               plan->pue);
    g_string_append_c(out, '\n');
    report_page_entry(out, "  GPU", LABEL_COLUMN, hardware->str);
    write_answer(page, plan, out);
    write_points(plan, out);
    write_textbook(page, plan, out);
}

static void write_side_by_side(const PlanPage *page, GString *out)
{
    enum { COLUMNS = 8 };
    static const char *const headers[COLUMNS] = {"GPU",  "GPUs",      "step", "MFU",
                                                 "days", "GPU-hours", "USD",  "kWh"};
    g_string_append(out, "\nSide by side\n");
    OrrTable *table = orr_table_new(headers, COLUMNS);
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        const PlanPoint *point = point_at(plan, plan->chosen);
        char cell[COLUMNS][ORR_TEXT_SIZE] = {{0}};
        g_strlcpy(cell[1], "none", ORR_TEXT_SIZE);
        if (point != NULL) {
            report_page_whole(cell[1], point->gpus);
            step_text(cell[2], point->step_s);
            g_snprintf(cell[3], ORR_TEXT_SIZE, "%.1f %%", point->mfu * 100);
            g_snprintf(cell[4], ORR_TEXT_SIZE, "%.1f", point->days);
            report_page_whole(cell[5], point->gpu_hours);
            if (point->usd > 0)
                report_page_whole(cell[6], point->usd);
            if (point->kwh > 0)
                report_page_whole(cell[7], point->kwh);
        }
        g_autofree char *name = plan->cluster[0] != '\0'
                                    ? g_strdup_printf("%s, %s", plan->accelerator, plan->cluster)
                                    : g_strdup(plan->accelerator);
        orr_table_row(table, (const char *[COLUMNS]){name, cell[1], cell[2], cell[3], cell[4], cell[5],
                                                     cell[6], cell[7]});
    }
    orr_table_print(table, out, 2);
    orr_table_free(table);
}

void plan_write_text(const PlanPage *page, GString *out)
{
    write_question(page, out);
    for (int i = 0; i < page->count; i++)
        write_plan(page, &page->plans[i], out);
    if (page->count > 1)
        write_side_by_side(page, out);
    g_autofree char *stamp =
        page->source != NULL && page->source->scenario_hash != NULL
            ? g_strdup_printf("orrery " ORRERY_VERSION ", scenario %s", page->source->scenario_hash)
            : g_strdup("orrery " ORRERY_VERSION);
    g_string_append_c(out, '\n');
    report_page_entry(out, "  Stamp", LABEL_COLUMN, stamp);
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
        orr_jw_int(w, "tensor", point->tensor);
        orr_jw_int(w, "context", point->context);
        orr_jw_int(w, "pipeline", point->pipeline);
        orr_jw_int(w, "virtual_stages", point->virtual_stages);
        orr_jw_int(w, "data", point->data);
        orr_jw_int(w, "micro_batch", point->micro_batch);
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
        write_positive(w, "days_low", point->days_low);
        write_positive(w, "days_high", point->days_high);
        orr_jw_number(w, "gpu_hours", point->gpu_hours);
        write_positive(w, "usd", point->usd);
        write_positive(w, "kwh", point->kwh);
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

static void write_json_plan(OrrJsonWriter *w, const Plan *plan)
{
    orr_jw_begin(w, NULL, '{');
    orr_jw_text(w, "accelerator", plan->accelerator);
    orr_jw_text(w, "cluster", plan->cluster);
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

void plan_write_json(const PlanPage *page, GString *out)
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
    write_positive(w, "deadline_s", page->options->deadline_s);
    write_positive(w, "budget_usd", page->options->budget_usd);
    orr_jw_begin(w, "plans", '[');
    for (int i = 0; i < page->count; i++)
        write_json_plan(w, &page->plans[i]);
    orr_jw_end(w, ']');
    orr_jw_end(w, '}');
    g_string_append_c(out, '\n');
}

/* --- CSV: a row a point --- */

#define CSV_COLUMNS 26

static void add_number(GPtrArray *cells, double value, bool known)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_ptr_array_add(cells, g_strdup(known ? g_ascii_formatd(text, sizeof text, "%.15g", value) : ""));
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
    add_number(cells, point->tensor, known);
    add_number(cells, point->context, known);
    add_number(cells, point->pipeline, known);
    add_number(cells, point->virtual_stages, known);
    add_number(cells, point->data, known);
    add_number(cells, point->micro_batch, known);
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
    g_assert(cells->len == CSV_COLUMNS);
    orr_table_row(table, (const char *const *)cells->pdata);
}

void plan_write_csv(const PlanPage *page, GString *out)
{
    static const char *const headers[CSV_COLUMNS] = {"accelerator",
                                                     "cluster",
                                                     "gpus",
                                                     "answer",
                                                     "fits",
                                                     "nodes",
                                                     "tensor",
                                                     "context",
                                                     "pipeline",
                                                     "virtual_stages",
                                                     "data",
                                                     "micro_batch",
                                                     "step_s",
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
                                                     "reason"};
    OrrTable *table = orr_table_new(headers, CSV_COLUMNS);
    for (int i = 0; i < page->count; i++)
        for (int point = 0; point < (int)page->plans[i].points->len; point++)
            write_csv_point(&page->plans[i], point, table);
    orr_table_csv(table, out);
    orr_table_free(table);
}
