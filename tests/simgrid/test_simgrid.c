/* tests/simgrid/test_simgrid.c - twenty random collectives on four fabrics, by flows here and in SimGrid.
 *
 * SimGrid gets the messages, their routes and the links' rates; it shares the links and moves the bytes. Its program is
 * tests/simgrid/replay.cpp, built where SimGrid is installed.
 */
#include <math.h>
#include <glib/gstdio.h>

#include "network/replay.h"

#define TOLERANCE   0.01
#define COLLECTIVES 40

static const char *const fabrics[] = {"nvswitch", "fat-tree", "rail", "torus"};

static NetTopology built(const char *name, int gpus)
{
    const NetFabric fabric = {.gpus = gpus,
                              .gpus_per_node = MIN(8, gpus),
                              .up_bytes_per_s = 450000000000,
                              .out_bytes_per_s = 50000000000,
                              .up_latency_ps = 3000000,
                              .out_latency_ps = 5000000,
                              .oversubscription = 2,
                              .leaf_gpus = 8,
                              .dims = {4, gpus / 4},
                              .dim_count = 2};
    NetTopology t;
    GError *error = NULL;
    net_topology_build(name, &fabric, &t, &error);
    g_assert_no_error(error);
    return t;
}

/* All messages of a run as replay.cpp reads them. */
static GString *written(const NetRun *run)
{
    const NetTopology *t = run->topology;
    const int steps = run->algorithm->steps(&run->shape);
    g_autoptr(GString) list = g_string_new(NULL);
    NetStep step = {0};
    int count = 0;
    for (int s = 0; s < steps; s++) {
        net_step_fill(&step, run->algorithm, &run->shape, run->bytes, s);
        for (int i = 0; i < step.count; i++, count++) {
            const NetMessage *m = &step.messages[i];
            const int32_t *links = NULL;
            const int hops = net_route(run->routes, m->from, m->to, 0, &links);
            double latency_s = 0;
            for (int h = 0; h < hops; h++)
                latency_s += (double)t->links[links[h]].latency_ps * 1e-12;
            g_string_append_printf(list, "%d %d %d %" G_GINT64_FORMAT " %.15g %d", s, m->from, m->to,
                                   m->bytes, latency_s, hops);
            for (int h = 0; h < hops; h++)
                g_string_append_printf(list, " %d", links[h]);
            g_string_append_c(list, '\n');
        }
    }
    net_step_clear(&step);
    GString *text = g_string_new(NULL);
    g_string_append_printf(text, "%d %d %d\n", run->shape.ranks, steps, t->link_count);
    for (int l = 0; l < t->link_count; l++)
        g_string_append_printf(text, "%" G_GINT64_FORMAT "\n", t->links[l].bytes_per_s);
    g_string_append_printf(text, "%d\n%s", count, list->str);
    return text;
}

static double theirs_s(const NetRun *run)
{
    g_autoptr(GString) text = written(run);
    g_autofree char *path = NULL, *output = NULL;
    GError *error = NULL;
    int status = -1;
    const int file = g_file_open_tmp("orrery-simgrid-XXXXXX", &path, &error);
    g_assert_no_error(error);
    g_close(file, NULL);
    g_file_set_contents(path, text->str, (gssize)text->len, &error);
    g_assert_no_error(error);
    char *argv[] = {(char *)SIMGRID_REPLAY, path, (char *)"--log=root.thres:critical", NULL};
    g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &output, NULL, &status, &error);
    g_assert_no_error(error);
    g_remove(path);
    g_assert_cmpint(status, ==, 0);
    return g_ascii_strtod(output, NULL);
}

/* An algorithm of any operation that runs on the shape, sums in no switch and sends something. */
static const NetAlgorithm *drawn(GRand *random, const NetShape *shape)
{
    int count = 0;
    const NetAlgorithm *table = net_algorithms(&count);
    for (;;) {
        const NetAlgorithm *a = &table[g_rand_int_range(random, 0, count)];
        if (a->switches == NULL && net_op_moves_data(a->op) && net_algorithm_refuses(a, shape) == NULL)
            return a;
    }
}

static void test_same_times(void)
{
    static const int sizes[] = {8, 16, 24, 32};
    GRand *random = g_rand_new_with_seed(20);
    double worst = 0, contended = 0;
    for (int i = 0; i < COLLECTIVES; i++) {
        const char *fabric = fabrics[i % 4];
        const int gpus = sizes[g_rand_int_range(random, 0, 4)];
        NetTopology t = built(fabric, gpus);
        NetRun run = {.shape = {.ranks = gpus, .dims = {4, gpus / 4}, .dim_count = 2, .segments = 4},
                      .bytes = g_rand_int_range(random, 1 << 16, 1 << 26),
                      .topology = &t,
                      .routing = i % 8 < 4 ? NET_ROUTE_ECMP : NET_ROUTE_SHORTEST,
                      .seed = (uint64_t)i};
        run.algorithm = drawn(random, &run.shape);
        run.routes = net_routes_plain(&t, run.routing, run.seed);
        NetResult result;
        GError *error = NULL;
        net_run(&run, true, &result, &error);
        g_assert_no_error(error);
        const double ours = (double)result.flow_ps * 1e-12, theirs = theirs_s(&run);
        contended += result.flow_ps > result.analytic_ps;
        worst = MAX(worst, fabs(ours / theirs - 1));
        g_test_message("%s, %d GPUs, %s %s of %" G_GINT64_FORMAT " bytes: %.9f s, SimGrid %.9f s (%+.4f %%)",
                       fabric, gpus, run.algorithm->name, net_op_name(run.algorithm->op), run.bytes, ours,
                       theirs, 100 * (ours / theirs - 1));
        g_assert_cmpfloat(fabs(ours / theirs - 1), <=, TOLERANCE);
        net_result_clear(&result);
        net_routes_free(run.routes);
        net_topology_clear(&t);
    }
    g_test_message("%.0f of %d with contention; the farthest %.4f %% apart", contended, COLLECTIVES,
                   100 * worst);
    g_assert_cmpfloat(contended, >=, 5);
    g_rand_free(random);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/simgrid/same-times", test_same_times);
    return g_test_run();
}
