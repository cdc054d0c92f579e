/* html/figure_search.c - what else could be run: a map of tensor and pipeline degrees, and time against memory. */
#include <math.h>

#include "base/units.h"
#include "html/figures.h"
#include "html/svg.h"

#define GIB 1073741824.0

/* Light to dark, even steps of lightness: from 0 to 1. */
static void shade(char *colour, double share)
{
    static const double low[3] = {0xE8, 0xF1, 0xF8}, high[3] = {0x00, 0x4C, 0x7F};
    int mixed[3];
    for (int i = 0; i < 3; i++)
        mixed[i] = (int)lround(low[i] + (high[i] - low[i]) * CLAMP(share, 0.0, 1.0));
    g_snprintf(colour, 8, "#%02X%02X%02X", (unsigned)mixed[0], (unsigned)mixed[1], (unsigned)mixed[2]);
}

static int place(GArray *values, int value)
{
    for (guint i = 0; i < values->len; i++)
        if (g_array_index(values, int, i) == value)
            return (int)i;
    g_array_append_val(values, value);
    return (int)values->len - 1;
}

static void draw_cell(HtmlSvg *svg, const HtmlCell *cell, double x, double y, double width, double height,
                      double most, bool own)
{
    char colour[8], text[32];
    const double share = most > 0 ? cell->mfu / most : 0;
    if (!cell->found || !cell->fits) {
        g_autofree char *title =
            g_strdup_printf("tensor %d, pipeline %d: %s", cell->tensor, cell->pipeline, cell->words);
        html_svg_rect(svg, x, y, width, height, "var(--idle)", title);
        html_svg_text(svg, x + width / 2, y + height / 2 + 5, "middle", "tick",
                      cell->skipped  ? "?"
                      : !cell->found ? "\u2013"
                      : width < 64   ? "\u2715"
                                     : "no room");
        return;
    }
    shade(colour, 0.15 + 0.85 * share);
    g_autofree char *title = g_strdup_printf("%s: MFU %.1f %%, step %.4g s, %.1f GiB", cell->words,
                                             cell->mfu * 100, cell->step_s, cell->reserved_bytes / GIB);
    html_svg_rect(svg, x, y, width, height, colour, title);
    if (own)
        g_string_append_printf(svg->out,
                               "<rect class=\"own\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n",
                               x + 2, y + 2, width - 4, height - 4);
    g_snprintf(text, sizeof text, "%s%.*f%s", cell->proved ? "" : "~", width < 64 ? 0 : 1, cell->mfu * 100,
               width < 48 ? "" : " %");
    html_svg_text(svg, x + width / 2, y + height / 2 + 5, "middle", share > 0.55 ? "mb light big" : "mb big",
                  text);
}

typedef struct HeatMap {
    const GArray *cells;         /* HtmlCell */
    GArray *tensors, *pipelines; /* int: the degrees that there are */
    const SpecParallel *own;
    double most; /* MFU */
    bool open;   /* some cell is not proved */
} HeatMap;

static void draw_heat_map(HtmlSvg *svg, const HeatMap *map)
{
    html_svg_begin(svg, "heat map of MFU", false);
    for (guint i = 0; i < map->cells->len; i++) {
        const HtmlCell *cell = &g_array_index(map->cells, HtmlCell, i);
        const double x = html_svg_x(svg, place(map->pipelines, cell->pipeline)),
                     y = svg->top + 44 * place(map->tensors, cell->tensor);
        draw_cell(svg, cell, x + 1, y + 1, (svg->right - svg->left) / map->pipelines->len - 2, 42, map->most,
                  cell->tensor == map->own->tensor && cell->pipeline == map->own->pipeline);
    }
    for (guint i = 0; i < map->tensors->len; i++) {
        g_autofree char *name = g_strdup_printf("tensor %d", g_array_index(map->tensors, int, i));
        html_svg_text(svg, svg->left - 8, svg->top + 44 * i + 27, "end", "tick", name);
    }
    for (guint i = 0; i < map->pipelines->len; i++) {
        g_autofree char *name = g_strdup_printf("%d", g_array_index(map->pipelines, int, i));
        html_svg_text(svg, html_svg_x(svg, i + 0.5), svg->bottom + 18, "middle", "tick", name);
    }
    html_svg_text(svg, (svg->left + svg->right) / 2, svg->bottom + 40, "middle", "unit", "pipeline");
}

