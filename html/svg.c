/* html/svg.c - figures as SVG. */
#include "html/svg.h"
#include "base/shown.h"

#include <math.h>
#include <string.h>

void html_escape(GString *out, const char *text)
{
    g_autofree char *shown = orr_shown(text, ' ', "");
    for (const char *c = shown; *c != '\0'; c++) {
        if (*c == '<')
            g_string_append(out, "&lt;");
        else if (*c == '>')
            g_string_append(out, "&gt;");
        else if (*c == '&')
            g_string_append(out, "&amp;");
        else if (*c == '"')
            g_string_append(out, "&quot;");
        else
            g_string_append_c(out, *c);
    }
}

void html_number(GString *out, double value, int decimals)
{
    char format[8], text[G_ASCII_DTOSTR_BUF_SIZE];
    g_snprintf(format, sizeof format, "%%.%df", decimals);
    g_ascii_formatd(text, sizeof text, format, value);
    if (strchr(text, '.') != NULL) { /* "12.50" is "12.5" */
        char *end = text + strlen(text);
        while (end[-1] == '0')
            *--end = '\0';
        if (end[-1] == '.')
            *--end = '\0';
    }
    g_string_append(out, g_str_equal(text, "-0") ? "0" : text);
}

static void attribute(GString *out, const char *name, double value)
{
    g_string_append_printf(out, " %s=\"", name);
    html_number(out, value, 2);
    g_string_append_c(out, '"');
}

HtmlSvg html_plot(GString *out, double height, double x0, double x1, double y1)
{
    const double below = 50; /* the axis's labels */
    return (HtmlSvg){.out = out,
                     .width = 960,
                     .height = height,
                     .left = 54,
                     .right = 950,
                     .top = 30,
                     .bottom = height - below,
                     .x0 = x0,
                     .x1 = x1,
                     .y1 = y1};
}

void html_svg_for_screens(HtmlSvg *wide, HtmlSvg *ret_narrow)
{
    const double less = wide->width / 2;
    wide->screens = HTML_DESKS;
    *ret_narrow = *wide;
    ret_narrow->screens = HTML_PHONES;
    ret_narrow->width -= less;
    ret_narrow->right -= less;
}

void html_figure_begin(HtmlSvg *svg, const char *id, const char *heading, const char *caption, bool zoom)
{
    GString *out = svg->out;
    g_string_append_printf(out, "<figure id=\"%s\"><h3>", id);
    html_escape(out, heading);
    g_string_append(out, "</h3>\n<figcaption>");
    html_escape(out, caption);
    g_string_append(out, "</figcaption>\n");
    if (zoom)
        g_string_append(out,
                        "<p class=\"zoom\" hidden><button type=\"button\" data-zoom=\"2\" aria-label=\"zoom "
                        "in\">+</button> "
                        "<button type=\"button\" data-zoom=\"0.5\" aria-label=\"zoom out\">\u2212</button> "
                        "<button type=\"button\" data-zoom=\"0\">whole step</button> "
                        "<span class=\"keys\">drag, arrow keys, + and \u2212</span> "
                        "<output></output></p>\n");
}

void html_legend(GString *out, const char *const *colours, const char *const *labels, int count)
{
    g_string_append(out, "<ul class=\"legend\">");
    for (int i = 0; i < count; i++) {
        g_string_append_printf(out,
                               "<li><svg viewBox=\"0 0 10 10\" aria-hidden=\"true\"><rect width=\"10\" "
                               "height=\"10\" fill=\"%s\"/></svg>",
                               colours[i]);
        html_escape(out, labels[i]);
        g_string_append(out, "</li>");
    }
    g_string_append(out, "</ul>\n");
}

void html_svg_begin(HtmlSvg *svg, const char *label, bool zoom)
{
    static const char *const screens[] = {"", " desks", " phones"};
    GString *out = svg->out;
    g_string_append_printf(out, "<div class=\"wide%s\" tabindex=\"0\" role=\"group\" aria-label=\"",
                           screens[svg->screens]);
    html_escape(out, label);
    g_string_append_printf(out, "\"><svg class=\"plot%s\" role=\"img\" aria-label=\"", zoom ? " zooms" : "");
    html_escape(out, label);
    g_string_append_printf(out, "\" viewBox=\"0 0 %.0f %.0f\"", svg->width, svg->height);
    const double edges[] = {svg->left, svg->right, svg->top, svg->bottom, svg->x0, svg->x1};
    static const char *const names[] = {"left", "right", "top", "bottom", "x0", "x1"};
    for (gsize i = 0; zoom && i < G_N_ELEMENTS(edges); i++) {
        g_string_append_printf(out, " data-%s=\"", names[i]);
        html_number(out, edges[i], 6);
        g_string_append_c(out, '"');
    }
    g_string_append(out, ">\n");
}

