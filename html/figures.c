/* html/figures.c - waterfall, time split, memory. */
#include "html/figures.h"

#include <math.h>

#include "html/csv.h"
#include "html/svg.h"
#include "plots/colours.h"
#include "plots/data.h"
#include "report/parts.h"

#define GIB 1073741824.0

enum { MEMORY_KINDS = 6 };

static const char *const memory_columns[MEMORY_KINDS] = {"weights_gib",   "gradients_gib",
                                                         "optimizer_gib", "activations_gib",
                                                         "workspace_gib", "reserved_besides_gib"};
static const char *const memory_labels[MEMORY_KINDS] = {"weights",     "gradients", "optimizer",
                                                        "activations", "workspace", "reserved besides"};
/* --- from the peak to the MFU --- */

enum { WATERFALL_ROW = 30 };

static void draw_waterfall(HtmlSvg *svg, const HtmlCsv *csv)
{
    const int low = html_csv_column(csv, "low_percent"), high = html_csv_column(csv, "high_percent");
    const int label = html_csv_column(csv, "label"), shown = html_csv_column(csv, "shown");
    html_svg_begin(svg, "waterfall of losses", false);
    for (int i = 0; i < csv->rows; i++) {
        const double x = html_svg_x(svg, html_csv_number(csv, i, low));
        const double end = html_svg_x(svg, html_csv_number(csv, i, high)), y = svg->top + i * WATERFALL_ROW;
        html_svg_rect(svg, x, y + 4, MAX(end - x, 0.5), WATERFALL_ROW - 8,
                      plot_colour(html_csv_text(csv, i, label)), NULL);
        html_svg_text(svg, svg->left - 10, y + 19, "end", "label", html_csv_text(csv, i, label));
        html_svg_text(svg, end + 6, y + 19, "start", "value", html_csv_text(csv, i, shown));
    }
    html_svg_axis_x(svg, "% of the dense peak");
}

void html_waterfall(const Report *report, GString *out)
{
    g_autoptr(GString) text = plot_bars(report, NULL);
    HtmlCsv csv = html_csv_read(text);
    HtmlSvg svg = {.out = out,
                   .width = 960,
                   .height = 20 + WATERFALL_ROW * csv.rows + 44,
                   .left = 140,
                   .right = 890,
                   .top = 10,
                   .bottom = 14 + WATERFALL_ROW * csv.rows,
                   .x0 = 0,
                   .x1 = 100,
                   .y0 = 0,
                   .y1 = 1},
            narrow;
    html_svg_for_screens(&svg, &narrow);
    html_figure_begin(
        &svg, "waterfall", "From the peak to the MFU",
        "Shares of the accelerator's dense peak, means over ranks; losses and MFU add up to 100 %.", false);
    draw_waterfall(&svg, &csv);
    html_svg_end(&svg);
    draw_waterfall(&narrow, &csv);
    html_figure_end(&narrow);
    html_csv_clear(&csv);
}

/* --- the critical rank --- */

void html_split(const Report *report, GString *out)
{
    ReportTime times[REPORT_TIME_COUNT];
    const char *colours[REPORT_TIME_COUNT], *labels[REPORT_TIME_COUNT];
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    int count = 0;
    double x = 0;
    HtmlSvg svg = {.out = out,
                   .width = 960,
                   .height = 74,
                   .left = 6,
                   .right = 954,
                   .top = 6,
                   .bottom = 66,
                   .x0 = 0,
                   .x1 = (double)report->step_ps,
                   .y0 = 0,
                   .y1 = 1};
    report_times(report->part_ps, report->bubble_ps, report->late_ps, times);
    html_figure_begin(
        &svg, "split", "Where the time of a step goes",
        "The rank that finishes last: what it computes, the communication that compute does not hide, "
        "and what it waits for.",
        false);
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        const double share = (double)times[i].ps / (double)report->step_ps;
        if (share < 0.0005)
            continue;
        colours[count] = plot_colour(times[i].label);
        g_ptr_array_add(texts, g_strdup_printf("%s %.1f %%", times[i].label, share * 100));
        labels[count] = g_ptr_array_index(texts, texts->len - 1);
        count++;
    }
    html_legend(out, colours, labels, count);
    html_svg_begin(&svg, "split of the step time", false);
    for (int i = 0; i < REPORT_TIME_COUNT; i++) {
        const double from = html_svg_x(&svg, x), to = html_svg_x(&svg, x + (double)times[i].ps);
        x += (double)times[i].ps;
        if (times[i].ps > 0)
            html_svg_rect(&svg, from, svg.top, to - from, svg.bottom - svg.top, plot_colour(times[i].label),
                          times[i].label);
    }
    html_figure_end(&svg);
}

/* --- memory --- */

static void memory_legend(GString *out, int kinds)
{
    const char *colours[MEMORY_KINDS];
    for (int i = 0; i < kinds; i++)
        colours[i] = plot_colour(memory_labels[i]);
    html_legend(out, colours, memory_labels, kinds);
}

static void capacity_line(HtmlSvg *svg, double capacity_gib)
{
    char text[64];
    const double y = html_svg_y(svg, capacity_gib);
    g_snprintf(text, sizeof text, "capacity %.1f GiB", capacity_gib);
    html_svg_line(svg, svg->left, y, svg->right, y, "limit");
    html_svg_text(svg, svg->right, y - 6, "end", "tick", text);
}

