/* html/figure_pipeline.c - the timeline: a lane a pipeline rank, one path a colour, numbers where they have room. */
#include <math.h>

#include "html/csv.h"
#include "html/figures.h"
#include "html/svg.h"
#include "plots/colours.h"
#include "plots/data.h"

#define MAX_LANES     64
#define MANY_BOXES    30000 /* above: shares of each moment */
#define MOST_PASSES   20000 /* above: the pointer is told nothing */
#define SHARE_COLUMNS 400
#define DIGIT         7.5 /* width of a digit */

typedef struct Columns {
    int rank, band, start, end, kind, microbatch, pass_start, pass_end, stage;
} Columns;

typedef struct Drawing {
    const Report *report;
    const PlotTimeline *timeline;
    const HtmlCsv *csv;
    Columns at;
    HtmlSvg svg;
    double lane_height;
} Drawing;

static Columns find_columns(const HtmlCsv *csv)
{
    return (Columns){.rank = html_csv_column(csv, "rank"),
                     .band = html_csv_column(csv, "band"),
                     .start = html_csv_column(csv, "start"),
                     .end = html_csv_column(csv, "end"),
                     .kind = html_csv_column(csv, "kind"),
                     .microbatch = html_csv_column(csv, "microbatch"),
                     .pass_start = html_csv_column(csv, "pass_start"),
                     .pass_end = html_csv_column(csv, "pass_end"),
                     .stage = html_csv_column(csv, "stage")};
}

static bool is_tall(const Drawing *drawing, int row)
{
    return html_csv_text(drawing->csv, row, drawing->at.band)[0] == 'c';
}

static double lane_top(const Drawing *drawing, int row)
{
    const int rank = (int)html_csv_number(drawing->csv, row, drawing->at.rank);
    return drawing->svg.top + rank / drawing->timeline->lane_step * drawing->lane_height;
}

static int kind_of_row(const Drawing *drawing, int row)
{
    const char *label = html_csv_text(drawing->csv, row, drawing->at.kind);
    for (int i = 0; i < drawing->timeline->kind_count; i++)
        if (g_str_equal(drawing->timeline->kinds[i]->label, label))
            return i;
    g_assert_not_reached();
}

/* "M12.3 45h6v7h-6z" */
static void box(GString *path, double x, double y, double width, double height)
{
    g_string_append_c(path, 'M');
    html_number(path, x, 2);
    g_string_append_c(path, ' ');
    html_number(path, y, 1);
    g_string_append_c(path, 'h');
    html_number(path, width, 2);
    g_string_append_c(path, 'v');
    html_number(path, height, 1);
    g_string_append_c(path, 'h');
    html_number(path, -width, 2);
    g_string_append_c(path, 'z');
}

/* Every box on its own. */
static void add_boxes(Drawing *drawing, GString **paths)
{
    const Columns *at = &drawing->at;
    for (int row = 0; row < drawing->csv->rows; row++) {
        const bool tall = is_tall(drawing, row);
        const double x = html_svg_x(&drawing->svg, html_csv_number(drawing->csv, row, at->start));
        const double end = html_svg_x(&drawing->svg, html_csv_number(drawing->csv, row, at->end));
        box(paths[kind_of_row(drawing, row)], x,
            lane_top(drawing, row) + (tall ? 0.04 : 0.73) * drawing->lane_height, MAX(end - x, 0.02),
            (tall ? 0.66 : 0.16) * drawing->lane_height);
    }
}

/* "M12.3 45" or "L12.3 45": a corner of a band of shares. */
static void corner(GString *path, const HtmlSvg *svg, double x, double y, bool first)
{
    g_string_append_c(path, first ? 'M' : 'L');
    html_number(path, svg->left + (svg->right - svg->left) * x, 2);
    g_string_append_c(path, ' ');
    html_number(path, y, 1);
}