void html_svg_window_begin(HtmlSvg *svg, const char *class)
{
    const double width = svg->right - svg->left;
    g_string_append_printf(svg->out,
                           "<svg x=\"%.0f\" y=\"0\" width=\"%.0f\" height=\"%.0f\" viewBox=\"%.0f 0 %.0f "
                           "%.0f\"><g class=\"%s\">\n",
                           svg->left, width, svg->height, svg->left, width, svg->height, class);
}

void html_svg_window_end(HtmlSvg *svg)
{
    g_string_append(svg->out, "</g></svg>\n");
}

void html_svg_end(HtmlSvg *svg)
{
    g_string_append(svg->out, "</svg></div>\n");
}

void html_figure_end(HtmlSvg *svg)
{
    html_svg_end(svg);
    g_string_append(svg->out, "</figure>\n");
}

double html_svg_x(const HtmlSvg *svg, double x)
{
    return svg->left + (svg->right - svg->left) * (x - svg->x0) / (svg->x1 - svg->x0);
}

double html_svg_y(const HtmlSvg *svg, double y)
{
    return svg->bottom - (svg->bottom - svg->top) * (y - svg->y0) / (svg->y1 - svg->y0);
}

void html_svg_rect(HtmlSvg *svg, double x, double y, double width, double height, const char *colour,
                   const char *title)
{
    g_string_append(svg->out, "<rect");
    attribute(svg->out, "x", x);
    attribute(svg->out, "y", y);
    attribute(svg->out, "width", width);
    attribute(svg->out, "height", height);
    g_string_append_printf(svg->out, " fill=\"%s\"", colour);
    if (title == NULL) {
        g_string_append(svg->out, "/>\n");
        return;
    }
    g_string_append(svg->out, "><title>");
    html_escape(svg->out, title);
    g_string_append(svg->out, "</title></rect>\n");
}

void html_svg_line(HtmlSvg *svg, double x0, double y0, double x1, double y1, const char *class)
{
    g_string_append_printf(svg->out, "<line class=\"%s\"", class);
    attribute(svg->out, "x1", x0);
    attribute(svg->out, "y1", y0);
    attribute(svg->out, "x2", x1);
    attribute(svg->out, "y2", y1);
    g_string_append(svg->out, "/>\n");
}

void html_svg_text(HtmlSvg *svg, double x, double y, const char *anchor, const char *class, const char *text)
{
    g_string_append_printf(svg->out, "<text class=\"%s\" text-anchor=\"%s\"", class, anchor);
    attribute(svg->out, "x", x);
    attribute(svg->out, "y", y);
    g_string_append_c(svg->out, '>');
    html_escape(svg->out, text);
    g_string_append(svg->out, "</text>\n");
}

/* 1, 2 or 5 times a power of ten, at most `most` of them in `span`. */
static double round_step(double span, int most)
{
    const double least = span / most, power = pow(10.0, floor(log10(least)));
    static const double steps[] = {1, 2, 5, 10};
    for (gsize i = 0; i < G_N_ELEMENTS(steps); i++)
        if (steps[i] * power >= least * (1 - 1e-9))
            return steps[i] * power;
    return 10 * power;
}

static void tick_text(char *text, gsize size, double value, double step)
{
    const int decimals = step >= 1 ? 0 : (int)ceil(-log10(step) - 1e-9);
    char format[8];
    g_snprintf(format, sizeof format, "%%.%df", decimals);
    g_ascii_formatd(text, (gint)size, format, value);
}

void html_svg_axis_x(HtmlSvg *svg, const char *unit)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    const double step = round_step(svg->x1 - svg->x0, 8);
    g_string_append(svg->out, "<g class=\"ticks\">\n");
    for (double x = ceil(svg->x0 / step) * step + 0.0; x <= svg->x1 * (1 + 1e-9); x += step) {
        tick_text(text, sizeof text, x, step);
        html_svg_line(svg, html_svg_x(svg, x), svg->bottom, html_svg_x(svg, x), svg->bottom + 5, "axis");
        html_svg_text(svg, html_svg_x(svg, x), svg->bottom + 20, "middle", "tick", text);
    }
    g_string_append(svg->out, "</g>\n");
    html_svg_line(svg, svg->left, svg->bottom, svg->right, svg->bottom, "axis");
    html_svg_text(svg, (svg->left + svg->right) / 2, svg->bottom + 40, "middle", "unit", unit);
}

void html_svg_axis_y(HtmlSvg *svg, const char *unit)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    const double step = round_step(svg->y1 - svg->y0, 6);
    for (double y = ceil(svg->y0 / step) * step; y <= svg->y1 * (1 + 1e-9); y += step) {
        tick_text(text, sizeof text, y, step);
        html_svg_line(svg, svg->left, html_svg_y(svg, y), svg->right, html_svg_y(svg, y), "grid");
        html_svg_text(svg, svg->left - 8, html_svg_y(svg, y) + 4, "end", "tick", text);
    }
    html_svg_text(svg, 8, svg->top - 10, "start", "unit", unit);
}
