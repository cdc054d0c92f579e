/* plots/terminal.c - the timeline of the pipeline in characters: a row a pipeline rank, below it what its other streams do.
 *
 * A cell shows what lasts longest in it. Passes with room carry their micro-batch. With colours cells are painted; without, each
 * kind has a character of its own.
 */
#include <stdlib.h>
#include <string.h>

#include "plots/data.h"
#include "plots/plots.h"

enum { MAX_LANES = 32, LABEL = 6, IDLE = -1 };

typedef struct Glyph {
    const char *label, *plain;
    int colour; /* of the 256 of xterm */
    bool light; /* text on it is white */
} Glyph;

static const Glyph glyphs[PLOT_KINDS] = {{"forward", "\u2588", 25, true},
                                         {"backward", "\u2593", 29, true},
                                         {"forward and backward", "\u259a", 54, true},
                                         {"weight gradient", "\u2592", 115, false},
                                         {"recompute", "r", 227, false},
                                         {"tensor comm", "t", 178, false},
                                         {"context comm", "c", 130, true},
                                         {"expert comm", "e", 222, false},
                                         {"pipeline send", "s", 74, false},
                                         {"data comm", "d", 175, false},
                                         {"offload", "o", 94, true},
                                         {"optimizer", "u", 97, true},
                                         {"other", "x", 166, false}};

typedef struct Row {
    float *share; /* [columns x kinds] */
    int *number;  /* [columns]: digit to show, or -1 */
} Row;

typedef struct Sheet {
    const PlotTimeline *timeline;
    int columns;
    Row *rows; /* [lanes x 2] */
} Sheet;

static int glyph_of(const char *label)
{
    for (int i = 0; i < PLOT_KINDS; i++)
        if (g_str_equal(glyphs[i].label, label))
            return i;
    g_assert_not_reached();
}

/* The micro-batch in the middle of a pass that has room for it and a cell on each side. */
static void put_number(const Sheet *sheet, Row *row, double from, double to, int microbatch)
{
    char text[16];
    const int length = g_snprintf(text, sizeof text, "%d", microbatch);
    const int first = (int)((from + to - length) / 2.0 + 0.5);
    if (microbatch < 0 || to - from < length + 1 || first < 0 || first + length > sheet->columns)
        return;
    for (int i = 0; i < length; i++)
        row->number[first + i] = text[i] - '0';
}

/* A line of the timeline's CSV. */
static void put_box(Sheet *sheet, char **cells)
{
    const PlotTimeline *timeline = sheet->timeline;
    const int lane = atoi(cells[0]) / timeline->lane_step, kind = glyph_of(cells[4]);
    const bool compute = g_str_equal(cells[1], "compute");
    const double scale = sheet->columns / timeline->end;
    const double from = g_ascii_strtod(cells[2], NULL) * scale, to = g_ascii_strtod(cells[3], NULL) * scale;
    Row *row = &sheet->rows[2 * lane + (compute ? 0 : 1)];
    for (int i = (int)from; i < sheet->columns && i < to; i++)
        row->share[i * PLOT_KINDS + kind] += (float)(MIN(to, i + 1) - MAX(from, i));
    if (compute && kind < 4)
        put_number(sheet, row, g_ascii_strtod(cells[7], NULL) * scale, g_ascii_strtod(cells[8], NULL) * scale,
                   atoi(cells[6]));
}

static int longest(const Row *row, int column)
{
    int most = IDLE;
    for (int kind = 0; kind < PLOT_KINDS; kind++)
        if (row->share[column * PLOT_KINDS + kind] >
            (most == IDLE ? 0.25F : row->share[column * PLOT_KINDS + most]))
            most = kind;
    return most;
}

static bool is_used(const Sheet *sheet, const Row *row)
{
    for (int column = 0; column < sheet->columns; column++)
        if (longest(row, column) != IDLE)
            return true;
    return false;
}

