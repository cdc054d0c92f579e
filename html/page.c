/* html/page.c - the page: the answer first, then what it is made of, what would help, and what it rests on. */
#include <math.h>
#include <string.h>

#include "base/units.h"
#include "html/figures.h"
#include "html/frame.h"
#include "html/html.h"
#include "html/svg.h"
#include "report/describe.h"
#include "report/page.h"
#include "report/parts.h"
#include "spec/notes.h"

#define GIB 1073741824.0

static void text(GString *out, const char *format, ...) G_GNUC_PRINTF(2, 3);

/* printf, escaped. */
static void text(GString *out, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    g_autofree char *raw = g_strdup_vprintf(format, values);
    va_end(values);
    html_escape(out, raw);
}

static const char *title_of(const Report *report)
{
    return report->spec->name[0] != '\0' ? report->spec->name : report->spec->model.name;
}

/* --- the answer --- */

static void write_answer(const Report *report, GString *out)
{
    const Spec *spec = report->spec;
    char step[ORR_TEXT_SIZE], count[ORR_TEXT_SIZE], days[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE];
    g_autofree char *occupied = report_occupied(report);
    g_string_append(out, "<p class=\"lead\">");
    text(out, "%s on %s %s GPU%s takes %s a step: MFU %.1f %%, %s %s/s.", spec->model.name,
         report_page_whole(count, report->gpus), spec->cluster.accelerator.name, report->gpus == 1 ? "" : "s",
         orr_text_seconds(step, (double)report->step_ps * 1e-12), report->mfu * 100,
         report_page_whole(tokens, report_items_of(report, report->tokens_per_s)), report_items(report));
    if (report->days > 0)
        text(out, " %s tokens take %s of compute%s", orr_text_count(count, spec->training.tokens),
             orr_text_seconds(days, report->days * 86400), report->effective.told ? "" : ".");
    if (report->effective.told)
        text(out, ", %s with failures, checkpoints and restarts.",
             orr_text_seconds(days, report->effective.days * 86400));
    g_string_append_printf(out, " <span class=\"%s\">",
                           report->memory_verdict == REPORT_MEMORY_FITS ? "good" : "bad");
    text(out, "Memory: %s, %s.", report_memory_word(report->memory_verdict), occupied);
    g_string_append(out, "</span></p>\n");
}

static void write_interval(const Report *report, GString *out)
{
    char low[ORR_TEXT_SIZE], high[ORR_TEXT_SIZE];
    if (!(report->interval_coverage > 0))
        return;
    g_string_append(out, "<p>");
    text(out,
         "Expect %s to %s. For %.0f %% of %d comparable published runs, the prediction was off by no more "
         "than this.",
         orr_text_seconds(low, report->interval_low_s), orr_text_seconds(high, report->interval_high_s),
         report->interval_coverage * 100, report->interval_runs);
    if (report->outside_count > 0 && report->interval_widening > 1)
        text(out, " The interval is %g times as wide, because the run lies outside all of them:",
             report->interval_widening);
    else if (report->outside_count > 0)
        text(out, " The run lies outside all of them:");
    for (int i = 0; i < report->outside_count; i++)
        text(out, "%s %s", i > 0 ? ";" : "", report->outside[i]);
    g_string_append(out, report->outside_count > 0 ? ".</p>\n" : "</p>\n");
}

static void write_cards(const Report *report, GString *out)
{
    char value[ORR_TEXT_SIZE];
    g_string_append(out, "<ul class=\"cards\">");
    html_card(out, orr_text_seconds(value, (double)report->step_ps * 1e-12), "a step");
    g_snprintf(value, sizeof value, "%.1f %%", report->mfu * 100);
    html_card(out, value, "MFU");
    g_autofree char *rate = g_strdup_printf("%s/s a GPU", report_items(report));
    html_card(out, report_page_whole(value, report_items_of(report, report->tokens_per_s_per_gpu)), rate);
    html_card(out, orr_text_si(value, report->model_flops_per_s_per_gpu, "FLOP/s"), "model FLOPs a GPU");
    g_snprintf(value, sizeof value, "%.1f %%", report->bubble_frac * 100);
    html_card(out, value, "bubble, mean over ranks");
    g_snprintf(value, sizeof value, "%.1f GiB", report_occupied_bytes(report) / GIB);
    html_card(out, value, "of the fullest GPU's memory");
    if (report->days > 0) {
        html_card(out, orr_text_seconds(value, report->days * 86400), "of compute for the whole run");
        if (report->effective.told)
            html_card(out, orr_text_seconds(value, report->effective.days * 86400), "with what fails");
        html_card(out, report_page_whole(value, report->gpu_hours), "GPU-hours");
    }
    if (report->usd > 0)
        html_card(out, report_page_whole(value, report->usd), "USD");
    if (report->kwh > 0)
        html_card(out, report_page_whole(value, report->kwh), "kWh");
    g_string_append(out, "</ul>\n");
}

