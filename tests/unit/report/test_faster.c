/* tests/unit/report/test_faster.c - a faster part never makes a slower step: every rate of every accelerator that
 * we ship, with op orders and algorithms held fixed. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "spec/resolve.h"
#include "tests/unit/random_scenario.h"

/* Orders do not depend on times; collectives are of one rank group in the node, so that NCCL has one choice. */
static const char *const layouts[][3] = {
    {"data", "{\"zero\":1}", "{\"overlap\":[\"grad_reduce\",\"param_gather\"]}"},
    {"sharded", "{\"zero\":3}", "{\"overlap\":[\"grad_reduce\",\"param_gather\"]}"},
    {"tensor", "{\"tensor\":4,\"sequence_parallel\":true,\"zero\":0}", "{}"},
    {"pipeline", "{\"pipeline\":4,\"schedule\":\"1f1b\",\"zero\":0}", "{}"},
    {"one GPU of each", "{\"tensor\":2,\"pipeline\":2,\"schedule\":\"gpipe\",\"zero\":0}", "{}"},
};

static bool load(const char *accelerator, const char *const *layout, const char *framework, Spec *spec)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":16,\"hidden\":2048,\"heads\":16,\"vocab\":32000},\"cluster\":{"
        "\"accelerator\":\"%s\","
        "\"gpus_per_node\":8,\"scale_up_domain_gpus\":8,\"nodes\":1,\"scale_out_bytes_per_s_per_gpu\":50e9},"
        "\"training\":{\"sequence_length\":2048,\"global_batch\":64,\"micro_batch\":2,\"precision\":\"fp16\"}"
        ","
        "\"parallel\":%s,\"execution\":%s}",
        accelerator, layout[1], layout[2]);
    g_autofree char *software = g_strdup_printf("execution.framework=%s", framework);
    const char *const sets[] = {software, "execution.attention=unfused", NULL};
    return scenario_load(text, sets, spec);
}

static const struct {
    const char *name;
    size_t offset;
    bool smaller; /* is faster */
} rates[] = {
    {"HBM", offsetof(Spec, cluster.accelerator.memory_bytes_per_s), false},
    {"scale-up", offsetof(Spec, cluster.scale_up_bytes_per_s), false},
    {"scale-out", offsetof(Spec, cluster.scale_out_bytes_per_s_per_gpu), false},
    {"network latency", offsetof(Spec, cluster.scale_out_latency_s), true},
    {"host", offsetof(Spec, execution.framework.host.kernel_host_s), true},
    {"gaps", offsetof(Spec, execution.framework.host.kernel_gap_s), true},
    {"collective gaps", offsetof(Spec, execution.framework.host.collective_gap_s), true},
    {"step overhead", offsetof(Spec, execution.framework.host.step_overhead_s), true},
};

static void faster(Spec *spec, size_t offset, bool smaller, double factor)
{
    double value;
    memcpy(&value, (char *)spec + offset, sizeof value);
    value *= smaller ? 1 / factor : factor;
    memcpy((char *)spec + offset, &value, sizeof value);
}

static void more_peak(Spec *spec, double factor)
{
    for (int dtype = 0; dtype < SPEC_DTYPE_COUNT; dtype++)
        spec->cluster.accelerator.peak_flops_per_s[dtype] *= factor;
}

typedef struct Count {
    int scenarios, comparisons, slower;
    double allowed_frac; /* where parts share one */
    double most_frac;    /* slower */
} Count;

static void compare(const Spec *slow, const Spec *fast, const char *what, const char *where, Count *count)
{
    const int64_t before = scenario_step_ps(slow, NULL), after = scenario_step_ps(fast, NULL);
    if (before == 0 || after == 0)
        return;
    count->comparisons++;
    count->most_frac = fmax(count->most_frac, (double)after / (double)before - 1);
    if ((double)after >
        (double)before * (1 + 1e-9 + count->allowed_frac) + 1000) { /* a nanosecond of rounding */
        printf("slower by %.4f %%: %s with more of %s\n", 100 * ((double)after / (double)before - 1), where,
               what);
        count->slower++;
    }
}

