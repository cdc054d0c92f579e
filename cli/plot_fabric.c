/* cli/plot_fabric.c - orrery plot --what topology,busbw: a fabric, and the rates that collectives reach on it. */
#include "cli/plot_fabric.h"

#include <math.h>
#include <string.h>

#define MOST_GPUS    256
#define LABELLED     64 /* GPUs, or switches of a tier */
#define ALL_IN_A_ROW 24 /* GPUs whose numbers have room side by side; of more every fourth is told */
#define MOST_LINKS   20000

/* Short names where there is room: "0" for gpu0. */
static void add_vertices(const NetTopology *t, const Layout *layout, GArray *vertices)
{
    for (int v = 0; v < t->vertex_count; v++) {
        const bool gpu = v < t->gpus;
        const char *name = t->vertices[v].name;
        const bool below = gpu || (!layout->square && layout->xy[2 * v + 1] < 0);
        const bool apart = !gpu || layout->square || t->gpus <= ALL_IN_A_ROW || v % 4 == 0;
        const bool room = !apart ? false
                          : gpu  ? t->gpus <= LABELLED
                                 : t->vertex_count - t->gpus <= 2 * LABELLED;
        const PlotVertex vertex = {.name = name,
                                   .label = !room                                  ? NULL
                                            : gpu && g_str_has_prefix(name, "gpu") ? name + strlen("gpu")
                                                                                   : name,
                                   .x = layout->xy[2 * v],
                                   .y = layout->xy[2 * v + 1],
                                   .gpu = gpu,
                                   .below = below,
                                   .turned = !below && !layout->square && t->vertex_count - t->gpus > 40};
        g_array_append_val(vertices, vertex);
    }
}

static bool draw(const CollectiveCase *c, const PlotTarget *target, GError **error)
{
    const NetTopology *t = &c->topology;
    if (t->gpus > MOST_GPUS || t->link_count > MOST_LINKS)
        return orr_fail(
            error, ORR_ERROR_INPUT,
            "--what topology: %d GPUs and %d links cannot be told apart in a picture; give --ranks "
            "%d or fewer",
            t->gpus, t->link_count, MOST_GPUS);
    g_autofree double *xy = g_new0(double, 2 * (gsize)t->vertex_count);
    g_autoptr(GArray) pieces = g_array_new(FALSE, FALSE, sizeof(PlotPiece));
    g_autoptr(GArray) vertices = g_array_new(FALSE, TRUE, sizeof(PlotVertex));
    static const char *const grids[] = {"torus", "mesh-2d", "bcube", "tpu-cubes", NULL};
    Layout layout = {.t = t, .xy = xy, .pieces = pieces, .grid = g_strv_contains(grids, t->name)};
    cli_layout(&layout);
    add_vertices(t, &layout, vertices);
    g_autofree char *title =
        c->has_cluster ? g_strdup_printf("%s, %s", t->name, c->cluster.name) : g_strdup(t->name);
    g_autofree char *caption =
        g_strdup_printf("%d GPUs, %d switches, %d links one way; bisection %.4g TB/s one way", t->gpus,
                        t->vertex_count - t->gpus, t->link_count, net_bisection_bytes_per_s(t) / 1e12);
    const PlotFabric fabric = {.title = title,
                               .caption = caption,
                               .vertices = (const PlotVertex *)(void *)vertices->data,
                               .pieces = (const PlotPiece *)(void *)pieces->data,
                               .vertex_count = (int)vertices->len,
                               .piece_count = (int)pieces->len,
                               .square = layout.square};
    return plot_topology(&fabric, target, error);
}

bool cli_plot_topology(const CollectiveArgs *args, const PlotTarget *target, GError **error)
{
    CollectiveCase c = {.has_cluster = false};
    const bool ok = cli_collective_read(args, &c, error) && draw(&c, target, error);
    cli_collective_clear(&c);
    return ok;
}

/* --- bus bandwidth --- */

static bool add_points(const SpecCluster *cluster, NetOp op, int ranks, const GArray *sizes, GArray *points,
                       GError **error)
{
    for (guint i = 0; i < sizes->len; i++) {
        const double bytes = g_array_index(sizes, double, i);
        CostCollective collective;
        if (!cli_collective_library(cluster, op, ranks, bytes, &collective))
            return orr_fail(error, ORR_ERROR_INPUT,
                            "--op %s: NCCL has no such collective, whose bandwidth could be drawn",
                            net_op_name(op));
        const CostNcclQuery query = cost_nccl_query(cluster, &collective);
        const CostNcclChoice choice = cost_nccl_choose(&query);
        const double seconds = cost_collective_s(cluster, &collective);
        const PlotBusbw point = {.nodes = (ranks + cluster->gpus_per_node - 1) / cluster->gpus_per_node,
                                 .ranks = ranks,
                                 .bytes = bytes,
                                 .busbw_bytes_per_s = bytes / seconds * net_op_bus_factor(op, ranks),
                                 .algorithm = cost_nccl_algorithm_name(choice.algorithm),
                                 .protocol = cost_nccl_protocol_name(choice.protocol)};
        g_array_append_val(points, point);
    }
    return true;
}

bool cli_plot_busbw(const CollectiveArgs *args, const PlotTarget *target, GError **error)
{
    CollectiveCase c = {.has_cluster = false};
    g_autoptr(GArray) sizes = g_array_new(FALSE, FALSE, sizeof(double));
    g_autoptr(GArray) points = g_array_new(FALSE, FALSE, sizeof(PlotBusbw));
    bool ok = cli_collective_sizes(args->bytes != NULL ? args->bytes : "1KiB..1GiB", false, sizes, error) &&
              (args->cluster != NULL ||
               orr_fail(error, ORR_ERROR_INPUT, "--what busbw: give --cluster NAME and --ranks COUNT")) &&
              cli_collective_read(args, &c, error);
    const int most = c.run.shape.ranks;
    for (int ranks = MIN(most, c.cluster.gpus_per_node); ok; ranks = MIN(2 * ranks, most)) {
        SpecCluster cluster;
        ok = cli_collective_cluster(args->cluster, args->common.sets, ranks, &cluster, error) &&
             add_points(&cluster, c.op, ranks, sizes, points, error);
        if (ranks == most)
            break;
    }
    g_autofree char *title =
        g_strdup_printf("%s, %s", net_op_name(c.op), c.has_cluster ? c.cluster.name : "");
    g_autofree char *caption = g_strdup_printf(
        "bus bandwidth as nccl-tests counts it, of what NCCL chooses at each size, up to %d GPUs", most);
    ok = ok &&
         plot_busbw(title, caption, (const PlotBusbw *)(void *)points->data, (int)points->len, target, error);
    cli_collective_clear(&c);
    return ok;
}
