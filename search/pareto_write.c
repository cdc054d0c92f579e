/* search/pareto_write.c - searches of several machines side by side, and their common front. */
#include <string.h>

#include "base/text.h"
#include "report/groups.h"
#include "report/page.h"
#include "search/pareto.h"
#include "search/walk.h"
#include "search/write_internal.h"

enum { GPUS_WIDTH = 15 }; /* of a machine's number and its GPUs, "  1    1,024 x " */

static bool several_frameworks(const SearchPareto *front)
{
    for (int m = 1; m < front->count; m++)
        if (!g_str_equal(front->machines[m].spec->execution.framework.name,
                         front->machines[0].spec->execution.framework.name))
            return true;
    return false;
}

/* Of the GPUs, and the software on them where machines differ in it; g_free. */
static char *name_of(const SearchPareto *front, const Spec *spec)
{
    const char *gpus = spec->cluster.name[0] != '\0' ? spec->cluster.name : spec->cluster.accelerator.name;
    return several_frameworks(front) ? g_strdup_printf("%s, %s", gpus, spec->execution.framework.name)
                                     : g_strdup(gpus);
}

/* Columns of the longest name. */
static int name_width(const SearchPareto *front)
{
    int width = 24;
    for (int m = 0; m < front->count; m++) {
        g_autofree char *name = name_of(front, front->machines[m].spec);
        width = MAX(width, (int)strlen(name));
    }
    return width;
}

static const char *kind_of_cost(const SearchPareto *front)
{
    return front->priced ? "usd" : "gpu_hours";
}

/* Of a step, or of the scenario's tokens where it names them. */
static double cost_of(const SearchPareto *front, const SearchParetoPoint *point)
{
    const SpecTraining *training = &front->machines[point->machine].spec->training;
    const double step_tokens = (double)training->global_batch * training->sequence_length;
    const double steps = training->tokens > 0 ? training->tokens / step_tokens : 1;
    return point->cost * steps / (front->priced ? 1 : 3600);
}

static void append_figures(GString *out, const SearchRun *run)
{
    char seconds[ORR_TEXT_SIZE], bytes[ORR_TEXT_SIZE];
    g_string_append_printf(out, " %-10s %-10s", orr_text_seconds(seconds, (double)run->step_ps * 1e-12),
                           orr_text_bytes(bytes, run->reserved_bytes));
}

/* What the machines are compared by, where that is not the step. */
static void append_campaign(GString *out, const SearchPareto *front, int index, const SearchRun *best)
{
    if (front->by == SEARCH_FOR_STEP)
        return;
    const SearchCampaign campaign = search_campaign(&front->machines[index].result, best);
    char days[ORR_TEXT_SIZE], usd[ORR_TEXT_SIZE], kwh[ORR_TEXT_SIZE];
    orr_text_seconds(days, 86400 * (campaign.effective_days > 0 ? campaign.effective_days : campaign.days));
    g_string_append_printf(out, "     %s", campaign.endless ? "without end" : days);
    if (campaign.usd > 0)
        g_string_append_printf(out, ", %s USD", report_page_whole(usd, campaign.usd));
    if (campaign.kwh > 0)
        g_string_append_printf(out, ", %s kWh", report_page_whole(kwh, campaign.kwh));
    g_string_append(out, index == front->chosen ? ": the best of all\n" : "\n");
}

static void append_machine(GString *out, const SearchPareto *front, int index)
{
    const SearchMachine *machine = &front->machines[index];
    char gpus[ORR_TEXT_SIZE];
    g_autofree char *name = name_of(front, machine->spec);
    g_string_append_printf(out, "%3d  %7s x %-*s", index + 1,
                           report_page_whole(gpus, spec_gpus(machine->spec)), name_width(front), name);
    if (machine->reason != NULL) {
        g_string_append_printf(out, " %s\n", machine->reason);
    } else if (machine->result.best->len == 0) {
        g_string_append(out, " nothing fits in memory\n");
    } else {
        const SearchRun *best = &g_array_index(machine->result.best, SearchRun, 0);
        g_autofree char *point = search_describe(&machine->result, best->id);
        append_figures(out, best);
        g_string_append_printf(out, " %s%s\n", point, machine->result.proved ? "" : " (not proved)");
        append_campaign(out, front, index, best);
    }
}