/* A rank's memory of one kind over time, as a step line on top of the kinds below. */
static void add_area(HtmlSvg *svg, const HtmlCsv *csv, int first, int last, int kind)
{
    g_autoptr(GString) above = g_string_new("M"), below = g_string_new(NULL);
    const int time = html_csv_column(csv, "time");
    double y0 = 0, y1 = 0;
    for (int row = first; row < last; row++) {
        const double x = html_svg_x(svg, html_csv_number(csv, row, time));
        double low = 0;
        for (int i = 0; i < kind; i++)
            low += html_csv_number(csv, row, html_csv_column(csv, memory_columns[i]));
        const double high = low + html_csv_number(csv, row, html_csv_column(csv, memory_columns[kind]));
        g_autoptr(GString) back = g_string_new("L");
        if (row > first) { /* level until now */
            html_number(above, x, 2);
            g_string_append_c(above, ' ');
            html_number(above, y1, 1);
            g_string_append_c(above, 'L');
        }
        html_number(back, x, 2);
        g_string_append_c(back, ' ');
        html_number(back, html_svg_y(svg, low), 1);
        if (row > first) {
            g_string_append_c(back, 'L');
            html_number(back, x, 2);
            g_string_append_c(back, ' ');
            html_number(back, y0, 1);
        }
        g_string_prepend(below, back->str);
        y0 = html_svg_y(svg, low);
        y1 = html_svg_y(svg, high);
        html_number(above, x, 2);
        g_string_append_c(above, ' ');
        html_number(above, y1, 1);
        if (row + 1 < last)
            g_string_append_c(above, 'L');
    }
    g_string_append_printf(svg->out, "<path fill=\"%s\" d=\"%s%sz\"/>\n", plot_colour(memory_labels[kind]),
                           above->str, below->str);
}

static void levels_figure(const Report *report, double top_gib, GString *out)
{
    PlotLevels levels = plot_levels(report, 1);
    HtmlCsv csv = html_csv_read(levels.csv);
    const int kinds = MEMORY_KINDS - 1;
    HtmlSvg svg = html_plot(out, 340, 0, levels.end, top_gib);
    g_autofree char *caption =
        g_strdup_printf("Memory of pipeline rank %d, the fullest, by what holds it.", levels.fullest);
    html_figure_begin(&svg, "memory", "Memory over the step", caption, true);
    memory_legend(out, kinds);
    html_svg_begin(&svg, "memory over the step", true);
    html_svg_axis_y(&svg, "GiB");
    html_svg_window_begin(&svg, "moves");
    for (int kind = 0; kind < kinds; kind++)
        add_area(&svg, &csv, 0, csv.rows, kind);
    html_svg_window_end(&svg);
    capacity_line(&svg, report->capacity_bytes / GIB);
    g_autofree char *unit = g_strdup_printf("time (%s)", levels.unit);
    html_svg_axis_x(&svg, unit);
    html_figure_end(&svg);
    html_csv_clear(&csv);
    plot_levels_clear(&levels);
}

static void draw_stages(HtmlSvg *svg, const HtmlCsv *csv, double capacity_gib)
{
    const double roomy = svg->width / 60; /* labels that have room */
    int every = 1;
    while (csv->rows / every > roomy)
        every *= 2;
    html_svg_begin(svg, "memory by stage", false);
    html_svg_axis_y(svg, "GiB");
    for (int row = 0; row < csv->rows; row++) {
        const double x = html_svg_x(svg, row + 0.11), width = html_svg_x(svg, row + 0.89) - x;
        double level = 0;
        for (int kind = 0; kind < MEMORY_KINDS; kind++) {
            const double gib = html_csv_number(csv, row, html_csv_column(csv, memory_columns[kind]));
            g_autofree char *title = g_strdup_printf("rank %d: %s %.2f GiB", row, memory_labels[kind], gib);
            html_svg_rect(svg, x, html_svg_y(svg, level + gib), width,
                          html_svg_y(svg, level) - html_svg_y(svg, level + gib),
                          plot_colour(memory_labels[kind]), title);
            level += gib;
        }
        if (row % every == 0)
            html_svg_text(svg, x + width / 2, svg->bottom + 18, "middle", "tick", html_csv_text(csv, row, 0));
    }
    capacity_line(svg, capacity_gib);
    html_svg_line(svg, svg->left, svg->bottom, svg->right, svg->bottom, "axis");
    html_svg_text(svg, (svg->left + svg->right) / 2, svg->bottom + 38, "middle", "unit", "pipeline rank");
}

static void stages_figure(const Report *report, double top_gib, GString *out)
{
    g_autoptr(GString) text = plot_stages(report);
    HtmlCsv csv = html_csv_read(text);
    HtmlSvg svg = html_plot(out, 340, 0, csv.rows, top_gib), narrow;
    html_svg_for_screens(&svg, &narrow);
    html_figure_begin(
        &svg, "stages", "Memory of every stage at its peak",
        "What fills one GPU of each pipeline rank when it is fullest; reserved besides: allocator and "
        "context.",
        false);
    memory_legend(out, MEMORY_KINDS);
    draw_stages(&svg, &csv, report->capacity_bytes / GIB);
    html_svg_end(&svg);
    draw_stages(&narrow, &csv, report->capacity_bytes / GIB);
    html_figure_end(&narrow);
    html_csv_clear(&csv);
}

void html_memory(const Report *report, GString *out)
{
    const double top_gib = fmax(report->capacity_bytes, report->reserved_bytes) / GIB * 1.1;
    levels_figure(report, top_gib, out);
    stages_figure(report, top_gib, out);
}
