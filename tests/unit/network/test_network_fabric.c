/* tests/unit/network/test_network_fabric.c - fabrics, ways through them, and collectives as flows. */
#include <math.h>
#include <string.h>

#include "network/flows.h"
#include "network/proof.h"
#include "network/replay.h"

#define GB 1000000000LL

static NetTopology built(const char *name, const NetFabric *fabric)
{
    NetTopology t;
    GError *error = NULL;
    net_topology_build(name, fabric, &t, &error);
    g_assert_no_error(error);
    return t;
}

/* n GPUs on one switch. */
static NetTopology star(int n, int64_t rate, int64_t latency_ps)
{
    const NetFabric fabric = {
        .gpus = n, .gpus_per_node = n, .up_bytes_per_s = rate, .up_latency_ps = latency_ps};
    return built("nvswitch", &fabric);
}

static NetResult timed(const NetTopology *t, NetOp op, const char *name, const NetShape *shape, int64_t bytes,
                       NetRouting routing)
{
    GError *error = NULL;
    const NetRun run = {.algorithm = net_algorithm_find(op, name, &error),
                        .shape = *shape,
                        .bytes = bytes,
                        .topology = t,
                        .routing = routing,
                        .seed = 1};
    NetResult result = {0};
    g_assert_no_error(error);
    net_run(&run, true, &result, &error);
    g_assert_no_error(error);
    return result;
}

static void near(int64_t ps, double seconds, double tolerance)
{
    g_assert_cmpfloat_with_epsilon((double)ps * 1e-12, seconds, seconds * tolerance);
}

typedef struct Vector {
    NetOp op;
    const char *name;
    int ranks;
    int64_t bytes, rate, latency_ps;
    double seconds;
} Vector;

static void textbook(void)
{
    const Vector rows[] = {
        {NET_ALL_REDUCE, "ring", 8, 100000000, 50 * GB, 5000000, 3.570e-3},
        {NET_ALL_REDUCE, "recursive-halving-doubling", 8, 100000000, 50 * GB, 5000000, 3.530e-3},
        {NET_ALL_REDUCE, "ring", 64, 1000000, 50 * GB, 5000000, 669.375e-6},
        {NET_ALL_REDUCE, "recursive-halving-doubling", 64, 1000000, 50 * GB, 5000000, 99.375e-6},
        {NET_ALL_REDUCE, "binomial", 8, 100000000, 50 * GB, 5000000, 12.03e-3}, /* reduce, then broadcast */
        {NET_ALL_REDUCE, "butterfly", 8, 100000000, 50 * GB, 5000000, 3 * 2.005e-3},
        {NET_ALL_REDUCE, "nvls", 8, 100000000, 50 * GB, 5000000, 2 * 5e-6 + 2e-3},
        {NET_ALL_REDUCE, "ring", 1024, 350 * GB, 50 * GB, 0, 13.986328},
        {NET_BROADCAST, "direct", 8, 5000000, 1000000, 0, 35},
        {NET_BROADCAST, "linear", 8, 5000000, 1000000, 0, 35},
        {NET_BROADCAST, "binomial", 8, 5000000, 1000000, 0, 15},
        {NET_BROADCAST, "binomial", 5, 1000000, 50 * GB, 5000000, 3 * 25e-6},
        {NET_BROADCAST, "pipelined", 8, 1000000, 50 * GB, 5000000, 10 * 10e-6},
        {NET_ALL_TO_ALL, "pairwise", 4, 4000000, 50 * GB, 5000000, 3 * 25e-6},
        {NET_ALL_TO_ALL, "bruck", 8, 8000000, 50 * GB, 5000000, 3 * 85e-6},
        {NET_ALL_GATHER, "bruck", 8, 8000000, 50 * GB, 5000000, 3 * 5e-6 + 140e-6},
        {NET_SCATTER, "binomial", 8, 8000000, 50 * GB, 5000000, 3 * 5e-6 + 140e-6},
        {NET_GATHER, "direct", 8, 8000000, 50 * GB, 5000000, 5e-6 + 140e-6},
        {NET_BARRIER, "dissemination", 9, 0, 50 * GB, 5000000, 4 * 5e-6},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        const Vector *v = &rows[i];
        NetTopology t = star(v->ranks, v->rate, v->latency_ps);
        const NetShape shape = {.ranks = v->ranks, .dims = {v->ranks}, .dim_count = 1, .segments = 4};
        NetResult r = timed(&t, v->op, v->name, &shape, v->bytes, NET_ROUTE_SHORTEST);
        near(r.analytic_ps, v->seconds, 1e-9 + (v->ranks == 1024 ? 1e-6 : 0));
        g_assert_cmpint(r.flow_ps, ==,
                        r.analytic_ps); /* every port is one message's at a time, or evenly shared */
        net_result_clear(&r);
        net_topology_clear(&t);
    }
}

