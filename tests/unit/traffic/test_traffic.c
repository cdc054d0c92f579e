/* tests/unit/traffic/test_traffic.c - a training step on a fabric: alone, crowded, beside others, on broken links. */
#include <math.h>
#include <string.h>

#include "network/paced.h"
#include "report/report.h"
#include "spec/load.h"
#include "traffic/groups.h"

/* Four nodes, a leaf each, data parallelism across: gradients are reduced at the end, beside nothing. */
#define BASE                                                                                                 \
    "{ \"name\": \"job a\", \"model\": \"llama3-8b\","                                                       \
    "  \"cluster\": { \"preset\": \"dgx-h100\", \"nodes\": 4, \"network\": { \"fidelity\": \"flow\","        \
    "    \"topology\": \"leaf-spine\", \"leaf_gpus\": 8 } },"                                                \
    "  \"training\": { \"sequence_length\": 8192, \"global_batch\": 4, \"micro_batch\": 1, \"precision\":"   \
    "    \"bf16\", \"recompute\": \"full\" },"                                                               \
    "  \"parallel\": { \"tensor\": 8, \"sequence_parallel\": true, \"pipeline\": 1, \"data\": 4, \"zero\": " \
    "1 },"                                                                                                   \
    "  \"execution\": { \"framework\": \"megatron-core\", \"attention\": \"flash2\" } }"

#define MOST_SETS 16

typedef struct Run {
    Spec *spec;
    OrrArena *arena;
    Report report;
} Run;

static void run_clear(Run *run)
{
    orr_arena_free(run->arena);
    g_free(run->spec);
}

static bool try_run(const char *const *sets, bool unfold, Run *run, GError **error)
{
    const ReportOptions options = {.unfold = unfold, .check = true, .links = true};
    OrrJsonDoc *doc = orr_json_parse(BASE, strlen(BASE), "base", NULL);
    run->spec = g_new0(Spec, 1);
    run->arena = orr_arena_new();
    const bool ok = spec_load_json(orr_json_root(doc), "base", sets, false, run->spec, NULL, error) &&
                    report_run(run->spec, NULL, &options, run->arena, &run->report, error);
    orr_json_free(doc);
    return ok;
}

/* `sets` separated by ';'. */
static Run run(const char *sets, bool unfold)
{
    GError *error = NULL;
    Run done;
    g_auto(GStrv) words = g_strsplit(sets, ";", -1);
    for (char **word = words; *word != NULL; word++)
        if (**word == '\0' && word[1] == NULL)
            g_clear_pointer(word, g_free);
    if (!try_run((const char *const *)words, unfold, &done, &error))
        g_error("%s: %s", sets, error->message);
    return done;
}

static int64_t step_of(const char *sets)
{
    Run done = run(sets, false);
    const int64_t step_ps = done.report.step_ps;
    run_clear(&done);
    return step_ps;
}

#define NETWORK "cluster.network."
#define ALONE   NETWORK "fidelity=analytic;"

static void alone_is_analytic(void)
{
    Run flow = run("", false);
    g_assert_cmpint(flow.report.step_ps, ==, step_of(NETWORK "fidelity=analytic"));
    g_assert_cmpint(flow.report.network.alone_ps, ==, flow.report.step_ps);
    g_assert_true(flow.report.network.alike);
    g_assert_cmpfloat(flow.report.network.dimensions[TRAFFIC_DATA].slowest, ==, 1);
    run_clear(&flow);
}

/* Every byte of this job's reductions crosses the oversubscribed tier, as the closed form has it. */
static void oversubscribed(void)
{
    Run flow = run("cluster.oversubscription=7", false);
    const double analytic_ps = (double)step_of("cluster.oversubscription=7;" NETWORK "fidelity=analytic");
    g_assert_cmpfloat_with_epsilon(flow.report.network.dimensions[TRAFFIC_DATA].slowest, 7, 1e-6);
    g_assert_cmpfloat_with_epsilon((double)flow.report.step_ps, analytic_ps, 1e-6 * analytic_ps);
    g_assert_cmpint(flow.report.step_ps, >, flow.report.network.alone_ps * 3 / 2);
    run_clear(&flow);
    /* Neighbours on one leaf do not care. */
    const char *inside = "cluster.oversubscription=7;cluster.network.leaf_gpus=32";
    Run near = run(inside, false);
    g_assert_cmpint(near.report.step_ps, ==, near.report.network.alone_ps);
    run_clear(&near);
    for (int i = 0; i < 2; i++) {
        const char *words[] = {NETWORK "algorithm=double-binary-tree",
                               NETWORK "algorithm=recursive-halving-doubling"};
        g_autofree char *sets = g_strconcat("cluster.oversubscription=7;", words[i], NULL);
        Run other = run(sets, false);
        g_assert_cmpfloat_with_epsilon(other.report.network.dimensions[TRAFFIC_DATA].slowest, 7, 1e-6);
        run_clear(&other);
    }
}

