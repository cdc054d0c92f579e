/* html/sweep.c - see sweep.h. Log axes are linear ones over log10. */
#include "html/sweep.h"

#include <math.h>
#include <string.h>

#include "base/units.h"
#include "html/frame.h"
#include "html/svg.h"

#define MOST_BARS 48 /* of a figure */
#define GROUPS    8  /* colours; what comes later shares the last */

static const char *const colours[GROUPS] = {"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                            "#E69F00", "#56B4E9", "#7A6A9B", "#7F5F3F"};

typedef struct Groups {
    const char *names[GROUPS], *colours[GROUPS];
    int count;
} Groups;

static const char *colour_of(Groups *groups, const char *name)
{
    for (int i = 0; i < groups->count; i++)
        if (strcmp(groups->names[i], name) == 0)
            return colours[i];
    if (groups->count < GROUPS) {
        groups->colours[groups->count] = colours[groups->count];
        groups->names[groups->count++] = name;
    }
    return colours[groups->count - 1];
}

/* --- parts of a figure --- */

static void dot(HtmlSvg *svg, double x, double y, const char *colour, const char *title)
{
    g_string_append(svg->out, "<circle cx=\"");
    html_number(svg->out, html_svg_x(svg, x), 1);
    g_string_append(svg->out, "\" cy=\"");
    html_number(svg->out, html_svg_y(svg, y), 1);
    g_string_append_printf(svg->out, "\" r=\"4\" fill=\"%s\" fill-opacity=\"0.7\"><title>", colour);
    html_escape(svg->out, title);
    g_string_append(svg->out, "</title></circle>\n");
}

/* A tick at each power of ten between the ends, which are logarithms. `unit` after the number, by its letter for a thousand. */
static void log_axis(HtmlSvg *svg, bool is_x, const char *base_unit, const char *unit)
{
    const double low = is_x ? svg->x0 : svg->y0, high = is_x ? svg->x1 : svg->y1;
    for (double power = ceil(low - 1e-9); power <= high + 1e-9; power++) {
        char text[ORR_TEXT_SIZE];
        orr_text_si(text, pow(10, power), base_unit);
        if (is_x) {
            html_svg_line(svg, html_svg_x(svg, power), svg->top, html_svg_x(svg, power), svg->bottom, "grid");
            html_svg_text(svg, html_svg_x(svg, power), svg->bottom + 20, "middle", "tick", text);
        } else {
            html_svg_line(svg, svg->left, html_svg_y(svg, power), svg->right, html_svg_y(svg, power), "grid");
            html_svg_text(svg, svg->left - 8, html_svg_y(svg, power) + 4, "end", "tick", text);
        }
    }
    if (is_x)
        html_svg_text(svg, (svg->left + svg->right) / 2, svg->bottom + 42, "middle", "unit", unit);
    else
        html_svg_text(svg, 8, svg->top - 10, "start", "unit", unit);
}

/* The data's ends, rounded outwards to whole powers of ten. */
static void widen(double value, double *low, double *high)
{
    *low = fmin(*low, floor(log10(value)));
    *high = fmax(fmax(*high, ceil(log10(value))), *low + 1); /* never empty */
}

/* --- roofline --- */

static void draw_roof(HtmlSvg *svg, double peak, double bytes_per_s)
{
    const double top = log10(peak), ridge = bytes_per_s > 0 ? log10(peak / bytes_per_s) : svg->x0;
    const double from = fmin(fmax(ridge, svg->x0), svg->x1);
    html_svg_line(svg, html_svg_x(svg, from), html_svg_y(svg, top), svg->right, html_svg_y(svg, top),
                  "limit");
    if (bytes_per_s <= 0)
        return;
    const double left = fmax(svg->x0, svg->y0 - log10(bytes_per_s));
    html_svg_line(svg, html_svg_x(svg, left), html_svg_y(svg, left + log10(bytes_per_s)),
                  html_svg_x(svg, from), html_svg_y(svg, from + log10(bytes_per_s)), "limit");
}

static void write_roofline(const HtmlSweep *sweep, GString *out)
{
    HtmlSvg svg = {
        .out = out, .width = 960, .height = 470, .left = 92, .right = 920, .top = 30, .bottom = 410};
    Groups groups = {0};
    double best_peak = 0;
    svg.x0 = svg.y0 = INFINITY, svg.x1 = svg.y1 = -INFINITY;
    for (guint i = 0; i < sweep->kernels->len; i++) {
        const HtmlSweepKernel *k = &g_array_index(sweep->kernels, HtmlSweepKernel, i);
        colour_of(&groups, k->group);
        widen(k->flops / k->bytes, &svg.x0, &svg.x1);
        widen(k->flops / k->seconds, &svg.y0, &svg.y1);
        best_peak = fmax(best_peak, k->peak_flops_per_s);
    }
    if (best_peak > 0)
        widen(best_peak, &svg.y0, &svg.y1);
    html_figure_begin(
        &svg, "roofline", "Roofline: what products and attention reach",
        "Rate over FLOPs a byte moved at least once; dashed: the data sheet's memory bandwidth and peaks.",
        false);
    html_legend(out, groups.colours, groups.names, groups.count);
    html_svg_begin(&svg, "roofline", false);
    log_axis(&svg, true, "", "FLOPs a byte");
    log_axis(&svg, false, "FLOP/s", "rate");
    g_autoptr(GHashTable) drawn = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint i = 0; i < sweep->kernels->len; i++) {
        const HtmlSweepKernel *k = &g_array_index(sweep->kernels, HtmlSweepKernel, i);
        if (k->peak_flops_per_s > 0 && g_hash_table_add(drawn, (gpointer)k->group))
            draw_roof(&svg, k->peak_flops_per_s, sweep->memory_bytes_per_s);
    }
    for (guint i = 0; i < sweep->kernels->len; i++) {
        const HtmlSweepKernel *k = &g_array_index(sweep->kernels, HtmlSweepKernel, i);
        char rate[ORR_TEXT_SIZE];
        g_autofree char *title = g_strdup_printf("%s %s: %s", k->group, k->what,
                                                 orr_text_si(rate, k->flops / k->seconds, "FLOP/s"));
        dot(&svg, log10(k->flops / k->bytes), log10(k->flops / k->seconds), colour_of(&groups, k->group),
            title);
    }
    html_figure_end(&svg);
}

