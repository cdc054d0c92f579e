/* plan/plan_text.c - a plan as a page of text. Computes nothing. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plan/plan_question.h"
#include "report/describe.h"
#include "report/effective.h"
#include "report/page.h"
#include "spec/notes.h"

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
    char text[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    GString *line = g_string_new(NULL);
    plan_days_text(text, point->effective.days);
    if (point->effective.why_not != NULL)
        g_string_append(line, "no end: ");
    else if (point->effective.told)
        g_string_append_printf(line, "%s days, of them ", text);
    plan_days_text(text, point->days);
    g_string_append_printf(line, "%s days", text);
    if (point->effective.told)
        g_string_append(line, " of computing");
    plan_days_text(text, point->days_low);
    plan_days_text(high, point->days_high);
    if (point->days_high > 0)
        g_string_append_printf(line, " (%s to %s)", text, high);
    g_string_append_printf(line, ", %s GPU-hours", report_page_whole(text, point->gpu_hours));
    if (point->usd > 0)
        g_string_append_printf(line, ", %s USD", report_page_whole(text, point->usd));
    if (point->committed_usd > 0)
        g_string_append_printf(line, " (the term commits to %s)",
                               report_page_whole(text, point->committed_usd));
    if (point->kwh > 0)
        g_string_append_printf(line, ", %s kWh", report_page_whole(text, point->kwh));
    if (point->co2_kg > 0)
        g_string_append_printf(line, ", %s kg of CO2", report_page_whole(text, point->co2_kg));
    return g_string_free(line, FALSE);
}

/* The next smaller GPU count that fits: what just misses the deadline. */
static const PlanPoint *fewer_that_fits(const Plan *plan)
{
    for (int i = plan->chosen - 1; i >= 0; i--)
        if (point_at(plan, i)->reason == NULL && point_at(plan, i)->fits)
            return point_at(plan, i);
    return NULL;
}

/* "misses by 7 minutes": days alone would hide it. */
static void append_fewer(GString *line, const PlanPoint *fewer, double deadline_s)
{
    char gpus[ORR_TEXT_SIZE];
    const double over_s = plan_days(fewer) * DAY_S - deadline_s;
    report_page_gpus(gpus, fewer->gpus);
    if (over_s < 120)
        g_string_append_printf(line, "; %s would miss it by %.0f seconds", gpus, over_s);
    else if (over_s < 7200)
        g_string_append_printf(line, "; %s would miss it by %.0f minutes", gpus, over_s / 60);
    else if (over_s < 2 * DAY_S)
        g_string_append_printf(line, "; %s would miss it by %.1f hours", gpus, over_s / 3600);
    else
        g_string_append_printf(line, "; %s would take %.1f days", gpus, plan_days(fewer));
}

/* The fewest GPUs that would keep the deadline, were their memory surer: fewer than the answer's. */
static void append_tight(GString *line, const Plan *plan, double deadline_s)
{
    char gpus[ORR_TEXT_SIZE];
    for (int i = 0; i < plan->chosen; i++) {
        const PlanPoint *point = point_at(plan, i);
        const bool edge = point->fits && point->memory_verdict == REPORT_MEMORY_EDGE;
        if (point->reason != NULL || plan_days(point) * DAY_S > deadline_s || (point->fits && !edge) ||
            point->gpus >= point_at(plan, plan->chosen)->gpus)
            continue;
        g_string_append_printf(line, "; %s would keep it too, in %.1f days, but ",
                               report_page_gpus(gpus, point->gpus), plan_days(point));
        if (!edge)
            g_string_append_printf(line, "lack %.1f GiB of memory", point->short_bytes / GIB);
        else if (isnan(point->memory_odds))
            g_string_append(line, "their memory is at the edge");
        else
            g_string_append_printf(line, "fit with odds of %.0f %% only", 100 * point->memory_odds);
        g_string_append(line, " (training.recompute=auto may make room)");
        return;
    }
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
    g_string_append_printf(line, "; the %s is %s: %s", which, report_page_gpus(gpus, point->gpus), campaign);
}

static bool all_refused(const Plan *plan)
{
    for (guint i = 0; i < plan->points->len; i++)
        if (point_at(plan, (int)i)->reason == NULL)
            return false;
    return plan->points->len > 0;
}

