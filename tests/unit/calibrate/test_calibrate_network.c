/* The network half: a sweep over two nodes of a network that is known, with 3 % of noise on every measurement, through
 * table, fit and profile into a run; what a node says of its cards; what is refused. */
#include <glib/gstdio.h>
#include <stdlib.h>
#include <string.h>

#include "calibrate/fit/fit.h"
#include "calibrate/fit/fit_kernels.h"
#include "calibrate/nics.h"
#include "tests/unit/calibrate_fixture.h"
#include "costmodel/collective.h"

typedef struct Network {
    SpecCluster cluster;
    int nodes, cards;
    guint32 seed;
} Network;

/* H200 nodes whose network is unlike any preset's. */
static void network_init(Network *network, int nodes)
{
    *network = (Network){.nodes = nodes, .cards = 8, .seed = 1};
    GError *error = NULL;
    spec_load_cluster("dgx-h200", &network->cluster, &error);
    g_assert_no_error(error);
    network->cluster.scale_out_bytes_per_s_per_gpu = 25e9; /* half of the preset's */
    SpecCollectiveModel *model = &network->cluster.accelerator.model.collectives;
    model->nic_frac = 0.87;
    model->net_latency_s = 6.5e-6; /* beside the 5 us of every cluster */
    model->net_simple_s = 16e-6;
    model->net_ring_hop_s = 4.6e-6;
    model->tree_frac = 0.72;
    model->nvls_tree_frac = 0.7;
    model->net_congestion_frac = 0.11;
}

static CalOutcome measure(void *self, const CalPoint *point, double seconds, CalSample *ret_sample,
                          char *reason, size_t reason_size)
{
    static const char *const ops[COST_COLLECTIVE_COUNT] = {
        "all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "reduce", "send_recv"};
    Network *network = self;
    guint32 state = fixture_noise_state(network->seed, point->id);
    CostCollective collective = {
        .bytes = point->bytes,
        .group = {.ranks = point->gpus, .per_domain = point->gpus / MAX(point->nodes, 1), .nic_sharers = 1}};
    (void)reason, (void)reason_size, (void)seconds;
    while (strcmp(ops[collective.op], point->name) != 0)
        collective.op++;
    ret_sample->count = 1;
    ret_sample->seconds[0] =
        cost_collective_s(&network->cluster, &collective) * (1 + FIXTURE_NOISE_FRAC * fixture_noise(&state));
    return CAL_MEASURED;
}

static void sweep_into(Network *network, const char *path, bool full)
{
    CalStamp stamp = {.device = "NVIDIA H200", .uuid = "a-stand-in", .capability = 90, .sm_count = 132};
    stamp.nodes = network->nodes;
    stamp.ranks_per_node = 8;
    stamp.gpus = 8 * network->nodes;
    stamp.memory_bytes = network->cluster.accelerator.memory_bytes;
    for (; stamp.nics.count < network->cards; stamp.nics.count++)
        stamp.nics.nic[stamp.nics.count] = (CalNic){.name = "mlx5", .infiniband = true, .bytes_per_s = 25e9};
    g_strlcpy(stamp.command, "a model with noise, not a network", sizeof stamp.command);
    const CalSweepOptions options = {.full = full, .output = path, .quiet = true};
    fixture_sweep((CalMeter){network, measure}, &stamp, &options, true);
}

static void load(const char *cluster, const char *calibration, int nodes, Spec *ret_spec)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\": \"llama3-8b\", \"cluster\": {\"preset\": \"%s\", \"nodes\": %d, "
        "\"scale_out_bytes_per_s_per_gpu\": 25e9, \"calibration\": \"%s\"}, \"training\": "
        "{\"sequence_length\": 4096, \"global_batch\": %d, \"micro_batch\": 1}, \"parallel\": {\"data\": %d, "
        "\"zero\": 3}, \"execution\": {\"overlap\": []}}",
        cluster, nodes, calibration, 8 * nodes, 8 * nodes);
    fixture_scenario(text, NULL, ret_spec);
}

static char *profile_of(const char *table, const char *cluster, const char *profile)
{
    g_autoptr(GString) json = g_string_new(NULL), log = g_string_new(NULL);
    GError *error = NULL;
    cal_fit_table(table, NULL, cluster, NULL, json, log, &error);
    g_assert_no_error(error);
    g_test_message("%s", log->str);
    g_assert_true(g_file_set_contents(profile, json->str, -1, NULL));
    return g_string_free(g_steal_pointer(&log), FALSE);
}

/* Within 2 %: what sets the time of a message between nodes. A hop of a ring inside its nodes, a tree's rate and what the
 * inside half takes trade with each other: their times are compared. */
