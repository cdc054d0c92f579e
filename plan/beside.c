/* plan/beside.c - several plans as one table: days, dollars, megawatts, each with its interval, and why one drops out. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "plan/plan_question.h"
#include "report/page.h"

enum { LABEL_COLUMN = 14 };

/* How a figure of a point is written; OPTIONAL ones have a column where some machine has them. */
typedef enum { WHOLE, TENTHS, DAYS, DIGITS, PERCENT, STEP, WITH_INTERVAL, MONEY, POWER } Form;

typedef struct Column {
    const char *header;
    size_t offset; /* of a double in PlanPoint */
    double scale;
    Form form;
    bool optional; /* 0: not told */
} Column;

static const PlanPoint *answer_of(const Plan *plan)
{
    return plan->chosen >= 0 ? &g_array_index(plan->points, PlanPoint, (guint)plan->chosen) : NULL;
}

/* The answer, or else what is nearest to fit of what was simulated. */
static const PlanPoint *nearest_of(const Plan *plan)
{
    const PlanPoint *nearest = answer_of(plan);
    for (guint i = 0; answer_of(plan) == NULL && plan->points != NULL && i < plan->points->len; i++) {
        const PlanPoint *point = &g_array_index(plan->points, PlanPoint, i);
        if (point->reason == NULL && (nearest == NULL || point->short_bytes < nearest->short_bytes))
            nearest = point;
    }
    return nearest;
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
            plan_days_text(texts[i], values[i]);
    if (point->days_high > 0)
        g_snprintf(text, ORR_TEXT_SIZE, "%s (%s to %s)", middle, low, high);
    else
        g_strlcpy(text, middle, ORR_TEXT_SIZE);
}

#define COLUMN(header, member, scale, form, optional)                                                        \
    {                                                                                                        \
        header, offsetof(PlanPoint, member), scale, form, optional                                           \
    }

static const Column columns[] = {
    COLUMN("racks", racks, 1, TENTHS, true),
    COLUMN("power", power_w, 1, POWER, true),
    COLUMN("step", step_s, 1, STEP, false),
    COLUMN("MFU", mfu, 100, PERCENT, false),
    COLUMN("days", days, 1, DAYS, false),
    COLUMN("effective", effective.days, 1, WITH_INTERVAL, true),
    COLUMN("GPU-hours", gpu_hours, 1, WHOLE, false),
    COLUMN("USD", usd, 1, MONEY, true),
    COLUMN("commits USD", committed_usd, 1, WHOLE, true),
    COLUMN("kWh", kwh, 1, WHOLE, true),
    COLUMN("t CO2", co2_kg, 1e-3, DIGITS, true),
};

static double value_of(const Column *column, const PlanPoint *point)
{
    double value;
    memcpy(&value, (const char *)point + column->offset, sizeof value);
    return value;
}

static bool told(const Column *column, const PlanPoint *point)
{
    return point != NULL && (!column->optional || value_of(column, point) > 0);
}

static void write_cell(const Column *column, const Plan *plan, const PlanPoint *point, char *text)
{
    const double value = value_of(column, point) * column->scale;
    switch (column->form) {
    case WHOLE:
        report_page_whole(text, value);
        break;
    case TENTHS:
        g_snprintf(text, ORR_TEXT_SIZE, "%.1f", value);
        break;
    case DAYS:
        plan_days_text(text, value);
        break;
    case DIGITS:
        g_snprintf(text, ORR_TEXT_SIZE, "%.4g", value);
        break;
    case POWER:
        plan_power_text(text, value);
        break;
    case PERCENT:
        g_snprintf(text, ORR_TEXT_SIZE, "%.1f %%", value);
        break;
    case STEP:
        plan_step_text(text, value);
        break;
    case WITH_INTERVAL:
        with_interval(text, point, value, false);
        break;
    case MONEY:
        if (plan->terms.paid_in_full)
            report_page_whole(text, value);
        else
            with_interval(text, point, value, true);
        break;
    }
}

