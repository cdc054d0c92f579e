/* tests/fuzz/fuzz_topology.c - bytes as a file of nodes and links: a fabric on which a collective runs, or one sentence. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "network/paced.h"
#include "network/replay.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_error(GError *error)
{
    if (error == NULL || error->domain != ORR_ERROR || error->code == ORR_ERROR_INTERNAL ||
        strchr(error->message, '\n') != NULL || !g_utf8_validate(error->message, -1, NULL))
        abort();
    g_error_free(error);
}

static void run(const NetTopology *topology, NetOp op, const char *name, NetRouting routing)
{
    GError *error = NULL;
    const int ranks = MIN(topology->gpus, 12);
    const NetRun asked = {.algorithm = net_algorithm_find(op, name, NULL),
                          .shape = {.ranks = ranks, .dims = {ranks}, .dim_count = 1, .segments = 2},
                          .bytes = 1000003,
                          .topology = topology,
                          .routing = routing};
    NetResult result;
    if (!net_run(&asked, true, &result, &error)) {
        check_error(error);
        return;
    }
    if (result.flow_ps < 0 || result.analytic_ps < 0)
        abort();
    net_result_clear(&result);
}

/* A stream of every GPU to the next one, as the messages of a step are. */
static void run_streams(const NetTopology *topology, bool lossless)
{
    GError *error = NULL;
    const int32_t *links = NULL;
    NetRoutes *routes = net_routes_new(topology, NET_ROUTE_ECMP, 1, NULL);
    NetPaced *paced = net_paced_new(topology, 1e9, lossless);
    for (int g = 0; g < MIN(topology->gpus, 12); g++) {
        const int hops = net_route(routes, g, (g + 1) % topology->gpus, 0, &links);
        if (hops < 0)
            continue;
        net_paced_stream(paced);
        net_paced_route(paced, links, hops, 1);
    }
    net_paced_solve(paced);
    if (!net_paced_check(paced, &error))
        abort();
    net_paced_free(paced);
    net_routes_free(routes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    GError *error = NULL;
    OrrJsonDoc *doc = orr_json_parse((const char *)data, size, "fuzz", &error);
    if (doc == NULL) {
        g_error_free(error);
        return 0;
    }
    NetTopology topology;
    if (!net_topology_read(orr_json_root(doc), "fuzz", &topology, &error)) {
        check_error(error);
    } else {
        run(&topology, NET_ALL_REDUCE, "ring", NET_ROUTE_SHORTEST);
        run(&topology, NET_ALL_REDUCE, "nvls", NET_ROUTE_RAIL);
        run(&topology, NET_ALL_TO_ALL, "direct", NET_ROUTE_ADAPTIVE);
        run(&topology, NET_BROADCAST, "binomial", NET_ROUTE_E_ECMP);
        run_streams(&topology, false);
        run_streams(&topology, true);
        if (!(net_bisection_bytes_per_s(&topology) >= 0))
            abort();
        net_topology_clear(&topology);
    }
    orr_json_free(doc);
    return 0;
}
