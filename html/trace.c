/* html/trace.c - see trace.h. Seconds of the answer are shown in milliseconds. */
#include "html/trace.h"

#include <math.h>

#include "base/units.h"
#include "html/frame.h"
#include "html/svg.h"

#define MS_PER_S   1e3
#define MOST_OPS   60
#define ROW_HEIGHT 34.0
#define MEASURED   "#0072B2"
#define OTHER      "#E69F00"
#define MORE       "#D55E00"
#define LESS       "#009E73"

static const char *other_word(const TraceAnswer *answer)
{
    return answer->recorded ? "beside it" : "predicted";
}

static void put_ms(GString *out, double seconds)
{
    html_number(out, seconds * MS_PER_S, 3);
}

static void put_frac(GString *out, double measured_s, double other_s)
{
    if (measured_s <= 0) {
        g_string_append(out, "-");
        return;
    }
    const double percent = 100 * (other_s / measured_s - 1);
    g_string_append(out, percent >= 0 ? "+" : "");
    html_number(out, percent, 1);
    g_string_append(out, " %");
}

/* --- figures: a row a bar --- */

static HtmlSvg rows_of(GString *out, int rows, double most_s)
{
    HtmlSvg svg = {.out = out, .width = 960, .left = 360, .right = 870, .top = 8, .y1 = 1};
    svg.bottom = svg.top + 6 + ROW_HEIGHT * rows;
    svg.height = svg.bottom + 52;
    svg.x1 = fmax(most_s * MS_PER_S, 1e-9);
    return svg;
}

/* From `from_s` to `to_s`; `at` and `share` of the row's height. The number stands behind it. */
static void bar(HtmlSvg *svg, int row, double at, double share, double from_s, double to_s,
                const char *colour, const char *number)
{
    const double x0 = html_svg_x(svg, fmin(from_s, to_s) * MS_PER_S),
                 x1 = html_svg_x(svg, fmax(from_s, to_s) * MS_PER_S), y = svg->top + ROW_HEIGHT * (row + at);
    html_svg_rect(svg, x0, y, fmax(x1 - x0, 0.5), ROW_HEIGHT * share, colour, number);
    html_svg_text(svg, x1 + 6, y + ROW_HEIGHT * share / 2 + 4, "start", "value", number);
}

static void label(HtmlSvg *svg, int row, const char *text)
{
    html_svg_text(svg, svg->left - 10, svg->top + ROW_HEIGHT * (row + 0.5) + 4, "end", "label", text);
}

static void write_classes(const TraceAnswer *answer, GString *out)
{
    const char *colours[] = {MEASURED, OTHER}, *labels[] = {"measured", other_word(answer)};
    int shown[TRACE_CLASSES], rows = 0;
    double most_s = 0;
    for (int kind = 0; kind < TRACE_CLASSES; kind++) {
        const double one_s = answer->measured.class_busy_s[kind],
                     other_s = answer->predicted.class_busy_s[kind];
        if (one_s <= 0 && other_s <= 0)
            continue;
        shown[rows++] = kind;
        most_s = fmax(most_s, fmax(one_s, other_s));
    }
    HtmlSvg svg = rows_of(out, rows, most_s);
    html_figure_begin(&svg, "classes", "Kernels by class",
                      "Milliseconds of a step in which one kernel of the class or more runs.", false);
    if (answer->compared)
        html_legend(out, colours, labels, 2);
    html_svg_begin(&svg, "milliseconds of each class of kernels", false);
    for (int row = 0; row < rows; row++) {
        const double one_s = answer->measured.class_busy_s[shown[row]],
                     other_s = answer->predicted.class_busy_s[shown[row]];
        g_autoptr(GString) number = g_string_new(NULL);
        label(&svg, row, trace_class_word((TraceClass)shown[row]));
        put_ms(number, one_s);
        bar(&svg, row, 0.1, answer->compared ? 0.4 : 0.8, 0, one_s, MEASURED, number->str);
        if (!answer->compared)
            continue;
        g_string_truncate(number, 0);
        put_ms(number, other_s);
        g_string_append(number, "  ");
        put_frac(number, one_s, other_s);
        bar(&svg, row, 0.5, 0.4, 0, other_s, OTHER, number->str);
    }
    html_svg_axis_x(&svg, "ms");
    html_figure_end(&svg);
}

/* From the predicted step to the measured one: what each part of it adds or saves. */
static void write_waterfall(const TraceAnswer *answer, GString *out)
{
    const double from_s = answer->predicted.step_s, to_s = answer->measured.step_s;
    double at_s = from_s, most_s = fmax(from_s, to_s);
    for (int fall = 0; fall < TRACE_FALLS; fall++) {
        at_s += answer->measured.fall_s[fall] - answer->predicted.fall_s[fall];
        most_s = fmax(most_s, at_s);
    }
    HtmlSvg svg = rows_of(out, TRACE_FALLS + 2, most_s);
    g_autofree char *heading =
        g_strdup_printf("From the step %s to the one measured", answer->recorded ? "beside it" : "predicted");
    g_autoptr(GString) number = g_string_new(NULL);
    html_figure_begin(
        &svg, "waterfall", heading,
        "Every instant of a step is one of these; a bar is what the measured step has more or less.", false);
    html_svg_begin(&svg, heading, false);
    put_ms(number, from_s);
    label(&svg, 0, answer->recorded ? "step beside it" : "predicted step");
    bar(&svg, 0, 0.15, 0.7, 0, from_s, OTHER, number->str);
    at_s = from_s;
    for (int fall = 0; fall < TRACE_FALLS; fall++) {
        const double more_s = answer->measured.fall_s[fall] - answer->predicted.fall_s[fall];
        g_string_assign(number, more_s >= 0 ? "+" : "");
        put_ms(number, more_s);
        label(&svg, fall + 1, trace_fall_help((TraceFall)fall));
        bar(&svg, fall + 1, 0.15, 0.7, at_s, at_s + more_s, more_s >= 0 ? MORE : LESS, number->str);
        at_s += more_s;
    }
    g_string_truncate(number, 0);
    put_ms(number, to_s);
    label(&svg, TRACE_FALLS + 1, "measured step");
    bar(&svg, TRACE_FALLS + 1, 0.15, 0.7, 0, to_s, MEASURED, number->str);
    html_svg_axis_x(&svg, "ms");
    html_figure_end(&svg);
}

