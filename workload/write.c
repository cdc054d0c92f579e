/* workload/write.c - a loop as JSON, as a page and as a table. Computes nothing. */
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "base/text.h"
#include "report/describe.h"
#include "report/page.h"
#include "report/report.h"
#include "workload/workload.h"

enum { LABEL_COLUMN = 18 };

static const char *role_name(const Workload *workload, const WorkloadPhase *phase)
{
    return phase->phase->role >= 0 ? workload->role[phase->phase->role].role->name : "";
}

static int phase_gpus(const Workload *workload, const WorkloadPhase *phase)
{
    int gpus = phase->part >= 0 ? workload->part[phase->part].gpus : 0;
    if (phase->other >= 0 && phase->other != phase->part)
        gpus += workload->part[phase->other].gpus;
    return gpus;
}

static const char *kind_word(const WorkloadPhase *phase)
{
    static const char *const words[] = {"generate", "forward", "train", "sync", "given"};
    return words[phase->phase->kind];
}

/* --- JSON --- */

static void write_phases(const Workload *workload, OrrJsonWriter *w)
{
    orr_jw_begin(w, "phases", '[');
    for (int i = 0; i < workload->phase_count; i++) {
        const WorkloadPhase *phase = &workload->phase[i];
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "name", phase->phase->name);
        orr_jw_text(w, "kind", kind_word(phase));
        orr_jw_text(w, "role", role_name(workload, phase));
        orr_jw_ps(w, "begin_s", phase->begin_ps);
        orr_jw_ps(w, "seconds", phase->ps);
        orr_jw_int(w, "gpus", phase_gpus(workload, phase));
        orr_jw_bool(w, "given", phase->given);
        if (phase->steps > 0)
            orr_jw_int(w, "steps", phase->steps);
        if (phase->microbatches > 0) {
            orr_jw_int(w, "micro_batches", phase->microbatches);
            orr_jw_number(w, "micro_batch_tokens", phase->tokens);
        }
        if (phase->bytes > 0)
            orr_jw_number(w, "bytes", phase->bytes);
        if (!isnan(phase->tail_s))
            orr_jw_number(w, "tail_s", phase->tail_s);
        if (phase->why != NULL)
            orr_jw_text(w, "bound_by", phase->why);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void write_parts(const Workload *workload, OrrJsonWriter *w)
{
    orr_jw_begin(w, "parts", '[');
    for (int p = 0; p < workload->part_count; p++) {
        const WorkloadPart *part = &workload->part[p];
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "roles", part->name);
        orr_jw_int(w, "nodes", part->nodes);
        orr_jw_int(w, "gpus", part->gpus);
        orr_jw_ps(w, "busy_s", part->busy_ps);
        orr_jw_number(w, "idle_frac", 1 - (double)part->busy_ps / (double)workload->step_ps);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

static void write_roles(const Workload *workload, OrrJsonWriter *w)
{
    orr_jw_begin(w, "roles", '[');
    for (int i = 0; i < workload->spec->workload.role_count; i++) {
        const WorkloadRole *role = &workload->role[i];
        if (role->spec == NULL)
            continue;
        g_autofree char *layout = report_configuration(role->spec);
        orr_jw_begin(w, NULL, '{');
        orr_jw_text(w, "name", role->role->name);
        orr_jw_text(w, "model", role->spec->model.name);
        orr_jw_int(w, "gpus", workload->part[role->part].gpus);
        orr_jw_text(w, "layout", layout);
        orr_jw_number(w, "needed_bytes", role->capacity_bytes > 0 ? role->needed_bytes : NAN);
        orr_jw_number(w, "capacity_bytes", role->capacity_bytes > 0 ? role->capacity_bytes : NAN);
        orr_jw_end(w, '}');
    }
    orr_jw_end(w, ']');
}

const char *workload_bound_word(const Workload *workload)
{
    static const char *const words[] = {"generation", "forward", "update", "sync", "given"};
    return words[workload->phase[workload->bound_phase].phase->kind];
}

void workload_begin_json(OrrJsonWriter *w, const Spec *spec, const SpecSource *source, GString *out)
{
    orr_jw_init(w, out, false);
    orr_jw_begin(w, NULL, '{');
    orr_jw_int(w, "schema", 1);
    orr_jw_text(w, "version", ORRERY_VERSION);
    report_write_stamp(w, source);
    orr_jw_text(w, "scenario", spec->name);
}

void workload_write_json(const Workload *workload, const SpecSource *source, GString *out)
{
    OrrJsonWriter w;
    workload_begin_json(&w, workload->spec, source, out);
    orr_jw_text(&w, "workload", workload->spec->workload.name);
    orr_jw_int(&w, "gpus", workload->gpus);
    orr_jw_bool(&w, "fits", workload->fits);
    orr_jw_ps(&w, "step_s", workload->step_ps);
    orr_jw_number(&w, "tokens_per_s", workload->tokens_per_s);
    orr_jw_number(&w, "tokens_per_s_per_gpu", workload->tokens_per_s_per_gpu);
    orr_jw_text(&w, "bound_by", workload_bound_word(workload));
    orr_jw_int(&w, "staleness_steps", workload->staleness_steps);
    write_phases(workload, &w);
    write_parts(workload, &w);
    write_roles(workload, &w);
    orr_jw_begin(&w, "sequences", '{');
    orr_jw_number(&w, "count", workload->sequences);
    orr_jw_number(&w, "mean_tokens", workload->sequence_tokens);
    orr_jw_number(&w, "mean_answer_tokens", workload->answer_tokens);
    orr_jw_number(&w, "longest_tokens", workload->longest_tokens);
    orr_jw_number(&w, "busiest_frac", workload->busiest_frac);
    orr_jw_end(&w, '}');
    orr_jw_begin(&w, "training", '{');
    orr_jw_number(&w, "days", workload->days);
    orr_jw_number(&w, "gpu_hours", workload->gpu_hours);
    orr_jw_number(&w, "usd", workload->usd);
    orr_jw_end(&w, '}');
    orr_jw_end(&w, '}');
    g_string_append_c(out, '\n');
}

/* --- a page --- */

static const char *share(char *text, int64_t ps, int64_t whole_ps)
{
    g_snprintf(text, ORR_TEXT_SIZE, "%.1f %%", 100 * (double)ps / (double)whole_ps);
    return text;
}

static char *detail(const WorkloadPhase *phase)
{
    char bytes[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE], tail[ORR_TEXT_SIZE];
    g_autoptr(GString) text = g_string_new(phase->given ? "as given" : NULL);
    if (phase->steps > 1)
        g_string_append_printf(text, "%d steps of the optimizer, ", phase->steps);
    if (phase->microbatches > 0)
        g_string_append_printf(text, "%d micro-batch%s of %s tokens", phase->microbatches,
                               phase->microbatches > 1 ? "es" : "", report_page_whole(tokens, phase->tokens));
    if (phase->bytes > 0 && !phase->given)
        g_string_append_printf(text, "%s of weights", orr_text_bytes(bytes, phase->bytes));
    if (phase->why != NULL)
        g_string_append(text, phase->why);
    if (!isnan(phase->tail_s))
        g_string_append_printf(text, "%s%s of it with at most half of the answers", text->len > 0 ? "; " : "",
                               orr_text_seconds(tail, phase->tail_s));
    return g_strdup(text->str);
}

OrrTable *workload_phase_table(const Workload *workload)
{
    static const char *const headers[] = {"phase", "role",        "GPUs",   "begins",
                                          "takes", "of the step", "made of"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (int i = 0; i < workload->phase_count; i++) {
        const WorkloadPhase *phase = &workload->phase[i];
        char begins[ORR_TEXT_SIZE], takes[ORR_TEXT_SIZE], part[ORR_TEXT_SIZE], gpus[ORR_TEXT_SIZE];
        g_autofree char *more = detail(phase);
        const char *const cells[] = {phase->phase->name,
                                     role_name(workload, phase),
                                     report_page_whole(gpus, phase_gpus(workload, phase)),
                                     orr_text_seconds(begins, (double)phase->begin_ps * 1e-12),
                                     orr_text_seconds(takes, (double)phase->ps * 1e-12),
                                     share(part, phase->ps, workload->step_ps),
                                     more};
        orr_table_row(table, cells);
    }
    return table;
}

static void text_table(OrrTable *table, GString *out)
{
    report_page_table(table, out, 2);
    orr_table_free(table);
}

enum { TIMELINE_COLUMNS = 64 };

/* One turn of the loop, a line a part: each phase a run of its letter, in the order of the table. */
static void text_timeline(const Workload *workload, GString *out)
{
    int64_t end_ps = 1;
    for (int i = 0; i < workload->phase_count; i++)
        end_ps = MAX(end_ps, workload->phase[i].begin_ps + workload->phase[i].ps);
    g_string_append(out, "\n  one turn of the loop, a letter for each phase in the order above\n");
    for (int p = 0; p < workload->part_count; p++) {
        char cells[TIMELINE_COLUMNS + 1];
        memset(cells, '.', TIMELINE_COLUMNS);
        cells[TIMELINE_COLUMNS] = '\0';
        for (int i = 0; i < workload->phase_count; i++) {
            const WorkloadPhase *phase = &workload->phase[i];
            const double scale = (double)TIMELINE_COLUMNS / (double)end_ps;
            if (phase->part != p && phase->other != p)
                continue;
            const int first = (int)((double)phase->begin_ps * scale),
                      last = (int)((double)(phase->begin_ps + phase->ps) * scale);
            for (int column = first; column < last; column++)
                cells[column] = (char)('a' + i);
        }
        g_string_append_printf(out, "  %s  %4d GPUs (%s)\n", cells, workload->part[p].gpus,
                               workload->part[p].name);
    }
}

static void text_bound(const Workload *workload, GString *out)
{
    const WorkloadPhase *phase = &workload->phase[workload->bound_phase];
    char takes[ORR_TEXT_SIZE], part[ORR_TEXT_SIZE];
    g_autofree char *text = g_strdup_printf(
        "%s: \"%s\" takes %s, %s of the step%s%s", workload_bound_word(workload), phase->phase->name,
        orr_text_seconds(takes, (double)phase->ps * 1e-12), share(part, phase->ps, workload->step_ps),
        phase->why != NULL ? "; " : "", phase->why != NULL ? phase->why : "");
    report_page_entry(out, "bound by", LABEL_COLUMN, text);
    for (int p = 0; p < workload->part_count && workload->part_count > 1; p++) {
        const WorkloadPart *at = &workload->part[p];
        char gpus[ORR_TEXT_SIZE], idle[ORR_TEXT_SIZE];
        g_autofree char *line =
            g_strdup_printf("%s (%s) wait for %s of the step", report_page_gpus(gpus, at->gpus), at->name,
                            share(idle, workload->step_ps - at->busy_ps, workload->step_ps));
        report_page_entry(out, p == 0 ? "waiting" : "", LABEL_COLUMN, line);
    }
}

static void text_memory(const Workload *workload, GString *out)
{
    for (int i = 0; i < workload->spec->workload.role_count; i++) {
        const WorkloadRole *role = &workload->role[i];
        char needed[ORR_TEXT_SIZE], capacity[ORR_TEXT_SIZE];
        if (!(role->capacity_bytes > 0))
            continue;
        g_autofree char *line = g_strdup_printf(
            "%s while it %s: %s of %s, %s", role->role->name,
            i == workload_generator(&workload->spec->workload) ? "generates"
            : role->scoring_bytes > 0                          ? "works"
                                                               : "trains",
            orr_text_bytes(needed, role->needed_bytes), orr_text_bytes(capacity, role->capacity_bytes),
            role->needed_bytes <= role->capacity_bytes ? "fits" : "does not fit");
        report_page_entry(out, "memory", LABEL_COLUMN, line);
    }
}

void workload_write_text(const Workload *workload, GString *out)
{
    char step[ORR_TEXT_SIZE], rate[ORR_TEXT_SIZE], gpus[ORR_TEXT_SIZE], count[ORR_TEXT_SIZE],
        mean[ORR_TEXT_SIZE], usd[ORR_TEXT_SIZE];
    const SpecWorkload *asked = &workload->spec->workload;
    g_string_append_printf(out, "%s\n\n",
                           workload->spec->name[0] != '\0' ? workload->spec->name : asked->name);
    g_autofree char *loop = g_strdup_printf("%s on %s, %s", asked->name[0] != '\0' ? asked->name : "a loop",
                                            report_page_gpus(gpus, workload->gpus),
                                            workload->staleness_steps == 0 ? "synchronous"
                                            : asked->in_flight ? "asynchronous, weights taken in flight"
                                                               : "asynchronous");
    report_page_entry(out, "loop", LABEL_COLUMN, loop);
    g_autofree char *taken = g_strdup_printf("%s", orr_text_seconds(step, (double)workload->step_ps * 1e-12));
    report_page_entry(out, "step", LABEL_COLUMN, taken);
    g_autofree char *tokens = g_strdup_printf(
        "%s a second and GPU, prompts and answers: %s sequences of %s tokens a step",
        report_page_whole(rate, workload->tokens_per_s_per_gpu),
        report_page_whole(count, workload->sequences), report_page_whole(mean, workload->sequence_tokens));
    report_page_entry(out, "tokens", LABEL_COLUMN, tokens);
    text_bound(workload, out);
    text_memory(workload, out);
    if (workload->days > 0) {
        g_autofree char *days = g_strdup_printf("%.3g days for %.0f steps, %s GPU-hours", workload->days,
                                                asked->steps, report_page_whole(rate, workload->gpu_hours));
        report_page_entry(out, "whole run", LABEL_COLUMN, days);
    }
    if (workload->usd > 0) {
        g_autofree char *cost = g_strdup_printf("%s USD", report_page_whole(usd, workload->usd));
        report_page_entry(out, "cost", LABEL_COLUMN, cost);
    }
    g_string_append_c(out, '\n');
    text_table(workload_phase_table(workload), out);
    text_timeline(workload, out);
}

void workload_write_csv(const Workload *workload, GString *out)
{
    static const char *const headers[] = {"name", "kind", "role", "begin_s", "seconds", "gpus"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (int i = 0; i < workload->phase_count; i++) {
        const WorkloadPhase *phase = &workload->phase[i];
        g_autofree char *begin = g_strdup_printf("%.12f", (double)phase->begin_ps * 1e-12),
                        *seconds = g_strdup_printf("%.12f", (double)phase->ps * 1e-12),
                        *gpus = g_strdup_printf("%d", phase_gpus(workload, phase));
        const char *const cells[] = {
            phase->phase->name, kind_word(phase), role_name(workload, phase), begin, seconds, gpus};
        orr_table_row(table, cells);
    }
    orr_table_csv(table, out);
    orr_table_free(table);
}