static bool column_told(const PlanPage *page, const Column *column)
{
    bool any = !column->optional;
    for (int i = 0; i < page->count && !any; i++)
        any = told(column, answer_of(&page->plans[i]));
    return any;
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

static double held_bytes(const Plan *plan)
{
    return plan->memory_bytes * answer_of(plan)->gpus;
}

/* "l40s-pcie, 1 GPU of 44.39 GiB, is the least that fits; the cheapest run is ...": where some machine has too little. */
static void write_enough(const PlanPage *page, GString *out)
{
    char text[ORR_TEXT_SIZE], gpus[ORR_TEXT_SIZE];
    const Plan *least = NULL, *cheapest = NULL;
    g_autoptr(GString) lacking = g_string_new(NULL), line = g_string_new(NULL);
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        const PlanPoint *point = nearest_of(plan);
        g_autofree char *name = plan_name(plan);
        if (point == NULL)
            continue;
        if (!point->fits) {
            g_string_append_printf(lacking, "%s%s %s", lacking->len > 0 ? ", " : "", name,
                                   orr_text_bytes(text, point->short_bytes));
            continue;
        }
        if (answer_of(plan) == NULL)
            continue;
        if (least == NULL || held_bytes(plan) < held_bytes(least))
            least = plan;
        if (point->usd > 0 && (cheapest == NULL || point->usd < answer_of(cheapest)->usd))
            cheapest = plan;
    }
    if (lacking->len == 0)
        return;
    if (least == NULL) {
        g_string_append(line, "none of these machines");
    } else {
        g_autofree char *name = plan_name(least);
        g_string_append_printf(line, "%s: %s of %s, the least that does", name,
                               report_page_gpus(gpus, answer_of(least)->gpus),
                               orr_text_bytes(text, least->memory_bytes));
        if (answer_of(least)->memory_verdict == REPORT_MEMORY_EDGE)
            g_string_append_printf(line, " (%s)", plan_memory_words(answer_of(least), text));
    }
    if (cheapest != NULL && cheapest != least) {
        g_autofree char *name = plan_name(cheapest);
        g_string_append_printf(line, "; the run costs least on %s", name);
    } else if (cheapest != NULL) {
        g_string_append(line, ", and the run costs least on it");
    }
    report_page_entry(out, "  Enough", LABEL_COLUMN, line->str);
    g_string_prepend(lacking, "of a GPU's memory: ");
    report_page_entry(out, "  Lacking", LABEL_COLUMN, lacking->str);
}

void plan_write_beside(const PlanPage *page, GString *out)
{
    enum { FIRST = 3 }; /* behind the machine, its GPUs and what it lacks */
    const char *headers[G_N_ELEMENTS(columns) + FIRST] = {"machine", "GPUs", "memory"};
    const Column *shown[G_N_ELEMENTS(columns)];
    int count = 0;
    for (gsize c = 0; c < G_N_ELEMENTS(columns); c++)
        if (column_told(page, &columns[c])) {
            headers[FIRST + count] = columns[c].header;
            shown[count++] = &columns[c];
        }
    g_string_append(out, "\nSide by side\n");
    OrrTable *table = orr_table_new(headers, FIRST + count);
    for (int i = 0; i < page->count; i++) {
        const Plan *plan = &page->plans[i];
        const PlanPoint *point = answer_of(plan), *nearest = nearest_of(plan);
        char gpus[ORR_TEXT_SIZE] = "none", memory[ORR_TEXT_SIZE] = "",
             cell[G_N_ELEMENTS(columns)][ORR_TEXT_SIZE] = {{0}};
        g_autofree char *name = plan_name(plan);
        const char *cells[G_N_ELEMENTS(columns) + FIRST] = {name, gpus, memory};
        if (nearest != NULL)
            plan_memory_words(nearest, memory);
        if (point != NULL)
            report_page_whole(gpus, point->gpus);
        for (int c = 0; c < count; c++) {
            if (told(shown[c], point))
                write_cell(shown[c], plan, point, cell[c]);
            cells[FIRST + c] = cell[c];
        }
        orr_table_row(table, cells);
    }
    report_page_table(table, out, 2);
    orr_table_free(table);
    write_enough(page, out);
    write_terms(page, out);
    write_dropped(page, out);
}