/* --- tables --- */

static void row_begin(GString *out, const char *key)
{
    g_string_append(out, "<tr><td class=\"key\">");
    html_escape(out, key);
    g_string_append(out, "</td><td>");
}

static void write_configuration(const Report *report, GString *out)
{
    const Spec *spec = report->spec;
    const SpecTraining *training = &spec->training;
    char number[ORR_TEXT_SIZE], active[ORR_TEXT_SIZE];
    g_autofree char *configuration = report_configuration(spec);
    g_string_append(out, "<h2>Configuration</h2>\n<div class=\"scroll\"><table>\n");
    row_begin(out, "model");
    text(out, "%s: %s parameters", spec->model.name, orr_text_count(number, report->parameters));
    if (report->active_parameters < report->parameters)
        text(out, ", %s active a token", orr_text_count(active, report->active_parameters));
    if (report->trained_parameters < report->parameters)
        text(out, ", %s trained", orr_text_count(active, report->trained_parameters));
    text(out, ", %d layers", spec->model.layers);
    g_string_append(out, "</td></tr>\n");
    row_begin(out, "cluster");
    text(out, "%d node%s of %d %s%s%s", spec->cluster.nodes, spec->cluster.nodes == 1 ? "" : "s",
         spec->cluster.gpus_per_node, spec->cluster.accelerator.name,
         spec->cluster.name[0] != '\0' ? ": " : "", spec->cluster.name);
    g_string_append(out, "</td></tr>\n");
    row_begin(out, "layout");
    text(out, "%s, data parallel %d", configuration, spec->parallel.data);
    g_string_append(out, "</td></tr>\n");
    row_begin(out, "batch");
    if (spec->model.list.text != NULL)
        text(out, "%s samples", report_page_whole(number, training->global_batch));
    else
        text(out, "%s sequences of %s tokens", report_page_whole(number, training->global_batch),
             report_page_whole(active, training->sequence_length));
    text(out, "; micro-batch %d, %d a pipeline", training->micro_batch, spec_microbatches(spec));
    g_string_append(out, "</td></tr>\n");
    row_begin(out, "numbers");
    text(out, "%s, %s", spec_word(&spec_words_precision, (int)training->precision),
         spec_word(&spec_words_optimizer, (int)training->optimizer));
    g_string_append(out, "</td></tr>\n");
    row_begin(out, "software");
    text(out, "%s",
         spec->execution.framework.name[0] != '\0' ? spec->execution.framework.name : "none named");
    g_string_append(out, "</td></tr>\n</table></div>\n");
}

static void write_life(const GArray *life, GString *out)
{
    g_string_append(
        out, "<h2>The whole run, with what fails</h2>\n<div class=\"scroll\"><table class=\"life\">\n");
    for (guint i = 0; i < life->len; i++) {
        const HtmlFact *fact = &g_array_index(life, HtmlFact, i);
        g_string_append(out, "<tr><td class=\"key\">");
        html_escape(out, fact->label);
        g_string_append(out, fact->note != NULL ? "</td><td>" : "</td><td colspan=\"2\">");
        html_escape(out, fact->value);
        g_string_append(out, fact->note != NULL ? "</td><td>" : "");
        html_escape(out, fact->note != NULL ? fact->note : "");
        g_string_append(out, "</td></tr>\n");
    }
    g_string_append(out, "</table></div>\n");
}

