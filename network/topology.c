/* network/topology.c - vertices, links, and what is done with a finished fabric. */
#include "network/topology.h"

#include <math.h>
#include <string.h>

int net_add_vertex(NetTopology *t, bool gpu, bool relays, const char *format, ...)
{
    if (t->vertex_count == t->vertex_capacity) {
        t->vertex_capacity = MAX(64, 2 * t->vertex_capacity);
        t->vertices = g_renew(NetVertex, t->vertices, t->vertex_capacity);
    }
    NetVertex *vertex = &t->vertices[t->vertex_count];
    va_list args;
    va_start(args, format);
    g_vsnprintf(vertex->name, sizeof vertex->name, format, args);
    va_end(args);
    vertex->gpu = gpu;
    vertex->relays = relays;
    t->gpus += gpu;
    return t->vertex_count++;
}

void net_add_link(NetTopology *t, int from, int to, double bytes_per_s, int64_t latency_ps, int weight)
{
    if (t->link_count == t->link_capacity) {
        t->link_capacity = MAX(64, 2 * t->link_capacity);
        t->links = g_renew(NetLink, t->links, t->link_capacity);
    }
    t->links[t->link_count++] = (NetLink){.from = from,
                                          .to = to,
                                          .bytes_per_s = (int64_t)llround(bytes_per_s),
                                          .latency_ps = latency_ps,
                                          .weight = weight};
}

void net_add_cable(NetTopology *t, int a, int b, double bytes_per_s, int64_t latency_ps, int weight)
{
    net_add_link(t, a, b, bytes_per_s, latency_ps, weight);
    net_add_link(t, b, a, bytes_per_s, latency_ps, weight);
}

static void index_by(const NetTopology *t, bool out, int32_t **ret_of, int32_t **ret_links)
{
    int32_t *of = g_new0(int32_t, t->vertex_count + 1), *links = g_new(int32_t, MAX(t->link_count, 1));
    for (int l = 0; l < t->link_count; l++)
        of[(out ? t->links[l].from : t->links[l].to) + 1]++;
    for (int v = 0; v < t->vertex_count; v++)
        of[v + 1] += of[v];
    g_autofree int32_t *at = g_memdup2(of, sizeof(int32_t) * (gsize)(t->vertex_count + 1));
    for (int l = 0; l < t->link_count; l++)
        links[at[out ? t->links[l].from : t->links[l].to]++] = l;
    *ret_of = of;
    *ret_links = links;
}

void net_topology_index(NetTopology *t)
{
    index_by(t, true, &t->out_of, &t->out_links);
    index_by(t, false, &t->in_of, &t->in_links);
}

void net_topology_clear(NetTopology *t)
{
    g_free(t->vertices);
    g_free(t->links);
    g_free(t->out_of);
    g_free(t->out_links);
    g_free(t->in_of);
    g_free(t->in_links);
    memset(t, 0, sizeof *t);
}

static int vertex_named(const NetTopology *t, const char *name)
{
    for (int v = 0; v < t->vertex_count; v++)
        if (strcmp(t->vertices[v].name, name) == 0)
            return v;
    return -1;
}

bool net_topology_degrade(NetTopology *t, const char *from, const char *to, double frac, GError **error)
{
    const int a = vertex_named(t, from), b = vertex_named(t, to);
    if (a < 0 || b < 0)
        return orr_fail(error, ORR_ERROR_INPUT,
                        "%s: no vertex is called \"%s\"; its first ones are %s and %s", t->name,
                        a < 0 ? from : to, t->vertices[0].name, t->vertices[t->vertex_count - 1].name);
    int found = 0;
    for (int l = 0; l < t->link_count; l++) {
        NetLink *link = &t->links[l];
        if ((link->from == a && link->to == b) || (link->from == b && link->to == a)) {
            link->bytes_per_s = (int64_t)llround((double)link->bytes_per_s * frac);
            found++;
        }
    }
    return found > 0 ||
           orr_fail(error, ORR_ERROR_INPUT, "%s: no link joins \"%s\" and \"%s\"", t->name, from, to);
}

/* --- maximum flow from the lower to the upper half of the GPUs (Dinic) --- */

typedef struct Cut {
    const NetTopology *t;
    double *left; /* [2 links]: of a link and of its way back */
    int *level, *queue, *at;
} Cut;

static bool is_source(const NetTopology *t, int v)
{
    return v < t->gpus / 2;
}

static bool is_sink(const NetTopology *t, int v)
{
    return v >= t->gpus / 2 && v < t->gpus;
}

/* Edge i of vertex v: its links out, then those in, backwards. */
static int edge(const NetTopology *t, int v, int i, int *ret_to)
{
    const int outs = t->out_of[v + 1] - t->out_of[v];
    if (i < outs) {
        const int l = t->out_links[t->out_of[v] + i];
        *ret_to = t->links[l].to;
        return 2 * l;
    }
    const int l = t->in_links[t->in_of[v] + i - outs];
    *ret_to = t->links[l].from;
    return 2 * l + 1;
}

static int edge_count(const NetTopology *t, int v)
{
    return t->out_of[v + 1] - t->out_of[v] + t->in_of[v + 1] - t->in_of[v];
}

static bool levels(Cut *cut)
{
    const NetTopology *t = cut->t;
    int head = 0, tail = 0;
    bool reached = false;
    for (int v = 0; v < t->vertex_count; v++) {
        cut->level[v] = is_source(t, v) ? 0 : -1;
        cut->at[v] = 0;
        if (is_source(t, v))
            cut->queue[tail++] = v;
    }
    while (head < tail) {
        const int v = cut->queue[head++];
        reached = reached || is_sink(t, v);
        for (int i = 0, to; i < edge_count(t, v); i++) {
            const int e = edge(t, v, i, &to);
            if (cut->left[e] > 0.5 && cut->level[to] < 0) {
                cut->level[to] = cut->level[v] + 1;
                cut->queue[tail++] = to;
            }
        }
    }
    return reached;
}

static double push(Cut *cut, int v, double most)
{
    if (is_sink(cut->t, v))
        return most;
    for (int to; cut->at[v] < edge_count(cut->t, v); cut->at[v]++) {
        const int e = edge(cut->t, v, cut->at[v], &to);
        if (cut->left[e] <= 0.5 || cut->level[to] != cut->level[v] + 1)
            continue;
        const double sent = push(cut, to, MIN(most, cut->left[e]));
        if (sent > 0) {
            cut->left[e] -= sent;
            cut->left[e ^ 1] += sent;
            return sent;
        }
    }
    return 0;
}

double net_bisection_bytes_per_s(const NetTopology *t)
{
    const gsize n = (gsize)t->vertex_count;
    Cut cut = {.t = t, .left = g_new0(double, 2 * (gsize)MAX(t->link_count, 1))};
    cut.level = g_new(int, n);
    cut.queue = g_new(int, n);
    cut.at = g_new(int, n);
    for (int l = 0; l < t->link_count; l++)
        cut.left[2 * l] = (double)t->links[l].bytes_per_s;
    double total = 0, sent = 0;
    while (levels(&cut))
        for (int v = 0; v < t->gpus / 2; v++)
            while ((sent = push(&cut, v, INFINITY)) > 0)
                total += sent;
    g_free(cut.left);
    g_free(cut.level);
    g_free(cut.queue);
    g_free(cut.at);
    return total;
}