static void compare(const SpecCluster *got, const SpecCluster *want, bool many)
{
    const SpecCollectiveModel *g = &got->collectives, *w = &want->accelerator.model.collectives;
    const struct {
        const char *name;
        double got, want;
        bool told;
    } cases[] = {
        {"NIC, bytes/s", got->scale_out_bytes_per_s_per_gpu * g->nic_frac,
         want->scale_out_bytes_per_s_per_gpu * w->nic_frac, true},
        {"step between nodes", got->scale_out_latency_s + g->net_latency_s,
         want->scale_out_latency_s + w->net_latency_s, true},
        {"step of SIMPLE", got->scale_out_latency_s + g->net_latency_s + g->net_simple_s,
         want->scale_out_latency_s + w->net_latency_s + w->net_simple_s, true},
        {"net_ring_hop_s", g->net_ring_hop_s, w->net_ring_hop_s, false},
        {"tree_frac", g->tree_frac, w->tree_frac, false},
        {"1 + congestion", 1 + g->net_congestion_frac, 1 + w->net_congestion_frac, many},
        {"nvls_tree_frac", g->nvls_tree_frac, w->nvls_tree_frac, false},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_test_message("%-20s %.4g, true %.4g: %+.2f %%%s", cases[i].name, cases[i].got, cases[i].want,
                       100 * (cases[i].got / cases[i].want - 1), cases[i].told ? "" : " (not told)");
        if (cases[i].told)
            fixture_within(cases[i].got, cases[i].want, 0.02);
    }
    g_autoptr(GArray) errors = g_array_new(FALSE, FALSE, sizeof(double));
    for (int op = 0; op < COST_COLLECTIVE_COUNT; op++)
        for (double bytes = 3e3; bytes < 4e9; bytes *= 5) {
            const CostCollective collective = {
                (CostCollectiveOp)op, bytes, {.ranks = 16, .per_domain = 8, .nic_sharers = 1}};
            const double error =
                cost_collective_s(got, &collective) / cost_collective_s(want, &collective) - 1;
            g_array_append_val(errors, error);
        }
    double median, p90, bias;
    cal_error_summary((double *)(void *)errors->data, (int)errors->len, &median, &p90, &bias);
    g_test_message("%u sizes that no sweep held: median %.2f %%, p90 %.2f %%, bias %+.2f %%", errors->len,
                   100 * median, 100 * p90, 100 * bias);
    g_assert_cmpfloat(median, <, 0.02);
}

static void recover(int nodes, bool named)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("orrery-test-network-XXXXXX", &error),
                    *table = g_build_filename(folder, "net.json", NULL),
                    *profile = g_build_filename(folder, "profile.json", NULL),
                    *cluster = g_build_filename(folder, "ours.json", NULL);
    g_autofree Network *network = g_new0(Network, 1);
    g_autofree Spec *spec = g_new0(Spec, 1), *plain = g_new0(Spec, 1);
    static const char ours[] = "{\"schema\": 1, \"name\": \"ours\", \"accelerator\": \"h200-sxm5-141gb\", "
                               "\"gpus_per_node\": 8, \"scale_up_domain_gpus\": 8, "
                               "\"scale_out_bytes_per_s_per_gpu\": 25e9, \"topology\": \"switch\"}";
    network_init(network, nodes);
    if (named)
        network->cards = 0; /* a sweep that could not read them */
    const char *seed = g_getenv("ORRERY_TEST_SEED");
    network->seed = seed != NULL ? (guint32)atoi(seed) : 1;
    sweep_into(network, table, true);
    g_assert_true(g_file_set_contents(cluster, ours, -1, NULL));
    g_autofree char *log = profile_of(table, named ? cluster : NULL, profile);
    g_assert_nonnull(strstr(log, "across nodes: "));
    load("dgx-h200", profile, nodes, spec);
    compare(&spec->cluster, &network->cluster, nodes > 2);
    /* A training step over these nodes by the profile, by the truth, by the preset. */
    load("dgx-h200", "", nodes, plain);
    const double preset_s = fixture_step_s(plain);
    plain->cluster.accelerator.model.collectives = network->cluster.accelerator.model.collectives;
    const double true_s = fixture_step_s(plain), fitted_s = fixture_step_s(spec);
    g_test_message("step: %.4f s by the profile, %.4f s true, %.4f s by the preset", fitted_s, true_s,
                   preset_s);
    fixture_within(fitted_s, true_s, 0.02);
    g_assert_cmpfloat(fabs(preset_s / true_s - 1), >, 0.03);
    g_unlink(table);
    g_unlink(profile);
    g_unlink(cluster);
    g_rmdir(folder);
}

static void test_two_nodes(void)
{
    recover(2, false);
}

static void test_four_nodes(void)
{
    recover(4, false);
}

static void test_named(void)
{
    recover(2, true);
}