/* Kernels by what they lose against the peak. */
static void write_kernels(const Explanation *explanation, GString *out)
{
    if (explanation->kernels->len == 0)
        return;
    g_string_append(
        out, "<h3>Which kernels lose it</h3>\n<div class=\"scroll\"><table><tr><th>kernel</th><th>share of "
             "compute</th><th>share of the kernel loss</th></tr>\n");
    for (guint i = 0; i < explanation->kernels->len && i < 2 * EXPLAIN_KERNELS; i++) {
        const ExplainKernel *kernel = &g_array_index(explanation->kernels, ExplainKernel, i);
        if (kernel->loss_share < 0.005)
            break;
        g_string_append(out, "<tr><td>");
        text(out, "%s", kernel->name);
        g_string_append_printf(out, "</td><td class=\"n\">%.1f %%</td><td class=\"n\">%.1f %%</td></tr>\n",
                               kernel->share * 100, kernel->loss_share * 100);
    }
    g_string_append(out, "</table></div>\n");
}

static void write_changes(const Explanation *explanation, GString *out)
{
    int shown = 0;
    char step[ORR_TEXT_SIZE];
    g_string_append(out, "<h2>What would help most</h2>\n");
    g_string_append(out, "<p>");
    for (guint i = 0; i < explanation->binds->len; i++) {
        const ExplainBind *bind = &g_array_index(explanation->binds, ExplainBind, i);
        if (bind->share >= 0.01)
            text(out, "%s%s %.0f %%", shown++ > 0 ? ", " : "What binds the step: ", bind->words,
                 bind->share * 100);
    }
    g_string_append(out, "; each simulated with 10 % more of it.</p>\n");
    const ExplainChange *first =
        explanation->changes->len > 0 ? &g_array_index(explanation->changes, ExplainChange, 0) : NULL;
    if (first == NULL || first->gain_frac < 0.0005) {
        g_string_append_printf(out, "<p>None of %d changes that were simulated is faster.</p>\n",
                               explanation->tried);
        return;
    }
    g_string_append(out, "<div class=\"scroll\"><table><tr><th>change</th><th>step</th><th>faster "
                         "by</th><th>mostly less</th><th>memory</th></tr>\n");
    shown = 0;
    for (guint i = 0; i < explanation->changes->len && shown < 8; i++) {
        const ExplainChange *change = &g_array_index(explanation->changes, ExplainChange, i);
        if (change->gain_frac < 0.0005)
            continue;
        g_string_append(out, "<tr><td class=\"long\">");
        for (gsize set = 0; set < G_N_ELEMENTS(change->set) && change->set[set] != NULL; set++)
            text(out, "%s%s", set > 0 ? ", " : "", change->set[set]);
        g_string_append_printf(
            out, "</td><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td><td>%s</td><td>%s</td></tr>\n",
            orr_text_seconds(step, (double)change->step_ps * 1e-12), change->gain_frac * 100,
            change->cause != NULL ? change->cause : "",
            !change->fits  ? "does not fit"
            : change->edge ? "at the edge"
                           : "fits");
        shown++;
    }
    g_string_append(out, "</table></div>\n");
    g_string_append_printf(out, "<p>The strongest of %d changes that were simulated.</p>\n",
                           explanation->tried);
}

static void compare_row(GString *out, const char *label, double a, double b, const char *unit, int decimals)
{
    g_string_append(out, "<tr><td>");
    html_escape(out, label);
    for (int i = 0; i < 2; i++) {
        g_string_append(out, "</td><td class=\"n\">");
        html_number(out, i == 0 ? a : b, decimals);
        g_string_append_printf(out, " %s", unit);
    }
    g_string_append(out, "</td><td class=\"n\">");
    if (a > 0)
        g_string_append_printf(out, "%+.1f %%", (b / a - 1) * 100);
    g_string_append(out, "</td></tr>\n");
}

