/* html/figure_servers.c - parameter servers: what workers do when, and how stale what they read is. */
#include "base/units.h"
#include "html/figures.h"
#include "html/svg.h"
#include "plots/colours.h"
#include "plots/driver.h"

enum { LANE = 46 };

static void row(GString *out, const char *key, const char *value)
{
    g_string_append(out, "<tr><td class=\"key\">");
    html_escape(out, key);
    g_string_append(out, "</td><td>");
    html_escape(out, value);
    g_string_append(out, "</td></tr>\n");
}

static void write_facts(const Report *report, GString *out)
{
    const SimServerResult *servers = report->plan.servers;
    const SpecServers *asked = &report->spec->parallel.servers;
    char a[ORR_TEXT_SIZE], b[ORR_TEXT_SIZE];
    g_string_append(out, "<div class=\"scroll\"><table>\n");
    g_autofree char *what =
        g_strdup_printf("%d %s, scheme %s, updates %s; %d parts go over the wire", asked->servers,
                        spec_word(&spec_words_server_placement, (int)asked->placement),
                        spec_word(&spec_words_server_scheme, (int)asked->scheme),
                        spec_word(&spec_words_server_mode, (int)asked->mode), servers->parts);
    row(out, "servers", what);
    g_autofree char *wire = g_strdup_printf("a push is on its way for %s of a step, a pull for %s",
                                            orr_text_seconds(a, (double)servers->push_ps * 1e-12),
                                            orr_text_seconds(b, (double)servers->pull_ps * 1e-12));
    row(out, "a worker", wire);
    g_autofree char *waits = g_strdup_printf("%s of a step for pulls and for others",
                                             orr_text_seconds(a, (double)servers->exposed_ps * 1e-12));
    row(out, "it waits", waits);
    g_autofree char *busy = g_strdup_printf("adds up and applies for %s of a step",
                                            orr_text_seconds(a, (double)servers->server_ps * 1e-12));
    row(out, "the busiest server", busy);
    g_autofree char *nic =
        g_strdup_printf("%s out and %s in a step", orr_text_si(a, servers->nic_up_bytes, "B"),
                        orr_text_si(b, servers->nic_down_bytes, "B"));
    row(out, "the busiest NIC", nic);
    g_string_append(out, "</table></div>\n");
}

/* Passes tall, pushes and pulls as strips below. */
static void write_workers(const SimServerResult *servers, GString *out)
{
    static const char *const labels[] = {"forward", "backward", "push", "pull", "waits"};
    const char *colours[] = {plot_colour("forward"), plot_colour("backward"), plot_colour("tensor comm"),
                             plot_colour("data comm"), "var(--idle)"};
    static const double bands[][2] = {{0.04, 0.52}, {0.04, 0.52}, {0.60, 0.12}, {0.75, 0.12}};
    int lanes = 0;
    int64_t end_ps = 1;
    double unit_s = 1;
    for (int i = 0; i < servers->op_count; i++) {
        lanes = MAX(lanes, servers->ops[i].worker + 1);
        end_ps = MAX(end_ps, servers->ops[i].end_ps);
    }
    g_autofree char *unit = g_strdup_printf("time (%s)", plot_time_unit((double)end_ps * 1e-12, &unit_s));
    HtmlSvg svg = html_plot(out, 84.0 + LANE * lanes, 0, (double)end_ps * 1e-12 / unit_s, 1);
    g_autofree char *caption =
        g_strdup_printf("The first iterations of %d worker%s.", lanes, lanes == 1 ? "" : "s");
    html_figure_begin(&svg, "workers", "What workers do when", caption, true);
    html_legend(out, colours, labels, (int)G_N_ELEMENTS(labels));
    html_svg_begin(&svg, "timeline of the workers", true);
    for (int lane = 0; lane < lanes; lane++) {
        g_autofree char *name = g_strdup_printf("%d", lane);
        html_svg_rect(&svg, svg.left, svg.top + (lane + 0.04) * LANE, svg.right - svg.left, 0.52 * LANE,
                      "var(--idle)", NULL);
        html_svg_text(&svg, svg.left - 8, svg.top + (lane + 0.4) * LANE, "end", "tick", name);
    }
    html_svg_text(&svg, 8, svg.top - 10, "start", "unit", "worker");
    html_svg_window_begin(&svg, "moves");
    for (int i = 0; i < servers->op_count; i++) {
        const SimServerOp *op = &servers->ops[i];
        const double from = html_svg_x(&svg, (double)op->start_ps * 1e-12 / unit_s),
                     to = html_svg_x(&svg, (double)op->end_ps * 1e-12 / unit_s);
        html_svg_rect(&svg, from, svg.top + (op->worker + bands[op->kind][0]) * LANE, MAX(to - from, 0.2),
                      bands[op->kind][1] * LANE, colours[op->kind], labels[op->kind]);
    }
    html_svg_window_end(&svg);
    html_svg_axis_x(&svg, unit);
    html_figure_end(&svg);
}

static void draw_staleness(HtmlSvg *svg, const SimServerResult *servers, int bins)
{
    html_svg_begin(svg, "histogram of staleness", false);
    html_svg_axis_y(svg, "% of iterations");
    for (int i = 0; i < bins; i++) {
        const double percent = 100.0 * (double)servers->staleness[i] / (double)servers->iterations;
        g_autofree char *title =
            g_strdup_printf("%d%s: %.1f %%", i, i == SIM_STALENESS_BINS - 1 ? "+" : "", percent);
        const double x = html_svg_x(svg, i - 0.4), y = html_svg_y(svg, percent);
        html_svg_rect(svg, x, y, html_svg_x(svg, i + 0.4) - x, svg->bottom - y, plot_colour("forward"),
                      title);
    }
    html_svg_axis_x(svg, "updates of others between a worker's pull and its own update");
}

static void write_staleness(const SimServerResult *servers, GString *out)
{
    int bins = 0;
    double most = 0;
    for (int i = 0; i < SIM_STALENESS_BINS; i++)
        if (servers->staleness[i] > 0) {
            bins = i + 1;
            most = MAX(most, 100.0 * (double)servers->staleness[i] / (double)servers->iterations);
        }
    if (bins < 2) /* all alike: nothing to show */
        return;
    HtmlSvg svg = html_plot(out, 300, -0.6, bins - 0.4, most * 1.1), narrow;
    html_svg_for_screens(&svg, &narrow);
    g_autofree char *caption =
        g_strdup_printf("%.2f on average, %d at most.", servers->staleness_mean, servers->staleness_max);
    html_figure_begin(&svg, "staleness", "How stale gradients are", caption, false);
    draw_staleness(&svg, servers, bins);
    html_svg_end(&svg);
    draw_staleness(&narrow, servers, bins);
    html_figure_end(&narrow);
}

void html_servers(const Report *report, GString *out)
{
    const SimServerResult *servers = report->plan.servers;
    if (servers == NULL)
        return;
    g_string_append(out, "<h2>Parameter servers</h2>\n");
    write_facts(report, out);
    if (servers->op_count > 0)
        write_workers(servers, out);
    if (servers->iterations > 0)
        write_staleness(servers, out);
}