static void test_refused(void)
{
    GError *error = NULL;
    g_autofree char *folder = g_dir_make_tmp("orrery-test-network-XXXXXX", &error),
                    *table = g_build_filename(folder, "net.json", NULL);
    g_autofree Network *network = g_new0(Network, 1);
    g_autoptr(GString) json = g_string_new(NULL), log = g_string_new(NULL);
    network_init(network, 2);
    network->cards = 0;
    sweep_into(network, table, false);
    g_assert_false(cal_fit_table(table, NULL, NULL, NULL, json, log, &error));
    g_assert_nonnull(strstr(error->message, "say nothing of the NICs' rate"));
    g_assert_nonnull(strstr(error->message, "--cluster NAME"));
    g_clear_error(&error);
    g_assert_false(cal_fit_table(table, NULL, "dgx-h100", NULL, json, log, &error));
    g_assert_nonnull(strstr(error->message, "the rows are of h200-sxm5-141gb"));
    g_clear_error(&error);
    g_assert_cmpuint(json->len, ==, 0);
    /* A quick sweep holds rows over all nodes alone; they are enough for the network. */
    network->cards = 8;
    sweep_into(network, table, false);
    g_assert_true(cal_fit_table(table, NULL, NULL, NULL, json, log, &error));
    g_assert_nonnull(strstr(json->str, "\"nic_frac\""));
    g_assert_null(strstr(json->str, "\"offset_s\""));
    /* Rows inside a node beside rows of a network that nobody names: the former are fitted, the latter told. */
    static const char logs[] =
        "[{\"gpu\": \"h200-sxm5-141gb\", \"op\": \"all_reduce\", \"gpus\": 8, \"bytes\": 1e9, \"time_us\": "
        "4000}, "
        "{\"gpu\": \"h200-sxm5-141gb\", \"op\": \"all_reduce\", \"nodes\": 2, \"gpus\": 8, \"bytes\": 1e9, "
        "\"time_us\": 9000}]";
    g_string_truncate(log, 0);
    g_assert_true(g_file_set_contents(table, logs, -1, NULL));
    g_assert_true(cal_fit_table(table, NULL, NULL, NULL, json, log, &error));
    g_assert_nonnull(strstr(log->str, "1 rows of collectives over nodes say nothing"));
    g_unlink(table);
    g_rmdir(folder);
}

static void put(const char *folder, const char *path, const char *text)
{
    g_autofree char *file = g_build_filename(folder, path, NULL), *parent = g_path_get_dirname(file);
    g_assert_cmpint(g_mkdir_with_parents(parent, 0700), ==, 0);
    g_assert_true(g_file_set_contents(file, text, -1, NULL));
}

/* A node as Linux shows it: two fast cards, one that is down, a slow one, Ethernet that is a device and some that is not. */
static void test_cards(void)
{
    GError *error = NULL;
    g_autofree char *sys = g_dir_make_tmp("orrery-test-sys-XXXXXX", &error);
    put(sys, "class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put(sys, "class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put(sys, "class/infiniband/mlx5_1/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put(sys, "class/infiniband/mlx5_1/ports/1/state", "4: ACTIVE\n");
    put(sys, "class/infiniband/mlx5_2/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put(sys, "class/infiniband/mlx5_2/ports/1/state", "1: DOWN\n");
    put(sys, "class/infiniband/mlx5_3/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put(sys, "class/infiniband/mlx5_3/ports/1/state", "4: ACTIVE\n");
    put(sys, "class/net/eth0/speed", "100000\n");
    put(sys, "class/net/eth0/operstate", "up\n");
    put(sys, "class/net/eth0/device/vendor", "0x15b3\n");
    put(sys, "class/net/docker0/speed", "400000\n");
    put(sys, "class/net/docker0/operstate", "up\n");
    CalNics nics;
    cal_nics_read(sys, NULL, &nics);
    g_assert_cmpint(nics.count, ==, 4);
    g_assert_cmpstr(nics.nic[0].name, ==, "mlx5_0");
    fixture_within(nics.nic[0].bytes_per_s, 50e9, 1e-12);
    g_assert_false(nics.nic[3].infiniband);
    fixture_within(nics.nic[3].bytes_per_s, 12.5e9, 1e-12);
    fixture_within(cal_nics_per_gpu(&nics, 1), 100e9, 1e-12);
    fixture_within(cal_nics_per_gpu(&nics, 2), 50e9, 1e-12);
    fixture_within(cal_nics_per_gpu(&nics, 8), 12.5e9, 1e-12);
    cal_nics_read(sys, "^mlx5_0:1,mlx5_1", &nics);
    g_assert_cmpint(nics.count, ==, 2);
    fixture_within(cal_nics_per_gpu(&nics, 1), 12.5e9, 1e-12);
    cal_nics_read(sys, "=mlx5_1", &nics);
    fixture_within(cal_nics_per_gpu(&nics, 1), 50e9, 1e-12);
    cal_nics_read("/nowhere", NULL, &nics);
    g_assert_cmpint(nics.count, ==, 0);
    g_assert_cmpfloat(cal_nics_per_gpu(&nics, 8), <=, 0);
    CalNics ten = {.count = 10};
    for (int i = 0; i < 10; i++)
        ten.nic[i] = (CalNic){.infiniband = true, .bytes_per_s = 50e9};
    fixture_within(cal_nics_per_gpu(&ten, 8), 50e9, 1e-12); /* two of them for storage */
    g_autofree char *remove = g_strdup_printf("rm -rf '%s'", sys);
    g_assert_true(g_spawn_command_line_sync(remove, NULL, NULL, NULL, NULL));
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/network/two-nodes", test_two_nodes);
    g_test_add_func("/network/four-nodes", test_four_nodes);
    g_test_add_func("/network/named", test_named);
    g_test_add_func("/network/refused", test_refused);
    g_test_add_func("/network/cards", test_cards);
    return g_test_run();
}
