/* tests/bench/bench_flows.c - how many flows the solver completes a second: rings and all-to-alls on fat trees, flows that
 * are equal, and flows that all differ. One line a case; the seconds hold routes, steps and the analytic pass too.
 */
#include <stdio.h>

#include "network/flows.h"
#include "network/replay.h"

static void report(const char *name, double flows, double seconds, const char *goal)
{
    printf("%-58s %9.2f M flows  %7.2f s  %6.2f M/s  (goal %s)\n", name, flows * 1e-6, seconds,
           flows / seconds * 1e-6, goal);
}

static void collective(const char *name, NetOp op, const char *algorithm, int gpus, bool scatter,
                       int64_t bytes, const char *goal)
{
    const NetFabric fabric = {.gpus = gpus,
                              .gpus_per_node = 8,
                              .up_bytes_per_s = 450000000000,
                              .out_bytes_per_s = 50000000000,
                              .up_latency_ps = 3000000,
                              .out_latency_ps = 5000000};
    NetTopology t;
    if (!net_topology_build("fat-tree", &fabric, &t, NULL))
        return;
    int32_t *place = g_new(int32_t, gpus);
    for (int r = 0; r < gpus; r++)
        place[r] = scatter ? r % (gpus / 8) * 8 + r / (gpus / 8) : r;
    const NetRun run = {.algorithm = net_algorithm_find(op, algorithm, NULL),
                        .shape = {.ranks = gpus, .dims = {8, gpus / 8}, .dim_count = 2, .segments = 16},
                        .bytes = bytes,
                        .topology = &t,
                        .place = place,
                        .routing = NET_ROUTE_ECMP};
    NetResult result;
    const gint64 start = g_get_monotonic_time();
    GError *error = NULL;
    if (net_run(&run, true, &result, &error)) {
        report(name, (double)result.flows, (double)(g_get_monotonic_time() - start) * 1e-6, goal);
        net_result_clear(&result);
    } else {
        printf("%s: %s\n", name, error->message);
        g_error_free(error);
    }
    g_free(place);
    net_topology_clear(&t);
}

/* Flows of random sizes between random GPUs, `at_once` of them under way. */
static void different(const char *name, int gpus, int at_once, int flows, const char *goal)
{
    const NetFabric fabric = {
        .gpus = gpus, .gpus_per_node = 8, .up_bytes_per_s = 450000000000, .out_bytes_per_s = 50000000000};
    NetTopology t;
    if (!net_topology_build("fat-tree", &fabric, &t, NULL))
        return;
    OrrArena *arena = orr_arena_new();
    NetFlows *solver = net_flows_new(&t, at_once, 16, arena);
    NetRoutes *routes = net_routes_new(&t, NET_ROUTE_ECMP, 1, NULL);
    GRand *random = g_rand_new_with_seed(1);
    const gint64 start = g_get_monotonic_time();
    int64_t when = 0;
    for (int32_t i = 0, slot = 0; i < flows; i++, slot++) {
        if (i >= at_once)
            net_flows_next(solver, &when, &slot);
        const int from = g_rand_int_range(random, 0, gpus),
                  to = (from + g_rand_int_range(random, 1, gpus)) % gpus;
        const int32_t *links = NULL;
        const int hops = net_route(routes, from, to, 0, &links);
        net_flows_start(solver, slot, links, hops, g_rand_int_range(random, 1000000, 100000000), 0);
    }
    report(name, flows, (double)(g_get_monotonic_time() - start) * 1e-6, goal);
    g_rand_free(random);
    net_routes_free(routes);
    orr_arena_free(arena);
    net_topology_clear(&t);
}

int main(void)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    collective("ring all-reduce of 1 GiB, 1,024 GPUs, ranks by node", NET_ALL_REDUCE, "ring", 1024, false,
               1 << 30, "<= 5 s, 1 M/s");
    collective("... ranks scattered over the nodes", NET_ALL_REDUCE, "ring", 1024, true, 1 << 30, "<= 5 s");
    collective("all-to-all pairwise, 1,024 GPUs", NET_ALL_TO_ALL, "pairwise", 1024, false, 1 << 30, "1 M/s");
    collective("all-reduce over rails, 4,096 GPUs", NET_ALL_REDUCE, "hierarchical-rails", 4096, false,
               1 << 30, "1 M/s");
    different("random flows, 64 GPUs, 64 at once", 64, 64, 200000, "0.3 M/s");
    different("random flows, 1,024 GPUs, 1,024 at once", 1024, 1024, 50000, "0.3 M/s");
    return 0;
}