/* --- products --- */

static void write_product(HtmlSvg *svg, const HtmlSweepKernel *k)
{
    const double frac = k->flops / k->seconds / k->peak_flops_per_s;
    const double x = html_svg_x(svg, log10(k->m)), y = html_svg_y(svg, log10(k->width));
    g_autofree char *title = g_strdup_printf("%s: %.1f %% of the peak", k->what, 100 * frac);
    g_autofree char *share = g_strdup_printf("%.0f", 100 * frac);
    g_string_append_printf(svg->out, "<g fill-opacity=\"%d%%\">", (int)CLAMP(10 + 90 * frac, 10, 100));
    html_svg_rect(svg, x - 17, y - 9, 34, 18, "#0072B2", title);
    g_string_append(svg->out, "</g>");
    html_svg_text(svg, x, y + 4, "middle", frac > 0.5 ? "mb light" : "mb", share);
}

/* The best product of each octave of tokens and half octave of width: more would lie on each other. */
static GArray *best_products(const GArray *kernels)
{
    GArray *best = g_array_new(FALSE, FALSE, sizeof(HtmlSweepKernel));
    for (guint i = 0; i < kernels->len; i++) {
        const HtmlSweepKernel *k = &g_array_index(kernels, HtmlSweepKernel, i);
        guint at = 0;
        if (!(k->m > 0 && k->peak_flops_per_s > 0))
            continue;
        for (; at < best->len; at++) {
            const HtmlSweepKernel *held = &g_array_index(best, HtmlSweepKernel, at);
            if (lround(log2(held->m)) == lround(log2(k->m)) &&
                lround(2 * log2(held->width)) == lround(2 * log2(k->width)))
                break;
        }
        if (at == best->len)
            g_array_append_val(best, *k);
        HtmlSweepKernel *held = &g_array_index(best, HtmlSweepKernel, at);
        if (k->flops / k->seconds > held->flops / held->seconds)
            *held = *k;
    }
    return best;
}

