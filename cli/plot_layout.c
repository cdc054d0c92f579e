/* cli/plot_layout.c - where the vertices of a fabric stand in its picture.
 *
 * Grids stand as grids, their links round the end as stubs. GPUs without switches stand in a circle a node, routers of a
 * dragonfly in a circle a group. All else has tiers: GPUs in a row, switches of one node below, all others above by the
 * cables to the nearest GPU.
 */
#include <math.h>
#include <string.h>

#include "cli/plot_fabric.h"

#define TURN 6.283185307179586

static double *xy(Layout *l, int v)
{
    return &l->xy[2 * v];
}

static void put(Layout *l, int v, double x, double y)
{
    xy(l, v)[0] = x;
    xy(l, v)[1] = y;
}

static void add_piece(Layout *l, int link, double x0, double y0, double x1, double y1)
{
    const NetLink *n = &l->t->links[link];
    const PlotPiece piece = {.link = link,
                             .from = n->from,
                             .to = n->to,
                             .x = {x0, x1},
                             .y = {y0, y1},
                             .bytes_per_s = (double)n->bytes_per_s,
                             .across = n->weight > 1};
    g_array_append_val(l->pieces, piece);
}

static void straight(Layout *l, int link)
{
    const double *a = xy(l, l->t->links[link].from), *b = xy(l, l->t->links[link].to);
    add_piece(l, link, a[0], a[1], b[0], b[1]);
}

/* Of the two links of a cable the one that is drawn. */
static bool shown(const NetTopology *t, int link)
{
    const NetLink *n = &t->links[link];
    for (int e = t->out_of[n->to]; n->from > n->to && e < t->out_of[n->to + 1]; e++)
        if (t->links[t->out_links[e]].to == n->from)
            return false;
    return true;
}

/* --- grids --- */

static const double along[NET_MAX_DIMS][2] = {{1, 0}, {0, 1}, {0.42, 0.3}};

static void grid_at(const NetTopology *t, int gpu, double *ret_x, double *ret_y)
{
    *ret_x = *ret_y = 0;
    for (int d = 0, rest = gpu; d < t->dim_count; rest /= t->dims[d++]) {
        *ret_x += rest % t->dims[d] * along[d][0];
        *ret_y += rest % t->dims[d] * along[d][1];
    }
}

/* A link round the end is a stub at either side. */
static void grid_link(Layout *l, int link)
{
    const NetTopology *t = l->t;
    const NetLink *n = &t->links[link];
    for (int d = 0, stride = 1; d < t->dim_count; stride *= t->dims[d++]) {
        if (n->from >= t->gpus || n->to >= t->gpus || abs(n->from - n->to) != stride * (t->dims[d] - 1) ||
            t->dims[d] < 3)
            continue;
        const double *low = xy(l, MIN(n->from, n->to)), *high = xy(l, MAX(n->from, n->to));
        add_piece(l, link, low[0], low[1], low[0] - 0.4 * along[d][0], low[1] - 0.4 * along[d][1]);
        add_piece(l, link, high[0], high[1], high[0] + 0.4 * along[d][0], high[1] + 0.4 * along[d][1]);
        return;
    }
    straight(l, link);
}

/* The middle of what a switch is cabled to. */
static void middle(Layout *l, int v, double *ret_x, double *ret_y)
{
    const NetTopology *t = l->t;
    const int count = MAX(t->out_of[v + 1] - t->out_of[v], 1);
    double x = 0, y = 0;
    for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++) {
        const double *at = xy(l, t->links[t->out_links[e]].to);
        x += at[0] / count;
        y += at[1] / count;
    }
    *ret_x = x;
    *ret_y = y;
}

static void beside_its_own(Layout *l, int v)
{
    double x = 0, y = 0;
    middle(l, v, &x, &y);
    put(l, v, x + 0.33, y + 0.4);
}

/* Away from the middle of the picture. */
static void outside_its_own(Layout *l, int v)
{
    double x = 0, y = 0;
    middle(l, v, &x, &y);
    const double from_middle = MAX(hypot(x, y), 1);
    put(l, v, x * (1 + 0.5 / from_middle), y * (1 + 0.5 / from_middle));
}

static void place_grid(Layout *l)
{
    const NetTopology *t = l->t;
    for (int v = 0; v < t->vertex_count; v++) {
        double x = 0, y = 0;
        grid_at(t, v, &x, &y);
        put(l, v, x, y);
    }
    for (int v = t->gpus; v < t->vertex_count; v++)
        beside_its_own(l, v);
    l->square = true;
}

/* --- circles --- */

static void place_circles(Layout *l)
{
    const NetTopology *t = l->t;
    const int each = t->gpus_per_node, nodes = t->gpus / each;
    const double radius = MAX(1, each / 6.0), pitch = 2 * radius + 1.2;
    const double ring =
        nodes > 2 ? pitch / (2 * sin(TURN / 2 / nodes)) : pitch / 2; /* of the nodes' middles */
    for (int g = 0; g < t->gpus; g++) {
        const double angle = TURN * (0.25 - (g % each + 0.5) / each);
        const double at = TURN * (0.5 - (double)(g / each) / nodes);
        put(l, g, (nodes > 1 ? ring * cos(at) : 0) + radius * cos(angle),
            (nodes > 1 ? ring * sin(at) : 0) + radius * sin(angle));
    }
    l->square = true;
}

