/* plots/fabric.c - pictures of a fabric and of the rates on it: topology and busbw. */
#include <math.h>
#include <string.h>

#include "plots/driver.h"

static void cell(GString *csv, double value, const char *after)
{
    char text[G_ASCII_DTOSTR_BUF_SIZE];
    g_string_append_printf(csv, "%s%s", g_ascii_formatd(text, sizeof text, "%.6g", value), after);
}

/* "450 GB/s", "25 to 50 GB/s"; empty: there is none. */
static char *rates(const PlotFabric *fabric, bool across)
{
    double least = INFINITY, most = 0;
    for (int i = 0; i < fabric->piece_count; i++) {
        const PlotPiece *p = &fabric->pieces[i];
        if (p->across == across) {
            least = MIN(least, p->bytes_per_s / 1e9);
            most = MAX(most, p->bytes_per_s / 1e9);
        }
    }
    const char *what = across ? "between nodes" : "scale-up";
    if (least > most)
        return g_strdup("");
    return least < most ? g_strdup_printf("%s, %.4g to %.4g GB/s", what, least, most)
                        : g_strdup_printf("%s, %.4g GB/s", what, most);
}

static void add_pieces(PlotJob *job, const PlotFabric *fabric)
{
    g_string_append(job->csv, "link,from,to,x0,y0,x1,y1,gb_per_s,across\n");
    for (int i = 0; i < fabric->piece_count; i++) {
        const PlotPiece *p = &fabric->pieces[i];
        g_string_append_printf(job->csv, "%d,", p->link);
        plot_csv_text(job->csv, fabric->vertices[p->from].name);
        g_string_append_c(job->csv, ',');
        plot_csv_text(job->csv, fabric->vertices[p->to].name);
        g_string_append_c(job->csv, ',');
        cell(job->csv, p->x[0], ",");
        cell(job->csv, p->y[0], ",");
        cell(job->csv, p->x[1], ",");
        cell(job->csv, p->y[1], ",");
        cell(job->csv, p->bytes_per_s / 1e9, p->across ? ",1\n" : ",0\n");
    }
}

static void add_vertices(PlotJob *job, const PlotFabric *fabric)
{
    job->extra_csv = g_string_new("name,x,y,kind,label,side\n");
    job->extra_name = "topology-vertices";
    for (int i = 0; i < fabric->vertex_count; i++) {
        const PlotVertex *v = &fabric->vertices[i];
        plot_csv_text(job->extra_csv, v->name);
        g_string_append_c(job->extra_csv, ',');
        cell(job->extra_csv, v->x, ",");
        cell(job->extra_csv, v->y, ",");
        g_string_append(job->extra_csv, v->gpu ? "gpu," : "switch,");
        plot_csv_text(job->extra_csv, v->label != NULL ? v->label : " ");
        g_string_append(job->extra_csv, v->turned ? ",turned\n" : (v->below ? ",below\n" : ",plain\n"));
    }
}

static void add_frame(PlotJob *job, const PlotFabric *fabric)
{
    double left = INFINITY, right = -INFINITY, bottom = INFINITY, top = -INFINITY;
    int switches = 0;
    for (int i = 0; i < fabric->vertex_count; i++) {
        left = MIN(left, fabric->vertices[i].x);
        right = MAX(right, fabric->vertices[i].x);
        bottom = MIN(bottom, fabric->vertices[i].y);
        top = MAX(top, fabric->vertices[i].y);
        switches += !fabric->vertices[i].gpu;
    }
    for (int i = 0; i < fabric->piece_count; i++) {
        bottom = MIN(bottom, fabric->pieces[i].y[1]);
        left = MIN(left, fabric->pieces[i].x[1]);
        right = MAX(right, fabric->pieces[i].x[1]);
        top = MAX(top, fabric->pieces[i].y[1]);
    }
    const double wide = MAX(right - left, 1), high = MAX(top - bottom, 0.5);
    plot_set_number(job, "left", left - 0.05 * wide);
    plot_set_number(job, "right", right + 0.05 * wide);
    plot_set_number(job, "bottom", bottom - 0.14 * high);
    plot_set_number(job, "top", top + 0.14 * high);
    plot_set_number(job, "tall", fabric->square ? 132 + 1300 * high / wide : 240 + 150 * high);
    plot_set_number(job, "switches", switches);
    plot_set_number(job, "crowded", fabric->vertex_count > 160 ? 1 : 0);
}

bool plot_topology(const PlotFabric *fabric, const PlotTarget *target, GError **error)
{
    PlotJob job;
    plot_job_init(&job, "topology");
    add_pieces(&job, fabric);
    add_vertices(&job, fabric);
    add_frame(&job, fabric);
    g_autofree char *inside = rates(fabric, false), *across = rates(fabric, true);
    plot_set_heading(&job, fabric->title, fabric->caption);
    plot_set_number(&job, "inside", (double)strlen(inside));
    plot_set_number(&job, "across", (double)strlen(across));
    plot_set_text(&job, "inside_label", inside);
    plot_set_text(&job, "across_label", across);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}

bool plot_busbw(const char *title, const char *caption, const PlotBusbw *points, int count,
                const PlotTarget *target, GError **error)
{
    PlotJob job;
    plot_job_init(&job, "busbw");
    g_autoptr(GString) nodes = g_string_new(NULL);
    double least = INFINITY, most = 0, best = 0;
    g_string_append(job.csv, "nodes,ranks,bytes,busbw_gb_per_s,algorithm,protocol\n");
    for (int i = 0; i < count; i++) {
        const PlotBusbw *p = &points[i];
        if (i == 0 || p->nodes != points[i - 1].nodes)
            g_string_append_printf(nodes, "%s%d", i > 0 ? " " : "", p->nodes);
        g_string_append_printf(job.csv, "%d,%d,%.0f,", p->nodes, p->ranks, p->bytes);
        cell(job.csv, p->busbw_bytes_per_s / 1e9, ",");
        plot_csv_text(job.csv, p->algorithm);
        g_string_append_c(job.csv, ',');
        plot_csv_text(job.csv, p->protocol);
        g_string_append_c(job.csv, '\n');
        least = MIN(least, p->bytes);
        most = MAX(most, p->bytes);
        best = MAX(best, p->busbw_bytes_per_s / 1e9);
    }
    plot_set_heading(&job, title, caption);
    plot_set_text(&job, "nodes", nodes->str);
    plot_set_number(&job, "least", least);
    plot_set_number(&job, "most", MAX(most, 2 * least));
    plot_set_number(&job, "best", best);
    const bool ok = plot_job_run(&job, target, error);
    plot_job_clear(&job);
    return ok;
}