/* Two pipeline ranks, two nodes each: the first leaf is under the first rank's reductions alone. */
static void half_a_link(void)
{
    const char *shape = "parallel.pipeline=2;parallel.data=2;parallel.order=tp-dp-pp-cp-ep;";
    g_autofree char *broken = g_strconcat(shape, NETWORK "failed_links=[\"gpu0-leaf0=0.5\"]", NULL);
    g_autofree char *inside = g_strconcat(shape, NETWORK "failed_links=[\"gpu0-nvswitch0=0.5\"]", NULL);
    Run sound = run(shape, false), half = run(broken, false), nvlink = run(inside, false);
    for (int stage = 0; stage < 2; stage++) {
        const SimSegment *before = &sound.report.plan.stages[stage].segments[0],
                         *after = &half.report.plan.stages[stage].segments[0],
                         *tensor = &nvlink.report.plan.stages[stage].segments[0];
        const int64_t healthy_ps = before->grad_reduce.part_ps[SIM_PART_DATA_COMM],
                      ps = after->grad_reduce.part_ps[SIM_PART_DATA_COMM];
        g_assert_cmpint(healthy_ps, >, 0);
        if (stage == 0)
            g_assert_cmpfloat((double)ps, >, 1.8 * (double)healthy_ps);
        else
            g_assert_cmpint(ps, ==, healthy_ps);
        g_assert_cmpint(before->forward.part_ps[SIM_PART_TENSOR_COMM], ==,
                        after->forward.part_ps[SIM_PART_TENSOR_COMM]);
        g_assert_cmpint(before->forward.part_ps[SIM_PART_TENSOR_COMM], <,
                        tensor->forward.part_ps[SIM_PART_TENSOR_COMM]);
    }
    g_assert_cmpint(half.report.step_ps, >, sound.report.step_ps);
    run_clear(&sound);
    run_clear(&half);
    run_clear(&nvlink);
}

/* Where a failed link leaves one way less, two share what is left. */
static void failed_link(void)
{
    Run failed = run(NETWORK "failed_links=[\"leaf0-spine0\"]", false);
    g_assert_cmpfloat(failed.report.network.dimensions[TRAFFIC_DATA].slowest, ==, 2);
    g_assert_cmpfloat(failed.report.network.dimensions[TRAFFIC_DATA].fastest, ==, 1);
    g_assert_false(failed.report.network.alike);
    run_clear(&failed);
}

static char *beside(const char *network)
{
    g_autofree char *text = g_strdup(BASE);
    char *at = strstr(text, "\"fidelity\"");
    *at = '\0';
    char *job = g_strconcat(text, network, ", \"", at + 1, NULL);
    memcpy(strstr(job, "job a"), "job b", 5);
    return job;
}

static void jobs(void)
{
    const char *places[] = {"\"first_node\": 4", "\"first_node\": 1, \"node_stride\": 2"};
    g_autofree char *apart = beside(places[0]), *between = beside(places[1]);
    const char *two = "cluster.oversubscription=2;" NETWORK "machine_nodes=8;" NETWORK "leaf_gpus=16;";
    g_autofree char *alone = g_strconcat(two, NETWORK "node_stride=2", NULL);
    g_autofree char *meets = g_strconcat(two, NETWORK "node_stride=2;" NETWORK "jobs=[", between, "]", NULL);
    g_autofree char *packed = g_strconcat(two, NULL);
    g_autofree char *neighbour = g_strconcat(two, NETWORK "jobs=[", apart, "]", NULL);
    /* Of two jobs whose nodes alternate, both use the uplinks of every leaf. */
    g_assert_cmpint(step_of(alone), ==, step_of(NETWORK "fidelity=analytic"));
    g_assert_cmpint(step_of(meets), >, step_of(alone));
    /* Of two jobs beside each other none uses a link of the other. */
    g_assert_cmpint(step_of(neighbour), ==, step_of(packed));
    Run both = run(meets, false);
    g_assert_cmpint(both.report.network.beside_count, ==, 1);
    g_assert_cmpint(both.report.network.beside[0].end_ps, >, both.report.network.beside[0].alone_ps);
    g_assert_cmpint(both.report.result.ranks, ==, 1);
    run_clear(&both);
}