static void every_rate(const Spec *spec, const char *where, Count *count)
{
    static const double factors[] = {1.1, 3};
    g_autofree Spec *fast = g_new(Spec, 1);
    for (gsize f = 0; f < G_N_ELEMENTS(factors); f++) {
        for (gsize i = 0; i < G_N_ELEMENTS(rates); i++) {
            *fast = *spec;
            faster(fast, rates[i].offset, rates[i].smaller, factors[f]);
            compare(spec, fast, rates[i].name, where, count);
        }
        *fast = *spec;
        more_peak(fast, factors[f]);
        compare(spec, fast, "peak", where, count);
    }
}

/* What lies below the GPUs' memory, and servers. A rate of 0 is not there. */
static const struct {
    const char *name;
    size_t offset;
} node_rates[] = {
    {"DRAM", offsetof(Spec, cluster.host.dram_bytes_per_s)},
    {"a core", offsetof(Spec, cluster.host.core_bytes_per_s)},
    {"PCIe root", offsetof(Spec, cluster.host.pcie_root_bytes_per_s)},
    {"host link", offsetof(Spec, cluster.accelerator.host_link_bytes_per_s)},
    {"NVMe reads", offsetof(Spec, cluster.host.nvme_read_bytes_per_s)},
    {"NVMe writes", offsetof(Spec, cluster.host.nvme_write_bytes_per_s)},
    {"HBM", offsetof(Spec, cluster.accelerator.memory_bytes_per_s)},
    {"scale-out", offsetof(Spec, cluster.scale_out_bytes_per_s_per_gpu)},
    {"a server's NIC", offsetof(Spec, parallel.servers.nic_bytes_per_s)},
    {"a server's connection", offsetof(Spec, parallel.servers.flow_bytes_per_s)},
    {"a server's sums", offsetof(Spec, parallel.servers.sum_bytes_per_s)},
    {"a server's updates", offsetof(Spec, parallel.servers.update_bytes_per_s)},
};

/* The scenario on every node that we ship and may hold it. */
static const char *const node_layouts[][2] = {
    {"ZeRO-Offload", "\"parallel\":{\"zero\":2},\"offload\":{\"scheme\":\"zero-offload\"}"},
    {"delayed update", "\"parallel\":{\"zero\":2},\"offload\":{\"scheme\":\"zero-offload-dpu\"}"},
    {"Twin-Flow", "\"parallel\":{\"zero\":3},\"offload\":{\"scheme\":\"twin-flow\",\"ratio\":0.4}"},
    {"SuperOffload", "\"parallel\":{\"zero\":2},\"offload\":{\"scheme\":\"superoffload\"}"},
    {"MemFerry", "\"parallel\":{\"zero\":2},\"offload\":{\"scheme\":\"memferry\"}"},
    {"ZeRO-Infinity", "\"parallel\":{\"zero\":3},\"offload\":{\"scheme\":\"zero-infinity\"}"},
    {"servers",
     "\"parallel\":{\"data_scheme\":\"parameter_server\",\"parameter_server\":{\"servers\":2,"
     "\"scheme\":\"wfbp\",\"nic_bytes_per_s\":5e9,\"flow_bytes_per_s\":4e9,\"sum_bytes_per_s\":3e10,"
     "\"update_bytes_per_s\":3e10}}"},
    {"compression", "\"parallel\":{\"zero\":0,\"compression\":{\"kind\":\"topk\",\"fraction\":0.01}}"},
};

static bool load_node(const char *cluster, const char *layout, Spec *spec)
{
    g_autofree char *text = g_strdup_printf(
        "{\"model\":{\"layers\":16,\"hidden\":2048,\"heads\":16,\"vocab\":32000},\"cluster\":{\"preset\":\"%"
        "s\","
        "\"nodes\":2},\"training\":{\"sequence_length\":2048,\"global_batch\":64,\"micro_batch\":2,"
        "\"precision\":\"fp16\"},\"execution\":{\"framework\":\"deepspeed\"},%s}",
        cluster, layout);
    const char *const sets[] = {"execution.attention=unfused", NULL};
    g_autoptr(GError) error = NULL;
    OrrJsonDoc *doc = orr_json_parse(text, strlen(text), cluster, &error);
    g_assert_no_error(error);
    const bool ok = spec_load_json(orr_json_root(doc), cluster, sets, false, spec, NULL, &error);
    orr_json_free(doc);
    if (strcmp(cluster, "cs2-memoryx") ==
        0) /* a wafer launches no kernels; where launches bind, order is not held */
        spec->execution.framework.host.kernel_host_s = 0;
    /* nor where a slow host makes them bind: all launch as fast as the hosts of recipes */
    spec->cluster.host.launch_frac = 1;
    return ok;
}

