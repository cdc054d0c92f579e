/* html/loop.c - see loop.h. Tested: cli/test_cli_report */
#include "html/loop.h"

#include "base/units.h"
#include "html/frame.h"
#include "html/svg.h"
#include "plots/colours.h"
#include "plots/driver.h"
#include "report/page.h"

enum { LANE = 46, SHOWN_TURNS = 3 };

static const char *kind_colour(SpecPhaseKind kind)
{
    switch (kind) {
    case SPEC_PHASE_GENERATE:
        return plot_colour("forward");
    case SPEC_PHASE_FORWARD:
        return plot_colour("recompute");
    case SPEC_PHASE_TRAIN:
        return plot_colour("backward");
    case SPEC_PHASE_SYNC:
        return plot_colour("data comm");
    case SPEC_PHASE_GIVEN:
        break;
    }
    return plot_colour("optimizer");
}

/* --- the answer --- */

static const char *title_of(const Workload *workload)
{
    return workload->spec->name[0] != '\0' ? workload->spec->name : workload->spec->workload.name;
}

static void write_answer(const Workload *workload, GString *out)
{
    const WorkloadPhase *bound = &workload->phase[workload->bound_phase];
    char gpus[ORR_TEXT_SIZE], step[ORR_TEXT_SIZE], sequences[ORR_TEXT_SIZE], tokens[ORR_TEXT_SIZE];
    g_autofree char *text = g_strdup_printf(
        "A step of %s on %s takes %s: %s sequences of %s tokens. It waits most for \"%s\", %.1f %% of the "
        "step%s%s.",
        workload->spec->workload.name[0] != '\0' ? workload->spec->workload.name : "the loop",
        report_page_gpus(gpus, workload->gpus), orr_text_seconds(step, (double)workload->step_ps * 1e-12),
        report_page_whole(sequences, workload->sequences),
        report_page_whole(tokens, workload->sequence_tokens), bound->phase->name,
        100 * (double)bound->ps / (double)workload->step_ps, bound->why != NULL ? "; there binds: " : "",
        bound->why != NULL ? bound->why : "");
    g_string_append(out, "<p class=\"lead\">");
    html_escape(out, text);
    g_string_append_printf(out, " <span class=\"%s\">%s</span></p>\n", workload->fits ? "good" : "bad",
                           workload->fits ? "All roles fit in memory." : "It does not fit in memory.");
}

static void write_cards(const Workload *workload, GString *out)
{
    char value[ORR_TEXT_SIZE];
    g_string_append(out, "<ul class=\"cards\">");
    html_card(out, orr_text_seconds(value, (double)workload->step_ps * 1e-12), "a step");
    html_card(out, report_page_whole(value, workload->tokens_per_s_per_gpu), "tokens/s a GPU");
    for (int p = 0; p < workload->part_count && workload->part_count > 1; p++) {
        const WorkloadPart *part = &workload->part[p];
        g_autofree char *label = g_strdup_printf("of a step %d GPUs wait (%s)", part->gpus, part->name);
        g_snprintf(value, sizeof value, "%.1f %%",
                   100 * (1 - (double)part->busy_ps / (double)workload->step_ps));
        html_card(out, value, label);
    }
    if (workload->days > 0) {
        html_card(out, orr_text_seconds(value, workload->days * 86400), "for the whole run");
        html_card(out, report_page_whole(value, workload->gpu_hours), "GPU-hours");
    }
    if (workload->usd > 0)
        html_card(out, report_page_whole(value, workload->usd), "USD");
    g_string_append(out, "</ul>\n");
}

/* --- who works when --- */

static void draw_phase(HtmlSvg *svg, const Workload *workload, const WorkloadPhase *phase, int turn,
                       double unit_s)
{
    char takes[ORR_TEXT_SIZE];
    const double begin = (double)(phase->begin_ps + turn * workload->step_ps) * 1e-12 / unit_s,
                 from = html_svg_x(svg, begin),
                 to = html_svg_x(svg, begin + (double)phase->ps * 1e-12 / unit_s);
    g_autofree char *title = g_strdup_printf("%s of step %d: %s", phase->phase->name, turn + 1,
                                             orr_text_seconds(takes, (double)phase->ps * 1e-12));
    for (int p = 0; p < workload->part_count; p++)
        if (phase->ps > 0 && (phase->part == p || phase->other == p))
            html_svg_rect(svg, from, svg->top + (p + 0.3) * LANE, MAX(to - from - 1, 0.5), 0.6 * LANE,
                          kind_colour(phase->phase->kind), title);
}

static void write_legend(const Workload *workload, GString *out)
{
    static const char *const words[] = {"generation", "forward only", "training", "weights sent", "given"};
    const char *colours[G_N_ELEMENTS(words)], *labels[G_N_ELEMENTS(words)];
    int shown = 0;
    for (gsize kind = 0; kind < G_N_ELEMENTS(words); kind++)
        for (int i = 0; i < workload->phase_count; i++)
            if (workload->phase[i].phase->kind == (SpecPhaseKind)kind && workload->phase[i].ps > 0) {
                colours[shown] = kind_colour((SpecPhaseKind)kind);
                labels[shown++] = words[kind];
                break;
            }
    html_legend(out, colours, labels, shown);
}