static void write_comparison(const Comparison *comparison, GString *out)
{
    const Report *a = comparison->a, *b = comparison->b;
    ReportTime times[2][REPORT_TIME_COUNT];
    g_string_append(out, "<h2>Side by side</h2>\n<div class=\"scroll\"><table><tr><th>of</th><th>");
    html_escape(out, title_of(a));
    g_string_append(out, "</th><th>");
    html_escape(out, title_of(b));
    g_string_append(out, "</th><th>difference</th></tr>\n");
    compare_row(out, "GPUs", a->gpus, b->gpus, "", 0);
    compare_row(out, "step", (double)a->step_ps * 1e-12, (double)b->step_ps * 1e-12, "s", 4);
    compare_row(out, "tokens/s a GPU", a->tokens_per_s_per_gpu, b->tokens_per_s_per_gpu, "", 1);
    compare_row(out, "MFU", a->mfu * 100, b->mfu * 100, "%", 1);
    compare_row(out, "bubble", a->bubble_frac * 100, b->bubble_frac * 100, "%", 1);
    compare_row(out, "memory needed", a->needed_bytes / GIB, b->needed_bytes / GIB, "GiB", 1);
    if (a->days > 0 && b->days > 0)
        compare_row(out, "days of compute", a->days, b->days, "", 1);
    if (a->effective.told && b->effective.told)
        compare_row(out, "days with what fails", a->effective.days, b->effective.days, "", 1);
    report_times(a->part_ps, a->bubble_ps, a->late_ps, times[0]);
    report_times(b->part_ps, b->bubble_ps, b->late_ps, times[1]);
    for (int i = 0; i < REPORT_TIME_COUNT; i++)
        if (times[0][i].ps > 0 || times[1][i].ps > 0)
            compare_row(out, times[0][i].label, (double)times[0][i].ps * 1e-12,
                        (double)times[1][i].ps * 1e-12, "s", 4);
    g_string_append(
        out, "</table></div>\n<div class=\"scroll\"><table><tr><th>field</th><th>here</th><th>there</th>"
             "<th>step with this change alone</th></tr>\n");
    for (guint i = 0; i < comparison->fields->len; i++) {
        const CompareField *field = &g_array_index(comparison->fields, CompareField, i);
        g_string_append(out, "<tr><td><code>");
        html_escape(out, field->key);
        g_string_append(out, "</code></td><td>");
        html_escape(out, field->a);
        g_string_append(out, "</td><td>");
        html_escape(out, field->b);
        g_string_append(out, "</td><td class=\"n\">");
        if (field->step_s > 0)
            text(out, "%.4g s", field->step_s);
        else
            html_escape(out, field->reason != NULL ? "not alone" : "");
        g_string_append(out, "</td></tr>\n");
    }
    g_string_append(out, "</table></div>\n");
}

/* --- what it rests on --- */

static void write_assumptions(const HtmlInput *input, GString *out)
{
    const Report *report = input->report;
    g_autoptr(GPtrArray) notes = g_ptr_array_new_with_free_func(g_free);
    report_notes(report, notes);
    g_string_append(out, "<h2>What this rests on</h2>\n");
    html_profiles(input->profiles, out);
    for (guint i = 0; i < notes->len; i++) {
        g_string_append(out, "<p>Note: ");
        html_escape(out, g_ptr_array_index(notes, i));
        g_string_append(out, "</p>\n");
    }
    g_string_append(
        out, "<p>MFU is the model FLOPs of the op list over the dense peak of the precision. Causal "
             "attention counts half, the LM head counts, the embedding and recomputation do not.</p>\n");
    html_list("what \"auto\" became", report->chosen, out);
    if (report->source == NULL)
        return;
    html_list("fields left to their defaults", report->source->defaulted, out);
    html_scenario(report->source->resolved, out);
}

static void write_others(const HtmlInput *input, GString *out)
{
    if (input->cells == NULL && input->front == NULL)
        return;
    g_string_append(out, "<h2>Other configurations</h2>\n");
    if (input->search_note != NULL) {
        g_string_append(out, "<p>");
        html_escape(out, input->search_note);
        g_string_append(out, "</p>\n");
    }
    if (input->cells != NULL && input->cells->len > 0)
        html_heat_map(input, out);
    if (input->front != NULL && input->front->len > 0)
        html_front(input, out);
}

void html_write(const HtmlInput *input, GString *out)
{
    const Report *report = input->report;
    html_begin(title_of(report), "", out);
    write_answer(report, out);
    write_interval(report, out);
    write_cards(report, out);
    write_configuration(report, out);
    if (input->life != NULL && input->life->len > 0)
        write_life(input->life, out);
    g_string_append(out, "<h2>Where the time goes</h2>\n");
    html_split(report, out);
    html_waterfall(report, out);
    write_kernels(input->explanation, out);
    if (report->plan.servers != NULL)
        html_servers(report, out);
    else
        html_pipeline(report, out);
    g_string_append(out, "<h2>Memory</h2>\n");
    html_memory(report, out);
    write_changes(input->explanation, out);
    write_others(input, out);
    if (input->comparison != NULL)
        write_comparison(input->comparison, out);
    write_assumptions(input, out);
    html_end(report->source != NULL ? report->source->scenario_hash : NULL, input->command, true, out);
}