static void every_node_rate(const Spec *spec, const char *where, Count *count)
{
    static const double factors[] = {1.1, 3};
    g_autofree Spec *fast = g_new(Spec, 1);
    for (gsize f = 0; f < G_N_ELEMENTS(factors); f++)
        for (gsize i = 0; i < G_N_ELEMENTS(node_rates); i++) {
            double rate;
            memcpy(&rate, (const char *)spec + node_rates[i].offset, sizeof rate);
            if (rate <= 0)
                continue;
            *fast = *spec;
            faster(fast, node_rates[i].offset, false, factors[f]);
            compare(spec, fast, node_rates[i].name, where, count);
        }
}

/* Where more is asked of a node's DRAM than it has, or of a link whose two ways slow each other, its users share it max-min
 * fair: a part that becomes faster takes a larger share, and may take it from whom the step waits for. Who is served when is
 * then no longer held fixed, and the step may be slower by less than a hundredth. With a DRAM that serves all of them, and
 * ways apart, nothing is. */
#define SHARED_FRAC        0.01
#define PLENTY_BYTES_PER_S 1e13

static void every_node(bool plenty)
{
    g_autoptr(GPtrArray) names = spec_preset_names("clusters", NULL);
    g_autofree Spec *spec = g_new(Spec, 1);
    Count count = {.allowed_frac = plenty ? 0 : SHARED_FRAC};
    int loaded[G_N_ELEMENTS(node_layouts)] = {0};
    g_assert_nonnull(names);
    for (guint n = 0; n < names->len; n++)
        for (gsize l = 0; l < G_N_ELEMENTS(node_layouts); l++) {
            const char *name = g_ptr_array_index(names, n);
            g_autofree char *where = g_strdup_printf("%s, %s", name, node_layouts[l][0]);
            if (!load_node(name, node_layouts[l][1], spec))
                continue;
            if (plenty) {
                spec->cluster.host.dram_bytes_per_s = PLENTY_BYTES_PER_S;
                spec->cluster.host.duplex_frac = 1;
            }
            count.scenarios++;
            loaded[l]++;
            every_node_rate(spec, where, &count);
        }
    for (gsize l = 0; l < G_N_ELEMENTS(node_layouts); l++)
        printf("%s: %d nodes\n", node_layouts[l][0], loaded[l]);
    printf("%d scenarios, %d comparisons, %d slower by more than %.1f %%, most %.3f %%\n", count.scenarios,
           count.comparisons, count.slower, 100 * count.allowed_frac, 100 * count.most_frac);
    g_assert_cmpint(count.scenarios, >=, 200);
    g_assert_cmpint(count.slower, ==, 0);
}

static void test_every_node(void)
{
    every_node(true);
}

static void test_shared_dram(void)
{
    every_node(false);
}

static void test_every_preset(void)
{
    static const char *const frameworks[] = {"megatron-core", "torchtitan"};
    g_autoptr(GPtrArray) names = spec_preset_names("accelerators", NULL);
    g_autofree Spec *spec = g_new(Spec, 1);
    Count count = {0};
    g_assert_nonnull(names);
    for (guint n = 0; n < names->len; n++)
        for (gsize l = 0; l < G_N_ELEMENTS(layouts); l++)
            for (gsize f = 0; f < G_N_ELEMENTS(frameworks); f++) {
                const char *name = g_ptr_array_index(names, n);
                g_autofree char *where = g_strdup_printf("%s, %s, %s", name, layouts[l][0], frameworks[f]);
                if (!load(name, layouts[l], frameworks[f], spec))
                    continue;
                count.scenarios++;
                every_rate(spec, where, &count);
            }
    printf("%d scenarios, %d comparisons, %d slower\n", count.scenarios, count.comparisons, count.slower);
    g_assert_cmpint(count.scenarios, >=, 150);
    g_assert_cmpint(count.slower, ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/faster/every-preset", test_every_preset);
    g_test_add_func("/faster/every-node", test_every_node);
    g_test_add_func("/faster/shared-dram", test_shared_dram);
    return g_test_run();
}
