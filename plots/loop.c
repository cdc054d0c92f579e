/* plots/loop.c - one turn of a loop over several models: a lane for each part of the machine, a box for each phase there.
 * Tested: cli/test_cli_plot */
#include <string.h>

#include "plots/driver.h"

/* Row of the first phase of this name: phases that touch two parts are one colour. */
static int first_of(const PlotPhase *phases, int at)
{
    int first = 0;
    while (strcmp(phases[first].name, phases[at].name) != 0)
        first++;
    return first;
}

bool plot_loop(const char *title, const char *caption, const char *const *lanes, int lane_count,
               const PlotPhase *phases, int count, const PlotTarget *target, GError **error)
{
    PlotJob job;
    double end_s = 0, unit_s = 1;
    int colours = 0;
    g_autoptr(GString) names = g_string_new(NULL);
    g_autofree int *colour = g_new0(int, (gsize)count + 1);
    for (int i = 0; i < count; i++)
        end_s = MAX(end_s, phases[i].end_s);
    const char *unit = plot_time_unit(end_s, &unit_s);
    plot_job_init(&job, "loop");
    g_string_append(job.csv, "part,lane,phase,colour,begin,end\n");
    for (int i = 0; i < count; i++) {
        char begin[G_ASCII_DTOSTR_BUF_SIZE], end[G_ASCII_DTOSTR_BUF_SIZE];
        const int first = first_of(phases, i);
        if (first == i) {
            colour[i] = ++colours;
            g_string_append_printf(names, "%s\"%s\"", colours > 1 ? " " : "", phases[i].name);
        }
        plot_csv_text(job.csv, lanes[phases[i].lane]);
        g_string_append_printf(job.csv, ",%d,", phases[i].lane);
        plot_csv_text(job.csv, phases[i].name);
        g_string_append_printf(job.csv, ",%d,%s,%s\n", colour[first],
                               g_ascii_formatd(begin, sizeof begin, "%.6g", phases[i].begin_s / unit_s),
                               g_ascii_formatd(end, sizeof end, "%.6g", phases[i].end_s / unit_s));
    }
    plot_set_heading(&job, title, caption);
    plot_set_text(&job, "unit", unit);
    plot_set_text(&job, "names", names->str);
    plot_set_number(&job, "colours", colours);
    plot_set_number(&job, "lanes", lane_count);
    plot_set_number(&job, "turn", end_s / unit_s);
    for (int lane = 0; lane < lane_count; lane++) {
        g_autofree char *key = g_strdup_printf("lane_%d", lane);
        plot_set_text(&job, key, lanes[lane]);
    }
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
