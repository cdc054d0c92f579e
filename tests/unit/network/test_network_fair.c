/* tests/unit/network/test_network_fair.c - flows on shared links: max-min fair rates, by hand and by the book. */
#include <math.h>
#include <string.h>

#include "network/flows.h"
#include "network/routes.h"
#include "tests/unit/network_fixture.h"

#define MANY 120

/* Three flows on two links: the shared link is split, what is left goes to the one that can use it. */
static void max_min(void)
{
    static const char text[] = "{\"nodes\": [\"a\", \"b\", \"c\", {\"name\": \"s\", \"switch\": true}],"
                               "\"links\": [{\"from\": \"a\", \"to\": \"s\", \"bytes_per_s\": 10},"
                               "{\"from\": \"s\", \"to\": \"b\", \"bytes_per_s\": 4}, {\"from\": \"s\", "
                               "\"to\": \"c\", \"bytes_per_s\": 100}]}";
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), "test", NULL);
    NetTopology t;
    g_assert_true(net_topology_read(orr_json_root(doc), "test", &t, NULL));
    orr_json_free(doc);
    OrrArena *arena = orr_arena_new();
    NetFlows *flows = net_flows_new(&t, 3, 2, arena);
    NetRoutes *routes = net_routes_new(&t, NET_ROUTE_SHORTEST, 0, NULL);
    const int to[3] = {1, 1, 2};
    for (int i = 0; i < 3; i++) {
        const int32_t *links = NULL;
        const int hops = net_route(routes, 0, to[i], 0, &links);
        g_assert_cmpint(hops, ==, 2);
        net_flows_start(flows, i, links, hops, i == 2 ? 60 : 10, 0);
    }
    /* a-b two flows of 2 each, a-c 6: 5 s for the first two, then a-c has 10 for its last 30. */
    int64_t when = 0;
    int32_t slot = 0;
    g_assert_true(net_flows_next(flows, &when, &slot) && net_flows_next(flows, &when, &slot));
    g_assert_cmpint(when, ==, 5000000000000);
    g_assert_true(net_flows_next(flows, &when, &slot));
    g_assert_cmpint(slot, ==, 2);
    g_assert_cmpint(when, ==, 8000000000000);
    g_assert_false(net_flows_next(flows, &when, &slot));
    net_routes_free(routes);
    orr_arena_free(arena);
    net_topology_clear(&t);
}

typedef struct Plain {
    int32_t links[8];
    int hops;
    double left, rate, from_s;
    bool done, set;
} Plain;

static void fill_all(const NetTopology *t, Plain *flows)
{
    g_autofree double *left = g_new(double, t->link_count);
    for (int l = 0; l < t->link_count; l++)
        left[l] = (double)t->links[l].bytes_per_s;
    for (;;) {
        g_autofree int *on = g_new0(int, t->link_count);
        double least = INFINITY;
        int tightest = -1;
        for (int i = 0; i < MANY; i++)
            for (int h = 0; h < flows[i].hops && !flows[i].set; h++)
                on[flows[i].links[h]]++;
        for (int l = 0; l < t->link_count; l++) {
            if (on[l] > 0 && left[l] / on[l] < least) {
                least = left[l] / on[l];
                tightest = l;
            }
        }
        if (tightest < 0)
            return;
        for (int i = 0; i < MANY; i++) {
            bool on_it = false;
            for (int h = 0; h < flows[i].hops && !flows[i].set; h++)
                on_it = on_it || flows[i].links[h] == tightest;
            if (!on_it)
                continue;
            flows[i].set = true;
            flows[i].rate = least;
            for (int h = 0; h < flows[i].hops; h++)
                left[flows[i].links[h]] -= least;
        }
    }
}