static void write_timeline(const Workload *workload, GString *out)
{
    double unit_s = 1, end_s = 0;
    for (int i = 0; i < workload->phase_count; i++)
        end_s = MAX(end_s, (double)(workload->phase[i].begin_ps + workload->phase[i].ps +
                                    (SHOWN_TURNS - 1) * workload->step_ps) *
                               1e-12);
    g_autofree char *unit = g_strdup_printf("time (%s)", plot_time_unit(end_s, &unit_s));
    HtmlSvg svg = html_plot(out, 84.0 + LANE * workload->part_count, 0, end_s / unit_s, 1);
    html_figure_begin(&svg, "loop", "Who works when",
                      "Three steps of the loop, a row for GPUs that roles share.", true);
    write_legend(workload, out);
    html_svg_begin(&svg, "timeline of the loop", true);
    for (int p = 0; p < workload->part_count; p++) {
        g_autofree char *gpus = g_strdup_printf("%d", workload->part[p].gpus);
        html_svg_rect(&svg, svg.left, svg.top + (p + 0.3) * LANE, svg.right - svg.left, 0.6 * LANE,
                      "var(--idle)", workload->part[p].name);
        html_svg_text(&svg, svg.left - 8, svg.top + (p + 0.65) * LANE, "end", "tick", gpus);
        html_svg_text(&svg, svg.left, svg.top + (p + 0.22) * LANE, "start", "tick", workload->part[p].name);
    }
    html_svg_text(&svg, 8, svg.top - 10, "start", "unit", "GPUs");
    html_svg_window_begin(&svg, "moves");
    for (int turn = 0; turn < SHOWN_TURNS; turn++)
        for (int i = 0; i < workload->phase_count; i++)
            draw_phase(&svg, workload, &workload->phase[i], turn, unit_s);
    html_svg_window_end(&svg);
    html_svg_axis_x(&svg, unit);
    html_figure_end(&svg);
}

/* --- tables --- */

static void write_memory(const Workload *workload, GString *out)
{
    static const char *const headers[] = {"role", "needed while it works", "of", "fits"};
    OrrTable *table = orr_table_new(headers, (int)G_N_ELEMENTS(headers));
    for (int i = 0; i < workload->spec->workload.role_count; i++) {
        const WorkloadRole *role = &workload->role[i];
        char needed[ORR_TEXT_SIZE], capacity[ORR_TEXT_SIZE];
        if (!(role->capacity_bytes > 0))
            continue;
        const char *const cells[] = {role->role->name, orr_text_bytes(needed, role->needed_bytes),
                                     orr_text_bytes(capacity, role->capacity_bytes),
                                     role->needed_bytes <= role->capacity_bytes ? "yes" : "no"};
        orr_table_row(table, cells);
    }
    g_string_append(out, "<h2>Memory of a GPU</h2>\n");
    html_table(table, out);
    orr_table_free(table);
}

static void write_table(OrrTable *table, GString *out)
{
    html_table(table, out);
    orr_table_free(table);
}

static void write_splits(const Splits *splits, GString *out)
{
    char gpus[ORR_TEXT_SIZE];
    g_string_append(out, "<h2>Other ways to deal the GPUs</h2>\n");
    g_string_append_printf(out, "<p>%d ways to deal %s to training and generation: the best, proved.</p>\n",
                           splits->space, report_page_gpus(gpus, splits->gpus));
    write_table(splits_table(splits, false), out);
}

void html_loop_write(const HtmlLoop *loop, GString *out)
{
    const Workload *workload = loop->workload;
    html_begin(title_of(workload), "", out);
    write_answer(workload, out);
    write_cards(workload, out);
    g_string_append(out, "<h2>Where the time goes</h2>\n");
    write_timeline(workload, out);
    write_table(workload_phase_table(workload), out);
    write_memory(workload, out);
    g_string_append(out, "<h2>What would help most</h2>\n<p>The step if one phase took no time.</p>\n");
    write_table(workload_without_table(loop->explanation), out);
    OrrTable *changes = workload_change_table(loop->explanation);
    g_string_append(out, changes != NULL ? "<p>Single changes, each simulated on its own.</p>\n"
                                         : "<p>No single change that was asked makes it shorter.</p>\n");
    if (changes != NULL)
        write_table(changes, out);
    if (loop->splits != NULL)
        write_splits(loop->splits, out);
    g_string_append(out, "<h2>What this rests on</h2>\n");
    html_profiles(loop->profiles, out);
    html_list("fields left to their defaults", loop->source->defaulted, out);
    html_scenario(loop->source->resolved, out);
    html_end(loop->source->scenario_hash, loop->command, true, out);
}