/* Groups of routers on a circle, each router's GPUs outside it. */
static void place_dragonfly(Layout *l)
{
    const NetTopology *t = l->t;
    int first = t->gpus;
    while (!g_str_has_prefix(t->vertices[first].name, "router"))
        first++;
    int h = 0; /* GPUs of a router */
    for (int e = t->out_of[first]; e < t->out_of[first + 1]; e++)
        h += t->links[t->out_links[e]].to < t->gpus;
    const int a_group = 2 * MAX(h, 1), routers = t->vertex_count - first,
              groups = (routers + a_group - 1) / a_group;
    const double inner = 1.0, outer = groups > 1 ? MAX(3.4, groups * 4.2 / TURN) : 0;
    for (int r = 0; r < routers; r++) {
        const double at = TURN * (0.25 - (double)(r / a_group) / groups);
        const double angle = at + TURN * (r % a_group + 0.5) / a_group;
        const double cx = outer * cos(at), cy = outer * sin(at);
        put(l, first + r, cx + inner * cos(angle), cy + inner * sin(angle));
        for (int g = r * h; g < MIN((r + 1) * h, t->gpus); g++) {
            const double spread = angle + TURN / a_group * ((g - r * h + 0.5) / h - 0.5) * 0.8;
            put(l, g, cx + 1.65 * cos(spread), cy + 1.65 * sin(spread));
        }
    }
    for (int v = t->gpus; v < first; v++)
        outside_its_own(l, v);
    l->square = true;
}

/* --- tiers --- */

static double gpu_x(const NetTopology *t, int gpu)
{
    return gpu + 0.7 * (gpu / t->gpus_per_node);
}

/* Node whose GPUs are all that the switch reaches without crossing between nodes; -1: it reaches others. */
static int node_of(const NetTopology *t, int v)
{
    int gpu = -1;
    for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++) {
        const NetLink *link = &t->links[t->out_links[e]];
        if (link->weight > 1)
            return -1;
        if (link->to < t->gpus)
            gpu = link->to;
        for (int f = t->out_of[link->to]; link->to >= t->gpus && f < t->out_of[link->to + 1]; f++)
            if (t->links[t->out_links[f]].to < t->gpus)
                gpu = t->links[t->out_links[f]].to;
    }
    return gpu >= 0 ? gpu / t->gpus_per_node : -1;
}

/* Cables to the nearest GPU. */
static void hops_from_gpus(const NetTopology *t, int *hops)
{
    g_autofree int *queue = g_new(int, t->vertex_count);
    int head = 0, tail = 0;
    for (int v = 0; v < t->vertex_count; v++) {
        hops[v] = v < t->gpus ? 0 : -1;
        if (v < t->gpus)
            queue[tail++] = v;
    }
    while (head < tail) {
        const int v = queue[head++];
        for (int e = t->out_of[v]; e < t->out_of[v + 1]; e++) {
            const int next = t->links[t->out_links[e]].to;
            if (hops[next] < 0) {
                hops[next] = hops[v] + 1;
                queue[tail++] = next;
            }
        }
    }
}

static void place_tiers(Layout *l)
{
    const NetTopology *t = l->t;
    g_autofree int *hops = g_new(int, t->vertex_count), *tier = g_new(int, t->vertex_count);
    hops_from_gpus(t, hops);
    const double width = gpu_x(t, t->gpus - 1);
    for (int v = 0; v < t->vertex_count; v++) {
        const int node = v < t->gpus ? v / t->gpus_per_node : node_of(t, v);
        tier[v] = v < t->gpus ? 0 : (node >= 0 && t->gpus_per_node > 1 ? -MAX(hops[v], 1) : MAX(hops[v], 1));
        put(l, v, gpu_x(t, v), 0);
    }
    for (int v = t->gpus; v < t->vertex_count; v++) {
        int before = 0, of = 0;
        const int node = node_of(t, v);
        for (int u = t->gpus; u < t->vertex_count; u++) {
            const bool like = tier[u] == tier[v] && (tier[v] > 0 || node_of(t, u) == node);
            of += like;
            before += like && u < v;
        }
        const double left = tier[v] < 0 ? gpu_x(t, node * t->gpus_per_node) : 0,
                     span = tier[v] < 0 ? t->gpus_per_node - 1 : width;
        put(l, v, left + span * (before + 0.5) / of, tier[v]);
    }
}

/* GPUs of a row are joined by arcs below it. */
static void tier_link(Layout *l, int link)
{
    const NetLink *n = &l->t->links[link];
    if (n->from >= l->t->gpus || n->to >= l->t->gpus) {
        straight(l, link);
        return;
    }
    const double from = xy(l, n->from)[0], to = xy(l, n->to)[0], depth = MIN(0.12 * fabs(to - from), 1.2);
    for (int i = 0; i < 10; i++) {
        const double a = i / 10.0, b = (i + 1) / 10.0;
        add_piece(l, link, from + (to - from) * a, -4 * depth * a * (1 - a), from + (to - from) * b,
                  -4 * depth * b * (1 - b));
    }
}

void cli_layout(Layout *l)
{
    const NetTopology *t = l->t;
    int volume = 1;
    for (int d = 0; d < t->dim_count; d++)
        volume *= t->dims[d];
    const bool grid = l->grid && volume == t->gpus && t->dim_count <= 3;
    const bool routers = g_str_has_prefix(t->vertices[t->vertex_count - 1].name, "router");
    const bool circles = t->vertex_count == t->gpus;
    if (grid)
        place_grid(l);
    else if (routers)
        place_dragonfly(l);
    else if (circles)
        place_circles(l);
    else
        place_tiers(l);
    for (int i = 0; i < t->link_count; i++) {
        if (!shown(t, i))
            continue;
        if (grid)
            grid_link(l, i);
        else if (routers || circles)
            straight(l, i);
        else
            tier_link(l, i);
    }
}