void html_heat_map(const HtmlInput *input, GString *out)
{
    g_autoptr(GArray) tensors = g_array_new(FALSE, FALSE, sizeof(int));
    g_autoptr(GArray) pipelines = g_array_new(FALSE, FALSE, sizeof(int));
    HeatMap map = {input->cells, tensors, pipelines, &input->report->spec->parallel, 0, false};
    for (guint i = 0; i < map.cells->len; i++) {
        const HtmlCell *cell = &g_array_index(map.cells, HtmlCell, i);
        place(tensors, cell->tensor);
        place(pipelines, cell->pipeline);
        map.open = map.open || cell->skipped || (cell->fits && !cell->proved);
        map.most = cell->found && cell->fits ? fmax(map.most, cell->mfu) : map.most;
    }
    HtmlSvg svg = {.out = out,
                   .width = 960,
                   .height = 60.0 + 44.0 * tensors->len,
                   .left = 80,
                   .right = 950,
                   .top = 8,
                   .bottom = 8 + 44.0 * tensors->len,
                   .x0 = 0,
                   .x1 = pipelines->len,
                   .y0 = 0,
                   .y1 = 1},
            narrow;
    html_svg_for_screens(&svg, &narrow);
    const SpecParallel *own = map.own;
    g_autofree char *caption = g_strdup_printf(
        "Each cell is the fastest configuration that fits with these two degrees, schedule %s and what else "
        "is "
        "held as given; the frame is this scenario's. \u2013: no such configuration; \u2715: no room.%s",
        own->schedule_file[0] != '\0' ? own->schedule_file
                                      : spec_word(&spec_words_schedule, (int)own->schedule),
        map.open ? " ~: not proved in the time given; ?: not looked at." : "");
    html_figure_begin(&svg, "heatmap", "Tensor and pipeline parallelism: the best MFU of each pair", caption,
                      false);
    draw_heat_map(&svg, &map);
    html_svg_end(&svg);
    draw_heat_map(&narrow, &map);
    html_figure_end(&narrow);
}

static void mark(HtmlSvg *svg, double x, double y, const char *class, const char *title)
{
    g_string_append_printf(svg->out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"6\"><title>", class,
                           html_svg_x(svg, x), html_svg_y(svg, y));
    html_escape(svg->out, title);
    g_string_append(svg->out, "</title></circle>\n");
}

static void draw_front(HtmlSvg *svg, const HtmlInput *input)
{
    const Report *report = input->report;
    html_svg_begin(svg, "step time against memory", false);
    html_svg_axis_y(svg, "GiB reserved");
    html_svg_line(svg, svg->left, html_svg_y(svg, report->capacity_bytes / GIB), svg->right,
                  html_svg_y(svg, report->capacity_bytes / GIB), "limit");
    for (guint i = 0; i < input->front->len; i++) {
        const HtmlPoint *point = &g_array_index(input->front, HtmlPoint, i);
        g_autofree char *title =
            g_strdup_printf("%s: %.4g s, MFU %.1f %%, %.1f GiB", point->words, point->step_s,
                            point->mfu * 100, point->reserved_bytes / GIB);
        mark(svg, point->step_s, point->reserved_bytes / GIB, "searched", title);
    }
    mark(svg, (double)report->step_ps * 1e-12, report->reserved_bytes / GIB, "mine", "this scenario");
    html_svg_axis_x(svg, "seconds a step");
}

void html_front(const HtmlInput *input, GString *out)
{
    const Report *report = input->report;
    const double own_s = (double)report->step_ps * 1e-12, own_gib = report->reserved_bytes / GIB;
    double fastest = own_s, slowest = own_s, largest = fmax(own_gib, report->capacity_bytes / GIB);
    for (guint i = 0; i < input->front->len; i++) {
        const HtmlPoint *point = &g_array_index(input->front, HtmlPoint, i);
        fastest = fmin(fastest, point->step_s);
        slowest = fmax(slowest, point->step_s);
        largest = fmax(largest, point->reserved_bytes / GIB);
    }
    const double margin = fmax(0.06 * (slowest - fastest), 0.02 * slowest);
    HtmlSvg svg = html_plot(out, 400, fmax(fastest - margin, 0), slowest + margin, largest * 1.08), narrow;
    html_svg_for_screens(&svg, &narrow);
    html_figure_begin(
        &svg, "front", "Time against memory",
        "Configurations of this model on this cluster that no other beats in both, and this scenario.",
        false);
    html_legend(out, (const char *const[]){"#0072B2", "#D55E00"},
                (const char *const[]){"searched", "this scenario"}, 2);
    draw_front(&svg, input);
    html_svg_end(&svg);
    draw_front(&narrow, input);
    html_figure_end(&narrow);
}