static void append_cell(const Row *row, int column, bool colour, int *painted, GString *out)
{
    const int kind = longest(row, column), digit = kind == IDLE ? -1 : row->number[column];
    if (colour && kind != *painted) {
        if (kind == IDLE)
            g_string_append(out, "\033[0m");
        else
            g_string_append_printf(out, "\033[48;5;%dm\033[38;5;%dm", glyphs[kind].colour,
                                   glyphs[kind].light ? 15 : 16);
        *painted = kind;
    }
    if (digit >= 0)
        g_string_append_printf(out, "%d", digit);
    else if (kind == IDLE)
        g_string_append(out, "\u00b7");
    else
        g_string_append(out, colour ? " " : glyphs[kind].plain);
}

static void append_row(const Sheet *sheet, int index, bool colour, GString *out)
{
    const Row *row = &sheet->rows[index];
    int painted = IDLE;
    if (index % 2 == 0)
        g_string_append_printf(out, "%*d ", LABEL - 1, index / 2 * sheet->timeline->lane_step);
    else
        g_string_append_printf(out, "%*s", LABEL, "");
    for (int column = 0; column < sheet->columns; column++)
        append_cell(row, column, colour, &painted, out);
    g_string_append(out, painted != IDLE ? "\033[0m\n" : "\n");
}

static void append_legend(const Sheet *sheet, bool colour, GString *out)
{
    int width = 0;
    g_string_append_printf(out, "%*s", LABEL, "");
    for (int i = 0; i < sheet->timeline->kind_count; i++) {
        const Glyph *glyph = &glyphs[glyph_of(sheet->timeline->kinds[i]->label)];
        const int length = (int)strlen(glyph->label) + 4;
        if (width + length > sheet->columns && width > 0) {
            g_string_append_printf(out, "\n%*s", LABEL, "");
            width = 0;
        }
        g_string_append(out, width > 0 ? "  " : "");
        if (colour)
            g_string_append_printf(out, "\033[48;5;%dm \033[0m %s", glyph->colour, glyph->label);
        else
            g_string_append_printf(out, "%s %s", glyph->plain, glyph->label);
        width += length;
    }
    g_string_append_c(out, '\n');
}

static void read_boxes(Sheet *sheet)
{
    g_auto(GStrv) lines = g_strsplit(sheet->timeline->csv->str, "\n", -1);
    for (char **line = lines + 1; *line != NULL && **line != '\0'; line++) {
        g_auto(GStrv) cells = g_strsplit(*line, ",", -1);
        put_box(sheet, cells);
    }
}

void plot_terminal(const Report *report, int width, bool colour, GString *out)
{
    PlotTimeline timeline = plot_timeline(report, MAX_LANES);
    Sheet sheet = {&timeline, MAX(width - LABEL, 20), g_new0(Row, 2 * (gsize)timeline.lanes)};
    char end[32];
    for (int i = 0; i < 2 * timeline.lanes; i++) {
        sheet.rows[i].share = g_new0(float, (gsize)sheet.columns *PLOT_KINDS);
        sheet.rows[i].number = g_new(int, (gsize)sheet.columns);
        memset(sheet.rows[i].number, -1, (gsize)sheet.columns * sizeof(int));
    }
    read_boxes(&sheet);
    g_string_append(out, "\nThe step, a row a pipeline rank\n");
    for (int i = 0; i < 2 * timeline.lanes; i++)
        if (i % 2 == 0 || is_used(&sheet, &sheet.rows[i]))
            append_row(&sheet, i, colour, out);
    g_snprintf(end, sizeof end, "%.4g %s", timeline.end, timeline.unit);
    g_string_append_printf(out, "%*s0%*s\n", LABEL, "", sheet.columns - 1, end);
    append_legend(&sheet, colour, out);
    for (int i = 0; i < 2 * timeline.lanes; i++) {
        g_free(sheet.rows[i].share);
        g_free(sheet.rows[i].number);
    }
    g_free(sheet.rows);
    plot_timeline_clear(&timeline);
}