/* Cubes that optical switches join are the torus of the same sides; the same cubes wired as a longer one have less bisection. */
static void tpu_cubes(void)
{
    NetFabric fabric = {.gpus = 256,
                        .gpus_per_node = 4,
                        .up_bytes_per_s = 300 * GB,
                        .out_bytes_per_s = 25 * GB,
                        .dims = {8, 8, 4},
                        .dim_count = 3};
    NetTopology cubes = built("tpu-cubes", &fabric), torus = built("torus", &fabric);
    g_assert_cmpint(cubes.link_count, ==, torus.link_count);
    for (int l = 0; l < cubes.link_count; l++)
        g_assert_true(cubes.links[l].from == torus.links[l].from && cubes.links[l].to == torus.links[l].to &&
                      cubes.links[l].bytes_per_s == torus.links[l].bytes_per_s);
    memcpy(fabric.dims, (const int[]){4, 4, 16}, 3 * sizeof(int));
    NetTopology wired = built("tpu-cubes", &fabric);
    g_assert_cmpint(wired.link_count, ==, cubes.link_count);
    g_assert_cmpfloat(net_bisection_bytes_per_s(&wired), ==, 2 * 16 * 50.0 * GB);
    memcpy(fabric.dims, (const int[]){2, 8, 16}, 3 * sizeof(int));
    NetTopology none = {0};
    g_autoptr(GError) error = NULL;
    g_assert_false(net_topology_build("tpu-cubes", &fabric, &none, &error));
    g_assert_nonnull(strstr(error->message, "multiples of 4"));
    net_topology_clear(&cubes);
    net_topology_clear(&torus);
    net_topology_clear(&wired);
}

/* 8 x 4 GPUs, 450 GB/s in a node and 50 GB/s across: 1 GB. */
static void grids(void)
{
    const NetFabric fabric = {
        .gpus = 32, .gpus_per_node = 8, .up_bytes_per_s = 450 * GB, .out_bytes_per_s = 50 * GB};
    NetTopology t = built("rail", &fabric);
    const NetShape shape = {.ranks = 32, .dims = {8, 4}, .dim_count = 2, .segments = 1000};
    const double torus = 2 * 7.0 / 8 / 450 + 2 * 3.0 / 4 / 8 / 50,
                 mesh = 2 * 7.0 / 8 / 450 + 2 * 3.0 / 4 / 50;
    g_assert_cmpfloat_with_epsilon(torus, 7.639e-3, 1e-6);
    g_assert_cmpfloat_with_epsilon(mesh, 33.889e-3, 1e-6);
    const struct {
        const char *name;
        double seconds, tolerance;
    } rows[] = {{"torus-2d", torus, 1e-6},
                {"hierarchical-rails", torus, 1e-6},
                {"mesh-2d", mesh, 1e-6},
                {"hierarchical-leader", 2.0 / 450 + 2 * 3.0 / 4 / 50, 0.01}};
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        NetResult r = timed(&t, NET_ALL_REDUCE, rows[i].name, &shape, GB, NET_ROUTE_RAIL);
        near(r.analytic_ps, rows[i].seconds, rows[i].tolerance);
        g_assert_cmpint(r.flow_ps, ==, r.analytic_ps);
        net_result_clear(&r);
    }
    net_topology_clear(&t);
}