static void write_products(const HtmlSweep *sweep, GString *out)
{
    HtmlSvg svg = {
        .out = out, .width = 960, .height = 440, .left = 92, .right = 920, .top = 30, .bottom = 380};
    g_autoptr(GArray) best = best_products(sweep->kernels);
    svg.x0 = svg.y0 = INFINITY, svg.x1 = svg.y1 = -INFINITY;
    for (guint i = 0; i < best->len; i++) {
        const HtmlSweepKernel *k = &g_array_index(best, HtmlSweepKernel, i);
        svg.x0 = fmin(svg.x0, log10(k->m) - 0.15), svg.x1 = fmax(svg.x1, log10(k->m) + 0.15);
        svg.y0 = fmin(svg.y0, log10(k->width) - 0.1), svg.y1 = fmax(svg.y1, log10(k->width) + 0.1);
    }
    if (best->len == 0)
        return;
    html_figure_begin(
        &svg, "products", "bf16 products of the forward pass: share of the peak, %",
        "Rows of the product (tokens) over the width of its weights, the square root of their number; the "
        "best of each octave of rows and half octave of width.",
        false);
    html_svg_begin(&svg, "efficiency of products", false);
    log_axis(&svg, true, "", "tokens");
    log_axis(&svg, false, "", "width");
    for (guint i = 0; i < best->len; i++)
        write_product(&svg, &g_array_index(best, HtmlSweepKernel, i));
    html_figure_end(&svg);
}

/* --- memory --- */

/* The fastest row of each kernel, in the order in which they come. */
static GArray *best_moves(const GArray *moves)
{
    GArray *best = g_array_new(FALSE, FALSE, sizeof(HtmlSweepMove));
    for (guint i = 0; i < moves->len; i++) {
        const HtmlSweepMove *move = &g_array_index(moves, HtmlSweepMove, i);
        guint at = 0;
        while (at < best->len && strcmp(g_array_index(best, HtmlSweepMove, at).kernel, move->kernel) != 0)
            at++;
        if (at == MOST_BARS)
            continue;
        if (at == best->len)
            g_array_append_val(best, *move);
        HtmlSweepMove *held = &g_array_index(best, HtmlSweepMove, at);
        if (move->bytes / move->seconds > held->bytes / held->seconds)
            *held = *move;
    }
    return best;
}

static void write_moves(const HtmlSweep *sweep, GString *out)
{
    g_autoptr(GArray) best = best_moves(sweep->moves);
    const double height = 24;
    HtmlSvg svg = {.out = out, .width = 960, .left = 210, .right = 860, .top = 10, .y1 = 1};
    svg.bottom = 14 + height * best->len;
    svg.height = svg.bottom + 52;
    svg.x1 = sweep->memory_bytes_per_s / 1e12;
    for (guint i = 0; i < best->len; i++) {
        const HtmlSweepMove *move = &g_array_index(best, HtmlSweepMove, i);
        svg.x1 = fmax(svg.x1, move->bytes / move->seconds / 1e12);
    }
    html_figure_begin(&svg, "memory", "Kernels that move bytes: the best rate of each",
                      "Bytes that must move at least once; dashed: the data sheet's bandwidth.", false);
    html_svg_begin(&svg, "rates of memory-bound kernels", false);
    for (guint i = 0; i < best->len; i++) {
        const HtmlSweepMove *move = &g_array_index(best, HtmlSweepMove, i);
        const double rate = move->bytes / move->seconds / 1e12, y = svg.top + i * height;
        g_autofree char *shown = g_strdup_printf("%.2f TB/s", rate);
        html_svg_rect(&svg, svg.left, y + 3, fmax(html_svg_x(&svg, rate) - svg.left, 0.5), height - 6,
                      "#0072B2", NULL);
        html_svg_text(&svg, svg.left - 10, y + 16, "end", "label", move->kernel);
        html_svg_text(&svg, html_svg_x(&svg, rate) + 6, y + 16, "start", "value", shown);
    }
    const double sheet = html_svg_x(&svg, sweep->memory_bytes_per_s / 1e12);
    if (sweep->memory_bytes_per_s > 0)
        html_svg_line(&svg, sheet, svg.top, sheet, svg.bottom, "limit");
    html_svg_axis_x(&svg, "TB/s");
    html_figure_end(&svg);
}

/* --- buses --- */

