/* tests/unit/network_fixture.h - fabrics to send over. */
#ifndef ORR_TESTS_NETWORK_FIXTURE_H
#define ORR_TESTS_NETWORK_FIXTURE_H

#include "network/flows.h"

#define GB 1000000000LL

static inline NetTopology built(const char *name, const NetFabric *fabric)
{
    NetTopology t;
    GError *error = NULL;
    net_topology_build(name, fabric, &t, &error);
    g_assert_no_error(error);
    return t;
}

/* n GPUs on one switch. */
static inline NetTopology star(int n, int64_t rate, int64_t latency_ps)
{
    const NetFabric fabric = {
        .gpus = n, .gpus_per_node = n, .up_bytes_per_s = rate, .up_latency_ps = latency_ps};
    return built("nvswitch", &fabric);
}

static inline void near(int64_t ps, double seconds, double tolerance)
{
    g_assert_cmpfloat_with_epsilon((double)ps * 1e-12, seconds, seconds * tolerance);
}

#endif