static void storage(void)
{
    const char *fabric =
        NETWORK "traffic=[{\"name\":\"checkpoint\",\"bytes_per_gpu\":\"40 GB\",\"links\":\"fabric\"}]";
    const char *front = NETWORK "traffic=[{\"name\":\"checkpoint\",\"bytes_per_gpu\":\"40 GB\"}];" NETWORK
                                "front_end_bytes_per_s=25 GB/s";
    const int64_t alone_ps = step_of("");
    g_assert_cmpint(step_of(front), ==, alone_ps);
    g_assert_cmpint(step_of(fabric), >, alone_ps);
    Run run_front = run(front, false);
    /* 8 GPUs x 40 GB over 25 GB/s. */
    g_assert_cmpint(run_front.report.network.beside[0].end_ps, ==, 12800000000000);
    run_clear(&run_front);
}

static void hashed(void)
{
    double plain = 0, split = 0;
    for (int seed = 0; seed < 20; seed++) {
        for (int e = 0; e < 2; e++) {
            g_autofree char *sets =
                g_strdup_printf("cluster.nodes=8;parallel.data=8;training.global_batch=8;" NETWORK
                                "seed=%d;" NETWORK "routing=%s",
                                seed, e ? "e-ecmp" : "ecmp");
            Run done = run(sets, false);
            *(e ? &split : &plain) += done.report.network.dimensions[TRAFFIC_DATA].slowest / 20;
            run_clear(&done);
        }
    }
    g_test_message("slowest ring, mean of 20 seeds: %.2f under ECMP, %.2f under E-ECMP", plain, split);
    g_assert_cmpfloat(plain, >, 2.5);
    g_assert_cmpfloat(split, <, 1.7);
    g_assert_cmpfloat(split, >=, 1);
}

static const TrafficTier *tier_between(const TrafficSummary *network, const char *from, const char *to)
{
    for (int i = 0; i < network->tier_count; i++)
        if (strcmp(network->tiers[i].from, from) == 0 && strcmp(network->tiers[i].to, to) == 0)
            return &network->tiers[i];
    g_assert_not_reached();
}

/* A leaf-spine of 2:1: what GPUs send goes up and fills those links twice as much. */
static void tiers(void)
{
    Run two = run("cluster.oversubscription=2;" NETWORK "topology=leaf-spine;" NETWORK "leaf_gpus=8", false);
    const TrafficTier *up = tier_between(&two.report.network, "leaf", "spine"),
                      *port = tier_between(&two.report.network, "gpu", "leaf");
    g_assert_cmpint(port->links, ==, 32);
    g_assert_cmpfloat_with_epsilon(up->bytes, port->bytes, 1e-9 * up->bytes);
    g_assert_cmpfloat_with_epsilon(up->bytes_per_s, port->bytes_per_s / 2, 1);
    g_assert_cmpfloat_with_epsilon(up->busy_frac, 2 * port->busy_frac, 1e-9);
    run_clear(&two);
}

static void unfolded(void)
{
    const char *shape = "parallel.tensor=2;parallel.pipeline=2;parallel.data=8;training.global_batch=32;"
                        "cluster.oversubscription=4;" NETWORK "routing=ecmp";
    Run folded = run(shape, false), whole = run(shape, true);
    g_assert_cmpint(folded.report.network.shared_links, >, 0);
    g_assert_cmpint(folded.report.step_ps, ==, whole.report.step_ps);
    g_assert_cmpint(folded.report.step_ps, >, folded.report.network.alone_ps);
    run_clear(&folded);
    run_clear(&whole);
}

/* --- streams --- */

static int32_t link_between(const NetTopology *t, int from, int to)
{
    for (int l = 0; l < t->link_count; l++)
        if (t->links[l].from == from && t->links[l].to == to)
            return l;
    g_assert_not_reached();
}

