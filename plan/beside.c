/* plan/beside.c - several plans as one table: days, dollars, megawatts, each with its interval, and why one drops out. */
#include <math.h>

#include "base/text.h"
#include "plan/plan_question.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14 };

typedef struct Column {
    const char *header;
    bool (*told)(const PlanPoint *point); /* NULL: always */
    void (*cell)(const Plan *plan, const PlanPoint *point, char *text);
} Column;

static const PlanPoint *answer_of(const Plan *plan)
{
    return plan->chosen >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)plan->chosen) : NULL;
}

/* "30.9 (27.1 to 34.6)": what goes with days has their interval. */
static void with_interval(char *text, const PlanPoint *point, double value, bool whole)
{
    char middle[ORR_TEXT_SIZE], low[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    const double values[] = {value, value * point->days_low / point->days,
                             value * point->days_high / point->days};
    char *const texts[] = {middle, low, high};
    for (gsize i = 0; i < G_N_ELEMENTS(values); i++)
        if (whole)
            report_page_whole(texts[i], values[i]);
        else
            g_snprintf(texts[i], ORR_TEXT_SIZE, "%.1f", values[i]);
    if (point->days_high > 0)
        g_snprintf(text, ORR_TEXT_SIZE, "%s (%s to %s)", middle, low, high);
    else
        g_strlcpy(text, middle, ORR_TEXT_SIZE);
}

static void gpus_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    report_page_whole(text, point->gpus);
}

static bool has_racks(const PlanPoint *point)
{
    return point->racks > 0;
}

static void racks_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    g_snprintf(text, ORR_TEXT_SIZE, "%.1f", point->racks);
}

static bool has_power(const PlanPoint *point)
{
    return point->power_w > 0;
}

static void power_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    g_snprintf(text, ORR_TEXT_SIZE, "%.4g", point->power_w * 1e-6);
}

static void step_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    plan_step_text(text, point->step_s);
}

static void mfu_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    g_snprintf(text, ORR_TEXT_SIZE, "%.1f %%", point->mfu * 100);
}

static void days_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    g_snprintf(text, ORR_TEXT_SIZE, "%.1f", point->days);
}

static bool has_effective(const PlanPoint *point)
{
    return point->effective.told;
}

static void effective_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    with_interval(text, point, point->effective.days, false);
}

static void hours_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    report_page_whole(text, point->gpu_hours);
}

static bool has_usd(const PlanPoint *point)
{
    return point->usd > 0;
}

static void usd_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    if (plan->terms.paid_in_full)
        report_page_whole(text, point->usd);
    else
        with_interval(text, point, point->usd, true);
}

static bool has_committed(const PlanPoint *point)
{
    return point->committed_usd > 0;
}

static void committed_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    report_page_whole(text, point->committed_usd);
}

static bool has_kwh(const PlanPoint *point)
{
    return point->kwh > 0;
}

static void kwh_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    report_page_whole(text, point->kwh);
}

static bool has_co2(const PlanPoint *point)
{
    return point->co2_kg > 0;
}

static void co2_cell(const Plan *plan, const PlanPoint *point, char *text)
{
    (void)plan;
    g_snprintf(text, ORR_TEXT_SIZE, "%.4g", point->co2_kg / 1000);
}

static const Column columns[] = {
    {"GPUs", NULL, gpus_cell},
    {"racks", has_racks, racks_cell},
    {"MW", has_power, power_cell},
    {"step", NULL, step_cell},
    {"MFU", NULL, mfu_cell},
    {"days", NULL, days_cell},
    {"effective", has_effective, effective_cell},
    {"GPU-hours", NULL, hours_cell},
    {"USD", has_usd, usd_cell},
    {"commits USD", has_committed, committed_cell},
    {"kWh", has_kwh, kwh_cell},
    {"t CO2", has_co2, co2_cell},
};

static bool column_told(const PlanPage *page, const Column *column)
{
    bool told = column->told == NULL;
    for (int i = 0; i < page->count && !told; i++)
        told = answer_of(&page->plans[i]) != NULL && column->told(answer_of(&page->plans[i]));
    return told;
}

/* "reserved 1 year is cheaper than by the hour from 243 days of use on": the machine by the hour goes before. */
static void write_terms(const PlanPage *page, GString *out)
{
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i], *hourly = NULL;
        for (int k = 0; k < page->count && hourly == NULL; k++)
            if (page->plans[k].machine != NULL && g_strcmp0(page->plans[k].machine, plan->machine) == 0 &&
                page->plans[k].terms.hourly)
                hourly = &page->plans[k];
        const double days = hourly != NULL ? plan_days_to_pay(plan, hourly) : 0;
        if (!(days > 0))
            continue;
        g_autofree char *name = plan_name(plan), *line = NULL;
        const double most = plan->terms.years * PLAN_YEAR_HOURS / 24;
        line = days < most
                   ? g_strdup_printf("%s: cheaper than on demand where %.0f of its %.0f days are used", name,
                                     days, most)
                   : g_strdup_printf("%s: never cheaper than on demand", name);
        report_page_entry(out, "  Terms", LABEL_COLUMN, line);
    }
}

static void write_dropped(const PlanPage *page, GString *out)
{
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        if (answer_of(plan) != NULL || plan->reason == NULL)
            continue;
        g_autofree char *name = plan_name(plan), *line = g_strdup_printf("%s: %s", name, plan->reason);
        report_page_entry(out, "  Drops out", LABEL_COLUMN, line);
    }
}

void plan_write_beside(const PlanPage *page, GString *out)
{
    const char *headers[G_N_ELEMENTS(columns) + 1] = {"machine"};
    const Column *shown[G_N_ELEMENTS(columns)];
    int count = 0;
    for (gsize c = 0; c < G_N_ELEMENTS(columns); c++)
        if (column_told(page, &columns[c])) {
            shown[count] = &columns[c];
            headers[++count] = columns[c].header;
        }
    g_string_append(out, "\nSide by side\n");
    OrrTable *table = orr_table_new(headers, count + 1);
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        const PlanPoint *point = answer_of(plan);
        char cell[G_N_ELEMENTS(columns)][ORR_TEXT_SIZE] = {{0}};
        g_autofree char *name = plan_name(plan);
        const char *cells[G_N_ELEMENTS(columns) + 1] = {name};
        for (int c = 0; c < count; c++) {
            if (point != NULL && (shown[c]->told == NULL || shown[c]->told(point)))
                shown[c]->cell(plan, point, cell[c]);
            cells[c + 1] = cell[c];
        }
        if (point == NULL)
            g_strlcpy(cell[0], "none", ORR_TEXT_SIZE);
        orr_table_row(table, cells);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
    write_terms(page, out);
    write_dropped(page, out);
}