void search_pareto_write_text(const SearchPareto *front, GString *out)
{
    const Spec *spec = front->machines[0].spec;
    report_page_entry(out, "", 0, spec->name[0] != '\0' ? spec->name : "Search");
    g_string_append_printf(out, "\nMachines%*s step       memory     best configuration%s%s\n",
                           GPUS_WIDTH - (int)strlen("Machines") + name_width(front), "",
                           front->by == SEARCH_FOR_STEP ? "" : " by ",
                           front->by == SEARCH_FOR_STEP ? "" : search_goal_word(front->by));
    for (int m = 0; m < front->count; m++)
        append_machine(out, front, m);
    g_string_append_printf(
        out, "\nFront of time, memory of a GPU and cost, of what was simulated (%s of %s%s)\n",
        front->priced ? "USD" : "GPU-hours", spec->training.tokens > 0 ? "all tokens" : "a step",
        front->effective ? ", failures included" : "");
    for (guint i = 0; i < front->front->len; i++) {
        const SearchParetoPoint *point = &g_array_index(front->front, SearchParetoPoint, i);
        const SearchMachine *machine = &front->machines[point->machine];
        g_autofree char *words = search_describe(&machine->result, point->run->id);
        g_string_append_printf(out, "  machine %-3d", point->machine + 1);
        append_figures(out, point->run);
        char cost[ORR_TEXT_SIZE];
        if (cost_of(front, point) < 100)
            g_snprintf(cost, sizeof cost, "%.2f", cost_of(front, point));
        else
            report_page_whole(cost, cost_of(front, point));
        g_string_append_printf(out, " %12s  %s\n", cost, words);
    }
}

static void write_run(OrrJsonWriter *w, const SearchMachine *machine, const SearchRun *run, Spec *scratch)
{
    search_point_dealt(machine->result.space, run->id, scratch);
    search_write_choice(w, machine->spec, scratch);
    search_write_figures(w, &machine->result, run);
}

static void write_machine(OrrJsonWriter *w, const SearchMachine *machine, Spec *scratch)
{
    const SpecCluster *cluster = &machine->spec->cluster;
    orr_jw_begin(w, NULL, '{');
    orr_jw_text(w, "cluster", cluster->name);
    orr_jw_text(w, "accelerator", cluster->accelerator.name);
    orr_jw_text(w, "framework", machine->spec->execution.framework.name);
    orr_jw_int(w, "nodes", cluster->nodes);
    orr_jw_int(w, "gpus", spec_gpus(machine->spec));
    const double usd_per_hour = report_groups_mean(machine->spec, REPORT_MEAN_USD_PER_HOUR);
    if (usd_per_hour > 0)
        orr_jw_number(w, "usd_per_gpu_hour", usd_per_hour);
    if (machine->reason != NULL) {
        orr_jw_text(w, "reason", machine->reason);
    } else {
        search_write_certificate(w, &machine->result);
        orr_jw_begin(w, "best", '[');
        for (guint i = 0; i < machine->result.best->len; i++) {
            orr_jw_begin(w, NULL, '{');
            write_run(w, machine, &g_array_index(machine->result.best, SearchRun, i), scratch);
            orr_jw_end(w, '}');
        }
        orr_jw_end(w, ']');
    }
    orr_jw_end(w, '}');
}

void search_pareto_write_json(const SearchPareto *front, GString *out)
{
    OrrJsonWriter w;
    g_autofree Spec *scratch = g_new(Spec, 1);
    orr_jw_init(&w, out, false);
    orr_jw_begin(&w, NULL, '{');
    orr_jw_int(&w, "schema", 1);
    orr_jw_text(&w, "scenario", front->machines[0].spec->name);
    if (front->by != SEARCH_FOR_STEP) {
        orr_jw_text(&w, "for", search_goal_word(front->by));
        orr_jw_int(&w, "chosen", front->chosen);
    }
    orr_jw_begin(&w, "machines", '[');
    for (int m = 0; m < front->count; m++)
        write_machine(&w, &front->machines[m], scratch);
    orr_jw_end(&w, ']');
    orr_jw_begin(&w, "pareto", '[');
    for (guint i = 0; i < front->front->len; i++) {
        const SearchParetoPoint *point = &g_array_index(front->front, SearchParetoPoint, i);
        orr_jw_begin(&w, NULL, '{');
        orr_jw_int(&w, "machine", point->machine);
        orr_jw_number(&w, front->priced ? "step_usd" : "step_gpu_s", point->cost);
        orr_jw_number(&w, "beyond_computing_frac", point->effective_frac);
        write_run(&w, &front->machines[point->machine], point->run, scratch);
        orr_jw_end(&w, '}');
    }
    orr_jw_end(&w, ']');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

void search_pareto_write_csv(const SearchPareto *front, GString *out)
{
    const char *const headers[] = {"machine",           "gpus", "step_s", "reserved_bytes",
                                   kind_of_cost(front), "point"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (guint i = 0; i < front->front->len; i++) {
        const SearchParetoPoint *point = &g_array_index(front->front, SearchParetoPoint, i);
        const SearchMachine *machine = &front->machines[point->machine];
        char text[4][G_ASCII_DTOSTR_BUF_SIZE];
        g_autofree char *words = search_describe(&machine->result, point->run->id),
                        *name = name_of(front, machine->spec);
        g_snprintf(text[0], sizeof text[0], "%d", spec_gpus(machine->spec));
        const char *const cells[] = {
            name,
            text[0],
            g_ascii_formatd(text[1], sizeof text[1], "%.9g", (double)point->run->step_ps * 1e-12),
            g_ascii_formatd(text[2], sizeof text[2], "%.0f", point->run->reserved_bytes),
            g_ascii_formatd(text[3], sizeof text[3], "%.9g", cost_of(front, point)),
            words};
        orr_table_row(table, cells);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