/* Analytic is never more than the flows, and theirs sum up what every rank sent. */
static void bound(void)
{
    const NetFabric fabric = {.gpus = 24,
                              .gpus_per_node = 4,
                              .up_bytes_per_s = 300 * GB,
                              .out_bytes_per_s = 25 * GB,
                              .up_latency_ps = 2000000,
                              .out_latency_ps = 5000000,
                              .oversubscription = 3,
                              .leaf_gpus = 8,
                              .pod_leaves = 2};
    const char *const fabrics[] = {"leaf-spine", "fat-tree", "rail", "dragonfly", "boards"};
    int count = 0;
    const NetAlgorithm *table = net_algorithms(&count);
    for (gsize f = 0; f < G_N_ELEMENTS(fabrics); f++) {
        NetTopology t = built(fabrics[f], &fabric);
        for (int a = 0; a < count; a++) {
            const NetShape shape = {.ranks = 24, .dims = {4, 6}, .dim_count = 2, .segments = 3};
            if (net_algorithm_refuses(&table[a], &shape) != NULL || (table[a].switches != NULL && f == 4))
                continue;
            for (int routing = 0; routing < NET_ROUTING_COUNT; routing++) {
                NetResult r = timed(&t, table[a].op, table[a].name, &shape,
                                    table[a].op == NET_BARRIER ? 0 : 12000003, (NetRouting)routing);
                g_assert_cmpint(r.analytic_ps, <=, r.flow_ps + r.flow_ps / 1000000);
                net_result_clear(&r);
            }
        }
        net_topology_clear(&t);
    }
}

typedef struct Width {
    const char *name;
    NetFabric fabric;
    double bytes_per_s;
} Width;

static void bisection(void)
{
    const double B = 50e9, U = 400e9;
    const Width rows[] = {
        {"nvswitch", {.gpus = 16}, 8 * U},
        {"pairs", {.gpus = 8}, 16 * U / 7},
        {"pcie-tree", {.gpus = 8}, U},
        {"nvl72", {.gpus = 72}, 36 * (U + B)},
        {"leaf-spine", {.gpus = 64, .leaf_gpus = 16, .oversubscription = 4, .gpus_per_node = 8}, 32 * B / 4},
        {"fat-tree",
         {.gpus = 64, .leaf_gpus = 8, .pod_leaves = 2, .oversubscription = 2, .gpus_per_node = 8},
         32 * B / 2},
        {"rail", {.gpus = 64, .gpus_per_node = 8}, 32 * B},
        {"llama3-pods", {.gpus = 128, .leaf_gpus = 8, .pod_leaves = 8, .gpus_per_node = 8}, 64 * B / 7},
        {"dragonfly",
         {.gpus = 16, .leaf_gpus = 2, .gpus_per_node = 1},
         8 * B}, /* two groups, all global links between */
        {"bcube", {.gpus = 16, .dims = {4, 4}, .dim_count = 2}, 8 * B}, /* counted below */
        {"torus", {.gpus = 64, .dims = {4, 4, 4}, .dim_count = 3}, 2 * 16 * U / 6},
        {"torus", {.gpus = 16, .dims = {4, 4}, .dim_count = 2}, 2 * 4 * U / 4},
        {"torus", {.gpus = 256, .dims = {4, 4, 4, 4}, .dim_count = 4}, 2 * 64 * U / 8},
        {"mesh-2d", {.gpus = 16, .dims = {4, 4}, .dim_count = 2}, 4 * U / 4},
        {"boards", {.gpus = 16, .gpus_per_node = 4}, 2 * 4 * B / 2},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        NetFabric fabric = rows[i].fabric;
        fabric.up_bytes_per_s = (int64_t)U;
        fabric.out_bytes_per_s = (int64_t)B;
        NetTopology t = built(rows[i].name, &fabric);
        g_test_message("%s", rows[i].name);
        g_assert_cmpfloat_with_epsilon(net_bisection_bytes_per_s(&t), rows[i].bytes_per_s, 1e3);
        net_topology_clear(&t);
    }
}

