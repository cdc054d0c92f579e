/* html/svg.h - one figure: its frame, axes and marks, in SVG units (about a pixel on a desk). */
#ifndef ORR_HTML_SVG_H
#define ORR_HTML_SVG_H

#include <glib.h>
#include <stdbool.h>

/* Where a drawing is shown. */
typedef enum { HTML_ALL_SCREENS, HTML_DESKS, HTML_PHONES } HtmlScreens;

typedef struct HtmlSvg {
    GString *out;
    double width, height;
    double left, right, top, bottom; /* edges of the plot area */
    double x0, x1, y0, y1;           /* data at left, right, bottom, top */
    HtmlScreens screens;
} HtmlSvg;

/* The same figure for a phone: as high, half as wide, what is beside the plot area as it was. */
void html_svg_for_screens(HtmlSvg *wide, HtmlSvg *ret_narrow);

/* A plot with an axis on the left: `height` in SVG units, data from x0 to x1 across and from 0 up to y1. */
HtmlSvg html_plot(GString *out, double height, double x0, double x1, double y1);

/* Text with <, &, quotes and control characters made harmless. */
void html_escape(GString *out, const char *text);
/* printf whose every %s is escaped by the caller where it is not ours; numbers with a point in every locale. */
void html_number(GString *out, double value, int decimals);

/* Opens a <figure> with a heading, a line of text under it and an SVG that may be zoomed. */
void html_figure_begin(HtmlSvg *svg, const char *id, const char *heading, const char *caption, bool zoom);
/* The legend, a colour and a label each, comes before the SVG. */
void html_legend(GString *out, const char *const *colours, const char *const *labels, int count);
void html_svg_begin(HtmlSvg *svg, const char *label, bool zoom);
/* Between these two nothing is seen beyond the plot area. A zoom stretches a window of class "moves" along x; all else
 * stays where it is. */
void html_svg_window_begin(HtmlSvg *svg, const char *class);
void html_svg_window_end(HtmlSvg *svg);
/* Between the drawings of one figure. */
void html_svg_end(HtmlSvg *svg);
/* After the last one. */
void html_figure_end(HtmlSvg *svg);

double html_svg_x(const HtmlSvg *svg, double x);
double html_svg_y(const HtmlSvg *svg, double y);

/* Fills with a colour; `title` (may be NULL) is what the pointer reads. */
void html_svg_rect(HtmlSvg *svg, double x, double y, double width, double height, const char *colour,
                   const char *title);
void html_svg_line(HtmlSvg *svg, double x0, double y0, double x1, double y1, const char *class);
/* anchor: start, middle, end. */
void html_svg_text(HtmlSvg *svg, double x, double y, const char *anchor, const char *class, const char *text);

/* Ticks at round numbers with a grid line each; `unit` stands at the axis. */
void html_svg_axis_x(HtmlSvg *svg, const char *unit);
void html_svg_axis_y(HtmlSvg *svg, const char *unit);

#endif
