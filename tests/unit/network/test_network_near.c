/* tests/unit/network/test_network_near.c - ways that are searched one by one are those of the tables, on every fabric, with
 * links that failed; steps that are known to be alike send the same. */
#include "network/replay.h"
#include "network/ways.h"
#include "tests/unit/network_fixture.h"

static int32_t count_of(const NetWays *ways, const NetHop *hop)
{
    return hop->list < 0 ? 1 : g_array_index(ways->lists, int32_t, hop->list);
}

static int32_t link_of(const NetWays *ways, const NetHop *hop, int index)
{
    return hop->list < 0 ? -1 - hop->list : g_array_index(ways->lists, int32_t, hop->list + 1 + index);
}

static void assert_same_hop(const NetTopology *t, NetWays *tabled, NetWays *searched, int v, int goal)
{
    const NetHop a = *net_hop_of(tabled, v, goal), b = *net_hop_of(searched, v, goal);
    const bool same = a.weight == b.weight &&
                      (a.weight == G_MAXINT32 ||
                       (a.straight == b.straight && count_of(tabled, &a) == count_of(searched, &b)));
    if (!same)
        g_error("%s, %s to %s: weight %u, not %u; %d links, not %d", t->name, t->vertices[v].name,
                t->vertices[goal].name, b.weight, a.weight, count_of(searched, &b), count_of(tabled, &a));
    for (int i = 0; a.weight < G_MAXINT32 && i < count_of(tabled, &a); i++)
        g_assert_cmpint(link_of(searched, &b, i), ==, link_of(tabled, &a, i));
}

/* Of all relays to all receivers. */
static int64_t compare(const NetTopology *t)
{
    NetWays tabled, searched;
    int64_t compared = 0;
    net_ways_init(&tabled, t, NET_MOST_TABLED);
    net_ways_init(&searched, t, 0);
    g_assert_true(tabled.near == NULL);
    for (int v = 0; v < t->vertex_count; v++)
        for (int goal = 0; goal < t->vertex_count; goal++)
            if (tabled.relay[v] >= 0 && v != goal) {
                assert_same_hop(t, &tabled, &searched, v, goal);
                compared++;
            }
    net_ways_clear(&tabled);
    net_ways_clear(&searched);
    return compared;
}

static NetTopology drawn(GRand *rand, const char *name)
{
    const NetFabric fabric = {.gpus = 64,
                              .gpus_per_node = 1 << g_rand_int_range(rand, 0, 4),
                              .up_bytes_per_s = 400 * GB,
                              .out_bytes_per_s = 25 * GB,
                              .host_bytes_per_s = g_rand_boolean(rand) ? 20 * GB : 0,
                              .oversubscription = g_rand_int_range(rand, 1, 4),
                              .leaf_gpus = g_rand_int_range(rand, 3, 9),
                              .pod_leaves = g_rand_int_range(rand, 2, 5),
                              .dims = {4, 4, 4},
                              .dim_count = 3,
                              .inside = g_rand_int_range(rand, 0, 3)};
    NetTopology t = {0};
    if (!net_topology_build(name, &fabric, &t, NULL)) {
        const NetFabric plain = {.gpus = 72, .gpus_per_node = 8, .dims = {9, 8}, .dim_count = 2};
        NetFabric whole = plain;
        whole.up_bytes_per_s = whole.out_bytes_per_s = GB;
        t = built(name, &whole);
    }
    for (int failed = g_rand_int_range(rand, 0, 12); failed > 0; failed--)
        t.links[g_rand_int_range(rand, 0, t.link_count)].bytes_per_s = 0;
    return t;
}

static void same_as_tables(void)
{
    int count = 0;
    const NetTopologyRow *rows = net_topologies(&count);
    GRand *rand = g_rand_new_with_seed(20261129);
    for (int i = 0; i < count; i++) {
        int64_t compared = 0;
        for (int draw = 0; draw < 24; draw++) {
            NetTopology t = drawn(rand, rows[i].name);
            compared += compare(&t);
            net_topology_clear(&t);
        }
        g_assert_true(compared > 0 || g_strcmp0(rows[i].name, "pairs") == 0);
    }
    g_rand_free(rand);
}

static void alike_steps_send_the_same(void)
{
    static const NetShape shapes[] = {{24, {24}, 1, 0, 4}, {24, {4, 6}, 2, 0, 4}, {24, {2, 3, 4}, 3, 0, 4}};
    int count = 0, alike = 0;
    const NetAlgorithm *rows = net_algorithms(&count);
    for (int i = 0; i < count; i++)
        for (gsize k = 0; k < G_N_ELEMENTS(shapes); k++)
            for (int64_t bytes = 24 * 1024; bytes <= 24 * 1024 + 1; bytes++) {
                NetStep steps[2] = {{0}};
                if (net_algorithm_refuses(&rows[i], &shapes[k]) != NULL)
                    continue;
                for (int s = 0; s < rows[i].steps(&shapes[k]); s++) {
                    const int more = net_steps_alike(&rows[i], &shapes[k], bytes, s);
                    g_assert_cmpint(more, >=, 0);
                    g_assert_cmpint(s + more, <, rows[i].steps(&shapes[k]));
                    net_step_fill(&steps[0], &rows[i], &shapes[k], bytes, s);
                    for (int a = 1; a <= more; a++, alike++) {
                        net_step_fill(&steps[1], &rows[i], &shapes[k], bytes, s + a);
                        g_assert_true(net_step_same(&steps[0], &steps[1]));
                    }
                }
                net_step_clear(&steps[0]);
                net_step_clear(&steps[1]);
            }
    g_assert_cmpint(alike, >, 1000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network/ways/searched-as-tabled", same_as_tables);
    g_test_add_func("/network/steps-alike", alike_steps_send_the_same);
    return g_test_run();
}