/* Where ranks sit decides what a ring costs: neighbours in one node, or every hop across. */
static void placement(void)
{
    const NetFabric fabric = {
        .gpus = 16, .gpus_per_node = 4, .up_bytes_per_s = 400 * GB, .out_bytes_per_s = 25 * GB};
    NetTopology t = built("rail", &fabric);
    int32_t scattered[16];
    for (int r = 0; r < 16; r++)
        scattered[r] = r % 4 * 4 + r / 4;
    NetRun run = {.algorithm = net_algorithm_find(NET_ALL_TO_ALL, "pairwise", NULL),
                  .shape = {.ranks = 4, .dims = {4}, .dim_count = 1, .segments = 1},
                  .bytes = 4 * GB,
                  .topology = &t};
    NetResult near_by, far;
    g_assert_true(net_run(&run, true, &near_by, NULL));
    run.place = scattered;
    g_assert_true(net_run(&run, true, &far, NULL));
    near(near_by.flow_ps, 3.0 / 400, 1e-6);
    near(far.flow_ps, 3.0 / 25, 1e-6);
    net_result_clear(&near_by);
    net_result_clear(&far);
    net_topology_clear(&t);
}

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

/* The same by the book: after every end, rates of all flows from scratch, the tightest link first. */
#define MANY 120

typedef struct Plain {
    int32_t links[8];
    int hops;
    double left, rate;
    bool done, set;
} Plain;