/* Too many boxes: how much of each moment of a lane's compute goes into each kind, stacked. */
static void add_shares(Drawing *drawing, GString **paths)
{
    const PlotTimeline *timeline = drawing->timeline;
    PlotShares shares = plot_shares(timeline, SHARE_COLUMNS);
    int columns[SHARE_COLUMNS];
    for (int i = 0; i < shares.lanes * shares.kinds; i++) {
        const int lane = i / shares.kinds, kind = i % shares.kinds;
        const int count = plot_shares_points(&shares, lane, kind, columns);
        const double bottom = drawing->svg.top + (lane + 0.86) * drawing->lane_height;
        for (int at = 0; at < 2 * count; at++) {
            const int column = columns[at < count ? at : 2 * count - 1 - at];
            const double x = column == 0                   ? 0
                             : column + 1 == SHARE_COLUMNS ? 1
                                                           : (column + 0.5) / SHARE_COLUMNS;
            double low = 0, high = 0;
            plot_shares_band(&shares, lane, kind, column, &low, &high);
            corner(paths[kind], &drawing->svg, x,
                   bottom - 0.82 * drawing->lane_height * (at < count ? high : low), at == 0);
        }
        g_string_append(paths[kind], count > 0 ? "z" : "");
    }
    plot_shares_clear(&shares);
}

static void add_numbers(Drawing *drawing)
{
    const Columns *at = &drawing->at;
    const HtmlCsv *csv = drawing->csv;
    for (int row = 0; row < csv->rows; row++) {
        const PlotKind *kind = drawing->timeline->kinds[kind_of_row(drawing, row)];
        const char *number = html_csv_text(csv, row, at->microbatch);
        const double x0 = html_svg_x(&drawing->svg, html_csv_number(csv, row, at->pass_start));
        const double x1 = html_svg_x(&drawing->svg, html_csv_number(csv, row, at->pass_end));
        if (!kind->pass || number[0] == '-' || !is_tall(drawing, row) ||
            x1 - x0 < DIGIT * (double)strlen(number) + 2)
            continue;
        html_svg_text(&drawing->svg, (x0 + x1) / 2, lane_top(drawing, row) + 0.37 * drawing->lane_height + 4,
                      "middle", kind->dark ? "mb light" : "mb", number);
    }
}

static void add_lanes(Drawing *drawing)
{
    HtmlSvg *svg = &drawing->svg;
    const PlotTimeline *timeline = drawing->timeline;
    const bool crowded = drawing->csv->rows > MANY_BOXES;
    const int every = timeline->lanes > 32 ? 4 : timeline->lanes > 16 ? 2 : 1;
    for (int lane = 0; lane < timeline->lanes; lane++) {
        const double y = svg->top + lane * drawing->lane_height;
        char name[16];
        g_snprintf(name, sizeof name, "%d", lane * timeline->lane_step);
        g_string_append(svg->out, "<rect class=\"idle\"");
        g_string_append_printf(svg->out, " x=\"%.0f\" y=\"%.1f\" width=\"%.0f\" height=\"%.1f\"/>\n",
                               svg->left, y + 0.04 * drawing->lane_height, svg->right - svg->left,
                               (crowded ? 0.82 : 0.66) * drawing->lane_height);
        if (lane % every == 0)
            html_svg_text(svg, svg->left - 8, y + 0.37 * drawing->lane_height + 4, "end", "tick", name);
    }
    html_svg_text(svg, 8, svg->top - 10, "start", "unit", "pipeline rank");
}

/* What the pointer reads: rank, from, to, kind, stage, micro-batch of every pass. */
static void add_passes(const Drawing *drawing, GString *out)
{
    const Columns *at = &drawing->at;
    const HtmlCsv *csv = drawing->csv;
    if (csv->rows > MOST_PASSES)
        return;
    g_string_append_printf(out,
                           "<script type=\"application/json\" id=\"passes\">{\"unit\":\"%s\",\"kinds\":[",
                           drawing->timeline->unit);
    for (int i = 0; i < drawing->timeline->kind_count; i++)
        g_string_append_printf(out, "%s\"%s\"", i > 0 ? "," : "", drawing->timeline->kinds[i]->label);
    g_string_append(out, "],\"numbered\":[");
    for (int i = 0; i < drawing->timeline->kind_count; i++) /* 1: dark letters, 2: light ones */
        g_string_append_printf(out, "%s%d", i > 0 ? "," : "",
                               !drawing->timeline->kinds[i]->pass  ? 0
                               : drawing->timeline->kinds[i]->dark ? 2
                                                                   : 1);
    g_string_append_printf(
        out,
        "],\"left\":%.0f,\"right\":%.0f,\"top\":%.0f,\"lane\":%.2f,\"step\":%d,\"end\":", drawing->svg.left,
        drawing->svg.right, drawing->svg.top, drawing->lane_height, drawing->timeline->lane_step);
    html_number(out, drawing->timeline->end, 9);
    g_string_append(out, ",\"rows\":[");
    for (int row = 0; row < csv->rows; row++) {
        g_string_append_printf(out, "%s[%s,%d,", row > 0 ? "," : "", html_csv_text(csv, row, at->rank),
                               is_tall(drawing, row) ? 0 : 1);
        html_number(out, html_csv_number(csv, row, at->start), 6);
        g_string_append_c(out, ',');
        html_number(out, html_csv_number(csv, row, at->end), 6);
        g_string_append_printf(out, ",%d,%s,%s]", kind_of_row(drawing, row),
                               html_csv_text(csv, row, at->stage), html_csv_text(csv, row, at->microbatch));
    }
    g_string_append(out, "]}</script>\n");
}