static void append_why_none(const Plan *plan, const PlanOptions *options, GString *line)
{
    char text[ORR_TEXT_SIZE];
    int below = 0, above = 0;
    if (plan->reason != NULL) {
        g_string_printf(line, "none: %s", plan->reason);
        return;
    }
    if (!all_refused(plan)) {
        g_string_append(line, plan->partial && plan->points->len == 0
                                  ? "none yet: stopped before the first GPU count was simulated"
                                  : "none: no GPU count looked at fits in memory");
        return;
    }
    const PlanPoint *first = point_at(plan, 0);
    g_string_printf(line, "none: %s", first->reason);
    plan_nearest_counts(plan, options, first->gpus, &below, &above);
    if (below > 0)
        g_string_append_printf(line, "; %s would do", report_page_whole(text, below));
    if (above > 0)
        g_string_append_printf(line, "%s%s would do", below > 0 ? ", and " : "; ",
                               report_page_whole(text, above));
}

/* "142.2 racks of 72, paid as 143 with 10,296 GPUs" */
static void append_racks(GString *line, const Plan *plan, const PlanPoint *chosen)
{
    char gpus[ORR_TEXT_SIZE];
    const int rack = plan->asked->cluster.rack_gpus;
    if (!(chosen->racks > 0))
        return;
    g_string_append_printf(line, "; %.1f racks of %d", chosen->racks, rack);
    if (chosen->paid_gpus > chosen->gpus)
        g_string_append_printf(line, ", paid as %d with %s", chosen->paid_gpus / rack,
                               report_page_gpus(gpus, chosen->paid_gpus));
}

static void append_power(GString *line, const PlanPoint *chosen)
{
    char rate[ORR_TEXT_SIZE], power[ORR_TEXT_SIZE];
    plan_power_text(power, chosen->power_w);
    g_string_append_printf(line, "; %s, %s tokens/s a MW", power,
                           orr_text_count(rate, chosen->tokens_per_s / (chosen->power_w * 1e-6)));
}

