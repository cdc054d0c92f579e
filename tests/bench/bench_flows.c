/* tests/bench/bench_flows.c - how many flows the solver completes a second: rings and all-to-alls on fat trees, flows that
 * are equal, and flows that all differ. One line a case; the seconds are the processor's and hold fabric, routes, steps and the analytic pass too.
 *
 *   bench_flows [WORD]      only cases whose name holds the word
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "network/flows.h"
#include "network/replay.h"

static double processor_s(void)
{
    return (double)clock() / CLOCKS_PER_SEC;
}

static void report(const char *name, double flows, double seconds, const char *goal)
{
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%-58s %12.2f M flows  %7.2f s  %6.2f M/s  %5.2f GB so far  (goal %s)\n", name, flows * 1e-6,
           seconds, flows / seconds * 1e-6, (double)usage.ru_maxrss * 1024e-9, goal);
}

static void collective(const char *only, const char *name, const char *fabric_name, NetOp op,
                       const char *algorithm, int gpus, bool scatter, int64_t bytes, const char *goal)
{
    if (strstr(name, only) == NULL)
        return;
    const double start = processor_s();
    const NetFabric fabric = {.gpus = gpus,
                              .gpus_per_node = 8,
                              .up_bytes_per_s = 450000000000,
                              .out_bytes_per_s = 50000000000,
                              .up_latency_ps = 3000000,
                              .out_latency_ps = 5000000};
    NetTopology t;
    if (!net_topology_build(fabric_name, &fabric, &t, NULL))
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
    GError *error = NULL;
    if (net_run(&run, true, &result, &error)) {
        report(name, (double)result.flows, processor_s() - start, goal);
        net_result_clear(&result);
    } else {
        printf("%s: %s\n", name, error->message);
        g_error_free(error);
    }
    g_free(place);
    net_topology_clear(&t);
}

/* Flows of random sizes between random GPUs, `at_once` of them under way. */
static void different(const char *only, const char *name, int gpus, int at_once, int flows, const char *goal)
{
    if (strstr(name, only) == NULL)
        return;
    const double start = processor_s();
    const NetFabric fabric = {
        .gpus = gpus, .gpus_per_node = 8, .up_bytes_per_s = 450000000000, .out_bytes_per_s = 50000000000};
    NetTopology t;
    if (!net_topology_build("fat-tree", &fabric, &t, NULL))
        return;
    OrrArena *arena = orr_arena_new();
    NetFlows *solver = net_flows_new(&t, at_once, 16, arena);
    NetRoutes *routes = net_routes_new(&t, NET_ROUTE_ECMP, 1, NULL);
    GRand *random = g_rand_new_with_seed(1);
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
    report(name, flows, processor_s() - start, goal);
    g_rand_free(random);
    net_routes_free(routes);
    orr_arena_free(arena);
    net_topology_clear(&t);
}

int main(int argc, char **argv)
{
    const char *only = argc > 1 ? argv[1] : "";
    setvbuf(stdout, NULL, _IOLBF, 0);
    collective(only, "ring all-reduce of 1 GiB, 1,024 GPUs, ranks by node", "fat-tree", NET_ALL_REDUCE,
               "ring", 1024, false, 1 << 30, "<= 5 s, 1 M/s");
    collective(only, "ring all-reduce of 1 GiB, 1,024 GPUs, ranks scattered", "fat-tree", NET_ALL_REDUCE,
               "ring", 1024, true, 1 << 30, "<= 5 s");
    collective(only, "all-to-all pairwise, 1,024 GPUs", "fat-tree", NET_ALL_TO_ALL, "pairwise", 1024, false,
               1 << 30, "1 M/s");
    collective(only, "all-reduce over rails, 4,096 GPUs, fat tree", "fat-tree", NET_ALL_REDUCE,
               "hierarchical-rails", 4096, false, 1 << 30, "1 M/s");
    collective(only, "all-reduce over rails, 16,384 GPUs, eight rails", "rail", NET_ALL_REDUCE,
               "hierarchical-rails", 16384, false, 1 << 30, "<= 120 s, 4 GB");
    collective(only, "all-reduce over rails, 131,072 GPUs, eight rails", "rail", NET_ALL_REDUCE,
               "hierarchical-rails", 131072, false, INT64_C(1) << 30, "<= 8 s");
    collective(only, "all-reduce over rails, 1,048,576 GPUs, eight rails", "rail", NET_ALL_REDUCE,
               "hierarchical-rails", 1 << 20, false, INT64_C(1) << 33, "<= 60 s, 8 GB");
    different(only, "random flows, 64 GPUs, 64 at once", 64, 64, 200000, "0.3 M/s");
    different(only, "random flows, 1,024 GPUs, 1,024 at once", 1024, 1024, 200000, "0.3 M/s");
    return 0;
}