/* Senders 0, 2, 3, 4 to receiver 5; sender 1 to receiver 6, over the link between the switches that 0 takes too. */
static double pause_pace(bool lossless)
{
    NetTopology t = {0};
    for (int g = 0; g < 7; g++)
        net_add_vertex(&t, true, false, "gpu%d", g);
    const int near = net_add_vertex(&t, false, true, "near"), far = net_add_vertex(&t, false, true, "far");
    net_add_cable(&t, near, far, 1e9, 0, 1);
    for (int g = 0; g < 7; g++)
        net_add_cable(&t, g, g < 2 ? near : far, 1e9, 0, 1);
    t.gpus_per_node = 7;
    net_topology_index(&t);
    NetPaced *paced = net_paced_new(&t, 1e9, lossless);
    for (int g = 0; g < 5; g++) {
        const int to = g == 1 ? 6 : 5;
        const int32_t links[] = {link_between(&t, g, g < 2 ? near : far),
                                 g < 2 ? link_between(&t, near, far) : link_between(&t, far, to),
                                 link_between(&t, far, to)};
        net_paced_stream(paced);
        net_paced_route(paced, links, g < 2 ? 3 : 2, 1);
    }
    net_paced_solve(paced);
    GError *error = NULL;
    g_assert_true(net_paced_check(paced, &error));
    g_assert_cmpfloat(net_paced_first_pace(paced, 0), ==, 0.25);
    const double pace = net_paced_first_pace(paced, 1);
    net_paced_free(paced);
    net_topology_clear(&t);
    return pace;
}

static void paused(void)
{
    g_assert_cmpfloat(pause_pace(false), ==, 0.75);
    g_assert_cmpfloat(pause_pace(true), ==, 0.25);
}

/* Streams of random routes over a row of switches: no link above its rate, nobody before its time, and pauses help no one
 * at the start. */
static void random_streams(void)
{
    enum { SWITCHES = 6, STREAMS = 24 };
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    for (int round = 0; round < 200; round++) {
        NetTopology t = {0};
        net_add_vertex(&t, true, false, "gpu");
        for (int s = 0; s < SWITCHES; s++)
            net_add_vertex(&t, false, true, "s%d", s);
        for (int s = 1; s < SWITCHES; s++)
            net_add_cable(&t, s, s + 1, 1e9 * g_rand_int_range(rand, 1, 9), 0, 1);
        t.gpus_per_node = 1;
        net_topology_index(&t);
        NetPaced *free_going = net_paced_new(&t, 2e9, false), *held = net_paced_new(&t, 2e9, true);
        double work = 0;
        for (int i = 0; i < STREAMS; i++) {
            const int from = g_rand_int_range(rand, 1, SWITCHES),
                      to = g_rand_int_range(rand, from + 1, SWITCHES + 1);
            int32_t links[SWITCHES];
            for (int s = from; s < to; s++)
                links[s - from] = link_between(&t, s, s + 1);
            const double weight = g_rand_int_range(rand, 1, 3) * 0.5;
            net_paced_stream(free_going);
            net_paced_stream(held);
            net_paced_route(free_going, links, to - from, weight);
            net_paced_route(held, links, to - from, weight);
            work += weight * (to - from);
        }
        net_paced_solve(free_going);
        net_paced_solve(held);
        GError *error = NULL;
        g_assert_true(net_paced_check(free_going, &error) && net_paced_check(held, &error));
        double carried = 0, slowest = 0, least = 0;
        for (int l = 0; l < t.link_count; l++) {
            carried += net_paced_weights(free_going)[l];
            least = MAX(least, net_paced_weights(free_going)[l] * 2e9 / (double)t.links[l].bytes_per_s);
        }
        for (int i = 0; i < STREAMS; i++)
            slowest = MAX(slowest, net_paced_time(free_going, i));
        g_assert_cmpfloat_with_epsilon(carried, work, 1e-9 * work);
        g_assert_cmpfloat(slowest, >=, least * (1 - 1e-9)); /* a link takes as long as it takes */
        net_paced_free(free_going);
        net_paced_free(held);
        net_topology_clear(&t);
    }
}

/* --- any step --- */

typedef struct Shape {
    int nodes, tensor, pipeline, data, context;
} Shape;