static void fill_all(const NetTopology *t, Plain *flows)
{
    g_autofree double *left = g_new(double, t->link_count);
    for (int l = 0; l < t->link_count; l++)
        left[l] = (double)t->links[l].bytes_per_s;
    for (int i = 0; i < MANY; i++)
        flows[i].set = flows[i].done;
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

static double next_end(Plain *flows, int *ret_index)
{
    double soonest = INFINITY;
    for (int i = 0; i < MANY; i++) {
        if (!flows[i].done && flows[i].left / flows[i].rate < soonest) {
            soonest = flows[i].left / flows[i].rate;
            *ret_index = i;
        }
    }
    for (int i = 0; i < MANY; i++)
        flows[i].left -= flows[i].done ? 0 : flows[i].rate * soonest;
    flows[*ret_index].done = true;
    return soonest;
}

static void by_the_book(uint64_t seed)
{
    const NetFabric fabric = {.gpus = 32,
                              .gpus_per_node = 4,
                              .up_bytes_per_s = 400 * GB,
                              .out_bytes_per_s = 25 * GB,
                              .oversubscription = 2,
                              .leaf_gpus = 8};
    NetTopology t = built("leaf-spine", &fabric);
    OrrArena *arena = orr_arena_new();
    NetFlows *flows = net_flows_new(&t, MANY, 8, arena);
    NetRoutes *routes = net_routes_new(&t, NET_ROUTE_ECMP, seed, NULL);
    GRand *random = g_rand_new_with_seed((guint32)seed);
    Plain plain[MANY];
    for (int i = 0; i < MANY; i++) {
        const int from = g_rand_int_range(random, 0, 32), to = (from + g_rand_int_range(random, 1, 32)) % 32;
        const int bytes = g_rand_int_range(random, 1000000, 1000000000);
        plain[i] = (Plain){.left = bytes};
        const int32_t *links = NULL;
        plain[i].hops = net_route(routes, from, to, i, &links);
        memcpy(plain[i].links, links, sizeof(int32_t) * (gsize)plain[i].hops);
        net_flows_start(flows, i, plain[i].links, plain[i].hops, bytes, 0);
    }
    double now = 0;
    for (int i = 0; i < MANY; i++) {
        int64_t when = 0;
        int32_t slot = 0;
        int index = 0;
        fill_all(&t, plain);
        now += next_end(plain, &index);
        g_assert_true(net_flows_next(flows, &when, &slot));
        g_assert_cmpint(slot, ==, index);
        g_assert_cmpfloat_with_epsilon((double)when * 1e-12, now, 1e-9 * now + 1e-11);
    }
    g_rand_free(random);
    net_routes_free(routes);
    orr_arena_free(arena);
    net_topology_clear(&t);
}

static void max_min_by_the_book(void)
{
    for (uint64_t seed = 1; seed <= 40; seed++)
        by_the_book(seed);
}

/* One link at half rate slows whom it serves; a failed one is gone around, or named when nothing is left. */
static void degraded(void)
{
    const NetFabric fabric = {
        .gpus = 8, .gpus_per_node = 4, .up_bytes_per_s = 400 * GB, .out_bytes_per_s = 25 * GB};
    NetTopology t = built("rail", &fabric);
    const NetShape shape = {.ranks = 8, .dims = {8}, .dim_count = 1, .segments = 1};
    NetResult whole = timed(&t, NET_SEND_RECV, "direct", &shape, GB, NET_ROUTE_SHORTEST);
    near(whole.flow_ps, 1.0 / 25, 1e-6); /* 3 -> 4 and 7 -> 0 cross */
    g_assert_true(net_topology_degrade(&t, "gpu1", "nvswitch0", 0.01, NULL));
    NetResult slow = timed(&t, NET_SEND_RECV, "direct", &shape, GB, NET_ROUTE_SHORTEST);
    near(slow.flow_ps, 1.0 / 4, 1e-6);
    net_result_clear(&whole);
    net_result_clear(&slow);
    GError *error = NULL;
    g_assert_true(net_topology_degrade(&t, "gpu3", "leaf3", 0, NULL));
    const NetRun run = {.algorithm = net_algorithm_find(NET_SEND_RECV, "direct", NULL),
                        .shape = shape,
                        .bytes = GB,
                        .topology = &t};
    g_assert_false(net_run(&run, true, &slow, &error));
    g_assert_nonnull(strstr(error->message, "rank 3 (gpu3) cannot reach rank 4 (gpu4)"));
    g_clear_error(&error);
    g_assert_false(net_topology_degrade(&t, "gpu3", "gpu9", 0, &error));
    g_clear_error(&error);
    net_topology_clear(&t);
}

/* Over a 1:4 oversubscribed core everything that crosses takes four times as long when all cross at once. */
static void oversubscribed(void)
{
    NetFabric fabric = {.gpus = 64,
                        .gpus_per_node = 1,
                        .up_bytes_per_s = 50 * GB,
                        .out_bytes_per_s = 50 * GB,
                        .leaf_gpus = 8,
                        .pod_leaves = 4};
    int32_t place[64];
    for (int r = 0; r < 64; r++)
        place[r] = r % 2 * 32 + r / 2; /* neighbours in different pods */
    int64_t ps[2];
    for (int i = 0; i < 2; i++) {
        fabric.oversubscription = i == 0 ? 1 : 4;
        NetTopology t = built("fat-tree", &fabric);
        const NetRun run = {.algorithm = net_algorithm_find(NET_SEND_RECV, "direct", NULL),
                            .shape = {.ranks = 64, .dims = {64}, .dim_count = 1, .segments = 1},
                            .bytes = GB,
                            .topology = &t,
                            .place = place,
                            .routing = NET_ROUTE_ADAPTIVE};
        NetResult r;
        g_assert_true(net_run(&run, true, &r, NULL));
        ps[i] = r.flow_ps;
        near(r.analytic_ps, 1.0 / 50, 1e-6);
        net_result_clear(&r);
        net_topology_clear(&t);
    }
    near(ps[0], 1.0 / 50, 1e-6);
    near(ps[1], 4.0 / 50, 1e-6);
}

/* Sixteen flows a pair spread better than one: the fullest link by seeds. */
static void spreading(void)
{
    const NetFabric fabric = {.gpus = 64,
                              .gpus_per_node = 1,
                              .up_bytes_per_s = 50 * GB,
                              .out_bytes_per_s = 50 * GB,
                              .leaf_gpus = 8};
    NetTopology t = built("leaf-spine", &fabric);
    int32_t place[64];
    for (int r = 0; r < 64; r++)
        place[r] = r * 9 % 64;
    double load[2] = {0, 0};
    for (int i = 0; i < 2; i++) {
        for (uint64_t seed = 0; seed < 20; seed++) {
            const NetRun run = {.algorithm = net_algorithm_find(NET_SEND_RECV, "direct", NULL),
                                .shape = {.ranks = 64, .dims = {64}, .dim_count = 1, .segments = 1},
                                .bytes = 16000000,
                                .topology = &t,
                                .place = place,
                                .seed = seed,
                                .routing = i == 0 ? NET_ROUTE_ECMP : NET_ROUTE_E_ECMP};
            NetResult r;
            g_assert_true(net_run(&run, true, &r, NULL));
            load[i] += (double)r.fullest_link_bytes / 16000000 / 20;
            net_result_clear(&r);
        }
    }
    g_test_message("fullest link: ECMP %.2f, E-ECMP %.2f messages", load[0], load[1]);
    g_assert_cmpfloat(load[0], >, 2.5); /* 8 flows on 8 uplinks, 8 leaves both ways: 2 to 4 meet somewhere */
    g_assert_cmpfloat(load[1], <, 0.75 * load[0]);
    net_topology_clear(&t);
}

static void bad_files(void)
{
    const char *const texts[] = {
        "[]",
        "{\"nodes\": [\"a\", \"b\"]}",
        "{\"nodes\": [\"a\", \"b\"], \"links\": [{\"from\": \"a\", \"to\": \"c\", \"bytes_per_s\": 1}]}",
        "{\"nodes\": [\"a\", \"a\"], \"links\": []}",
        "{\"nodes\": [\"a\"], \"links\": []}",
        "{\"nodes\": [\"a\", 3], \"links\": []}",
        "{\"nodes\": [\"a\", \"b\"], \"links\": [{\"from\": \"a\", \"to\": \"b\"}]}",
        "{\"nodes\": [\"a\", \"b\"], \"links\": [{\"from\": \"a\", \"to\": \"b\", \"bytes_per_s\": -4}]}",
        "{\"nodes\": [\"a\", \"b\"], \"links\": [{\"from\": \"a\", \"to\": \"a\", \"bytes_per_s\": 4}]}",
        "{\"nodes\": [\"a\", \"b\"], \"links\": [], \"gpus_per_node\": 0}",
    };
    for (gsize i = 0; i < G_N_ELEMENTS(texts); i++) {
        OrrJsonDoc *doc = orr_json_parse(texts[i], strlen(texts[i]), "bad", NULL);
        NetTopology t;
        g_autoptr(GError) error = NULL;
        g_assert_false(net_topology_read(orr_json_root(doc), "bad.json", &t, &error));
        g_assert_true(g_str_has_prefix(error->message, "bad.json: "));
        orr_json_free(doc);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network/textbook", textbook);
    g_test_add_func("/network/grids", grids);
    g_test_add_func("/network/tpu-cubes", tpu_cubes);
    g_test_add_func("/network/bound", bound);
    g_test_add_func("/network/bisection", bisection);
    g_test_add_func("/network/placement", placement);
    g_test_add_func("/network/max-min", max_min);
    g_test_add_func("/network/max-min-by-the-book", max_min_by_the_book);
    g_test_add_func("/network/degraded", degraded);
    g_test_add_func("/network/oversubscribed", oversubscribed);
    g_test_add_func("/network/spreading", spreading);
    g_test_add_func("/network/bad-files", bad_files);
    return g_test_run();
}