static void write_parts(const TraceAnswer *answer, GString *out)
{
    HtmlSvg svg = rows_of(out, TRACE_FALLS, answer->measured.step_s);
    html_figure_begin(&svg, "waterfall", "What every instant of the step went to",
                      "Milliseconds; they add up to the step.", false);
    html_svg_begin(&svg, "parts of the step", false);
    double at_s = 0;
    for (int fall = 0; fall < TRACE_FALLS; fall++) {
        g_autoptr(GString) number = g_string_new(NULL);
        put_ms(number, answer->measured.fall_s[fall]);
        label(&svg, fall, trace_fall_help((TraceFall)fall));
        bar(&svg, fall, 0.15, 0.7, at_s, at_s + answer->measured.fall_s[fall], MEASURED, number->str);
        at_s += answer->measured.fall_s[fall];
    }
    html_svg_axis_x(&svg, "ms");
    html_figure_end(&svg);
}

/* --- words and the table --- */

static void write_lead(const TraceAnswer *answer, GString *out)
{
    char step[ORR_TEXT_SIZE];
    orr_text_seconds(step, answer->measured.step_s);
    g_string_append_printf(out, "<p class=\"lead\">A step takes <b>%s</b>", step);
    if (answer->compared) {
        orr_text_seconds(step, answer->predicted.step_s);
        g_string_append_printf(out, "; %s: <b>%s</b>, ", other_word(answer), step);
        put_frac(out, answer->measured.step_s, answer->predicted.step_s);
    }
    g_string_append(out, ".</p>\n");
    if (!answer->measured.marked)
        g_string_append(out, "<p>No ProfilerStep is marked: all of the trace is one step.</p>\n");
    if (answer->compared && answer->cancelled && !answer->recorded)
        g_string_append(out, "<p class=\"bad\">The sum of all kernels is right by cancellation.</p>\n");
}

static void write_op(const TraceAnswer *answer, const TraceOpRow *row, GString *out)
{
    g_string_append(out, "<tr><td class=\"long\">");
    html_escape(out, row->text);
    g_string_append_printf(out, "</td><td>%s</td><td>", trace_class_word(row->kind));
    html_number(out, row->measured_kernels, 2);
    g_string_append(out, "</td><td>");
    put_ms(out, row->measured_s);
    if (answer->compared) {
        g_string_append(out, "</td><td>");
        put_ms(out, row->predicted_s);
        g_string_append(out, "</td><td>");
        put_frac(out, row->measured_s, row->predicted_s);
    }
    g_string_append(out, "</td></tr>\n");
}

static void write_ops(const TraceAnswer *answer, GString *out)
{
    g_string_append_printf(out, "<h2>%s</h2>\n<div class=\"scroll\"><table>\n",
                           answer->compared ? "Ops, largest difference first" : "Kernels, longest first");
    g_string_append(out, "<tr><th>op</th><th>class</th><th>kernels</th><th>measured (ms)</th>");
    if (answer->compared)
        g_string_append_printf(out, "<th>%s (ms)</th><th>%s</th>", other_word(answer),
                               answer->recorded ? "change" : "error");
    g_string_append(out, "</tr>\n");
    for (guint i = 0; i < answer->ops->len && i < MOST_OPS; i++)
        write_op(answer, &g_array_index(answer->ops, TraceOpRow, i), out);
    g_string_append(out, "</table></div>\n");
    if (answer->ops->len > MOST_OPS)
        g_string_append_printf(out, "<p>The first %d of %u; --format csv has all.</p>\n", MOST_OPS,
                               answer->ops->len);
    if (!answer->compared)
        return;
    g_string_append(out, "<p>Met by nothing on the other side: ");
    put_ms(out, answer->unmatched_measured_s);
    g_string_append(out, " ms measured, ");
    put_ms(out, answer->unmatched_predicted_s);
    g_string_append_printf(out, " ms %s.</p>\n", other_word(answer));
}

void html_trace_write(const TraceAnswer *answer, const char *command, GString *out)
{
    const TraceRank *first = answer->ranks->pdata[0];
    g_autofree char *more = answer->ranks->len > 1
                                ? g_strdup_printf(", %u ranks: a step as it ran", answer->ranks->len)
                                : g_strdup(": a step as it ran");
    html_begin(first->device[0] != '\0' ? first->device : "a GPU of unknown name", more, out);
    write_lead(answer, out);
    if (answer->compared)
        write_waterfall(answer, out);
    else
        write_parts(answer, out);
    write_classes(answer, out);
    write_ops(answer, out);
    html_end(NULL, command, false, out);
}