static void write_answer(const PlanPage *page, const Plan *plan, GString *out)
{
    char gpus[ORR_TEXT_SIZE];
    const PlanPoint *chosen = point_at(plan, plan->chosen), *fastest = point_at(plan, plan->fastest);
    g_autoptr(GString) line = g_string_new(NULL);
    if (chosen != NULL) {
        g_autofree char *campaign = campaign_text(chosen);
        g_string_printf(line, "%s: %s", report_page_gpus(gpus, chosen->gpus), campaign);
        if (page->options->power_w > 0)
            append_power(line, chosen);
        append_racks(line, plan, chosen);
        if (!chosen->fits)
            g_string_append_printf(line, "; DOES NOT FIT in memory, short by %.1f GiB",
                                   chosen->short_bytes / GIB);
        const PlanPoint *fewer = page->options->deadline_s > 0 ? fewer_that_fits(plan) : NULL;
        if (fewer != NULL && plan_days(fewer) * DAY_S > page->options->deadline_s)
            append_fewer(line, fewer, page->options->deadline_s);
        if (page->options->deadline_s > 0)
            append_tight(line, plan, page->options->deadline_s);
        if (chosen->fits && chosen->memory_verdict == REPORT_MEMORY_EDGE)
            g_string_append_printf(line, "; memory: at the edge");
    } else if (fastest != NULL) {
        const PlanPoint *cheapest = page->options->budget_usd > 0 ? cheapest_that_fits(plan) : NULL;
        g_string_append(line, "none of the GPU counts looked at");
        if (page->options->deadline_s > 0)
            append_alternative(line, "fastest", fastest);
        if (cheapest != NULL)
            append_alternative(line, "cheapest", cheapest);
    } else {
        append_why_none(plan, page->options, line);
    }
    if (plan->partial && plan->points->len > 0)
        g_string_append(line, "; stopped before all GPU counts were simulated");
    report_page_entry(out, "  Answer", LABEL_COLUMN, line->str);
    const PlanPoint *told = chosen != NULL ? chosen : fastest;
    if (told != NULL && (told->effective.told || told->effective.why_not != NULL)) {
        g_string_append_printf(out, "\nThe days of %s\n", report_page_gpus(gpus, told->gpus));
        report_effective_text(&told->effective, out);
    }
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

#define CELLS 14

/* Configurations that rows share, each once; a row names its own by a letter. */
typedef struct Configurations {
    GPtrArray *lines; /* char* */
    int *of;          /* [points]: index of lines; -1: none */
} Configurations;

static Configurations list_configurations(const Plan *plan)
{
    Configurations list = {g_ptr_array_new_with_free_func(g_free), g_new(int, plan->points->len + 1)};
    for (int i = 0; i < (int)plan->points->len; i++) {
        const PlanPoint *point = point_at(plan, i);
        list.of[i] = -1;
        if (point->spec == NULL)
            continue;
        char *line = report_configuration(point->spec);
        for (guint k = 0; k < list.lines->len && list.of[i] < 0; k++)
            list.of[i] = g_str_equal(g_ptr_array_index(list.lines, k), line) ? (int)k : -1;
        if (list.of[i] < 0) {
            list.of[i] = (int)list.lines->len;
            g_ptr_array_add(list.lines, line);
        } else {
            g_free(line);
        }
    }
    return list;
}

/* "a", "b" ... "z", "aa" ... */
static void letter(char *text, int index)
{
    if (index >= 26)
        g_snprintf(text, ORR_TEXT_SIZE, "%c%c", 'a' + index / 26 - 1, 'a' + index % 26);
    else
        g_snprintf(text, ORR_TEXT_SIZE, "%c", 'a' + index);
}

enum { USD_CELL = 12 };

/* Cells left: without a price there is no column for it. */
static int drop_unpriced(const Plan *plan, const char *cells[CELLS])
{
    if (plan->usd_per_gpu_hour > 0)
        return CELLS;
    for (int i = USD_CELL; i + 1 < CELLS; i++)
        cells[i] = cells[i + 1];
    return CELLS - 1;
}

static void write_row(const Plan *plan, int index, const Configurations *list, OrrTable *table)
{
    char cell[CELLS][ORR_TEXT_SIZE] = {{0}};
    const PlanPoint *point = point_at(plan, index);
    g_strlcpy(cell[0], index == plan->chosen ? "\u25b6" : "", ORR_TEXT_SIZE);
    report_page_whole(cell[1], point->gpus);
    if (point->reason == NULL) {
        letter(cell[2], list->of[index]);
        g_snprintf(cell[3], ORR_TEXT_SIZE, "%d", point->spec->parallel.data);
        g_snprintf(cell[4], ORR_TEXT_SIZE, "%d", point->spec->training.micro_batch);
        report_page_whole(cell[5], point->global_batch);
        plan_step_text(cell[6], point->step_s);
        g_snprintf(cell[7], ORR_TEXT_SIZE, "%.1f %%", point->mfu * 100);
        if (point->efficiency_frac > 0)
            g_snprintf(cell[8], ORR_TEXT_SIZE, "%.0f %%", point->efficiency_frac * 100);
        plan_days_text(cell[9], point->days);
        if (point->effective.told)
            plan_days_text(cell[10], point->effective.days);
        else if (point->effective.why_not != NULL)
            g_strlcpy(cell[10], "no end", ORR_TEXT_SIZE);
        report_page_whole(cell[11], point->gpu_hours);
        if (point->usd > 0)
            report_page_whole(cell[12], point->usd);
        plan_memory_words(point, cell[13]);
    }
    const char *cells[CELLS];
    if (point->reason != NULL)
        g_strlcpy(cell[13], "cannot", ORR_TEXT_SIZE);
    for (int i = 0; i < CELLS; i++)
        cells[i] = cell[i];
    drop_unpriced(plan, cells);
    orr_table_row(table, cells);
}

static void write_configurations(const Configurations *list, GString *out)
{
    for (guint i = 0; i < list->lines->len; i++) {
        char name[ORR_TEXT_SIZE];
        letter(name, (int)i);
        g_autofree char *label = g_strdup_printf("%s  %-2s", i == 0 ? "  Layout" : "        ", name);
        report_page_entry(out, label, LABEL_COLUMN, g_ptr_array_index(list->lines, i));
    }
}

static void write_points(const Plan *plan, GString *out)
{
    const char *headers[CELLS] = {"",    "GPUs",  "layout", "dp",   "micro",     "batch", "step",
                                  "MFU", "scale", "days",   "eff.", "GPU-hours", "USD",   "memory"};
    const int columns = drop_unpriced(plan, headers);
    OrrTable *table = orr_table_new(headers, columns);
    Configurations list = list_configurations(plan);
    int rows = 0, refused = 0, first_refused = -1;
    for (int i = 0; i < (int)plan->points->len; i++) {
        if (point_at(plan, i)->reason != NULL && refused++ == 0)
            first_refused = i;
        if (!shown(plan, i))
            continue;
        rows++;
        write_row(plan, i, &list, table);
    }
    g_string_append_c(out, '\n');
    report_page_table(table, out, 2);
    orr_table_free(table);
    if (rows < (int)plan->points->len)
        g_string_append_printf(out, "  %d of %u GPU counts shown; --format csv has all\n", rows,
                               plan->points->len);
    write_configurations(&list, out);
    g_ptr_array_free(list.lines, TRUE);
    g_free(list.of);
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
    g_string_append_c(out, '\n');
    report_page_say(out, 0, "From the textbook to the simulation, days on %s",
                    report_page_gpus(text, textbook->at_gpus));
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
    report_page_table(table, out, 2);
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
        g_string_append_printf(line, ": %.1f, so %s for %s", textbook->gpus,
                               report_page_gpus(rounded, textbook->gpus_rounded),
                               orr_text_seconds(time, page->options->deadline_s));
    g_string_append_c(out, '\n');
    report_page_entry(out, "  Textbook", LABEL_COLUMN, line->str);
    if (textbook->at_gpus == 0)
        return;
    g_autofree char *days = g_strdup_printf(
        "%s: %.1f days; %.1f with attention counted in full, %.1f with full recomputation (8 P T)",
        report_page_gpus(rounded, textbook->at_gpus), textbook->days, textbook->attention_days,
        textbook->recompute_days);
    report_page_entry(out, "", LABEL_COLUMN, days);
    write_terms(textbook, point_at(plan, plan->chosen >= 0 ? plan->chosen : plan->fastest), out);
}

static void write_plan(const PlanPage *page, const Plan *plan, GString *out)
{
    char memory[ORR_TEXT_SIZE];
    g_autoptr(GString) hardware = g_string_new(NULL);
    g_autofree char *name = plan_name(plan);
    g_string_printf(hardware, "%s, %s, %d a node", name, orr_text_bytes(memory, plan->memory_bytes),
                    plan->gpus_per_node);
    if (plan->usd_per_gpu_hour > 0)
        g_string_append_printf(hardware, "; %.2f USD a GPU-hour", plan->usd_per_gpu_hour);
    if (plan->power_w_per_gpu > 0)
        g_string_append_printf(hardware, "; %.0f W a GPU %s, PUE %.2f", plan->power_w_per_gpu,
                               plan->host_power_known ? "with its share of the host"
                                                      : "alone (cluster.host_power_w_per_gpu is not given)",
                               plan->pue);
    else
        g_string_append_printf(hardware, "; power not known%s (cluster.accelerator.power_w)",
                               plan->asked->cluster.usd_per_kwh > 0 ? ", so that electricity is in no price"
                                                                    : "");
    g_string_append_c(out, '\n');
    report_page_entry(out, "  GPU", LABEL_COLUMN, hardware->str);
    g_autofree char *wrong = spec_chip_note(plan->asked);
    if (wrong != NULL)
        report_page_entry(out, "  Note", LABEL_COLUMN, wrong);
    write_answer(page, plan, out);
    if (plan->reason != NULL)
        return;
    write_points(plan, out);
    write_textbook(page, plan, out);
}

void plan_write_text(const PlanPage *page, GString *out)
{
    plan_write_question(page, out);
    for (int i = 0; i < page->count; i++)
        write_plan(page, &page->plans[i], out);
    if (page->count > 1)
        plan_write_beside(page, out);
    g_string_append_c(out, '\n');
    if (page->partial)
        report_page_entry(out, "  Partial", LABEL_COLUMN,
                          "stopped; a better answer may be among what is missing");
    report_page_entry(
        out, "  Assumes", LABEL_COLUMN,
        page->options->assumed == NULL
            ? "no failures, restarts or checkpoints (--ideal); days are days of computing; scale is tokens/s "
              "a GPU over the best row's"
            : "days are days of computing; effective days have failures, checkpoints and restarts in them "
              "(from 64 GPUs on, or with faults of the scenario); deadlines and costs go by them; scale is "
              "tokens/s a GPU over the best row's");
    g_autofree char *stamp =
        page->source != NULL && page->source->scenario_hash != NULL
            ? g_strdup_printf("orrery " ORRERY_VERSION ", scenario %s", page->source->scenario_hash)
            : g_strdup("orrery " ORRERY_VERSION);
    report_page_entry(out, "  Stamp", LABEL_COLUMN, stamp);
}