static char *random_sets(GRand *rand)
{
    static const Shape shapes[] = {{4, 8, 1, 4, 1}, {4, 4, 2, 4, 1}, {4, 2, 4, 4, 1}, {4, 4, 1, 4, 2},
                                   {8, 8, 2, 4, 1}, {8, 4, 4, 4, 1}, {2, 1, 2, 8, 1}, {8, 16, 2, 2, 1}};
    static const char *const topologies[] = {"leaf-spine", "rail", "fat-tree", "dragonfly"},
                             *const routings[] = {"shortest", "ecmp", "e-ecmp", "adaptive", "rail"},
                             *const algorithms[] = {"ring", "double-binary-tree",
                                                    "recursive-halving-doubling"},
                             *const orders[] = {"tp-cp-ep-dp-pp", "tp-cp-ep-pp-dp"};
    const Shape *shape = &shapes[g_rand_int_range(rand, 0, (int)G_N_ELEMENTS(shapes))];
    const int zero = g_rand_int_range(rand, 0, shape->pipeline > 1 ? 2 : 4);
    return g_strdup_printf("cluster.nodes=%d;parallel.tensor=%d;parallel.pipeline=%d;parallel.data=%d;"
                           "parallel.context=%d;parallel.zero=%d;"
                           "training.global_batch=%d;parallel.order=%s;" NETWORK "topology=%s;" NETWORK
                           "routing=%s;" NETWORK "algorithm=%s;" NETWORK "lossless=%s;" NETWORK
                           "seed=%d;" NETWORK "leaf_gpus=%d",
                           shape->nodes, shape->tensor, shape->pipeline, shape->data, shape->context, zero,
                           shape->data * g_rand_int_range(rand, 1, 4), orders[g_rand_int_range(rand, 0, 2)],
                           topologies[g_rand_int_range(rand, 0, 4)], routings[g_rand_int_range(rand, 0, 5)],
                           algorithms[g_rand_int_range(rand, 0, 3)], g_rand_boolean(rand) ? "true" : "false",
                           g_rand_int_range(rand, 0, 1000), 8 << g_rand_int_range(rand, 0, 2));
}

/* Tiers hold what their links do, none of it left out; the busiest link is the busiest tier's. */
static void tiers_add_up(const TrafficSummary *network)
{
    double left = 0;
    int used = 0;
    for (int i = 0; i < network->link_count; i++)
        left += network->links[i].bytes;
    for (int i = 0; i < network->tier_count; i++) {
        left -= network->tiers[i].bytes;
        used += network->tiers[i].used;
        g_assert_cmpfloat(network->tiers[i].busy_frac, <=, network->tiers[i].busiest_frac * (1 + 1e-9));
    }
    g_assert_cmpint(used, ==, network->link_count);
    g_assert_cmpfloat_with_epsilon(left, 0, 1e-9 * network->tiers[0].bytes);
}

/* Alone no flows collide, as those that a hash spreads do in an analytic step. */
static void any_step(void)
{
    g_autoptr(GRand) rand = g_rand_new_with_seed(14);
    int crowded = 0, free_going = 0;
    for (int round = 0; round < 60; round++) {
        g_autofree char *sets = random_sets(rand);
        g_autofree char *analytic = g_strconcat(sets, ";" ALONE NETWORK "routing=shortest", NULL);
        Run flow = run(sets, false);
        const TrafficSummary *network = &flow.report.network;
        const int64_t analytic_ps = step_of(analytic);
        bool shared = network->shared_links > 0;
        tiers_add_up(network);
        g_assert_cmpint(network->alone_ps, ==, analytic_ps);
        g_assert_cmpint(flow.report.step_ps, >=, analytic_ps);
        for (int d = 0; d < TRAFFIC_DIMENSIONS; d++) {
            g_assert_cmpfloat(network->dimensions[d].slowest, >=, network->dimensions[d].fastest);
            g_assert_cmpfloat(network->dimensions[d].fastest, >=, 1);
            shared = shared || network->dimensions[d].slowest > 1;
        }
        if (!shared)
            g_assert_cmpint(flow.report.step_ps, ==, analytic_ps);
        crowded += flow.report.step_ps > analytic_ps;
        free_going += !shared;
        run_clear(&flow);
    }
    g_test_message("%d of 60 steps meet themselves, %d share nothing", crowded, free_going);
    g_assert_cmpint(crowded, >, 5);
    g_assert_cmpint(free_going, >, 5);
}