static void draw(Drawing *drawing)
{
    GString *out = drawing->svg.out;
    const PlotTimeline *timeline = drawing->timeline;
    GString *paths[PLOT_KINDS];
    for (int i = 0; i < timeline->kind_count; i++)
        paths[i] = g_string_new(NULL);
    if (drawing->csv->rows > MANY_BOXES)
        add_shares(drawing, paths);
    else
        add_boxes(drawing, paths);
    add_lanes(drawing);
    html_svg_window_begin(&drawing->svg, "moves");
    for (int i = 0; i < timeline->kind_count; i++) {
        g_string_append_printf(out, "<path fill=\"%s\" d=\"%s\"/>\n", plot_colour(timeline->kinds[i]->label),
                               paths[i]->str);
        g_string_free(paths[i], TRUE);
    }
    html_svg_window_end(&drawing->svg);
    html_svg_window_begin(&drawing->svg, "numbers");
    if (drawing->csv->rows <= MANY_BOXES)
        add_numbers(drawing);
    html_svg_window_end(&drawing->svg);
    g_autofree char *unit = g_strdup_printf("time (%s)", timeline->unit);
    html_svg_axis_x(&drawing->svg, unit);
}

static void write_legend(const PlotTimeline *timeline, GString *out)
{
    const char *colours[PLOT_KINDS + 1], *labels[PLOT_KINDS + 1];
    for (int i = 0; i < timeline->kind_count; i++) {
        colours[i] = plot_colour(timeline->kinds[i]->label);
        labels[i] = timeline->kinds[i]->label;
    }
    colours[timeline->kind_count] = "var(--idle)";
    labels[timeline->kind_count] = "idle";
    html_legend(out, colours, labels, timeline->kind_count + 1);
}

void html_pipeline(const Report *report, GString *out)
{
    PlotTimeline timeline = plot_timeline(report, MAX_LANES);
    HtmlCsv csv = html_csv_read(timeline.csv);
    Drawing drawing = {.report = report, .timeline = &timeline, .csv = &csv, .at = find_columns(&csv)};
    drawing.lane_height = CLAMP(620.0 / timeline.lanes, 13.0, 46.0);
    const double bottom = 34 + drawing.lane_height * timeline.lanes;
    drawing.svg = (HtmlSvg){.out = out,
                            .width = 960,
                            .height = bottom + 48,
                            .left = 44,
                            .right = 950,
                            .top = 34,
                            .bottom = bottom,
                            .x0 = 0,
                            .x1 = timeline.end,
                            .y0 = 0,
                            .y1 = 1};
    g_autofree char *caption = g_strdup_printf(
        "What each pipeline rank does during one step: its compute, and in the thin strip below its other "
        "streams. "
        "Ranks are idle for %.1f %% of the step on average.%s",
        report->bubble_frac * 100.0,
        csv.rows > MANY_BOXES ? " So many passes that each moment shows their shares." : "");
    html_figure_begin(&drawing.svg, "pipeline", "The step, rank by rank", caption, true);
    write_legend(&timeline, out);
    html_svg_begin(&drawing.svg, "timeline of the pipeline", true);
    draw(&drawing);
    html_figure_end(&drawing.svg);
    add_passes(&drawing, out);
    html_csv_clear(&csv);
    plot_timeline_clear(&timeline);
}