/* Moves everything to the next end; those that begin before it are filled in first. */
static double next_end(const NetTopology *t, Plain *flows, double now_s, int *ret_index)
{
    for (;;) {
        double soonest = INFINITY, begin = INFINITY;
        for (int i = 0; i < MANY; i++)
            flows[i].set = flows[i].done || flows[i].from_s > now_s;
        fill_all(t, flows);
        for (int i = 0; i < MANY; i++) {
            if (!flows[i].done && flows[i].from_s > now_s)
                begin = MIN(begin, flows[i].from_s);
            else if (!flows[i].done && flows[i].left / flows[i].rate < soonest)
                soonest = flows[i].left / flows[i].rate, *ret_index = i;
        }
        const bool begins = begin <= now_s + soonest;
        const double step = begins ? begin - now_s : soonest;
        for (int i = 0; i < MANY; i++)
            flows[i].left -= flows[i].done || flows[i].from_s > now_s ? 0 : flows[i].rate * step;
        now_s = begins ? begin : now_s + soonest;
        if (!begins) {
            flows[*ret_index].done = true;
            return now_s;
        }
    }
}

typedef struct Draw {
    const char *fabric;
    bool staggered,
        equal;     /* flows begin one after another; all have the same bytes, so that many end together */
    int receivers; /* 0: all */
} Draw;

static void start_all(const Draw *draw, uint64_t seed, NetFlows *flows, NetRoutes *routes, Plain *plain)
{
    GRand *random = g_rand_new_with_seed((guint32)seed);
    for (int i = 0; i < MANY; i++) {
        const int few = draw->receivers, from = g_rand_int_range(random, few, 32);
        const int to =
            few > 0 ? g_rand_int_range(random, 0, few) : (from + g_rand_int_range(random, 1, 32)) % 32;
        const int bytes = draw->equal ? 100000000 : g_rand_int_range(random, 1000000, 1000000000);
        const int64_t begin_ps = draw->staggered ? g_rand_int_range(random, 0, 100) * (int64_t)1000000007 : 0;
        plain[i] = (Plain){.left = bytes, .from_s = (double)begin_ps * 1e-12};
        const int32_t *links = NULL;
        plain[i].hops = net_route(routes, from, to, i, &links);
        memcpy(plain[i].links, links, sizeof(int32_t) * (gsize)plain[i].hops);
        net_flows_start(flows, i, plain[i].links, plain[i].hops, bytes, begin_ps);
    }
    g_rand_free(random);
}

/* Ends one by one as filling from scratch has them; who ends first of those that end together is not asked. */
static void by_the_book(const Draw *draw, uint64_t seed)
{
    const NetFabric fabric = {.gpus = 32,
                              .gpus_per_node = 4,
                              .up_bytes_per_s = 400 * GB,
                              .out_bytes_per_s = 25 * GB,
                              .oversubscription = 2,
                              .leaf_gpus = 8,
                              .dims = {8, 4},
                              .dim_count = 2};
    NetTopology t = built(draw->fabric, &fabric);
    OrrArena *arena = orr_arena_new();
    NetFlows *flows = net_flows_new(&t, MANY, 8, arena);
    NetRoutes *routes = net_routes_new(&t, NET_ROUTE_ECMP, seed, NULL);
    Plain plain[MANY];
    start_all(draw, seed, flows, routes, plain);
    double now = 0;
    for (int i = 0; i < MANY; i++) {
        int64_t when = 0;
        int32_t slot = 0;
        int index = 0;
        now = next_end(&t, plain, now, &index);
        g_assert_true(net_flows_next(flows, &when, &slot));
        if (!draw->equal)
            g_assert_cmpint(slot, ==, index);
        g_assert_cmpfloat_with_epsilon((double)when * 1e-12, now, 1e-9 * now + 1e-11);
    }
    net_routes_free(routes);
    orr_arena_free(arena);
    net_topology_clear(&t);
}

static void max_min_by_the_book(void)
{
    static const Draw draws[] = {
        {"leaf-spine", false, false, 0}, {"leaf-spine", true, false, 0}, {"leaf-spine", true, true, 0},
        {"leaf-spine", true, false, 3},  {"rail", true, false, 0},       {"rail", false, false, 1},
        {"torus", false, false, 0},      {"torus", true, true, 0},       {"torus", true, false, 2}};
    for (guint d = 0; d < G_N_ELEMENTS(draws); d++)
        for (uint64_t seed = 1; seed <= 25; seed++)
            by_the_book(&draws[d], seed);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network/max-min", max_min);
    g_test_add_func("/network/max-min-by-the-book", max_min_by_the_book);
    return g_test_run();
}