static void sentences(void)
{
    const struct {
        const char *set, *says;
    } rows[] = {
        {NETWORK "fidelity=flows", "\"flow\""},
        {NETWORK "topology=butterfly", "no topology is called \"butterfly\""},
        {NETWORK "topology=nowhere.json", "is not a file"},
        {NETWORK
         "topology={\"nodes\":[\"a\",\"b\"],\"links\":[{\"from\":\"a\",\"to\":\"c\",\"bytes_per_s\":1e9}]}",
         "a link ends at \"c\", which is not a node"},
        {NETWORK
         "topology={\"nodes\":[\"a\",\"b\"],\"links\":[{\"from\":\"a\",\"to\":\"b\",\"bytes_per_s\":1e9,"
         "\"one_way\":true}]}",
         "cannot reach"},
        {NETWORK "failed_links=[\"leaf0\"]", "names no link"},
        {NETWORK "failed_links=[\"leaf0-spine99\"]", "no vertex is called \"spine99\""},
        {NETWORK "failed_links=[\"gpu0-leaf0\",\"gpu0-nvswitch0\"]", "cannot reach"},
        {NETWORK "first_node=2", "the job's ranks need GPU 47 of the fabric"},
        {NETWORK "node_stride=3", "give a larger machine_nodes"},
        {NETWORK "traffic=[{\"bytes_per_gpu\":1e9}]", "front_end_bytes_per_s"},
        {NETWORK "traffic=[{\"bytes_per_gpu\":1e9,\"links\":\"fabric\",\"to\":\"moon\"}]",
         "no vertex \"moon\""},
        {NETWORK "jobs=[\"missing.json\"]", "is not a file"},
        {NETWORK "topology=torus", "give the sizes"},
        {ALONE NETWORK "failed_links=[\"leaf0-spine0=0.5\"]", NETWORK "failed_links: fidelity \"analytic\""},
        {ALONE NETWORK "traffic=[{\"bytes_per_gpu\":1e9}]", NETWORK "traffic: fidelity \"analytic\""},
        {ALONE NETWORK "jobs=[{}]", NETWORK "jobs: fidelity \"analytic\""},
    };
    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_auto(GStrv) sets = g_strsplit(rows[i].set, ";", -1);
        GError *error = NULL;
        Run done;
        g_assert_false(try_run((const char *const *)sets, false, &done, &error));
        g_assert_error(error, ORR_ERROR, ORR_ERROR_INPUT);
        if (strstr(error->message, rows[i].says) == NULL)
            g_error("%s: %s", rows[i].set, error->message);
        g_assert_null(strchr(error->message, '\n'));
        g_error_free(error);
        run_clear(&done);
    }
}

/* A job smaller than a scale-up domain, or one that fills its last domain in part, lies on the fabric wherever it starts. */
static void part_of_a_domain(void)
{
    static const int NODES[] = {1, 2, 17, 19}; /* of 4 GPUs in domains of 72 */
    for (size_t i = 0; i < G_N_ELEMENTS(NODES); i++) {
        g_autofree char *job = g_strdup_printf(
            "cluster={\"preset\":\"gb200-nvl72\",\"nodes\":%d,\"network\":{\"fidelity\":\"flow\","
            "\"topology\":"
            "\"rail\",\"machine_nodes\":4}};parallel.tensor=4;parallel.data=%d;training.global_batch=%d",
            NODES[i], NODES[i], NODES[i]);
        g_autofree char *later = g_strconcat(job, ";" NETWORK "first_node=1", NULL);
        g_assert_cmpint(step_of(job), ==, step_of(later));
        g_autofree char *beyond = g_strconcat(job, ";" NETWORK "first_node=4", NULL);
        g_auto(GStrv) sets = g_strsplit(beyond, ";", -1);
        GError *error = NULL;
        Run done;
        g_assert_false(try_run((const char *const *)sets, false, &done, &error));
        g_assert_nonnull(strstr(error->message, "machine_nodes"));
        g_error_free(error);
        run_clear(&done);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/traffic/alone-is-analytic", alone_is_analytic);
    g_test_add_func("/traffic/oversubscribed", oversubscribed);
    g_test_add_func("/traffic/half-a-link", half_a_link);
    g_test_add_func("/traffic/failed-link", failed_link);
    g_test_add_func("/traffic/jobs", jobs);
    g_test_add_func("/traffic/storage", storage);
    g_test_add_func("/traffic/hashed", hashed);
    g_test_add_func("/traffic/tiers", tiers);
    g_test_add_func("/traffic/unfolded", unfolded);
    g_test_add_func("/traffic/paused", paused);
    g_test_add_func("/traffic/random-streams", random_streams);
    g_test_add_func("/traffic/any-step", any_step);
    g_test_add_func("/traffic/sentences", sentences);
    g_test_add_func("/traffic/part-of-a-domain", part_of_a_domain);
    return g_test_run();
}