/* Those of whom there are most rows; of equals the larger group. */
static int most_ranks(const GArray *buses)
{
    g_autoptr(GHashTable) rows = g_hash_table_new(NULL, NULL); /* ranks -> rows */
    int best = 0, best_rows = 0;
    for (guint i = 0; i < buses->len; i++) {
        const gpointer ranks = GINT_TO_POINTER(g_array_index(buses, HtmlSweepBus, i).ranks);
        const int count = GPOINTER_TO_INT(g_hash_table_lookup(rows, ranks)) + 1;
        g_hash_table_insert(rows, ranks, GINT_TO_POINTER(count));
    }
    for (guint i = 0; i < buses->len; i++) {
        const int ranks = g_array_index(buses, HtmlSweepBus, i).ranks,
                  count = GPOINTER_TO_INT(g_hash_table_lookup(rows, GINT_TO_POINTER(ranks)));
        if (count > best_rows || (count == best_rows && ranks > best)) {
            best = ranks;
            best_rows = count;
        }
    }
    return best;
}

static void write_buses(const HtmlSweep *sweep, GString *out)
{
    HtmlSvg svg = {
        .out = out, .width = 960, .height = 430, .left = 64, .right = 920, .top = 30, .bottom = 370};
    Groups groups = {0};
    const int most = most_ranks(sweep->buses);
    svg.x0 = INFINITY, svg.x1 = -INFINITY;
    for (guint i = 0; i < sweep->buses->len; i++) {
        const HtmlSweepBus *bus = &g_array_index(sweep->buses, HtmlSweepBus, i);
        if (bus->ranks != most)
            continue;
        colour_of(&groups, bus->op);
        widen(bus->bytes, &svg.x0, &svg.x1);
        svg.y1 = fmax(svg.y1, 1.05 * bus->bus_bytes_per_s / 1e9);
    }
    g_autofree char *heading = g_strdup_printf("Collectives over %d GPUs: bus bandwidth", most);
    html_figure_begin(&svg, "buses", heading, "As nccl-tests counts it, over the size of the whole buffer.",
                      false);
    html_legend(out, groups.colours, groups.names, groups.count);
    html_svg_begin(&svg, "bus bandwidth over size", false);
    log_axis(&svg, true, "B", "size");
    html_svg_axis_y(&svg, "GB/s");
    for (guint i = 0; i < sweep->buses->len; i++) {
        const HtmlSweepBus *bus = &g_array_index(sweep->buses, HtmlSweepBus, i);
        char size[ORR_TEXT_SIZE];
        if (bus->ranks != most)
            continue;
        g_autofree char *title = g_strdup_printf(
            "%s %s: %.1f GB/s", bus->op, orr_text_si(size, bus->bytes, "B"), bus->bus_bytes_per_s / 1e9);
        dot(&svg, log10(bus->bytes), bus->bus_bytes_per_s / 1e9, colour_of(&groups, bus->op), title);
    }
    html_figure_end(&svg);
}

/* --- page --- */

static void write_facts(const GArray *facts, GString *out)
{
    g_string_append(out, "<div class=\"scroll\"><table>\n");
    for (guint i = 0; i < facts->len; i++) {
        const HtmlFact *fact = &g_array_index(facts, HtmlFact, i);
        g_string_append(out, "<tr><td class=\"key\">");
        html_escape(out, fact->label);
        g_string_append(out, "</td><td>");
        html_escape(out, fact->value);
        g_string_append(out, "</td></tr>\n");
    }
    g_string_append(out, "</table></div>\n");
}

void html_sweep_write(const HtmlSweep *sweep, GString *out)
{
    html_begin(sweep->device, ": what was measured", out);
    if (sweep->facts->len > 0)
        write_facts(sweep->facts, out);
    if (sweep->kernels->len > 0)
        write_roofline(sweep, out);
    write_products(sweep, out);
    if (sweep->moves->len > 0)
        write_moves(sweep, out);
    if (sweep->buses->len > 0)
        write_buses(sweep, out);
    g_string_append(out, "<h2>What the fit says</h2>\n<pre>");
    g_auto(GStrv) lines = g_strsplit(sweep->log, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        html_escape(out, *line);
        g_string_append_c(out, '\n');
    }
    g_string_append(out, "</pre>\n");
    html_end(NULL, sweep->command, false, out);
}
